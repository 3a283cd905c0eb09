// The parts of generated kernels that need no template.
#include "keys/autograd/kernel.h"

namespace mica::autograd {

void Link(Node& node, std::initializer_list<const Tensor*> inputs) {
  node.SetNumNext(static_cast<int>(inputs.size()));
  int i = 0;
  for (const Tensor* t : inputs) node.next(i++) = GradientEdge(*t);
}

void Link(Node& node, std::initializer_list<const Tensor*> inputs, TensorSpan list) {
  node.SetNumNext(static_cast<int>(inputs.size()) + static_cast<int>(list.size()));
  int i = 0;
  for (const Tensor* t : inputs) node.next(i++) = GradientEdge(*t);
  for (const Tensor& t : list) node.next(i++) = GradientEdge(t);
}

bool HasEdges(const Node& node, int first) {
  for (int i = first; i < node.num_next(); ++i)
    if (HasEdge(node, i)) return true;
  return false;
}

bool WantsAny(const Node& node, int first) {
  for (int i = first; i < node.num_next(); ++i)
    if (node.Wants(i)) return true;
  return false;
}

void SavedTensors::Save(TensorSpan list) {
  size_ = list.size();
  items_ = std::make_unique<SavedTensor[]>(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i) items_[static_cast<size_t>(i)].Save(list[i]);
}

std::vector<Tensor> SavedTensors::Unpack(Node* owner) const {
  std::vector<Tensor> list(static_cast<size_t>(size_));
  for (size_t i = 0; i < list.size(); ++i) list[i] = items_[i].Unpack(owner);
  return list;
}

void SavedTensors::Reset() {
  for (int64_t i = 0; i < size_; ++i) items_[static_cast<size_t>(i)].Reset();
}

Tensor GradOrZeros(const Node& node, const Tensor* grads, int i) {
  if (grads[i].defined()) return grads[i];
  const OutputInfo& info = node.output(i);
  return info.defined ? ops::ZerosOf(info.sizes(), info.dtype, info.device) : Tensor();
}

Tensor ZerosFor(const Node& node, int i) {
  const OutputInfo& info = node.input(i);
  return ops::ZerosOf(info.sizes(), info.dtype, info.device);
}

void PutList(std::vector<Tensor> list, Node& node, int first, Tensor* out) {
  MICA_INTERNAL(static_cast<int>(list.size()) == node.num_next() - first, "The formula of ", node.name(),
                " returned ", list.size(), " gradients for ", node.num_next() - first, " inputs.");
  for (size_t i = 0; i < list.size(); ++i) out[first + static_cast<int>(i)] = std::move(list[i]);
}

void KeepUnrecorded(const Tensor& view) {
  if (!view.is_view() || !RequiresGrad(view) || view.is_inference()) return;
  EnsureMeta(view).attr_version = view.version();
}

}  // namespace mica::autograd
