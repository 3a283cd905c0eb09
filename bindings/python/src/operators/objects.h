// Objects (MicaObject) in Python: mica.library.Object for those that plugins make, and Python's own objects
// of classes that mica.library.register_object_type names.
//
// Either way one object is one Python object while it lives. Everything here holds the GIL.
#pragma once

#include "bindings/python/src/module/object.h"
#include "schema/types.h"
#include "schema/value.h"

namespace mica::python {

// The value of an argument of a type of objects; empty where `o` is no object of a kind that schemas know. An
// object of another type than `type` is given, for the call to refuse by both names.
Value ToObjectValue(PyObject* o, const schema::Type& type);
PyObject* FromObject(MicaObject* object);  // takes a reference of its own

}  // namespace mica::python
