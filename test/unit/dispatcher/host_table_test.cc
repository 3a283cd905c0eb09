// What a plugin may get wrong when it calls the host's table: each is a sentence that names function and
// argument.
#include <string>

#include "dispatcher/plugins/host.h"
#include "dispatcher/plugins/status.h"
#include "mica/ops.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

TEST_CASE("the host's functions name the argument that is NULL, negative or of no device", "[dispatcher]") {
  const MicaHost& host = *HostTable();
  const Tensor x = ops::ones({2});
  const int64_t two = 2, one = 1;
  const MicaIntSpan none{nullptr, 2}, minus{&two, -5}, sizes{&two, 1}, strides{&one, 1};
  const MicaDevice cpu{0, 0}, beyond{57, 0}, before{0, -1};
  void* place = nullptr;
  uint64_t word = 0;
  uint32_t bits = 0;
  MicaValue value{};
  REQUIRE(host.op_find(MicaStr{"mica::neg", 9}, &place) == nullptr);
  void* const neg = place;
  const auto named = [](MicaStatus status, const std::string& function, const std::string& what) {
    MICA_REQUIRE_ERROR(ThrowIfError(status), "A plugin calls `" + function + "` of the host " + what);
  };
  named(host.tensor_empty(none, MICA_F32, cpu, 0).status, "tensor_empty", "and gives NULL as `sizes`");
  named(host.tensor_empty(minus, MICA_F32, cpu, 0).status, "tensor_empty", "and gives -5 as the number");
  named(host.tensor_empty(sizes, MICA_F32, beyond, 0).status, "tensor_empty", "for a device (57, 0)");
  named(host.tensor_as_strided(nullptr, sizes, strides, 0).status, "tensor_as_strided",
        "and gives NULL as `self`");
  named(host.tensor_as_strided(x.impl(), sizes, none, 0).status, "tensor_as_strided",
        "and gives NULL as `strides`");
  named(host.tensor_from_memory(&bits, none, strides, MICA_F32, cpu, nullptr, nullptr).status,
        "tensor_from_memory", "and gives NULL as `sizes`");
  named(host.tensor_resize(nullptr, sizes), "tensor_resize", "and gives NULL as `self`");
  named(host.allocate(cpu, 64, 0, nullptr), "allocate", "and gives NULL as `out`");
  named(host.allocate(beyond, 64, 0, &place), "allocate", "for a device (57, 0)");
  named(host.record_stream(nullptr, 0), "record_stream", "and gives NULL as `t`");
  named(host.current_stream(beyond, &word), "current_stream", "for a device (57, 0)");
  named(host.current_stream(cpu, nullptr), "current_stream", "and gives NULL as `out`");
  named(host.exchange_stream(before, 0, &word), "exchange_stream", "for a device (0, -1)");
  named(host.exchange_stream(cpu, 0, nullptr), "exchange_stream", "and gives NULL as `previous`");
  named(host.random_u32(nullptr, cpu, &bits, -1), "random_u32", "for -1 numbers");
  named(host.random_u32(nullptr, cpu, nullptr, 1), "random_u32", "and gives NULL as `out`");
  named(host.random_u64(nullptr, beyond, &word, 1), "random_u64", "for a device (57, 0)");
  named(host.random_philox(nullptr, beyond, 1, &word, &word), "random_philox", "for a device (57, 0)");
  named(host.random_words(nullptr, cpu, 1, nullptr), "random_words", "and gives NULL as `out`");
  named(host.op_find(MicaStr{nullptr, 3}, &place), "op_find", "and gives NULL as `name`");
  named(host.op_find(MicaStr{"mica::neg", 9}, nullptr), "op_find", "and gives NULL as `handle`");
  named(host.op_call_boxed(nullptr, &value, 1, &value, 1), "op_call_boxed", "and gives NULL as `handle`");
  named(host.op_call_boxed(neg, nullptr, 1, &value, 1), "op_call_boxed", "and gives NULL as `args`");
  named(host.op_call_boxed(neg, &value, 1, nullptr, 1), "op_call_boxed", "and gives NULL as `results`");
}

TEST_CASE("NULL is passed over where references are counted", "[dispatcher]") {
  HostTable()->tensor_retain(nullptr);
  HostTable()->tensor_release(nullptr);
}

}  // namespace
}  // namespace mica
