// AutogradInterface over the engine: mostly one line each.
#include "keys/autograd/interface.h"

#include <algorithm>

#include "keys/autograd/anomaly.h"
#include "keys/autograd/backward.h"
#include "keys/autograd/copy_on_write.h"
#include "keys/autograd/custom.h"
#include "keys/autograd/data_alias.h"
#include "keys/autograd/forward.h"
#include "keys/autograd/grad_frame.h"
#include "keys/autograd/graph_task.h"
#include "keys/autograd/inspect.h"
#include "keys/autograd/meta.h"
#include "keys/autograd/saved_tensor.h"
#include "tensor/shape.h"

namespace mica::autograd {
namespace {

std::atomic<uint64_t> g_next_hook{1};

Node& AsNode(GraphNode* node) { return *static_cast<Node*>(node); }

template <typename List>
void EraseHook(List& list, uint64_t id) {
  std::erase_if(list, [&](const auto& h) { return h.id == id; });
}

// What takes hook `id` out of a list of the node's NodeExtra.
template <typename List>
HookRemover Remover(const Node& node, uint64_t id, List NodeExtra::*list) {
  return [extra = node.weak_extra(), id, list] {
    if (const std::shared_ptr<NodeExtra> e = extra.lock()) EraseHook((*e).*list, id);
  };
}

void VisitHeldBy(Node& node, const AutogradInterface::HeldVisitor& visit) {
  const auto show = [&](std::shared_ptr<void>& held) {
    if (held) visit(held);
  };
  if (std::shared_ptr<void>* context = node.Context()) show(*context);
  NodeExtra* extra = node.extra();
  if (!extra) return;
  for (NodeExtra::TensorPre& h : extra->tensor_pre) show(h.hook.held);
  for (NodeExtra::Pre& h : extra->pre) show(h.hook.held);
  for (NodeExtra::Accumulated& h : extra->accumulated) show(h.hook.held);
  for (NodeExtra::Post& h : extra->post) show(h.hook.held);
  show(extra->data);
}

class Box final : public SavedTensorBox {
 public:
  Box(const Tensor& t, Node* owner, bool is_output) : owner_(owner) {
    if (is_output) {
      saved_.SaveOutput(t, t.defined() && GetMeta(t) ? GetMeta(t)->output_nr : 0);
    } else {
      saved_.Save(t);
    }
  }
  Tensor Unpack() override { return saved_.Unpack(owner_); }

 private:
  Node* owner_;  // holds this box through its saved state
  SavedTensor saved_;
};

void CheckGrad(const Tensor& t, const Tensor& grad) {
  MICA_CHECK(grad.sizes() == t.sizes(), "The gradient's shape ", ShapeText(grad.sizes()),
             " differs from the tensor's shape ", ShapeText(t.sizes()), ".");
  MICA_CHECK(grad.dtype() == t.dtype(), "The gradient's dtype (", Name(grad.dtype()),
             ") differs from the tensor's dtype (", Name(t.dtype()), ").");
  MICA_CHECK(grad.device() == t.device(), "The gradient's device (", grad.device().ToString(),
             ") differs from the tensor's device (", t.device().ToString(), ").");
  MICA_CHECK(!grad.is_same(t), "A tensor cannot be its own gradient.");
}

// What is computed with a dual number is recorded where its value is, outside of the frame: there lie
// its gradient, its node and its hooks.
using forward::Primal;

// A gradient that is given: one with a tangent gives it on.
const Tensor& Cotangent(const Tensor& t) { return forward::HasTangent(t) ? t : Primal(t); }
std::vector<Tensor> Cotangents(TensorSpan given) {
  std::vector<Tensor> cotangents;
  for (const Tensor& t : given) cotangents.push_back(Cotangent(t));
  return cotangents;
}

// Where gradients are asked for, of tensors whose tangents the gradients would not have.
GradientPoints Primals(const GradientPoints& points) {
  GradientPoints primals = points;
  for (GradientPoint& p : primals) {
    const Tensor& t = p.tensor;
    MICA_CHECK_IMPLEMENTED(!forward::HasTangent(t) || !autograd::RequiresGrad(Primal(t)), "The tensor ",
                           t.ToString(),
                           " is a dual number, and gradients of dual numbers would lose their tangents. Take "
                           "unpack_dual(output).primal (or .tangent) for the gradient alone, or "
                           "mica.func.jvp(mica.func.grad(f), (x,), (v,)) for its tangent, too.");
    p.tensor = Tensor(Primal(t));
  }
  return primals;
}

class Table final : public AutogradInterface {
 public:
  bool RequiresGrad(const Tensor& t) override { return autograd::RequiresGrad(Primal(t)); }
  void SetRequiresGrad(const Tensor& t, bool on) override {
    MICA_CHECK_IMPLEMENTED(!on || !forward::HasTangent(t), "requires_grad cannot be set on a dual number, ",
                           t.ToString(), ". Let the tensor require grad before make_dual().");
    autograd::SetRequiresGrad(Primal(t), on);
  }
  bool IsLeaf(const Tensor& t) override {
    return autograd::IsLeaf(Primal(t)) && !(forward::HasTangent(t) && RequiresGrad(t));
  }

  Tensor Grad(const Tensor& shown) override {
    const Tensor& t = Primal(shown);
    const Meta* meta = GetMeta(t);
    if (!meta) return Tensor();
    if (meta->retained) return meta->retained->grad;
    std::lock_guard lock(LockOf(t.impl()));
    return meta->grad;
  }

  void SetGrad(const Tensor& shown, const Tensor& given) override {
    const Tensor &t = Primal(shown), &grad = Cotangent(given);
    if (grad.defined()) CheckGrad(t, grad);
    if (!grad.defined() && !GetMeta(t)) return;
    Meta& meta = EnsureMeta(t);
    if (meta.retained) {
      meta.retained->grad = grad;
      return;
    }
    Tensor old = grad;  // freed after the lock
    std::lock_guard lock(LockOf(t.impl()));
    std::swap(meta.grad, old);
  }

  NodePtr GradFn(const Tensor& t) override { return ToHandle(autograd::GradFn(Primal(t))); }
  uint32_t OutputNr(const Tensor& shown) override {
    const Tensor& t = Primal(shown);
    return autograd::GradFn(t) ? GetMeta(t)->output_nr : 0;
  }

  GraphEdge GradientEdge(const Tensor& t) override {
    Edge e = autograd::GradientEdge(Primal(t));
    return {ToHandle(std::move(e.node)), e.input_nr};
  }

  Tensor Detach(const Tensor& t) override { return DetachedAlias(t); }

  void DetachInPlace(const Tensor& t) override {
    // Others have no history that their base could change.
    MICA_CHECK(!IsDifferentiableView(t) || t.is_inference(),
               "A view cannot be detached in place; use detach().");
    if (Meta* meta = GetMeta(t)) {
      meta->grad_fn = nullptr;
      meta->output_nr = 0;
      meta->retained = nullptr;
    }
    autograd::SetRequiresGrad(t, false);
  }

  void LeaveBase(const Tensor& view) override { autograd::LeaveBase(view); }

  void SetData(const Tensor& t, const Tensor& data) override;
  Tensor Data(const Tensor& t) override { return DataAlias(t); }
  void RetainGrad(const Tensor& t) override { autograd::RetainGrad(Primal(t)); }
  bool RetainsGrad(const Tensor& shown) override {
    const Tensor& t = Primal(shown);
    return GetMeta(t) && GetMeta(t)->retained;
  }

  HookRemover AddTensorHook(const Tensor& shown, TensorHook hook) override {
    const Tensor& t = Primal(shown);
    MICA_CHECK(autograd::RequiresGrad(t), "A hook needs a tensor that requires grad.");
    const uint64_t id = g_next_hook++;
    const Edge edge = autograd::GradientEdge(t);
    std::vector<NodeExtra::TensorPre>& hooks = edge.node->EnsureExtra().tensor_pre;
    const auto last = std::find_if(hooks.rbegin(), hooks.rend(),
                                   [&](const auto& h) { return h.output_nr == edge.input_nr; });
    hooks.insert(last == hooks.rend() ? hooks.end() : last.base(), {edge.input_nr, id, std::move(hook)});
    return Remover(*edge.node, id, &NodeExtra::tensor_pre);
  }

  HookRemover AddAccumulateHook(const Tensor& shown, AccumulateHook hook) override {
    const Tensor& leaf = Primal(shown);
    MICA_CHECK(autograd::RequiresGrad(leaf) && autograd::IsLeaf(leaf),
               "post accumulate grad hooks cannot be registered on non-leaf tensors, nor on such as need no "
               "gradient: ",
               leaf.ToString(), ".");
    const uint64_t id = g_next_hook++;
    const NodeRef node = Accumulator(leaf);
    node->EnsureExtra().accumulated.push_back({id, std::move(hook)});
    return Remover(*node, id, &NodeExtra::accumulated);
  }

  HookRemover AddNodeHook(GraphNode* node, NodeHook hook) override {
    const uint64_t id = g_next_hook++;
    AsNode(node).EnsureExtra().pre.push_back({id, std::move(hook)});
    return Remover(AsNode(node), id, &NodeExtra::pre);
  }

  HookRemover AddNodePostHook(GraphNode* node, NodePostHook hook) override {
    const uint64_t id = g_next_hook++;
    AsNode(node).EnsureExtra().post.push_back({id, std::move(hook)});
    return Remover(AsNode(node), id, &NodeExtra::post);
  }

  void VisitHeld(const Tensor& t, const HeldVisitor& visit) override {
    const Meta* meta = GetMeta(t);
    if (!meta) return;
    if (Node* leaf = meta->accumulator.load(std::memory_order_acquire)) VisitHeldBy(*leaf, visit);
    if (meta->grad_fn && meta->grad_fn->IsHeldOnce()) VisitHeldBy(*meta->grad_fn, visit);
  }
  void VisitHeld(GraphNode* node, const HeldVisitor& visit) override { VisitHeldBy(AsNode(node), visit); }
  std::shared_ptr<void>* Context(GraphNode* node) override { return AsNode(node).Context(); }

  std::vector<GraphEdge> NextEdges(GraphNode* node) override {
    const Node& n = AsNode(node);
    std::vector<GraphEdge> edges;
    for (int i = 0; i < n.num_next(); ++i) edges.push_back({ToHandle(n.next(i).node), n.next(i).input_nr});
    return edges;
  }

  Tensor Variable(GraphNode* node) override {
    const Tensor* t = AsNode(node).variable();
    return t ? *t : Tensor();
  }

  std::shared_ptr<void>& NodeData(GraphNode* node) override { return AsNode(node).EnsureExtra().data; }

  std::vector<GraphValue> Results(GraphNode* node) override { return ResultsOf(AsNode(node)); }
  std::vector<std::string> SavedNames(GraphNode* node) override { return SavedNamesOf(AsNode(node)); }
  bool HasSaved(GraphNode* node, std::string_view name) override {
    return autograd::HasSaved(AsNode(node), name);
  }
  Value Saved(GraphNode* node, std::string_view name) override { return SavedOf(AsNode(node), name); }
  void HookSaved(GraphNode* node, std::string_view name, int64_t index,
                 std::shared_ptr<SavedTensorHooks> hooks) override {
    autograd::HookSaved(AsNode(node), name, index, std::move(hooks));
  }

  void Backward(const GradientPoints& outputs, TensorSpan grads, const GradientPoints& inputs,
                const BackwardOptions& options) override {
    autograd::Backward(Primals(outputs), Cotangents(grads), Primals(inputs), options);
  }

  std::vector<Tensor> Gradients(const GradientPoints& outputs, const GradientPoints& inputs, TensorSpan grads,
                                const BackwardOptions& options) override {
    return autograd::Gradients(Primals(outputs), Primals(inputs), Cotangents(grads), options);
  }

  bool InBackward() override { return GraphTask::Current() != nullptr; }
  uint64_t BackwardNumber() override { return GraphTask::Current() ? GraphTask::Current()->number() : 0; }
  bool WillRun(GraphNode* node) override {
    MICA_CHECK(GraphTask::Current(), "Which nodes run can be asked while backward runs only.");
    return GraphTask::Current()->WillRun(&AsNode(node));
  }

  void QueueCallback(std::function<void()> callback) override {
    GraphTask* task = GraphTask::Current();
    MICA_CHECK(task, "A callback for the end of backward can be queued during backward only.");
    task->AddCallback(std::move(callback));
  }

  void SetAnomalyMode(bool enabled, bool check_nan) override {
    g_anomaly.store(enabled ? kAnomalyOn | (check_nan ? kAnomalyCheckNan : 0) : 0);
  }
  bool AnomalyEnabled() override { return AnomalyMode(); }
  bool AnomalyCheckNan() override { return (g_anomaly.load() & kAnomalyCheckNan) != 0; }
  void SetAnomalyHooks(std::function<std::string()> record,
                       std::function<void(const std::string&)> report) override {
    SetAnomalyCallbacks(std::move(record), std::move(report));
  }
  void SetInterruptCheck(void (*check)()) override { autograd::SetInterruptCheck(check); }

  std::unique_ptr<SavedTensorBox> SaveTensor(const Tensor& t, GraphNode* owner, bool is_output) override {
    return std::make_unique<Box>(t, static_cast<Node*>(owner), is_output);
  }
  void PushSavedTensorHooks(std::shared_ptr<SavedTensorHooks> hooks) override {
    autograd::PushSavedTensorHooks(std::move(hooks));
  }
  void PopSavedTensorHooks() override { autograd::PopSavedTensorHooks(); }
  SavedLister PushCopyOnWrite() override { return autograd::PushCopyOnWrite(); }
  void PopCopyOnWrite() override { autograd::PopCopyOnWrite(); }
  std::optional<std::string> ForbidSavedTensorHooks(std::optional<std::string> message) override {
    return autograd::ForbidSavedTensorHooks(std::move(message));
  }

  NodePtr MakeCustomNode(std::unique_ptr<CustomBackward> backward, TensorSpan inputs) override {
    return autograd::MakeCustomNode(std::move(backward), inputs);
  }
  std::vector<Tensor> FinishCustom(const NodePtr& node, const CustomOutputs& call) override {
    return autograd::FinishCustom(node, call);
  }

  Tensor GradInput(const Tensor& value, const frames::Frame& frame) override {
    return MakeGradInput(value, frame);
  }
  Tensor MakeDual(const Tensor& value, const Tensor& tangent, const frames::Frame& frame) override {
    return forward::MakeDual(value, tangent, frame);
  }
  Tensor Tangent(const Tensor& dual) override { return forward::TangentOf(dual); }
  void CheckInplace(const Tensor& t, const char* op) override { autograd::CheckInplace(t, op); }
};

// Whether data can be put behind `t`: it is of no transform, or of dual levels and without a tangent.
bool IsReplaceable(const Tensor& t) {
  for (const Tensor* at = &t; frames::IsWrapper(*at); at = &frames::WrapperOf(*at).value)
    if (frames::WrapperOf(*at).kind != forward::JvpKind() || forward::HasTangent(*at)) return false;
  return true;
}

// The tensor keeps its identity, its requires_grad, its history and its grad;
// everything else becomes that of `data`. A view leaves its base.
void Table::SetData(const Tensor& t, const Tensor& data) {
  MICA_CHECK(t.dtype() == data.dtype() || !t.requires_grad() || IsDifferentiable(data.dtype()),
             "data set to a tensor that requires gradients must be floating point or complex dtype; this "
             "data's dtype is (",
             Name(data.dtype()), ").");
  MICA_CHECK_IMPLEMENTED(
      IsReplaceable(t) && IsReplaceable(data) && (!frames::IsWrapper(t) || t.dtype() == data.dtype()),
      "The data of a tensor cannot be replaced inside a transform (mica.func); use copy_.");
  if (t.is_same(data)) return;
  if (t.is_view()) autograd::LeaveBase(t);
  if (frames::IsWrapper(data)) return SetData(t, frames::WrapperOf(data).value);
  if (frames::IsWrapper(t)) {
    SetData(frames::WrapperOf(t).value, data);
    return frames::Refresh(t);
  }
  TensorImpl* to = t.impl();
  const TensorImpl* from = data.impl();
  to->MoveTo(OwnerOf(from->storage));
  to->dl.data = from->dl.data;
  to->dl.device = from->dl.device;
  to->dl.dtype = from->dl.dtype;
  constexpr uint64_t kOfData = MICA_TENSOR_HAS_DATA | (uint64_t{0xff} << MICA_TENSOR_DTYPE_SHIFT) |
                               (uint64_t{0xff} << MICA_TENSOR_BACKEND_SHIFT) | tensor_flags::kInference;
  to->flags = (to->flags & ~kOfData) | (from->flags & kOfData);
  const KeySet of_data = keys::kBackends | keys::kOfMemory;
  to->keys = (to->keys - of_data) | (from->keys & of_data);
  to->SetSizesStrides(from->sizes(), from->strides());
  RefreshAccumulator(t);
}

}  // namespace

AutogradInterface& Interface() {
  static Table* table = new Table();
  return *table;
}

}  // namespace mica::autograd
