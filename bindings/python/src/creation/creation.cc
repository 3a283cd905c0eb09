// mica.tensor, mica.as_tensor and what is under them; see creation.h.
#include "bindings/python/src/creation/creation.h"
#include "bindings/python/src/autograd/gradients.h"

#include <algorithm>
#include <cstring>

#include "bindings/python/src/interception/override.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/tensor/item.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/devices/pinned_memory.h"
#include "dispatcher/frames/frames.h"
#include "mica/ops/clone.h"
#include "mica/ops/detach.h"
#include "mica/ops/to.h"
#include "tensor/number_range.h"
#include "tensor/promote.h"

namespace mica::python {
namespace {

constexpr int kMaxDepth = 128;

bool IsNumpy(PyObject* o) {
  if (PyFloat_CheckExact(o) || PyLong_CheckExact(o)) return false;  // most leaves of a list
  return std::strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) == 0 || IsNumpyArray(o);
}
bool IsSequence(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o) ||
         (PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !IsTensor(o));
}

// What the first path down a nested sequence says of the shape, and the kinds of
// all its leaves.
struct Inference {
  Dims sizes;
  int kind = -1;                      // 0 bool, 1 int, 2 float, 3 complex
  std::vector<PyObject*> numpy;       // one object of each NumPy type among the leaves, borrowed
  std::optional<DType> tensor_dtype;  // of tensors among the leaves

  void Leaf(PyObject* o) {
    if (IsTensor(o)) {
      const DType d = Unwrap(o).dtype();
      tensor_dtype = tensor_dtype ? PromoteTypes(*tensor_dtype, d) : d;
      return;
    }
    if (IsNumpy(o)) {
      if (std::none_of(numpy.begin(), numpy.end(), [&](PyObject* n) { return Py_TYPE(n) == Py_TYPE(o); }))
        numpy.push_back(o);
      return;
    }
    const int k = PyBool_Check(o)      ? 0
                  : PyLong_Check(o)    ? 1
                  : PyFloat_Check(o)   ? 2
                  : PyComplex_Check(o) ? 3
                                       : -1;
    if (k < 0) {
      Raise(PyExc_TypeError,
            std::string("new(): invalid data type '") + TypeName(o) + "' of an element of a tensor.");
    }
    kind = std::max(kind, k);
  }

  void Visit(PyObject* o, int depth) {
    MICA_CHECK_VALUE(depth < kMaxDepth, "The sequences are nested deeper than ", kMaxDepth, " levels.");
    const Items items = ItemsOf(o);
    if (!items) return Leaf(o);
    for (Py_ssize_t i = 0; i < items.size; ++i) Visit(items.data[i], depth + 1);
  }

  // Whether NumPy's among the leaves are numbers, and no arrays with dimensions.
  bool AreNumbers() const { return std::all_of(numpy.begin(), numpy.end(), IsPlainNumber); }

  DType dtype() const {
    DType d = kind == 0   ? DType::kBool
              : kind == 1 ? DType::kI64
              : kind == 3 ? DefaultComplexDType()
                          : DefaultDType();
    if (tensor_dtype) d = kind < 0 ? *tensor_dtype : PromoteTypes(*tensor_dtype, d);
    return d;
  }
};

// Writes the leaves in order; checks that the nesting is regular.
struct Filler {
  const Dims& sizes;
  DType dtype;
  char* out;

  void Fill(PyObject* o, size_t dim) {
    if (dim == sizes.size()) {
      if (ItemsOf(o) || (IsTensor(o) && Unwrap(o).numel() != 1)) RaiseRagged(dim);
      const bool is_real = PyLong_Check(o) && (IsFloating(dtype) || IsComplex(dtype));
      const Scalar number = is_real ? Scalar(ToDouble(o)) : ToScalar(o);
      MICA_CHECK(!number.is_float() || !IsInteger(dtype) || HoldsNumber(dtype, number), "The value (",
                 number.ToString(), ") does not fit the dtype (", Name(dtype),
                 ") and cannot be converted without overflow.");
      WriteElement(out, dtype, number);
      out += ItemSize(dtype);
      return;
    }
    if (IsTensor(o)) {
      if (Unwrap(o).ndim() != static_cast<int64_t>(sizes.size() - dim)) RaiseRagged(dim);
      const Tensor t = frames::Readable(Unwrap(o), "a tensor made of it");
      FillTensor(t, dim, 0, static_cast<char*>(t.data()));
      return;
    }
    const Items items = ItemsOf(o);
    if (!items || items.size != sizes[dim]) {
      MICA_THROW(kValue, "Nested sequences are uneven: expected sequence of length ", sizes[dim], " at dim ",
                 dim, " (got ", items ? absl::StrCat(items.size) : std::string("a number"), ").");
    }
    for (Py_ssize_t i = 0; i < items.size; ++i) Fill(items.data[i], dim + 1);
  }

  void FillTensor(const Tensor& t, size_t dim, int64_t d, const char* data) {
    if (d == t.ndim()) {
      WriteElement(out, dtype, ReadElement(data, t.dtype()));
      out += ItemSize(dtype);
      return;
    }
    if (t.size(d) != sizes[dim]) RaiseRagged(dim);
    for (int64_t i = 0; i < t.size(d); ++i)
      FillTensor(t, dim + 1, d + 1, data + i * t.stride(d) * t.itemsize());
  }

  [[noreturn]] void RaiseRagged(size_t dim) {
    MICA_THROW(kValue, "The sequences are not nested regularly: at depth ", dim,
               " an element has another shape than its neighbours.");
  }
};

// A tensor of one element within a sequence is a number, whatever its shape, as in torch.
Dims SizesOf(PyObject* o) {
  Dims sizes;
  while (true) {
    if (IsTensor(o)) {
      if (Unwrap(o).numel() == 1) return sizes;
      for (int64_t s : Unwrap(o).sizes()) sizes.push_back(s);
      return sizes;
    }
    const Items items = ItemsOf(o);
    if (!items) return sizes;
    MICA_CHECK_VALUE(static_cast<int>(sizes.size()) < kMaxDepth, "The sequences are nested deeper than ",
                     kMaxDepth, " levels.");
    sizes.push_back(items.size);
    if (items.size == 0) return sizes;
    o = items.data[0];
  }
}

Tensor FromNumpyCopy(PyObject* data) {
  const Ref numpy = Own(PyImport_ImportModule("numpy"));
  const Ref array = Own(PyObject_CallMethod(numpy.get(), "ascontiguousarray", "(O)", data));
  const Ref shape = Own(PyObject_GetAttrString(array.get(), "shape"));
  const Ref source_shape(PyObject_GetAttrString(data, "shape"));
  PyErr_Clear();
  Tensor t = ops::clone(TensorFromBuffer(array.get(), false), std::nullopt);
  // ascontiguousarray makes 0-d arrays 1-d.
  if (source_shape && PyTuple_Check(source_shape.get()) && PyTuple_GET_SIZE(source_shape.get()) == 0) {
    t.impl()->SetSizesStrides({}, {});
  }
  return t;
}

// A storage's memory as a tensor of the dtype, since its elements are no numbers of it; null of
// another object.
Ref StorageData(PyObject* data, std::optional<DType> dtype) {
  if (ItemsOf(data) || IsPlainNumber(data)) return {};
  static PyObject* const name = Check(PyUnicode_InternFromString("_as_data"));
  if (!PyObject_HasAttr(reinterpret_cast<PyObject*>(Py_TYPE(data)), name)) return {};
  const Ref wanted = dtype ? Own(FromDType(*dtype)) : Own(NewNone());
  return Own(PyObject_CallMethodOneArg(data, name, wanted.get()));
}

Tensor FromTensor(const Tensor& t, std::optional<DType> dtype, Device device) {
  Tensor copy = ConvertTensor(ops::detach(t), dtype, device);
  return copy.storage() == t.storage() ? ops::clone(copy, std::nullopt) : copy;
}

Tensor Filled(const Dims& sizes, PyObject* data, DType dtype, Device device) {
  const Tensor t = EmptyTensor(sizes, dtype, Device{});
  Filler{sizes, dtype, static_cast<char*>(t.data())}.Fill(data, 0);
  return ConvertTensor(frames::Adopt(t), std::nullopt, device);
}

struct TensorOptions {
  std::optional<DType> dtype;
  std::optional<Device> device;
  bool requires_grad = false;
  bool pin_memory = false;
};

// Parses (data, *, dtype=None, device=None, requires_grad=False, pin_memory=False).
PyObject* ParseData(PyObject* args, PyObject* kwargs, const char* format, TensorOptions& options) {
  static const char* names[] = {"data", "dtype", "device", "requires_grad", "pin_memory", nullptr};
  PyObject *data, *dtype = Py_None, *device = Py_None;
  int requires_grad = 0, pin = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names), &data, &dtype, &device,
                                   &requires_grad, &pin)) {
    throw PythonErrorIsSet();
  }
  if (dtype != Py_None) options.dtype = ToDType(dtype);
  if (device != Py_None) options.device = ToDevice(device);
  options.requires_grad = requires_grad != 0;
  options.pin_memory = pin != 0;
  return data;
}

PyObject* MakeTensor(PyObject*, PyObject* args, PyObject* kwargs) {
  return Guarded([&] {
    TensorOptions o;
    PyObject* data = ParseData(args, kwargs, "O|$OOpp:tensor", o);
    const Device device = o.device         ? *o.device
                          : IsTensor(data) ? Unwrap(data).device()
                                           : CurrentThread().default_device;
    Tensor t = TensorFromData(data, o.dtype, device, false);
    if (o.pin_memory) t = PinMemory(t, PinningBackend());
    if (o.requires_grad) GetAutograd().SetRequiresGrad(t, true);
    return Wrap(std::move(t));
  });
}

PyObject* AsTensor(PyObject*, PyObject* args, PyObject* kwargs) {
  return Guarded([&]() -> PyObject* {
    TensorOptions o;
    PyObject* data = ParseData(args, kwargs, "O|OOpp:as_tensor", o);
    MICA_CHECK_TYPE(!o.pin_memory,
                    "as_tensor() shares memory where it can and pins none; call pin_memory() of its result.");
    if (IsTensor(data)) {
      const Tensor& t = Unwrap(data);
      if ((!o.dtype || *o.dtype == t.dtype()) && (!o.device || *o.device == t.device()))
        return Py_NewRef(data);
      return Wrap(ConvertTensor(t, o.dtype, o.device));
    }
    const Device device = o.device ? *o.device : CurrentThread().default_device;
    if (IsNumpyArray(data)) {
      return Wrap(ConvertTensor(TensorFromBuffer(data), o.dtype, device));
    }
    return Wrap(TensorFromData(data, o.dtype, device, false));
  });
}

PyObject* FromNumpy(PyObject*, PyObject* array) {
  return Guarded([&] {
    if (!IsNumpyArray(array)) {
      Raise(PyExc_TypeError, std::string("from_numpy() takes a numpy.ndarray; this object is of type (") +
                                 TypeName(array) + ").");
    }
    return Wrap(TensorFromBuffer(array));
  });
}

PyObject* FromBuffer(PyObject*, PyObject* buffer) {
  return Guarded([&] { return Wrap(TensorFromBuffer(buffer)); });
}

}  // namespace

Tensor ConvertTensor(const Tensor& t, std::optional<DType> dtype, std::optional<Device> device) {
  if ((!dtype || *dtype == t.dtype()) && (!device || *device == t.device())) return t;
  return Run(Work().Add(t), [&] {
    return ops::to(t, dtype, std::optional<Layout>(), device, std::optional<bool>(), false, false,
                   std::optional<MemoryFormat>());
  });
}

Tensor TensorFromData(PyObject* data, std::optional<DType> dtype, Device device, bool) {
  if (IsTensor(data)) return FromTensor(Unwrap(data), dtype, device);
  if (const Ref memory = StorageData(data, dtype)) return FromTensor(Unwrap(memory.get()), dtype, device);
  Ref list;
  if (!ItemsOf(data) && !IsPlainNumber(data)) {
    if (PyObject_CheckBuffer(data) || PyObject_HasAttrString(data, "__array__") ||
        PyObject_HasAttrString(data, "__array_interface__")) {
      return ConvertTensor(FromNumpyCopy(data), dtype, device);
    }
    if (!IsSequence(data)) {
      Raise(PyExc_TypeError, std::string("Could not infer dtype of ") + TypeName(data) +
                                 ": new(): invalid data type '" + TypeName(data) +
                                 "'; expected numbers, nested sequences of them, or an array.");
    }
    PyObject* const items = PySequence_List(data);
    if (!items && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      Raise(PyExc_ValueError, std::string("could not determine the shape of object type '") + TypeName(data) +
                                  "', whose items cannot be read.");
    }
    list = Own(items);
    data = list.get();
  } else if (!ItemsOf(data) && IsNumpy(data)) {
    return ConvertTensor(FromNumpyCopy(data), dtype, device);
  }
  Inference inference;
  inference.sizes = SizesOf(data);
  inference.Visit(data, 0);
  if (!inference.numpy.empty()) {
    // Numbers of NumPy's among tensors are numbers; NumPy itself would take the tensors apart.
    if (inference.tensor_dtype && inference.AreNumbers()) {
      DType d = inference.dtype();
      for (PyObject* n : inference.numpy) d = PromoteTypes(d, FromNumpyCopy(n).dtype());
      return Filled(inference.sizes, data, dtype.value_or(d), device);
    }
    // Among numbers of Python's, NumPy's keep their dtype, and Python's are of the default one.
    std::optional<DType> common = dtype;
    if (!dtype && inference.kind >= 0) {
      common = inference.dtype();
      for (PyObject* n : inference.numpy) common = PromoteTypes(*common, FromNumpyCopy(n).dtype());
    }
    return ConvertTensor(FromNumpyCopy(data), common, device);
  }
  return Filled(inference.sizes, data, dtype ? *dtype : inference.dtype(), device);
}

PyMethodDef kCreationFunctions[] = {
    {"tensor",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Asking<"tensor", MakeTensor>::Function)),
     METH_VARARGS | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor\n\nA new "
     "tensor that copies "
     "`data`."},
    {"as_tensor",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Asking<"as_tensor", AsTensor>::Function)),
     METH_VARARGS | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None) -> Tensor\n\nA tensor of `data` that shares its memory where "
     "it can."},
    {"from_numpy", FromNumpy, METH_O,
     "from_numpy(ndarray) -> Tensor\n\nA tensor that shares the array's memory."},
    {"_from_buffer", FromBuffer, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace mica::python
