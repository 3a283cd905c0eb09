#include "bindings/python/src/devices/python_device.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include <mica/device.h>
#include "bindings/python/src/module/errors.h"
#include "bindings/python/src/module/kept_text.h"
#include "bindings/python/src/operators/boxing.h"
#include "bindings/python/src/tensor/tensor_object.h"
#include "dispatcher/plugins/host.h"
#include "tensor/error.h"

namespace mica::python {
namespace {

// Memory on the host; everything is done when its call returns.
class HostDevice {
 public:
  HostDevice(std::string name, int count) : name_(std::move(name)), count_(count) {}
  int32_t Count() { return count_; }
  void Properties(int32_t, MicaDeviceProperties* out) { out->name = name_.c_str(); }
  int32_t ExchangeDevice(int32_t device) {
    static thread_local int32_t current = 0;
    return std::exchange(current, device);
  }
  void* Allocate(int32_t, int64_t size) {
    void* data = std::aligned_alloc(64, static_cast<size_t>((size + 63) / 64 * 64));
    if (!data) throw std::bad_alloc();
    return data;
  }
  void Free(int32_t, void* data, int64_t) { std::free(data); }
  uint64_t StreamCreate(int32_t, int32_t) { return ++handles_; }
  void StreamDestroy(int32_t, uint64_t) {}
  void StreamSync(int32_t, uint64_t) {}
  uint64_t EventCreate(int32_t) { return ++handles_; }
  void EventDestroy(int32_t, uint64_t) {}
  void EventRecord(int32_t, uint64_t, uint64_t) {}
  void EventWait(int32_t, uint64_t, uint64_t) {}
  void EventSync(int32_t, uint64_t) {}
  bool EventQuery(int32_t, uint64_t) { return true; }
  void Copy(void* to, MicaDevice, const void* from, MicaDevice, int64_t size, uint64_t) {
    std::memmove(to, from, static_cast<size_t>(size));
  }
  void Fill(int32_t, void* data, uint8_t byte, int64_t size, uint64_t) {
    std::memset(data, byte, static_cast<size_t>(size));
  }

 private:
  const std::string name_;
  const int count_;
  std::atomic<uint64_t> handles_{0};
};

// By name; they live as long as the process, as their tables do.
struct HostDevices {
  std::mutex mutex;
  std::map<std::string, HostDevice*> by_name;
};
HostDevices& AllHostDevices() {
  static HostDevices* devices = new HostDevices();
  return *devices;
}

struct PythonLeaf {
  std::string op;
  PyObject* function;
};

MicaStatus RunPythonLeaf(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results,
                         int64_t num_results) {
  const auto& leaf = *static_cast<const PythonLeaf*>(call->context);
  const schema::FunctionSchema& schema = GetOperator(leaf.op).schema();
  GilAcquire gil;
  try {
    Ref positional = Own(PyTuple_New(schema.NumPositional()));
    Ref kwargs = Own(PyDict_New());
    for (int64_t i = 0; i < n; ++i) {
      const schema::Argument& a = schema.arguments[static_cast<size_t>(i)];
      Ref value = Own(FromValue(args[i], a.type));
      if (i < PyTuple_GET_SIZE(positional.get()))
        PyTuple_SET_ITEM(positional.get(), i, value.release());
      else
        Check(PyDict_SetItemString(kwargs.get(), a.name.c_str(), value.get()));
    }
    const Ref result = Own(PyObject_Call(leaf.function, positional.get(), kwargs.get()));
    if (num_results > 0) GiveResults(schema, result.get(), results);
  } catch (const PythonErrorIsSet&) {
    if (PyErr_ExceptionMatches(PyExc_NotImplementedError)) {
      PyErr_Clear();
      return plugin::BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
    }
    throw PythonException::Take();  // the binding and libmica are of one build
  }
  return nullptr;
}

// A CPU tensor over the memory of a tensor on a device that Python registered.
PyObject* AsHost(PyObject*, PyObject* object) {
  return Guarded([&] {
    MICA_CHECK_TYPE(IsTensor(object), "_as_host takes a tensor; it was given a value of type (",
                    TypeName(object), ").");
    const Tensor& t = Unwrap(object);
    {
      HostDevices& devices = AllHostDevices();
      std::lock_guard lock(devices.mutex);
      MICA_CHECK(devices.by_name.count(BackendName(t.device().backend)),
                 "The memory of a tensor on the device (", t.device().ToString(),
                 ") is not the host's; copy the tensor with x.cpu().");
    }
    auto* owner = new Tensor(t);
    const int64_t bytes = t.storage()->nbytes() - t.storage_offset() * t.itemsize();
    Storage memory = Storage::FromMemory(
        t.data(), bytes, Device{}, [](void* context) { delete static_cast<Tensor*>(context); }, owner);
    return Wrap(Tensor::Steal(TensorImpl::Make(std::move(memory), 0, t.sizes(), t.strides(), t.dtype())));
  });
}

PyMethodDef kFunctions[] = {{"_as_host", AsHost, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

void AddHostDevice(Scope& scope, const char* name, int count) {
  MICA_CHECK_VALUE(count >= 1, "The number of devices (", count, ") is not 1 or more.");
  plugin::Host() = HostTable();
  HostDevices& devices = AllHostDevices();
  std::lock_guard lock(devices.mutex);
  HostDevice*& device = devices.by_name[name];
  MICA_CHECK(device || BackendIndex(name) < 0, "A backend of the name (", name, ") exists already.");
  // One that was disabled may come again; its memory is the host's, whoever frees it.
  device = new HostDevice(name, count);
  const MicaDeviceTable table = plugin::DeviceTableOf(*device);
  const absl::Status status = scope.AddDevice(name, &table);
  MICA_CHECK(status.ok(), std::string(status.message()));
}

void AddPythonLeaf(Scope& scope, const char* op, const char* backend, PyObject* function, const char* file,
                   int line) {
  const std::string full = std::strstr(op, "::") ? op : std::string("mica::") + op;
  GetOperator(full);  // an Error with near names
  MicaKernelRecord record{};
  record.struct_size = sizeof(record);
  record.name = Kept(full);
  record.backend = backend;
  record.boxed = &RunPythonLeaf;
  // The dispatcher's tables may point at it for good.
  record.context = new PythonLeaf{full, Py_NewRef(function)};
  record.file = Kept(file);
  record.line = line;
  const absl::Status status = scope.AddLeaf(record);
  MICA_CHECK(status.ok(), std::string(status.message()));
}

void InitPythonDevice(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
