// Type: what an argument or a result of an operator may be, as a small value tree.
//
// The grammar is that of torch's function schemas:
//   Tensor  Tensor(a!)?  Tensor?[]  SymInt[2]?  Dict(str, t)(a!)  (int, Tensor)[]
//   Future(t)  acme.Thing  __torch__.torch.classes.c10d.Work
// An alias annotation stands on the node that it follows in the text, so
// `Tensor(a!)[]` has it on the element and `int[](a!)` on the list. A lower-case
// name that is no built-in type is a type variable, as in torch; users that know
// no type variables (the code generator) refuse TypeKind::kVariable.
//
// Always holds: a parsed tree is at most kMaxTypeDepth deep, so recursion over it
// is safe; `elements` has the number of children that its kind asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::schema {

inline constexpr int kMaxTypeDepth = 64;
inline constexpr int kMaxListSize = 64;  // of `int[n]`

// X(enumerator, spelling)
#define MICA_FORALL_SIMPLE_TYPES(X)       \
  X(kTensor, "Tensor")                    \
  X(kInt, "int")                          \
  X(kSymInt, "SymInt")                    \
  X(kFloat, "float")                      \
  X(kSymFloat, "SymFloat")                \
  X(kComplex, "complex")                  \
  X(kBool, "bool")                        \
  X(kSymBool, "SymBool")                  \
  X(kScalar, "Scalar")                    \
  X(kStr, "str")                          \
  X(kDevice, "Device")                    \
  X(kScalarType, "ScalarType")            \
  X(kLayout, "Layout")                    \
  X(kMemoryFormat, "MemoryFormat")        \
  X(kGenerator, "Generator")              \
  X(kDimname, "Dimname")                  \
  X(kStorage, "Storage")                  \
  X(kStream, "Stream")                    \
  X(kQScheme, "QScheme")                  \
  X(kPyObject, "PyObject")                \
  X(kQuantizer, "Quantizer")              \
  X(kConstQuantizer, "ConstQuantizerPtr") \
  X(kCapsule, "Capsule")                  \
  X(kNone, "NoneType")                    \
  X(kAny, "Any")                          \
  X(kAnyClass, "AnyClassType")            \
  X(kAnyEnum, "AnyEnumType")

enum class TypeKind : uint8_t {
#define X(name, text) name,
  MICA_FORALL_SIMPLE_TYPES(X)
#undef X
  // With children or a name:
  kOptional,  // elements[0]
  kList,      // elements[0], list_size
  kTuple,     // elements
  kDict,      // elements[0] keys, elements[1] values
  kFuture,    // elements[0]
  kRRef,      // elements[0]
  kAwait,     // elements[0]
  kClass,     // name: "__torch__.torch.classes.c10d.Work"
  kVariable,  // name: "t", "tVal"
};

// `(a! -> b|c)`: the sets before and after the call; "*" is the wildcard. `after`
// is empty where it equals `before`.
struct Alias {
  std::vector<std::string> before;
  std::vector<std::string> after;
  bool is_write = false;

  bool operator==(const Alias&) const = default;
  // The sets that hold after the call.
  const std::vector<std::string>& sets_after() const { return after.empty() ? before : after; }
  bool is_wildcard() const;      // "*" is among the sets before
  std::string ToString() const;  // "(a! -> b)"
};

struct Type {
  TypeKind kind = TypeKind::kTensor;
  int32_t list_size = 0;  // n of `T[n]`; 0 says `T[]`
  std::string name;
  std::vector<Type> elements;
  std::optional<Alias> alias;

  Type() = default;
  explicit Type(TypeKind k) : kind(k) {}
  static Type OptionalOf(Type element);
  static Type ListOf(Type element, int32_t size = 0);

  bool operator==(const Type&) const;  // deep, alias annotations included

  bool is(TypeKind k) const { return kind == k; }
  bool is_optional() const { return kind == TypeKind::kOptional; }
  // The type under a `?`, else itself.
  const Type& unwrapped() const { return is_optional() ? elements[0] : *this; }
  bool is_list() const { return unwrapped().kind == TypeKind::kList; }  // `T[]` or `T[]?`
  // `T[]` or `T[]?` whose element, under its own `?`, is of kind `k`.
  bool is_list_of(TypeKind k) const;
  bool is_tensor() const { return unwrapped().kind == TypeKind::kTensor; }  // Tensor, Tensor?
  bool is_tensor_list() const { return is_list_of(TypeKind::kTensor); }     // also Tensor?[]
  // Of an object (kClass, or under a `?`): what its objects say that they are, "acme.Thing". Torch's spelling
  // __torch__.torch.classes.acme.Thing means the same. Empty for all other types.
  std::string_view object_name() const;
  // Contains Tensor at any depth.
  bool has_tensor() const;
  // The outermost alias annotation, looked for through `?` and lists; NULL if none.
  const Alias* find_alias() const;

  std::string ToString(bool with_alias = true) const;  // canonical: "Tensor(a!)[]"
};

// The spelling of a kind, for messages: "Tensor", "int", "list", "Dict".
std::string_view KindName(TypeKind kind);

}  // namespace mica::schema
