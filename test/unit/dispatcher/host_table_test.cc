// What a plugin may get wrong when it calls the host's table: each is a sentence that names function and
// argument.
#include <string>

#include "dispatcher/plugins/host.h"
#include "mica/ops.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

std::string Sentence(MicaStatus status) {
  if (status == nullptr) return "";
  std::string sentence(status->message, static_cast<size_t>(status->message_length));
  status->destroy(status);
  return sentence;
}

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
  const auto named = [](const std::string& sentence, const char* function, const std::string& what) {
    INFO(sentence);
    CHECK(sentence.find("`" + std::string(function) + "` of the host") != std::string::npos);
    CHECK(sentence.find(what) != std::string::npos);
  };
  named(Sentence(host.tensor_empty(none, MICA_F32, cpu, 0).status), "tensor_empty", "NULL as `sizes`");
  named(Sentence(host.tensor_empty(minus, MICA_F32, cpu, 0).status), "tensor_empty", "-5 as the number");
  named(Sentence(host.tensor_empty(sizes, MICA_F32, beyond, 0).status), "tensor_empty", "(57, 0)");
  named(Sentence(host.tensor_as_strided(nullptr, sizes, strides, 0).status), "tensor_as_strided", "`self`");
  named(Sentence(host.tensor_as_strided(x.impl(), sizes, none, 0).status), "tensor_as_strided", "`strides`");
  named(Sentence(host.tensor_from_memory(&bits, none, strides, MICA_F32, cpu, nullptr, nullptr).status),
        "tensor_from_memory", "`sizes`");
  named(Sentence(host.tensor_resize(nullptr, sizes)), "tensor_resize", "`self`");
  named(Sentence(host.allocate(cpu, 64, 0, nullptr)), "allocate", "`out`");
  named(Sentence(host.allocate(beyond, 64, 0, &place)), "allocate", "(57, 0)");
  named(Sentence(host.record_stream(nullptr, 0)), "record_stream", "`t`");
  named(Sentence(host.current_stream(beyond, &word)), "current_stream", "(57, 0)");
  named(Sentence(host.current_stream(cpu, nullptr)), "current_stream", "`out`");
  named(Sentence(host.exchange_stream(before, 0, &word)), "exchange_stream", "(0, -1)");
  named(Sentence(host.exchange_stream(cpu, 0, nullptr)), "exchange_stream", "`previous`");
  named(Sentence(host.random_u32(nullptr, cpu, &bits, -1)), "random_u32", "for -1 numbers");
  named(Sentence(host.random_u32(nullptr, cpu, nullptr, 1)), "random_u32", "`out`");
  named(Sentence(host.random_u64(nullptr, beyond, &word, 1)), "random_u64", "(57, 0)");
  named(Sentence(host.random_philox(nullptr, beyond, 1, &word, &word)), "random_philox", "(57, 0)");
  named(Sentence(host.random_words(nullptr, cpu, 1, nullptr)), "random_words", "`out`");
  named(Sentence(host.op_find(MicaStr{nullptr, 3}, &place)), "op_find", "`name`");
  named(Sentence(host.op_find(MicaStr{"mica::neg", 9}, nullptr)), "op_find", "`handle`");
  named(Sentence(host.op_call_boxed(nullptr, &value, 1, &value, 1)), "op_call_boxed", "`handle`");
  named(Sentence(host.op_call_boxed(neg, nullptr, 1, &value, 1)), "op_call_boxed", "`args`");
  named(Sentence(host.op_call_boxed(neg, &value, 1, nullptr, 1)), "op_call_boxed", "`results`");
}

TEST_CASE("NULL is passed over where references are counted", "[dispatcher]") {
  HostTable()->tensor_retain(nullptr);
  HostTable()->tensor_release(nullptr);
}

}  // namespace
}  // namespace mica
