// vmap for mica.func: entering and leaving its frame, and the batches behind its tensors.
// The checks that users see are in mica/func/_vmap.py.
#include <mica/batched.h>

#include "bindings/python/src/module/init.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/tensor/item.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/registration/layer_table.h"
#include "mica/ops/alias.h"
#include "mica/ops/expand.h"
#include "mica/ops/movedim.h"

namespace mica::python {
namespace {

using frames::Frame;

constexpr const char* kScope = "mica.vmap";
constexpr const char* kNeed = "vmap needs the batched plugin.";

// A frame that Python entered, and its payload.
struct Entered {
  Entered(int kind, MicaBatch b, uint64_t tag) : batch(b), scope(kind, &batch, tag) {}
  MicaBatch batch;
  frames::FrameScope scope;
};

const Frame& CurrentVmap() {
  const Frame* frame = frames::Current();
  MICA_CHECK(frame && frame->payload, "No vmap is current on this thread.");
  return *frame;
}

// The tensor, or another of the same place where its base may have got a batch since.
Tensor Brought(const Tensor& t, const Frame& frame) {
  const frames::Wrapper* w = frames::Own(t, frame);
  return w && !w->hidden && t.is_view() ? ops::op::alias::call(t) : t;
}

int VmapKind() { return frames::ProvidedKind("vmap", kNeed); }

// _frame_stack() -> the frames of this thread, innermost last: (kind, tag, None or, of a
// vmap, what _vmap_enter takes).
PyObject* FrameStack(PyObject*, PyObject*) {
  return Guarded([&] {
    Ref list = Own(PyList_New(0));
    const int vmap = frames::Current() ? frames::KindNumber("vmap") : -1;
    for (const Frame* f = frames::Current(); f; f = f->parent) {
      const auto* batch = f->kind == vmap ? static_cast<const MicaBatch*>(f->payload) : nullptr;
      const Ref entered = batch ? Own(Py_BuildValue("(Li)", static_cast<long long>(batch->size),
                                                    static_cast<int>(batch->randomness)))
                                : Own(NewNone());
      const Ref item = Own(Py_BuildValue("(sKO)", frames::KindOf(f->kind).name.c_str(),
                                         static_cast<unsigned long long>(f->tag), entered.get()));
      Check(PyList_Insert(list.get(), 0, item.get()));
    }
    return list.release();
  });
}

// _vmap_enter(examples, randomness: 0 error, 1 same, 2 different, tag=0) -> capsule, which
// the caller gives to _vmap_exit. With the tag of a vmap that ended, its tensors are at home.
PyObject* EnterVmap(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject* examples;
    int randomness;
    unsigned long long tag = 0;
    if (!PyArg_ParseTuple(args, "Oi|K:_vmap_enter", &examples, &randomness, &tag)) throw PythonErrorIsSet();
    auto entered = std::make_unique<Entered>(VmapKind(), MicaBatch{ToInt(examples), randomness, 0}, tag);
    PyObject* capsule = Check(PyCapsule_New(entered.get(), kScope, nullptr));
    static_cast<void>(entered.release());
    return capsule;
  });
}

PyObject* ExitVmap(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    auto* entered = static_cast<Entered*>(PyCapsule_GetPointer(capsule, kScope));
    if (!entered) throw PythonErrorIsSet();
    const bool innermost = frames::Current() == &entered->scope.frame();
    delete entered;
    MICA_CHECK(innermost, "A vmap is left while a transform that was entered inside of it is active.");
    return NewNone();
  });
}

// _vmap_batch(tensor, dim): one example of the current vmap, whose batch lies along `dim`.
PyObject* VmapBatch(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject* o;
    long long dim;
    if (!PyArg_ParseTuple(args, "OL:_vmap_batch", &o, &dim)) throw PythonErrorIsSet();
    Tensor value = TensorIn(o, "An example of vmap");
    const Frame& frame = CurrentVmap();
    if (dim != 0) {
      const frames::LeaveFrame left;
      value = ops::op::movedim_int::call(value, dim, 0);
    }
    return Wrap(frames::Wrap(std::move(value), frame, Tensor(), 1));
  });
}

// _vmap_unbatch(tensor, dim): all examples, along `dim`.
PyObject* VmapUnbatch(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject* o;
    long long dim;
    if (!PyArg_ParseTuple(args, "OL:_vmap_unbatch", &o, &dim)) throw PythonErrorIsSet();
    const Frame& frame = CurrentVmap();
    const Tensor t = Brought(TensorIn(o, "An example of vmap"), frame);
    const frames::Wrapper* w = frames::Own(t, frame);
    const int64_t size = static_cast<const MicaBatch*>(frame.payload)->size;
    const frames::LeaveFrame left;
    Tensor value = w ? w->value : t;
    if (!w || !w->hidden) {
      Dims sizes = {size};
      sizes.insert(sizes.end(), value.sizes().begin(), value.sizes().end());
      value = ops::op::expand::call(value, sizes, false);
    }
    return Wrap(dim == 0 ? std::move(value) : ops::op::movedim_int::call(value, 0, dim));
  });
}

// _vmap_open(tensor) -> (what stands behind it in the parent, whether that has the batch in front).
PyObject* VmapOpen(PyObject*, PyObject* o) {
  return Guarded([&] {
    const Frame& frame = CurrentVmap();
    const Tensor t = Brought(TensorIn(o, "An example of vmap"), frame);
    const frames::Wrapper* w = frames::Own(t, frame);
    const Ref value = Own(Wrap(w ? w->value : t));
    return Py_BuildValue("(OO)", value.get(), w && w->hidden ? Py_True : Py_False);
  });
}

// _vmap_info() -> (number of examples, randomness) of the current vmap.
PyObject* VmapInfo(PyObject*, PyObject*) {
  return Guarded([&] {
    const auto& batch = *static_cast<const MicaBatch*>(CurrentVmap().payload);
    return Py_BuildValue("(Li)", static_cast<long long>(batch.size), static_cast<int>(batch.randomness));
  });
}

// _vmap_rule(operator's name): where its batch rule comes from.
PyObject* VmapRule(PyObject*, PyObject* name) {
  return Guarded([&] {
    const auto& layer = LayerTable<MicaBatched>(MICA_BATCHED_EXTENSION, "layer:vmap", kNeed);
    return NewStr(layer.rule_source(&GetOperator(StrView(name))));
  });
}

// _vmap_text(tensor): what it shows of itself while it stands for a batch; None of others.
PyObject* VmapText(PyObject*, PyObject* o) {
  return Guarded([&] {
    const Tensor& t = TensorIn(o, "An example of vmap");
    return StandsForBatch(t) ? NewStr(t.ToString()) : NewNone();
  });
}

PyMethodDef kFunctions[] = {{"_frame_stack", FrameStack, METH_NOARGS, nullptr},
                            {"_vmap_enter", EnterVmap, METH_VARARGS, nullptr},
                            {"_vmap_exit", ExitVmap, METH_O, nullptr},
                            {"_vmap_batch", VmapBatch, METH_VARARGS, nullptr},
                            {"_vmap_unbatch", VmapUnbatch, METH_VARARGS, nullptr},
                            {"_vmap_open", VmapOpen, METH_O, nullptr},
                            {"_vmap_info", VmapInfo, METH_NOARGS, nullptr},
                            {"_vmap_rule", VmapRule, METH_O, nullptr},
                            {"_vmap_text", VmapText, METH_O, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitVmap(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
