// Anomaly mode: nodes remember the stack of their forward, and a failing node
// prints it; NaN gradients become errors if asked.
//
// The stack is text from the binding's `record_stack`; without a binding it is
// empty. Turning the mode on affects nodes that are made afterwards.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "keys/autograd/node.h"

namespace mica::autograd {

extern std::atomic<uint64_t> g_anomaly;  // MICA_ANOMALY_*
inline bool AnomalyMode() { return g_anomaly.load(std::memory_order_relaxed) != 0; }

void SetAnomalyCallbacks(std::function<std::string()> record_stack,
                         std::function<void(const std::string&)> report);
// Stores the present stack, and the node that runs on this thread, in `node`.
void RecordForward(Node& node);
// Prints the forward stacks of `node` and of those in whose backward it was made.
void ReportFailure(const Node& node);
// Throws if a defined one of `grads` holds a NaN.
void CheckNan(const Node& node, const Tensor* grads, int count);

}  // namespace mica::autograd
