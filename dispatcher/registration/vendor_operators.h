// Operators with a gradient that a plugin brings over the C ABI
// (sdk/include/mica/operators.h): the host's side of that extension.
#pragma once

#include <mica/operators.h>

namespace mica {

// The table that MicaHost::extension gives for MICA_OPERATORS_EXTENSION.
const MicaOperatorsExtension* OperatorsExtension();

}  // namespace mica
