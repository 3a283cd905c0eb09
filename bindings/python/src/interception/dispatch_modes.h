// Interception at the level of operators: dispatch modes and tensor subclasses with
// __mica_dispatch__ (torch's spelling __torch_dispatch__ is accepted).
//
// Both are layers below Autograd (docs/design.md, "Layers"), so that they see
// the operators of a backward pass and the decompositions of composites. The key
// DispatchMode is included in a thread's calls while a mode is active on it; the key
// PythonSubclass stands on tensors of a subclass that wants operators. Their kernels are
// boxed fallbacks, registered when the first mode or subclass comes.
#pragma once

#include <vector>

#include "bindings/python/src/module/object.h"
#include "tensor/tensor.h"

namespace mica::python {

// Registers the layers' kernels; does nothing the second time.
void StartDispatchLayers();

// While it lives, no mode that was active on this thread is; what an interceptor enters meanwhile is.
class WithoutModes {
 public:
  WithoutModes();
  ~WithoutModes();
  WithoutModes(const WithoutModes&) = delete;
  WithoutModes& operator=(const WithoutModes&) = delete;

 private:
  std::vector<Ref> modes_;
};

void InitDispatchModes(PyObject* module);
void InitSubclasses(PyObject* module);  // subclasses.cc

}  // namespace mica::python
