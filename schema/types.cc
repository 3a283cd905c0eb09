// Queries on Type and its printing. See types.h.
#include "schema/types.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mica::schema {

bool Alias::is_wildcard() const { return std::find(before.begin(), before.end(), "*") != before.end(); }

std::string Alias::ToString() const {
  std::string text = absl::StrCat("(", absl::StrJoin(before, "|"), is_write ? "!" : "");
  if (!after.empty()) absl::StrAppend(&text, " -> ", absl::StrJoin(after, "|"));
  return text + ")";
}

std::string_view KindName(TypeKind kind) {
  switch (kind) {
#define X(name, text)  \
  case TypeKind::name: \
    return text;
    MICA_FORALL_SIMPLE_TYPES(X)
#undef X
    case TypeKind::kOptional:
      return "optional";
    case TypeKind::kList:
      return "list";
    case TypeKind::kTuple:
      return "tuple";
    case TypeKind::kDict:
      return "Dict";
    case TypeKind::kFuture:
      return "Future";
    case TypeKind::kRRef:
      return "RRef";
    case TypeKind::kAwait:
      return "Await";
    case TypeKind::kClass:
      return "class";
    case TypeKind::kVariable:
      return "type variable";
  }
  return "unknown";
}

Type Type::OptionalOf(Type element) {
  Type type(TypeKind::kOptional);
  type.elements.push_back(std::move(element));
  return type;
}

Type Type::ListOf(Type element, int32_t size) {
  Type type(TypeKind::kList);
  type.list_size = size;
  type.elements.push_back(std::move(element));
  return type;
}

// Written out: clang 14 crashes on a defaulted comparison of a recursive type.
bool Type::operator==(const Type& o) const {
  return kind == o.kind && list_size == o.list_size && name == o.name && alias == o.alias &&
         elements == o.elements;
}

bool Type::is_list_of(TypeKind k) const { return is_list() && unwrapped().elements[0].unwrapped().kind == k; }

std::string_view Type::object_name() const {
  if (!unwrapped().is(TypeKind::kClass)) return {};
  constexpr std::string_view kOfTorch = "__torch__.torch.classes.";
  const std::string_view spelt = unwrapped().name;
  return spelt.substr(spelt.starts_with(kOfTorch) ? kOfTorch.size() : 0);
}

bool Type::has_tensor() const {
  return kind == TypeKind::kTensor ||
         std::any_of(elements.begin(), elements.end(), [](const Type& t) { return t.has_tensor(); });
}

const Alias* Type::find_alias() const {
  for (const Type* type = this;; type = &type->elements[0]) {
    if (type->alias) return &*type->alias;
    if (type->kind != TypeKind::kOptional && type->kind != TypeKind::kList) return nullptr;
  }
}

namespace {

void Print(const Type& type, bool with_alias, std::string* out);

void PrintInside(const Type& type, bool with_alias, std::string* out) {
  *out += '(';
  for (size_t i = 0; i < type.elements.size(); ++i) {
    if (i > 0) *out += ", ";
    Print(type.elements[i], with_alias, out);
  }
  *out += ')';
}

void Print(const Type& type, bool with_alias, std::string* out) {
  switch (type.kind) {
    case TypeKind::kOptional:
      Print(type.elements[0], with_alias, out);
      *out += '?';
      break;
    case TypeKind::kList:
      Print(type.elements[0], with_alias, out);
      *out += '[';
      if (type.list_size > 0) absl::StrAppend(out, type.list_size);
      *out += ']';
      break;
    case TypeKind::kTuple:
      PrintInside(type, with_alias, out);
      break;
    case TypeKind::kDict:
    case TypeKind::kFuture:
    case TypeKind::kRRef:
    case TypeKind::kAwait:
      *out += KindName(type.kind);
      PrintInside(type, with_alias, out);
      break;
    case TypeKind::kClass:
    case TypeKind::kVariable:
      *out += type.name;
      break;
    default:
      *out += KindName(type.kind);
  }
  if (with_alias && type.alias) *out += type.alias->ToString();
}

}  // namespace

std::string Type::ToString(bool with_alias) const {
  std::string text;
  Print(*this, with_alias, &text);
  return text;
}

}  // namespace mica::schema
