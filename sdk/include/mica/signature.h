// Whether a C++ function has the parameters and the result that a schema asks for,
// decided by the compiler.
//
//   MICA_KERNEL(registrar, &Neg, "mica::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)");
//
// registers the kernel under the schema's hash, so that a host whose operator has
// another schema leaves the kernel out; and does not compile when the function takes
// or returns something else (the rules stand at MicaFunction in abi.h). The text is
// the canonical one, as `mica.ops.mica.neg.out.schema` prints it, with its namespace.
// Do not use it for operators that are defined at run time: those are called boxed.
// `Registrar::Kernel` without a schema gives the function's signature, which the host compares with the
// operator's schema. Cost: none at run time. Included by plugin.h.
#pragma once

#include <cstdint>
#include <string_view>

#include <mica/abi.h>

namespace mica {
namespace plugin {

// One letter for each C type that crosses: t tensor, T list of tensors, i int64, j
// MicaOptInt, f double, g MicaOptFloat, b int32, s scalar, I F B S spans, d device,
// z string, G generator, O object, r results; 0 for any other type.
template <typename T>
inline constexpr char kLetter = 0;
template <>
inline constexpr char kLetter<MicaTensor*> = 't';
template <>
inline constexpr char kLetter<const MicaTensor*> = 't';
template <>
inline constexpr char kLetter<MicaTensorSpan> = 'T';
template <>
inline constexpr char kLetter<int64_t> = 'i';
template <>
inline constexpr char kLetter<MicaOptInt> = 'j';
template <>
inline constexpr char kLetter<double> = 'f';
template <>
inline constexpr char kLetter<MicaOptFloat> = 'g';
template <>
inline constexpr char kLetter<int32_t> = 'b';
template <>
inline constexpr char kLetter<MicaScalar> = 's';
template <>
inline constexpr char kLetter<MicaIntSpan> = 'I';
template <>
inline constexpr char kLetter<MicaFloatSpan> = 'F';
template <>
inline constexpr char kLetter<MicaBoolSpan> = 'B';
template <>
inline constexpr char kLetter<MicaScalarSpan> = 'S';
template <>
inline constexpr char kLetter<MicaDevice> = 'd';
template <>
inline constexpr char kLetter<MicaStr> = 'z';
template <>
inline constexpr char kLetter<MicaGenerator*> = 'G';
template <>
inline constexpr char kLetter<MicaObject*> = 'O';
template <>
inline constexpr char kLetter<MicaValue*> = 'r';

constexpr bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The letter of one type of the schema language: "Tensor(a!)", "int[2]?", "Scalar", "acme.Thing".
constexpr char LetterOf(std::string_view type) {
  size_t end = 0;
  while (end < type.size() && IsNameCharacter(type[end])) ++end;
  const std::string_view base = type.substr(0, end);
  const bool list = type.find('[') != std::string_view::npos;
  const bool optional = type.find('?') != std::string_view::npos;
  if (end < type.size() && type[end] == '.') return list ? 0 : 'O';
  if (base == "Tensor") return list ? 'T' : 't';
  if (base == "int" || base == "SymInt") return list ? 'I' : optional ? 'j' : 'i';
  if (base == "float") return list ? 'F' : optional ? 'g' : 'f';
  if (base == "bool") return list ? 'B' : optional ? 'j' : 'b';
  if (base == "Scalar") return list ? 'S' : 's';
  if (base == "ScalarType" || base == "Layout" || base == "MemoryFormat") return 'b';
  if (base == "Device") return 'd';
  if (base == "str") return 'z';
  if (base == "Generator") return 'G';
  return 0;
}

// The items of a comma-separated list between brackets, read one by one.
class SchemaItems {
 public:
  constexpr explicit SchemaItems(std::string_view list) : rest_(list) {}
  constexpr bool empty() const { return rest_.empty(); }
  // The next item, without the spaces around it.
  constexpr std::string_view Next() {
    size_t end = 0;
    int depth = 0;
    bool text = false;  // within the quotes of a default
    for (; end < rest_.size() && (text || depth > 0 || rest_[end] != ','); ++end) {
      if (rest_[end] == '"') text = !text;
      if (rest_[end] == '(' || rest_[end] == '[') ++depth;
      if (rest_[end] == ')' || rest_[end] == ']') --depth;
    }
    std::string_view item = rest_.substr(0, end);
    rest_ = end < rest_.size() ? rest_.substr(end + 1) : std::string_view();
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    return item;
  }

 private:
  std::string_view rest_;
};

// `text` up to the bracket that closes the one it begins with, without both.
constexpr std::string_view Bracketed(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return text.substr(1, i - 1);
  }
  return std::string_view();
}

constexpr std::string_view ArgumentsOf(std::string_view schema) {
  const size_t open = schema.find('(');
  return open == std::string_view::npos ? std::string_view() : Bracketed(schema.substr(open));
}
constexpr std::string_view NameOf(std::string_view schema) { return schema.substr(0, schema.find('(')); }

// The letter of the C result: v status alone, t, i, f, or r: a status, and room for
// results behind the arguments.
constexpr char ResultLetterOf(std::string_view schema) {
  const size_t arrow = schema.rfind("-> ");
  if (arrow == std::string_view::npos) return 0;
  // An annotation with an arrow in it, "Tensor(a -> *)", stands in arguments alone.
  const std::string_view result = schema.substr(arrow + 3);
  bool fresh = false;
  int count = 0;
  SchemaItems items(!result.empty() && result.front() == '(' ? Bracketed(result) : result);
  while (!items.empty()) {
    const std::string_view item = items.Next();
    ++count;
    if (item.find('!') == std::string_view::npos) fresh = true;
  }
  if (!fresh) return 'v';
  const char letter = LetterOf(result);
  if (count != 1 || result.front() == '(') return 'r';
  if (letter == 'b') return result.substr(0, 4) == "bool" ? 'i' : 'r';
  return letter == 't' || letter == 'i' || letter == 'f' ? letter : 'r';
}

template <typename R>
inline constexpr char kResultLetter = 0;
template <>
inline constexpr char kResultLetter<void> = 'v';
template <>
inline constexpr char kResultLetter<MicaTensor*> = 't';
template <>
inline constexpr char kResultLetter<int64_t> = 'i';
template <>
inline constexpr char kResultLetter<double> = 'f';

// The first argument (from 0) whose type differs from the schema's; the number of
// arguments when it is the result that differs; -1 when all fits.
template <typename R, typename... A>
constexpr int MismatchOf(std::string_view schema, R (*)(const MicaCall*, A...)) {
  constexpr char kGiven[] = {kLetter<A>..., '\0'};
  const char result = ResultLetterOf(schema);
  SchemaItems items(ArgumentsOf(schema));
  int i = 0;
  const int given = static_cast<int>(sizeof...(A));
  while (!items.empty()) {
    const std::string_view item = items.Next();
    if (item == "*") continue;
    if (i >= given || kGiven[i] == 0 || kGiven[i] != LetterOf(item)) return i;
    ++i;
  }
  if (result == 'r') {
    if (i >= given || kGiven[i] != 'r') return i;
    return i + 1 == given && kResultLetter<R> == 'v' ? -1 : i + 1;
  }
  return i == given && kResultLetter<R> == result ? -1 : i;
}

// What a kernel record says of a function: "ttst>v"; '?' for a type that no schema asks for.
template <typename R, typename... A>
struct SignatureText {
  static constexpr char Said(char letter) { return letter ? letter : '?'; }
  static constexpr char text[] = {Said(kLetter<A>)..., '>', Said(kResultLetter<R>), '\0'};
};
template <typename R, typename... A>
constexpr const char* SignatureOf(R (*)(const MicaCall*, A...)) {
  return SignatureText<R, A...>::text;
}

// FNV-1a of 64 bits over the canonical text.
constexpr uint64_t SchemaHash(std::string_view text) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * UINT64_C(0x100000001b3);
  return h;
}

}  // namespace plugin
}  // namespace mica

#define MICA_KERNEL(registrar, function, schema)                                                           \
  do {                                                                                                     \
    static_assert(::mica::plugin::MismatchOf(schema, function) < 0,                                        \
                  "The kernel's C++ function does not have the parameters and the result of its schema."); \
    (registrar).Kernel<function>(std::string(::mica::plugin::NameOf(schema)).c_str(), __FILE__, __LINE__,  \
                                 ::mica::plugin::SchemaHash(schema));                                      \
  } while (false)
