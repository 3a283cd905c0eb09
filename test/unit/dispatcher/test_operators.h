// Operators, kernels and layers that the dispatcher's tests define for themselves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dispatcher/calls/thread_state.h"
#include "dispatcher/registration/registration.h"
#include "dispatcher/tables/keys.h"
#include "dispatcher/tables/operator.h"
#include "tensor/tensor.h"

namespace mica::testing {

// Kernels note that they ran here.
inline std::vector<std::string>& Trace() {
  static thread_local std::vector<std::string> trace;
  return trace;
}

// A boxed kernel at a backend: notes its context (a name) and returns 7 + the
// number of arguments.
inline void LeafKernel(const BoxedKernel& k, const Operator&, KeySet, const MicaValue*, int64_t n,
                       MicaValue* results) {
  Trace().push_back(static_cast<const char*>(k.context));
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = 7 + n;
}

// A boxed kernel at a layer: notes its name and passes the call on below the layer
// of the same name.
inline void PassOnKernel(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args,
                         int64_t n, MicaValue* results) {
  const char* name = static_cast<const char*>(k.context);
  Trace().push_back(name);
  op.RedispatchBoxed(keys & KeySet::Below(LayerBit(name)), args, n, results);
}

inline BoxedKernel Leaf(const char* name) { return {&LeafKernel, const_cast<char*>(name), nullptr}; }
inline BoxedKernel PassOn(const char* layer) { return {&PassOnKernel, const_cast<char*>(layer), nullptr}; }

inline int64_t CallWithTensor(const Operator& op, const Tensor& t) {
  MicaValue arg;
  arg.tag = MICA_VALUE_TENSOR;
  arg.u.tensor = t.impl();
  MicaValue result;
  op.CallBoxed(&arg, 1, &result);
  return result.u.i;
}

inline int Layer(const char* name, const char* after, const char* before) {
  return RegisterLayer(name, {after, before}).value();
}

}  // namespace mica::testing
