// Node: one operator's backward, a vertex of the graph that backward walks.
//
// Tensors point to the node that made them (their grad_fn); a node points, by
// next edges, to the nodes that made its inputs. So the graph goes from results
// to leaves and holds no cycle. Nodes are reference-counted, come from the
// small-block pool, keep up to 3 edges and one output's description inline, and
// are destroyed without recursion, however deep the graph is.
//
// Generated code (build/generated/mica/autograd) and the files of this folder
// subclass Node; everybody else sees MicaNode (<mica/autograd.h>).
#pragma once

#include <mica/autograd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "keys/autograd/held.h"
#include "tensor/shape.h"
#include "tensor/small_pool.h"
#include "tensor/tensor.h"

namespace mica::autograd {

class Node;
class GraphTask;
class SavedVisitor;

// A counted reference to T (Node and its subclasses).
template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) p_->Retain();
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <typename U>
  Ref(Ref<U> o) noexcept : p_(o.release()) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_) p_->Release();
  }
  static Ref Steal(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  static Ref Borrow(T* p) {
    if (p) p->Retain();
    return Steal(p);
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  T* release() { return std::exchange(p_, nullptr); }

 private:
  T* p_ = nullptr;
};
using NodeRef = Ref<Node>;

struct Edge {
  NodeRef node;
  uint32_t input_nr = 0;
};

// What a gradient of one output of the forward must look like; `defined` is false
// for outputs that get none.
struct OutputInfo {
  static constexpr int kInline = 4;
  bool defined = false;
  DType dtype = DType::kF32;
  Device device;
  int32_t ndim = 0;
  uint64_t stream = 0;  // of the device, that made it
  int64_t inline_sizes[kInline];
  std::unique_ptr<int64_t[]> more_sizes;
  void Set(const Tensor& t);  // nothing for an undefined tensor
  IntSpan sizes() const { return {ndim <= kInline ? inline_sizes : more_sizes.get(), ndim}; }
  int64_t size(int64_t dim) const;
  int64_t numel() const;
};

// What few nodes have: hooks, the forward's stack (anomaly mode), the binding's
// data.
struct RetainedGrad {  // shared by a tensor's Meta and the node that fills it
  Tensor grad;
};
struct NodeExtra {
  struct TensorPre {
    uint32_t output_nr;
    uint64_t id;
    Hook<MicaTensorHook> hook;
  };
  struct Retain {
    uint32_t output_nr;
    std::shared_ptr<RetainedGrad> slot;
  };
  struct Pre {
    uint64_t id;
    Hook<MicaNodeHook> hook;
  };
  struct Post {
    uint64_t id;
    Hook<MicaNodePostHook> hook;
  };
  struct Accumulated {  // of a leaf's node
    uint64_t id;
    Hook<MicaAccumulateHook> hook;
  };
  std::vector<TensorPre> tensor_pre;  // those of one output stand together
  std::vector<Accumulated> accumulated;
  std::vector<Retain> retain;
  std::vector<Pre> pre;
  std::vector<Post> post;
  std::string stack;
  NodeRef parent;  // the node in whose backward this one was made
  Held data;
  // Whose it is; NULL once that is being destroyed. The lock is its own: a process may fork while a thread
  // holds it, and a child uses other nodes.
  Node* node;
  std::mutex node_lock;
};

class Node : public MicaNode {
 public:
  static constexpr int kInlineEdges = 3;

  virtual const char* name() const = 0;  // "AddBackward0"
  void Retain() {
    if (leaf_) return leaf_->Retain();
    refs_.fetch_add(1, std::memory_order_relaxed);
  }
  void Release() {
    if (leaf_) return leaf_->Release();
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Destroy();
  }
  // Retain, unless the last reference is gone.
  bool TryRetain() {
    const auto unless_zero = [](auto& refs) {
      auto n = refs.load(std::memory_order_relaxed);
      while (n != 0)
        if (refs.compare_exchange_weak(n, n + 1, std::memory_order_relaxed)) return true;
      return false;
    };
    return leaf_ ? unless_zero(leaf_->refs()) : unless_zero(refs_);
  }
  // Whether the caller's reference is the only one; never of a leaf's node.
  bool IsHeldOnce() const { return !leaf_ && refs_.load(std::memory_order_acquire) == 1; }

  // Gradients of the forward's outputs in, of its inputs out. `grads` has
  // num_outputs() tensors, undefined where nothing flows (not all of them are);
  // `out` has num_next() undefined tensors to fill, those of inputs with
  // Wants(i) at least.
  virtual void Apply(const Tensor* grads, Tensor* out) = 0;
  // Drops saved tensors, after a backward that does not retain the graph.
  virtual void ReleaseSaved() {}
  // Of a view of one part: the same part of `whole`, to which the engine adds the gradient where it holds
  // a sum for the input. Undefined: only Apply knows.
  virtual Tensor PartOf(const Tensor& /*whole*/) const { return {}; }
  // Shows what is saved, by name (saved_values.h).
  virtual void VisitSaved(SavedVisitor&) {}
  // Whether Apply must run with Autograd left out of calls when nothing is
  // recorded; a custom function's code decides for itself.
  virtual bool RunsBelowAutograd() const { return true; }
  virtual const Tensor* variable() const { return nullptr; }  // of AccumulateGrad
  // Of a custom function's node.
  virtual void* ObjectOf(const MicaCustomFunction*) const { return nullptr; }
  virtual void VisitHeld(void* /*to*/, MicaVisitHeld) {}
  // Saved tensors are freed when the whole backward ends: of nodes that a
  // backward may run twice, alone and inside a CopySlices.
  bool releases_at_end() const { return releases_at_end_; }
  void set_releases_at_end() { releases_at_end_ = true; }
  uint64_t sequence_number() const { return sequence_; }

  // ---- edges: one for each differentiable input of the forward
  int num_next() const { return num_next_; }
  const Edge& next(int i) const { return next_[i]; }
  Edge& next(int i) { return next_[i]; }
  // Makes `count` empty edges; once.
  void SetNumNext(int count);
  // Input i asks for a gradient, and the running task wants it.
  bool Wants(int i) const;
  // What input i looks like; it must have an edge.
  const OutputInfo& input(int i) const { return next_[i].node->output(static_cast<int>(next_[i].input_nr)); }

  // ---- outputs of the forward
  int num_outputs() const { return num_outputs_; }
  const OutputInfo& output(int i) const { return outputs_[i]; }
  // Adds the next output; its number. Undefined tensors get no gradient.
  uint32_t AddOutput(const Tensor& t);
  // For nodes whose number of outputs is known and not their shapes.
  void SetNumOutputs(int count);
  OutputInfo& output(int i) { return outputs_[i]; }

  NodeExtra* extra() const { return extra_.get(); }
  NodeExtra& EnsureExtra() {
    if (!extra_) {
      extra_ = std::make_shared<NodeExtra>();
      extra_->node = this;
    }
    return *extra_;
  }
  std::weak_ptr<NodeExtra> weak_extra() const { return extra_; }

  static void* operator new(size_t size) {
    return size <= internal::kMaxSmallBlock
               ? internal::SmallAllocate(internal::SmallClass(static_cast<int64_t>(size)))
               : ::operator new(size);
  }
  static void operator delete(void* p, size_t size) {
    size <= internal::kMaxSmallBlock
        ? internal::SmallFree(p, internal::SmallClass(static_cast<int64_t>(size)))
        : ::operator delete(p);
  }

 protected:
  Node();
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual void Destroy();
  // The node that adds to a leaf's grad is part of the leaf: whoever holds the
  // node holds the leaf. NULL for other nodes.
  TensorImpl* leaf_ = nullptr;
  uint64_t sequence_;

 private:
  friend class GraphTask;
  std::atomic<uint32_t> refs_{1};
  // Which running task keeps its state of this node at `task_index_`; a second
  // task on the same node uses its own map.
  std::atomic<GraphTask*> task_{nullptr};
  uint32_t task_index_ = 0;
  bool releases_at_end_ = false;
  uint16_t num_next_ = 0;
  uint16_t num_outputs_ = 0;
  Edge* next_ = inline_next_;
  OutputInfo* outputs_ = &inline_output_;
  Node* destroy_next_ = nullptr;
  std::shared_ptr<NodeExtra> extra_;
  std::vector<OutputInfo> more_outputs_;
  Edge inline_next_[kInlineEdges];
  OutputInfo inline_output_;
};

template <typename T, typename... A>
Ref<T> MakeNode(A&&... a) {
  return Ref<T>::Steal(new T(std::forward<A>(a)...));
}

// A node as its callers know it.
inline Node* FromAbi(MicaNode* node) { return static_cast<Node*>(node); }

}  // namespace mica::autograd
