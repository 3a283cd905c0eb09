#include "dispatcher/registration/earlier_schema.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
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

MicaStatus CallEarlier(const StructuredContext& c, const MicaCall& call, const MicaValue* args,
                       MicaValue* results, int64_t num_results) {
  const EarlierSchema& earlier = *c.earlier;
  for (const auto& [i, value] : earlier.left_out)
    if (!(Value::FromBorrowed(args[i]) == value)) return BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
  absl::InlinedVector<MicaValue, 8> kept;
  for (const int i : earlier.kept) kept.push_back(args[i]);
  return c.leaf ? earlier.generation->adapters->call_leaf(c.leaf, &call, kept.data(), results)
                : c.leaf_boxed(&call, kept.data(), static_cast<int64_t>(kept.size()), results, num_results);
}

}  // namespace mica
