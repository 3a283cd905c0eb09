// registry_<i>.cc: the OperatorSpec and the Operator of every form, and the
// programs as static tables. registry_0.cc has the list of all of them.
#include <set>

#include "codegen/emit/emitters.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

// Prints the tables of one program, `name` being the MicaProgram's.
void EmitProgram(const std::string& name, const Program& program, Printer& p) {
  if (program.next) EmitProgram(name + "_next", *program.next, p);
  const std::pair<const char*, const Code*> codes[] = {
      {"main", &program.main},     {"init", &program.init}, {"combine", &program.combine},
      {"finish", &program.finish}, {"map", &program.map},   {"index", &program.index},
      {"keep", &program.keep}};
  std::string fields, places;
  for (const auto& [field, code] : codes) {
    if (code == &program.index) {
      places = std::move(fields);
      fields.clear();
    }
    if (code->empty()) {
      fields += "{nullptr, 0}, ";
      continue;
    }
    p.Print({{"name", name}, {"field", field}, {"code", InstructionTable(*code)}},
            "constexpr MicaInstruction $name$_$field$[] = {$code$};");
    StrAppend(&fields, "{", name, "_", field, ", ", code->size(), "}, ");
  }
  const auto table = [&](const char* field, const std::vector<int32_t>& numbers) {
    if (numbers.empty()) return std::string("nullptr");
    p.Print({{"name", name}, {"field", field}, {"numbers", Join(numbers, ", ")}},
            "constexpr int32_t $name$_$field$[] = {$numbers$};");
    return StrCat(name, "_", field);
  };
  std::swap(fields, places);
  const std::string lists = table("lists", program.list_args);
  const std::vector<int> numbers_of_places = program.Places();
  const std::string first = Join(std::vector<int>(numbers_of_places.begin(), numbers_of_places.begin() + 6),
                                 ", "),
                    last =
                        Join(std::vector<int>(numbers_of_places.begin() + 7, numbers_of_places.end()), ", ");
  const std::string dim = program.dim == MICA_NO_DIM ? "MICA_NO_DIM" : StrCat(program.dim);
  const std::string inputs = table("inputs", program.input_args);
  const std::string scalars = table("scalars", program.scalar_args);
  std::string constants = "nullptr";
  if (!program.constants.empty()) {
    std::string text;
    for (const MicaConstant& c : program.constants) {
      const std::string i = c.i == INT64_MIN ? "INT64_MIN" : StrCat("INT64_C(", c.i, ")");
      StrAppend(&text, "{", CppDouble(c.f), ", ", i, ", ", c.is_integer, ", 0}, ");
    }
    constants = name + "_constants";
    p.Print({{"constants", constants}, {"text", text}}, "const MicaConstant $constants$[] = {$text$};");
  }
  const std::string numbers =
      StrCat(program.input_args.size(), ", ", program.scalar_args.size(), ", ", program.num_outputs, ", ",
             program.num_states, ", ", program.num_registers, ", ", program.constants.size());
  p.Print(
      {{"name", name},
       {"class", CppString(program.class_name)},
       {"source", CppString(program.source)},
       {"hint", CppString(program.hint)},
       {"numbers", numbers},
       {"inputs", inputs},
       {"scalars", scalars},
       {"constants", constants},
       {"codes", fields},
       {"dims", StrCat(program.dims_arg)},
       {"keepdim", StrCat(program.keepdim_arg)},
       {"flags", StrCat(program.flags)},
       {"first", StrCat(program.first_state)},
       {"next", program.next ? StrCat("&", name, "_next") : "nullptr"},
       {"places", places},
       {"place_numbers", StrCat(first, ", ", dim, ", ", program.list_args.size(), ", ", lists, ", ", last)},
       {"join", StrCat(program.join)},
       {"equation", CppString(program.equation)}},
      "const MicaProgram $name$ = {sizeof(MicaProgram), $class$, $source$, $hint$, $numbers$,\n"
      "    $inputs$, $scalars$, $constants$, $codes$\n"
      "    $dims$, $keepdim$, $flags$, $first$, $next$,\n"
      "    $places$$place_numbers$, 0, $equation$, $join$, 0};");
}

// The C++ name of a kernels' function: "mica::meta::add".
std::string KernelName(const Entry& entry, const char* space, const std::string& name) {
  return StrCat("::", entry.ns, "::", space, "::", name);
}

std::string MetaText(const Entry& entry) {
  if (entry.meta.empty()) return "nullptr";
  const std::string meta = entry.generic_meta
                               ? StrCat("&::mica::meta::", entry.meta)
                               : StrCat("&MetaThunk<&", KernelName(entry, "meta", entry.meta), ">::Get");
  if (entry.checks.empty()) return meta;
  return StrCat("&CheckedMeta<&::mica::composites::Check_", entry.primary().struct_name, ", ", meta,
                ">::Get");
}

std::string GeneratedComposite(const Function& f) {
  return StrCat("CompositeKernel<&::mica::composites::", f.struct_name, ">::Get()");
}

// A composite's own function for the functional form; the generated ones for its
// other forms and for bodies.
std::string CompositeText(const Function& f) {
  const Entry& entry = *f.entry;
  if (HasParts(f)) return "nullptr";
  if (NeedsGeneratedComposite(f)) return GeneratedComposite(f);
  if (entry.op_class == OpClass::kDecompose)
    return StrCat("CompositeKernel<&", KernelName(entry, "composite", entry.composite), ">::Get()");
  return "nullptr";
}

// For structured entries a leaf of the out form's signature, in all three specs.
std::string PortableText(const Function& f) {
  const Entry& entry = *f.entry;
  if (entry.portable.empty() || (!entry.structured && &f != &entry.primary())) return "nullptr";
  return StrCat("PortableKernel<&", KernelName(entry, "portable", entry.portable), ">::Get()");
}

std::string Flags(const Entry& entry) {
  std::string text = entry.structured ? "kStructured" : "0";
  if (!entry.differentiable) text += " | kNotDifferentiable";
  const auto& returns = entry.primary().schema.returns;
  if (returns.size() == 1 && returns[0].type.is_tensor_list()) text += " | kReturnsTensorList";
  return text;
}

// The schemas that it had before, if any.
void EmitEarlier(const Function& f, Printer& p) {
  if (f.earlier.empty()) return;
  p.Print({{"struct", f.struct_name}}, "const SchemaGeneration earlier_$struct$[] = {");
  for (const Function::Earlier& e : f.earlier)
    p.Print({{"schema", CppString(e.schema_text)}, {"signature", e.signature}},
            "    {$schema$, &kAdapters<$signature$>},");
  p.Line("};");
}

// Prints what an entry says to layers, for all its forms; gives the members of their specs.
std::string EmitPolicies(const Entry& entry, bool has_formula, Printer& p) {
  std::string rows;
  for (const Policy& policy : PoliciesOf(entry, has_formula))
    StrAppend(&rows, "{", CppString(policy.name), ", ", CppString(policy.text), "}, ");
  if (rows.empty()) return ".policies = nullptr, .num_policies = 0";
  const std::string name = StrCat("policies_", entry.primary().struct_name);
  p.Print({{"name", name}, {"rows", rows}}, "constexpr OperatorPolicy $name$[] = {$rows$};");
  return StrCat(".policies = ", name, ", .num_policies = std::size(", name, ")");
}

void EmitSpec(const Function& f, const std::string& programs, const std::string& policies, Printer& p) {
  const Entry& entry = *f.entry;
  const auto quoted = [](const Function* other) {
    return other ? CppString(other->full_name) : std::string("nullptr");
  };
  EmitEarlier(f, p);
  p.Print(
      {{"struct", f.struct_name},
       {"name", CppString(f.full_name)},
       {"schema", CppString(f.schema_text)},
       {"doc", CppString(entry.doc)},
       {"file", CppString(entry.location.file->name)},
       {"line", StrCat(entry.location.line)},
       {"class", "k" + Capitalized(Name(entry.op_class))},
       {"form", "k" + Capitalized(Name(f.form))},
       {"rule", "k" + Capitalized(Name(entry.dtype_rule))},
       {"fixed", StrCat(entry.fixed_dtype)},
       {"dtype_arg", StrCat(entry.dtype_arg)},
       {"num_args", StrCat(f.arguments.size())},
       {"num_functional", StrCat(entry.primary().arguments.size())},
       {"num_outputs", StrCat(entry.num_outputs())},
       {"supports", StrCat(entry.supports)},
       {"flags", Flags(entry)},
       {"written", StrCat("UINT64_C(", f.written_args, ")")},
       {"programs", programs},
       {"dims", StrCat(entry.dims_arg)},
       {"keepdim", StrCat(entry.keepdim_arg)},
       {"none_dims", entry.none_is_all ? "1" : "0"},
       {"meta", MetaText(entry)},
       {"view", entry.op_class == OpClass::kView
                    ? StrCat("&ViewThunk<&", KernelName(entry, "views", entry.view), ">::Get")
                    : "nullptr"},
       {"composite", CompositeText(f)},
       {"parts", HasParts(f) ? GeneratedComposite(f) : "nullptr"},
       {"portable", PortableText(f)},
       {"signature", f.signature},
       {"earlier", f.earlier.empty() ? std::string("nullptr") : "earlier_" + f.struct_name},
       {"num_earlier", StrCat(f.earlier.size())},
       {"policies", policies},
       {"functional", quoted(entry.functional)},
       {"out", quoted(entry.out)}},
      "const OperatorSpec spec_$struct$ = {\n"
      "    .name = $name$,\n"
      "    .schema = $schema$,\n"
      "    .doc = $doc$,\n"
      "    .file = $file$, .line = $line$,\n"
      "    .op_class = OpClass::$class$, .form = OpForm::$form$, .dtype_rule = DTypeRule::$rule$,\n"
      "    .fixed_dtype = $fixed$, .dtype_arg = $dtype_arg$, .num_args = $num_args$,\n"
      "    .num_functional_args = $num_functional$, .num_outputs = $num_outputs$, .supports = $supports$,\n"
      "    .flags = $flags$, .written_args = $written$,\n"
      "    .programs = {$programs$},\n"
      "    .dims_arg = $dims$, .keepdim_arg = $keepdim$, .none_dims = $none_dims$,\n"
      "    .meta = $meta$,\n"
      "    .view = $view$,\n"
      "    .composite = $composite$,\n"
      "    .portable = $portable$, .parts = $parts$,\n"
      "    .adapters = &kAdapters<$signature$>,\n"
      "    .functional_name = $functional$, .out_name = $out$,\n"
      "    .generations = $earlier$, .num_generations = $num_earlier$,\n"
      "    $policies$};");
}

}  // namespace

// Equal programs are printed once.
std::string EmitPrograms(const Entry& entry, Printer& p) {
  std::vector<std::string> names;
  for (int k = 0; k < 5; ++k) {
    if (!entry.programs[k]) {
      names.push_back("nullptr");
      continue;
    }
    int first = 0;
    while (entry.programs[first] != entry.programs[k]) ++first;
    const std::string name = StrCat("program_", entry.primary().struct_name, "_", first);
    if (first == k) EmitProgram(name, *entry.programs[k], p);
    names.push_back("&" + name);
  }
  return Join(names, ", ");
}

bool HasParts(const Function& f) {
  const Entry& entry = *f.entry;
  return entry.op_class != OpClass::kDecompose && !entry.body.text().empty() && &f == &entry.primary();
}

bool NeedsGeneratedComposite(const Function& f) {
  if (HasParts(f)) return true;
  const Entry& entry = *f.entry;
  if (entry.op_class == OpClass::kDecompose) return &f != &entry.primary() || !entry.body.text().empty();
  return entry.functional && !entry.structured && f.form != OpForm::kFunctional;
}

std::set<std::string> SignaturesOf(const Function& f) {
  std::set<std::string> signatures = {f.signature};
  for (const Function::Earlier& e : f.earlier) signatures.insert(e.signature);
  return signatures;
}

void EmitRegistry(const Model& model, OutputFolder& out) {
  std::vector<Printer> specs(kRegistryShards), operators(kRegistryShards);
  std::vector<std::set<std::string>> signatures(kRegistryShards);
  Printer declared, listed;
  int count = 0;
  std::set<const Entry*> with_formula;
  for (const auto& derivative : model.derivatives) with_formula.insert(derivative->entry);
  for (const auto& entry : model.entries) {
    const int shard = ShardOf(entry->base_name, kRegistryShards);
    const std::string programs = EmitPrograms(*entry, specs[shard]);
    const std::string policies = EmitPolicies(*entry, with_formula.count(entry.get()) > 0, specs[shard]);
    for (const auto& f : entry->functions) {
      EmitSpec(*f, programs, policies, specs[shard]);
      signatures[shard].merge(SignaturesOf(*f));
      operators[shard].Print({{"name", f->struct_name}}, "constinit Operator $name$(&spec_$name$);");
      declared.Print({{"name", f->struct_name}}, "extern Operator $name$;");
      listed.Print({{"name", f->struct_name}}, "    &generated::$name$,");
      ++count;
    }
  }
  for (int i = 0; i < kRegistryShards; ++i) {
    Printer p;
    p.Line("#include <cmath>\n#include <iterator>\n");
    for (const char* header : {"dispatcher/calls/adapters.h", "dispatcher/tables/operator.h",
                               "dispatcher/tables/operator_spec.h", "mica/kernels/composite_declarations.h",
                               "mica/kernels/generated_composites.h", "mica/kernels/meta_declarations.h",
                               "mica/kernels/portable_declarations.h", "mica/kernels/view_declarations.h"})
      p.Print({{"header", header}}, "#include \"$header$\"");
    p.Line("#include <mica/program.h>");
    p.Line("\nnamespace mica {");
    for (const std::string& s : signatures[i])
      p.Print({{"signature", s}}, "extern template const SignatureAdapters kAdapters<$signature$>;");
    p.Line("\nnamespace {");
    p.Line(specs[i].text());
    p.Line("}  // namespace\n\nnamespace generated {");
    p.Line(operators[i].text());
    p.Line("}  // namespace generated\n}  // namespace mica");
    if (i == 0) {
      p.Line("\nnamespace mica::generated {");
      p.Line(declared.text());
      p.Line("}  // namespace mica::generated\n\nnamespace mica::internal {");
      p.Line("Operator* const kNativeOperators[] = {");
      p.Line(listed.text());
      p.Line("};");
      p.Print({{"count", StrCat(count)}}, "const int64_t kNativeOperatorCount = $count$;");
      p.Line("}  // namespace mica::internal");
    }
    out.Write(StrCat("registry_", i, ".cc"),
              GeneratedBanner(StrCat("Specs of the operators, part ", i, ".")) + p.text());
  }
}

}  // namespace mica::codegen
