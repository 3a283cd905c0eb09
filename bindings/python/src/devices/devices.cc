// What mica._devices is made of: devices, streams, events and the CPU fallback, as
// functions of plain values; memory.cc has the rest. A stream is (device, handle); an event
// is a capsule. Calls that wait give the GIL up.
#include <memory>

#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/module/init.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/streams.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/tables/fallback.h"

namespace mica::python {
namespace {

constexpr const char* kEventName = "mica.event";
constexpr const char* kStreamName = "mica.stream";

PyObject* FromHandle(uint64_t handle) { return PyLong_FromUnsignedLongLong(handle); }

// A device, and the handle of one of its streams.
StreamRef ToStream(PyObject* device, PyObject* handle) {
  const unsigned long long bits = PyLong_Check(handle) ? PyLong_AsUnsignedLongLong(handle) : ~0ULL;
  if (!PyLong_Check(handle) || PyErr_Occurred()) {
    PyErr_Clear();
    Raise(PyExc_ValueError, "The handle (" + std::string(StrView(Own(PyObject_Repr(handle)).get())) +
                                ") of a stream is no int from 0 to 2^64 - 1.");
  }
  return {ToDevice(device), bits};
}

Event& EventOf(PyObject* capsule) {
  void* event = PyCapsule_GetPointer(capsule, kEventName);
  if (!event) throw PythonErrorIsSet();
  return *static_cast<Event*>(event);
}

PyObject* Properties(PyObject*, PyObject* device) {
  return Guarded([&] {
    const Device asked = ToDevice(device);
    const DeviceProperties p = PropertiesOf(asked);
    Ref found = Own(Py_BuildValue("{s:s,s:L,s:L}", "name", p.name.c_str(), "total_memory",
                                  static_cast<long long>(p.total_memory), "free_memory",
                                  static_cast<long long>(p.free_memory)));
    const auto add = [&](const char* name, PyObject* value) {
      Check(PyDict_SetItemString(found.get(), name, Own(value).get()));
    };
    if (!p.architecture.empty()) add("architecture", NewStr(p.architecture));
    if (p.multiprocessors > 0) add("multiprocessors", PyLong_FromLong(p.multiprocessors));
    if (p.warp_size > 0) add("warp_size", PyLong_FromLong(p.warp_size));
    return found.release();
  });
}
// _device_attribute(device, key) -> int or None
PyObject* Attribute(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *device, *key;
    if (!PyArg_ParseTuple(args, "OU:_device_attribute", &device, &key)) throw PythonErrorIsSet();
    const std::optional<int64_t> found = AttributeOf(ToDevice(device), StrView(key));
    return found ? PyLong_FromLongLong(*found) : NewNone();
  });
}
// _can_access_peer(device, peer)
PyObject* PeerAccess(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *device, *peer;
    if (!PyArg_ParseTuple(args, "OO:_can_access_peer", &device, &peer)) throw PythonErrorIsSet();
    return NewBool(CanAccessPeer(ToDevice(device), ToDevice(peer)));
  });
}
// _priority_range(device) -> (lowest, highest)
PyObject* Priorities(PyObject*, PyObject* device) {
  return Guarded([&] {
    const auto [least, greatest] = PriorityRange(ToDevice(device));
    return Py_BuildValue("ii", least, greatest);
  });
}
PyObject* DefaultDevice(PyObject*, PyObject*) {
  return Guarded([&] { return FromDevice(CurrentThread().default_device); });
}
// _set_default_device(mica.device)
PyObject* SetDefaultDevice(PyObject*, PyObject* device) {
  return Guarded([&] {
    MakeDefault(device);
    return NewNone();
  });
}

PyObject* CurrentNumber(PyObject*, PyObject* name) {
  return Guarded([&] {
    const int backend = BackendIndex(StrView(name));
    return PyLong_FromLong(backend < 0 ? 0 : CurrentDeviceNumber(backend));
  });
}
PyObject* SetCurrentNumber(PyObject*, PyObject* device) {
  return Guarded([&] {
    MakeCurrent(ToDevice(device));
    return NewNone();
  });
}

// ---- streams and events

PyObject* CurrentStreamFunction(PyObject*, PyObject* device) {
  return Guarded([&] { return FromHandle(CurrentStream(ToDevice(device))); });
}
template <typename F>
PyObject* WithStream(PyObject* args, F&& f) {
  return Guarded([&] {
    PyObject *device, *handle;
    if (!PyArg_ParseTuple(args, "OO", &device, &handle)) throw PythonErrorIsSet();
    return f(ToStream(device, handle));
  });
}
PyObject* ExchangeStreamFunction(PyObject*, PyObject* args) {
  return WithStream(args, [](const StreamRef& s) { return FromHandle(ExchangeStream(s.device, s.handle)); });
}
// (handle, what holds the stream as long as it lives)
PyObject* WithHolder(Stream stream) {
  const uint64_t handle = stream.ref().handle;
  const Ref holder = Own(PyCapsule_New(new Stream(std::move(stream)), kStreamName, [](PyObject* capsule) {
    delete static_cast<Stream*>(PyCapsule_GetPointer(capsule, kStreamName));
  }));
  return Py_BuildValue("KO", static_cast<unsigned long long>(handle), holder.get());
}
PyObject* NewStream(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject* device;
    int priority;
    if (!PyArg_ParseTuple(args, "Oi", &device, &priority)) throw PythonErrorIsSet();
    return WithHolder(Stream::Create(ToDevice(device), priority));
  });
}
PyObject* ShareStream(PyObject*, PyObject* args) {
  return WithStream(args, [](const StreamRef& s) { return WithHolder(Stream::Share(s)); });
}
PyObject* StreamSynchronize(PyObject*, PyObject* args) {
  return WithStream(args, [](const StreamRef& s) {
    {
      GilRelease released;
      SynchronizeStream(s);
    }
    return NewNone();
  });
}
PyObject* StreamQuery(PyObject*, PyObject* args) {
  return WithStream(args, [](const StreamRef& s) { return NewBool(QueryStream(s)); });
}
PyObject* Synchronize(PyObject*, PyObject* device) {
  return Guarded([&] {
    const Device d = ToDevice(device);
    {
      GilRelease released;
      SynchronizeDevice(d);
    }
    return NewNone();
  });
}
PyObject* RecordStreamFunction(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *tensor, *device, *handle;
    if (!PyArg_ParseTuple(args, "O!OO", &TensorType, &tensor, &device, &handle)) throw PythonErrorIsSet();
    const Tensor& t = Unwrap(tensor);
    const StreamRef stream = ToStream(device, handle);
    MICA_CHECK(t.device() == stream.device, "The tensor is on the device (", t.device().ToString(),
               "), and the stream belongs to (", stream.device.ToString(), ").");
    RecordStream(t, stream.handle);
    return NewNone();
  });
}
// _new_event(timed, sleeps)
PyObject* NewEvent(PyObject*, PyObject* args) {
  return Guarded([&] {
    int timed, sleeps;
    if (!PyArg_ParseTuple(args, "pp:_new_event", &timed, &sleeps)) throw PythonErrorIsSet();
    const uint64_t flags = (timed ? MICA_EVENT_TIMED : 0) | (sleeps ? MICA_EVENT_SLEEPS : 0);
    return Check(PyCapsule_New(new Event(flags), kEventName, [](PyObject* capsule) {
      delete static_cast<Event*>(PyCapsule_GetPointer(capsule, kEventName));
    }));
  });
}
template <typename F>
PyObject* WithEventAndStream(PyObject* args, F&& f) {
  return Guarded([&] {
    PyObject *event, *device, *handle;
    if (!PyArg_ParseTuple(args, "OOO", &event, &device, &handle)) throw PythonErrorIsSet();
    f(EventOf(event), ToStream(device, handle));
    return NewNone();
  });
}
PyObject* EventRecord(PyObject*, PyObject* args) {
  return WithEventAndStream(args, [](Event& e, const StreamRef& s) { e.Record(s); });
}
PyObject* EventWait(PyObject*, PyObject* args) {
  return WithEventAndStream(args, [](Event& e, const StreamRef& s) { e.Wait(s); });
}
PyObject* EventSynchronize(PyObject*, PyObject* event) {
  return Guarded([&] {
    Event& e = EventOf(event);
    {
      GilRelease released;
      e.Synchronize();
    }
    return NewNone();
  });
}
PyObject* EventQuery(PyObject*, PyObject* event) {
  return Guarded([&] { return NewBool(EventOf(event).Query()); });
}
PyObject* EventElapsed(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *start, *end;
    if (!PyArg_ParseTuple(args, "OO", &start, &end)) throw PythonErrorIsSet();
    return PyFloat_FromDouble(EventOf(start).ElapsedMilliseconds(EventOf(end)));
  });
}

// ---- the CPU fallback

// _set_fallback(policy or None) -> the old one
PyObject* SetFallback(PyObject*, PyObject* policy) {
  return Guarded([&] {
    const FallbackPolicy old = GetFallbackPolicy();
    if (policy != Py_None) SetFallbackPolicy(ParseFallbackPolicy(StrView(policy)));
    return NewStr(Name(old));
  });
}
PyObject* FallbackCountsFunction(PyObject*, PyObject* reset) {
  return Guarded([&] {
    Ref list = Own(PyList_New(0));
    for (const FallbackCount& c : FallbackCounts()) {
      const Ref item =
          Own(Py_BuildValue("(ssL)", c.backend.c_str(), c.op.c_str(), static_cast<long long>(c.calls)));
      Check(PyList_Append(list.get(), item.get()));
    }
    if (ToBool(reset)) ResetFallbackCounts();
    return list.release();
  });
}

PyObject* FallbackWasSaid(PyObject*, PyObject*) { return NewBool(WasFallbackSaid()); }

PyMethodDef kFunctions[] = {{"_device_properties", Properties, METH_O, nullptr},
                            {"_device_attribute", Attribute, METH_VARARGS, nullptr},
                            {"_can_access_peer", PeerAccess, METH_VARARGS, nullptr},
                            {"_priority_range", Priorities, METH_O, nullptr},
                            {"_default_device", DefaultDevice, METH_NOARGS, nullptr},
                            {"_set_default_device", SetDefaultDevice, METH_O, nullptr},
                            {"_current_device_number", CurrentNumber, METH_O, nullptr},
                            {"_set_current_device", SetCurrentNumber, METH_O, nullptr},
                            {"_current_stream", CurrentStreamFunction, METH_O, nullptr},
                            {"_exchange_stream", ExchangeStreamFunction, METH_VARARGS, nullptr},
                            {"_new_stream", NewStream, METH_VARARGS, nullptr},
                            {"_share_stream", ShareStream, METH_VARARGS, nullptr},
                            {"_stream_synchronize", StreamSynchronize, METH_VARARGS, nullptr},
                            {"_stream_query", StreamQuery, METH_VARARGS, nullptr},
                            {"_synchronize", Synchronize, METH_O, nullptr},
                            {"_record_stream", RecordStreamFunction, METH_VARARGS, nullptr},
                            {"_new_event", NewEvent, METH_VARARGS, nullptr},
                            {"_event_record", EventRecord, METH_VARARGS, nullptr},
                            {"_event_wait", EventWait, METH_VARARGS, nullptr},
                            {"_event_synchronize", EventSynchronize, METH_O, nullptr},
                            {"_event_query", EventQuery, METH_O, nullptr},
                            {"_event_elapsed", EventElapsed, METH_VARARGS, nullptr},
                            {"_set_fallback", SetFallback, METH_O, nullptr},
                            {"_fallback_counts", FallbackCountsFunction, METH_O, nullptr},
                            {"_fallback_was_said", FallbackWasSaid, METH_NOARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitDevices(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
