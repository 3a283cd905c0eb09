// Reads derivatives.yaml: helpers, then one Derivative an item, each formula
// checked against the operators.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "codegen/formula/formula.h"
#include "codegen/load.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Type;
using schema::TypeKind;

void ReadHelper(const YAML::Node& node, const std::shared_ptr<const SourceFile>& file, Model* model) {
  const PlacedText text = PlacedScalar(node, file, "A helper");
  auto helper = std::make_unique<Helper>();
  helper->location = text.At(0);
  const Location& at = helper->location;
  absl::StatusOr<schema::FunctionSchema> schema = schema::Parse(text.text(), {});
  if (!schema.ok()) {
    // "line 1, column 5: sentence\n..."
    const std::string message(schema.status().message().data(), schema.status().message().size());
    const std::string_view first = std::string_view(message).substr(0, message.find('\n'));
    const size_t colon = first.find(": ");
    const std::string_view sentence = colon == std::string_view::npos ? first : first.substr(colon + 2);
    throw Mistake(at, StrCat("Helper's schema is wrong: ", sentence,
                             " Expected a schema such as `scale(Tensor grad, Scalar s) -> Tensor`."));
  }
  helper->schema = *std::move(schema);
  helper->cpp_name = StrCat("::mica::autograd::", helper->schema.name);
  for (const Helper* other : model->Helpers(helper->schema.name))
    if (other->schema == helper->schema)
      throw Mistake(at, StrCat("Helper (", helper->schema.name, ") stands twice; expected it once."));
  model->helpers.push_back(std::move(helper));
}

Entry* FindEntry(const Model& model, const PlacedText& op) {
  const Function* f = model.Find(op.text());
  if (!f) {
    std::vector<std::string> names;
    for (const auto& entry : model.entries)
      names.push_back(entry->primary().full_name.substr(entry->ns.size() + 2));
    throw Mistake(op.At(0), StrCat("Operator (", op.text(), ") is unknown", DidYouMean(op.text(), names),
                                   "; expected the functional form of an entry of native_functions.yaml."));
  }
  if (f != &f->entry->primary())
    throw Mistake(op.At(0), StrCat("Operator (", op.text(), ") is no functional form; expected (",
                                   f->entry->primary().schema.FullName(),
                                   "), from which the formulas of its other forms follow."));
  return const_cast<Entry*>(f->entry);
}

// Whether several results of an operator have gradients, each of which may be undefined: nobody used
// that result. A plugin's formulas get zeros from the host.
bool SomeMayLack(const Entry& entry, const std::vector<bool>& output_differentiability) {
  return entry.ns == "mica" &&
         std::count(output_differentiability.begin(), output_differentiability.end(), true) > 1;
}

// What formulas of `entry` may read.
FormulaScope ScopeOf(const Entry& entry, const std::vector<bool>& output_differentiability) {
  const Type tensor(TypeKind::kTensor);
  const Type gradient = SomeMayLack(entry, output_differentiability) ? Type::OptionalOf(tensor) : tensor;
  FormulaScope scope;
  const schema::FunctionSchema& schema = entry.primary().schema;
  for (const schema::Argument& a : schema.arguments) scope.names[a.name] = a.type;
  const auto plain = [](Type type) {
    type.alias.reset();
    for (Type& element : type.elements) element.alias.reset();
    return type;
  };
  const size_t results = schema.returns.size();
  scope.names["output_mask"] = Type::ListOf(Type(TypeKind::kBool));
  if (results == 1 && schema.returns[0].type.is_tensor_list()) {
    scope.names["grads"] = Type::ListOf(Type(TypeKind::kTensor));
    scope.names["result"] = plain(schema.returns[0].type);
    return scope;
  }
  scope.names["grad"] = gradient;
  if (results == 1) scope.names["result"] = plain(schema.returns[0].type);
  for (size_t i = 0; results > 1 && i < results; ++i) {
    scope.names[StrCat("result", i)] = plain(schema.returns[i].type);
    scope.names[StrCat("grad", i)] = gradient;
  }
  return scope;
}

std::vector<bool> ReadOutputs(const YamlMap& map, const Entry& entry) {
  const auto& returns = entry.primary().schema.returns;
  if (!map.has("output_differentiability")) return std::vector<bool>(returns.size(), true);
  std::vector<bool> flags;
  for (const PlacedText& text : map.Texts("output_differentiability")) {
    if (text.text() != "True" && text.text() != "False" && text.text() != "true" && text.text() != "false")
      throw Mistake(text.At(0),
                    StrCat("Value (", text.text(),
                           ") of `output_differentiability` is no bool; expected True or False."));
    flags.push_back(text.text()[0] == 'T' || text.text()[0] == 't');
  }
  if (flags.size() != returns.size())
    throw Mistake(map.WhereValue("output_differentiability"),
                  StrCat("`output_differentiability` has ", flags.size(), " values; expected ",
                         returns.size(), ", one a result of ", entry.base_name, "."));
  return flags;
}

// The name that torch's users know of the node: "MulBackward0".
std::string ReadNodeName(const YamlMap& map) {
  if (!map.has("node")) return "";
  const PlacedText text = map.Placed("node");
  const std::string& name = text.text();
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)); };
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_word))
    throw Mistake(text.At(0),
                  StrCat("Value (", name, ") of `node` is no name; expected one such as MulBackward0."));
  return name;
}

// grad, grad0, grad1 ...
bool IsGradient(const FormulaExpr& e) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return e.kind == FormulaExpr::Kind::kName && e.text.starts_with("grad") &&
         std::all_of(e.text.begin() + 4, e.text.end(), is_digit);
}

// The gradients that a formula asks for whether they are given, and those that it reads where a Tensor
// must be.
void CollectReads(const FormulaExpr& e, std::set<std::string>* asked, std::map<std::string, Location>* read) {
  const schema::FunctionSchema* callee = e.function ? &e.function->schema
                                         : e.helper ? &e.helper->schema
                                                    : nullptr;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    const FormulaExpr& operand = e.operands[i];
    CollectReads(operand, asked, read);
    if (!IsGradient(operand)) continue;
    if (e.kind == FormulaExpr::Kind::kIsNone)
      asked->insert(operand.text);
    else if (!callee || !callee->arguments[i].type.is_optional())
      read->emplace(operand.text, operand.location);
  }
}

// A gradient that may be undefined stays so: zeros in its place would be multiplied by what is infinite
// for the results that were not used (a gap between equal eigenvalues), and NaN is what comes of it.
void CheckAsked(const FormulaExpr& root, const Entry& entry) {
  std::set<std::string> asked;
  std::map<std::string, Location> read;
  CollectReads(root, &asked, &read);
  if (IsGradient(root)) read.emplace(root.text, root.location);
  for (const auto& [name, where] : read)
    if (!asked.count(name))
      throw Mistake(where, StrCat("Formula of ", entry.base_name, " reads (", name,
                                  "), which is undefined where that result is not used; expected it in the "
                                  "place of a `Tensor?`, or a question `",
                                  name, " is None`."));
}

GradientRule ReadRule(const Location& where, const std::string& names, const PlacedText& text,
                      const Entry& entry, const Model& model,
                      const std::vector<bool>& output_differentiability, std::vector<bool>* taken) {
  GradientRule rule;
  rule.text = text;
  for (const std::string_view piece : Split(names, ',')) {
    const std::string name(Trim(piece));
    const int number = ArgumentNumber(entry, name, where, "a gradient's key");
    const Type& type = entry.primary().schema.arguments[number].type;
    if (!type.has_tensor())
      throw Mistake(where,
                    StrCat("Argument (", name, ") of ", entry.base_name, " is a ", type.ToString(false),
                           ", which has no gradient; expected an argument that is a Tensor."));
    if ((*taken)[number])
      throw Mistake(where, StrCat("Gradient of argument (", name, ") of ", entry.base_name,
                                  " stands twice; expected it once."));
    (*taken)[number] = true;
    rule.inputs.push_back(number);
  }
  if (text.text() == "none") rule.kind = GradientRule::Kind::kNone;
  if (text.text() == "zeros") rule.kind = GradientRule::Kind::kZeros;
  if (rule.kind != GradientRule::Kind::kFormula) return rule;
  FormulaScope scope = ScopeOf(entry, output_differentiability);
  const auto gradient_type = [&](int number) {
    return entry.primary().schema.arguments[number].type.is_tensor_list()
               ? Type::ListOf(Type(TypeKind::kTensor))
               : Type(TypeKind::kTensor);
  };
  scope.expected = gradient_type(rule.inputs[0]);
  if (rule.inputs.size() > 1) {
    scope.expected = Type(TypeKind::kTuple);
    for (const int number : rule.inputs) scope.expected.elements.push_back(gradient_type(number));
  }
  rule.formula = std::make_shared<FormulaTree>(ParseFormula(text, model, scope));
  if (SomeMayLack(entry, output_differentiability)) CheckAsked(rule.formula->root, entry);
  return rule;
}

// Whether the gradient is one that backward refuses to compute.
bool Refuses(const GradientRule& rule) {
  return rule.formula && rule.formula->root.kind == FormulaExpr::Kind::kCall &&
         rule.formula->root.function->entry->base_name == "_no_derivative";
}

std::unique_ptr<Derivative> ReadDerivative(const YAML::Node& node,
                                           const std::shared_ptr<const SourceFile>& file, Model* model,
                                           std::vector<std::string>* mistakes) {
  if (!node.IsMap())
    throw Mistake(Place(node, file),
                  "A derivative is no mapping; expected `op: name` and a line for each input.");
  const auto fetch = [&](const char* key) {
    for (const auto& item : node)
      if (item.first.Scalar() == key) return item.second;
    return YAML::Node(YAML::NodeType::Undefined);
  };
  if (!fetch("op").IsDefined())
    throw Mistake(Place(node, file),
                  "A derivative has no `op`; expected the name of an operator's functional form.");
  Entry* entry = FindEntry(*model, PlacedScalar(fetch("op"), file, "Value of `op`"));
  auto derivative = std::make_unique<Derivative>();
  derivative->location = Place(node, file);
  derivative->entry = entry;
  if (entry->derivative)
    throw Mistake(derivative->location,
                  StrCat("Derivative of ", entry->primary().full_name, " stands twice, first at ",
                         entry->derivative->location.ToString(), "; expected it once."));
  for (const char* reserved : {"grad", "grads", "result", "output_mask", "tangent"}) {
    if (entry->primary().schema.FindArgument(reserved) < 0) continue;
    throw Mistake(derivative->location,
                  StrCat("Operator (", entry->primary().full_name, ") has an argument named `", reserved,
                         "`, which formulas know as something else; expected another name of the argument."));
  }
  std::vector<bool> taken(entry->primary().schema.arguments.size(), false);
  std::vector<std::string> keys = {"op", "output_differentiability", "node", "tangent", "part", "keeps"};
  const auto options = static_cast<std::ptrdiff_t>(keys.size());
  for (const auto& item : node) keys.push_back(item.first.Scalar());
  const YamlMap map(node, file, "A derivative", keys);
  derivative->output_differentiability = ReadOutputs(map, *entry);
  derivative->node = ReadNodeName(map);
  derivative->is_part = map.Flag("part", false);
  derivative->keeps_saved = map.Flag("keeps", false);
  if (derivative->is_part && (entry->op_class != OpClass::kView || entry->num_outputs() != 1))
    throw Mistake(map.Placed("part").At(0),
                  StrCat("Operator (", entry->primary().full_name,
                         ") says `part: true` and makes no view; expected it of views of one part alone."));
  for (const auto& item : node) {
    const std::string key = item.first.Scalar();
    if (std::find(keys.begin(), keys.begin() + options, key) != keys.begin() + options) continue;
    try {
      derivative->rules.push_back(ReadRule(Place(item.first, file), key,
                                           PlacedScalar(item.second, file, "A formula"), *entry, *model,
                                           derivative->output_differentiability, &taken));
    } catch (const Mistake& mistake) {
      mistakes->push_back(mistake.what());
    }
  }
  if (derivative->rules.empty() && mistakes->empty())
    throw Mistake(
        derivative->location,
        StrCat(
            "Derivative of ", entry->primary().full_name,
            " names no input; expected `argument: formula` lines, or `differentiable: false` in its entry."));
  if (!entry->differentiable && !std::ranges::all_of(derivative->rules, Refuses))
    throw Mistake(derivative->location,
                  StrCat("Operator (", entry->primary().full_name,
                         ") says `differentiable: false`; expected no derivative, or calls of _no_derivative "
                         "alone, with which its results require grad and backward refuses."));
  const std::optional<PlacedText> tangent =
      map.has("tangent") ? std::optional(map.Placed("tangent")) : std::nullopt;
  derivative->tangent = ReadTangentRule(tangent ? &*tangent : nullptr, *derivative, *model);
  entry->derivative = derivative.get();
  return derivative;
}

}  // namespace

void ReadDerivatives(const std::shared_ptr<const SourceFile>& file, Model* model,
                     std::vector<std::string>* mistakes) {
  const YAML::Node root = LoadYaml(file);
  if (root.IsNull()) return;
  const YamlMap map(root, file, "The file", {"helpers", "derivatives"});
  const auto each = [&](std::string_view key, auto&& read) {
    const YAML::Node list = map.Get(key);
    if (!list.IsDefined() || list.IsNull()) return;
    if (!list.IsSequence())
      throw Mistake(map.WhereValue(key), StrCat("`", key, "` is no list; expected `- ` items."));
    for (const YAML::Node& item : list) {
      try {
        read(item);
      } catch (const Mistake& mistake) {
        mistakes->push_back(mistake.what());
      }
    }
  };
  each("helpers", [&](const YAML::Node& item) { ReadHelper(item, file, model); });
  each("derivatives", [&](const YAML::Node& item) {
    model->derivatives.push_back(ReadDerivative(item, file, model, mistakes));
  });
}

}  // namespace mica::codegen
