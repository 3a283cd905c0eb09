// The slots of frames: how they are filled, and what runs in them.
#include "dispatcher/frames/frame_slots.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/tables/dispatcher.h"

namespace mica {
namespace internal {

void RunFrame(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
              MicaValue* results) {
  const frames::Frame* frame = frames::Current();
  MICA_INTERNAL(frame, "a call is routed to frames while none is current.");
  const Slot& slot = static_cast<const FrameTable*>(k.context)->slots[frame->kind];
  if (op.spec().written_args) {  // before any kernel wrote
    const frames::LeaveFrame left;
    frames::CheckWrites(op, *frame, args, n);
  }
  const ExcludeGuard above(keys::kAboveFrame);
  const SignatureAdapters* adapters = op.spec().adapters;
  if (adapters && slot.fn && slot.fn != adapters->boxing)
    return adapters->call_slot(slot, keys, args, results);
  MICA_INTERNAL(slot.context, "an operator's table is older than the frame kind.");
  const auto& kernel = *static_cast<const BoxedKernel*>(slot.context);
  kernel.fn(kernel, op, keys, args, n, results);
}

void RunInParent(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
                 MicaValue* results) {
  const auto& below = frames::KindOf(frames::Current()->kind).below_autograd;
  if (below)
    below(op, args, n, results);
  else
    frames::CallInParent(op, args, n, results);
}

void RunNoRule(const BoxedKernel&, const Operator& op, KeySet, const MicaValue*, int64_t, MicaValue*) {
  frames::ThrowNoRule(op, *frames::Current());
}

}  // namespace internal

int frames::ProvidedKind(std::string_view name, std::string_view why) {
  int kind = KindNumber(name);
  if (kind >= 0 && IsKindEnabled(kind)) return kind;  // a plugin that is starting enables its kind at the end
  const std::string provides = absl::StrCat("layer:", std::string(name));
  EnsureProvider(provides);
  kind = KindNumber(name);
  MICA_CHECK(kind >= 0, std::string(why), " ", MissingProviderSentence(provides));
  return kind;
}

int KeyByName(std::string_view name) {
  if (name == "Composite") return kCompositeKey;
  if (const int kind = frames::KindNumber(name); kind >= 0) return kFirstKindKey + kind;
  return KeyBit(name);
}

namespace {
Resolution Of(Slot slot, SlotReason reason, std::string detail) {
  Resolution r;
  r.slot = slot;
  r.reason = reason;
  r.detail = std::move(detail);
  return r;
}
}  // namespace

Resolution Dispatcher::ResolveFrameBit(const Operator& op, int bit) {
  if (bit == keys::kFrameEscape)
    return Of(BoxedSlot(op, {&internal::RunEscaped, nullptr, nullptr}), SlotReason::kMissing,
              "the tensor escaped from its transform: a constant goes on as its value, others raise");
  if (bit == keys::kFrameBelow)
    return Of(BoxedSlot(op, {&internal::RunInParent, nullptr, nullptr}), SlotReason::kKernel,
              "goes on in the frame's parent");
  FrameTable table{};
  for (int kind = 0; kind < frames::NumKinds(); ++kind)
    table.slots[kind] = ResolveKind(op, kFirstKindKey + kind).slot;
  std::deque<FrameTable>& pool = StateOf(op).frame_tables;
  auto found = std::find_if(pool.begin(), pool.end(), [&](const FrameTable& t) {
    return std::memcmp(&t, &table, sizeof(FrameTable)) == 0;
  });
  FrameTable* kept = found == pool.end() ? &pool.emplace_back(table) : &*found;
  return Of(BoxedSlot(op, {&internal::RunFrame, kept, nullptr}), SlotReason::kKernel,
            "the kernel for the current frame's kind");
}

// A kernel; what the kind's rule chooses; the decomposition, where the kind asks for it; its boxed
// fallback; an error.
Resolution Dispatcher::ResolveKind(const Operator& op, int key) {
  Resolution r;
  const KernelEntry* const e = Top(op, key);
  if (e) r = FromEntry(op, *e);
  if (e || ResolveRule(op, key, r)) {
    if (r.fallthrough) r.slot = BoxedSlot(op, {&internal::RunInParent, nullptr, nullptr});
    r.fallthrough = false;
    return r;
  }
  if (ResolveDecomposition(op, key, r) || ResolveFallback(op, key, "the kind's boxed fallback", r)) return r;
  return Of(BoxedSlot(op, {&internal::RunNoRule, nullptr, nullptr}), SlotReason::kMissing,
            "the kind has no rule for the operator, and it has no decomposition");
}

}  // namespace mica
