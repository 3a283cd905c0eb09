// Named tuples for operators with several results: one type for each name and list of
// fields, whichever function gives it, made when it is first needed.
#pragma once

#include "bindings/python/src/module/object.h"

namespace mica::python {

// The type "return_types.<name>" with these fields, as a borrowed reference that stays.
PyTypeObject* NamedResultType(const char* name, const char* const* fields, int count);

// Writes the library's name into the types that are there.
void RenameResultTypes();

// Adds _result_type(name, fields) to the module.
void InitResultTypes(PyObject* module);

}  // namespace mica::python
