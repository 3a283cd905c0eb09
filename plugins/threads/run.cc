// What each collective does with the memory of its ranks.
#include <cstring>

#include <mica/collectives_reduce.h>
#include <mica/plugin.h>

#include "plugins/threads/hub.h"

namespace mica::threads {
namespace {

constexpr const char* kNames[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
                                  "gather",     "scatter",   "send",       "recv",           "barrier"};

std::string Number(int64_t n) { return "(" + std::to_string(n) + ")"; }

// One way in which a rank's call may differ from the first one's.
void Same(const Slot& slot, size_t i, const char* what, int64_t here, int64_t there) {
  if (here == there) return;
  const MicaCollective& first = slot.parts[0].call;
  MICA_PLUGIN_THROW(MICA_ERROR_VALUE, "Rank " + Number(slot.ranks[i]) + " and rank " + Number(slot.ranks[0]) +
                                          " disagree on " + what + " (" + std::to_string(here) + " and " +
                                          std::to_string(there) + ") of " + NameOf(first, slot.number) +
                                          "; all ranks give the same.");
}

void CheckAgreed(const Slot& slot) {
  const MicaCollective& first = slot.parts[0].call;
  const bool message = first.kind == MICA_SEND;
  for (size_t i = 1; i < slot.parts.size(); ++i) {
    const MicaCollective& call = slot.parts[i].call;
    if (!message && call.kind != first.kind)
      MICA_PLUGIN_THROW(MICA_ERROR_VALUE,
                        "Rank " + Number(slot.ranks[i]) + " calls " + NameOf(call, slot.number) +
                            ", where rank " + Number(slot.ranks[0]) + " calls " + NameOf(first, slot.number) +
                            "; all ranks of a group call the same collectives in the same order.");
    Same(slot, i, "the number of the dtype", call.dtype, first.dtype);
    if (message) {
      Same(slot, i, "the number of elements", call.output_count, first.input_count);
      continue;
    }
    Same(slot, i, "the number of the reduction", call.reduction, first.reduction);
    Same(slot, i, "the root", call.peer, first.peer);
    if (first.kind == MICA_ALL_TO_ALL) continue;
    if (first.kind != MICA_SCATTER)
      Same(slot, i, "the number of elements of the input", call.input_count, first.input_count);
    if (first.kind != MICA_GATHER)
      Same(slot, i, "the number of elements of the output", call.output_count, first.output_count);
  }
}

const char* In(const Part& part, int64_t at = 0) {
  return static_cast<const char*>(part.call.input) + at * part.call.item_size;
}
char* Out(const Part& part, int64_t at = 0) {
  return static_cast<char*>(part.call.output) + at * part.call.item_size;
}
void Copy(const Part& to, int64_t to_at, const char* from, int64_t count) {
  if (count) std::memmove(Out(to, to_at), from, static_cast<size_t>(count * to.call.item_size));
}

// The inputs of all ranks, reduced in the order of ranks.
std::string Reduced(const Slot& slot) {
  const MicaCollective& call = slot.parts[0].call;
  std::string sum(In(slot.parts[0]), static_cast<size_t>(call.input_count * call.item_size));
  for (size_t i = 1; i < slot.parts.size(); ++i)
    plugin::ReduceInto(sum.data(), In(slot.parts[i]), call.input_count, call.dtype, call.reduction);
  if (call.reduction == MICA_REDUCE_AVG)
    plugin::DivideBy(sum.data(), call.input_count, call.dtype, static_cast<double>(slot.parts.size()));
  return sum;
}

void Reduce(const Slot& slot) {
  const std::string sum = Reduced(slot);
  const bool scattered = slot.parts[0].call.kind == MICA_REDUCE_SCATTER;
  for (size_t i = 0; i < slot.parts.size(); ++i) {
    const MicaCollective& call = slot.parts[i].call;
    const int64_t at = scattered ? static_cast<int64_t>(i) * call.output_count : 0;
    Copy(slot.parts[i], 0, sum.data() + at * call.item_size, call.output_count);
  }
}

void Gather(const Slot& slot, const Part& to) {
  for (size_t i = 0; i < slot.parts.size(); ++i) {
    const int64_t count = slot.parts[i].call.input_count;
    Copy(to, static_cast<int64_t>(i) * count, In(slot.parts[i]), count);
  }
}

void AllToAll(const Slot& slot) {
  const size_t n = slot.parts.size();
  std::vector<int64_t> read(n, 0);
  for (size_t to = 0; to < n; ++to) {
    int64_t written = 0;
    for (size_t from = 0; from < n; ++from) {
      const int64_t sent = slot.parts[from].input_splits[to], expected = slot.parts[to].output_splits[from];
      MICA_PLUGIN_CHECK(sent == expected, MICA_ERROR_VALUE,
                        "Rank " + Number(static_cast<int64_t>(from)) + " sends " + Number(sent) +
                            " elements to rank " + Number(static_cast<int64_t>(to)) + ", which expects " +
                            Number(expected) + ", in " + NameOf(slot.parts[0].call, slot.number) + ".");
      Copy(slot.parts[to], written, In(slot.parts[from], read[from]), sent);
      written += sent;
      read[from] += sent;
    }
  }
}

}  // namespace

std::string NameOf(const MicaCollective& call, int64_t number) {
  const std::string name = kNames[call.kind];
  if (call.kind == MICA_SEND) return name + " to rank " + Number(call.peer);
  if (call.kind == MICA_RECV) return name + " from rank " + Number(call.peer);
  return name + " number " + Number(number);
}

void RunSlot(const Slot& slot) {
  CheckAgreed(slot);
  const MicaCollective& call = slot.parts[0].call;
  switch (call.kind) {
    case MICA_ALL_REDUCE:
    case MICA_REDUCE_SCATTER:
      return Reduce(slot);
    case MICA_BROADCAST:
      for (const Part& to : slot.parts) Copy(to, 0, Out(slot.parts[call.peer]), call.output_count);
      return;
    case MICA_ALL_GATHER:
      for (const Part& to : slot.parts) Gather(slot, to);
      return;
    case MICA_ALL_TO_ALL:
      return AllToAll(slot);
    case MICA_GATHER:
      return Gather(slot, slot.parts[call.peer]);
    case MICA_SCATTER:
      for (size_t i = 0; i < slot.parts.size(); ++i)
        Copy(slot.parts[i], 0, In(slot.parts[call.peer], static_cast<int64_t>(i) * call.output_count),
             call.output_count);
      return;
    case MICA_SEND:
      return Copy(slot.parts[1], 0, In(slot.parts[0]), call.input_count);
    default:
      return;  // a barrier moves nothing
  }
}

}  // namespace mica::threads
