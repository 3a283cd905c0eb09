// What mica._devices asks of the caching allocators: statistics, snapshots, limits, and pinned memory.
#include <string>

#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/module/init.h"
#include "dispatcher/devices/pinned_memory.h"
#include "mica/ops/detach.h"
#include "tensor/allocator.h"

namespace mica::python {
namespace {

CachingAllocator& AllocatorOf(PyObject* device) { return AllocatorFor(ToDevice(device)); }

void Put(PyObject* dict, const std::string& name, int64_t value) {
  Check(PyDict_SetItemString(dict, name.c_str(), Own(PyLong_FromLongLong(value)).get()));
}

// torch's names, behind five short ones.
PyObject* ToDict(const AllocatorStats& s) {
  Ref dict = Own(PyDict_New());
  Put(dict.get(), "bytes_in_use", s.allocated.current);
  Put(dict.get(), "bytes_reserved", s.reserved.current);
  Put(dict.get(), "peak_bytes_in_use", s.allocated.peak);
  Put(dict.get(), "allocations", s.blocks.risen);
  Put(dict.get(), "cache_hits", s.cache_hits);
  const auto count = [&](const char* name, const MemoryCount& c) {
    const std::string begin = std::string(name) + ".all.";
    Put(dict.get(), begin + "current", c.current);
    Put(dict.get(), begin + "peak", c.peak);
    Put(dict.get(), begin + "allocated", c.risen);
    Put(dict.get(), begin + "freed", c.fallen);
  };
  count("allocation", s.blocks);
  count("segment", s.segments);
  count("active", s.active_blocks);
  count("inactive_split", s.split_blocks);
  count("allocated_bytes", s.allocated);
  count("reserved_bytes", s.reserved);
  count("active_bytes", s.active);
  count("inactive_split_bytes", s.idle_split);
  count("requested_bytes", s.requested);
  Put(dict.get(), "num_alloc_retries", s.retries);
  Put(dict.get(), "num_ooms", s.out_of_memory);
  Put(dict.get(), "num_device_alloc", s.segments.risen);
  Put(dict.get(), "num_device_free", s.segments.fallen);
  return dict.release();
}

PyObject* MemoryStats(PyObject*, PyObject* device) {
  return Guarded([&] { return ToDict(AllocatorOf(device).stats()); });
}
PyObject* PinnedMemoryStats(PyObject*, PyObject* device) {
  return Guarded([&] { return ToDict(PinnedCacheOf(ToDevice(device).backend).stats()); });
}

// [(address, size, requested, begins a segment, stream, pool, small, state)], in the order of addresses.
PyObject* MemorySnapshot(PyObject*, PyObject* device) {
  return Guarded([&] {
    Ref list = Own(PyList_New(0));
    for (const MemoryBlock& b : AllocatorOf(device).Snapshot()) {
      const char* const state = b.state == BlockMap::State::kInUse     ? "active_allocated"
                                : b.state == BlockMap::State::kWaiting ? "active_pending_free"
                                                                       : "inactive";
      const Ref item = Own(Py_BuildValue(
          "(KLLOKKOs)", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(b.address)),
          static_cast<long long>(b.size), static_cast<long long>(b.requested),
          b.begins_segment ? Py_True : Py_False, static_cast<unsigned long long>(b.owner.stream),
          static_cast<unsigned long long>(b.owner.pool), b.owner.small ? Py_True : Py_False, state));
      Check(PyList_Append(list.get(), item.get()));
    }
    return list.release();
  });
}

PyObject* ResetPeak(PyObject*, PyObject* device) {
  return Guarded([&] {
    AllocatorOf(device).ResetPeak();
    return NewNone();
  });
}
PyObject* ResetTotals(PyObject*, PyObject* device) {
  return Guarded([&] {
    AllocatorOf(device).ResetTotals();
    return NewNone();
  });
}

// It waits for streams.
PyObject* Empty(CachingAllocator& allocator) {
  {
    GilRelease released;
    allocator.EmptyCache();
  }
  return NewNone();
}
PyObject* EmptyCache(PyObject*, PyObject* device) {
  return Guarded([&] { return Empty(AllocatorOf(device)); });
}
PyObject* EmptyPinnedCache(PyObject*, PyObject* device) {
  return Guarded([&] { return Empty(PinnedCacheOf(ToDevice(device).backend)); });
}

PyObject* MemoryLimit(PyObject*, PyObject* device) {
  return Guarded([&] { return PyLong_FromLongLong(AllocatorOf(device).limit()); });
}
PyObject* SetMemoryLimit(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject* device;
    long long bytes;
    if (!PyArg_ParseTuple(args, "OL:set_memory_limit", &device, &bytes)) throw PythonErrorIsSet();
    AllocatorOf(device).SetLimit(bytes);
    return NewNone();
  });
}

// ---- pinned memory

// The backend of a device, or, for None, the first that can pin.
int BackendToPin(PyObject* device) { return device == Py_None ? PinningBackend() : ToDevice(device).backend; }

// _pin_memory(tensor, device or None)
PyObject* PinMemoryFunction(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *tensor, *device;
    if (!PyArg_ParseTuple(args, "O!O", &TensorType, &tensor, &device)) throw PythonErrorIsSet();
    const Tensor& t = Unwrap(tensor);
    const int backend = BackendToPin(device);
    if (IsPinned(t)) return Py_NewRef(tensor);
    return Wrap(PinMemory(ops::detach(t), backend));
  });
}
PyObject* IsPinnedFunction(PyObject*, PyObject* tensor) {
  return Guarded([&] { return NewBool(IsPinned(TensorIn(tensor, "What may be pinned"))); });
}
PyObject* HasPinnedMemoryFunction(PyObject*, PyObject*) {
  return Guarded([&] {
    bool any = false;
    for (int b = 0; b < BackendNameCount(); ++b) any = any || HasPinnedMemory(b);
    return NewBool(any);
  });
}

PyMethodDef kFunctions[] = {{"_memory_stats", MemoryStats, METH_O, nullptr},
                            {"_pinned_memory_stats", PinnedMemoryStats, METH_O, nullptr},
                            {"_memory_snapshot", MemorySnapshot, METH_O, nullptr},
                            {"_reset_peak_memory", ResetPeak, METH_O, nullptr},
                            {"_reset_memory_totals", ResetTotals, METH_O, nullptr},
                            {"_empty_cache", EmptyCache, METH_O, nullptr},
                            {"_empty_pinned_cache", EmptyPinnedCache, METH_O, nullptr},
                            {"_memory_limit", MemoryLimit, METH_O, nullptr},
                            {"_set_memory_limit", SetMemoryLimit, METH_VARARGS, nullptr},
                            {"_pin_memory", PinMemoryFunction, METH_VARARGS, nullptr},
                            {"_is_pinned", IsPinnedFunction, METH_O, nullptr},
                            {"_has_pinned_memory", HasPinnedMemoryFunction, METH_NOARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitMemory(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
