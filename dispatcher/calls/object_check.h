// Objects among a boxed call's arguments, held to the types that the schema names.
#pragma once

#include "dispatcher/tables/operator.h"

namespace mica {

// Throws a kType Error that names the argument, the operator, and the type of the object and the schema's.
// For operators of the flag kTakesObjects.
void CheckObjects(const Operator& op, const MicaValue* args, int64_t num_args);

}  // namespace mica
