// What an operator's entry says beside its schema, for Python: the equation of a contraction,
// the program of a class that runs from data. Layers written in Python derive rules from it.
#pragma once

#include "bindings/python/src/module/object.h"
#include "dispatcher/tables/operator.h"

namespace mica::python {

// "ij,jk->ik", or "".
PyObject* EquationOf(const Operator& op);
// (source, {"main": steps, "combine": ..., "finish": ...}, constants, inputs, scalars) of the
// program for floating dtypes; None where there is none, or where it has other parts than
// these (rows, gathers). A step is (opcode's name, register
// written, registers read, aux); inputs and scalars are numbers of arguments.
PyObject* ProgramOf(const Operator& op);

}  // namespace mica::python
