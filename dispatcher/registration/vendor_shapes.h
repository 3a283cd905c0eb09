// The shape function of a plugin's operator as the operator's meta function.
//
// It runs on stand-ins of the meta device before every kernel of the operator, on every device, so that a
// kernel never meets shapes which the plugin's YAML refuses. Cost: a stand-in for each tensor, and the calls
// that the formula makes.
#pragma once

#include "dispatcher/tables/operator_spec.h"

namespace mica {

// A MetaFunction for specs with `shape`; throws what the shape function says of bad arguments.
void ShapesFromRecord(const OperatorSpec& spec, const MicaValue* args, MetaResult& result);

}  // namespace mica
