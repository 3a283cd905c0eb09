// Backends by name, as Python asks for them.
#pragma once

#include <string>
#include <vector>

#include "bindings/python/src/module/object.h"

namespace mica::python {

// Those beside the CPU that have a device, in the order in which a program means them: the private one
// (rename_privateuse1_backend), then as they were named. `open`: plugins that were found are opened.
std::vector<std::string> Accelerators(bool open);
// The backend that a device's number alone means, the first of them; plugins that were found are opened when
// no loaded one has a device. -1 without any.
int Accelerator();

}  // namespace mica::python
