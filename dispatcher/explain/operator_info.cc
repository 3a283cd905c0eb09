// What a third party's layer may ask of an operator: its class, arguments, programs and
// equation, from its spec and its schema, as C text that stays.
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "dispatcher/calls/boxed_results.h"
#include "dispatcher/layers/layers_extension.h"
#include "dispatcher/tables/dispatcher.h"

namespace mica {
namespace {

struct Kept {
  MicaOperatorInfo info{};
  std::string schema;
  std::deque<std::string> texts;  // keeps addresses
  std::vector<MicaArgumentInfo> args;
  std::vector<MicaResultInfo> results;
};

const char* EquationOf(const OperatorSpec& spec) {
  for (const MicaProgram* p : spec.programs)
    if (p && p->equation && *p->equation) return p->equation;
  return "";
}

// The equation's operands are the last of the operator's tensors: addmm(self, mat1, mat2).
void MarkOperands(const OperatorSpec& spec, Kept& kept) {
  const std::string_view equation = EquationOf(spec);
  if (equation.empty() || !spec.programs[static_cast<int>(DTypeKind::kFloating)]) return;
  int operands = 1;
  for (const char c : equation.substr(0, equation.find("->"))) operands += c == ',';
  const MicaProgram& p = *spec.programs[static_cast<int>(DTypeKind::kFloating)];
  for (int32_t i = std::max(0, p.num_inputs - operands); i < p.num_inputs; ++i)
    kept.args[static_cast<size_t>(p.input_args[i])].flags |= MICA_ARGUMENT_OPERAND;
}

std::unique_ptr<Kept> Make(const Operator& op) {
  auto kept = std::make_unique<Kept>();
  const OperatorSpec& spec = op.spec();
  const schema::FunctionSchema& schema = op.schema();
  kept->schema = schema::ToString(schema);
  for (const schema::Argument& a : schema.arguments) {
    MicaArgumentInfo& info = kept->args.emplace_back();
    info.name = kept->texts.emplace_back(a.name).c_str();
    info.type = kept->texts.emplace_back(a.type.ToString()).c_str();
    info.tag = TagOfType(a.type);
    if (a.is_mutable()) info.flags |= MICA_ARGUMENT_WRITTEN;
    if (a.type.is(schema::TypeKind::kOptional)) info.flags |= MICA_ARGUMENT_OPTIONAL;
    if (a.kwarg_only) info.flags |= MICA_ARGUMENT_KEYWORD;
    if (a.alias()) info.flags |= MICA_ARGUMENT_ALIAS;
  }
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    const schema::Type& type = schema.returns[i].type;
    kept->results.push_back({kept->texts.emplace_back(type.ToString()).c_str(), TagOfType(type),
                             schema.ReturnsAliasOfArgument(static_cast<int>(i))});
  }
  MarkOperands(spec, *kept);
  MicaOperatorInfo& info = kept->info;
  info.struct_size = sizeof(info);
  info.name = spec.name;
  info.schema = kept->schema.c_str();
  info.class_name = Name(spec.op_class);
  info.functional_name = spec.functional_name;
  info.out_name = spec.out_name;
  info.form = static_cast<int32_t>(spec.form);
  info.num_args = static_cast<int32_t>(kept->args.size());
  info.num_results = static_cast<int32_t>(schema.returns.size());
  info.dtype_arg = spec.dtype_arg;
  if (spec.view) info.flags |= MICA_OPERATOR_VIEW;
  if (spec.composite) info.flags |= MICA_OPERATOR_COMPOSITE;
  if (spec.flags & kNotDifferentiable) info.flags |= MICA_OPERATOR_NOT_DIFFERENTIABLE;
  if (spec.adapters || ClassMeta(spec.op_class)) info.flags |= MICA_OPERATOR_BY_CLASS;
  if (spec.meta) info.flags |= MICA_OPERATOR_META;
  info.schema_hash = schema::Hash(schema);
  info.written_args = spec.written_args;
  info.args = kept->args.data();
  std::copy(std::begin(spec.programs), std::end(spec.programs), info.programs);
  info.equation = EquationOf(spec);
  info.results = kept->results.data();
  info.dims_arg = spec.dims_arg;
  info.keepdim_arg = spec.keepdim_arg;
  info.none_dims = spec.none_dims;
  return kept;
}

}  // namespace

const MicaOperatorInfo& InfoOf(const Operator& op) {
  static auto& mutex = *new std::mutex();
  static auto& all = *new absl::flat_hash_map<const Operator*, std::unique_ptr<Kept>>();
  const std::lock_guard lock(mutex);
  std::unique_ptr<Kept>& kept = all[&op];
  if (!kept) kept = Make(op);
  return kept->info;
}

}  // namespace mica
