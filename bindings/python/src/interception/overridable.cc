// _C._Overridable: a function of the package that is written in Python, behind the question
// whether a mode or a subclass wants the call (override.h).
//
// An object of it stands where the function would: it is called, binds as a method, has the
// function's attributes, pickles by its name, and inspect.signature follows __wrapped__. A
// call costs 10 ns more than the function's own.
#include "bindings/python/src/interception/override.h"
#include "bindings/python/src/module/init.h"

#include <structmember.h>

namespace mica::python {
namespace {

struct Overridable {
  PyObject_HEAD vectorcallfunc call;
  PyObject* function;
};
PyTypeObject OverridableType = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* FunctionIn(PyObject* o) { return reinterpret_cast<Overridable*>(o)->function; }

PyObject* Call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  if (__builtin_expect(MayOverride(nullptr, args, nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0)), 0)) {
    PyObject* const result = Guarded([&] { return OverrideObject(self, args, nargs, kwnames); });
    if (result || PyErr_Occurred()) return result;
  }
  return PyObject_Vectorcall(FunctionIn(self), args, nargsf, kwnames);
}

PyObject* New(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* function;
  if (!PyArg_ParseTuple(args, "O:_Overridable", &function)) return nullptr;
  auto* o = reinterpret_cast<Overridable*>(type->tp_alloc(type, 0));
  if (!o) return nullptr;
  o->call = Call;
  o->function = Py_NewRef(function);
  return reinterpret_cast<PyObject*>(o);
}
void Dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  Py_CLEAR(reinterpret_cast<Overridable*>(o)->function);
  Py_TYPE(o)->tp_free(o);
}
int Traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(FunctionIn(o));
  return 0;
}
int Clear(PyObject* o) {
  Py_CLEAR(reinterpret_cast<Overridable*>(o)->function);
  return 0;
}
PyObject* Bind(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}
// The function's own attributes, but for what only this object has.
PyObject* GetAttribute(PyObject* self, PyObject* name) {
  const std::string_view text = StrView(name);
  if (text == "__wrapped__") return Py_NewRef(FunctionIn(self));
  const bool own = text == "__class__" || text == "__call__" || text == "__get__" || text == "__reduce__" ||
                   text == "__reduce_ex__" || text == "__eq__" || text == "__hash__" || text == "__repr__" ||
                   text == "__setattr__" || text == "__getattribute__";
  return own ? PyObject_GenericGetAttr(self, name) : PyObject_GetAttr(FunctionIn(self), name);
}
int SetAttribute(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(FunctionIn(self), name, value);
}
PyObject* Repr(PyObject* self) { return PyObject_Repr(FunctionIn(self)); }
PyObject* Reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(FunctionIn(self), "__qualname__");
}

PyMethodDef kMethods[] = {{"__reduce__", Reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitOverridable(PyObject* module) {
  PyTypeObject& t = OverridableType;
  t.tp_name = "mica._C._Overridable";
  t.tp_basicsize = sizeof(Overridable);
  t.tp_flags =
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
  t.tp_vectorcall_offset = offsetof(Overridable, call);
  t.tp_call = PyVectorcall_Call;
  t.tp_new = New;
  t.tp_dealloc = Dealloc;
  t.tp_traverse = Traverse;
  t.tp_clear = Clear;
  t.tp_descr_get = Bind;
  t.tp_getattro = GetAttribute;
  t.tp_setattro = SetAttribute;
  t.tp_repr = Repr;
  t.tp_methods = kMethods;
  Check(PyType_Ready(&t));
  Check(PyModule_AddObjectRef(module, "_Overridable", reinterpret_cast<PyObject*>(&t)));
}

}  // namespace mica::python
