// GraphTask: one backward, from roots to sinks.
//
// Use: AddRoot and Capture, then Run, once. Run counts how many gradients each
// node waits for, then takes ready nodes in the reverse order of their making
// (a heap by sequence number) until none is left. The caller's thread runs them;
// tasks on several threads may share nodes. Nothing recurses, so a graph may be of
// any depth. A graph of up to 8 nodes allocates nothing here.
//
// On a device with streams a node runs in the stream of its forward, and what adds to
// a leaf's grad in the stream that is current where backward is called. A gradient
// that goes from one stream to another is waited for there. When Run returns, the
// caller's streams have been told to wait for all that it queued.
//
// The gradient of a view of one part (Node::PartOf) is added to that part of the sum that
// is held for the view's input, so that a loop over such views is linear in its steps.
//
// With captures, only nodes from which a captured edge can be reached run.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "dispatcher/devices/streams.h"
#include "keys/autograd/node.h"

namespace mica::autograd {

class GraphTask {
 public:
  GraphTask(bool retain_graph, bool create_graph)
      : retain_graph_(retain_graph), create_graph_(create_graph), with_streams_(AnyStreamChosen()) {}
  ~GraphTask();
  GraphTask(const GraphTask&) = delete;
  GraphTask& operator=(const GraphTask&) = delete;

  // `grad` flows into `edge`.
  void AddRoot(Edge edge, Tensor grad);
  // Restricts the run to what leads to captured edges, and keeps the gradient
  // that arrives there for Captured(number). `run_node`: the node itself runs as
  // well (an AccumulateGrad that shall accumulate).
  void Capture(const Edge& edge, bool run_node);
  void Run();
  // The gradient of capture number i; undefined if none arrived.
  Tensor TakeCaptured(int i) { return std::move(captures_[static_cast<size_t>(i)].grad); }
  void AddCallback(std::function<void()> callback) { callbacks_.push_back(std::move(callback)); }

  // The task that runs on this thread, NULL if none.
  static GraphTask* Current();
  static Node* CurrentNode();
  // Whether a gradient that flows to `node` is of use. Also true of nodes that are
  // not in this graph: CopySlices runs one whose first edge leads out of it.
  bool Wants(const Node* node) const;
  // Whether this run comes to `node`.
  bool WillRun(const Node* node) const;
  // Different for every task, from 1.
  uint64_t number() const;

 private:
  struct State {
    Node* node;
    uint32_t dependencies = 0;
    bool needed = false;
    bool captured = false;
    bool visited = false;
    bool reached = false;  // from a root
    StreamRef home;        // where it runs, of a device; the default while no stream was ever chosen
    Tensor single;         // of nodes with one output
    std::unique_ptr<Tensor[]> many;  // of others
    Tensor* grads() { return many ? many.get() : &single; }
  };
  struct CaptureSlot {
    Edge edge;
    Tensor grad;
  };
  struct Ready {
    uint64_t sequence;
    uint32_t index;
    bool operator<(const Ready& o) const { return sequence < o.sequence; }
  };

  uint32_t StateOf(Node* node);              // made on first use
  uint32_t IndexOf(const Node* node) const;  // of a node that has one
  void CountDependencies();
  void FindNeeded();
  void PushReady(uint32_t index);
  void HandOverRoots();
  void JoinStreams();
  void RunNode(uint32_t index);
  void Evaluate(Node& node, Tensor* grads, int num_grads, Tensor* out);
  void PreHooks(Node& node, Tensor* grads);
  void KeepCaptured(Node& node, const Tensor* grads);
  bool AddToPart(Node& node, const Tensor& grad);
  void Deliver(Node& source, int number, Tensor grad);

  const bool retain_graph_;
  const bool create_graph_;
  const bool with_streams_;
  bool filtered_ = false;
  mutable uint64_t number_ = 0;  // given when asked for
  KeySet outer_exclude_;
  Node* running_ = nullptr;
  absl::InlinedVector<State, 8> states_;
  absl::InlinedVector<Ready, 8> ready_;
  absl::InlinedVector<NodeRef, 2> roots_;
  std::vector<NodeRef> release_at_end_;
  std::vector<CaptureSlot> captures_;
  std::vector<StreamRef> used_;  // streams, other than the caller's, that nodes ran in
  std::vector<std::function<void()>> callbacks_;
  // Nodes whose own slot another task uses.
  std::unique_ptr<absl::flat_hash_map<const Node*, uint32_t>> shared_;
};

// Called every few nodes; an error stops the run.
void SetInterruptCheck(MicaStatus (*check)());

}  // namespace mica::autograd
