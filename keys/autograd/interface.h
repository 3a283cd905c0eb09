// The plugin's side of dispatcher/layers/autograd_interface.h.
#pragma once

#include "dispatcher/layers/autograd_interface.h"

namespace mica::autograd {

// The one table, which lives as long as the process.
AutogradInterface& Interface();

}  // namespace mica::autograd
