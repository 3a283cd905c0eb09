// mica.Tensor's allocation, deallocation and identity.
//
// Note [Free list of tensor objects]
// Making a Python object with the garbage collector's header through the general
// allocator costs more than the rest of a small operator's binding. Blocks of
// exact mica.Tensor objects are therefore kept, up to kMaxFree of them, and an
// object is handed to the collector only when it may refer to Python objects: when
// it gets a __dict__, and when its autograd state may (Track).
#include "bindings/python/src/tensor/tensor_object.h"

#include <structmember.h>

#include "bindings/python/src/module/collector.h"
#include "bindings/python/src/module/errors.h"
#include "dispatcher/layers/autograd_table.h"

namespace mica::python {

std::atomic<int> g_without_gil{0};

namespace {

constexpr int kMaxFree = 1024;
PyTensor* g_free[kMaxFree];
int g_free_count = 0;

PyTensor* AsTensor(PyObject* o) { return reinterpret_cast<PyTensor*>(o); }

PyTensor* NewExact() {
  if (g_free_count > 0) {
    PyTensor* t = g_free[--g_free_count];
    PyObject_Init(reinterpret_cast<PyObject*>(t), &TensorType);
    return t;
  }
  auto* t = PyObject_GC_New(PyTensor, &TensorType);
  if (!t) throw PythonErrorIsSet();
  new (&t->tensor) Tensor();
  t->dict = nullptr;
  t->weak_references = nullptr;
  return t;
}

// The impl's object when the impl keeps it alive: the caller gets that reference,
// and the object takes one on the impl again.
PyObject* TakeBackOwnership(Tensor&& t) {
  TensorImpl* impl = t.release();
  auto* object = static_cast<PyObject*>(impl->pyobject);
  impl->set_flag(tensor_flags::kPythonOwns, false);
  return object;
}

// Whether C++ holds the object's tensor, so that the object would live on.
bool HeldInCpp(const PyTensor* self) {
  TensorImpl* impl = self->tensor.impl();
  if (!impl || impl->pyobject != self || impl->has_flag(tensor_flags::kPythonOwns)) return false;
  return impl->refs().load(std::memory_order_acquire) > 1;
}

// Keeps a dying object whose tensor lives on in C++: the impl owns the object
// from now on. True if it did. An object that cannot be told from a fresh one
// (exact type, no __dict__) is let go instead.
bool Resurrect(PyTensor* self) {
  if (!HeldInCpp(self)) return false;
  TensorImpl* impl = self->tensor.impl();
  if (Py_TYPE(self) == &TensorType && !self->dict && !self->weak_references) return false;
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(self), 1);
  impl->set_flag(tensor_flags::kPythonOwns, true);
  // The object's own count on the impl goes; `tensor` stays as a plain pointer.
  impl->Release();
  return true;
}

void ReleaseTensor(PyTensor* self) {
  TensorImpl* impl = self->tensor.release();
  if (!impl) return;
  if (impl->pyobject == self) impl->pyobject = nullptr;
  impl->Release();
}

void TensorDealloc(PyObject* o) {
  PyTensor* self = AsTensor(o);
  if (Resurrect(self)) return;
  PyObject_GC_UnTrack(o);
  if (self->weak_references) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  ReleaseTensor(self);
  if (g_free_count < kMaxFree) {
    g_free[g_free_count++] = self;
  } else {
    PyObject_GC_Del(o);
  }
}

// Clears the __slots__ that a Python class added.
void ClearSlots(PyTypeObject* type, PyObject* o) {
  const Py_ssize_t n = Py_SIZE(type);
  auto* member = reinterpret_cast<PyMemberDef*>(reinterpret_cast<char*>(type) + Py_TYPE(type)->tp_basicsize);
  for (Py_ssize_t i = 0; i < n; ++i, ++member) {
    if (member->type != T_OBJECT_EX || (member->flags & READONLY)) continue;
    auto* slot = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + member->offset);
    Py_CLEAR(*slot);
  }
}

// What Python's own subtype_dealloc does, with resurrection first.
void SubclassDealloc(PyObject* o) {
  PyTensor* self = AsTensor(o);
  PyTypeObject* type = Py_TYPE(o);
  if (Resurrect(self)) return;
  if (type->tp_finalize) {
    if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
    if (PyObject_CallFinalizerFromDealloc(o) < 0) return;
  }
  PyObject_GC_UnTrack(o);
  if (self->weak_references) PyObject_ClearWeakRefs(o);
  for (PyTypeObject* base = type; base->tp_dealloc == SubclassDealloc; base = base->tp_base) {
    if (Py_SIZE(base)) ClearSlots(base, o);
  }
  Py_CLEAR(self->dict);
  ReleaseTensor(self);
  type->tp_free(o);
  Py_DECREF(type);
}

// Visits the __slots__ that a Python class added.
int VisitSlots(PyTypeObject* type, PyObject* o, visitproc visit, void* arg) {
  const Py_ssize_t n = Py_SIZE(type);
  auto* member = reinterpret_cast<PyMemberDef*>(reinterpret_cast<char*>(type) + Py_TYPE(type)->tp_basicsize);
  for (Py_ssize_t i = 0; i < n; ++i, ++member) {
    if (member->type != T_OBJECT_EX) continue;
    Py_VISIT(*reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + member->offset));
  }
  return 0;
}

// Note [Collector and C++ references]
// The garbage collector sees no references from C++. An object in garbage that C++ holds
// would be cleared, and then live on empty. So such an object visits nothing, which makes
// it a root of the collection, and is not cleared; nor is one that the same collection has
// resurrected, by clearing what held it.
// A tensor that nobody else holds visits the Python objects in its autograd state (hooks,
// the context of a custom function), and so does the object of a node. Of the graph behind
// it no more is looked at than the node that the tensor alone holds, as in torch.
// The collector looks twice, and must see the same both times. It holds the GIL all the
// while, so that only threads that run our code without the GIL change counts and graphs
// meanwhile: while there are any, all tensors and nodes are roots.
bool IsCleared(PyObject* o) {
  const TensorImpl* impl = AsTensor(o)->tensor.impl();
  return !HeldInCpp(AsTensor(o)) &&
         !(impl && impl->pyobject == o && impl->has_flag(tensor_flags::kPythonOwns));
}
bool IsRoot(PyObject* o) {
  return HeldInCpp(AsTensor(o)) || g_without_gil.load(std::memory_order_relaxed) != 0;
}
// The autograd plugin, if the tensor has a state of it.
const MicaAutograd* AutogradOf(PyObject* o) {
  const TensorImpl* impl = AsTensor(o)->tensor.impl();
  return impl && impl->extra && impl->extra->layer_state ? LoadedAutogradTable() : nullptr;
}
int TensorTraverse(PyObject* o, visitproc visit, void* arg) {
  if (IsRoot(o)) return 0;
  Py_VISIT(AsTensor(o)->dict);
  const MicaAutograd* const autograd = AutogradOf(o);
  if (!autograd) return 0;
  return VisitHeldObjects([&](void* to, auto f) { autograd->visit_held(Unwrap(o).impl(), to, f); }, visit,
                          arg);
}
int SubclassTraverse(PyObject* o, visitproc visit, void* arg) {
  if (IsRoot(o)) return 0;
  for (PyTypeObject* base = Py_TYPE(o); base->tp_dealloc == SubclassDealloc; base = base->tp_base) {
    if (!Py_SIZE(base)) continue;
    if (const int stop = VisitSlots(base, o, visit, arg)) return stop;
  }
  Py_VISIT(Py_TYPE(o));
  return TensorTraverse(o, visit, arg);
}

int TensorClear(PyObject* o) {
  if (!IsCleared(o)) return 0;
  Py_CLEAR(AsTensor(o)->dict);
  if (const MicaAutograd* const autograd = AutogradOf(o))
    ClearHeldObjects([&](void* to, auto f) { autograd->visit_held(Unwrap(o).impl(), to, f); });
  return 0;
}
int SubclassClear(PyObject* o) {
  if (!IsCleared(o)) return 0;
  for (PyTypeObject* base = Py_TYPE(o); base->tp_dealloc == SubclassDealloc; base = base->tp_base) {
    if (Py_SIZE(base)) ClearSlots(base, o);
  }
  return TensorClear(o);
}

// `Tensor(data)` makes a float tensor of the data, as torch's legacy constructor
// does; subclasses are made through _make_subclass.
PyObject* TensorNew(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return Guarded([&]() -> PyObject* {
    const Ref module = Own(PyImport_ImportModule("mica._tensor.legacy_constructor"));
    const Ref function = Own(PyObject_GetAttrString(module.get(), "new"));
    Ref all = Own(PyTuple_New(1 + PyTuple_GET_SIZE(args)));
    Py_INCREF(type);
    PyTuple_SET_ITEM(all.get(), 0, reinterpret_cast<PyObject*>(type));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* item = PyTuple_GET_ITEM(args, i);
      Py_INCREF(item);
      PyTuple_SET_ITEM(all.get(), i + 1, item);
    }
    return Check(PyObject_Call(function.get(), all.get(), kwargs));
  });
}

PyObject* GetDict(PyObject* o, void*) {
  PyTensor* self = AsTensor(o);
  if (!self->dict) {
    self->dict = PyDict_New();
    if (!self->dict) return nullptr;
    if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
  }
  Py_INCREF(self->dict);
  return self->dict;
}

int SetDict(PyObject* o, PyObject* value, void*) {
  if (!value || !PyDict_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "The __dict__ of a tensor must be set to a dictionary.");
    return -1;
  }
  Py_INCREF(value);
  Py_XSETREF(AsTensor(o)->dict, value);
  if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
  return 0;
}

int TensorSetAttr(PyObject* o, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(o, name, value);
  if (AsTensor(o)->dict && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
  return status;
}

int MetaInit(PyObject* cls, PyObject* args, PyObject* kwargs) {
  if (PyType_Type.tp_init(cls, args, kwargs) < 0) return -1;
  auto* const type = reinterpret_cast<PyTypeObject*>(cls);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return 0;  // mica.Tensor itself, which someone inits again
  type->tp_dealloc = SubclassDealloc;
  type->tp_traverse = SubclassTraverse;
  type->tp_clear = SubclassClear;
  return 0;
}

// The last C++ reference to a tensor that has a Python object goes away; it has
// one reference now, which the object takes over if the impl kept the object.
void LastReference(TensorImpl* impl) {
  if (!Py_IsInitialized()) {
    // The interpreter ends: the object stays, and its last collections must not follow it here.
    if (impl->pyobject && impl->has_flag(tensor_flags::kPythonOwns))
      AsTensor(static_cast<PyObject*>(impl->pyobject))->tensor.release();
    impl->pyobject = nullptr;
    return;
  }
  GilAcquire gil;
  auto* object = static_cast<PyObject*>(impl->pyobject);
  if (!object || !impl->has_flag(tensor_flags::kPythonOwns)) return;
  impl->set_flag(tensor_flags::kPythonOwns, false);
  if (Py_REFCNT(object) > 1) {  // somebody took it from a weak reference: it lives on
    impl->Retain();
    Py_DECREF(object);
    return;
  }
  AsTensor(object)->tensor.release();
  impl->pyobject = nullptr;
  Tensor keep = Tensor::Borrow(impl);  // weak-reference callbacks see a whole tensor
  AsTensor(object)->tensor = keep;
  Py_DECREF(object);
}

PyGetSetDef kMetaAttributes[] = {{nullptr, nullptr, nullptr, nullptr, nullptr}};
PyGetSetDef kDictAttribute = {"__dict__", GetDict, SetDict, nullptr, nullptr};

}  // namespace

PyObject* Wrap(Tensor&& t) {
  if (__builtin_expect(!t.defined(), 0)) return NewNone();
  TensorImpl* impl = t.impl();
  if (impl->pyobject) {
    if (impl->has_flag(tensor_flags::kPythonOwns)) return TakeBackOwnership(std::move(t));
    auto* object = static_cast<PyObject*>(impl->pyobject);
    Py_INCREF(object);
    return object;
  }
  PyTensor* self = NewExact();
  impl->pyobject = self;
  self->tensor = std::move(t);
  if (__builtin_expect(impl->has_flag(kCollected), 0)) PyObject_GC_Track(self);
  return reinterpret_cast<PyObject*>(self);
}

void Track(PyObject* tensor) {
  Unwrap(tensor).impl()->set_flag(kCollected, true);
  if (!PyObject_GC_IsTracked(tensor)) PyObject_GC_Track(tensor);
}

PyObject* WrapAs(PyTypeObject* type, Tensor&& t) {
  if (type == &TensorType) return Wrap(std::move(t));
  MICA_CHECK(!t.impl()->pyobject,
             "The tensor already has a Python object; a subclass needs a tensor of its own.");
  PyObject* o = Check(type->tp_alloc(type, 0));
  PyTensor* self = AsTensor(o);
  new (&self->tensor) Tensor(std::move(t));
  self->tensor.impl()->pyobject = self;
  return o;
}

PyTypeObject TensorMetaType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject TensorType = {PyVarObject_HEAD_INIT(nullptr, 0)};

void InitTensorType(PyObject* module) {
  TensorMetaType.tp_name = "mica._C.TensorMeta";
  TensorMetaType.tp_base = &PyType_Type;
  TensorMetaType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  TensorMetaType.tp_init = MetaInit;
  TensorMetaType.tp_getset = kMetaAttributes;
  Check(PyType_Ready(&TensorMetaType));

  PyTypeObject& t = TensorType;
  Py_SET_TYPE(reinterpret_cast<PyObject*>(&t), &TensorMetaType);
  t.tp_name = "mica.Tensor";
  t.tp_doc = "A multi-dimensional array of one dtype on one device.";
  t.tp_basicsize = sizeof(PyTensor);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  t.tp_dictoffset = offsetof(PyTensor, dict);
  t.tp_weaklistoffset = offsetof(PyTensor, weak_references);
  t.tp_new = TensorNew;
  t.tp_dealloc = TensorDealloc;
  t.tp_traverse = TensorTraverse;
  t.tp_clear = TensorClear;
  t.tp_setattro = TensorSetAttr;
  t.tp_repr = TensorRepr;
  t.tp_hash = [](PyObject* o) -> Py_hash_t { return _Py_HashPointer(o); };
  t.tp_richcompare = TensorRichCompare;
  t.tp_iter = TensorIter;
  t.tp_as_number = &kTensorNumberMethods;
  t.tp_as_mapping = &kTensorMappingMethods;
  t.tp_as_sequence = &kTensorSequenceMethods;
  t.tp_getset = kTensorAttributes;
  t.tp_methods = kTensorMethods;
  Check(PyType_Ready(&t));
  // Programs add methods to Tensor and wrap those that it has, as they may of a class that Python made.
  t.tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;
  const Ref dict_attribute = Own(PyDescr_NewGetSet(&t, &kDictAttribute));
  Check(PyDict_SetItemString(t.tp_dict, "__dict__", dict_attribute.get()));
  Check(PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(&t)));
  Check(PyModule_AddObjectRef(module, "TensorMeta", reinterpret_cast<PyObject*>(&TensorMetaType)));
  g_pyobject_hooks.last_reference = LastReference;
}

}  // namespace mica::python
