#include "mica/dispatcher/earlier_schema.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mica/dispatcher/adapters.h"
#include "mica/schema/default.h"
#include "mica/schema/generation.h"

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

MicaStatus CallLeaf(const StructuredContext& c, const OperatorSpec& form, const MicaCall& call,
                    const MicaValue* args, int64_t n, MicaValue* results, int64_t num_results) {
  absl::InlinedVector<MicaValue, 8> fewer;
  const SignatureAdapters* adapters = form.adapters;
  if (__builtin_expect(c.earlier != nullptr, 0)) {
    for (const auto& [i, value] : c.earlier->left_out)
      if (!(Value::FromBorrowed(args[i]) == value)) return BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
    for (const int i : c.earlier->kept) fewer.push_back(args[i]);
    args = fewer.data();
    n = static_cast<int64_t>(fewer.size());
    adapters = c.earlier->generation->adapters;
  }
  return c.leaf ? adapters->call_leaf(c.leaf, &call, args, results)
                : c.leaf_boxed(&call, args, n, results, num_results);
}

}  // namespace mica
