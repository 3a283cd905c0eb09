// The host's side of <mica/layers.h>: the extension "mica.layers" of the host table.
#pragma once

#include <mica/layers.h>
#include "dispatcher/tables/operator.h"

namespace mica {

const MicaLayers* LayersExtension();
// What an operator's entry says, made on first use and kept for good.
const MicaOperatorInfo& InfoOf(const Operator& op);

}  // namespace mica
