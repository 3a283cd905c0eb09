// The parser of both expression languages. Precedence, loosest first:
//   let x = e in e · check c else "message" in e · do call if c in e · a if c else b ·
//   or · and · not · == != < <= > >= is · | · ^ · & · << >> · + - · * / // % ·
//   unary - + ~ · ** · call, subscript, slice · [e for x in list if c]
// Comparisons do not chain. Nesting deeper than 100 is a mistake, so that any
// text ends well.
#pragma once

#include "codegen/diagnostics.h"
#include "codegen/syntax/ast.h"

namespace mica::codegen::syntax {

// All of `text`; throws a Mistake at the first byte that does not fit.
Node Parse(const PlacedText& text);
// A `condition else "message"`: a kCheck whose rest is the integer 0.
Node ParseCheck(const PlacedText& text);
// The part of `text` from byte `begin` to byte `end`; places are those of the whole.
Node ParsePart(const PlacedText& text, size_t begin, size_t end);

}  // namespace mica::codegen::syntax
