// The C++17 face of what frames need of <mica/layers.h>: wrappers, replaced arguments, kept values. What a
// transform's frame kind is written with, beside <mica/layer.h>.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <mica/calls.h>
#include <mica/few.h>
#include <mica/formula.h>
#include <mica/layer.h>

namespace mica {
namespace layer {

using formula::Tensor;
using plugin::Few;

inline Tensor Taken(MicaTensorResult r) {
  Check(r.status);
  return Tensor::Steal(r.value);
}
inline uint64_t TraitsOf(const Tensor& t) { return Table()->tensor_traits(t.get()); }
inline bool IsWrapper(const Tensor& t) { return t.defined() && (TraitsOf(t) & MICA_TRAIT_WRAPPER) != 0; }

inline const MicaWrapper* OwnOf(const Tensor& t, const MicaFrame& frame) { return OwnOf(t.get(), frame); }
inline Tensor Wrap(const Tensor& value, const MicaFrame& frame) {
  return Taken(Table()->wrap(value.get(), &frame, nullptr, nullptr));
}
// Of a kind whose payload is a number.
inline void SetNumber(const Tensor& wrapper, const MicaFrame& frame, int64_t number) {
  MicaPayload payload{};
  payload.number = number;
  Check(Table()->set_payload(wrapper.get(), &frame, &payload));
}

// An object that a kind keeps with its wrappers: `struct Link : SharedObject<Link>`, on the heap, held by
// Shared<Link> and by wrappers (MicaPayload::shared).
template <typename T>
struct SharedObject : MicaShared {
  SharedObject() : MicaShared{0, [](MicaShared* object) { delete static_cast<T*>(object); }} {}
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;
};
template <typename T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(T* object) : object_(object) {
    if (object_) __atomic_fetch_add(&object_->holders, 1, __ATOMIC_RELAXED);
  }
  Shared(const Shared& o) : Shared(o.object_) {}
  Shared(Shared&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Shared& operator=(Shared o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Shared() {
    if (object_ && __atomic_fetch_sub(&object_->holders, 1, __ATOMIC_ACQ_REL) == 1) object_->destroy(object_);
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const Shared& a, const Shared& b) { return a.object_ == b.object_; }
  friend bool operator!=(const Shared& a, const Shared& b) { return a.object_ != b.object_; }

 private:
  T* object_ = nullptr;
};

// Where a tensor lies and what it is a view of.
inline MicaTensorDetails DetailsOf(MicaTensor* t) {
  MicaTensorDetails details;
  Table()->tensor_details(t, &details);
  return details;
}
inline MicaTensorDetails DetailsOf(const Tensor& t) { return DetailsOf(t.get()); }
inline bool ShareStorage(MicaTensor* a, MicaTensor* b) {
  return Table()->tensor_storage(a) == Table()->tensor_storage(b);
}
inline bool ShareStorage(const Tensor& a, const Tensor& b) { return ShareStorage(a.get(), b.get()); }

// What error messages say of a tensor, "float32[2, 3] on cpu".
inline std::string TextOf(MicaTensor* t) {
  char text[256];
  const int64_t size = Table()->describe(t, text, sizeof(text));
  if (size <= static_cast<int64_t>(sizeof(text))) return std::string(text, static_cast<size_t>(size));
  std::string longer(static_cast<size_t>(size), ' ');
  Table()->describe(t, &longer[0], size);
  return longer;
}
inline std::string TextOf(const Tensor& t) { return TextOf(t.get()); }

// A list as a boxed result.
inline MicaValue GivenList(std::vector<Tensor> list) {
  const auto size = static_cast<int64_t>(list.size());
  MicaTensor** const given = plugin::Host()->tensor_list_create(size);
  for (int64_t i = 0; i < size; ++i) given[i] = list[static_cast<size_t>(i)].release();
  MicaValue v{};
  v.tag = MICA_VALUE_TENSORS;
  v.u.tensors = {given, size};
  return v;
}

// Puts f(tensor) in the place of each tensor among boxed results, a list's undefined ones left
// out. In-place and out= forms return what they were given, which stays.
template <typename F>
void ReplaceResults(const MicaOperatorInfo& info, MicaValue* results, F&& f) {
  if (info.form != MICA_FORM_FUNCTIONAL) return;
  for (int32_t i = 0; i < info.num_results; ++i) {
    MicaValue& r = results[i];
    if (r.tag == MICA_VALUE_TENSOR) {
      r.u.tensor = f(Tensor::Steal(std::exchange(r.u.tensor, nullptr))).release();
      if (!r.u.tensor) r.tag = MICA_VALUE_NONE;
    } else if (r.tag == MICA_VALUE_TENSORS) {
      auto** const list = const_cast<MicaTensor**>(r.u.tensors.data);  // the caller's, by now ours
      for (int64_t j = 0; j < r.u.tensors.size; ++j)
        if (list[j]) list[j] = f(Tensor::Steal(std::exchange(list[j], nullptr))).release();
    }
  }
}

// A copy of boxed arguments in which each tensor is replaced by what f(tensor) gives, which it keeps.
class ReplacedArguments {
 public:
  template <typename F>
  ReplacedArguments(const MicaValue* args, int64_t n, F&& f)
      : values_(args, args + n), kept_(Count(args, n)) {
    size_t next = 0;  // in kept_, of which lists are spans
    for (MicaValue& v : values_) {
      if (v.tag == MICA_VALUE_TENSOR && v.u.tensor) {
        Tensor& kept = kept_[next++] = f(Tensor::Borrow(v.u.tensor));
        v.u.tensor = kept.get();
      } else if (v.tag == MICA_VALUE_TENSORS) {
        Tensor* const first = kept_.data() + next;
        for (int64_t j = 0; j < v.u.tensors.size; ++j) {
          Tensor t = Tensor::Borrow(v.u.tensors.data[j]);
          kept_[next++] = t.defined() ? f(std::move(t)) : Tensor();
        }
        v.u.tensors.data = reinterpret_cast<MicaTensor* const*>(first);
      }
    }
  }
  ReplacedArguments(const ReplacedArguments&) = delete;
  ReplacedArguments& operator=(const ReplacedArguments&) = delete;
  const MicaValue* data() const { return values_.data(); }
  const MicaValue& operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }

 private:
  static size_t Count(const MicaValue* args, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += args[i].tag == MICA_VALUE_TENSORS ? args[i].u.tensors.size : 1;
    return static_cast<size_t>(count);
  }
  Few<MicaValue, 12> values_;
  Few<Tensor, 12> kept_;
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
