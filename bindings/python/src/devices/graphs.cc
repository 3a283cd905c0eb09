// What mica's graph classes are made of: recorded work of a stream, as a capsule.
#include "dispatcher/devices/graphs.h"
#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/module/init.h"

namespace mica::python {
namespace {

constexpr const char* kGraphName = "mica.graph";

DeviceGraph& GraphOf(PyObject* capsule) {
  void* graph = PyCapsule_GetPointer(capsule, kGraphName);
  if (!graph) throw PythonErrorIsSet();
  return *static_cast<DeviceGraph*>(graph);
}

PyObject* NewGraph(PyObject*, PyObject*) {
  return Guarded([&] {
    return Check(PyCapsule_New(new DeviceGraph(), kGraphName, [](PyObject* capsule) {
      auto* graph = static_cast<DeviceGraph*>(PyCapsule_GetPointer(capsule, kGraphName));
      GilRelease released;  // it waits for its last replay
      delete graph;
    }));
  });
}

// _graph_begin(graph, device, stream, pool or 0)
PyObject* GraphBegin(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *graph, *device;
    unsigned long long stream, pool;
    if (!PyArg_ParseTuple(args, "OOKK", &graph, &device, &stream, &pool)) throw PythonErrorIsSet();
    const StreamRef ref{ToDevice(device), stream};
    DeviceGraph& begun = GraphOf(graph);
    {
      GilRelease released;  // it waits for threads that wait for the device
      begun.Begin(ref, pool ? MemoryPool::Of(ref.device, pool) : nullptr);
    }
    return NewNone();
  });
}
PyObject* GraphEnd(PyObject*, PyObject* graph) {
  return Guarded([&] {
    DeviceGraph& ended = GraphOf(graph);
    {
      GilRelease released;  // as _graph_begin
      ended.End();
    }
    return NewNone();
  });
}
PyObject* GraphAbandon(PyObject*, PyObject* graph) {
  return Guarded([&] {
    DeviceGraph& ended = GraphOf(graph);
    {
      GilRelease released;
      ended.Abandon();
    }
    return NewNone();
  });
}
PyObject* GraphReplay(PyObject*, PyObject* graph) {
  return Guarded([&] {
    GraphOf(graph).Replay();
    return NewNone();
  });
}
PyObject* GraphReset(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    DeviceGraph& graph = GraphOf(capsule);
    MICA_CHECK(!graph.work() || !graph.work()->recording(),
               "The graph is being recorded; end the recording before reset().");
    std::shared_ptr<RecordedWork> work = graph.Take();
    {
      GilRelease released;  // it waits for its last replay
      GiveUp(std::move(work));
      work = nullptr;
    }
    return NewNone();
  });
}
// (device, pool) of what is or was recorded, or None
PyObject* GraphPlace(PyObject*, PyObject* capsule) {
  return Guarded([&]() -> PyObject* {
    const RecordedWork* const work = GraphOf(capsule).work();
    if (!work) return NewNone();
    const Ref device = Own(FromDevice(work->device()));
    return Py_BuildValue("OK", device.get(), static_cast<unsigned long long>(work->pool().id()));
  });
}
PyObject* NewPoolId(PyObject*, PyObject*) {
  return Guarded([&] { return PyLong_FromUnsignedLongLong(MemoryPool::NewId()); });
}
PyObject* IsRecording(PyObject*, PyObject* device) {
  return Guarded([&] { return NewBool(RecordingOn(ToDevice(device)) != nullptr); });
}

PyMethodDef kFunctions[] = {
    {"_new_graph", NewGraph, METH_NOARGS, nullptr},  {"_graph_begin", GraphBegin, METH_VARARGS, nullptr},
    {"_graph_end", GraphEnd, METH_O, nullptr},       {"_graph_abandon", GraphAbandon, METH_O, nullptr},
    {"_graph_replay", GraphReplay, METH_O, nullptr}, {"_graph_reset", GraphReset, METH_O, nullptr},
    {"_graph_place", GraphPlace, METH_O, nullptr},   {"_new_pool_id", NewPoolId, METH_NOARGS, nullptr},
    {"_is_recording", IsRecording, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitGraphs(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
