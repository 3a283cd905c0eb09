// What the library calls itself where a program can see it: "mica", or "torch" while
// `import torch` gives Mica (mica.torch.install()).
//
// The reprs of dtypes, sizes and named results begin with it, and the static types that
// SetLibraryName() lists say that they live there.
#pragma once

#include "bindings/python/src/module/object.h"

namespace mica::python {

// "mica" or "torch"; lives for ever.
const char* LibraryName();

// Adds _library_name() and _set_library_name(name) to the module.
void InitLibraryName(PyObject* module);

}  // namespace mica::python
