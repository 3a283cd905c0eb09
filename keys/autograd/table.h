// The table by which everybody else sees gradients: <mica/autograd.h>.
#pragma once

#include <mica/autograd.h>

namespace mica::autograd {

extern const MicaAutograd kTable;

}  // namespace mica::autograd
