#include "dispatcher/registration/earlier_schema.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "schema/default.h"
#include "schema/generation.h"

namespace mica {

EarlierSchema AdaptTo(const Operator& op, const SchemaGeneration& generation) {
  const schema::FunctionSchema& now = op.schema();
  absl::StatusOr<schema::FunctionSchema> earlier = schema::Parse(generation.schema);
  MICA_CHECK(earlier.ok(), std::string(earlier.status().message()));
  absl::StatusOr<std::vector<int>> kept = schema::KeptArguments(*earlier, now);
  MICA_CHECK(kept.ok(), std::string(kept.status().message()));
  EarlierSchema result{&generation, *std::move(kept), {}, ""};
  for (int i = 0; i < static_cast<int>(now.arguments.size()); ++i) {
    if (std::find(result.kept.begin(), result.kept.end(), i) != result.kept.end()) continue;
    const schema::Argument& a = now.arguments[static_cast<size_t>(i)];
    result.left_out.emplace_back(i, schema::Default(a));
    absl::StrAppend(&result.names, result.names.empty() ? "`" : ", `", a.name, "`");
  }
  return result;
}

const EarlierSchema* EarlierCall(const Operator& op, int64_t num_args) {
  const OperatorSpec& spec = op.spec();
  if (num_args == spec.num_args || spec.num_generations == 0) return nullptr;
  static std::mutex mutex;
  static auto* const known =
      new absl::flat_hash_map<std::pair<const Operator*, int64_t>, std::unique_ptr<EarlierSchema>>();
  const std::lock_guard lock(mutex);
  std::unique_ptr<EarlierSchema>& found = (*known)[{&op, num_args}];
  // Of several, the one that is listed last.
  for (int i = spec.num_generations - 1; !found && i >= 0; --i)
    if (EarlierSchema e = AdaptTo(op, spec.generations[i]); static_cast<int64_t>(e.kept.size()) == num_args)
      found = std::make_unique<EarlierSchema>(std::move(e));
  return found.get();
}

absl::InlinedVector<MicaValue, 8> Filled(const EarlierSchema& earlier, const MicaValue* args) {
  absl::InlinedVector<MicaValue, 8> filled(earlier.kept.size() + earlier.left_out.size());
  for (size_t i = 0; i < earlier.kept.size(); ++i) filled[static_cast<size_t>(earlier.kept[i])] = args[i];
  for (const auto& [i, value] : earlier.left_out) filled[static_cast<size_t>(i)] = value.Borrow();
  return filled;
}

MicaStatus CallEarlier(const StructuredContext& c, const MicaCall& call, const MicaValue* args,
                       MicaValue* results, int64_t num_results) {
  const EarlierSchema& earlier = *c.earlier;
  for (const auto& [i, value] : earlier.left_out)
    if (!(Value::FromBorrowed(args[i]) == value)) return BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
  absl::InlinedVector<MicaValue, 8> kept;
  for (const int i : earlier.kept) kept.push_back(args[i]);
  const auto n = static_cast<int64_t>(kept.size());
  return c.leaf ? earlier.generation->adapters->call_leaf(c.leaf, &call, kept.data(), n, nullptr, results)
                : c.leaf_boxed(&call, kept.data(), n, results, num_results);
}

}  // namespace mica
