// Tensors of Python subclasses: over the data of another tensor (_make_subclass,
// as_subclass), or around it (_make_wrapper_subclass), where the object has a shape, a
// dtype and a device but no memory, and its __mica_dispatch__ computes with what it wraps.
// And two objects that become each other.
#include <algorithm>

#include "bindings/python/src/autograd/gradients.h"
#include "bindings/python/src/interception/dispatch_modes.h"
#include "bindings/python/src/interception/override.h"
#include "bindings/python/src/operators/arguments.h"
#include "dispatcher/calls/thread_state.h"
#include "mica/ops/alias.h"
#include "tensor/promote.h"
#include "tensor/shape.h"

namespace mica::python {
namespace {

PyTypeObject* SubclassOf(PyObject* cls, const char* function) {
  const bool fits = PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &TensorType);
  if (!fits) Raise(PyExc_TypeError, std::string(function) + "() takes a subclass of mica.Tensor.");
  return reinterpret_cast<PyTypeObject*>(cls);
}

// The object of class `cls` for a fresh tensor, with the key of subclasses that want operators.
Ref NewObject(PyTypeObject* cls, Tensor t, bool requires_grad) {
  if (TraitsOf(cls) & traits::kDispatch) {
    StartDispatchLayers();
    t.impl()->keys = t.impl()->keys | KeySet::Of(keys::kPythonSubclass);
  }
  Ref object(WrapAs(cls, Tensor(t)));
  if (requires_grad) GetAutograd().SetRequiresGrad(t, true);
  return object;
}

// _make_subclass(cls, data, require_grad=False): an object over the data, without history.
PyObject* MakeSubclass(PyObject*, PyObject* args, PyObject* kwargs) {
  return Guarded([&]() -> PyObject* {
    static const char* names[] = {"cls", "data", "require_grad", nullptr};
    PyObject *cls, *data;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!|p:_make_subclass", const_cast<char**>(names), &cls,
                                     &TensorType, &data, &requires_grad))
      return nullptr;
    PyTypeObject* const type = SubclassOf(cls, "_make_subclass");
    const Tensor& source = Unwrap(data);
    return NewObject(type,
                     MakeView(source, source.sizes(), source.strides(),
                              source.storage_offset() * source.itemsize(), /*detached=*/true),
                     requires_grad != 0)
        .release();
  });
}

// x.as_subclass(cls): the same elements as an object of a subclass, with history.
PyObject* AsSubclass(PyObject* self, PyObject* cls) {
  return Guarded([&]() -> PyObject* {
    PyTypeObject* const type = SubclassOf(cls, "as_subclass");
    const WithoutModes plain;  // one may keep the alias as a plain tensor
    return NewObject(type, ops::alias(Unwrap(self)), false).release();
  });
}

Dims StridesFor(PyObject* strides, const Dims& sizes) {
  if (!strides || strides == Py_None) return ContiguousStrides(sizes);
  Dims given = ToIntList(strides, 0);
  MICA_CHECK_VALUE(given.size() == sizes.size(), "The strides of a wrapper subclass are ", given.size(),
                   " where its sizes are ", sizes.size(), ".");
  return given;
}

int64_t BytesOf(const Dims& sizes, const Dims& strides, int64_t offset, int64_t itemsize) {
  int64_t last = offset, product;
  for (size_t d = 0; d < sizes.size(); ++d) {
    MICA_CHECK_VALUE(sizes[d] >= 0 && strides[d] >= 0, "A size (", sizes[d], ") or stride (", strides[d],
                     ") of a wrapper subclass is negative.");
    if (sizes[d] == 0) return 0;
    const bool too_big = __builtin_mul_overflow(sizes[d] - 1, strides[d], &product) ||
                         __builtin_add_overflow(last, product, &last);
    MICA_CHECK(!too_big, "The sizes of a wrapper subclass need more than 2^63 - 1 bytes.");
  }
  MICA_CHECK(!__builtin_mul_overflow(last + 1, itemsize, &product),
             "The sizes of a wrapper subclass need more than 2^63 - 1 bytes.");
  return product;
}

struct WrapperOptions {
  PyObject *cls = nullptr, *size = nullptr, *strides = nullptr, *offset = Py_None, *format = Py_None,
           *dtype = Py_None, *layout = Py_None, *device = Py_None, *policy = Py_None, *keys = Py_None,
           *bytes = Py_None, *view_of = Py_None;
  int pin_memory = 0, requires_grad = 0, of_device = 0, of_layout = 0, detached = 0;

  WrapperOptions(PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"cls",
                                  "size",
                                  "strides",
                                  "storage_offset",
                                  "memory_format",
                                  "dtype",
                                  "layout",
                                  "device",
                                  "pin_memory",
                                  "requires_grad",
                                  "dispatch_sizes_strides_policy",
                                  "dispatch_device",
                                  "dispatch_layout",
                                  "_extra_dispatch_keys",
                                  "storage_size",
                                  "view_of",
                                  "detached",
                                  nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOOOOOppOppOOOp:_make_wrapper_subclass",
                                     const_cast<char**>(names), &cls, &size, &strides, &offset, &format,
                                     &dtype, &layout, &device, &pin_memory, &requires_grad, &policy,
                                     &of_device, &of_layout, &keys, &bytes, &view_of, &detached))
      throw PythonErrorIsSet();
  }
};

// _make_wrapper_subclass(cls, size, strides=None, storage_offset=None, ..., dtype=None,
// device=None, requires_grad=False, view_of=None, detached=False); `view_of`: a wrapper whose versions it
// shares, and of which it is a view for Autograd unless `detached`.
PyObject* MakeWrapperSubclass(PyObject*, PyObject* args, PyObject* kwargs) {
  return Guarded([&] {
    const WrapperOptions o(args, kwargs);
    PyTypeObject* const type = SubclassOf(o.cls, "_make_wrapper_subclass");
    MICA_CHECK_TYPE(TraitsOf(type) & traits::kDispatch, "The class (", type->tp_name,
                    ") has no __mica_dispatch__, so that an object of it without memory could do nothing; "
                    "define it, or use _make_subclass.");
    MICA_CHECK_IMPLEMENTED(o.policy == Py_None && !o.of_device && !o.of_layout,
                           "A wrapper subclass tells its sizes, strides, device and layout as it is made; "
                           "dispatch_sizes_strides_policy, dispatch_device and dispatch_layout are not "
                           "supported.");
    MICA_CHECK_TYPE(IsIntList(o.size, 0), "`size` of a wrapper subclass is a list of ints, not ",
                    TypeName(o.size), ".");
    const Dims sizes = ToIntList(o.size, 0);
    const Dims strides = StridesFor(o.strides, sizes);
    const DType dtype = o.dtype == Py_None ? DefaultDType() : ToDType(o.dtype);
    const Device device = o.device == Py_None ? CurrentThread().default_device : ToDevice(o.device);
    const int64_t offset = o.offset == Py_None ? 0 : ToInt(o.offset);
    MICA_CHECK_VALUE(offset >= 0, "The storage offset (", offset, ") of a wrapper subclass is negative.");
    const int64_t item = ItemSize(dtype), bytes = BytesOf(sizes, strides, offset, item);
    MICA_CHECK_TYPE(o.view_of == Py_None || IsTensor(o.view_of),
                    "`view_of` of a wrapper subclass is a Tensor, not ", TypeName(o.view_of), ".");
    Tensor t =
        o.view_of == Py_None
            ? Tensor::Steal(TensorImpl::Make(Storage::FromMemory(nullptr, bytes, device, nullptr, nullptr),
                                             offset * item, sizes, strides, dtype))
            : MakeViewAs(Unwrap(o.view_of), sizes, strides, offset * item, dtype, o.detached != 0);
    t.impl()->keys = t.impl()->keys | KeySet::Of(keys::kNoData);
    return NewObject(type, std::move(t), o.requires_grad != 0).release();
  });
}

// Two objects may become each other: nobody else holds their tensors, nor them weakly.
void CheckSwappable(PyObject* o, const char* which) {
  MICA_CHECK_TYPE(IsTensor(o), "swap_tensors() takes two Tensors; ", which, " is of type (", TypeName(o),
                  ").");
  auto* const self = reinterpret_cast<PyTensor*>(o);
  MICA_CHECK(!self->weak_references, "Cannot swap ", which, " because it has weakref associated with it.");
  const uint64_t uses = self->tensor.impl()->refs().load(std::memory_order_acquire);
  MICA_CHECK(uses == 1, "Expected use_count of ", which, " to be 1 but got ", uses,
             ": a view, a graph or another tensor's gradient holds the tensor; swap before a forward, or "
             "after its backward.");
}

// _swap_tensors(a, b): what each is, its class and attributes included, becomes what the other is.
PyObject* SwapTensors(PyObject*, PyObject* args) {
  return Guarded([&]() -> PyObject* {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "OO:swap_tensors", &a, &b)) return nullptr;
    CheckSwappable(a, "t1");
    CheckSwappable(b, "t2");
    if (a == b) return NewNone();
    const Py_ssize_t size = Py_TYPE(a)->tp_basicsize, plain = TensorType.tp_basicsize;
    MICA_CHECK(size == Py_TYPE(b)->tp_basicsize && (size == plain || Py_TYPE(a) == Py_TYPE(b)),
               "Cannot swap t1 and t2 if they have different slots: their classes are (", TypeName(a),
               ") and (", TypeName(b), ").");
    // All after the header of an object: the tensor's pointer, attributes and slots.
    auto* const left = reinterpret_cast<char*>(a);
    auto* const right = reinterpret_cast<char*>(b);
    std::swap_ranges(left + sizeof(PyObject), left + size, right + sizeof(PyObject));
    PyTypeObject* const type = Py_TYPE(a);
    Py_SET_TYPE(a, Py_TYPE(b));
    Py_SET_TYPE(b, type);
    for (PyObject* o : {a, b}) {
      Unwrap(o).impl()->pyobject = o;
      const bool refers = !IsExactTensor(o) || reinterpret_cast<PyTensor*>(o)->dict;
      if (refers && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
    }
    return NewNone();
  });
}

constexpr int kStatic = METH_VARARGS | METH_KEYWORDS;
PyMethodDef kAsSubclass = {
    "as_subclass", AsSubclass, METH_O,
    "as_subclass(cls) -> Tensor\n\nThe same elements as an object of a subclass of Tensor."};
PyMethodDef kStatics[] = {
    {"_make_subclass", Keywords(MakeSubclass), kStatic, nullptr},
    {"_make_wrapper_subclass", Keywords(MakeWrapperSubclass), kStatic,
     "_make_wrapper_subclass(cls, size, strides=None, storage_offset=None, "
     "memory_format=None, dtype=None, layout=None, device=None, pin_memory=False, "
     "requires_grad=False) -> Tensor\n\nAn object of a subclass with __mica_dispatch__, "
     "without memory of its own."}};

// _has_dispatch(cls): whether the class wants operators.
PyObject* HasDispatch(PyObject*, PyObject* cls) {
  return NewBool(PyType_Check(cls) && (TraitsOf(reinterpret_cast<PyTypeObject*>(cls)) & traits::kDispatch));
}
// _is_wrapper(tensor): whether it has no memory of its own.
PyObject* IsWrapper(PyObject*, PyObject* o) {
  return NewBool(IsTensor(o) && Unwrap(o).keys().has(keys::kNoData));
}
PyMethodDef kFunctions[] = {{"_has_dispatch", HasDispatch, METH_O, nullptr},
                            {"_is_wrapper", IsWrapper, METH_O, nullptr},
                            {"_swap_tensors", SwapTensors, METH_VARARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitSubclasses(PyObject* module) {
  PyObject* const methods = TensorType.tp_dict;
  const Ref as_subclass = Own(PyDescr_NewMethod(&TensorType, &kAsSubclass));
  Check(PyDict_SetItemString(methods, kAsSubclass.ml_name, as_subclass.get()));
  for (PyMethodDef& def : kStatics) {
    const Ref function = Own(PyCFunction_New(&def, nullptr));
    const Ref method = Own(PyStaticMethod_New(function.get()));
    Check(PyDict_SetItemString(methods, def.ml_name, method.get()));
  }
  Check(PyModule_AddFunctions(module, kFunctions));
  PyType_Modified(&TensorType);
}

}  // namespace mica::python
