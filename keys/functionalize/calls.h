// Operators by their handle, and what is done with boxed arguments and results beside <mica/frame.h>.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <mica/frame.h>

namespace mica::functionalize {

using layer::Tensor;

// An operator and what its entry says.
struct OperatorRef {
  void* handle = nullptr;
  const MicaOperatorInfo* info = nullptr;

  OperatorRef() = default;
  OperatorRef(void* op, const MicaOperatorInfo* about) : handle(op), info(about) {}
  // The operator of that name; empty where there is none.
  static OperatorRef Find(const char* name) {
    void* const op = layer::Table()->find_operator(name);
    return op ? OperatorRef(op, layer::Table()->operator_info(op)) : OperatorRef();
  }
  explicit operator bool() const { return handle != nullptr; }
  std::string_view name() const { return info->name; }
  bool has(uint64_t flag) const { return (info->flags & flag) != 0; }
  // With this thread's layers and frame, from the top.
  void Call(const MicaValue* args, int64_t n, MicaValue* results) const {
    layer::Check(plugin::Host()->op_call_boxed(handle, args, n, results, info->num_results));
  }
  // Of an operator that returns one tensor.
  Tensor CallForTensor(const std::vector<MicaValue>& args) const {
    MicaValue made[1] = {};
    Call(args.data(), static_cast<int64_t>(args.size()), made);
    return formula::Unboxed<Tensor>::Take(made[0]);
  }
};

// A borrowed tensor, uncounted.
class Lent {
 public:
  explicit Lent(MicaTensor* t) : t_(Tensor::Steal(t)) {}
  ~Lent() { t_.release(); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  const Tensor& operator*() const { return t_; }

 private:
  Tensor t_;
};

// Calls f(tensor, argument number) for each tensor among boxed arguments.
template <typename F>
void ForEachTensor(const MicaValue* args, int64_t n, F&& f) {
  for (int64_t i = 0; i < n; ++i) {
    if (args[i].tag == MICA_VALUE_TENSOR && args[i].u.tensor) f(*Lent(args[i].u.tensor), i);
    if (args[i].tag != MICA_VALUE_TENSORS) continue;
    const MicaTensorSpan list = args[i].u.tensors;
    for (int64_t j = 0; j < list.size; ++j)
      if (list.data[j]) f(*Lent(list.data[j]), i);
  }
}

using layer::DetailsOf;
using layer::ReplaceResults;
using layer::ShareStorage;
inline int64_t OffsetOf(const Tensor& t) { return DetailsOf(t).offset; }
inline bool IsSame(const Tensor& a, const Tensor& b) { return a.get() == b.get(); }
inline MicaIntSpan Ints(formula::IntSpan s) { return {s.data(), s.size()}; }

}  // namespace mica::functionalize
