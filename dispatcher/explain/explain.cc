#include "dispatcher/explain/explain.h"

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/placement.h"
#include "dispatcher/tables/dispatcher.h"

namespace mica {
namespace {

std::string PluginOf(const Scope* scope) {
  if (!scope) return "mica";
  return scope->path().empty() ? scope->name() : absl::StrCat(scope->name(), " (", scope->path(), ")");
}

}  // namespace

std::vector<SlotExplanation> ExplainCall(const Operator& op, KeySet keys) {
  Dispatcher& d = Dispatcher::Get();
  std::lock_guard lock(d.mutex);
  std::vector<SlotExplanation> path;
  bool reached_backend = false;
  for (int bit = 63; bit >= 0 && !reached_backend; --bit) {
    if (!keys.has(bit)) continue;
    if (bit == keys::kFrameEscape && frames::Current()) continue;  // a wrapper is at home here
    const frames::Frame* frame = bit == keys::kFrame ? frames::Current() : nullptr;
    const Resolution r = d.ResolveSlot(op, frame ? kFirstKindKey + frame->kind : bit);
    const std::string key = frame ? absl::StrCat("Frame ", frames::KindOf(frame->kind).name) : KeyName(bit);
    path.push_back({bit, key, r.reason, PluginOf(r.scope), r.detail});
    reached_backend = bit < keys::kBackendCount || r.reason == SlotReason::kComposite;
  }
  return path;
}

std::string ExplainText(const Operator& op, KeySet keys, const MicaValue* args, int64_t n) {
  std::string text =
      absl::StrCat(op.spec().name, "  (class ", Name(op.spec().op_class), ")\n  ", op.spec().schema, "\n");
  if (op.spec().file && *op.spec().file)
    absl::StrAppend(&text, "  described in ", op.spec().file, ":", op.spec().line, "\n");
  absl::StrAppend(&text, "A call with these arguments has the keys (", ToString(keys), ") and passes:\n");
  int step = 0;
  for (const SlotExplanation& s : ExplainCall(op, keys)) {
    absl::StrAppend(&text, "  ", ++step, ". ", s.key, ": ", s.detail, "\n       from plugin ", s.plugin,
                    "\n");
  }
  const std::string objection = args ? Objection(op.spec(), args, n, PlaceOfCall(keys, args, n)) : "";
  if (!objection.empty())
    absl::StrAppend(&text, "The device says that its kernels do not take this call: ", objection, "\n");
  return text;
}

}  // namespace mica
