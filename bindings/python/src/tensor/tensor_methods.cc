// Methods of mica.Tensor that are written by hand because they answer without an
// operator, or parse their arguments in a way of their own. All others are
// generated, or written in Python (mica/_tensor/__init__.py).
#include "bindings/python/src/autograd/gradients.h"
#include "bindings/python/src/creation/creation.h"
#include "bindings/python/src/interception/override.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/tensor/item.h"
#include "bindings/python/src/tensor/symbolic.h"
#include "dispatcher/frames/frames.h"
#include "mica/ops/to.h"
#include "tensor/shape.h"

#include <cstring>

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
  return Guarded([&] {
    const Tensor& t = Unwrap(self);
    void* const data = t.data();
    const bool has_memory = t.impl()->has_flag(MICA_TENSOR_HAS_DATA) && t.numel() > 0;
    return Check(PyLong_FromVoidPtr(has_memory ? data : nullptr));
  });
}
PyObject* StoragePtr(PyObject* self, PyObject*) {
  return Guarded([&] { return Check(PyLong_FromVoidPtr(Unwrap(self).storage()->data())); });
}
PyObject* StorageBytes(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(Unwrap(self).impl()->storage->nbytes());
}
PyObject* StorageUsers(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLong(Storage::Borrow(Unwrap(self).impl()->storage)->use_count());
}
PyObject* StorageNumber(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(Unwrap(self).impl()->storage->Number());
}
PyObject* StorageResizable(PyObject* self, PyObject*) {
  return NewBool(Unwrap(self).impl()->storage->resizable());
}
// Resizes a storage in bytes; every tensor over it stays where it stands in it.
PyObject* ResizeStorage(PyObject* self, PyObject* size) {
  return Guarded([&] {
    const int64_t nbytes = PyLong_AsLongLong(size);
    if (PyErr_Occurred()) throw PythonErrorIsSet();
    const Tensor& t = Unwrap(self);
    const Storage storage = t.storage();
    const int64_t offset = t.storage_offset() * t.itemsize();
    storage->Resize(nbytes);
    t.impl()->dl.data = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(storage->data()) + offset);
    return NewNone();
  });
}
// Copies a storage's bytes into another tensor's memory, of the same size, and makes every
// tensor over the storage one over that memory.
PyObject* MoveStorage(PyObject* self, PyObject* target) {
  return Guarded([&] {
    const Storage from = Unwrap(self).storage(), to = TensorIn(target, "What a storage moves to").storage();
    MICA_CHECK(from->device().is_cpu() && to->device().is_cpu() && from->nbytes() == to->nbytes(),
               "A storage of ", from->nbytes(), " bytes on ", from->device().ToString(),
               " cannot move to one of ", to->nbytes(), " bytes on ", to->device().ToString(), ".");
    if (from == to) return NewNone();
    if (from->nbytes() > 0) std::memcpy(to->data(), from->data(), from->nbytes());
    from->MoveTensors(from->data(), to.get());
    return NewNone();
  });
}
PyObject* IsFloatingPoint(PyObject* self, PyObject*) { return NewBool(IsFloating(Unwrap(self).dtype())); }
PyObject* IsComplexMethod(PyObject* self, PyObject*) { return NewBool(IsComplex(Unwrap(self).dtype())); }
PyObject* IsSigned(PyObject* self, PyObject*) {
  const DTypeKind k = ::mica::Kind(Unwrap(self).dtype());
  return NewBool(k != DTypeKind::kBoolean && k != DTypeKind::kUnsigned);
}
PyObject* IsConj(PyObject* self, PyObject*) { return NewBool(Unwrap(self).keys().has(keys::kConjugate)); }
PyObject* IsNeg(PyObject* self, PyObject*) { return NewBool(Unwrap(self).keys().has(keys::kNegative)); }
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
    const Tensor t = ConvertTensor(frames::Readable(Unwrap(self), "tolist()"), std::nullopt, Device{});
    return ListOf(t, 0, static_cast<const char*>(t.data()));
  });
}

PyObject* RequiresGradMethod(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return Guarded([&] {
    PyObject* value = OptionalArgument("requires_grad_", "requires_grad", args, nargs, kwnames);
    if (value && !PyBool_Check(value) && !PyNumber_Check(value))
      Raise(PyExc_TypeError, std::string("Argument `requires_grad` is a bool; this value is of type (") +
                                 TypeName(value) + ").");
    GetAutograd().SetRequiresGrad(Unwrap(self), !value || ToBool(value));
    return Py_NewRef(self);
  });
}
PyObject* DetachInPlace(PyObject* self, PyObject*) {
  return Guarded([&] {
    GetAutograd().DetachInPlace(Unwrap(self));
    return Py_NewRef(self);
  });
}
PyObject* RetainGrad(PyObject* self, PyObject*) {
  return Guarded([&] {
    GetAutograd().RetainGrad(Unwrap(self));
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

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

}  // namespace

PyMethodDef kTensorMethods[] = {
    {"size", Fast(Asking<"size", SizeMethod>::Method), kFast,
     "size(dim=None) -> Size or int\n\nThe sizes, or that of one dimension."},
    {"stride", Fast(Asking<"stride", StrideMethod>::Method), kFast,
     "stride(dim=None) -> tuple or int\n\nThe strides in elements."},
    {"dim", Asking<"dim", Dim>::Alone, METH_NOARGS, "dim() -> int\n\nThe number of dimensions."},
    {"ndimension", Asking<"ndimension", Dim>::Alone, METH_NOARGS,
     "ndimension() -> int\n\nThe number of dimensions."},
    {"numel", Asking<"numel", Numel>::Alone, METH_NOARGS, "numel() -> int\n\nThe number of elements."},
    {"nelement", Asking<"nelement", Numel>::Alone, METH_NOARGS,
     "nelement() -> int\n\nThe number of elements."},
    {"element_size", Asking<"element_size", ElementSize>::Alone, METH_NOARGS,
     "element_size() -> int\n\nThe bytes of one element."},
    {"storage_offset", Asking<"storage_offset", StorageOffset>::Alone, METH_NOARGS,
     "storage_offset() -> int\n\nWhere the first element stands in the storage."},
    {"data_ptr", Asking<"data_ptr", DataPtr>::Alone, METH_NOARGS,
     "data_ptr() -> int\n\nThe address of the first element."},
    {"_storage_ptr", StoragePtr, METH_NOARGS, nullptr},
    {"_storage_nbytes", StorageBytes, METH_NOARGS, nullptr},
    {"_storage_users", StorageUsers, METH_NOARGS, nullptr},
    {"_storage_number", StorageNumber, METH_NOARGS, nullptr},
    {"_storage_resizable", StorageResizable, METH_NOARGS, nullptr},
    {"_resize_storage", ResizeStorage, METH_O, nullptr},
    {"_move_storage", MoveStorage, METH_O, nullptr},
    {"is_floating_point", Asking<"is_floating_point", IsFloatingPoint>::Alone, METH_NOARGS,
     "is_floating_point() -> bool"},
    {"is_complex", Asking<"is_complex", IsComplexMethod>::Alone, METH_NOARGS, "is_complex() -> bool"},
    {"is_signed", Asking<"is_signed", IsSigned>::Alone, METH_NOARGS, "is_signed() -> bool"},
    {"is_conj", Asking<"is_conj", IsConj>::Alone, METH_NOARGS,
     "is_conj() -> bool\n\nWhether it is a view of its conjugates, as conj() makes one. resolve_conj() makes "
     "memory of its own."},
    {"is_neg", Asking<"is_neg", IsNeg>::Alone, METH_NOARGS,
     "is_neg() -> bool\n\nWhether it is a view of its negatives, as the imaginary part of a conjugate is. "
     "resolve_neg() makes memory of its own."},
    {"is_inference", Asking<"is_inference", IsInference>::Alone, METH_NOARGS,
     "is_inference() -> bool\n\nWhether it was made in inference mode."},
    {"_is_view", Asking<"_is_view", IsView>::Alone, METH_NOARGS, nullptr},
    {"is_contiguous", Fast(Asking<"is_contiguous", IsContiguousMethod>::Method), kFast,
     "is_contiguous(memory_format=contiguous_format) -> bool"},
    {"item", Asking<"item", Item>::Alone, METH_NOARGS,
     "item() -> number\n\nThe value of a tensor of one element."},
    {"tolist", Asking<"tolist", ToList>::Alone, METH_NOARGS,
     "tolist() -> list or number\n\nThe values as nested lists."},
    {"requires_grad_", Fast(Asking<"requires_grad_", RequiresGradMethod>::Method), kFast,
     "requires_grad_(requires_grad=True) -> Tensor"},
    {"detach_", Asking<"detach_", DetachInPlace>::Alone, METH_NOARGS,
     "detach_() -> Tensor\n\nMakes it a leaf."},
    {"retain_grad", Asking<"retain_grad", RetainGrad>::Alone, METH_NOARGS,
     "retain_grad()\n\nKeeps the gradient of an interior tensor in .grad."},
    {"to", Fast(Asking<"to", To>::Method), kFast,
     "to(dtype), to(device, dtype=None), to(other), ... -> Tensor\n\nConverts dtype and device."},
    {"cpu", Fast(Asking<"cpu", Cpu>::Method), kFast, "cpu() -> Tensor"},
    {"float", Fast(Asking<"float", Cast<DType::kF32>>::Method), kFast, "float() -> Tensor"},
    {"double", Fast(Asking<"double", Cast<DType::kF64>>::Method), kFast, "double() -> Tensor"},
    {"half", Fast(Asking<"half", Cast<DType::kF16>>::Method), kFast, "half() -> Tensor"},
    {"bfloat16", Fast(Asking<"bfloat16", Cast<DType::kBF16>>::Method), kFast, "bfloat16() -> Tensor"},
    {"int", Fast(Asking<"int", Cast<DType::kI32>>::Method), kFast, "int() -> Tensor"},
    {"long", Fast(Asking<"long", Cast<DType::kI64>>::Method), kFast, "long() -> Tensor"},
    {"short", Fast(Asking<"short", Cast<DType::kI16>>::Method), kFast, "short() -> Tensor"},
    {"char", Fast(Asking<"char", Cast<DType::kI8>>::Method), kFast, "char() -> Tensor"},
    {"byte", Fast(Asking<"byte", Cast<DType::kU8>>::Method), kFast, "byte() -> Tensor"},
    {"bool", Fast(Asking<"bool", Cast<DType::kBool>>::Method), kFast, "bool() -> Tensor"},
    {"cfloat", Fast(Asking<"cfloat", Cast<DType::kC64>>::Method), kFast, "cfloat() -> Tensor"},
    {"cdouble", Fast(Asking<"cdouble", Cast<DType::kC128>>::Method), kFast, "cdouble() -> Tensor"},
    {nullptr, nullptr, 0, nullptr}};

namespace {
PyObject* Repr(PyObject* self) {
  return Guarded([&] {
    const Ref module = Own(PyImport_ImportModule("mica._tensor.printing"));
    return Check(PyObject_CallMethod(module.get(), "tensor_repr", "O", self));
  });
}
}  // namespace
PyObject* TensorRepr(PyObject* self) { return Asking<"__repr__", Repr>::Slot(self); }

}  // namespace mica::python
