// The C++17 face of what frames need of <mica/layers.h>: wrappers, replaced arguments, kept values. What a
// transform's frame kind is written with, beside <mica/layer.h>.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <mica/formula.h>
#include <mica/layer.h>

namespace mica {
namespace layer {

using formula::Tensor;

inline Tensor Taken(MicaTensorResult r) {
  Check(r.status);
  return Tensor::Steal(r.value);
}
inline uint64_t TraitsOf(const Tensor& t) { return Table()->tensor_traits(t.get()); }
inline bool IsWrapper(const Tensor& t) { return t.defined() && (TraitsOf(t) & MICA_TRAIT_WRAPPER) != 0; }

// The wrapper of `frame` that a tensor is: its value, borrowed, and what it carries. Nothing of others.
struct Own {
  MicaTensor* value = nullptr;
  MicaPayload payload{};
};
inline std::optional<Own> OwnOf(MicaTensor* t, const MicaFrame& frame) {
  Own own;
  if (!t || !Table()->unwrap(t, &frame, &own.value, &own.payload)) return std::nullopt;
  return own;
}
inline std::optional<Own> OwnOf(const Tensor& t, const MicaFrame& frame) { return OwnOf(t.get(), frame); }
inline Tensor Wrap(const Tensor& value, const MicaFrame& frame) {
  return Taken(Table()->wrap(value.get(), &frame, nullptr, nullptr));
}
// Of a kind whose payload is a number.
inline void SetNumber(const Tensor& wrapper, const MicaFrame& frame, int64_t number) {
  MicaPayload payload{};
  payload.number = number;
  Check(Table()->set_payload(wrapper.get(), &frame, &payload));
}

// A copy of boxed arguments in which each tensor is replaced by what f(tensor) gives, which it keeps.
class ReplacedArguments {
 public:
  template <typename F>
  ReplacedArguments(const MicaValue* args, int64_t n, F&& f) : values_(args, args + n) {
    size_t count = 0;
    for (const MicaValue& v : values_) count += v.tag == MICA_VALUE_TENSORS ? Size(v) : 1;
    kept_.reserve(count);  // lists are spans into it
    for (MicaValue& v : values_) {
      if (v.tag == MICA_VALUE_TENSOR && v.u.tensor) {
        kept_.push_back(f(Tensor::Borrow(v.u.tensor)));
        v.u.tensor = kept_.back().get();
      } else if (v.tag == MICA_VALUE_TENSORS) {
        const size_t first = kept_.size();
        for (size_t j = 0; j < Size(v); ++j) {
          Tensor t = Tensor::Borrow(v.u.tensors.data[j]);
          kept_.push_back(t.defined() ? f(std::move(t)) : Tensor());
        }
        v.u.tensors.data = reinterpret_cast<MicaTensor* const*>(kept_.data() + first);
      }
    }
  }
  ReplacedArguments(const ReplacedArguments&) = delete;
  ReplacedArguments& operator=(const ReplacedArguments&) = delete;
  const MicaValue* data() const { return values_.data(); }
  const MicaValue& operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }

 private:
  static size_t Size(const MicaValue& v) { return static_cast<size_t>(v.u.tensors.size); }
  std::vector<MicaValue> values_;
  std::vector<Tensor> kept_;
};

// A copy of one boxed argument, with what it points to.
class KeptValue {
 public:
  KeptValue() = default;
  explicit KeptValue(const MicaValue& value) { Check(Table()->keep_value(&value, &kept_, &copy_)); }
  KeptValue(KeptValue&& o) noexcept : kept_(std::exchange(o.kept_, nullptr)), copy_(o.copy_) {}
  KeptValue& operator=(KeptValue&& o) noexcept {
    std::swap(kept_, o.kept_);
    std::swap(copy_, o.copy_);
    return *this;
  }
  ~KeptValue() {
    if (kept_) Table()->release_value(kept_);
  }
  const MicaValue& value() const { return copy_; }

 private:
  MicaKeptValue* kept_ = nullptr;
  MicaValue copy_{};
};

}  // namespace layer
}  // namespace mica
