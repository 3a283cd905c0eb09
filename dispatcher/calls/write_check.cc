// Copies of the arguments' elements before a kernel, compared after it.
#include "dispatcher/calls/write_check.h"

#include <cstdlib>
#include <cstring>

#include "schema/schema.h"
#include "tensor/error.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace mica {
namespace {

bool AskedFor() {
  const char* value = std::getenv("MICA_CHECK_WRITES");
  return value != nullptr && std::strcmp(value, "0") != 0 && value[0] != '\0';
}

// The elements in row-major order.
void Append(const char* data, IntSpan sizes, IntSpan strides, int64_t itemsize, std::string* out) {
  if (sizes.empty()) {
    out->append(data, static_cast<size_t>(itemsize));
    return;
  }
  const int64_t step = strides[0] * itemsize, rest = sizes.size() - 1;
  for (int64_t i = 0; i < sizes[0]; ++i)
    Append(data + i * step, sizes.subspan(1, rest), strides.subspan(1, rest), itemsize, out);
}
std::string BytesOf(const Tensor& t) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(t.numel() * t.itemsize()));
  if (t.numel() > 0) Append(t.data_as<char>(), t.sizes(), t.strides(), t.itemsize(), &bytes);
  return bytes;
}

// f(tensor, argument) for the CPU tensors of the arguments.
template <typename F>
void ForEachCpuTensor(const MicaValue* args, int64_t n, F&& f) {
  for (int64_t i = 0; i < n; ++i) {
    const bool list = args[i].tag == MICA_VALUE_TENSORS;
    const int64_t count = list ? args[i].u.tensors.size : args[i].tag == MICA_VALUE_TENSOR;
    for (int64_t j = 0; j < count; ++j) {
      MicaTensor* const t = list ? args[i].u.tensors.data[j] : args[i].u.tensor;
      if (t && Tensor::Ref(t).device().is_cpu()) f(Tensor::Ref(t), i);
    }
  }
}

}  // namespace

namespace internal {
std::atomic<bool> g_check_writes{AskedFor()};
}
bool SetCheckWrites(bool on) { return internal::g_check_writes.exchange(on); }

// A tensor that shares memory with a written one may change with it.
void WriteCheck::Remember(const MicaValue* args, int64_t n, uint64_t written) {
  ForEachCpuTensor(args, n, [&](const Tensor& t, int64_t i) {
    bool may_change = (written >> i) & 1;
    ForEachCpuTensor(args, n, [&](const Tensor& other, int64_t j) {
      may_change = may_change || (((written >> j) & 1) && other.impl()->storage == t.impl()->storage);
    });
    if (!may_change) kept_.push_back({i, t.impl(), BytesOf(t)});
  });
}

// torch's schema of it, which is ours, does not say that it writes running statistics.
constexpr const char* kUndeclaredByTradition = "mica::native_batch_norm";

void WriteCheck::Compare(const Operator& op, const MicaValue* results, int64_t num_results) const {
  const auto name = [&](const Kept& k) {
    return op.schema().arguments[static_cast<size_t>(k.argument)].name;
  };
  if (op.name() == kUndeclaredByTradition) return;
  // A result that the schema ties to an argument, (a) or (a!), may share its memory.
  for (const schema::Return& r : op.schema().returns)
    if (r.alias()) num_results = 0;
  for (const Kept& k : kept_) {
    MicaTensor* const tensor = const_cast<MicaTensor*>(k.tensor);
    const Tensor& t = Tensor::Ref(tensor);  // refers to the pointer itself
    MICA_CHECK(BytesOf(t) == k.bytes, "A kernel of ", std::string(op.name()), " wrote its argument `",
               name(k), "`, which its schema does not declare as written: ", op.spec().schema,
               ". Declare it as in Tensor(a!), or write to a copy.");
    ForEachCpuTensor(results, num_results, [&](const Tensor& result, int64_t) {
      MICA_CHECK(result.numel() == 0 || result.impl()->storage != t.impl()->storage, "A kernel of ",
                 std::string(op.name()), " returned memory of its argument `", name(k),
                 "`, which its schema does not declare as a view: ", op.spec().schema,
                 ". Declare it as in Tensor(a), or return a copy.");
    });
  }
}

}  // namespace mica
