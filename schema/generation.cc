#include "schema/generation.h"

#include "absl/strings/str_cat.h"

namespace mica::schema {

absl::StatusOr<std::vector<int>> KeptArguments(const FunctionSchema& earlier, const FunctionSchema& now) {
  const auto refuse = [&](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("The earlier schema of ", now.FullName(), " ", why...));
  };
  if (earlier.name != now.name || earlier.overload != now.overload)
    return refuse("has the name (", earlier.FullName(), "); expected the same.");
  if (earlier.is_vararg || now.is_vararg) return refuse("takes any arguments; expected named ones.");
  if (earlier.returns != now.returns || earlier.is_varret != now.is_varret)
    return refuse("has other results; expected the same.");
  std::vector<int> kept;
  for (const Argument& a : earlier.arguments) {
    const int i = now.FindArgument(a.name);
    if (i < 0) return refuse("has the argument `", a.name, "`, which is gone; expected it to stay.");
    if (!kept.empty() && i < kept.back())
      return refuse("has the argument `", a.name, "` in another place; expected the same order.");
    if (!(a.type == now.arguments[static_cast<size_t>(i)].type))
      return refuse("has another type of `", a.name, "`; expected the same.");
    kept.push_back(i);
  }
  for (const Argument& a : now.arguments)
    if (earlier.FindArgument(a.name) < 0 && !a.default_value)
      return refuse("lacks the argument `", a.name, "`, which has no default; expected one.");
  if (earlier.arguments == now.arguments) return refuse("is the present one; expected one that differs.");
  return kept;
}

}  // namespace mica::schema
