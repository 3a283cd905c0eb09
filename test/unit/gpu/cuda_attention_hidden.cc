// Attention by cuDNN, imitated (fake/cudnn.cc), which computes the graphs that it is given: shapes and
// layouts against plain loops. Runs in processes of cuda_test.cc whose environment names the libraries.
#include <dlfcn.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include <mica/plugin.h>

#include "plugins/cuda/attention.h"
#include "plugins/cuda/cudnn.h"
#include "test/support/mica_test.h"
#include "test/unit/gpu/fake_host.h"

namespace cuda::test {
namespace {

using gpu::AttentionProblem;
using gpu::AttentionShape;
using gpu::AttentionTensor;

template <typename R = int, typename... A>
R Fake(const char* function, A... arguments) {
  void* handle = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(handle);
  return reinterpret_cast<R (*)(A...)>(dlsym(handle, function))(arguments...);
}
int Count(const char* function) { return Fake(function); }

float FromBits(uint16_t bits, int32_t dtype) {
  if (dtype == MICA_F16) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const float size =
        exponent ? std::ldexp(1024.0f + mantissa, exponent - 25) : std::ldexp(float(mantissa), -24);
    return bits >> 15 ? -size : size;
  }
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

// How heads and rows lie in memory.
enum class Order { kHeadsOutside, kHeadsInside, kThreeTogether, kPadded };

// Half numbers of [batch, heads, rows, width] in an order; what lies between them stays as it was.
struct Halves {
  Halves(const AttentionShape& s, bool has_queries, Order order, std::mt19937* generator)
      : dtype(s.dtype),
        sizes{s.batch, has_queries ? s.heads : s.key_heads, has_queries ? s.queries : s.keys, s.width} {
    const int64_t heads = sizes[1], rows = sizes[2], width = sizes[3];
    const int64_t step = order == Order::kThreeTogether ? 3 * heads * width
                         : order == Order::kPadded      ? heads * (width + 8)
                                                        : heads * width;
    tensor.row = order == Order::kHeadsOutside ? width : step;
    tensor.head = order == Order::kHeadsOutside ? rows * width : order == Order::kPadded ? width + 8 : width;
    tensor.batch = rows * (order == Order::kHeadsOutside ? heads * width : step);
    memory.resize(static_cast<size_t>(s.batch * tensor.batch + 8), kUntouched);
    // Vectors begin at multiples of 16 bytes on the machines that tests run on.
    tensor.data = memory.data();
    if (generator)
      for (size_t i = 0; i < memory.size(); ++i)
        memory[i] = static_cast<uint16_t>(
            ((*generator)() % 2 << 15) |
            (dtype == MICA_F16 ? 0x3000 + (*generator)() % 0xc00 : 0x3e00 + (*generator)() % 0x180));
    else
      for (int64_t b = 0; b < sizes[0]; ++b)
        for (int64_t h = 0; h < heads; ++h)
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t w = 0; w < width; ++w) memory[At(b, h, r, w)] = 0;
  }
  size_t At(int64_t b, int64_t h, int64_t r, int64_t w) const {
    return static_cast<size_t>(b * tensor.batch + h * tensor.head + r * tensor.row + w);
  }
  double operator()(int64_t b, int64_t h, int64_t r, int64_t w) const {
    return static_cast<double>(FromBits(memory[At(b, h, r, w)], dtype));
  }
  static constexpr uint16_t kUntouched = 0x7bcd;
  int32_t dtype;
  int64_t sizes[4];
  AttentionTensor tensor;
  std::vector<uint16_t> memory;
};

// A problem with its memory, and what is right for it.
class Case {
 public:
  Case(const AttentionShape& shape, Order order, std::mt19937& generator)
      : s(shape),
        query(s, true, order, &generator),
        key(s, false, order, &generator),
        value(s, false, order, &generator),
        output(s, true, order, nullptr),
        grad_output(s, true, order, &generator),
        grad_query(s, true, order, nullptr),
        grad_key(s, false, order, nullptr),
        grad_value(s, false, order, nullptr),
        log_sum(static_cast<size_t>(s.batch * s.heads * s.queries)) {
    GetHost().settings[MICA_SETTING_CONVOLUTION_LIBRARY] = 1;
    GetHost().settings[MICA_SETTING_ATTENTION_LIBRARY] = 1;
    problem.shape = s;
    problem.scale = 0.3;
    problem.stream = 5;
    problem.query = query.tensor, problem.key = key.tensor, problem.value = value.tensor,
    problem.output = output.tensor;
    problem.grad_output = grad_output.tensor, problem.grad_query = grad_query.tensor;
    problem.grad_key = grad_key.tensor, problem.grad_value = grad_value.tensor;
    problem.log_sum = log_sum.data();
    problem.workspace = [this](size_t size) {
      REQUIRE(workspace.empty());
      workspace.assign(size, '\xff');
      return workspace.data();
    };
  }
  // Requires that cuDNN's results are right.
  void Check() {
    INFO("batch " << s.batch << ", heads " << s.heads << " of " << s.key_heads << ", queries " << s.queries
                  << ", keys " << s.keys << ", width " << s.width << ", causal " << s.is_causal << ", dtype "
                  << s.dtype);
    REQUIRE(BecomesTrue([&] { return GetCudnnAttention().Forward(problem); }));
    CheckForward();
    REQUIRE(BecomesTrue([&] { return GetCudnnAttention().Backward(problem); }));
    CheckBackward();
  }

  AttentionShape s;
  AttentionProblem problem;
  Halves query, key, value, output, grad_output, grad_query, grad_key, grad_value;
  std::vector<float> log_sum;
  std::vector<char> workspace;

 private:
  // Once many plans were made, a shape has to come often.
  bool BecomesTrue(const std::function<bool()>& call) {
    for (int i = 0; i < 1000; ++i) {
      workspace.clear();
      if (call()) return true;
    }
    return false;
  }
  double Unit() const { return s.dtype == MICA_F16 ? std::ldexp(1, -11) : std::ldexp(1, -8); }
  // The shares of the keys for a query, and the logarithm of their sum.
  std::vector<double> Shares(int64_t b, int64_t h, int64_t i, double* log) const {
    std::vector<double> shares;
    double sum = 0;
    for (int64_t j = 0; j < s.keys; ++j) {
      double score = 0;
      for (int64_t w = 0; w < s.width; ++w) score += query(b, h, i, w) * key(b, KeyHead(h), j, w);
      shares.push_back(s.is_causal && j > i ? 0 : std::exp(0.3 * score));
      sum += shares.back();
    }
    for (double& share : shares) share /= sum;
    *log = std::log(sum);
    return shares;
  }
  int64_t KeyHead(int64_t h) const { return h / (s.heads / s.key_heads); }
  void RequireNear(double found, double expected, double size) const {
    // Three roundings to half, each of something no larger than `size`.
    REQUIRE(std::fabs(found - expected) <= 3 * Unit() * size);
  }
  void CheckForward() const;
  void CheckBackward() const;
};

void Case::CheckForward() const {
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        double log = 0;
        const std::vector<double> shares = Shares(b, h, i, &log);
        RequireNear(static_cast<double>(log_sum[static_cast<size_t>((b * s.heads + h) * s.queries + i)]), log,
                    1e-3);
        for (int64_t w = 0; w < s.width; ++w) {
          double sum = 0, size = 0;
          for (int64_t j = 0; j < s.keys; ++j) {
            sum += shares[static_cast<size_t>(j)] * value(b, KeyHead(h), j, w);
            size += shares[static_cast<size_t>(j)] * std::fabs(value(b, KeyHead(h), j, w));
          }
          RequireNear(output(b, h, i, w), sum, size);
        }
      }
}

void Case::CheckBackward() const {
  // Sums, and the sums of sizes, as grad_query, grad_key and grad_value lie when dense.
  const auto rows = [&](int64_t heads, int64_t n) {
    return std::vector<double>(static_cast<size_t>(s.batch * heads * n * s.width));
  };
  std::vector<double> q = rows(s.heads, s.queries), q_size = q, k = rows(s.key_heads, s.keys), k_size = k,
                      v = k, v_size = k;
  const auto at = [&](int64_t b, int64_t heads, int64_t h, int64_t n, int64_t i, int64_t w) {
    return static_cast<size_t>(((b * heads + h) * n + i) * s.width + w);
  };
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        double log = 0, delta = 0;
        const std::vector<double> shares = Shares(b, h, i, &log);
        for (int64_t w = 0; w < s.width; ++w) delta += output(b, h, i, w) * grad_output(b, h, i, w);
        for (int64_t j = 0; j < s.keys; ++j) {
          const double share = shares[static_cast<size_t>(j)];
          double slope = 0;
          for (int64_t w = 0; w < s.width; ++w) slope += grad_output(b, h, i, w) * value(b, KeyHead(h), j, w);
          const double ds = share * (slope - delta) * 0.3;
          for (int64_t w = 0; w < s.width; ++w) {
            const size_t qi = at(b, s.heads, h, s.queries, i, w),
                         kj = at(b, s.key_heads, KeyHead(h), s.keys, j, w);
            q[qi] += ds * key(b, KeyHead(h), j, w), q_size[qi] += std::fabs(ds * key(b, KeyHead(h), j, w));
            k[kj] += ds * query(b, h, i, w), k_size[kj] += std::fabs(ds * query(b, h, i, w));
            v[kj] += share * grad_output(b, h, i, w),
                v_size[kj] += share * std::fabs(grad_output(b, h, i, w));
          }
        }
      }
  const auto check = [&](const Halves& found, const std::vector<double>& sum,
                         const std::vector<double>& size) {
    size_t element = 0;
    for (int64_t b = 0; b < found.sizes[0]; ++b)
      for (int64_t h = 0; h < found.sizes[1]; ++h)
        for (int64_t i = 0; i < found.sizes[2]; ++i)
          for (int64_t w = 0; w < s.width; ++w, ++element)
            RequireNear(found(b, h, i, w), sum[element], size[element]);
    // Nothing else was written.
    size_t untouched = 0;
    for (const uint16_t bits : found.memory) untouched += bits == Halves::kUntouched;
    REQUIRE(untouched == found.memory.size() - element);
  };
  check(grad_query, q, q_size), check(grad_key, k, k_size), check(grad_value, v, v_size);
}

AttentionShape Shape(int64_t batch, int64_t heads, int64_t key_heads, int64_t queries, int64_t keys,
                     int64_t width, bool is_causal, int32_t dtype) {
  AttentionShape s;
  s.dtype = dtype, s.is_causal = is_causal, s.batch = batch, s.heads = heads, s.key_heads = key_heads;
  s.queries = queries, s.keys = keys, s.width = width;
  return s;
}

TEST_CASE("attention of many shapes and layouts", "[.][fakes][fakes-attention]") {
  REQUIRE(CudnnMissing().empty());
  std::mt19937 generator(1);
  int number = 0;
  for (const int32_t dtype : {MICA_F16, MICA_BF16})
    for (const bool is_causal : {false, true})
      for (const auto& [queries, keys] : std::vector<std::pair<int64_t, int64_t>>{{2, 2}, {7, 16}, {17, 9}})
        for (const int64_t width : {8, 40}) {
          const int64_t key_heads = 1 + number % 2, heads = key_heads * (1 + number % 3);
          const auto order = static_cast<Order>(number % 4);
          Case(Shape(1 + number % 2, heads, key_heads, queries, keys, width, is_causal, dtype), order,
               generator)
              .Check();
          ++number;
        }
}

TEST_CASE("attention's plans are kept", "[.][fakes-attention]") {
  std::mt19937 generator(2);
  const AttentionShape shape = Shape(1, 2, 2, 4, 4, 8, true, MICA_BF16);
  Case first(shape, Order::kHeadsInside, generator), second(shape, Order::kHeadsInside, generator);
  second.problem.scale = first.problem.scale = 0.3;
  first.Check();
  const int plans = Count("FakePlans"), descriptors = Count("FakeDescriptors");
  second.Check();
  REQUIRE((Count("FakePlans") == plans && Count("FakeDescriptors") == descriptors));
  // Strides of a dimension of size 1 mean nothing.
  Case third(shape, Order::kHeadsInside, generator);
  third.problem.query.batch = third.problem.grad_key.batch = 1;
  third.Check();
  REQUIRE(Count("FakePlans") == plans);
  // What is on disk serves another device of the kind.
  Case fourth(shape, Order::kHeadsInside, generator);
  fourth.problem.device = 1;
  fourth.Check();
  REQUIRE((Count("FakePlans") == plans && Count("FakeRestored") == 2));
  // After many shapes, a new one has no plan until it came often.
  for (int64_t keys = 5; keys < 40; ++keys)
    GetCudnnAttention().Forward(
        Case(Shape(1, 1, 1, 2, keys, 8, false, MICA_F16), Order::kHeadsInside, generator).problem);
  int calls = 0;
  while (true) {
    Case last(Shape(1, 1, 1, 3, 3, 8, false, MICA_F16), Order::kHeadsInside, generator);
    ++calls;
    if (GetCudnnAttention().Forward(last.problem)) break;
    REQUIRE(calls < 1000);
  }
  REQUIRE(calls > 10);
}

TEST_CASE("plans of attention that need more memory than they may are not taken from the disk",
          "[.][fakes-attention]") {
  std::mt19937 generator(6);
  Case one(Shape(1, 1, 1, 6, 6, 16, false, MICA_F16), Order::kHeadsInside, generator);
  one.Check();
  one.problem.device = 1;
  Fake<void>("FakeWorkspace", (int64_t{1} << 30) + 1);
  one.problem.workspace = [](size_t) -> void* { throw std::bad_alloc(); };
  REQUIRE(!GetCudnnAttention().Forward(one.problem));
  Fake<void>("FakeWorkspace", int64_t{100});
}

TEST_CASE("attention as settings allow it", "[.][fakes]") {
  auto& settings = GetHost().settings;
  std::mt19937 generator(7);
  Case one(Shape(1, 1, 1, 4, 6, 8, false, MICA_F16), Order::kHeadsInside, generator);
  one.Check();
  for (const char* name : {MICA_SETTING_CONVOLUTION_LIBRARY, MICA_SETTING_ATTENTION_LIBRARY}) {
    settings[name] = 0;
    REQUIRE((!GetCudnnAttention().Has(0, one.s) && !GetCudnnAttention().Forward(one.problem) &&
             !GetCudnnAttention().Backward(one.problem)));
    settings[name] = 1;
  }
  for (const char* name : {MICA_SETTING_CONVOLUTION_DETERMINISTIC, MICA_SETTING_DETERMINISTIC}) {
    settings[name] = 1;
    one.workspace.clear();
    REQUIRE((GetCudnnAttention().Forward(one.problem) && !GetCudnnAttention().Backward(one.problem)));
    settings[name] = 0;
  }
  one.Check();
}

TEST_CASE("attention without memory, or that fails", "[.][fakes]") {
  FakeHost& host = GetHost();
  std::mt19937 generator(8);
  Case one(Shape(1, 1, 1, 3, 6, 8, false, MICA_BF16), Order::kHeadsInside, generator);
  one.Check();
  const auto forward = [&] { return one.workspace.clear(), GetCudnnAttention().Forward(one.problem); };
  const auto own = one.problem.workspace;
  one.problem.workspace = [](size_t) -> void* {
    throw mica::plugin::Error(MICA_ERROR_OUT_OF_MEMORY, "no memory");
  };
  host.warnings.clear();
  const int emptied = host.emptied;
  REQUIRE((!forward() && host.emptied == emptied + 1 && host.warnings.size() == 1));
  REQUIRE_THAT(host.warnings[0], Catch::Matchers::Contains("no memory Mica's own kernels"));
  one.problem.workspace = [&](size_t size) {
    one.workspace.clear();  // the second time, too
    return own(size);
  };
  REQUIRE(forward());
  Fake<void>("FakeFail", int{CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED}, 1);
  REQUIRE((forward() && host.emptied == emptied + 2));
  for (const int status : {CUDNN_STATUS_INTERNAL_ERROR, CUDNN_STATUS_EXECUTION_FAILED}) {
    Case other(Shape(1, 1, 1, 3, 7 + status % 3, 8, false, MICA_BF16), Order::kHeadsInside, generator);
    other.Check();
    Fake<void>("FakeFail", status, 1);
    other.workspace.clear();
    REQUIRE(!GetCudnnAttention().Forward(other.problem));
    other.workspace.clear();
    REQUIRE(!GetCudnnAttention().Forward(other.problem));  // nor later
  }
  host.warnings.clear();
}

TEST_CASE("a plan of attention serves one thread at a time", "[.][fakes]") {
  std::mt19937 generator(9);
  const AttentionShape shape = Shape(2, 2, 2, 16, 16, 16, false, MICA_F16);
  Case(shape, Order::kHeadsInside, generator).Check();
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    Case* const one = new Case(shape, Order::kHeadsInside, generator);
    one->problem.workspace = [one](size_t size) {
      one->workspace.assign(size, 0);
      return one->workspace.data();
    };
    threads.emplace_back([one, &right] {
      for (int i = 0; i < 10; ++i) {
        try {
          right += GetCudnnAttention().Forward(one->problem);
        } catch (const mica::plugin::Error&) {
        }
      }
      delete one;
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(right == 40);
}

TEST_CASE("many shapes leave the plans of others", "[.][fakes-attention]") {
  std::mt19937 generator(10);
  Case kept(Shape(1, 1, 1, 2, 3, 8, false, MICA_BF16), Order::kHeadsInside, generator);
  kept.Check();
  const int plans = Count("FakePlans"), restored = Count("FakeRestored");
  Case other(Shape(1, 1, 1, 2, 2, 8, false, MICA_BF16), Order::kHeadsInside, generator);
  for (int64_t chunks = 2; chunks < 5000; ++chunks) {
    other.problem.query.row = 8 * chunks;
    REQUIRE(!GetCudnnAttention().Forward(other.problem));  // a new shape has to come often
  }
  kept.Check();
  REQUIRE((Count("FakeRestored") == restored && Count("FakePlans") == plans));
}

TEST_CASE("attention that cuDNN is not asked for", "[.][fakes]") {
  std::mt19937 generator(3);
  const AttentionShape shape = Shape(2, 2, 2, 4, 4, 8, false, MICA_BF16);
  const int runs = Count("FakeGraphRuns");
  const auto refused = [&](const std::function<void(AttentionProblem&)>& change) {
    Case one(shape, Order::kHeadsOutside, generator);
    change(one.problem);
    REQUIRE(!GetCudnnAttention().Forward(one.problem));
  };
  refused([](AttentionProblem& p) { p.shape.dtype = MICA_F32; });
  refused([](AttentionProblem& p) { p.shape.width = 4; });
  refused([](AttentionProblem& p) { p.shape.width = 136; });
  refused([](AttentionProblem& p) { p.scale = -0.5; });
  refused([](AttentionProblem& p) { p.scale = 0; });
  refused([](AttentionProblem& p) { p.scale = NAN; });
  refused([](AttentionProblem& p) { p.query.data = static_cast<char*>(p.query.data) + 2; });
  refused([](AttentionProblem& p) { p.key.row = 9; });
  refused([](AttentionProblem& p) { p.value.head = 0; });  // one head that is expanded
  refused([](AttentionProblem& p) { p.value.batch = int64_t{1} << 32; });
  refused([](AttentionProblem& p) { p.shape.queries = 1, p.shape.is_causal = 1; });
  REQUIRE(Count("FakeGraphRuns") == runs);
}

TEST_CASE("attention that cuDNN refuses", "[.][fakes-refuse-attention]") {
  std::mt19937 generator(4);
  Case one(Shape(1, 2, 1, 4, 5, 8, true, MICA_F16), Order::kHeadsInside, generator);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(!GetCudnnAttention().Forward(one.problem));
    one.workspace.clear();
    REQUIRE(!GetCudnnAttention().Backward(one.problem));
    one.workspace.clear();
  }
  REQUIRE(Count("FakeGraphRuns") == 0);
  REQUIRE(Count("FakePlans") <= 2);
}

TEST_CASE("gradients that an older cuDNN has wrong", "[.][fakes-old-attention]") {
  std::mt19937 generator(5);
  Case one(Shape(1, 1, 1, 4, 127, 8, false, MICA_F16), Order::kHeadsInside, generator);
  REQUIRE(GetCudnnAttention().Forward(one.problem));
  REQUIRE(!GetCudnnAttention().Backward(one.problem));
  Case(Shape(1, 1, 1, 4, 128, 8, false, MICA_F16), Order::kHeadsInside, generator).Check();
}

}  // namespace
}  // namespace cuda::test
