// Interception at the level of Python functions: __mica_function__ (torch's spelling
// __torch_function__ is accepted) and function modes.
//
// Every function, method and attribute of the package asks first whether somebody wants
// the call: the innermost function mode of this thread, then the arguments whose types
// define the method, subclasses before their bases, else left to right. The asking costs a
// load where no mode is active in the process and a comparison for each argument whose type
// is mica.Tensor; what other types say is kept in a small table.
//
// A type may spell each protocol in Mica's way or in torch's: the class nearest in the
// method resolution order that has either decides, Mica's first.
#pragma once

#include "bindings/python/src/tensor/tensor_object.h"

namespace mica::python {

// What is known of a type.
namespace traits {
inline constexpr uint8_t kTensor = 1;    // mica.Tensor or a subclass
inline constexpr uint8_t kFunction = 2;  // it wants calls of functions
inline constexpr uint8_t kDispatch = 4;  // a subclass that wants calls of operators
}  // namespace traits

struct TypeTraits {
  PyTypeObject* type;
  unsigned int version;  // never 0, which CPython gives a type that changes
  uint8_t flags;
};
inline constexpr size_t kTraitsTable = 256;
extern TypeTraits g_traits[kTraitsTable];
uint8_t TraitsSlow(PyTypeObject* type);
inline uint8_t TraitsOf(PyTypeObject* type) {
  const TypeTraits& t = g_traits[(reinterpret_cast<uintptr_t>(type) >> 4) % kTraitsTable];
  const bool known = t.type == type && t.version == type->tp_version_tag;
  return __builtin_expect(known, 1) ? t.flags : TraitsSlow(type);
}

// How many function modes are active in all threads.
extern int g_function_modes;

// Whether the object's type wants calls of functions.
inline bool WantsFunctions(PyObject* o) {
  PyTypeObject* const type = Py_TYPE(o);
  if (type == &TensorType || type == &PyLong_Type || type == &PyFloat_Type) return false;
  return (TraitsOf(type) & traits::kFunction) != 0;
}
// Whether it is a tensor whose type does not.
inline bool IsPlainTensor(PyObject* o) {
  PyTypeObject* const type = Py_TYPE(o);
  if (__builtin_expect(type == &TensorType, 1)) return true;
  return (TraitsOf(type) & (traits::kTensor | traits::kFunction)) == traits::kTensor;
}
// Whether somebody may want a call with these arguments: Override() then finds out.
inline bool MayOverride(PyObject* a) {
  return __builtin_expect(g_function_modes != 0, 0) || __builtin_expect(WantsFunctions(a), 0);
}
inline bool MayOverride(PyObject* a, PyObject* b) {
  return MayOverride(a) || __builtin_expect(WantsFunctions(b), 0);
}
// The same of a call's arguments and of the elements of lists among them; `self` may be NULL.
bool AnyWantsFunctions(PyObject* self, PyObject* const* args, Py_ssize_t count);
inline bool MayOverride(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return __builtin_expect(g_function_modes != 0, 0) || AnyWantsFunctions(self, args, count);
}

// What is called, as the interceptor gets it: an attribute of Tensor (`module` NULL), one
// side of a property of Tensor, or a function of `mica` or of a module of it.
struct Callee {
  const char* name;
  const char* module = nullptr;
  const char* side = nullptr;  // "__get__", "__set__" of a property
  bool slot = false;           // of a Python operator: NotImplemented goes back to Python
};

// The result of whoever wants the call, a new reference; NULL without an error where nobody
// does, so that it goes on. Throws what the interceptor raises, and a TypeError where all
// that were asked returned NotImplemented.
PyObject* Override(const Callee& callee, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                   PyObject* kwnames);
PyObject* OverrideObject(PyObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* OverrideTuple(const Callee& callee, PyObject* args, PyObject* kwargs);
inline PyObject* Override(const Callee& callee, PyObject* a) {
  return Override(callee, a, nullptr, 0, nullptr);
}
inline PyObject* Override(const Callee& callee, PyObject* a, PyObject* b) {
  return Override(callee, a, &b, 1, nullptr);
}

// A string as a template's argument.
template <size_t kSize>
struct Text {
  char text[kSize];
  constexpr Text(const char (&s)[kSize]) {  // NOLINT: a literal stands for it
    for (size_t i = 0; i < kSize; ++i) text[i] = s[i];
  }
};

// Written-by-hand functions as tables take them, each asking first.
template <Text kName, auto kFunction>
struct Asking {
  // METH_FASTCALL | METH_KEYWORDS of Tensor
  static PyObject* Method(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    if (__builtin_expect(MayOverride(self, args, nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0)), 0)) {
      PyObject* const result = Ask([&] { return Override({kName.text}, self, args, nargs, kwnames); });
      if (result || PyErr_Occurred()) return result;
    }
    return kFunction(self, args, nargs, kwnames);
  }
  // METH_NOARGS of Tensor, and slots of one operand
  static PyObject* Alone(PyObject* self, PyObject* unused) {
    if (MayOverride(self)) {
      PyObject* const result = Ask([&] { return Override({kName.text}, self); });
      if (result || PyErr_Occurred()) return result;
    }
    return kFunction(self, unused);
  }
  static PyObject* Slot(PyObject* self) {
    if (MayOverride(self)) {
      PyObject* const result = Ask([&] { return Override({kName.text}, self); });
      if (result || PyErr_Occurred()) return result;
    }
    return kFunction(self);
  }
  // A property's two sides
  static PyObject* Get(PyObject* self, void* closure) {
    if (MayOverride(self)) {
      PyObject* const result = Ask([&] { return Override({kName.text, nullptr, "__get__"}, self); });
      if (result || PyErr_Occurred()) return result;
    }
    return kFunction(self, closure);
  }
  static int Set(PyObject* self, PyObject* value, void* closure) {
    if (value && MayOverride(self, value)) {
      const Ref result(Ask([&] { return Override({kName.text, nullptr, "__set__"}, self, value); }));
      if (result || PyErr_Occurred()) return result ? 0 : -1;
    }
    return kFunction(self, value, closure);
  }
  // METH_VARARGS | METH_KEYWORDS of `mica`
  static PyObject* Function(PyObject* module, PyObject* args, PyObject* kwargs) {
    PyObject* const* items = reinterpret_cast<PyTupleObject*>(args)->ob_item;
    if (__builtin_expect(MayOverride(nullptr, items, PyTuple_GET_SIZE(args)), 0)) {
      PyObject* const result = Ask([&] { return OverrideTuple({kName.text, ""}, args, kwargs); });
      if (result || PyErr_Occurred()) return result;
    }
    return kFunction(module, args, kwargs);
  }

 private:
  template <typename F>
  static PyObject* Ask(F&& f) {
    return Guarded(f);
  }
};

// Whether the thread's subclasses or modes are asked at all; the guards restore it.
class DisableSubclasses {
 public:
  explicit DisableSubclasses(bool modes_too = false);
  ~DisableSubclasses();
  DisableSubclasses(const DisableSubclasses&) = delete;
  DisableSubclasses& operator=(const DisableSubclasses&) = delete;

 private:
  int saved_;
};

// A protocol's method of an object, bound; empty, without an error, where it has none.
enum class Protocol { kFunction, kDispatch };
Ref MethodOf(PyObject* o, Protocol protocol);

void InitOverride(PyObject* module);

}  // namespace mica::python
