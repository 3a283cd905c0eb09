// From an argument's default, as it is written in the schema, to its Value.
//
// The parser has checked that the literal fits the type, so this fails only for a
// device whose backend is not loaded. Numbers take the argument's type: `1` is an
// int, a float or a Scalar; for `int[2]` it is [1, 1].
#pragma once

#include "schema/schema.h"
#include "schema/value.h"

namespace mica::schema {

// The default of `argument`; throws a kValue Error that names an argument that has
// none.
Value Default(const Argument& argument);

}  // namespace mica::schema
