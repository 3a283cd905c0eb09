// Between Python objects and boxed values, by the types of a schema. Used by
// mica.ops and by kernels written in Python, not by the generated functions.
#pragma once

#include <vector>

#include "bindings/python/src/module/object.h"
#include "dispatcher/tables/operator.h"
#include "schema/value.h"

namespace mica::python {

// The value of an argument of schema type `type`; throws a TypeError that names
// the argument.
Value ToValue(PyObject* o, const schema::Type& type, const std::string& argument);
// All arguments of a call, defaults filled in.
std::vector<Value> BindToSchema(const schema::FunctionSchema& schema, PyObject* args, PyObject* kwargs);
// A borrowed value as a Python object.
PyObject* FromValue(const MicaValue& v, const schema::Type& type);
// The same for a result: takes over what the value owns.
PyObject* TakeResult(MicaValue& v, const schema::Type& type);
// An operator called with owned values: what the Python call returns.
PyObject* CallBoxed(const Operator& op, const std::vector<Value>& arguments);
// The operator for each row of its arguments, given by place or by name; one that is a list
// where the schema has none is a column, the others are the same for each row. Gives a list
// of results, None where the operator writes its arguments. Where a function mode or a tensor's
// type wants calls of functions, it gives NotImplemented, or, unless they are to be asked
// (`ask`), calls without them.
PyObject* CallRows(const Operator& op, PyObject* args, PyObject* kwargs, bool ask);
// _with_gradients(params): those of a list that have a gradient, their gradients, and whether
// one of them is complex.
PyObject* WithGradients(PyObject* module, PyObject* params);
// CallBoxed through the operator's decomposition, which it must have (spec().composite).
PyObject* CallDecomposition(const Operator& op, const std::vector<Value>& arguments);
// A Python result as the operator's results, which their receiver owns.
void GiveResults(const schema::FunctionSchema& schema, PyObject* result, MicaValue* results);

}  // namespace mica::python
