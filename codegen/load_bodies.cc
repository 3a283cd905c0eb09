// `body:` of composites and of definitions (`- def: schema`), checked once all
// operators are known.
#include "codegen/formula/formula.h"
#include "codegen/load.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::FunctionSchema;
using schema::Type;
using schema::TypeKind;

FormulaScope BodyScope(const FunctionSchema& schema) {
  FormulaScope scope;
  scope.is_body = true;
  scope.own = &schema;
  for (const schema::Argument& a : schema.arguments) scope.names[a.name] = a.type;
  if (schema.returns.size() == 1) {
    scope.expected = schema.returns[0].type;
    return scope;
  }
  scope.expected = Type(TypeKind::kTuple);
  for (const schema::Return& r : schema.returns) scope.expected.elements.push_back(r.type);
  return scope;
}

// An in-place operator's value is what it writes.
void CheckGivesSelf(const FormulaExpr& expr, const FunctionSchema& schema) {
  using Kind = FormulaExpr::Kind;
  switch (expr.kind) {
    case Kind::kIf:
      CheckGivesSelf(expr.operands[1], schema);
      [[fallthrough]];
    case Kind::kLet:
    case Kind::kCheck:
    case Kind::kDo:
      return CheckGivesSelf(expr.operands.back(), schema);
    default:
      if (expr.kind == Kind::kName && expr.text == schema.arguments[0].name) return;
      throw Mistake(expr.location,
                    StrCat("Body of the in-place operator ", schema.name,
                           " gives another value; expected `do ... in ", schema.arguments[0].name, "`."));
  }
}

void CheckBody(Entry* entry, const Model& model) {
  const FunctionSchema& schema = entry->primary().schema;
  auto tree = std::make_shared<FormulaTree>(ParseFormula(entry->body, model, BodyScope(schema)));
  if (!entry->functional) CheckGivesSelf(tree->root, schema);
  entry->formula = std::move(tree);
}

}  // namespace

std::unique_ptr<Helper> ReadDefinition(const YamlMap& map, const Model& model) {
  auto helper = std::make_unique<Helper>();
  const PlacedText text = map.Placed("def");
  helper->location = text.At(0);
  const schema::Source source{helper->location.file->name, helper->location.line, helper->location.column};
  absl::StatusOr<FunctionSchema> schema = schema::Parse(text.text(), source);
  if (!schema.ok())
    throw Mistake(helper->location,
                  "Definition's schema is wrong; expected a schema such as `scaled(Tensor self, "
                  "Scalar by) -> Tensor`.");
  helper->schema = *std::move(schema);
  for (const schema::Argument& a : helper->schema.arguments)
    if (CppParameterType(a.type).empty())
      throw Mistake(helper->location, StrCat("Type (", TypeText(a.type), ") of argument `", a.name,
                                             "` has no C++ form; expected a type of operators."));
  for (const Helper* other : model.Helpers(helper->schema.name))
    if (other->schema == helper->schema)
      throw Mistake(helper->location,
                    StrCat("Definition (", helper->schema.name, ") stands twice; expected it once."));
  if (!map.has("body"))
    throw Mistake(map.Where(), StrCat("Definition of ", helper->schema.name,
                                      " has no `body`; expected an expression over operators."));
  helper->body = map.Placed("body");
  helper->cpp_name = StrCat("::mica::composites::", CppIdentifier(helper->schema.name));
  return helper;
}

void CheckBodies(Model* model, std::vector<std::string>* mistakes) {
  const auto attempt = [&](auto&& step) {
    try {
      step();
    } catch (const Mistake& mistake) {
      mistakes->push_back(mistake.what());
    }
  };
  for (const auto& entry : model->entries)
    if (!entry->shape.text().empty())
      attempt([&] {
        entry->shape_formula = std::make_shared<FormulaTree>(
            ParseFormula(entry->shape, *model, BodyScope(entry->primary().schema)));
      });
  for (const auto& entry : model->entries)
    if (!entry->body.text().empty()) attempt([&] { CheckBody(entry.get(), *model); });
  for (const auto& entry : model->entries)
    for (const PlacedText& check : entry->checks)
      attempt([&] {
        entry->check_formulas.push_back(std::make_shared<FormulaTree>(
            ParseCheckFormula(check, *model, BodyScope(entry->primary().schema))));
      });
  for (const auto& helper : model->helpers)
    if (!helper->body.text().empty())
      attempt([&] {
        helper->formula =
            std::make_shared<FormulaTree>(ParseFormula(helper->body, *model, BodyScope(helper->schema)));
      });
}

}  // namespace mica::codegen
