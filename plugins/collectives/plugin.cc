// collectives: the kernels of the operators on the CPU, which hand each call to the group's engine.
#include <operators.h>

#include <cstring>

#include <mica/collectives_reduce.h>
#include <mica/formula.h>

#include "plugins/collectives/group.h"

namespace mica::collectives {
namespace {

using formula::Argument;
using formula::Dims;
using plugin::Object;
using plugin::OwnedTensor;

#define KERNEL(name) void name(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t)

Connection& GroupOf(const MicaValue& v) { return *Object<Group>::In(v).connection; }
std::string_view Text(const MicaValue& v) { return {v.u.str.data, static_cast<size_t>(v.u.str.size)}; }

void GiveInt(MicaValue* result, int32_t tag, int64_t value) {
  result->tag = tag;
  result->u.i = value;
}
void Give(MicaValue* result, OwnedTensor t) {
  result->tag = MICA_VALUE_TENSOR;
  result->u.tensor = t.release();
}
void GiveSame(MicaValue* result, MicaTensor* t) {
  plugin::Host()->tensor_retain(t);
  Give(result, OwnedTensor(t));
}

OwnedTensor Dense(const MicaValue& v) {
  static const formula::Operator contiguous("mica::contiguous");
  return OwnedTensor(
      contiguous
          .Call<formula::Tensor>(formula::Tensor::Borrow(v.u.tensor), formula::MemoryFormat::kContiguous)
          .release());
}

// A new tensor of these rows, each like those of `like`.
OwnedTensor Rows(int64_t rows, const OwnedTensor& like, const char* op) {
  const TensorRef t(like.get());
  MICA_PLUGIN_CHECK(t.ndim() > 0, MICA_ERROR_VALUE,
                    std::string(op) + " works along the first dimension, and `self` has none.");
  Dims sizes(t.sizes(), t.sizes() + t.ndim());
  sizes[0] = rows;
  return OwnedTensor::Empty(sizes.data(), t.ndim(), t.dtype(), MicaDevice{0, 0});
}
OwnedTensor Like(const OwnedTensor& t) {
  return OwnedTensor::Empty(TensorRef(t.get()).sizes(), TensorRef(t.get()).ndim(), TensorRef(t.get()).dtype(),
                            MicaDevice{0, 0});
}
int64_t RowsOf(const OwnedTensor& t) { return TensorRef(t.get()).ndim() ? TensorRef(t.get()).size(0) : 0; }
int64_t Divided(const OwnedTensor& t, int64_t ranks, const char* op) {
  MICA_PLUGIN_CHECK(RowsOf(t) % ranks == 0, MICA_ERROR_VALUE,
                    std::string(op) + " cuts the first dimension, of size (" + std::to_string(RowsOf(t)) +
                        "), which is no multiple of the number of ranks (" + std::to_string(ranks) + ").");
  return RowsOf(t) / ranks;
}
void Zero(const OwnedTensor& t) {
  const TensorRef ref(t.get());
  if (ref.numel()) std::memset(ref.data<void>(), 0, static_cast<size_t>(ref.numel() * ref.itemsize()));
}

void CheckHasGradient(const char* op, std::string_view reduction) {
  MICA_PLUGIN_CHECK(reduction == "sum" || reduction == "avg", MICA_ERROR_NOT_IMPLEMENTED,
                    std::string(op) + " has a gradient for the reductions sum and avg, not for (" +
                        std::string(reduction) + "); detach its input, or reduce by one of those.");
}

// ---- groups

KERNEL(Open) {
  Object<Group>::Make(
      Group{std::make_shared<Connection>(std::string(Text(args[0])), std::string(Text(args[1])), args[2].u.i,
                                         args[3].u.i, args[4].u.f)})
      .Give(&results[0]);
}

constexpr char kDigits[] = "0123456789abcdef";

KERNEL(Address) {
  thread_local std::string text;  // lives until the host has read it
  text.clear();
  for (const unsigned char c : GroupOf(args[0]).address()) {
    text += kDigits[c >> 4];
    text += kDigits[c & 15];
  }
  results[0].tag = MICA_VALUE_STR;
  results[0].u.str = plugin::Str(text);
}

int Digit(char c) {
  const char* const found = c ? std::strchr(kDigits, c) : nullptr;
  MICA_PLUGIN_CHECK(found, MICA_ERROR_VALUE, "An address of a rank is no text of hexadecimal digits.");
  return static_cast<int>(found - kDigits);
}

KERNEL(Connect) {
  (void)results;
  std::vector<std::string> addresses(1);
  const std::string_view text = Text(args[1]);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      addresses.emplace_back();
      continue;
    }
    const int high = Digit(text[i]), low = Digit(i + 1 < text.size() ? text[++i] : 0);
    addresses.back() += static_cast<char>(high * 16 + low);
  }
  GroupOf(args[0]).Connect(addresses);
}

KERNEL(Close) {
  (void)results;
  GroupOf(args[0]).Close();
}
KERNEL(Rank) { GiveInt(&results[0], MICA_VALUE_INT, GroupOf(args[0]).rank()); }
KERNEL(Size) { GiveInt(&results[0], MICA_VALUE_INT, GroupOf(args[0]).size()); }

// ---- collectives

OwnedTensor AllReduced(Connection& group, const MicaValue& self, std::string_view reduction) {
  const OwnedTensor input = Dense(self);
  OwnedTensor output = Like(input);
  Call call(group, "all_reduce", input.get(), output.get());
  call.Reduce(reduction);
  call.Run();
  return output;
}
KERNEL(AllReduce) { Give(&results[0], AllReduced(GroupOf(args[1]), args[0], Text(args[2]))); }
KERNEL(AllReduceBackward) {
  CheckHasGradient("all_reduce", Text(args[2]));
  Give(&results[0], AllReduced(GroupOf(args[1]), args[0], Text(args[2])));
}
KERNEL(AllReduceInPlace) {
  Call call(GroupOf(args[1]), "all_reduce", args[0].u.tensor, args[0].u.tensor);
  call.Reduce(Text(args[2]));
  call.Run();
  GiveSame(&results[0], args[0].u.tensor);
}

void RunBroadcast(Connection& group, MicaTensor* t, int64_t src) {
  Call call(group, "broadcast", nullptr, t);
  call.Peer(src, "src");
  call.Run();
}
KERNEL(Broadcast) {
  const OwnedTensor input = Dense(args[0]);
  const TensorRef from(input.get());
  OwnedTensor output = Like(input);
  if (from.numel())
    std::memcpy(output.get()->dl.data, from.data<void>(),
                static_cast<size_t>(from.numel() * from.itemsize()));
  RunBroadcast(GroupOf(args[1]), output.get(), args[2].u.i);
  Give(&results[0], std::move(output));
}
KERNEL(BroadcastInPlace) {
  RunBroadcast(GroupOf(args[1]), args[0].u.tensor, args[2].u.i);
  GiveSame(&results[0], args[0].u.tensor);
}
KERNEL(BroadcastBackward) {
  OwnedTensor sum = AllReduced(GroupOf(args[1]), args[0], "sum");
  if (GroupOf(args[1]).rank() != args[2].u.i) Zero(sum);
  Give(&results[0], std::move(sum));
}

OwnedTensor AllGathered(Connection& group, const MicaValue& self) {
  const OwnedTensor input = Dense(self);
  OwnedTensor output = Rows(RowsOf(input) * group.size(), input, "all_gather");
  Call(group, "all_gather", input.get(), output.get()).Run();
  return output;
}
KERNEL(AllGather) { Give(&results[0], AllGathered(GroupOf(args[1]), args[0])); }

KERNEL(ReduceScatter) {
  Connection& group = GroupOf(args[1]);
  const OwnedTensor input = Dense(args[0]);
  OwnedTensor output = Rows(Divided(input, group.size(), "reduce_scatter"), input, "reduce_scatter");
  Call call(group, "reduce_scatter", input.get(), output.get());
  call.Reduce(Text(args[2]));
  call.Run();
  Give(&results[0], std::move(output));
}
KERNEL(ReduceScatterBackward) {
  CheckHasGradient("reduce_scatter", Text(args[2]));
  OwnedTensor all = AllGathered(GroupOf(args[1]), args[0]);
  const TensorRef t(all.get());
  if (Text(args[2]) == "avg") plugin::DivideBy(t.data<void>(), t.numel(), t.dtype(), GroupOf(args[1]).size());
  Give(&results[0], std::move(all));
}

KERNEL(AllToAll) {
  const OwnedTensor input = Dense(args[0]);
  int64_t rows = 0;
  for (int64_t i = 0; i < args[2].u.ints.size; ++i) rows += args[2].u.ints.data[i];
  OwnedTensor output = Rows(rows, input, "all_to_all");
  Call call(GroupOf(args[1]), "all_to_all", input.get(), output.get());
  call.Split(args[2].u.ints, args[3].u.ints);
  call.Run();
  Give(&results[0], std::move(output));
}

KERNEL(Gather) {
  Connection& group = GroupOf(args[1]);
  const OwnedTensor input = Dense(args[0]);
  OwnedTensor output = Rows(RowsOf(input) * group.size(), input, "gather");
  const bool root = group.rank() == args[2].u.i;
  if (!root) Zero(output);
  Call call(group, "gather", input.get(), root ? output.get() : nullptr);
  call.Peer(args[2].u.i, "dst");
  call.Run();
  Give(&results[0], std::move(output));
}
KERNEL(Scatter) {
  Connection& group = GroupOf(args[1]);
  const OwnedTensor input = Dense(args[0]);
  OwnedTensor output = Rows(Divided(input, group.size(), "scatter"), input, "scatter");
  Call call(group, "scatter", group.rank() == args[2].u.i ? input.get() : nullptr, output.get());
  call.Peer(args[2].u.i, "src");
  call.Run();
  Give(&results[0], std::move(output));
}

KERNEL(Send) {
  (void)results;
  const OwnedTensor input = Dense(args[0]);
  Call call(GroupOf(args[1]), "send", input.get(), nullptr);
  call.Peer(args[2].u.i, "dst");
  call.collective.tag = args[3].u.i;
  call.Run();
}
KERNEL(Receive) {
  Call call(GroupOf(args[1]), "recv", nullptr, args[0].u.tensor);
  call.Peer(args[2].u.i, "src");
  call.collective.tag = args[3].u.i;
  call.Run();
  GiveSame(&results[0], args[0].u.tensor);
}
KERNEL(Barrier) {
  (void)results;
  Call(GroupOf(args[0]), "barrier", nullptr, nullptr).Run();
}

// ---- asynchronous

MicaTensor* TensorOrNull(const MicaValue& v) { return v.tag == MICA_VALUE_TENSOR ? v.u.tensor : nullptr; }

KERNEL(Start) {
  const auto& group = Object<Group>::In(args[3]).connection;
  Call call(*group, Text(args[0]), TensorOrNull(args[1]), TensorOrNull(args[2]));
  call.Reduce(Text(args[4]));
  call.Peer(args[5].u.i, "peer");
  call.collective.tag = args[6].u.i;
  if (call.collective.kind == MICA_ALL_TO_ALL) {
    MICA_PLUGIN_CHECK(call.input && call.output, MICA_ERROR_VALUE, "all_to_all needs `input` and `output`.");
    call.Split(args[7].u.ints, args[8].u.ints);
  }
  Object<Work>::Make(group, call.Start()).Give(&results[0]);
}

KERNEL(Wait) {
  Work& work = Object<Work>::In(args[0]);
  GiveInt(&results[0], MICA_VALUE_BOOL, work.connection->Wait(work.work, args[1].u.f));
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  ::collectives::RegisterOperators(registrar);
  plugin::Registrar cpu(registrar, "cpu");
  cpu.Boxed<&Open>("collectives::open");
  cpu.Boxed<&Address>("collectives::address");
  cpu.Boxed<&Connect>("collectives::connect");
  cpu.Boxed<&Close>("collectives::close");
  cpu.Boxed<&Rank>("collectives::group_rank");
  cpu.Boxed<&Size>("collectives::group_size");
  cpu.Boxed<&AllReduce>("collectives::all_reduce");
  cpu.Boxed<&AllReduceBackward>("collectives::_all_reduce_backward");
  cpu.Boxed<&AllReduceInPlace>("collectives::all_reduce_");
  cpu.Boxed<&Broadcast>("collectives::broadcast");
  cpu.Boxed<&BroadcastInPlace>("collectives::broadcast_");
  cpu.Boxed<&BroadcastBackward>("collectives::_broadcast_backward");
  cpu.Boxed<&AllGather>("collectives::all_gather");
  cpu.Boxed<&ReduceScatter>("collectives::reduce_scatter");
  cpu.Boxed<&ReduceScatterBackward>("collectives::_reduce_scatter_backward");
  cpu.Boxed<&AllToAll>("collectives::all_to_all");
  cpu.Boxed<&Gather>("collectives::gather");
  cpu.Boxed<&Scatter>("collectives::scatter");
  cpu.Boxed<&Send>("collectives::send");
  cpu.Boxed<&Receive>("collectives::recv_");
  cpu.Boxed<&Barrier>("collectives::barrier");
  cpu.Boxed<&Start>("collectives::start");
  cpu.Boxed<&Wait>("collectives::wait");
}

}  // namespace
}  // namespace mica::collectives

MICA_PLUGIN("collectives", "Mica", "0.1", "", "", "operators:collectives", mica::collectives::Init)
