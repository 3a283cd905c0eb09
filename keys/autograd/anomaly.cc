// Recording and reporting for anomaly mode.
#include "keys/autograd/anomaly.h"

#include <mutex>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "dispatcher/plugins/host.h"
#include "keys/autograd/engine_ops.h"
#include "keys/autograd/graph_task.h"

namespace mica::autograd {
namespace {
std::mutex g_mutex;
std::function<std::string()> g_record;
std::function<void(const std::string&)> g_report;

// " Its forward call was ...", of the innermost call that is the user's; "" where none was recorded.
std::string ForwardLine(const Node& node) {
  const NodeExtra* extra = node.extra();
  if (!extra) return "";
  const size_t last = extra->stack.rfind("  File ");
  if (last == std::string::npos) return "";
  std::vector<std::string_view> lines;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(extra->stack).substr(last), '\n')) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (!text.empty() && lines.size() < 2) lines.emplace_back(text.data(), text.size());
  }
  return absl::StrCat(" Its forward call was in ", std::string(lines[0]), lines.size() > 1 ? ": " : "",
                      lines.size() > 1 ? std::string(lines[1]) : "");
}

}  // namespace

std::atomic<uint64_t> g_anomaly{0};

void SetAnomalyCallbacks(std::function<std::string()> record_stack,
                         std::function<void(const std::string&)> report) {
  std::lock_guard lock(g_mutex);
  g_record = std::move(record_stack);
  g_report = std::move(report);
}

void RecordForward(Node& node) {
  std::function<std::string()> record;
  {
    std::lock_guard lock(g_mutex);
    record = g_record;
  }
  NodeExtra& extra = node.EnsureExtra();
  if (record) extra.stack = record();
  extra.parent = NodeRef::Borrow(GraphTask::CurrentNode());
}

void ReportFailure(const Node& node) {
  std::function<void(const std::string&)> report;
  {
    std::lock_guard lock(g_mutex);
    report = g_report;
  }
  const auto say = [&](const std::string& text) { report ? report(text) : HostWarn(text); };
  const NodeExtra* extra = node.extra();
  const bool recorded = extra && !extra->stack.empty();
  say(absl::StrCat("Error detected in ", node.name(), ", in its backward.",
                   recorded
                       ? " Its forward call was:\n"
                       : " No forward pass information is there: turn anomaly mode on before the forward.",
                   recorded ? extra->stack : ""));
  for (const Node* at = &node; at->extra() && at->extra()->parent; at = at->extra()->parent.get()) {
    const Node& parent = *at->extra()->parent;
    const NodeExtra* of = parent.extra();
    if (!of || of->stack.empty()) continue;
    say(absl::StrCat("That call was made in the backward of ", parent.name(), ", whose forward call was:\n",
                     of->stack));
  }
}

void CheckNan(const Node& node, const Tensor* grads, int count) {
  for (int i = 0; i < count; ++i) {
    MICA_CHECK(!grads[i].defined() || !IsDifferentiable(grads[i].dtype()) || !ops::HasNan(grads[i]),
               "Function '", node.name(), "' returned nan values in its ", i, "th output.",
               ForwardLine(node));
  }
}

}  // namespace mica::autograd
