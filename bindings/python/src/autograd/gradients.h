// Autograd's table (<mica/autograd.h>, where each function is described) with the core's types: tensors and
// nodes that count themselves, errors that are thrown.
//
// Use an Autograd as one would a pointer to the table: `->` reaches what has no status and needs no types.
// It knows nothing of Python; objects of the binding travel as MicaHeld (module/collector.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/layers/autograd_table.h"
#include "schema/value.h"
#include "tensor/tensor.h"

namespace mica::python {

inline std::string_view ViewOf(MicaStr s) { return {s.data, static_cast<size_t>(s.size)}; }
inline MicaStr StrOf(std::string_view s) { return {s.data(), static_cast<int64_t>(s.size())}; }

// A counted reference to a node, which goes back through the table that it came by.
class NodePtr {
 public:
  NodePtr() = default;
  NodePtr(const MicaAutograd* table, MicaNode* owned) : table_(table), node_(owned) {}
  NodePtr(const NodePtr& o) : table_(o.table_), node_(o.node_) {
    if (node_) table_->node_retain(node_);
  }
  NodePtr(NodePtr&& o) noexcept : table_(o.table_), node_(std::exchange(o.node_, nullptr)) {}
  NodePtr& operator=(NodePtr o) noexcept {
    std::swap(table_, o.table_);
    std::swap(node_, o.node_);
    return *this;
  }
  ~NodePtr() {
    if (node_) table_->node_release(node_);
  }
  static NodePtr Borrow(const MicaAutograd* table, MicaNode* node) {
    if (node) table->node_retain(node);
    return {table, node};
  }
  MicaNode* get() const { return node_; }
  const MicaAutograd* table() const { return table_; }
  explicit operator bool() const { return node_ != nullptr; }
  MicaNode* release() { return std::exchange(node_, nullptr); }
  std::string_view name() const { return ViewOf(table_->node_name(node_)); }

 private:
  const MicaAutograd* table_ = nullptr;
  MicaNode* node_ = nullptr;
};

struct GraphEdge {
  NodePtr node;
  int64_t input_nr = 0;
};

// A tensor or, where that is undefined, an edge.
struct GradientPoint {
  Tensor tensor;
  GraphEdge edge;
};
using GradientPoints = absl::InlinedVector<GradientPoint, 2>;

// Takes a hook away; goes without doing so.
class HookRemover {
 public:
  HookRemover() = default;
  HookRemover(const MicaAutograd* table, MicaHook* hook) : table_(table), hook_(hook) {}
  HookRemover(HookRemover&& o) noexcept : table_(o.table_), hook_(std::exchange(o.hook_, nullptr)) {}
  HookRemover& operator=(HookRemover&& o) noexcept {
    std::swap(table_, o.table_);
    std::swap(hook_, o.hook_);
    return *this;
  }
  ~HookRemover() {
    if (hook_) table_->hook_release(hook_);
  }
  void operator()() const { table_->hook_remove(hook_); }

 private:
  const MicaAutograd* table_ = nullptr;
  MicaHook* hook_ = nullptr;
};

// A tensor that is kept for a backward.
class SavedTensorBox {
 public:
  SavedTensorBox(const MicaAutograd* table, MicaSavedTensor* saved) : table_(table), saved_(saved) {}
  SavedTensorBox(const SavedTensorBox&) = delete;
  SavedTensorBox& operator=(const SavedTensorBox&) = delete;
  ~SavedTensorBox() { table_->saved_release(saved_); }
  Tensor Unpack() const { return AbiReturn<Tensor>::Unpack(table_->saved_unpack(saved_)); }

 private:
  const MicaAutograd* table_;
  MicaSavedTensor* saved_;
};

// What is saved while copy on write stands.
class SavedCopies {
 public:
  SavedCopies(const MicaAutograd* table, MicaSavedCopies* copies) : table_(table), copies_(copies) {}
  SavedCopies(const SavedCopies&) = delete;
  SavedCopies& operator=(const SavedCopies&) = delete;
  ~SavedCopies() { table_->saved_copies_release(copies_); }
  std::vector<Tensor> List(bool only_copies) const {
    std::vector<Tensor> list;
    ThrowIfError(table_->saved_copies(copies_, only_copies, &list, [](void* to, MicaTensor* t) {
      static_cast<std::vector<Tensor>*>(to)->push_back(Tensor::Borrow(t));
    }));
    return list;
  }

 private:
  const MicaAutograd* table_;
  MicaSavedCopies* copies_;
};

class Autograd {
 public:
  // NULL: there is none.
  explicit Autograd(const MicaAutograd* table) : table_(table) {}
  explicit operator bool() const { return table_ != nullptr; }
  const MicaAutograd* operator->() const { return table_; }

  // ---- tensors
  bool RequiresGrad(const Tensor& t) const { return Is(table_->requires_grad(t.impl())); }
  void SetRequiresGrad(const Tensor& t, bool on) const {
    ThrowIfError(table_->set_requires_grad(t.impl(), on));
  }
  bool IsLeaf(const Tensor& t) const { return Is(table_->is_leaf(t.impl())); }
  Tensor Grad(const Tensor& t) const { return Taken(table_->grad(t.impl())); }
  void SetGrad(const Tensor& t, const Tensor& grad) const {
    ThrowIfError(table_->set_grad(t.impl(), grad.impl()));
  }
  NodePtr GradFn(const Tensor& t) const {
    MicaNode* node = nullptr;
    ThrowIfError(table_->grad_fn(t.impl(), &node));
    return {table_, node};
  }
  int64_t OutputNr(const Tensor& t) const { return AbiReturn<int64_t>::Unpack(table_->output_nr(t.impl())); }
  GraphEdge GradientEdge(const Tensor& t) const {
    MicaEdge edge{};
    ThrowIfError(table_->gradient_edge(t.impl(), &edge));
    return {{table_, edge.node}, edge.input_nr};
  }
  Tensor Detach(const Tensor& t) const { return Taken(table_->detach(t.impl())); }
  void DetachInPlace(const Tensor& t) const { ThrowIfError(table_->detach_in_place(t.impl())); }
  Tensor Data(const Tensor& t) const { return Taken(table_->data(t.impl())); }
  void SetData(const Tensor& t, const Tensor& data) const {
    ThrowIfError(table_->set_data(t.impl(), data.impl()));
  }
  void RetainGrad(const Tensor& t) const { ThrowIfError(table_->retain_grad(t.impl())); }
  bool RetainsGrad(const Tensor& t) const { return Is(table_->retains_grad(t.impl())); }

  // ---- hooks
  HookRemover AddTensorHook(const Tensor& t, MicaTensorHook hook, MicaHeld held) const {
    return Added(table_->add_tensor_hook, t.impl(), hook, held);
  }
  HookRemover AddAccumulateHook(const Tensor& leaf, MicaAccumulateHook hook, MicaHeld held) const {
    return Added(table_->add_accumulate_hook, leaf.impl(), hook, held);
  }
  HookRemover AddNodeHook(MicaNode* node, MicaNodeHook hook, MicaHeld held) const {
    return Added(table_->add_node_hook, node, hook, held);
  }
  HookRemover AddNodePostHook(MicaNode* node, MicaNodePostHook hook, MicaHeld held) const {
    return Added(table_->add_node_post_hook, node, hook, held);
  }

  // ---- nodes
  std::vector<GraphEdge> NextEdges(MicaNode* node) const {
    std::vector<GraphEdge> edges;
    edges.reserve(static_cast<size_t>(table_->node_num_next(node)));
    for (int64_t i = 0; i < table_->node_num_next(node); ++i) {
      MicaEdge edge{};
      ThrowIfError(table_->node_next(node, i, &edge));
      edges.push_back({{table_, edge.node}, edge.input_nr});
    }
    return edges;
  }
  Tensor Variable(MicaNode* node) const { return Tensor::Steal(table_->node_variable(node)); }
  std::vector<MicaNodeResult> Results(MicaNode* node) const {
    std::vector<MicaNodeResult> results(static_cast<size_t>(table_->node_num_results(node)));
    for (size_t i = 0; i < results.size(); ++i)
      ThrowIfError(table_->node_result(node, static_cast<int64_t>(i), &results[i]));
    return results;
  }
  std::vector<std::string> SavedNames(MicaNode* node) const {
    std::vector<std::string> names;
    ThrowIfError(table_->saved_names(node, &names, [](void* to, MicaStr name) {
      static_cast<std::vector<std::string>*>(to)->emplace_back(ViewOf(name));
    }));
    return names;
  }
  bool HasSaved(MicaNode* node, std::string_view name) const {
    return Is(table_->has_saved(node, StrOf(name)));
  }
  Value Saved(MicaNode* node, std::string_view name) const {
    Value value;
    ThrowIfError(table_->saved(node, StrOf(name), &value, [](void* to, const MicaValue* kept) {
      *static_cast<Value*>(to) = Value::FromBorrowed(*kept);
    }));
    return value;
  }
  void HookSaved(MicaNode* node, std::string_view name, int64_t index,
                 const MicaSavedTensorHooks& hooks) const {
    ThrowIfError(table_->hook_saved(node, StrOf(name), index, &hooks));
  }

  // ---- running; `flags`: MICA_BACKWARD_*
  void Backward(const GradientPoints& outputs, TensorSpan grads, const GradientPoints& inputs,
                uint64_t flags) const {
    const RawPoints o = PointsOf(outputs), i = PointsOf(inputs);
    ThrowIfError(table_->backward(SpanOf(o), AbiType<TensorSpan>::To(grads), SpanOf(i), flags));
  }
  std::vector<Tensor> Gradients(const GradientPoints& outputs, const GradientPoints& inputs,
                                TensorSpan grad_outputs, uint64_t flags) const {
    const RawPoints o = PointsOf(outputs), i = PointsOf(inputs);
    std::vector<Tensor> found(inputs.size());
    ThrowIfError(
        table_->gradients(SpanOf(o), SpanOf(i), AbiType<TensorSpan>::To(grad_outputs), flags, RawOf(found)));
    return found;
  }
  bool WillRun(MicaNode* node) const { return Is(table_->will_run(node)); }
  void QueueCallback(MicaStatus (*callback)(void*), MicaHeld held) const {
    ThrowIfError(table_->queue_callback(callback, held));
  }

  // ---- saving
  std::unique_ptr<SavedTensorBox> SaveTensor(const Tensor& t, MicaNode* owner, bool is_output) const {
    MicaSavedTensor* saved = nullptr;
    ThrowIfError(table_->save(t.impl(), owner, is_output, &saved));
    return std::make_unique<SavedTensorBox>(table_, saved);
  }
  void PushSavedTensorHooks(const MicaSavedTensorHooks& hooks) const {
    ThrowIfError(table_->push_saved_tensor_hooks(&hooks));
  }
  void PopSavedTensorHooks() const { ThrowIfError(table_->pop_saved_tensor_hooks()); }
  // The message before.
  std::optional<std::string> ForbidSavedTensorHooks(std::optional<std::string_view> message) const {
    std::optional<std::string> before;
    const MicaStr text = StrOf(message.value_or(""));
    ThrowIfError(table_->forbid_saved_tensor_hooks(
        message ? &text : nullptr, &before,
        [](void* to, MicaStr old) { static_cast<std::optional<std::string>*>(to)->emplace(ViewOf(old)); }));
    return before;
  }
  std::unique_ptr<SavedCopies> PushCopyOnWrite() const {
    MicaSavedCopies* copies = nullptr;
    ThrowIfError(table_->push_copy_on_write(&copies));
    return std::make_unique<SavedCopies>(table_, copies);
  }
  void PopCopyOnWrite() const { ThrowIfError(table_->pop_copy_on_write()); }

  // ---- custom functions
  NodePtr MakeCustomNode(const MicaCustomFunction& function, void* object, std::string_view name,
                         TensorSpan inputs) const {
    MicaNode* node = nullptr;
    ThrowIfError(table_->custom_node(&function, object, StrOf(name), AbiType<TensorSpan>::To(inputs), &node));
    return {table_, node};
  }
  struct CustomOutputs {
    TensorSpan inputs, outputs, dirty, non_differentiable;
    bool materialize_grads = true;
  };
  std::vector<Tensor> FinishCustom(const NodePtr& node, const CustomOutputs& call) const {
    using List = AbiType<TensorSpan>;
    const MicaCustomOutputs given = {sizeof(MicaCustomOutputs),
                                     List::To(call.inputs),
                                     List::To(call.outputs),
                                     List::To(call.dirty),
                                     List::To(call.non_differentiable),
                                     call.materialize_grads};
    std::vector<Tensor> results(static_cast<size_t>(call.outputs.size()));
    ThrowIfError(table_->custom_finish(node.get(), &given, RawOf(results)));
    return results;
  }

  // ---- frames
  Tensor GradInput(const Tensor& value) const { return Taken(table_->grad_input(value.impl())); }
  Tensor MakeDual(const Tensor& value, const Tensor& tangent) const {
    return Taken(table_->dual(value.impl(), tangent.impl()));
  }
  Tensor Tangent(const Tensor& dual) const { return Taken(table_->tangent(dual.impl())); }

 private:
  static MicaTensor** RawOf(std::vector<Tensor>& tensors) {
    static_assert(sizeof(Tensor) == sizeof(MicaTensor*));
    return reinterpret_cast<MicaTensor**>(tensors.data());
  }
  static bool Is(MicaIntResult r) { return AbiReturn<bool>::Unpack(r); }
  static Tensor Taken(MicaTensorResult r) { return AbiReturn<Tensor>::Unpack(r); }

  template <typename Add, typename On, typename Function>
  HookRemover Added(Add add, On* on, Function function, MicaHeld held) const {
    MicaHook* hook = nullptr;
    ThrowIfError(add(on, function, held, &hook));
    return {table_, hook};
  }
  using RawPoints = absl::InlinedVector<MicaGradientPoint, 4>;
  static RawPoints PointsOf(const GradientPoints& points) {
    RawPoints raw;
    raw.reserve(points.size());
    for (const GradientPoint& p : points)
      raw.push_back({p.tensor.impl(), {p.edge.node.get(), p.edge.input_nr}});
    return raw;
  }
  static MicaGradientPoints SpanOf(const RawPoints& points) {
    return {points.data(), static_cast<int64_t>(points.size())};
  }

  const MicaAutograd* table_;
};

// Opens the plugin on first use, and throws where there is none.
inline Autograd GetAutograd() { return Autograd(&AutogradTable()); }
// Never opens it.
inline Autograd LoadedAutograd() { return Autograd(LoadedAutogradTable()); }

}  // namespace mica::python
