// Types and alias annotations. See parser.h.
#include <algorithm>
#include <array>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "schema/parser.h"

namespace mica::schema::internal {
namespace {

struct NamedKind {
  std::string_view name;
  TypeKind kind;
};
constexpr NamedKind kNamedKinds[] = {
#define X(kind, text) {text, TypeKind::kind},
    MICA_FORALL_SIMPLE_TYPES(X)
#undef X
        {"None", TypeKind::kNone},
    {"DeviceIndex", TypeKind::kInt},  // torch's own synonym
    {"Dict", TypeKind::kDict},
    {"Future", TypeKind::kFuture},
    {"RRef", TypeKind::kRRef},
    {"Await", TypeKind::kAwait},
};

// Edits (insert, delete, replace) from `a` to `b`; for short names.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::array<size_t, 32> row;
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// The type that a misspelt `name` most likely means, empty if none is near.
std::string_view NearestType(std::string_view name) {
  if (name.size() > 24) return {};
  std::string_view best;
  size_t best_distance = 3;
  for (const NamedKind& known : kNamedKinds) {
    const size_t distance =
        absl::EqualsIgnoreCase({known.name.data(), known.name.size()}, {name.data(), name.size()})
            ? 0
            : EditDistance(name, known.name);
    if (distance < best_distance && distance * 3 < known.name.size()) {
      best = known.name;
      best_distance = distance;
    }
  }
  return best;
}

// A lower-case name that only differs in case from a type is a mistake, any other
// is a type variable.
bool IsVariableName(std::string_view name) {
  if (!absl::ascii_islower(static_cast<unsigned char>(name[0]))) return false;
  return std::none_of(std::begin(kNamedKinds), std::end(kNamedKinds), [&](const NamedKind& known) {
    return absl::EqualsIgnoreCase({known.name.data(), known.name.size()}, {name.data(), name.size()});
  });
}

}  // namespace

bool Parser::ReadType(Type* type, int depth) {
  const Token begin = peek();
  if (depth > kMaxTypeDepth)
    return Fail(begin, absl::StrCat("The type is nested deeper than the limit (", kMaxTypeDepth, ")."));
  return ReadBase(type, depth) && ReadAlias(type) && ReadSuffixes(type, depth, begin);
}

bool Parser::ReadBase(Type* type, int depth) {
  if (Take('(')) {
    type->kind = TypeKind::kTuple;
    return ReadElements(type, depth, 0, SIZE_MAX);
  }
  if (!peek().is(TokenKind::kIdentifier)) return FailExpected("a type");
  return ReadNamed(type, depth);
}

bool Parser::ReadNamed(Type* type, int depth) {
  const Token token = lexer_.Next();
  if (peek().is('.')) {
    type->kind = TypeKind::kClass;
    type->name = token.text;
    while (Take('.')) {
      if (!peek().is(TokenKind::kIdentifier)) return FailExpected("the rest of the class's name");
      type->name += '.';
      type->name += lexer_.Next().text;
    }
    return true;
  }
  for (const NamedKind& known : kNamedKinds) {
    if (known.name != token.text) continue;
    type->kind = known.kind;
    if (known.kind < TypeKind::kOptional) return true;
    if (!Expect('(', "`(` and the element's type")) return false;
    const size_t count = known.kind == TypeKind::kDict ? 2 : 1;
    return ReadElements(type, depth, count, count);
  }
  if (!IsVariableName(token.text)) return FailUnknownType(token);
  type->kind = TypeKind::kVariable;
  type->name = token.text;
  return true;
}

bool Parser::FailUnknownType(const Token& token) {
  std::string message = absl::StrCat("Type (", std::string(token.text.substr(0, 60)), ") is unknown; ");
  const std::string nearest(NearestType(token.text));
  if (nearest.empty())
    message += "a type such as Tensor, int[], Scalar or ScalarType is expected.";
  else
    absl::StrAppend(&message, "did you mean (", nearest, ")?");
  return Fail(token, message);
}

bool Parser::ReadElements(Type* type, int depth, size_t min, size_t max) {
  if (min == 0 && Take(')')) return true;
  do {
    if (type->elements.size() == max) return FailExpected("`)`");
    if (!ReadType(&type->elements.emplace_back(), depth + 1)) return false;
  } while (Take(','));
  if (type->elements.size() < min) return FailExpected("`,` and the type of the values");
  return Expect(')', "`,` or `)` after a type");
}

// `[]`, `[n]` with an alias annotation, and `?`, any number of them. The tree must
// not grow past the limit here either, so each suffix counts as a level.
bool Parser::ReadSuffixes(Type* type, int depth, const Token& begin) {
  for (;; ++depth) {
    if (depth > kMaxTypeDepth)
      return Fail(begin, absl::StrCat("The type is nested deeper than the limit (", kMaxTypeDepth, ")."));
    const Token token = peek();
    if (Take('[')) {
      int32_t size = 0;
      if (!ReadListSize(&size)) return false;
      *type = Type::ListOf(std::move(*type), size);
      if (!ReadAlias(type)) return false;
    } else if (Take('?')) {
      if (type->is_optional()) return Fail(token, "The type is optional already; a second `?` says nothing.");
      *type = Type::OptionalOf(std::move(*type));
    } else {
      return true;
    }
  }
}

bool Parser::ReadListSize(int32_t* size) {
  if (Take(']')) return true;
  if (!peek().is(TokenKind::kNumber)) return FailExpected("`]` or the list's size");
  const Token token = lexer_.Next();
  const char* end = token.text.data() + token.text.size();
  const auto [at, error] = std::from_chars(token.text.data(), end, *size);
  if (error != std::errc() || at != end || *size < 1 || *size > kMaxListSize)
    return Fail(token, absl::StrCat("List size (", std::string(token.text.substr(0, 24)),
                                    ") is no whole number from 1 to ", kMaxListSize, "."));
  return Expect(']', "`]`");
}

bool Parser::ReadAlias(Type* type) {
  if (!Take('(')) return true;
  Alias& alias = type->alias.emplace();
  if (!ReadAliasSets(&alias.before)) return false;
  alias.is_write = Take('!');
  if (Take(TokenKind::kArrow)) {
    if (!ReadAliasSets(&alias.after)) return false;
    if (alias.after == alias.before) alias.after.clear();
  }
  return Expect(')', "`)` after the alias annotation");
}

bool Parser::ReadAliasSets(std::vector<std::string>* sets) {
  do {
    if (!peek().is(TokenKind::kIdentifier) && !peek().is('*'))
      return FailExpected("an alias set such as `a` or `*`");
    sets->emplace_back(lexer_.Next().text);
  } while (Take('|'));
  return true;
}

}  // namespace mica::schema::internal
