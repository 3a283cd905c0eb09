// Python objects that C++ holds by shared pointers (SharedObject), as Python's garbage collector sees
// them: what tp_traverse and tp_clear of tensors and nodes call. Note [Collector and C++ references].
#pragma once

#include "bindings/python/src/module/object.h"
#include "dispatcher/layers/autograd_interface.h"

namespace mica::python {

// Visits the objects that `show(visitor)` shows: those that nobody else shares.
template <typename Show>
int VisitShared(Show&& show, visitproc visit, void* arg) {
  int stop = 0;
  show([&](std::shared_ptr<void>& object) {
    if (stop == 0 && object.use_count() == 1) stop = visit(static_cast<PyObject*>(object.get()), arg);
  });
  return stop;
}

// Drops them. What dropping one runs finds all of them gone.
template <typename Show>
void ClearShared(Show&& show) {
  std::vector<std::shared_ptr<void>> dropped;
  show([&](std::shared_ptr<void>& object) { dropped.push_back(std::move(object)); });
}

}  // namespace mica::python
