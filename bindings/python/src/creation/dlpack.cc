// DLPack both ways: capsules with and without version (DLPack 1.0), shared memory,
// ownership through the capsule's deleter.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bindings/python/src/creation/creation.h"
#include "bindings/python/src/devices/backends.h"
#include "bindings/python/src/operators/arguments.h"
#include "dispatcher/devices/device_memory.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/frames/frames.h"

namespace mica::python {
namespace {

// DLPack's two managed structs; the tensor itself is MicaDLTensor.
struct DLManaged {
  MicaDLTensor tensor;
  void* context;
  void (*deleter)(DLManaged*);
};
struct DLManagedVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedVersioned*);
  uint64_t flags;
  MicaDLTensor tensor;
};
constexpr uint64_t kReadOnly = 1;
constexpr uint64_t kCopied = 2;
constexpr const char* kName = "dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";

template <typename Managed>
void DeleteExported(Managed* managed) {
  Tensor::Steal(static_cast<TensorImpl*>(managed->context));
  delete managed;
}
template <typename Managed>
void DeleteImported(void* context) {
  auto* managed = static_cast<Managed*>(context);
  if (managed->deleter) managed->deleter(managed);
}
// Memory of a device goes back when the kernels that were queued on it have ended.
template <typename Managed>
struct Lent {
  Device device;
  Managed* managed;
  static void Return(void* context) {
    const std::unique_ptr<Lent> lent(static_cast<Lent*>(context));
    AfterQueuedWork(lent->device, [managed = lent->managed] { DeleteImported<Managed>(managed); });
  }
};

// A capsule that nobody consumed deletes its tensor.
void DestroyCapsule(PyObject* capsule) {
  if (void* p = PyCapsule_IsValid(capsule, kName) ? PyCapsule_GetPointer(capsule, kName) : nullptr) {
    DeleteImported<DLManaged>(p);
  } else if (void* v = PyCapsule_IsValid(capsule, kVersionedName)
                           ? PyCapsule_GetPointer(capsule, kVersionedName)
                           : nullptr) {
    DeleteImported<DLManagedVersioned>(v);
  }
}

template <typename Managed>
PyObject* Export(const Tensor& t, const char* name, uint64_t flags) {
  t.data();  // which has its memory from here on
  auto* managed = new Managed();
  managed->tensor = t.impl()->dl;
  managed->context = Tensor(t).release();
  managed->deleter = DeleteExported<Managed>;
  if constexpr (std::is_same_v<Managed, DLManagedVersioned>) {
    managed->major = 1;
    managed->minor = 0;
    managed->flags = flags | (t.impl()->has_flag(MICA_TENSOR_READ_ONLY) ? kReadOnly : 0);
  }
  PyObject* capsule = PyCapsule_New(managed, name, DestroyCapsule);
  if (!capsule) DeleteExported(managed);
  return Check(capsule);
}

// _to_dlpack(tensor, versioned, copied): `copied` says that the tensor was made for the capsule.
PyObject* ToDlpack(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject* object;
    int versioned, copied;
    if (!PyArg_ParseTuple(args, "O!pp:_to_dlpack", &TensorType, &object, &versioned, &copied))
      throw PythonErrorIsSet();
    if (IsLazy(Unwrap(object)))
      Raise(
          PyExc_BufferError,
          "Can't export tensors with the conjugate bit or the negative bit set, since their memory has other "
          "numbers than they show; use x.resolve_conj() or x.resolve_neg().");
    const Tensor t = frames::Readable(Unwrap(object), "a DLPack capsule");
    MICA_CHECK_KIND(kType, !t.device().is_meta(), "A tensor on meta has no memory to share.");
    if (t.requires_grad())
      Raise(PyExc_BufferError,
            "A tensor that requires grad cannot be shared through DLPack; use x.detach().");
    return versioned ? Export<DLManagedVersioned>(t, kVersionedName, copied ? kCopied : 0)
                     : Export<DLManaged>(t, kName, 0);
  });
}

// The backends whose memory has DLPack's number, and that have a device; plugins that were found are opened.
std::vector<int> BackendsOfType(int32_t type) {
  std::vector<int> found;
  for (const std::string& name : Accelerators(true)) {
    const int backend = BackendIndex(name);
    if (DlpackTypeOf(backend) == type) found.push_back(backend);
  }
  return found;
}

// The device of memory that another library gives. `wanted` is the backend that the caller names, or -1.
Device DeviceOf(const MicaDLDevice& given, int wanted) {
  constexpr int32_t kCpu = 1, kCudaHost = 3, kRocmHost = 11, kCuda = 2, kCudaManaged = 13;
  const int32_t type = given.device_type == kCudaManaged ? kCuda : given.device_type;
  if (type == kCpu || type == kCudaHost || type == kRocmHost) return {};
  std::vector<int> backends = BackendsOfType(type);
  if (std::find(backends.begin(), backends.end(), wanted) != backends.end()) backends = {wanted};
  if (backends.empty())
    Raise(PyExc_BufferError,
          absl::StrCat("A DLPack tensor of device type (", type,
                       ") cannot be imported: no loaded backend with a device has that type."));
  if (backends.size() > 1)
    Raise(PyExc_BufferError, absl::StrCat("A DLPack tensor of device type (", type,
                                          ") cannot be imported: that is the type of several backends, (",
                                          BackendName(backends[0]), ") and (", BackendName(backends[1]),
                                          ") among them; say which with from_dlpack(x, device=...)."));
  const Device device{static_cast<int16_t>(backends[0]), static_cast<int16_t>(given.device_id)};
  if (given.device_id < 0 || given.device_id >= DeviceCount(device.backend))
    Raise(PyExc_BufferError, absl::StrCat("A DLPack tensor is on the device number (", given.device_id,
                                          ") of the backend (", BackendName(device.backend), "), which has (",
                                          DeviceCount(device.backend), ") devices."));
  return device;
}

template <typename Managed>
Tensor Import(Managed* managed, int wanted) {
  const MicaDLTensor& dl = managed->tensor;
  struct Guard {
    Managed* m;
    ~Guard() {
      if (m && m->deleter) m->deleter(m);
    }
  } guard{managed};
  // Mica's own capsules say their device, whose type alone may be that of several backends.
  const Device device = managed->deleter == &DeleteExported<Managed>
                            ? Tensor::Borrow(static_cast<TensorImpl*>(managed->context)).device()
                            : DeviceOf(dl.device, wanted);
  const std::optional<DType> dtype = DTypeFromDL(dl.dtype);
  MICA_CHECK_TYPE(dtype, "A DLPack dtype with code (", static_cast<int>(dl.dtype.code), "), ",
                  static_cast<int>(dl.dtype.bits), " bits and ", dl.dtype.lanes, " lanes has no mica.dtype.");
  Dims sizes(dl.shape, dl.shape + dl.ndim), strides(dl.ndim);
  int64_t extent = 1, step = 1;
  bool empty = false;
  for (int i = dl.ndim - 1; i >= 0; --i) {
    strides[i] = dl.strides ? dl.strides[i] : step;
    step *= sizes[i];
    empty |= sizes[i] == 0;
    MICA_CHECK_VALUE(strides[i] >= 0, "The stride (", strides[i], ") of dimension (", i,
                     ") is negative, which tensors do not support.");
    extent += (sizes[i] - 1) * strides[i];
  }
  guard.m = nullptr;
  void* const data = static_cast<char*>(dl.data) + dl.byte_offset;
  const int64_t bytes = (empty ? 0 : extent) * ItemSize(*dtype);
  const bool is_queued_on = device.backend > keys::kMeta;
  Storage storage = is_queued_on ? Storage::FromMemory(data, bytes, device, &Lent<Managed>::Return,
                                                       new Lent<Managed>{device, managed})
                                 : Storage::FromMemory(data, bytes, device, DeleteImported<Managed>, managed);
  return Tensor::Steal(TensorImpl::Make(std::move(storage), 0, sizes, strides, *dtype));
}

// _from_dlpack(capsule, the backend that is meant or None)
PyObject* FromDlpack(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *capsule, *backend;
    if (!PyArg_ParseTuple(args, "OO:_from_dlpack", &capsule, &backend)) throw PythonErrorIsSet();
    const int wanted = backend == Py_None ? -1 : BackendIndex(StrView(backend));
    if (PyCapsule_IsValid(capsule, kVersionedName)) {
      auto* m = static_cast<DLManagedVersioned*>(PyCapsule_GetPointer(capsule, kVersionedName));
      MICA_CHECK(m->major == 1, "A DLPack capsule of version (", m->major, ".", m->minor,
                 ") cannot be read; expected major version 1.");
      Check(PyCapsule_SetName(capsule, "used_dltensor_versioned"));
      return Wrap(Import(m, wanted));
    }
    if (!PyCapsule_IsValid(capsule, kName))
      Raise(PyExc_RuntimeError, "The DLPack capsule was consumed already, or is none.");
    auto* m = static_cast<DLManaged*>(PyCapsule_GetPointer(capsule, kName));
    Check(PyCapsule_SetName(capsule, "used_dltensor"));
    return Wrap(Import(m, wanted));
  });
}

// _dlpack_place(type, number, the backend that is meant or None): the device of another library's tensor
PyObject* DlpackPlace(PyObject*, PyObject* args) {
  return Guarded([&] {
    MicaDLDevice given;
    PyObject* backend;
    if (!PyArg_ParseTuple(args, "iiO:_dlpack_place", &given.device_type, &given.device_id, &backend))
      throw PythonErrorIsSet();
    return FromDevice(DeviceOf(given, backend == Py_None ? -1 : BackendIndex(StrView(backend))));
  });
}

PyObject* DlpackDevice(PyObject*, PyObject* tensor) {
  return Guarded([&] {
    const MicaDLDevice d = TensorIn(tensor, "What has a DLPack device").impl()->dl.device;
    return Check(Py_BuildValue("(ii)", d.device_type, d.device_id));
  });
}

}  // namespace

PyMethodDef kDlpackFunctions[] = {{"_to_dlpack", ToDlpack, METH_VARARGS, nullptr},
                                  {"_from_dlpack", FromDlpack, METH_VARARGS, nullptr},
                                  {"_dlpack_place", DlpackPlace, METH_VARARGS, nullptr},
                                  {"_dlpack_device", DlpackDevice, METH_O, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

}  // namespace mica::python
