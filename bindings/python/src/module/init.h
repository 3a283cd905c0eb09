// What the files of the binding add to the module when it starts.
#pragma once

#include "bindings/python/src/module/object.h"

namespace mica::python {

void InitSize(PyObject* module);
void InitAutograd(PyObject* module);         // autograd.cc
void InitCustomFunctions(PyObject* module);  // custom_function.cc
void InitFrames(PyObject* module);           // frames.cc
void InitVmap(PyObject* module);             // vmap.cc
void InitFunctionalize(PyObject* module);    // functionalize.cc
void InitTrace(PyObject* module);            // trace.cc
void InitLibrary(PyObject* module);          // library.cc
void InitObjects(PyObject* module);          // objects.cc
void InitPlugins(PyObject* module);          // plugins.cc
void InitBackends(PyObject* module);
void InitDevices(PyObject* module);
void InitGraphs(PyObject* module);
void InitMemory(PyObject* module);
void InitAutocast(PyObject* module);     // autocast.cc
void InitModuleSlots(PyObject* module);  // module_slots.cc
void InitOverridable(PyObject* module);  // overridable.cc

}  // namespace mica::python
