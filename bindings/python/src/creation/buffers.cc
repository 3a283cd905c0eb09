// The buffer protocol both ways: tensors over foreign buffers (NumPy arrays), and
// _C._TensorBuffer, which shows a CPU tensor to NumPy.
#include "bindings/python/src/creation/creation.h"
#include "bindings/python/src/operators/arguments.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/plugins/host.h"

#include <cstring>

namespace mica::python {
namespace {

struct Format {
  DType dtype;
  const char* code;  // of the struct module, as NumPy writes it
};
constexpr Format kFormats[] = {
    {DType::kBool, "?"}, {DType::kU8, "B"},  {DType::kI8, "b"},   {DType::kU16, "H"},  {DType::kI16, "h"},
    {DType::kU32, "I"},  {DType::kI32, "i"}, {DType::kU64, "L"},  {DType::kI64, "l"},  {DType::kF16, "e"},
    {DType::kF32, "f"},  {DType::kF64, "d"}, {DType::kC64, "Zf"}, {DType::kC128, "Zd"}};

const char* FormatOf(DType d) {
  for (const Format& f : kFormats)
    if (f.dtype == d) return f.code;
  return nullptr;
}

std::optional<DType> DTypeOfFormat(const char* code) {
  if (!code) return DType::kU8;
  if (*code == '@' || *code == '=' || *code == '<') ++code;
  for (const Format& f : kFormats)
    if (std::strcmp(f.code, code) == 0) return f.dtype;
  if (std::strcmp(code, "q") == 0) return DType::kI64;
  if (std::strcmp(code, "Q") == 0) return DType::kU64;
  return std::nullopt;
}

void ReleaseBuffer(void* context) {
  auto* view = static_cast<Py_buffer*>(context);
  if (Py_IsInitialized()) {
    GilAcquire gil;
    PyBuffer_Release(view);
  }
  delete view;
}

struct BufferObject {
  PyObject_HEAD Tensor tensor;
  Storage memory;    // the tensor may get another
  Py_ssize_t* dims;  // shape, then strides in bytes
};
PyTypeObject BufferType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyBufferProcs g_buffer_procs;

int GetBuffer(PyObject* o, Py_buffer* view, int flags) {
  auto* self = reinterpret_cast<BufferObject*>(o);
  const Tensor& t = self->tensor;
  if (t.keys().has(keys::kNoData)) {
    PyErr_SetString(PyExc_BufferError,
                    "A tensor of a wrapper subclass has no memory of its own; ask the tensor that it wraps.");
    return -1;
  }
  const bool read_only = t.impl()->has_flag(MICA_TENSOR_READ_ONLY);
  if (read_only && (flags & PyBUF_WRITABLE)) {
    PyErr_SetString(PyExc_BufferError, "The tensor's memory is read-only.");
    return -1;
  }
  view->buf = t.data();
  view->obj = Py_NewRef(o);
  view->itemsize = t.itemsize();
  view->len = t.numel() * t.itemsize();
  view->readonly = read_only;
  view->format = const_cast<char*>(FormatOf(t.dtype()));
  view->ndim = static_cast<int>(t.ndim());
  view->shape = self->dims;
  view->strides = self->dims + t.ndim();
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}

PyObject* BufferNew(PyTypeObject* type, PyObject* args, PyObject*) {
  return Guarded([&] {
    PyObject* object;
    int is_kept = 0;  // beyond the call, so that the memory may not move
    if (!PyArg_ParseTuple(args, "O!|p", &TensorType, &object, &is_kept)) throw PythonErrorIsSet();
    MICA_CHECK(!IsLazy(Unwrap(object)), "Can't call numpy() on Tensor that has ",
               Unwrap(object).keys().has(keys::kConjugate) ? "conjugate" : "negative",
               " bit set, since its memory has other numbers than it shows. Use tensor.resolve_",
               Unwrap(object).keys().has(keys::kConjugate) ? "conj" : "neg", "().numpy() instead.");
    const Tensor t = frames::Readable(Unwrap(object), "a NumPy array of it");
    MICA_CHECK_TYPE(t.device().is_cpu(), "Only a tensor on cpu can become a NumPy array; this one is ",
                    t.ToString(), ". Use x.cpu() first.");
    MICA_CHECK_TYPE(FormatOf(t.dtype()), "NumPy has no dtype like ", Name(t.dtype()),
                    "; convert with x.float() first.");
    Ref result = Own(type->tp_alloc(type, 0));
    auto* self = reinterpret_cast<BufferObject*>(result.get());
    new (&self->tensor) Tensor(t);
    new (&self->memory) Storage(t.storage());
    if (is_kept) t.impl()->storage->Pin();
    self->dims = new Py_ssize_t[2 * t.ndim() + 1];
    for (int64_t i = 0; i < t.ndim(); ++i) {
      self->dims[i] = t.sizes()[i];
      self->dims[t.ndim() + i] = t.strides()[i] * t.itemsize();
    }
    return result.release();
  });
}

void BufferDealloc(PyObject* o) {
  auto* self = reinterpret_cast<BufferObject*>(o);
  self->tensor.~Tensor();
  self->memory.~Storage();
  delete[] self->dims;
  Py_TYPE(o)->tp_free(o);
}

}  // namespace

Tensor TensorFromBuffer(PyObject* object, bool kept) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object, view.get(), PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(object, view.get(), PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
      if (!IsNumpyArray(object)) throw PythonErrorIsSet();
      PyErr_Clear();
      const Ref dtype = Own(PyObject_GetAttrString(object, "dtype"));
      const Ref name = Own(PyObject_Str(dtype.get()));
      MICA_THROW(kType, "An array of dtype (", std::string(StrView(name.get())), ") has no mica.dtype.");
    }
    if (kept)
      Check(PyErr_WarnEx(PyExc_UserWarning,
                         "The given buffer is not writable, and Mica does not support non-writable tensors: "
                         "writing the tensor would write the read-only buffer.",
                         1));
  }
  struct Guard {
    Py_buffer* view;
    ~Guard() {
      if (view) PyBuffer_Release(view);
    }
  } guard{view.get()};
  const std::optional<DType> dtype = DTypeOfFormat(view->format);
  MICA_CHECK_VALUE(dtype || (*view->format != '>' && *view->format != '!'), "An array of format (",
                   view->format, ") has another byte order than the machine; convert it first, as by ",
                   "array.astype(array.dtype.newbyteorder('=')).");
  MICA_CHECK_TYPE(dtype, "An array of format (", view->format,
                  ") has no mica.dtype; supported are bool, the integers of 8 to 64 bits, "
                  "float16, float32, float64, complex64 and complex128 in native byte order.");
  Dims sizes, strides;
  int64_t extent = 1;
  for (int i = 0; i < view->ndim; ++i) {
    const int64_t stride = view->strides ? view->strides[i] : view->itemsize;
    MICA_CHECK_VALUE(stride >= 0, "The stride (", stride, " bytes) of dimension (", i,
                     ") of the array is negative, which tensors do not support; pass array.copy().");
    MICA_CHECK_VALUE(stride % view->itemsize == 0, "The stride (", stride, " bytes) of dimension (", i,
                     ") of the array is no multiple of the element size (", view->itemsize, " bytes).");
    sizes.push_back(view->shape ? view->shape[i] : view->len / view->itemsize);
    strides.push_back(stride / view->itemsize);
    extent += (sizes.back() - 1) * strides.back();
  }
  if (view->len == 0) extent = 0;
  guard.view = nullptr;
  Py_buffer* raw = view.release();
  Storage storage = Storage::FromMemory(raw->buf, extent * ItemSize(*dtype), Device{}, ReleaseBuffer, raw);
  return Tensor::Steal(TensorImpl::Make(std::move(storage), 0, sizes, strides, *dtype));
}

void InitBufferType(PyObject* module) {
  g_buffer_procs.bf_getbuffer = GetBuffer;
  BufferType.tp_name = "mica._C._TensorBuffer";
  BufferType.tp_basicsize = sizeof(BufferObject);
  BufferType.tp_flags = Py_TPFLAGS_DEFAULT;
  BufferType.tp_new = BufferNew;
  BufferType.tp_dealloc = BufferDealloc;
  BufferType.tp_as_buffer = &g_buffer_procs;
  Check(PyType_Ready(&BufferType));
  Check(PyModule_AddObjectRef(module, "_TensorBuffer", reinterpret_cast<PyObject*>(&BufferType)));
}

}  // namespace mica::python
