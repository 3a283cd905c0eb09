// Reads and compiles `reduce` mappings.
#include "codegen/reduce.h"

#include "codegen/syntax/parser.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::TypeKind;

const std::vector<std::string>& ReduceKeys() {
  static const std::vector<std::string> keys = {"state", "init", "step", "combine", "element", "finish"};
  return keys;
}

Binding Refused(std::string sentence) { return {Binding::Kind::kRefused, 0, 0, false, std::move(sentence)}; }

}  // namespace

Binding SourceBinding(int opcode, int aux) { return {Binding::Kind::kSource, aux, opcode, false, ""}; }

// The arguments by name; `element_arg` is read by ELEMENT (-1: none).
ComputeScope ArgumentScope(const Entry& entry, int element_arg) {
  ComputeScope scope;
  const auto& arguments = entry.primary().schema.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const schema::Argument& a = arguments[i];
    const int number = static_cast<int>(i);
    Binding& binding = scope.names[a.name];
    if (number == element_arg) {
      binding = SourceBinding(MICA_OP_ELEMENT, 0);
    } else if (a.type.is(TypeKind::kTensor)) {
      binding = {Binding::Kind::kTensor, number, 0, false, ""};
    } else if (a.type.is(TypeKind::kBool)) {
      binding = {Binding::Kind::kFlag, number, 0, false, ""};
    } else if (entry.op_class == OpClass::kWindow && a.type.is_optional() &&
               (a.type.unwrapped().is(TypeKind::kInt) || a.type.unwrapped().is(TypeKind::kFloat))) {
      binding = {Binding::Kind::kNumber, number, 0, true, ""};
    } else if (a.type.is(TypeKind::kInt) || a.type.is(TypeKind::kSymInt) || a.type.is(TypeKind::kFloat) ||
               a.type.is(TypeKind::kScalar)) {
      binding = {Binding::Kind::kNumber, number, 0, false, ""};
    } else {
      binding = Refused(StrCat("Argument (", a.name, ") has type ",
                               TypeKind::kOptional == a.type.kind ? "optional " : "",
                               a.type.unwrapped().ToString(false),
                               ", which elements cannot read; expected a Tensor, Scalar, float, int or bool "
                               "that is always given."));
    }
  }
  return scope;
}

Reduce ReadReduce(const YamlMap& map, const YAML::Node& node) {
  const YamlMap reduce(node, map.file(), "`reduce`", ReduceKeys());
  Reduce r;
  for (const PlacedText& name : reduce.Texts("state")) r.states.push_back(name.text());
  r.init = reduce.Texts("init");
  r.step = reduce.Texts("step");
  r.combine = reduce.Texts("combine");
  r.element = reduce.Texts("element");
  r.finish = reduce.Texts("finish");
  r.short_form = r.step.empty();
  if (r.init.empty())
    throw Mistake(reduce.Where(), "`reduce` has no `init`; expected the first value of each state.");
  if (r.combine.empty())
    throw Mistake(reduce.Where(),
                  "`reduce` has no `combine`; expected how two parts become one, over `a` and `b`.");
  if (r.states.empty()) r.states.resize(r.init.size(), "");
  const size_t n = r.states.size();
  if (n > 1 && r.states[0].empty())
    throw Mistake(reduce.WhereValue("init"),
                  StrCat("`reduce` has ", n, " states without names; expected `state: [names]`."));
  const auto check = [&](const std::vector<PlacedText>& texts, const char* key) {
    if (!texts.empty() && texts.size() != n)
      throw Mistake(reduce.WhereValue(key),
                    StrCat("`", key, "` has ", texts.size(), " expressions; expected ", n, ", one a state."));
  };
  check(r.init, "init");
  check(r.step, "step");
  check(r.combine, "combine");
  check(r.element, "element");
  if (r.short_form && r.element.empty() && n > 1)
    throw Mistake(
        reduce.Where(),
        StrCat("`reduce` with ", n, " states has neither `step` nor `element`; expected one of the two."));
  return r;
}

void CodeWriter::Write(const PlacedText& text, const ComputeScope& scope, int store_opcode, int aux) {
  ExpressionCompiler(text, scope, &builder_).CompileInto(syntax::Parse(text), store_opcode, aux);
}

void CodeWriter::WriteTogether(const std::vector<PlacedText>& texts, const ComputeScope& scope,
                               int store_opcode, int aux, const std::map<std::string, Value>& bound) {
  std::vector<Value> values;
  for (const PlacedText& text : texts) {
    ExpressionCompiler compiler(text, scope, &builder_);
    compiler.Bind(bound);
    values.push_back(compiler.Compile(syntax::Parse(text)));
  }
  for (size_t i = 0; i < values.size(); ++i)
    builder_.Store(store_opcode, aux + static_cast<int>(i), values[i]);
}

void ReduceCompiler::Compile(int num_states) {
  CodeWriter init(program_, kind_, &program_->init);
  init.WriteTogether(reduce_.init, scope_, MICA_OP_STORE_STATE, base_);
  WriteCombine(num_states);
  if (reduce_.short_form) {
    WriteShortStep();
  } else {
    WriteStep();
  }
}

ComputeScope ReduceCompiler::StateScope() const {
  ComputeScope scope = scope_;
  for (int s = 0; s < NumStates(); ++s) {
    const Binding state = SourceBinding(MICA_OP_STATE, base_ + s);
    if (!reduce_.states[s].empty()) scope.names[reduce_.states[s]] = state;
    if (NumStates() == 1) scope.names["a"] = state;
  }
  scope.names["count"] = SourceBinding(MICA_OP_COUNT, 0);
  if (program_->num_windowed > 0) scope.names["area"] = SourceBinding(MICA_OP_AREA, 0);
  return scope;
}

ComputeScope ReduceCompiler::ElementScope(ComputeScope scope) const {
  scope.names["x"] = SourceBinding(MICA_OP_ELEMENT, 0);
  scope.names["index"] = SourceBinding(MICA_OP_INDEX, 0);
  scope.names["count"] = SourceBinding(MICA_OP_COUNT, 0);
  return scope;
}

void ReduceCompiler::WriteStep() {
  CodeWriter step(program_, kind_, &program_->main);
  step.WriteTogether(reduce_.step, ElementScope(StateScope()), MICA_OP_STORE_STATE, base_);
}

void ReduceCompiler::WriteCombine(int num_states) {
  ComputeScope scope = StateScope();
  for (int s = 0; s < NumStates(); ++s) {
    const Binding right = SourceBinding(MICA_OP_STATE, num_states + base_ + s);
    if (NumStates() == 1) scope.names["b"] = right;
    if (reduce_.states[s].empty()) continue;
    scope.names["a." + reduce_.states[s]] = SourceBinding(MICA_OP_STATE, base_ + s);
    scope.names["b." + reduce_.states[s]] = right;
  }
  CodeWriter combine(program_, kind_, &program_->combine);
  combine.WriteTogether(reduce_.combine, scope, MICA_OP_STORE_STATE, base_);
}

// combine(state, element): `b` stands for the element's expression.
void ReduceCompiler::WriteShortStep() {
  CodeWriter step(program_, kind_, &program_->main);
  ComputeScope scope = ElementScope(StateScope());
  std::map<std::string, Value> bound;
  for (int s = 0; s < NumStates(); ++s) {
    const std::string& name = reduce_.states[s];
    if (!name.empty()) scope.names["a." + name] = SourceBinding(MICA_OP_STATE, base_ + s);
    Value element;
    if (reduce_.element.empty()) {
      element = step.builder().Source(MICA_OP_ELEMENT, 0);
    } else {
      const ComputeScope element_scope = ElementScope(scope_);
      element = ExpressionCompiler(reduce_.element[s], element_scope, &step.builder())
                    .Compile(syntax::Parse(reduce_.element[s]));
    }
    if (element.type == LaneType::kMask) step.builder().Emit(MICA_OP_TO_LANE, &element, 1, &element);
    if (NumStates() == 1) bound["b"] = element;
    if (!name.empty()) bound["b." + name] = element;
  }
  step.WriteTogether(reduce_.combine, scope, MICA_OP_STORE_STATE, base_, bound);
}

}  // namespace mica::codegen
