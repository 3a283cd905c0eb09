// Node's life: sequence numbers, edges, outputs, destruction without recursion.
#include "keys/autograd/node.h"

#include <algorithm>
#include <limits>

#include "dispatcher/devices/streams.h"
#include "keys/autograd/anomaly.h"
#include "keys/autograd/graph_task.h"
#include "tensor/shape.h"

namespace mica::autograd {
namespace {

// Numbers grow along each thread's forward, so that backward can take later
// nodes first. Threads share none: order between their nodes comes from edges.
thread_local constinit uint64_t t_sequence __attribute__((tls_model("initial-exec"))) = 0;

// Nodes that wait for destruction on this thread while another one is being
// destroyed: the chain of a deep graph becomes a loop.
struct DestroyQueue {
  Node* head = nullptr;
  bool running = false;
};
thread_local constinit DestroyQueue t_destroy __attribute__((tls_model("initial-exec")));

void CheckCount(int count, const char* of) {
  MICA_CHECK(count <= std::numeric_limits<uint16_t>::max(), "A node of the backward graph has at most (",
             std::numeric_limits<uint16_t>::max(), ") ", of, "; this one would get (", count, ").");
}

}  // namespace

void OutputInfo::Set(const Tensor& t) {
  if (!t.defined()) return;
  defined = true;
  dtype = t.dtype();
  device = t.device();
  if (__builtin_expect(device.backend > keys::kMeta, 0)) stream = CurrentStream(device);
  ndim = static_cast<int32_t>(t.ndim());
  int64_t* to = inline_sizes;
  if (ndim > kInline) {
    more_sizes = std::make_unique<int64_t[]>(static_cast<size_t>(ndim));
    to = more_sizes.get();
  }
  std::copy_n(t.sizes().data(), ndim, to);
}

int64_t OutputInfo::size(int64_t dim) const { return sizes()[WrapDim(dim, ndim, false)]; }

int64_t OutputInfo::numel() const {
  int64_t n = 1;
  for (const int64_t s : sizes()) n *= s;
  return n;
}

Node::Node() : MicaNode{nullptr}, sequence_(t_sequence++) {
  if (__builtin_expect(AnomalyMode(), 0)) RecordForward(*this);
}

Node::~Node() {
  if (extra_) {
    const std::lock_guard lock(extra_->node_lock);
    extra_->node = nullptr;
  }
  if (next_ != inline_next_) delete[] next_;
}

void Node::SetNumNext(int count) {
  CheckCount(count, "inputs");
  num_next_ = static_cast<uint16_t>(count);
  if (count > kInlineEdges) next_ = new Edge[static_cast<size_t>(count)];
}

void Node::SetNumOutputs(int count) {
  CheckCount(count, "outputs");
  num_outputs_ = static_cast<uint16_t>(count);
  if (count <= 1) return;
  more_outputs_.resize(static_cast<size_t>(count));
  outputs_ = more_outputs_.data();
}

uint32_t Node::AddOutput(const Tensor& t) {
  const int n = num_outputs_;
  CheckCount(n + 1, "outputs");
  if (n == 1) more_outputs_.push_back(std::move(inline_output_));
  num_outputs_ = static_cast<uint16_t>(n + 1);
  if (n >= 1) {
    more_outputs_.emplace_back();
    outputs_ = more_outputs_.data();
  }
  outputs_[n].Set(t);
  return static_cast<uint32_t>(n);
}

bool Node::Wants(int i) const {
  const Node* n = next_[i].node.get();
  if (!n) return false;
  const GraphTask* task = GraphTask::Current();
  return !task || task->Wants(n);
}

void Node::Destroy() {
  destroy_next_ = t_destroy.head;
  t_destroy.head = this;
  if (t_destroy.running) return;
  t_destroy.running = true;
  while (Node* n = t_destroy.head) {
    t_destroy.head = n->destroy_next_;
    delete n;
  }
  t_destroy.running = false;
}

}  // namespace mica::autograd
