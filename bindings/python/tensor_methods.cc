// Methods of mica.Tensor that are written by hand because they answer without an
// operator, or parse their arguments in a way of their own. All others are
// generated, or written in Python (mica/_tensor.py).
#include "mica/bindings/python/arguments.h"
#include "mica/bindings/python/creation.h"
#include "mica/bindings/python/item.h"
#include "mica/bindings/python/symbolic.h"
#include "mica/dispatcher/autograd_interface.h"
#include "mica/dispatcher/frames.h"
#include "mica/ops/alias.h"
#include "mica/ops/detach.h"
#include "mica/ops/to.h"
#include "mica/tensor/shape.h"

namespace mica::python {
namespace {

PyCFunction Fast(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

// Parses a single optional argument named `name`; NULL if it is not given.
PyObject* OptionalArgument(const char* function, const char* name, PyObject* const* args, Py_ssize_t nargs,
                           PyObject* kwnames) {
  const Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (nargs + nkw == 0) return nullptr;
  const bool named = nkw == 1 && nargs == 0 && StrView(PyTuple_GET_ITEM(kwnames, 0)) == name;
  if ((nkw == 0 && nargs == 1) || named) return args[0] == Py_None ? nullptr : args[0];
  Raise(PyExc_TypeError, std::string(function) + "() takes one argument, `" + name + "`, or none.");
}

PyObject* SizeMethod(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return Guarded([&] {
    PyObject* dim = OptionalArgument("size", "dim", args, nargs, kwnames);
    const Tensor& t = Unwrap(self);
    return dim ? SizeOf(t, ToInt(dim)) : ShapeOf(t);
  });
}
PyObject* StrideMethod(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return Guarded([&] {
    PyObject* dim = OptionalArgument("stride", "dim", args, nargs, kwnames);
    const Tensor& t = Unwrap(self);
    return dim ? PyLong_FromLongLong(t.stride(ToInt(dim))) : FromInts(t.strides());
  });
}
PyObject* Dim(PyObject* self, PyObject*) { return PyLong_FromLongLong(Unwrap(self).ndim()); }
PyObject* Numel(PyObject* self, PyObject*) {
  return Guarded([&] { return NumelOf(Unwrap(self)); });
}
PyObject* ElementSize(PyObject* self, PyObject*) { return PyLong_FromLongLong(Unwrap(self).itemsize()); }
PyObject* StorageOffset(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(Unwrap(self).storage_offset());
}
PyObject* DataPtr(PyObject* self, PyObject*) {
  const Tensor& t = Unwrap(self);
  return PyLong_FromVoidPtr(t.device().is_meta() || t.numel() == 0 ? nullptr : t.data());
}
PyObject* StoragePtr(PyObject* self, PyObject*) { return PyLong_FromVoidPtr(Unwrap(self).storage()->data()); }
PyObject* StorageBytes(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(Unwrap(self).storage()->nbytes());
}
PyObject* IsFloatingPoint(PyObject* self, PyObject*) { return NewBool(IsFloating(Unwrap(self).dtype())); }
PyObject* IsComplexMethod(PyObject* self, PyObject*) { return NewBool(IsComplex(Unwrap(self).dtype())); }
PyObject* IsSigned(PyObject* self, PyObject*) {
  const DTypeKind k = ::mica::Kind(Unwrap(self).dtype());
  return NewBool(k != DTypeKind::kBoolean && k != DTypeKind::kUnsigned);
}
PyObject* IsInference(PyObject* self, PyObject*) { return NewBool(Unwrap(self).is_inference()); }
PyObject* IsView(PyObject* self, PyObject*) { return NewBool(Unwrap(self).is_view()); }
PyObject* IsContiguousMethod(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return Guarded([&] {
    PyObject* format = OptionalArgument("is_contiguous", "memory_format", args, nargs, kwnames);
    if (format && !IsMemoryFormat(format))
      Raise(PyExc_TypeError, "memory_format must be a mica.memory_format.");
    return NewBool(format ? Unwrap(self).is_contiguous(AsMemoryFormat(format))
                          : Unwrap(self).is_contiguous());
  });
}

PyObject* Item(PyObject* self, PyObject*) {
  return Guarded([&] { return FromScalar(ItemOf(Unwrap(self))); });
}

PyObject* ListOf(const Tensor& t, int64_t dim, const char* data) {
  if (dim == t.ndim()) return FromScalar(ReadElement(data, t.dtype()));
  const int64_t size = t.sizes()[dim];
  const int64_t step = size > 1 ? t.strides()[dim] * t.itemsize() : 0;  // else the stride may be anything
  Ref list = Own(PyList_New(size));
  for (int64_t i = 0; i < size; ++i)
    PyList_SET_ITEM(list.get(), i, Check(ListOf(t, dim + 1, data + i * step)));
  return list.release();
}
PyObject* ToList(PyObject* self, PyObject*) {
  return Guarded([&] {
    MICA_CHECK_IMPLEMENTED(!Unwrap(self).device().is_meta(),
                           "A tensor on meta has no values, so it has no tolist().");
    frames::CheckReadable(Unwrap(self), "tolist()");
    const Tensor t = ConvertTensor(Unwrap(self), std::nullopt, Device{});
    return ListOf(t, 0, static_cast<const char*>(t.data()));
  });
}

PyObject* RequiresGradMethod(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return Guarded([&] {
    PyObject* value = OptionalArgument("requires_grad_", "requires_grad", args, nargs, kwnames);
    GetAutogradInterface().SetRequiresGrad(Unwrap(self), !value || ToBool(value));
    return Py_NewRef(self);
  });
}
PyObject* DetachInPlace(PyObject* self, PyObject*) {
  return Guarded([&] {
    GetAutogradInterface().DetachInPlace(Unwrap(self));
    return Py_NewRef(self);
  });
}
PyObject* RetainGrad(PyObject* self, PyObject*) {
  return Guarded([&] {
    GetAutogradInterface().RetainGrad(Unwrap(self));
    return NewNone();
  });
}

// `to`: (dtype), (device, dtype=None), (other) and keywords of all of them.
struct ToOptions {
  std::optional<DType> dtype;
  std::optional<Device> device;
  std::optional<MemoryFormat> memory_format;
  bool non_blocking = false;
  bool copy = false;

  void Named(std::string_view name, PyObject* v) {
    if (name == "dtype") {
      if (v != Py_None) dtype = ToDType(v);
    } else if (name == "device") {
      if (v != Py_None) device = ToDevice(v);
    } else if (name == "memory_format") {
      if (v != Py_None && !IsMemoryFormat(v))
        Raise(PyExc_TypeError, "memory_format must be a mica.memory_format.");
      if (v != Py_None) memory_format = AsMemoryFormat(v);
    } else if (name == "non_blocking") {
      non_blocking = ToBool(v);
    } else if (name == "copy") {
      copy = ToBool(v);
    } else if (name == "other" && IsTensor(v)) {
      dtype = Unwrap(v).dtype();
      device = Unwrap(v).device();
    } else {
      Raise(PyExc_TypeError,
            "to() takes dtype, device, other, non_blocking, copy and memory_format; it was given `" +
                std::string(name) + "`.");
    }
  }
  // The positional arguments: what stands first decides the meaning.
  void Positional(PyObject* const* args, Py_ssize_t n) {
    if (n == 0) return;
    Py_ssize_t next = 1;
    if (IsTensor(args[0])) {
      Named("other", args[0]);
    } else if (IsDTypeLike(args[0])) {
      Named("dtype", args[0]);
    } else if (IsDeviceLike(args[0])) {
      Named("device", args[0]);
      if (n > 1 && (IsDTypeLike(args[1]) || args[1] == Py_None)) Named("dtype", args[next++]);
    } else if (args[0] == Py_None) {
      if (n > 1) Named("dtype", args[next++]);
    } else {
      Raise(PyExc_TypeError,
            std::string("to() takes a dtype, a device or a tensor first; it was given a value of type (") +
                TypeName(args[0]) + ").");
    }
    static constexpr std::string_view kRest[] = {"non_blocking", "copy"};
    for (int i = 0; next < n; ++next, ++i) {
      if (i == 2) Raise(PyExc_TypeError, "to() was given too many positional arguments.");
      Named(kRest[i], args[next]);
    }
  }
};

PyObject* Convert(PyObject* self, const ToOptions& o) {
  const Tensor& t = Unwrap(self);
  if (!o.copy && !o.memory_format && (!o.dtype || *o.dtype == t.dtype()) &&
      (!o.device || *o.device == t.device())) {
    return Py_NewRef(self);
  }
  return Wrap(Run(Work().Add(t), [&] {
    return ops::to(t, o.dtype, std::optional<Layout>(), o.device, std::optional<bool>(), o.non_blocking,
                   o.copy, o.memory_format);
  }));
}

PyObject* To(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return Guarded([&] {
    ToOptions o;
    o.Positional(args, nargs);
    const Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t i = 0; i < nkw; ++i) o.Named(StrView(PyTuple_GET_ITEM(kwnames, i)), args[nargs + i]);
    return Convert(self, o);
  });
}

// x.float() and its like; `memory_format` is their only argument.
template <DType kDType>
PyObject* Cast(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return Guarded([&] {
    ToOptions o;
    if (PyObject* format = OptionalArgument("a cast", "memory_format", args, nargs, kwnames))
      o.Named("memory_format", format);
    o.dtype = kDType;
    return Convert(self, o);
  });
}
PyObject* Cpu(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return Guarded([&] {
    ToOptions o;
    if (PyObject* format = OptionalArgument("cpu", "memory_format", args, nargs, kwnames))
      o.Named("memory_format", format);
    o.device = Device{};
    return Convert(self, o);
  });
}

// _make_subclass(cls, data, requires_grad=False): an object of a subclass over
// the data, without history.
PyObject* MakeSubclass(PyObject*, PyObject* args) {
  return Guarded([&]() -> PyObject* {
    PyTypeObject* cls;
    PyObject* data;
    int requires_grad = 0;
    if (!PyArg_ParseTuple(args, "O!O!|p:_make_subclass", &PyType_Type, &cls, &TensorType, &data,
                          &requires_grad))
      return nullptr;
    if (!PyType_IsSubtype(cls, &TensorType)) Raise(PyExc_TypeError, "cls must be a subclass of mica.Tensor.");
    const Tensor& source = Unwrap(data);
    Tensor t = MakeView(source, source.sizes(), source.strides(), source.storage_offset() * source.itemsize(),
                        /*detached=*/true);
    Ref object(WrapAs(cls, Tensor(t)));
    if (requires_grad) GetAutogradInterface().SetRequiresGrad(t, true);
    return object.release();
  });
}

// x.as_subclass(cls): the same elements as an object of a subclass, with history.
PyObject* AsSubclass(PyObject* self, PyObject* cls) {
  return Guarded([&]() -> PyObject* {
    const bool fits =
        PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &TensorType);
    if (!fits) Raise(PyExc_TypeError, "as_subclass() takes a subclass of mica.Tensor.");
    return WrapAs(reinterpret_cast<PyTypeObject*>(cls), ops::alias(Unwrap(self)));
  });
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

}  // namespace

PyMethodDef kTensorMethods[] = {
    {"size", Fast(SizeMethod), kFast,
     "size(dim=None) -> Size or int\n\nThe sizes, or that of one dimension."},
    {"stride", Fast(StrideMethod), kFast, "stride(dim=None) -> tuple or int\n\nThe strides in elements."},
    {"dim", Dim, METH_NOARGS, "dim() -> int\n\nThe number of dimensions."},
    {"ndimension", Dim, METH_NOARGS, "ndimension() -> int\n\nThe number of dimensions."},
    {"numel", Numel, METH_NOARGS, "numel() -> int\n\nThe number of elements."},
    {"nelement", Numel, METH_NOARGS, "nelement() -> int\n\nThe number of elements."},
    {"element_size", ElementSize, METH_NOARGS, "element_size() -> int\n\nThe bytes of one element."},
    {"storage_offset", StorageOffset, METH_NOARGS,
     "storage_offset() -> int\n\nWhere the first element stands in the storage."},
    {"data_ptr", DataPtr, METH_NOARGS, "data_ptr() -> int\n\nThe address of the first element."},
    {"_storage_ptr", StoragePtr, METH_NOARGS, nullptr},
    {"_storage_nbytes", StorageBytes, METH_NOARGS, nullptr},
    {"is_floating_point", IsFloatingPoint, METH_NOARGS, "is_floating_point() -> bool"},
    {"is_complex", IsComplexMethod, METH_NOARGS, "is_complex() -> bool"},
    {"is_signed", IsSigned, METH_NOARGS, "is_signed() -> bool"},
    {"is_inference", IsInference, METH_NOARGS,
     "is_inference() -> bool\n\nWhether it was made in inference mode."},
    {"_is_view", IsView, METH_NOARGS, nullptr},
    {"is_contiguous", Fast(IsContiguousMethod), kFast,
     "is_contiguous(memory_format=contiguous_format) -> bool"},
    {"item", Item, METH_NOARGS, "item() -> number\n\nThe value of a tensor of one element."},
    {"tolist", ToList, METH_NOARGS, "tolist() -> list or number\n\nThe values as nested lists."},
    {"requires_grad_", Fast(RequiresGradMethod), kFast, "requires_grad_(requires_grad=True) -> Tensor"},
    {"detach_", DetachInPlace, METH_NOARGS, "detach_() -> Tensor\n\nMakes it a leaf."},
    {"retain_grad", RetainGrad, METH_NOARGS,
     "retain_grad()\n\nKeeps the gradient of an interior tensor in .grad."},
    {"to", Fast(To), kFast,
     "to(dtype), to(device, dtype=None), to(other), ... -> Tensor\n\nConverts dtype and device."},
    {"cpu", Fast(Cpu), kFast, "cpu() -> Tensor"},
    {"float", Fast(Cast<DType::kF32>), kFast, "float() -> Tensor"},
    {"double", Fast(Cast<DType::kF64>), kFast, "double() -> Tensor"},
    {"half", Fast(Cast<DType::kF16>), kFast, "half() -> Tensor"},
    {"bfloat16", Fast(Cast<DType::kBF16>), kFast, "bfloat16() -> Tensor"},
    {"int", Fast(Cast<DType::kI32>), kFast, "int() -> Tensor"},
    {"long", Fast(Cast<DType::kI64>), kFast, "long() -> Tensor"},
    {"short", Fast(Cast<DType::kI16>), kFast, "short() -> Tensor"},
    {"char", Fast(Cast<DType::kI8>), kFast, "char() -> Tensor"},
    {"byte", Fast(Cast<DType::kU8>), kFast, "byte() -> Tensor"},
    {"bool", Fast(Cast<DType::kBool>), kFast, "bool() -> Tensor"},
    {"cfloat", Fast(Cast<DType::kC64>), kFast, "cfloat() -> Tensor"},
    {"cdouble", Fast(Cast<DType::kC128>), kFast, "cdouble() -> Tensor"},
    {"as_subclass", AsSubclass, METH_O,
     "as_subclass(cls) -> Tensor\n\nThe same elements as an object of a subclass of Tensor."},
    {"_make_subclass", MakeSubclass, METH_VARARGS | METH_STATIC, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyObject* TensorRepr(PyObject* self) {
  return Guarded([&] {
    const Ref module = Own(PyImport_ImportModule("mica._tensor_str"));
    return Check(PyObject_CallMethod(module.get(), "tensor_repr", "O", self));
  });
}

}  // namespace mica::python
