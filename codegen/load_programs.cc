// `compute`, `reduce`, `stages`, `map` and `index`: which text is compiled into
// which code of a Program, for which dtype kinds, with which names in scope.
#include <functional>

#include "codegen/reduce.h"
#include "codegen/syntax/parser.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::TypeKind;

void AddCoordinates(ComputeScope* scope) {
  for (int d = 0; d < 8; ++d) {
    scope->names.emplace(StrCat("i", d), SourceBinding(MICA_OP_COORD, d));
    scope->names.emplace(StrCat("n", d), SourceBinding(MICA_OP_SIZE, d));
  }
  // From the end: the row and the column of a matrix.
  scope->names.emplace("row", SourceBinding(MICA_OP_COORD, -2));
  scope->names.emplace("col", SourceBinding(MICA_OP_COORD, -1));
}

int FirstTensor(const Entry& entry) {
  const auto& arguments = entry.primary().schema.arguments;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].type.is(TypeKind::kTensor)) return static_cast<int>(i);
  return -1;
}

bool UsesIndex(const Code& code) {
  for (const MicaInstruction& instruction : code)
    if (instruction.opcode == MICA_OP_INDEX) return true;
  return false;
}

std::shared_ptr<Program> NewProgram(const Entry& entry, std::string source) {
  auto program = std::make_shared<Program>();
  program->class_name = Name(entry.op_class);
  program->source = std::move(source);
  program->hint = entry.hint;
  program->dims_arg = entry.dims_arg;
  program->keepdim_arg = entry.keepdim_arg;
  if (entry.none_is_all) program->flags |= MICA_PROGRAM_DIMS_NONE_IS_ALL;
  if (entry.trailing_dims) program->flags |= MICA_PROGRAM_TRAILING_DIMS;
  if (entry.none_is_flat) program->flags |= MICA_PROGRAM_DIMS_NONE_IS_FLAT;
  return program;
}

std::string JoinTexts(const std::vector<PlacedText>& texts) {
  std::vector<std::string> parts;
  for (const PlacedText& text : texts) parts.push_back(text.text());
  return Join(parts, "; ");
}

void CheckOutputs(const Entry& entry, const std::vector<PlacedText>& texts, const Location& where,
                  const char* key) {
  if (static_cast<int>(texts.size()) == entry.num_outputs()) return;
  throw Mistake(where, StrCat("`", key, "` has ", texts.size(), " expressions; expected ",
                              entry.num_outputs(), ", one a result of ", entry.base_name, "."));
}

using Compiler = std::function<std::shared_ptr<Program>(ComputeKind)>;

// The kinds that a compute dtype can have under the entry's dtype rule.
bool RuleGives(DTypeRule rule, ComputeKind kind) {
  if (rule == DTypeRule::kFloat) return kind >= ComputeKind::kFloat;
  if (rule == DTypeRule::kComplex) return kind == ComputeKind::kComplex;
  if (rule == DTypeRule::kAccumulate) return kind != ComputeKind::kBool;
  return true;
}

bool Supports(const Entry& entry, ComputeKind kind) {
  static constexpr uint16_t kBits[] = {1, 6, 8, 16};
  return (entry.supports & kBits[static_cast<int>(kind)]) != 0;
}

void SetProgram(Entry* entry, ComputeKind kind, std::shared_ptr<const Program> program) {
  switch (kind) {
    case ComputeKind::kBool:
      entry->programs[0] = program;
      break;
    case ComputeKind::kInt:
      entry->programs[1] = entry->programs[2] = program;
      break;
    case ComputeKind::kFloat:
      entry->programs[3] = program;
      break;
    case ComputeKind::kComplex:
      entry->programs[4] = program;
      break;
  }
}

// Compiles for all kinds that the entry supports. With `supports` given, each
// must have a meaning; without, those that have none are taken off it.
void CompileForKinds(const YamlMap& map, Entry* entry, const Compiler& compile) {
  std::unique_ptr<KindMistake> last;
  uint16_t dropped = 0;
  for (int k = kComputeKindCount - 1; k >= 0; --k) {
    const auto kind = static_cast<ComputeKind>(k);
    if (!RuleGives(entry->dtype_rule, kind) || !Supports(*entry, kind)) continue;
    try {
      std::shared_ptr<Program> program = compile(kind);
      for (const auto& other : entry->programs)
        if (other && program && *other == *program) {
          SetProgram(entry, kind, other);
          program = nullptr;
          break;
        }
      if (program) SetProgram(entry, kind, std::move(program));
    } catch (const KindMistake& mistake) {
      if (map.has("supports")) throw;
      last = std::make_unique<KindMistake>(mistake);
      static constexpr uint16_t kBits[] = {1, 6, 8, 16};
      dropped |= kBits[k];
    }
  }
  if (!entry->has_program() && last) throw *last;
  // Only what the rule can give is the program's to decide.
  entry->supports &= static_cast<uint16_t>(~dropped);
}

// `compute: e`, `compute: [e, e]`, or by kind `{bool: e, default: [e, e]}`.
std::vector<PlacedText> TextsForKind(const YamlMap& map, std::string_view key, ComputeKind kind) {
  const YAML::Node node = map.Get(key);
  if (!node.IsMap()) return map.Texts(key);
  const YamlMap kinds(node, map.file(), StrCat("`", key, "`"),
                      {"bool", "int", "float", "complex", "default"});
  if (kinds.has(Name(kind))) return kinds.Texts(Name(kind));
  if (kinds.has("default")) return kinds.Texts("default");
  throw KindMistake(map.WhereValue(key),
                    StrCat("`", key, "` has no expression for ", Name(kind),
                           " dtypes; expected one, `default:`, or `supports:` without them."));
}

std::shared_ptr<Program> CompileElementwise(const YamlMap& map, const Entry& entry, ComputeKind kind) {
  const std::vector<PlacedText> texts = TextsForKind(map, "compute", kind);
  if (!entry.inplace || entry.functional) CheckOutputs(entry, texts, map.WhereValue("compute"), "compute");
  std::shared_ptr<Program> program = NewProgram(entry, JoinTexts(texts));
  ComputeScope scope = ArgumentScope(entry, -1);
  scope.allows_random = entry.op_class == OpClass::kRandom;
  if (entry.op_class == OpClass::kFactory) AddCoordinates(&scope);
  CodeWriter writer(program.get(), kind, &program->main);
  for (size_t i = 0; i < texts.size(); ++i) writer.Write(texts[i], scope, MICA_OP_STORE, static_cast<int>(i));
  program->num_outputs = static_cast<int>(texts.size());
  return program;
}

int ClassArg(const Entry& entry, const char* key) {
  const auto it = entry.class_args.find(key);
  return it == entry.class_args.end() ? -1 : it->second;
}

void SetWindow(const Entry& entry, Program* program) {
  program->data_arg = FirstTensor(entry);
  program->kernel_arg = ClassArg(entry, "kernel");
  program->stride_arg = ClassArg(entry, "stride");
  program->pad_arg = ClassArg(entry, "pad");
  program->dilation_arg = ClassArg(entry, "dilation");
  program->output_arg = ClassArg(entry, "output_size");
  const int sized = program->kernel_arg >= 0 ? program->kernel_arg : program->output_arg;
  if (sized >= 0)
    program->num_windowed = std::max(1, entry.primary().schema.arguments[sized].type.unwrapped().list_size);
}

// A `reduce` mapping may stand under kinds, as `compute` does.
YAML::Node NodeForKind(const YamlMap& map, std::string_view key, ComputeKind kind) {
  const YAML::Node node = map.Get(key);
  if (!node.IsMap()) return node;
  bool by_kind = false;
  for (const auto& item : node) {
    const std::string name = item.first.Scalar();
    by_kind = by_kind || name == "default" || name == "bool" || name == "int" || name == "float" ||
              name == "complex";
  }
  if (!by_kind) return node;
  const YamlMap kinds(node, map.file(), StrCat("`", key, "`"),
                      {"bool", "int", "float", "complex", "default"});
  if (kinds.has(Name(kind))) return kinds.Get(Name(kind));
  if (kinds.has("default")) return kinds.Get("default");
  throw KindMistake(map.WhereValue(key),
                    StrCat("`", key, "` has nothing for ", Name(kind),
                           " dtypes; expected it, `default:`, or `supports:` without them."));
}

// `hot: true` is for what a backend can make one loop of.
void CheckHot(const YamlMap& map, const Entry& entry) {
  const Program* program = entry.programs[3].get();
  const bool one_loop = entry.op_class == OpClass::kPointwise || entry.op_class == OpClass::kFactory;
  if (!one_loop || !program)
    throw Mistake(map.WhereValue("hot"), StrCat("Operator ", entry.base_name,
                                                " is hot; expected class pointwise or factory "
                                                "and a program for floating dtypes."));
  for (const MicaInstruction& in : program->main)
    if (!CanBeHot(in.opcode) || (in.opcode == MICA_OP_COORD && in.aux != 0))
      throw Mistake(map.WhereValue("hot"),
                    StrCat("Operator ", entry.base_name, " is hot and calls ", kOpcodeInfo[in.opcode].name,
                           "; expected arithmetic, comparisons, `where`, sqrt and `i0` alone."));
}

std::shared_ptr<Program> CompileReduction(const YamlMap& map, const Entry& entry, ComputeKind kind) {
  const Reduce reduce = ReadReduce(map, NodeForKind(map, "reduce", kind));
  std::shared_ptr<Program> program = NewProgram(entry, JoinTexts(reduce.combine));
  const int element = FirstTensor(entry);
  program->input_args.push_back(element);
  program->num_states = static_cast<int>(reduce.states.size());
  if (entry.op_class == OpClass::kWindow) SetWindow(entry, program.get());
  const ComputeScope scope = ArgumentScope(entry, element);
  ReduceCompiler compiler(reduce, scope, kind, 0, program.get());
  compiler.Compile(program->num_states);
  CodeWriter finish(program.get(), kind, &program->finish);
  const ComputeScope states = compiler.StateScope();
  if (reduce.finish.empty()) {
    if (program->num_states != entry.num_outputs())
      throw Mistake(map.WhereValue("reduce"), StrCat("`reduce` has ", program->num_states,
                                                     " states and no `finish`; expected `finish` with ",
                                                     entry.num_outputs(), " expressions, one a result."));
    for (int s = 0; s < program->num_states; ++s)
      finish.builder().Store(MICA_OP_STORE, s, finish.builder().Source(MICA_OP_STATE, s));
  } else {
    CheckOutputs(entry, reduce.finish, map.WhereValue("reduce"), "finish");
    for (size_t i = 0; i < reduce.finish.size(); ++i)
      finish.Write(reduce.finish[i], states, MICA_OP_STORE, static_cast<int>(i));
  }
  program->num_outputs = entry.num_outputs();
  if (UsesIndex(program->main)) program->flags |= MICA_PROGRAM_USES_INDEX;
  return program;
}

struct Stage {
  Reduce reduce;
  std::vector<std::string> names;
};

std::vector<Stage> ReadStages(const YamlMap& map) {
  std::vector<Stage> stages;
  const YAML::Node node = map.Get("stages");
  if (!node.IsSequence())
    throw Mistake(map.WhereValue("stages"),
                  "`stages` is no list; expected `- {reduce: ..., name: ...}` items.");
  for (const YAML::Node& item : node) {
    const YamlMap stage(item, map.file(), "A stage", {"reduce", "name"});
    if (!stage.has("reduce") || !stage.has("name"))
      throw Mistake(stage.Where(), "A stage lacks `reduce` or `name`; expected both.");
    Stage s{ReadReduce(map, stage.Get("reduce")), {}};
    for (const PlacedText& name : stage.Texts("name")) s.names.push_back(name.text());
    const size_t results = s.reduce.finish.empty() ? s.reduce.states.size() : s.reduce.finish.size();
    if (s.names.size() != results)
      throw Mistake(stage.WhereValue("name"), StrCat("A stage has ", results, " results and ", s.names.size(),
                                                     " names; expected as many names."));
    stages.push_back(std::move(s));
  }
  return stages;
}

std::shared_ptr<Program> CompileRow(const YamlMap& map, const Entry& entry, ComputeKind kind) {
  const std::vector<Stage> stages = ReadStages(map);
  const int element = FirstTensor(entry);
  ComputeScope scope = ArgumentScope(entry, element);
  std::vector<std::shared_ptr<Program>> programs;
  int base = 0;
  for (const Stage& stage : stages) {
    std::shared_ptr<Program> program = NewProgram(entry, JoinTexts(stage.reduce.combine));
    const int width = static_cast<int>(std::max(stage.reduce.states.size(), stage.names.size()));
    program->input_args.push_back(element);
    program->first_state = base;
    program->num_states = base + width;
    program->num_outputs = entry.num_outputs();
    ReduceCompiler compiler(stage.reduce, scope, kind, base, program.get());
    compiler.Compile(program->num_states);
    CodeWriter finish(program.get(), kind, &program->finish);
    finish.WriteTogether(stage.reduce.finish, compiler.StateScope(), MICA_OP_STORE_STATE, base);
    for (size_t i = 0; i < stage.names.size(); ++i)
      scope.names[stage.names[i]] = SourceBinding(MICA_OP_STATE, base + static_cast<int>(i));
    if (UsesIndex(program->main)) program->flags |= MICA_PROGRAM_USES_INDEX;
    programs.push_back(std::move(program));
    base += width;
  }
  if (programs.empty())
    throw Mistake(map.WhereValue("stages"), "`stages` is empty; expected at least one reduce stage.");
  scope.names["x"] = SourceBinding(MICA_OP_ELEMENT, 0);
  scope.names["index"] = SourceBinding(MICA_OP_INDEX, 0);
  scope.names["count"] = SourceBinding(MICA_OP_COUNT, 0);
  const std::vector<PlacedText> texts = TextsForKind(map, "map", kind);
  Program* last = programs.back().get();
  CodeWriter writer(last, kind, &last->map);
  // Results after the first may be the stages' own values: (out, mean, rstd).
  CheckOutputs(entry, texts, map.WhereValue("map"), "map");
  for (size_t i = 0; i < texts.size(); ++i) writer.Write(texts[i], scope, MICA_OP_STORE, static_cast<int>(i));
  last->source = JoinTexts(texts);
  for (size_t i = programs.size() - 1; i-- > 0;) programs[i]->next = programs[i + 1];
  return programs[0];
}

// `index` and `keep` of gather and scatter: where elements come from or go to. They
// compute in int64 whatever the element is.
void CompilePlaces(const YamlMap& map, const Entry& entry, Program* program) {
  program->data_arg = FirstTensor(entry);
  program->source_arg = ClassArg(entry, "source");
  program->index_arg = ClassArg(entry, "index");
  program->bounds = entry.bounds;
  program->fill_arg = ClassArg(entry, "fill");
  if (entry.fixed_dim) program->dim = *entry.fixed_dim;
  if (const int replace = ClassArg(entry, "replace"); replace >= 0) {
    program->index_arg = replace;
    program->index_place = MICA_INDEX_REPLACE;
  }
  ComputeScope scope;
  const auto& arguments = entry.primary().schema.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const schema::Argument& a = arguments[i];
    const int number = static_cast<int>(i);
    if (a.type.is_list_of(TypeKind::kInt) || a.type.is_list_of(TypeKind::kSymInt)) {
      scope.names[a.name] = {Binding::Kind::kList, number, MICA_OP_LIST, false, ""};
      scope.names[a.name + ".before"] = {Binding::Kind::kList, number, MICA_OP_BEFORE, false, ""};
      scope.names[a.name + ".after"] = {Binding::Kind::kList, number, MICA_OP_AFTER, false, ""};
    } else if (a.type.is(TypeKind::kInt) || a.type.is(TypeKind::kSymInt)) {
      scope.names[a.name] = {Binding::Kind::kNumber, number, 0, false, ""};
    }
  }
  if (program->index_arg >= 0) scope.names["j"] = SourceBinding(MICA_OP_ELEMENT, 0);
  ComputeScope of_index = scope;
  of_index.names["i"] = SourceBinding(MICA_OP_COORD, 0);
  of_index.names["n"] = SourceBinding(MICA_OP_SIZE, 0);
  of_index.names["m"] = SourceBinding(MICA_OP_SIZE, 1);
  if (map.has("index"))
    CodeWriter(program, ComputeKind::kInt, &program->index)
        .Write(map.Placed("index"), of_index, MICA_OP_STORE, 0);
  AddCoordinates(&scope);
  if (map.has("keep"))
    CodeWriter(program, ComputeKind::kInt, &program->keep).Write(map.Placed("keep"), scope, MICA_OP_STORE, 0);
}

std::shared_ptr<Program> CompileGather(const YamlMap& map, const Entry& entry) {
  std::shared_ptr<Program> program =
      NewProgram(entry, map.has("index") ? map.Text("index") : map.Text("keep"));
  program->num_outputs = 1;
  CompilePlaces(map, entry, program.get());
  return program;
}

// `reduce: {element: e, combine: c}`: `a` is what stands there, `b` the element.
std::shared_ptr<Program> CompileScatter(const YamlMap& map, const Entry& entry, ComputeKind kind) {
  const YamlMap reduce(NodeForKind(map, "reduce", kind), map.file(), "`reduce`", {"element", "combine"});
  if (!reduce.has("combine"))
    throw Mistake(reduce.Where(), "`reduce` has no `combine`; expected what is written, over `a` and `b`.");
  std::shared_ptr<Program> program = NewProgram(entry, reduce.Text("combine"));
  program->num_outputs = 1;
  program->num_states = 1;
  CompilePlaces(map, entry, program.get());
  ComputeScope scope = ArgumentScope(entry, program->source_arg);
  if (program->source_arg >= 0) scope.names["x"] = SourceBinding(MICA_OP_ELEMENT, 0);
  CodeWriter writer(program.get(), kind, &program->main);
  Value element;
  if (reduce.has("element")) {
    const PlacedText text = reduce.Placed("element");
    element = ExpressionCompiler(text, scope, &writer.builder()).Compile(syntax::Parse(text));
  } else {
    element = writer.builder().Source(MICA_OP_ELEMENT, 0);
  }
  scope.names["a"] = SourceBinding(MICA_OP_STATE, 0);
  writer.WriteTogether({reduce.Placed("combine")}, scope, MICA_OP_STORE_STATE, 0, {{"b", element}});
  return program;
}

// The sum over what two tensors share is all that there is to say, unless there is a kernel
// `portable:` for the rest (addmm's self); layers ask for the equation of both.
void SetContraction(Entry* entry) {
  if (entry->equation.empty()) return;
  std::shared_ptr<Program> program = NewProgram(*entry, entry->equation);
  program->equation = entry->equation;
  program->num_outputs = 1;
  const auto& arguments = entry->primary().schema.arguments;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].type.is(TypeKind::kTensor)) program->input_args.push_back(static_cast<int32_t>(i));
  for (auto& p : entry->programs) p = program;
}

// A fold's list and how it is joined; there is nothing to compute.
void SetFold(Entry* entry) {
  if (entry->join < 0) return;
  std::shared_ptr<Program> program = NewProgram(*entry, entry->class_text);
  program->num_outputs = 1;
  program->join = entry->join;
  const auto& arguments = entry->primary().schema.arguments;
  for (size_t i = arguments.size(); i-- > 0;)
    if (arguments[i].type.is_tensor_list()) program->data_arg = static_cast<int>(i);
  for (auto& p : entry->programs) p = program;
}

}  // namespace

void ReadPrograms(const YamlMap& map, Entry* entry) {
  const auto require = [&](const char* key, const char* what) {
    if (!entry->portable.empty() || !entry->structured) return;
    throw Mistake(map.WhereKey("class"),
                  StrCat("Entry of ", entry->base_name, " has no `", key, "`; expected ", what,
                         ", or `portable:` with a hand-written kernel."));
  };
  switch (entry->op_class) {
    case OpClass::kRandom:  // computed in a floating dtype, whatever is filled
      if (map.has("compute")) {
        const std::shared_ptr<const Program> program = CompileElementwise(map, *entry, ComputeKind::kFloat);
        for (auto& p : entry->programs) p = program;
      }
      break;
    case OpClass::kPointwise:
    case OpClass::kFactory:
      if (map.has("compute"))
        CompileForKinds(map, entry, [&](ComputeKind kind) { return CompileElementwise(map, *entry, kind); });
      else if (entry->op_class == OpClass::kPointwise)
        require("compute", "the expression of an element");
      break;
    case OpClass::kReduction:
    case OpClass::kScan:
    case OpClass::kWindow:
      if (map.has("reduce"))
        CompileForKinds(map, entry, [&](ComputeKind kind) { return CompileReduction(map, *entry, kind); });
      else if (entry->op_class != OpClass::kWindow)
        require("reduce", "`{init: ..., combine: ...}`");
      break;
    case OpClass::kRow:
      if (map.has("stages") && map.has("map"))
        CompileForKinds(map, entry, [&](ComputeKind kind) { return CompileRow(map, *entry, kind); });
      else if (map.has("stages") || map.has("map"))
        throw Mistake(
            map.WhereKey(map.has("map") ? "map" : "stages"),
            StrCat("Row ", entry->base_name, " has only one of `stages` and `map`; expected both."));
      else
        require("stages` and `map", "the reduce stages and the expression of an element");
      break;
    case OpClass::kGather:
      if (entry->portable.empty() && entry->structured) {
        const std::shared_ptr<const Program> program = CompileGather(map, *entry);
        for (auto& p : entry->programs) p = program;
      }
      break;
    case OpClass::kScatter:
      if (map.has("reduce"))
        CompileForKinds(map, entry, [&](ComputeKind kind) { return CompileScatter(map, *entry, kind); });
      else
        require("reduce", "`{combine: ...}`");
      break;
    case OpClass::kFold:
      if (entry->portable.empty()) SetFold(entry);
      break;
    case OpClass::kContraction:
      SetContraction(entry);
      break;
    default:
      break;
  }
  if (entry->hot) CheckHot(map, *entry);
}

}  // namespace mica::codegen
