// The parser of both expression languages. Precedence, loosest first:
//   let x = e in e · a if c else b · or · and · not · == != < <= > >= is ·
//   | · ^ · & · << >> · + - · * / // % · unary - + ~ · ** · call, subscript
// Comparisons do not chain. Nesting deeper than 100 is a mistake, so that any
// text ends well.
#pragma once

#include "mica/codegen/diagnostics.h"
#include "mica/codegen/syntax/ast.h"

namespace mica::codegen::syntax {

// All of `text`; throws a Mistake at the first byte that does not fit.
Node Parse(const PlacedText& text);

}  // namespace mica::codegen::syntax
