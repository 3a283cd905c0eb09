// AutogradInterface: what the autograd plugin offers to the bindings, as a table
// of virtual functions that the plugin sets when it starts.
//
// The bindings may not include keys/autograd; they see the graph through the
// types here. Tensors that get no gradient are undefined Tensors. Nodes are
// reference-counted (NodePtr); a node lives as long as a tensor's grad_fn, a
// later node or a handle holds it. All functions throw Errors in full sentences.
// Call them from any thread; two threads may run backward at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/value.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace mica {

namespace frames {
struct Frame;
}

// A node of the backward graph. The plugin's Node is the only subclass.
class GraphNode {
 public:
  virtual std::string name() const = 0;  // "AddBackward0"
  virtual uint64_t sequence_number() const = 0;
  void Retain() {
    if (leaf_) return leaf_->Retain();
    refs_.fetch_add(1, std::memory_order_relaxed);
  }
  void Release() {
    if (leaf_) return leaf_->Release();
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Destroy();
  }
  // Retain, unless the last reference is gone; of nodes that are no leaf's.
  bool TryRetain() {
    uint32_t n = refs_.load(std::memory_order_relaxed);
    while (n != 0)
      if (refs_.compare_exchange_weak(n, n + 1, std::memory_order_relaxed)) return true;
    return false;
  }
  // Whether the caller's reference is the only one; never of a leaf's node.
  bool IsHeldOnce() const { return !leaf_ && refs_.load(std::memory_order_acquire) == 1; }
  // The binding's object of this node, which holds the node; not counted, and the binding's to guard.
  void* object = nullptr;

 protected:
  GraphNode() = default;
  virtual ~GraphNode() = default;
  GraphNode(const GraphNode&) = delete;
  GraphNode& operator=(const GraphNode&) = delete;
  virtual void Destroy() = 0;
  std::atomic<uint32_t> refs_{1};
  // The node that adds to a leaf's grad is part of the leaf: whoever holds the
  // node holds the leaf. NULL for other nodes.
  TensorImpl* leaf_ = nullptr;
};

// A counted reference to a node.
class NodePtr {
 public:
  NodePtr() = default;
  NodePtr(const NodePtr& o) : node_(o.node_) {
    if (node_) node_->Retain();
  }
  NodePtr(NodePtr&& o) noexcept : node_(std::exchange(o.node_, nullptr)) {}
  NodePtr& operator=(NodePtr o) noexcept {
    std::swap(node_, o.node_);
    return *this;
  }
  ~NodePtr() {
    if (node_) node_->Release();
  }
  static NodePtr Steal(GraphNode* n) {
    NodePtr p;
    p.node_ = n;
    return p;
  }
  static NodePtr Borrow(GraphNode* n) {
    if (n) n->Retain();
    return Steal(n);
  }
  GraphNode* get() const { return node_; }
  GraphNode* operator->() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }
  GraphNode* release() { return std::exchange(node_, nullptr); }

 private:
  GraphNode* node_ = nullptr;
};

// Where a gradient goes: input `input_nr` of `node`.
struct GraphEdge {
  NodePtr node;
  uint32_t input_nr = 0;
};

// Where backward starts, or what a gradient is asked for: a tensor or, where that
// is undefined, the edge into which its gradient flows.
struct GradientPoint {
  Tensor tensor;
  GraphEdge edge;
};
using GradientPoints = std::vector<GradientPoint>;
inline GradientPoints PointsOf(TensorSpan tensors) {
  GradientPoints points;
  for (const Tensor& t : tensors) points.push_back({t, {}});
  return points;
}

// What one result of a node's forward looked like; `defined` is false where no
// gradient flows.
struct GraphValue {
  bool defined = false;
  Dims sizes;
  DType dtype = DType::kF32;
  Device device;
};

// The backward of a custom function, written by the binding (its PyNode).
class CustomBackward {
 public:
  virtual ~CustomBackward() = default;
  virtual std::string Name() const = 0;
  // `grads`: one for each output of the forward; undefined where nothing flows
  // (zeros instead when the node materializes them). Returns one for each input
  // given to MakeCustomNode, in order; fewer count as undefined. Grad mode is on
  // if and only if the caller asked for create_graph.
  virtual std::vector<Tensor> Apply(std::vector<Tensor> grads) = 0;
  // Drops what was saved.
  virtual void ReleaseSaved() = 0;
  // Called when the last reference to the node is gone: true if it took a new one, so that the node lives on.
  virtual bool Keep(GraphNode*) { return false; }
  // The binding's object that stands for the call (its ctx), empty where there is none. A garbage
  // collector that found nobody else who holds the node empties it.
  virtual std::shared_ptr<void>* Context() { return nullptr; }
};

// One tensor kept for backward, with its version.
class SavedTensorBox {
 public:
  virtual ~SavedTensorBox() = default;
  // Throws if the tensor was written since, or was released.
  virtual Tensor Unpack() = 0;
};

// torch.autograd.graph.saved_tensors_hooks: pack when saved, under no_grad; unpack
// when used.
struct SavedTensorHooks {
  std::function<std::shared_ptr<void>(const Tensor&)> pack;
  std::function<Tensor(const std::shared_ptr<void>&)> unpack;
};

// A function, and the binding's object that it calls, which the binding's garbage collector follows
// (AutogradInterface::VisitHeld). The function may use the object as long as its Hook lives.
template <typename Signature>
class Hook : public std::function<Signature> {
 public:
  using std::function<Signature>::function;
  Hook(std::function<Signature> f, std::shared_ptr<void> object)
      : std::function<Signature>(std::move(f)), held(std::move(object)) {}
  std::shared_ptr<void> held;
};
// Undefined result: keep grad. `grad` is undefined where other results of its node alone got one.
using TensorHook = Hook<Tensor(const Tensor& grad)>;
using NodeHook = Hook<void(std::vector<Tensor>& grads)>;  // before a node: its incoming gradients
using NodePostHook =                                      // after: outgoing and incoming ones
    Hook<void(std::vector<Tensor>& grad_inputs, const std::vector<Tensor>& grad_outputs)>;
using AccumulateHook = Hook<void(const Tensor& variable)>;  // after variable.grad was written
// Takes a hook away; holds neither its tensor nor its node.
using HookRemover = std::function<void()>;

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;       // Grad only
  bool materialize_grads = false;  // Grad only: zeros for unused inputs
};

class AutogradInterface {
 public:
  virtual ~AutogradInterface() = default;

  // ---- tensors
  // True also for a view whose base got a history after the view was made.
  virtual bool RequiresGrad(const Tensor& t) = 0;
  // Leaves only; floating and complex dtypes only.
  virtual void SetRequiresGrad(const Tensor& t, bool requires_grad) = 0;
  virtual bool IsLeaf(const Tensor& t) = 0;
  virtual Tensor Grad(const Tensor& t) = 0;  // undefined if none
  virtual void SetGrad(const Tensor& t,
                       const Tensor& grad) = 0;  // undefined clears; checks shape, dtype, device
  virtual NodePtr GradFn(const Tensor& t) = 0;   // NULL on a leaf
  virtual uint32_t OutputNr(const Tensor& t) = 0;
  virtual GraphEdge GradientEdge(const Tensor& t) = 0;  // of a leaf: its AccumulateGrad
  virtual Tensor Detach(const Tensor& t) = 0;           // shares storage and version, no history
  virtual void DetachInPlace(const Tensor& t) = 0;      // detach_(); refused on views
  // A view becomes an ordinary tensor; the history that it has through its base becomes its own.
  virtual void LeaveBase(const Tensor& view) = 0;
  virtual void SetData(const Tensor& t, const Tensor& data) = 0;  // t.data = data
  virtual Tensor Data(
      const Tensor& t) = 0;  // t.data: an alias without history; writes to it count as writes to t
  virtual void RetainGrad(const Tensor& t) = 0;
  virtual bool RetainsGrad(const Tensor& t) = 0;

  // ---- hooks. Of one node run, in this order: those of its tensors (tensor by tensor, as each got its
  // first one), what retain_grad asks for, those before the node, those on accumulation, those after it.
  virtual HookRemover AddTensorHook(const Tensor& t, TensorHook hook) = 0;
  virtual HookRemover AddAccumulateHook(const Tensor& leaf, AccumulateHook hook) = 0;
  virtual HookRemover AddNodeHook(GraphNode* node, NodeHook hook) = 0;
  virtual HookRemover AddNodePostHook(GraphNode* node, NodePostHook hook) = 0;

  // ---- the binding's objects that C++ holds (hooks, contexts, metadata), for its garbage collector, which
  // guarantees that nothing else uses the tensor or the node meanwhile. Of a tensor: its own, and those of
  // its node if it alone holds that.
  using HeldVisitor = std::function<void(std::shared_ptr<void>& object)>;
  virtual void VisitHeld(const Tensor& t, const HeldVisitor& visit) = 0;
  virtual void VisitHeld(GraphNode* node, const HeldVisitor& visit) = 0;
  // CustomBackward::Context of a custom function's node; NULL of others.
  virtual std::shared_ptr<void>* Context(GraphNode* node) = 0;

  // ---- the graph
  virtual std::vector<GraphEdge> NextEdges(GraphNode* node) = 0;
  virtual Tensor Variable(GraphNode* node) = 0;                  // of an AccumulateGrad, else undefined
  virtual std::vector<GraphValue> Results(GraphNode* node) = 0;  // of the node's forward
  // What a node keeps for its backward, by the names that its formula reads: a
  // tensor, a list of tensors, or a plain value.
  virtual std::vector<std::string> SavedNames(GraphNode* node) = 0;
  virtual bool HasSaved(GraphNode* node, std::string_view name) = 0;
  virtual Value Saved(GraphNode* node, std::string_view name) = 0;
  // Packs a saved tensor (number `index` of a list) now; once for each.
  virtual void HookSaved(GraphNode* node, std::string_view name, int64_t index,
                         std::shared_ptr<SavedTensorHooks> hooks) = 0;
  // Binding's own data on a node (hook and metadata dictionaries).
  virtual std::shared_ptr<void>& NodeData(GraphNode* node) = 0;

  // ---- running
  // Accumulates into .grad of the leaves, or of `inputs` alone if there are any.
  // `grads` may be empty: ones for scalar tensors.
  virtual void Backward(const GradientPoints& outputs, TensorSpan grads, const GradientPoints& inputs,
                        const BackwardOptions& options) = 0;
  virtual std::vector<Tensor> Gradients(const GradientPoints& outputs, const GradientPoints& inputs,
                                        TensorSpan grad_outputs, const BackwardOptions& options) = 0;
  void Backward(TensorSpan outputs, TensorSpan grads, TensorSpan inputs, const BackwardOptions& options) {
    Backward(PointsOf(outputs), grads, PointsOf(inputs), options);
  }
  std::vector<Tensor> Gradients(TensorSpan outputs, TensorSpan inputs, TensorSpan grad_outputs,
                                const BackwardOptions& options) {
    return Gradients(PointsOf(outputs), PointsOf(inputs), grad_outputs, options);
  }
  // True on a thread that is inside a node.
  virtual bool InBackward() = 0;
  // The number of the backward that runs on this thread, 0 if none does; and whether
  // it runs `node`, or hands out the gradient that arrives there.
  virtual uint64_t BackwardNumber() = 0;
  virtual bool WillRun(GraphNode* node) = 0;
  // Runs `callback` when the backward that runs on this thread ends.
  virtual void QueueCallback(std::function<void()> callback) = 0;

  // ---- anomaly mode
  // Forward stacks are recorded with `record_stack` (set by the binding), printed
  // with `report` when a node fails; `check_nan` makes NaN gradients an error.
  virtual void SetAnomalyMode(bool enabled, bool check_nan) = 0;
  virtual bool AnomalyEnabled() = 0;
  virtual bool AnomalyCheckNan() = 0;
  virtual void SetAnomalyHooks(std::function<std::string()> record_stack,
                               std::function<void(const std::string&)> report) = 0;
  // Called between nodes; throws to stop (KeyboardInterrupt).
  virtual void SetInterruptCheck(void (*check)()) = 0;

  // ---- saving
  virtual std::unique_ptr<SavedTensorBox> SaveTensor(const Tensor& t, GraphNode* owner, bool is_output) = 0;
  virtual void PushSavedTensorHooks(std::shared_ptr<SavedTensorHooks> hooks) = 0;  // of this thread
  virtual void PopSavedTensorHooks() = 0;
  // What this thread saves from here to the pop is copied just before this thread
  // writes it in place. The returned function lists what is still saved so, or of it the copies alone.
  using SavedLister = std::function<std::vector<Tensor>(bool copies)>;
  virtual SavedLister PushCopyOnWrite() = 0;
  virtual void PopCopyOnWrite() = 0;
  // With a message, pushing hooks on this thread raises it; the message before.
  virtual std::optional<std::string> ForbidSavedTensorHooks(std::optional<std::string> message) = 0;

  // ---- custom functions, in this order: MakeCustomNode, the forward under no
  // grad, FinishCustom, SaveTensor for each tensor of save_for_backward.
  // NULL if grad mode is off or no input requires grad. `inputs` may hold
  // undefined tensors for arguments that are none.
  virtual NodePtr MakeCustomNode(std::unique_ptr<CustomBackward> backward, TensorSpan inputs) = 0;
  struct CustomOutputs {
    TensorSpan inputs;              // as above
    TensorSpan outputs;             // what the forward returned; undefined for values that are no tensors
    TensorSpan dirty;               // mark_dirty
    TensorSpan non_differentiable;  // mark_non_differentiable
    bool materialize_grads = true;
  };
  // Gives the outputs their history. Returns them; an input that was returned
  // unwritten becomes a view of itself. `node` may be NULL.
  virtual std::vector<Tensor> FinishCustom(const NodePtr& node, const CustomOutputs& call) = 0;

  // ---- frames (dispatcher/frames/frames.h): kinds "grad" and "jvp"
  // A tensor of the grad frame that requires grad there.
  virtual Tensor GradInput(const Tensor& value, const frames::Frame& frame) = 0;
  // A dual number of the jvp frame; an undefined tangent is zero.
  virtual Tensor MakeDual(const Tensor& value, const Tensor& tangent, const frames::Frame& frame) = 0;
  // The tangent of a dual number, undefined if zero. Call it outside of its frame.
  virtual Tensor Tangent(const Tensor& dual) = 0;
  // Throws what a write by the operator of that name throws, if `t` must not be written while
  // gradients are recorded.
  virtual void CheckInplace(const Tensor& t, const char* op) = 0;
};

// The plugin offers it under this name.
inline constexpr const char* kAutogradExtension = "mica.autograd";
// The plugin's table; opens the plugin that provides "layer:Autograd" on first
// use, and throws a kRuntime Error that says which plugin is missing and where
// it was looked for.
AutogradInterface& GetAutogradInterface();
// The same if it is loaded, else NULL: never opens a plugin.
AutogradInterface* LoadedAutogradInterface();

}  // namespace mica
