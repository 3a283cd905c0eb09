// Reads native_functions.yaml: one Entry an item, completed and checked.
#include <algorithm>
#include <stdexcept>

#include "codegen/load.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::FunctionSchema;
using schema::TypeKind;

bool IsIdentifier(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// The parser of schemas says what it expected only where it is one thing.
std::string WithExpectation(std::string_view sentence) {
  if (sentence.find("expected") != std::string_view::npos) return std::string(sentence);
  if (sentence.ends_with(".")) sentence.remove_suffix(1);
  return StrCat(sentence, "; expected a schema such as `add(Tensor self, Tensor other) -> Tensor`.");
}

FunctionSchema ReadFunc(const YamlMap& map) {
  if (!map.has("func"))
    throw Mistake(map.Where(), "Entry has no `func`; expected the schema of the operator.");
  return ReadSchema(map.Placed("func"));
}

// The name of a C++ function of kernels/, or "".
std::string ReadCppName(const YamlMap& map, std::string_view key) {
  const std::string name = map.Text(key);
  if (map.has(key) && !IsIdentifier(name))
    throw Mistake(map.WhereValue(key),
                  StrCat("Value of `", key, "` (", name,
                         ") is no C++ name; expected the name of a function of kernels/", key, "/."));
  return name;
}

void ReadNames(const YamlMap& map, Entry* entry) {
  entry->python_module = map.Text("python_module");
  if (!map.has("names")) return;
  const YamlMap names(map.Get("names"), map.file(), "`names`", {"python", "method", "modules"});
  const auto read = [&](std::string_view key, std::vector<std::string>* out) {
    for (const PlacedText& name : names.Texts(key)) {
      if (!IsIdentifier(name.text()))
        throw Mistake(name.At(0), StrCat("Name (", name.text(),
                                         ") is no Python identifier; expected letters, digits and `_`."));
      if (std::find(out->begin(), out->end(), name.text()) != out->end())
        throw Mistake(name.At(0),
                      StrCat("Name (", name.text(), ") stands twice in `", key, "`; expected it once."));
      out->push_back(name.text());
    }
  };
  read("python", &entry->names.python);
  read("method", &entry->names.methods);
  if (!names.has("modules")) return;
  const YAML::Node modules = names.Get("modules");
  if (!modules.IsMap())
    throw Mistake(Place(modules, map.file()), "`modules` is no mapping; expected `module: name` pairs.");
  for (const auto& item : modules)
    entry->names.modules[item.first.Scalar()] =
        PlacedScalar(item.second, map.file(), "A module's name").text();
}

// What `variants:` may name.
struct Variant {
  std::string_view name;
  bool Entry::*field;
};
constexpr Variant kVariants[] = {{"function", &Entry::python_function},
                                 {"method", &Entry::python_method},
                                 {"inplace", &Entry::python_inplace},
                                 {"numbers", &Entry::python_numbers}};

void ReadVariants(const YamlMap& map, Entry* entry) {
  const FunctionSchema& schema = entry->primary().schema;
  const bool has_self = !schema.arguments.empty() && schema.arguments[0].name == "self" &&
                        schema.arguments[0].type.is(TypeKind::kTensor);
  entry->python_function = true;
  entry->python_method = has_self;
  if (!map.has("variants")) return;
  entry->python_function = entry->python_method = false;
  for (const PlacedText& item : map.Texts("variants")) {
    for (const std::string_view piece : Split(item.text(), ',')) {
      const auto* const variant = std::find_if(std::begin(kVariants), std::end(kVariants),
                                               [&](const Variant& v) { return v.name == Trim(piece); });
      if (variant == std::end(kVariants))
        throw Mistake(item.At(0), StrCat("Variant (", Trim(piece),
                                         ") is unknown; expected function, method, inplace or numbers."));
      entry->*variant->field = true;
    }
  }
  if (entry->python_inplace && !entry->inplace)
    throw Mistake(map.WhereValue("variants"),
                  StrCat("Variant (inplace) of ", entry->base_name,
                         " makes its in-place form a function; expected inplace among its forms."));
  if (entry->python_method && !has_self)
    throw Mistake(map.WhereValue("variants"),
                  StrCat("Variant (method) of ", entry->base_name,
                         " needs a first argument `Tensor self`; expected function alone."));
}

// `autocast: lower`, or `autocast: {cpu: float32, other: none}` where torch's lists for the
// CPU and for accelerators differ; what a map leaves out is the default.
void ReadAutocast(const YamlMap& map, Entry* entry) {
  static const std::vector<std::string> kPolicies = {"lower", "float32", "promote", "none", "parts", "whole"};
  const auto read = [](const YamlMap& from, const char* key, std::string* policy) {
    if (!from.has(key)) return;
    *policy = from.Text(key);
    if (std::find(kPolicies.begin(), kPolicies.end(), *policy) == kPolicies.end())
      throw Mistake(
          from.WhereValue(key),
          StrCat("Autocast policy (", *policy, ") is unknown; expected one of ", JoinNames(kPolicies), "."));
  };
  entry->autocast = entry->autocast_cpu = entry->op_class == OpClass::kDecompose ? "parts" : "none";
  if (!map.has("autocast")) return;
  if (map.Get("autocast").IsMap()) {
    const YamlMap policies(map.Get("autocast"), map.file(), "The autocast policies", {"cpu", "other"});
    read(policies, "cpu", &entry->autocast_cpu);
    read(policies, "other", &entry->autocast);
  } else {
    read(map, "autocast", &entry->autocast);
    entry->autocast_cpu = entry->autocast;
  }
}

bool HasGenericMeta(OpClass c) {
  switch (c) {
    case OpClass::kPointwise:
    case OpClass::kReduction:
    case OpClass::kScan:
    case OpClass::kRow:
    case OpClass::kRandom:
    case OpClass::kFactory:
      return true;
    default:
      return false;
  }
}

void Refuse(const YamlMap& map, std::string_view key, const Entry& entry, std::string_view why) {
  if (map.has(key))
    throw Mistake(map.WhereKey(key),
                  StrCat("Key (", key, ") has no place in class ", Name(entry.op_class), "; ", why));
}

// Checks come before the meta function, so there must be one.
void ReadChecks(const YamlMap& map, Entry* entry) {
  if (!entry->structured || entry->ns != "mica")
    throw Mistake(map.WhereKey("check"),
                  StrCat("Key (check) of ", entry->base_name,
                         " has no meta function to stand before; expected a structured operator of Mica, or "
                         "`check ... else ... in` within `body:` or `shape:`."));
  entry->checks = map.Texts("check");
}

// Which hand-written functions the class needs and which it cannot have.
void ReadFunctions(const YamlMap& map, Entry* entry) {
  entry->meta = ReadCppName(map, "meta");
  entry->portable = ReadCppName(map, "portable");
  entry->composite = ReadCppName(map, "composite");
  entry->view = ReadCppName(map, "view");
  entry->structured = map.Flag("structured", true) && entry->out && entry->op_class != OpClass::kDecompose;
  const Location where = map.WhereKey("class");
  if (map.has("shape")) entry->shape = map.Placed("shape");
  if (map.has("check")) ReadChecks(map, entry);
  if (entry->op_class != OpClass::kCustom) Refuse(map, "shape", *entry, "expected `class: custom`.");
  if (entry->op_class != OpClass::kDecompose) {
    Refuse(map, "composite", *entry, "expected `class: decompose`.");
    const bool has_parts = entry->structured && entry->ns == "mica" && map.has("portable");
    if (map.has("body") && has_parts)
      entry->body = map.Placed("body");
    else
      Refuse(map, "body", *entry,
             "expected `class: decompose`, or a structured operator of Mica with a `portable` kernel.");
  }
  if (entry->op_class == OpClass::kView) {
    if (entry->view.empty())
      throw Mistake(where, StrCat("View ", entry->base_name,
                                  " has no `view`; expected the name of a function of kernels/views/."));
    Refuse(map, "portable", *entry, "expected none, since the core makes views for every backend.");
    Refuse(map, "compute", *entry, "expected none, since a view computes no elements.");
    return;
  }
  Refuse(map, "view", *entry, "expected `class: view`.");
  if (entry->op_class == OpClass::kDecompose) {
    Refuse(map, "compute", *entry, "expected `body:` or `composite:`.");
    Refuse(map, "portable", *entry, "expected `body:` or `composite:`.");
    if (map.has("body") == map.has("composite"))
      throw Mistake(where, StrCat("Composite ", entry->base_name,
                                  map.has("body") ? " has both `body` and `composite`"
                                                  : " has neither `body` nor `composite`",
                                  "; expected one of the two."));
    if (map.has("body")) entry->body = map.Placed("body");
    return;
  }
  const bool has_shape = entry->ns != "mica" && map.has("shape");
  if (entry->structured && entry->meta.empty() && !has_shape) {
    if (!HasGenericMeta(entry->op_class))
      throw Mistake(where,
                    StrCat("Entry of ", entry->base_name, " has no `meta`, and class ", Name(entry->op_class),
                           " has no general one; expected ",
                           entry->ns == "mica" ? "`meta:` with the name of a function of kernels/meta/, or "
                                                 "`structured: false`."
                                               : "`shape:`, which says what the outputs are."));
    entry->meta = "Generic" + Capitalized(Name(entry->op_class));
    entry->generic_meta = true;
  }
}

// `arguments: {name: meaning}` of an entry, or of the table.
std::map<std::string, std::string> ReadArguments(const YAML::Node& node,
                                                 const std::shared_ptr<const SourceFile>& file) {
  if (!node.IsMap())
    throw Mistake(Place(node, file), "`arguments` is no mapping; expected `name: meaning` pairs.");
  std::map<std::string, std::string> arguments;
  for (const auto& item : node)
    arguments[item.first.Scalar()] =
        std::string(Trim(PlacedScalar(item.second, file, "An argument's meaning").text()));
  return arguments;
}

// Hints, docs and the rest that is taken as it is.
void ReadRest(const YamlMap& map, Entry* entry) {
  entry->hint = map.Text("hint");
  entry->hot = map.Flag("hot", false);
  entry->fills = map.Flag("fills", false);
  entry->batch_rule = map.Text("batch_rule");
  entry->differentiable = map.Flag("differentiable", true);
  entry->doc = std::string(Trim(map.Text("doc")));
  entry->example = std::string(Trim(map.Text("example")));
  if (map.has("arguments")) entry->arguments = ReadArguments(map.Get("arguments"), map.file());
  for (const auto& [name, meaning] : entry->arguments)
    if (entry->primary().schema.FindArgument(name) < 0)
      throw Mistake(map.WhereKey("arguments"),
                    StrCat("`arguments` describes ", name, ", which ", entry->base_name,
                           " does not take; expected arguments of its schema."));
  if (entry->doc.empty())
    throw Mistake(map.has("doc") ? map.WhereKey("doc") : map.Where(),
                  StrCat("Entry of ", entry->base_name, " has no `doc`; expected at least one sentence."));
}

}  // namespace

FunctionSchema ReadSchema(const PlacedText& text) {
  const Location begin = text.At(0);
  const auto fail = [&](const absl::Status& status) -> Mistake {
    // The parser's message has its place already: "file:line:column: sentence\n..."
    const std::string message(status.message().data(), status.message().size());
    const std::string place = StrCat(begin.file->name, ":");
    Location where = begin;
    std::string_view rest = message;
    if (rest.starts_with(place)) {
      rest.remove_prefix(place.size());
      where.line = std::atoi(rest.data());
      rest.remove_prefix(rest.find(':') + 1);
      where.column = std::atoi(rest.data());
      rest.remove_prefix(rest.find(':') + 1);
    }
    return Mistake(where, WithExpectation(Trim(rest.substr(0, rest.find('\n')))));
  };
  const schema::Source source{begin.file->name, begin.line, begin.column};
  absl::StatusOr<FunctionSchema> schema = schema::Parse(text.text(), source);
  if (!schema.ok()) throw fail(schema.status());
  const absl::Status valid = schema::Validate(*schema, source);
  if (!valid.ok()) throw fail(valid);
  return *std::move(schema);
}

const std::vector<std::string>& EntryKeys() {
  static const std::vector<std::string> keys = {
      "func",     "forms",      "out_name",  "variants",       "class", "compute",  "reduce",
      "stages",   "map",        "index",     "keep",           "dtype", "supports", "meta",
      "portable", "structured", "composite", "body",           "view",  "names",    "python_module",
      "hint",     "hot",        "autocast",  "differentiable", "doc",   "shape",    "batch_rule",
      "check",    "copy",       "earlier",   "example",        "fills", "arguments"};
  return keys;
}

bool Entry::has_program() const {
  return std::any_of(std::begin(programs), std::end(programs), [](const auto& p) { return p != nullptr; });
}

int Entry::num_outputs() const {
  int count = 0;
  for (const schema::Return& r : primary().schema.returns) count += r.type.is(TypeKind::kTensor);
  return count;
}

std::unique_ptr<Entry> ReadEntry(const YamlMap& map) {
  auto entry = std::make_unique<Entry>();
  entry->location = map.Where();
  FunctionSchema schema = ReadFunc(map);
  entry->func = map.Text("func");
  entry->ns = schema.ns.empty() ? "mica" : schema.ns;
  entry->base_name = schema.name;
  entry->overload = schema.overload;
  MakeForms(map, std::move(schema), entry.get());
  ReadClass(map, entry.get());
  ReadDType(map, entry.get());
  ReadSupports(map, entry.get());
  ReadFunctions(map, entry.get());
  ReadVariants(map, entry.get());
  ReadNames(map, entry.get());
  ReadAutocast(map, entry.get());
  ReadRest(map, entry.get());
  ReadPrograms(map, entry.get());
  return entry;
}

const Function* Model::Find(std::string_view name) const {
  const std::string key =
      name.find("::") == std::string_view::npos ? StrCat("mica::", name) : std::string(name);
  const auto it = by_name.find(key);
  return it == by_name.end() ? nullptr : it->second;
}

std::vector<const Function*> Model::Overloads(std::string_view base_name) const {
  const auto it = by_base.find(std::string(base_name));
  return it == by_base.end() ? std::vector<const Function*>() : it->second;
}

std::vector<const Helper*> Model::Helpers(std::string_view name) const {
  std::vector<const Helper*> found;
  for (const auto& helper : helpers)
    if (helper->schema.name == name) found.push_back(helper.get());
  return found;
}

std::vector<std::string> Model::BaseNames() const {
  std::vector<std::string> names;
  for (const auto& [name, functions] : by_base) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

const Entry* AddEntry(std::unique_ptr<Entry> entry, bool is_base, Model* model) {
  entry->is_base = is_base;
  for (const auto& f : entry->functions) {
    const auto [it, is_new] = model->by_name.emplace(f->full_name, f.get());
    if (!is_new)
      throw Mistake(entry->location,
                    StrCat("Operator (", f->full_name, ") stands twice, first at ",
                           it->second->entry->location.ToString(), "; expected another overload name",
                           f->form == OpForm::kOut ? " or an `out_name`." : "."));
  }
  for (const auto& f : entry->functions) model->by_base[f->schema.name].push_back(f.get());
  model->entries.push_back(std::move(entry));
  return model->entries.back().get();
}

// The file that an item `- include: path` names; it includes none itself.
std::shared_ptr<const SourceFile> Included(const YAML::Node& item,
                                           const std::shared_ptr<const SourceFile>& file) {
  const PlacedText path = YamlMap(item, file, "An include", {"include"}).Placed("include");
  try {
    return file->ReadBeside(path.text());
  } catch (const std::runtime_error& error) {
    throw Mistake(path.At(0), error.what());
  }
}

// The operators and definitions of one file and those that it includes; a view with `copy:` is followed by
// its copy.
template <typename Attempt>
void ReadFile(const std::shared_ptr<const SourceFile>& file, bool may_include, bool is_base, Model* model,
              Attempt&& attempt) {
  const YAML::Node root = LoadYaml(file);
  if (!root.IsSequence()) throw Mistake({file, 1, 1}, "File holds no list; expected `- func: ...` items.");
  for (const YAML::Node& item : root) {
    if (may_include && item.IsMap() && item["include"].IsDefined()) {
      attempt([&] { ReadFile(Included(item, file), false, is_base, model, attempt); });
      continue;
    }
    if (item.IsMap() && item["arguments"].IsDefined() && item.size() == 1) {
      attempt([&] { model->arguments.merge(ReadArguments(item["arguments"], file)); });
      continue;
    }
    if (item.IsMap() && item["def"].IsDefined()) {
      attempt([&] {
        const YamlMap map(item, file, "A definition", {"def", "body", "doc"});
        model->helpers.push_back(ReadDefinition(map, *model));
      });
      continue;
    }
    attempt([&] {
      const YamlMap map(item, file, "An entry", EntryKeys());
      const Entry* entry = AddEntry(ReadEntry(map), is_base, model);
      if (!map.has("copy")) return;
      const auto text = SourceFile::FromText(StrCat(file->name, ", the copy of ", entry->base_name),
                                             CopyOfView(*entry, map.Text("copy")));
      auto copy = ReadEntry(YamlMap(LoadYaml(text), text, "A view's copy", EntryKeys()));
      copy->arguments = entry->arguments;
      AddEntry(std::move(copy), is_base, model);
    });
  }
}

}  // namespace

std::unique_ptr<const Model> LoadModel(std::shared_ptr<const SourceFile> native,
                                       std::shared_ptr<const SourceFile> derivatives,
                                       std::shared_ptr<const SourceFile> base) {
  auto model = std::make_unique<Model>();
  std::vector<std::string> mistakes;
  const auto attempt = [&](auto&& step) {
    try {
      step();
    } catch (const Mistake& mistake) {
      mistakes.push_back(mistake.what());
    }
  };
  if (base) attempt([&] { ReadFile(base, true, true, model.get(), attempt); });
  attempt([&] { ReadFile(native, true, false, model.get(), attempt); });
  CheckBodies(model.get(), &mistakes);
  if (derivatives) attempt([&] { ReadDerivatives(derivatives, model.get(), &mistakes); });
  if (!mistakes.empty()) throw std::runtime_error(Join(mistakes, "\n"));
  return model;
}

}  // namespace mica::codegen
