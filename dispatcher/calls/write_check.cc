// Copies of the arguments' elements before a kernel, compared after it.
#include "dispatcher/calls/write_check.h"

#include <cstdlib>
#include <cstring>

#include "dispatcher/calls/boxed_results.h"
#include "schema/object.h"
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

// f(tensor, argument) for the tensors of the arguments.
template <typename F>
void ForEachTensor(const MicaValue* args, int64_t n, F&& f) {
  for (int64_t i = 0; i < n; ++i) {
    const bool list = args[i].tag == MICA_VALUE_TENSORS;
    const int64_t count = list ? args[i].u.tensors.size : args[i].tag == MICA_VALUE_TENSOR;
    for (int64_t j = 0; j < count; ++j)
      if (MicaTensor* const t = list ? args[i].u.tensors.data[j] : args[i].u.tensor) f(Tensor::Ref(t), i);
  }
}

std::string ArgumentName(const Operator& op, int64_t i) {
  return op.schema().arguments[static_cast<size_t>(i)].name;
}

// torch's schema of it, which is ours, does not say that it writes running statistics.
constexpr const char* kUndeclaredByTradition = "mica::native_batch_norm";

}  // namespace

namespace internal {
std::atomic<bool> g_check_writes{AskedFor()};
}
bool SetCheckWrites(bool on) { return internal::g_check_writes.exchange(on); }

// A tensor that shares memory with a written one may change with it.
void WriteCheck::Remember(const MicaValue* args, int64_t n, uint64_t written) {
  on_ = true;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    const bool is_written = (written >> i) & 1;
    bool may_change = is_written || !t.device().is_cpu();
    ForEachTensor(args, n, [&](const Tensor& other, int64_t j) {
      may_change = may_change || (((written >> j) & 1) && other.impl()->storage == t.impl()->storage);
    });
    kept_.push_back({i, t, is_written, may_change, may_change ? "" : BytesOf(t), ToDims(t.sizes()),
                     ToDims(t.strides()), t.data()});
  });
  for (int64_t i = 0; i < n; ++i)
    if (args[i].tag == MICA_VALUE_OBJECT) objects_.push_back({i, Value(args[i].u.object)});
}

void WriteCheck::Compare(const Operator& op, MicaValue* results, int64_t num_results) const {
  if (!GivesResults(op)) num_results = 0;
  try {
    CompareArguments(op, results, num_results);
    CompareObjects(op, results, num_results);
    if (op.name() != kUndeclaredByTradition) CompareMemory(op, results, num_results);
    CompareWithMeta(op, results, num_results);
  } catch (...) {
    if (num_results > 0) ReleaseResults(op, results);
    throw;
  }
}

namespace {
// A kernel left `left` references to an argument that has `least` holders.
void CheckOwned(const Operator& op, int64_t argument, uint64_t left, uint64_t least) {
  MICA_CHECK(left >= least, "A kernel of ", std::string(op.name()), " released its argument `",
             ArgumentName(op, argument), "` (", least - left,
             " times), which the caller owns. Release what was retained or made, and retain an argument "
             "before it is returned.");
}
}  // namespace

void WriteCheck::CompareObjects(const Operator& op, const MicaValue* results, int64_t num_results) const {
  for (const KeptObject& k : objects_) {
    MicaObject* const object = k.object.ToObject();
    uint64_t least = 1;  // as of tensors
    for (const KeptObject& other : objects_) least += other.object == k.object;
    for (int64_t i = 0; i < num_results; ++i)
      least += results[i].tag == MICA_VALUE_OBJECT && results[i].u.object == object;
    const uint64_t left = ReferencesOf(object);
    for (uint64_t lost = left; lost < least; ++lost) RetainObject(object);
    CheckOwned(op, k.argument, left, least);
  }
}

void WriteCheck::CompareArguments(const Operator& op, const MicaValue* results, int64_t num_results) const {
  for (const Kept& k : kept_) {
    const Tensor& t = k.tensor;
    // Those of this list and of the results, and the caller's, who has one at least; other threads may drop
    // theirs.
    uint64_t least = 1;
    for (const Kept& other : kept_) least += other.tensor.is_same(t);
    ForEachTensor(results, num_results, [&](const Tensor& r, int64_t) { least += r.is_same(t); });
    const uint64_t left = t.impl()->refs();
    for (uint64_t lost = left; lost < least; ++lost) t.impl()->Retain();
    CheckOwned(op, k.argument, left, least);
    if (k.written) continue;
    MICA_CHECK(t.sizes() == IntSpan(k.sizes) && t.strides() == IntSpan(k.strides) && t.data() == k.data,
               "A kernel of ", std::string(op.name()),
               " changed the shape, strides or memory of its argument `", ArgumentName(op, k.argument),
               "`: it had the shape ", ShapeText(k.sizes), " and has ", ShapeText(t.sizes()),
               ". Only an argument that the schema declares as written may be resized: ", op.spec().schema,
               ".");
  }
}

void WriteCheck::CompareMemory(const Operator& op, const MicaValue* results, int64_t num_results) const {
  // A result that the schema ties to an argument, (a) or (a!), may share its memory.
  for (const schema::Return& r : op.schema().returns)
    if (r.alias()) num_results = 0;
  for (const Kept& k : kept_) {
    if (k.may_change) continue;
    const Tensor& t = k.tensor;
    MICA_CHECK(BytesOf(t) == k.bytes, "A kernel of ", std::string(op.name()), " wrote its argument `",
               ArgumentName(op, k.argument),
               "`, which its schema does not declare as written: ", op.spec().schema,
               ". Declare it as in Tensor(a!), or write to a copy.");
    ForEachTensor(results, num_results, [&](const Tensor& result, int64_t) {
      MICA_CHECK(result.numel() == 0 || result.impl()->storage != t.impl()->storage, "A kernel of ",
                 std::string(op.name()), " returned memory of its argument `", ArgumentName(op, k.argument),
                 "`, which its schema does not declare as a view: ", op.spec().schema,
                 ". Declare it as in Tensor(a), or return a copy.");
    });
  }
}

void WriteCheck::CompareWithMeta(const Operator& op, const MicaValue* results, int64_t num_results) const {
  const OperatorSpec& spec = op.spec();
  if (!spec.meta || num_results == 0) return;
  MetaResult meta;
  spec.meta(spec, args_, meta);
  for (int64_t i = 0; i < num_results && i < static_cast<int64_t>(meta.outputs.size()); ++i) {
    if (results[i].tag != MICA_VALUE_TENSOR || !results[i].u.tensor) continue;
    const Tensor& r = Tensor::Ref(results[i].u.tensor);
    const OutputSpec& want = meta.outputs[static_cast<size_t>(i)];
    MICA_CHECK(r.sizes() == IntSpan(want.sizes) && r.dtype() == want.dtype && r.device() == want.device,
               "A kernel of ", std::string(op.name()), " returned ", r.ToString(), " as result (", i,
               "), where the operator's meta function gives ", Name(want.dtype), ShapeText(want.sizes),
               " on ", want.device.ToString(), ".");
  }
}

}  // namespace mica
