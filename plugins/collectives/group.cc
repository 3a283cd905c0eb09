#include "plugins/collectives/group.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace mica::collectives {
namespace {

constexpr double kSlice = 0.05;  // seconds between two looks for a Ctrl-C

struct Kept {
  MicaTensor *input, *output;
};
void Done(void* held) {
  auto* const kept = static_cast<Kept*>(held);
  if (kept->input) plugin::Host()->tensor_release(kept->input);
  if (kept->output) plugin::Host()->tensor_release(kept->output);
  delete kept;
}

const MicaCollectives* EngineOf(const std::string& name) {
  const std::string extension = name + MICA_COLLECTIVES_EXTENSION_SUFFIX;
  const void* const found = plugin::Host()->extension(plugin::Str(extension), 0);
  const auto* const head = static_cast<const MicaTable*>(found);
  MICA_PLUGIN_CHECK(head && head->major == 1, MICA_ERROR_NOT_IMPLEMENTED,
                    "There is no engine (" + name + ") of collectives: no plugin offers the extension (" +
                        extension +
                        ") of version 1. Use `gloo`, whose ranks are processes (its plugin needs the library "
                        "Gloo), `threads`, whose ranks are threads of one process, or a vendor's plugin.");
  return static_cast<const MicaCollectives*>(found);
}

int32_t Indexed(std::string_view name, const char* what, const char* const* names, int32_t count) {
  std::string all;
  for (int32_t i = 0; i < count; ++i) {
    if (name == names[i]) return i;
    all += std::string(i ? ", " : "") + names[i];
  }
  MICA_PLUGIN_THROW(MICA_ERROR_VALUE, std::string("There is no ") + what + " (" + std::string(name) +
                                          "); expected one of " + all + ".");
}

void CheckDense(MicaTensor* t, const char* name, const char* kind) {
  if (!t) return;
  MICA_PLUGIN_CHECK(TensorRef(t).contiguous(), MICA_ERROR_VALUE,
                    std::string("The tensor `") + name + "` of " + kind +
                        " is not contiguous; give its contiguous() and copy the result back.");
}

}  // namespace

Connection::Connection(const std::string& engine, const std::string& name, int64_t rank, int64_t size,
                       double timeout)
    : table_(EngineOf(engine)), name_(name) {
  MICA_PLUGIN_CHECK(
      size > 0 && size <= std::numeric_limits<int32_t>::max() && rank >= 0 && rank < size, MICA_ERROR_VALUE,
      "Rank (" + std::to_string(rank) + ") is none of a group of (" + std::to_string(size) + ") ranks.");
  MICA_PLUGIN_CHECK(timeout > 0 && timeout < 1e9, MICA_ERROR_VALUE,
                    "The timeout (" + std::to_string(timeout) + " s) of group (" + name +
                        ") is not between 0 and 1e9 seconds.");
  rank_ = static_cast<int32_t>(rank);
  size_ = static_cast<int32_t>(size);
  MicaStr address{"", 0};
  plugin::Check(
      table_->open(plugin::Str(name_), rank_, size_, static_cast<int64_t>(timeout * 1e9), &group_, &address));
  address_.assign(address.data, static_cast<size_t>(address.size));
}

MicaGroup* Connection::open() const {
  MICA_PLUGIN_CHECK(group_, MICA_ERROR_RUNTIME,
                    "Rank (" + std::to_string(rank_) + ") has left the group (" + name_ +
                        "); make another group for what comes after destroy_process_group.");
  return group_;
}

void Connection::Connect(const std::vector<std::string>& addresses) {
  MICA_PLUGIN_CHECK(static_cast<int32_t>(addresses.size()) == size_, MICA_ERROR_VALUE,
                    "There are (" + std::to_string(addresses.size()) + ") addresses for (" +
                        std::to_string(size_) + ") ranks.");
  std::vector<MicaStr> all;
  for (const std::string& address : addresses) all.push_back(plugin::Str(address));
  plugin::Check(table_->connect(open(), all.data()));
}

void Connection::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (group_) table_->close(std::exchange(group_, nullptr));
}

MicaWork* Connection::Start(const MicaCollective& call, MicaTensor* input, MicaTensor* output) {
  const std::lock_guard<std::mutex> lock(mutex_);
  MicaGroup* const group = open();
  if (input) plugin::Host()->tensor_retain(input);
  if (output) plugin::Host()->tensor_retain(output);
  MicaWork* work = nullptr;
  plugin::Check(table_->start(group, &call, new Kept{input, output}, &Done, &work));
  return work;
}

bool Connection::Wait(MicaWork* work, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(std::min(seconds, 1e9));
  for (;;) {
    const double left = std::chrono::duration<double>(end - Clock::now()).count();
    int32_t finished = 0;
    const double slice = std::clamp(left, 0.0, kSlice);
    plugin::Check(table_->wait(work, static_cast<int64_t>(slice * 1e9), &finished));
    if (finished || left <= 0) return finished != 0;
    if (plugin::Host()->interrupted())
      throw plugin::Error(MICA_ERROR_INTERRUPTED, "Interrupted in a collective.");
  }
}

namespace {

constexpr const char* kKinds[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
                                  "gather",     "scatter",   "send",       "recv",           "barrier"};

}  // namespace

Call::Call(Connection& g, std::string_view kind, MicaTensor* in, MicaTensor* out)
    : group(g), input(in), output(out) {
  collective.struct_size = sizeof collective;
  collective.kind = Indexed(kind, "collective", kKinds, MICA_COLLECTIVE_KINDS);
  const char* const name = kKinds[collective.kind];
  CheckDense(input, "input", name);
  CheckDense(output, "output", name);
  if (MicaTensor* const some = output ? output : input) {
    collective.dtype = TensorRef(some).dtype();
    collective.item_size = TensorRef(some).itemsize();
  }
  if (input && output)
    MICA_PLUGIN_CHECK(TensorRef(input).dtype() == TensorRef(output).dtype(), MICA_ERROR_TYPE,
                      std::string("The tensors `input` and `output` of ") + name +
                          " differ in dtype; convert one of them.");
  if (input) {
    collective.input = input->dl.data;
    collective.input_count = TensorRef(input).numel();
  }
  if (output) {
    collective.output = output->dl.data;
    collective.output_count = TensorRef(output).numel();
  }
}

void Call::Reduce(std::string_view reduction) {
  static constexpr const char* kReductions[] = {"sum", "product", "min", "max", "band", "bor", "bxor", "avg"};
  collective.reduction = Indexed(reduction, "reduction", kReductions, MICA_REDUCE_AVG + 1);
}

void Call::Peer(int64_t peer, const char* name) {
  MICA_PLUGIN_CHECK(peer >= 0 && peer < group.size(), MICA_ERROR_VALUE,
                    std::string("`") + name + "` (" + std::to_string(peer) + ") is none of the group's (" +
                        std::to_string(group.size()) + ") ranks.");
  MICA_PLUGIN_CHECK(peer != group.rank() || (collective.kind != MICA_SEND && collective.kind != MICA_RECV),
                    MICA_ERROR_VALUE,
                    "Rank (" + std::to_string(peer) + ") sends to or receives from itself; copy the tensor.");
  collective.peer = static_cast<int32_t>(peer);
}

void Call::Split(MicaIntSpan output_splits, MicaIntSpan input_splits) {
  const auto elements = [&](MicaIntSpan splits, MicaTensor* t, const char* name) {
    const int64_t rows = TensorRef(t).ndim() ? TensorRef(t).size(0) : 0;
    int64_t total = 0, row = 1;
    for (int32_t d = 1; d < TensorRef(t).ndim(); ++d) row *= TensorRef(t).size(d);
    std::vector<int64_t> counts;
    for (int64_t i = 0; i < splits.size; ++i) {
      MICA_PLUGIN_CHECK(
          splits.data[i] >= 0, MICA_ERROR_VALUE,
          std::string("`") + name + "` has a negative size (" + std::to_string(splits.data[i]) + ").");
      total += splits.data[i];
      counts.push_back(splits.data[i] * row);
    }
    MICA_PLUGIN_CHECK(splits.size == group.size() && total == rows, MICA_ERROR_VALUE,
                      std::string("`") + name + "` has (" + std::to_string(splits.size) +
                          ") sizes with the sum (" + std::to_string(total) + "); expected (" +
                          std::to_string(group.size()) + ") sizes, one for each rank, with the sum (" +
                          std::to_string(rows) + ").");
    return counts;
  };
  of_output = elements(output_splits, output, "output_splits");
  of_input = elements(input_splits, input, "input_splits");
  const auto own = static_cast<size_t>(group.rank());
  MICA_PLUGIN_CHECK(of_input[own] == of_output[own], MICA_ERROR_VALUE,
                    "Rank (" + std::to_string(own) + ") of all_to_all sends (" +
                        std::to_string(of_input[own]) + ") elements to itself by `input_splits` and takes (" +
                        std::to_string(of_output[own]) +
                        ") from itself by `output_splits`; give equal sizes there.");
  collective.output_splits = of_output.data();
  collective.input_splits = of_input.data();
}

void Call::CheckSizes() const {
  const int32_t kind = collective.kind;
  const int64_t ranks = group.size(), in = collective.input_count, out = collective.output_count;
  const bool is_root = collective.peer == group.rank();
  const bool reads = kind != MICA_BROADCAST && kind != MICA_RECV && kind != MICA_BARRIER &&
                     (kind != MICA_SCATTER || is_root);
  const bool writes = kind != MICA_SEND && kind != MICA_BARRIER && (kind != MICA_GATHER || is_root);
  MICA_PLUGIN_CHECK((input || !reads) && (output || !writes), MICA_ERROR_VALUE,
                    std::string("The collective (") + kKinds[kind] + ") gets no `" +
                        (input || !reads ? "output" : "input") + "`, which this rank needs.");
  const bool gathers = kind == MICA_ALL_GATHER || (kind == MICA_GATHER && is_root);
  const bool scatters = kind == MICA_REDUCE_SCATTER || (kind == MICA_SCATTER && is_root);
  const int64_t expected = gathers ? ranks * in : in;
  MICA_PLUGIN_CHECK(scatters ? in == ranks * out : !(gathers || kind == MICA_ALL_REDUCE) || out == expected,
                    MICA_ERROR_VALUE,
                    std::string("The collective (") + kKinds[kind] + ") of (" + std::to_string(ranks) +
                        ") ranks gets an `input` of (" + std::to_string(in) +
                        ") elements and an `output` of (" + std::to_string(out) + "), which do not fit.");
}

MicaWork* Call::Start() {
  CheckSizes();
  return group.Start(collective, input, output);
}

void Call::Run() {
  MicaWork* const work = Start();
  const MicaStatus status = plugin::CatchAll([&] { group.Wait(work, 1e9); });
  group.Release(work);
  plugin::Check(status);
}

}  // namespace mica::collectives
