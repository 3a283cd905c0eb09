// Custom functions: forward and backward in the user's code, as one node.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "keys/autograd/node.h"

namespace mica::autograd {

struct DestroyCustom {
  void (*destroy)(void*) = nullptr;
  void operator()(void* object) const {
    if (destroy) destroy(object);
  }
};
// What a custom function's node was made with, owned.
using CustomObject = std::unique_ptr<void, DestroyCustom>;

class CustomNode final : public Node {
 public:
  CustomNode(const MicaCustomFunction& function, CustomObject object, std::string name)
      : function_(function), object_(std::move(object)), name_(std::move(name)) {}
  void Apply(const Tensor* grads, Tensor* out) override;
  void ReleaseSaved() override {
    if (function_.release_saved) function_.release_saved(object_.get());
  }
  void* ObjectOf(const MicaCustomFunction* function) const override {
    return function == &function_ ? object_.get() : nullptr;
  }
  void VisitHeld(void* to, MicaVisitHeld visit) override {
    if (function_.visit_held) function_.visit_held(object_.get(), to, visit);
  }
  bool RunsBelowAutograd() const override { return false; }
  const char* name() const override { return name_.c_str(); }
  void set_materialize_grads(bool on) { materialize_grads_ = on; }
  void SetInputs(TensorSpan inputs);
  // Once, by the call whose inputs these are; throws else.
  void CheckFinish(TensorSpan inputs);

 protected:
  void Destroy() override;

 private:
  const MicaCustomFunction& function_;
  CustomObject object_;
  const std::string name_;
  bool materialize_grads_ = true;
  // Of custom_node, to compare: not owned, and gone once the call is finished.
  std::optional<absl::InlinedVector<const TensorImpl*, 4>> inputs_;
};

struct CustomOutputs {  // MicaCustomOutputs
  TensorSpan inputs, outputs, dirty, non_differentiable;
  bool materialize_grads;
};

// See MicaAutograd::custom_node and custom_finish.
NodeRef MakeCustomNode(const MicaCustomFunction& function, CustomObject object, std::string name,
                       TensorSpan inputs);
std::vector<Tensor> FinishCustom(Node* node, const CustomOutputs& call);

}  // namespace mica::autograd
