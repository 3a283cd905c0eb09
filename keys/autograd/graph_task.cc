// The engine's loop.
#include "keys/autograd/graph_task.h"

#include <algorithm>
#include <optional>

#include "dispatcher/calls/thread_state.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/plugins/status.h"
#include "keys/autograd/accumulate.h"
#include "keys/autograd/anomaly.h"
#include "keys/autograd/engine_ops.h"
#include "keys/autograd/hooks.h"
#include "keys/autograd/saved_tensor.h"
#include "keys/autograd/validate.h"

namespace mica::autograd {
namespace {

thread_local constinit GraphTask* t_task __attribute__((tls_model("initial-exec"))) = nullptr;
std::atomic<MicaStatus (*)()> g_interrupt_check{nullptr};
constexpr uint32_t kNodesBetweenChecks = 32;

// Whether a sum may be written: nobody else can see it, and nothing records.
bool IsOurs(const Tensor& sum) {
  return !CurrentThread().grad_enabled && !frames::Current() &&
         sum.impl()->refs().load(std::memory_order_relaxed) == 1 && sum.impl()->storage->use_count() == 1 &&
         sum.impl()->storage->resizable() && sum.is_contiguous();
}

// `sum` plus `grad`; into `sum`'s memory if nobody else can see it.
void AddTo(Tensor& sum, Tensor grad) {
  if (!sum.defined()) {
    sum = std::move(grad);
    return;
  }
  if (IsOurs(sum) && sum.dtype() == grad.dtype() && sum.sizes() == grad.sizes()) {
    ops::AddInPlace(sum, grad);
  } else {
    sum = ops::Add(sum, grad);
  }
}

// In a grad frame, outer levels may record what backward computes; this level leaves
// Autograd out by its key alone.
bool OuterLevelsRecord() {
  const frames::Frame* frame = frames::Current();
  return frame && frames::KindOf(frame->kind).own_autograd && frame->outer_grad_enabled;
}

// Where the node runs: in the stream of its forward; a leaf's in the caller's.
StreamRef StreamOf(const Node& node) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    const OutputInfo& info = node.output(i);
    if (!info.defined || info.device.backend <= keys::kMeta) continue;
    return {info.device, node.variable() ? CurrentStream(info.device) : info.stream};
  }
  return {};
}

// The current stream of the device of `grad` made it; `to` is where it is read next.
void HandOver(const Tensor& grad, const StreamRef& to) {
  if (__builtin_expect(!(grad.device() == to.device) || to.device.backend <= keys::kMeta, 1)) return;
  const StreamRef from{to.device, CurrentStream(to.device)};
  if (from == to) return;
  Event made;
  made.Record(from);
  made.Wait(to);
  RecordStream(grad, to.handle);
}

bool AnyDefined(const Tensor* t, int n) {
  return std::any_of(t, t + n, [](const Tensor& x) { return x.defined(); });
}

// A list of tensors as C has it.
MicaTensor** Raw(std::vector<Tensor>& list) {
  static_assert(sizeof(Tensor) == sizeof(MicaTensor*));
  return reinterpret_cast<MicaTensor**>(list.data());
}

// Runs a hook that changes `list`, and checks what it made of it.
template <typename F>
void RunHook(const Node& node, const std::vector<Tensor>& list, F&& hook) {
  const std::vector<Tensor> before = list;
  ThrowIfError(hook());
  for (size_t i = 0; i < list.size(); ++i) CheckHookResult(node, before[i], list[i]);
}

// Tasks nest: a node's backward may run one of its own.
class TaskGuard {
 public:
  explicit TaskGuard(GraphTask* task) : saved_(t_task), exclude_(t_state.exclude) { t_task = task; }
  ~TaskGuard() {
    t_task = saved_;
    t_state.exclude = exclude_;
  }

 private:
  GraphTask* saved_;
  KeySet exclude_;
  const SavedTensorHooksGuard hooks_;
};

}  // namespace

void SetInterruptCheck(MicaStatus (*check)()) { g_interrupt_check.store(check); }

GraphTask* GraphTask::Current() { return t_task; }
Node* GraphTask::CurrentNode() { return t_task ? t_task->running_ : nullptr; }

GraphTask::~GraphTask() {
  for (const State& s : states_) {
    GraphTask* mine = this;
    s.node->task_.compare_exchange_strong(mine, nullptr, std::memory_order_release,
                                          std::memory_order_relaxed);
  }
}

uint32_t GraphTask::IndexOf(const Node* node) const {
  if (__builtin_expect(node->task_.load(std::memory_order_relaxed) == this, 1)) return node->task_index_;
  return shared_->at(node);
}

uint64_t GraphTask::number() const {
  static std::atomic<uint64_t> last{0};
  if (!number_) number_ = ++last;
  return number_;
}

bool GraphTask::WillRun(const Node* node) const {
  const bool own = node->task_.load(std::memory_order_relaxed) == this;
  if (!own && !(shared_ && shared_->contains(node))) return false;
  const State& s = states_[IndexOf(node)];
  return s.reached && (!filtered_ || s.needed || s.captured);
}

bool GraphTask::Wants(const Node* node) const {
  if (!filtered_) return true;
  const bool own = node->task_.load(std::memory_order_relaxed) == this;
  if (!own && !(shared_ && shared_->contains(node))) return true;
  const State& s = states_[IndexOf(node)];
  return s.needed || s.captured;
}

uint32_t GraphTask::StateOf(Node* node) {
  GraphTask* owner = node->task_.load(std::memory_order_relaxed);
  if (owner == this) return node->task_index_;
  if (shared_) {  // another task had the node when this one first met it
    if (auto it = shared_->find(node); it != shared_->end()) return it->second;
  }
  const auto index = static_cast<uint32_t>(states_.size());
  if (owner == nullptr && node->task_.compare_exchange_strong(owner, this, std::memory_order_acquire,
                                                              std::memory_order_relaxed)) {
    node->task_index_ = index;
  } else {
    if (!shared_) shared_ = std::make_unique<absl::flat_hash_map<const Node*, uint32_t>>();
    shared_->emplace(node, index);
  }
  State& s = states_.emplace_back();
  s.node = node;
  if (__builtin_expect(with_streams_, 0)) s.home = StreamOf(*node);
  if (node->num_outputs() > 1) s.many = std::make_unique<Tensor[]>(static_cast<size_t>(node->num_outputs()));
  return index;
}

void GraphTask::AddRoot(Edge edge, Tensor grad) {
  State& s = states_[StateOf(edge.node.get())];
  AddTo(s.grads()[edge.input_nr], std::move(grad));
  roots_.push_back(std::move(edge.node));
}

void GraphTask::Capture(const Edge& edge, bool run_node) {
  filtered_ = true;
  captures_.push_back({edge, {}});
  if (!edge.node) return;
  State& s = states_[StateOf(edge.node.get())];
  s.captured = true;
  s.needed |= run_node;
}

void GraphTask::CountDependencies() {
  absl::InlinedVector<uint32_t, 16> stack;
  for (const NodeRef& root : roots_) {
    const uint32_t index = StateOf(root.get());
    if (!states_[index].visited) {
      states_[index].visited = states_[index].reached = true;
      stack.push_back(index);
    }
  }
  while (!stack.empty()) {
    const Node& node = *states_[stack.back()].node;
    stack.pop_back();
    for (int i = 0; i < node.num_next(); ++i) {
      Node* next = node.next(i).node.get();
      if (!next) continue;
      const uint32_t index = StateOf(next);
      State& s = states_[index];
      ++s.dependencies;
      if (s.visited) continue;
      s.visited = s.reached = true;
      stack.push_back(index);
    }
  }
}

// A node is needed if a captured one can be reached from it: a walk in
// post-order, each node once.
void GraphTask::FindNeeded() {
  struct Step {
    uint32_t index;
    int next;
  };
  std::vector<Step> stack;
  std::vector<bool> done(states_.size(), false);
  for (const NodeRef& root : roots_) {
    stack.push_back({StateOf(root.get()), 0});
    while (!stack.empty()) {
      const Step step = stack.back();
      State& s = states_[step.index];
      if (done[step.index] || step.next == s.node->num_next()) {
        done[step.index] = true;
        stack.pop_back();
        if (!stack.empty() && (s.needed || s.captured)) states_[stack.back().index].needed = true;
        continue;
      }
      ++stack.back().next;
      Node* next = s.node->next(step.next).node.get();
      if (next) stack.push_back({IndexOf(next), 0});
    }
  }
}

void GraphTask::PushReady(uint32_t index) {
  ready_.push_back({states_[index].node->sequence_number(), index});
  std::push_heap(ready_.begin(), ready_.end());
}

void GraphTask::Run() {
  CountDependencies();
  if (filtered_) FindNeeded();
  for (const NodeRef& root : roots_) {
    State& s = states_[StateOf(root.get())];
    if (s.dependencies != 0 || !s.visited) continue;
    // As in torch: of several roots, those that lead to nothing asked for run no hooks; a lone one does.
    if (filtered_ && roots_.size() > 1 && !s.needed && !s.captured) continue;
    s.visited = false;  // each root once
    PushReady(StateOf(root.get()));
  }
  if (with_streams_) HandOverRoots();
  TaskGuard guard(this);
  GradModeGuard grad_mode(create_graph_ || OuterLevelsRecord());
  outer_exclude_ = t_state.exclude;
  uint32_t count = 0;
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end());
    const uint32_t index = ready_.back().index;
    ready_.pop_back();
    RunNode(index);
    if (++count % kNodesBetweenChecks == 0) {
      if (MicaStatus(*check)() = g_interrupt_check.load(std::memory_order_relaxed)) ThrowIfError(check());
    }
  }
  JoinStreams();
  t_state.exclude = outer_exclude_;
  for (const NodeRef& node : release_at_end_) node->ReleaseSaved();
  for (size_t i = 0; i < callbacks_.size(); ++i) callbacks_[i]();  // a callback may add another
}

void GraphTask::HandOverRoots() {
  for (const NodeRef& root : roots_) {
    State& s = states_[StateOf(root.get())];
    for (int i = 0; i < root->num_outputs(); ++i)
      if (s.grads()[i].defined()) HandOver(s.grads()[i], s.home);
  }
}

// What was queued elsewhere comes before what the caller does next.
void GraphTask::JoinStreams() {
  for (const StreamRef& used : used_) {
    Event done;
    done.Record(used);
    done.Wait({used.device, CurrentStream(used.device)});
  }
  if (used_.empty()) return;
  for (const CaptureSlot& c : captures_)
    if (c.grad.defined()) RecordStream(c.grad, CurrentStream(c.grad.device()));
}

void GraphTask::PreHooks(Node& node, Tensor* grads) {
  NodeExtra& extra = *node.extra();
  for (const NodeExtra::TensorPre& h : CopyOf(extra.tensor_pre)) {
    Tensor& grad = grads[h.output_nr];
    const MicaTensorResult made = h.hook.function(h.hook.held.object(), grad.impl());
    ThrowIfError(made.status);
    Tensor changed = Tensor::Steal(made.value);
    if (!changed.defined()) continue;
    CheckHookResult(node, grad, changed);
    grad = std::move(changed);
  }
  for (const NodeExtra::Retain& r : extra.retain) {
    const Tensor& grad = grads[r.output_nr];
    if (!grad.defined()) continue;
    r.slot->grad = r.slot->grad.defined() ? ops::Add(r.slot->grad, grad) : ops::Clone(grad);
  }
}

void GraphTask::KeepCaptured(Node& node, const Tensor* grads) {
  for (CaptureSlot& c : captures_) {
    if (c.edge.node.get() != &node) continue;
    c.grad = grads[c.edge.input_nr];
  }
}

void GraphTask::RunNode(uint32_t index) {
  Node& node = *states_[index].node;
  const int num_grads = node.num_outputs();
  const std::unique_ptr<Tensor[]> many = std::move(states_[index].many);
  Tensor single = std::move(states_[index].single);
  Tensor* grads = many ? many.get() : &single;
  running_ = &node;
  t_state.exclude = outer_exclude_;
  const StreamRef home = states_[index].home;
  std::optional<StreamGuard> in_stream;
  if (__builtin_expect(with_streams_ && CurrentStream(home.device) != home.handle, 0)) {
    in_stream.emplace(home);
    if (std::find(used_.begin(), used_.end(), home) == used_.end()) used_.push_back(home);
  }
  // As in torch, a node that ends here gives what its tensors' hooks made, one that runs what arrived.
  const bool ends = filtered_ && !states_[index].needed;
  if (states_[index].captured && !ends) KeepCaptured(node, grads);
  if (__builtin_expect(node.extra() != nullptr, 0)) PreHooks(node, grads);
  if (states_[index].captured && ends) KeepCaptured(node, grads);
  if (ends) return;
  if (num_grads == 1 && node.num_next() == 1 && AddToPart(node, *grads)) return;
  absl::InlinedVector<Tensor, 4> out(static_cast<size_t>(node.num_next()));
  Evaluate(node, grads, num_grads, out.data());
  if (!retain_graph_) {
    if (__builtin_expect(node.releases_at_end(), 0)) {
      release_at_end_.push_back(NodeRef::Borrow(&node));
    } else {
      node.ReleaseSaved();
    }
  }
  // What arrived is not needed any more: its memory can serve the nodes that follow.
  for (int i = 0; i < num_grads; ++i) grads[i].reset();
  for (int i = 0; i < node.num_next(); ++i) {
    if (node.next(i).node) Deliver(node, i, std::move(out[static_cast<size_t>(i)]));
  }
}

// Runs a node without a gradient of full size; false if it must run as others do.
bool GraphTask::AddToPart(Node& node, const Tensor& grad) {
  const Edge& edge = node.next(0);
  if (!edge.node || node.extra() || node.releases_at_end() || !grad.defined()) return false;
  State& s = states_[IndexOf(edge.node.get())];
  if (with_streams_ && !(s.home == states_[IndexOf(&node)].home)) return false;
  const Tensor& sum = s.grads()[edge.input_nr];
  const OutputInfo& input = edge.node->output(static_cast<int>(edge.input_nr));
  if (!sum.defined() || !input.defined || sum.dtype() != grad.dtype() || sum.dtype() != input.dtype ||
      !(sum.device() == grad.device()) || !(sum.sizes() == input.sizes()) || !IsOurs(sum) ||
      g_anomaly.load(std::memory_order_relaxed) != 0)
    return false;
  t_state.exclude = outer_exclude_ | KeySet::Of(keys::kAutocast) | KeySet::Of(keys::kAutograd);
  const Tensor part = node.PartOf(sum);
  if (!part.defined() || !(part.sizes() == grad.sizes())) return false;
  ops::AddInPlace(part, grad);
  if (!retain_graph_) node.ReleaseSaved();
  if (--s.dependencies == 0) PushReady(IndexOf(edge.node.get()));
  return true;
}

void GraphTask::Evaluate(Node& node, Tensor* grads, int num_grads, Tensor* out) {
  std::vector<Tensor> incoming;  // for post hooks
  if (__builtin_expect(node.extra() != nullptr, 0)) {
    NodeExtra& extra = *node.extra();
    if (!extra.pre.empty()) {
      std::vector<Tensor> list(grads, grads + num_grads);
      for (const NodeExtra::Pre& h : CopyOf(extra.pre))
        RunHook(node, list, [&] { return h.hook.function(h.hook.held.object(), Raw(list), num_grads); });
      std::move(list.begin(), list.end(), grads);
    }
    if (!extra.post.empty()) incoming.assign(grads, grads + num_grads);
  }
  const bool below = node.RunsBelowAutograd();
  if (!below || AnyDefined(grads, num_grads)) {
    if (below) {
      KeySet left_out = KeySet::Of(keys::kAutocast);
      if (!create_graph_) left_out = left_out | KeySet::Of(keys::kAutograd);
      t_state.exclude = outer_exclude_ | left_out;
    }
    try {
      node.Apply(grads, out);
      if (__builtin_expect((g_anomaly.load(std::memory_order_relaxed) & MICA_ANOMALY_CHECK_NAN) != 0, 0)) {
        CheckNan(node, out, node.num_next());
      }
    } catch (...) {
      if (AnomalyMode()) ReportFailure(node);
      throw;
    }
  }
  if (__builtin_expect(node.extra() && !node.extra()->post.empty(), 0)) {
    t_state.exclude = outer_exclude_;
    std::vector<Tensor> list(out, out + node.num_next());
    for (const NodeExtra::Post& h : CopyOf(node.extra()->post))
      RunHook(node, list, [&] {
        // As in torch, a node's first hooks see nothing that arrived if Apply itself added them.
        return h.hook.function(h.hook.held.object(), Raw(list), node.num_next(), Raw(incoming),
                               static_cast<int64_t>(incoming.size()));
      });
    std::move(list.begin(), list.end(), out);
  }
}

void GraphTask::Deliver(Node& source, int number, Tensor grad) {
  const Edge& edge = source.next(number);
  State& s = states_[IndexOf(edge.node.get())];
  if (filtered_ && !s.needed && !s.captured) return;
  if (grad.defined()) {
    const OutputInfo& info = edge.node->output(static_cast<int>(edge.input_nr));
    if (info.defined) ValidateGradient(source, number, info, grad);
    Tensor& sum = s.grads()[edge.input_nr];
    std::optional<StreamGuard> in_stream;
    if (__builtin_expect(with_streams_, 0)) {
      HandOver(grad, s.home);
      if (sum.defined()) in_stream.emplace(s.home);
    }
    AddTo(sum, std::move(grad));
  }
  if (--s.dependencies == 0) PushReady(IndexOf(edge.node.get()));
}

}  // namespace mica::autograd
