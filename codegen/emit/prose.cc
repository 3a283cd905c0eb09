#include "codegen/emit/prose.h"

#include <algorithm>

#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Literal;
using schema::Type;
using schema::TypeKind;

std::string Named(const Entry& e, int argument) {
  return StrCat("`", e.primary().schema.arguments[argument].name, "`");
}

std::string ElementInWords(TypeKind kind) {
  switch (kind) {
    case TypeKind::kTensor:
      return "Tensor";
    case TypeKind::kInt:
    case TypeKind::kSymInt:
      return "int";
    case TypeKind::kFloat:
      return "float";
    case TypeKind::kBool:
      return "bool";
    case TypeKind::kScalar:
      return "number";
    case TypeKind::kStr:
      return "str";
    case TypeKind::kScalarType:
      return "dtype";
    case TypeKind::kLayout:
      return "layout";
    case TypeKind::kMemoryFormat:
      return "memory_format";
    case TypeKind::kDevice:
      return "device";
    case TypeKind::kGenerator:
      return "Generator";
    default:
      return "object";
  }
}

}  // namespace

std::string KindsText(uint16_t supports) {
  std::vector<std::string> kinds;
  if (supports & 1) kinds.push_back("bool");
  if (supports & 6) kinds.push_back("integers");
  if (supports & 8) kinds.push_back("floats");
  if (supports & 16) kinds.push_back("complex numbers");
  return Join(kinds, ", ");
}

std::string DTypeText(const Entry& e) {
  switch (e.dtype_rule) {
    case DTypeRule::kPromote:
      return "the promoted dtype of the arguments";
    case DTypeRule::kFloat:
      return "the promoted dtype; integers and bool give the default float dtype";
    case DTypeRule::kBool:
      return "bool";
    case DTypeRule::kSame:
      return "that of the first tensor";
    case DTypeRule::kIndex:
      return "int64";
    case DTypeRule::kReal:
      return "the promoted dtype; complex gives its real dtype";
    case DTypeRule::kComplex:
      return "the complex dtype over the promoted one";
    case DTypeRule::kAccumulate:
      return "that of the tensor; bool and integers give int64";
    case DTypeRule::kFixed:
      return "always the same";
    case DTypeRule::kArgument:
      return "that of the argument `dtype`";
  }
  __builtin_unreachable();
}

std::string ShapeText(const Entry& e) {
  switch (e.op_class) {
    case OpClass::kPointwise: {
      const auto& arguments = e.primary().schema.arguments;
      const auto is_tensor = [](const schema::Argument& a) { return a.type.is_tensor(); };
      if (std::count_if(arguments.begin(), arguments.end(), is_tensor) == 1)
        return StrCat("that of `", std::find_if(arguments.begin(), arguments.end(), is_tensor)->name, "`");
      return "the tensors broadcast together, and the result has their common shape";
    }
    case OpClass::kReduction:
      if (e.reduce_all) return "all dimensions go: a 0-d tensor";
      return StrCat("the dimensions", e.dims_arg >= 0 ? StrCat(" ", Named(e, e.dims_arg)) : "", " go",
                    e.keepdim_arg >= 0 ? StrCat(", or keep size 1 with ", Named(e, e.keepdim_arg)) : "");
    case OpClass::kScan:
    case OpClass::kRow:
    case OpClass::kRandom:
      return "that of the first tensor";
    case OpClass::kWindow:
      return "each spatial dimension becomes the number of windows that fit";
    case OpClass::kScatter:
      return "that of `self`";
    case OpClass::kView:
      return "a view: other sizes and strides over the same memory";
    case OpClass::kContraction:
      return StrCat("`", e.equation, "`, a letter a dimension");
    default:
      return "";
  }
}

std::string ArgumentText(const Model& model, const Entry& entry, const schema::Argument& argument) {
  const auto own = entry.arguments.find(argument.name);
  if (own != entry.arguments.end()) return own->second;
  auto common = model.arguments.end();
  if (argument.type.is_list()) common = model.arguments.find(argument.name + "[]");
  if (common == model.arguments.end()) common = model.arguments.find(argument.name);
  return common == model.arguments.end() ? "" : common->second;
}

std::string TypeInWords(const Type& type) {
  const Type& plain = type.unwrapped();
  if (!type.is_list()) return ElementInWords(plain.kind);
  const std::string element = ElementInWords(plain.elements[0].unwrapped().kind);
  if (plain.list_size == 1 && element == "int") return "int or tuple of int";
  if (plain.list_size > 1) return StrCat(element, " or tuple of ", plain.list_size, " ", element);
  return StrCat(type.is_tensor_list() ? "sequence of " : "tuple of ", element);
}

std::string DefaultInWords(const Literal& value) {
  if (value.kind == Literal::Kind::kList) {
    std::vector<std::string> items;
    for (const Literal& item : value.items) items.push_back(DefaultInWords(item));
    return StrCat("(", Join(items, ", "), items.size() == 1 ? "," : "", ")");
  }
  if (value.kind != Literal::Kind::kName) {
    const std::string text = value.ToString();
    return text.ends_with('.') ? text + "0" : text;
  }
  if (value.text == "Mean") return "1";
  return StrCat("mica.", value.text);
}

}  // namespace mica::codegen
