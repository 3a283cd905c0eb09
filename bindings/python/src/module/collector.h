// Python objects that autograd holds for the binding (MicaHeld), as Python's garbage collector sees
// them: what tp_traverse and tp_clear of tensors and nodes call. Note [Collector and C++ references].
#pragma once

#include <mica/autograd.h>

#include <vector>

#include "bindings/python/src/module/object.h"

namespace mica::python {

// Releases a Python object that C++ owns, under the GIL wherever that happens.
void ReleaseHeldObject(void* object);
// A Python object to be held.
inline MicaHeld HoldObject(PyObject* o) { return {Py_NewRef(o), &ReleaseHeldObject}; }

// Visits the Python objects that `show(to, visitor)` shows.
template <typename Show>
int VisitHeldObjects(Show&& show, visitproc visit, void* arg) {
  struct Visit {
    visitproc visit;
    void* arg;
    int stop = 0;
  } state{visit, arg};
  show(&state, [](void* to, const MicaHeld* held) -> int32_t {
    auto& s = *static_cast<Visit*>(to);
    if (s.stop == 0 && held->destroy == &ReleaseHeldObject)
      s.stop = s.visit(static_cast<PyObject*>(held->object), s.arg);
    return 0;
  });
  return state.stop;
}

// Drops them. What dropping one runs finds all of them gone.
template <typename Show>
void ClearHeldObjects(Show&& show) {
  std::vector<Ref> dropped;
  show(&dropped, [](void* to, const MicaHeld* held) -> int32_t {
    if (held->destroy != &ReleaseHeldObject) return 0;
    static_cast<std::vector<Ref>*>(to)->emplace_back(static_cast<PyObject*>(held->object));
    return 1;
  });
}

}  // namespace mica::python
