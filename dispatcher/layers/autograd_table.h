// Where the core and the Python package find Autograd's table (<mica/autograd.h>): by its name, as anybody
// does.
#pragma once

#include <mica/autograd.h>

namespace mica {

// Opens the plugin on first use; where there is none, throws a kRuntime Error that says where it was looked
// for.
const MicaAutograd& AutogradTable();
// NULL where it is not loaded, disabled, or of another version; never opens a plugin.
const MicaAutograd* LoadedAutogradTable();

}  // namespace mica
