// Each kind of collective by Gloo's functions. Bytes are moved as they are; what reduces knows their dtype.
#include <cstring>
#include <numeric>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/scatter.h>
#include <mica/collectives_reduce.h>
#include <mica/plugin.h>

#include "plugins/gloo/group.h"

namespace mica::gloo_engine {
namespace {

using ContextPtr = std::shared_ptr<Context>;

// Gloo's own functions have the slots whose first byte is at most 8.
constexpr uint64_t kExchangeSlots = uint64_t{0x41} << 56;

// Gloo reads through pointers that are not const.
char* In(const MicaCollective& call) { return static_cast<char*>(const_cast<void*>(call.input)); }
char* Out(const MicaCollective& call) { return static_cast<char*>(call.output); }
size_t InBytes(const MicaCollective& call) { return static_cast<size_t>(call.input_count * call.item_size); }
size_t OutBytes(const MicaCollective& call) {
  return static_cast<size_t>(call.output_count * call.item_size);
}

void Divide(const MicaCollective& call, int32_t ranks) {
  if (call.reduction == MICA_REDUCE_AVG)
    plugin::DivideBy(call.output, call.output_count, call.dtype, static_cast<double>(ranks));
}

// Gloo cuts memory between elements, of which it needs the size alone.
template <size_t kSize>
struct Item {
  char bytes[kSize];
};

template <size_t kSize>
void AllReduceItems(const ContextPtr& context, const MicaCollective& call, uint32_t tag) {
  ::gloo::AllreduceOptions options(context);
  options.setTag(tag);
  options.setOutput(static_cast<Item<kSize>*>(call.output), static_cast<size_t>(call.output_count));
  const int32_t dtype = call.dtype, reduction = call.reduction;
  options.setReduceFunction([dtype, reduction](void* into, const void* a, const void* b, size_t count) {
    // All reductions commute, so that it may stand in the place of either.
    if (into == b) std::swap(a, b);
    if (into != a) std::memcpy(into, a, count * kSize);
    plugin::ReduceInto(into, b, static_cast<int64_t>(count), dtype, reduction);
  });
  ::gloo::allreduce(options);
}

void AllReduce(const ContextPtr& context, const MicaCollective& call, uint32_t tag) {
  if (call.input != call.output) std::memcpy(call.output, call.input, OutBytes(call));
  switch (call.item_size) {
    case 1:
      AllReduceItems<1>(context, call, tag);
      break;
    case 2:
      AllReduceItems<2>(context, call, tag);
      break;
    case 4:
      AllReduceItems<4>(context, call, tag);
      break;
    case 8:
      AllReduceItems<8>(context, call, tag);
      break;
    default:
      AllReduceItems<16>(context, call, tag);
  }
  Divide(call, context->size);
}

// Sends part i to rank i. A part has its size in its slot, so that ranks that disagree on it do not meet.
void ExchangeBytes(const ContextPtr& context, char* input, const std::vector<int64_t>& sent, char* output,
                   const std::vector<int64_t>& received, uint32_t tag) {
  const auto slot = [tag](int64_t bytes) {
    return kExchangeSlots | uint64_t{tag} << 24 | Mixed(tag, bytes) >> 40;
  };
  const size_t sends = std::accumulate(sent.begin(), sent.end(), size_t{0});
  const size_t receives = std::accumulate(received.begin(), received.end(), size_t{0});
  const auto from = context->createUnboundBuffer(input, sends);
  const auto into = context->createUnboundBuffer(output, receives);
  size_t read = 0, written = 0;
  for (int i = 0; i < context->size; ++i) {
    const auto out = static_cast<size_t>(sent[i]), in = static_cast<size_t>(received[i]);
    if (i == context->rank) {
      std::memcpy(output + written, input + read, in);
    } else {
      into->recv(i, slot(received[i]), written, in);
      from->send(i, slot(sent[i]), read, out);
    }
    read += out;
    written += in;
  }
  for (int i = 1; i < context->size; ++i) into->waitRecv(context->getTimeout());
  for (int i = 1; i < context->size; ++i) from->waitSend(context->getTimeout());
}

// Each rank gets its part of all inputs and reduces them, in the order of ranks. As many bytes travel as in a
// ring, in one step.
void ReduceScatter(const ContextPtr& context, const MicaCollective& call, uint32_t tag) {
  const size_t part = OutBytes(call);
  const std::vector<int64_t> parts(static_cast<size_t>(context->size), static_cast<int64_t>(part));
  const std::unique_ptr<char[]> all(new char[part * parts.size()]);
  ExchangeBytes(context, In(call), parts, all.get(), parts, tag);
  std::memcpy(call.output, all.get(), part);
  for (size_t i = 1; i < parts.size(); ++i)
    plugin::ReduceInto(call.output, all.get() + i * part, call.output_count, call.dtype, call.reduction);
  Divide(call, context->size);
}

void AllToAll(const ContextPtr& context, const Work& work, uint32_t tag) {
  const MicaCollective& call = work.call;
  std::vector<int64_t> sent = work.input_splits, received = work.output_splits;
  for (int64_t& n : sent) n *= call.item_size;
  for (int64_t& n : received) n *= call.item_size;
  ExchangeBytes(context, In(call), sent, Out(call), received, tag);
}

void Broadcast(const ContextPtr& context, const MicaCollective& call, uint32_t tag) {
  ::gloo::BroadcastOptions options(context);
  options.setTag(tag);
  options.setRoot(call.peer);
  options.setOutput(Out(call), OutBytes(call));
  ::gloo::broadcast(options);
}

void AllGather(const ContextPtr& context, const MicaCollective& call, uint32_t tag) {
  ::gloo::AllgatherOptions options(context);
  options.setTag(tag);
  options.setInput(In(call), InBytes(call));
  options.setOutput(Out(call), OutBytes(call));
  ::gloo::allgather(options);
}

void Gather(const ContextPtr& context, const MicaCollective& call, uint32_t tag) {
  ::gloo::GatherOptions options(context);
  options.setTag(tag);
  options.setRoot(call.peer);
  options.setInput(In(call), InBytes(call));
  if (call.peer == context->rank) options.setOutput(Out(call), OutBytes(call));
  ::gloo::gather(options);
}

void Scatter(const ContextPtr& context, const MicaCollective& call, uint32_t tag) {
  ::gloo::ScatterOptions options(context);
  options.setTag(tag);
  options.setRoot(call.peer);
  if (call.peer == context->rank) {
    std::vector<char*> parts;
    for (int i = 0; i < context->size; ++i)
      parts.push_back(In(call) + static_cast<size_t>(i) * OutBytes(call));
    options.setInputs(parts, OutBytes(call));
  }
  options.setOutput(Out(call), OutBytes(call));
  ::gloo::scatter(options);
}

void Barrier(const ContextPtr& context, uint32_t tag) {
  ::gloo::BarrierOptions options(context);
  options.setTag(tag);
  ::gloo::barrier(options);
}

// Of one rank everything that has an input is a copy.
void RunAlone(const MicaCollective& call) {
  if (call.input && call.output && call.input != call.output)
    std::memcpy(call.output, call.input, OutBytes(call));
}

// All ranks see that there is nothing to move, so that none needs another. Parts of an all_to_all may be
// empty on one rank alone.
bool IsEmpty(const MicaCollective& call) {
  return call.kind != MICA_BARRIER && call.kind != MICA_ALL_TO_ALL && call.input_count == 0 &&
         call.output_count == 0;
}

}  // namespace

uint32_t TagOf(const Work& work, int32_t size) {
  const MicaCollective& call = work.call;
  uint64_t hash = Mixed(Mixed(Mixed(call.kind, call.dtype), call.reduction), call.peer);
  // The number of elements that every rank knows: those of one rank's part.
  const bool scatters = call.kind == MICA_REDUCE_SCATTER || call.kind == MICA_SCATTER;
  const bool known = call.kind != MICA_ALL_TO_ALL && call.kind != MICA_BARRIER;
  const int64_t count = scatters || call.kind == MICA_BROADCAST ? call.output_count : call.input_count;
  hash = Mixed(hash, known ? count : size);
  return static_cast<uint32_t>(hash >> 44) << 12 | static_cast<uint32_t>(work.number & 0xfff);
}

void RunCollective(const ContextPtr& context, const Work& work) {
  const MicaCollective& call = work.call;
  if (context->size == 1) return RunAlone(call);
  if (IsEmpty(call)) return;
  if (call.kind == MICA_ALL_REDUCE || call.kind == MICA_REDUCE_SCATTER)  // refused before anything is sent
    plugin::ReduceInto(nullptr, nullptr, 0, call.dtype, call.reduction);
  const uint32_t tag = TagOf(work, context->size);
  switch (call.kind) {
    case MICA_ALL_REDUCE:
      return AllReduce(context, call, tag);
    case MICA_BROADCAST:
      return Broadcast(context, call, tag);
    case MICA_ALL_GATHER:
      return AllGather(context, call, tag);
    case MICA_REDUCE_SCATTER:
      return ReduceScatter(context, call, tag);
    case MICA_ALL_TO_ALL:
      return AllToAll(context, work, tag);
    case MICA_GATHER:
      return Gather(context, call, tag);
    case MICA_SCATTER:
      return Scatter(context, call, tag);
    case MICA_BARRIER:
      return Barrier(context, tag);
    default:
      MICA_PLUGIN_THROW(MICA_ERROR_NOT_IMPLEMENTED, "The engine `gloo` has no collective of the kind (" +
                                                        std::to_string(call.kind) +
                                                        "); it is built for an older <mica/collectives.h>.");
  }
}

}  // namespace mica::gloo_engine
