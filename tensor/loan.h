// The memory of an output, lent to what is computed on the way to it.
//
// An out= form that calls other operators and copies their last result would need that
// result's memory beside the output's. Instead it lends the output while it computes: a
// fresh contiguous tensor of the output's dtype and size in bytes lies in the output's
// memory, once. Where that tensor turns out to be the result, nothing is left to copy;
// where it was a value on the way, it is one tensor less.
//
// Always holds: a loan has a storage of its own over the output's memory, so that versions,
// views and growth are those of a fresh tensor; no input and no other output shares the
// memory; a tensor that outlives the loan gets memory of its own (Settle). Of one thread,
// and of CPU tensors large enough to count. Not for calls that a gradient may be recorded of.
#pragma once

#include "absl/container/inlined_vector.h"
#include "tensor/storage.h"
#include "tensor/tensor.h"

namespace mica {

class MemoryLoan {
 public:
  // Lends those of `outs` that may be, unless `may` is false, until Settle or the end. Inputs
  // are tensors and lists of them.
  template <typename... T>
  MemoryLoan(bool may, TensorSpan outs, const T&... inputs) {
    if (!may) return;
    for (const Tensor& out : outs) Offer(out);
    (Withdraw(inputs), ...);
    Open();
  }
  ~MemoryLoan() { Close(); }
  MemoryLoan(const MemoryLoan&) = delete;
  MemoryLoan& operator=(const MemoryLoan&) = delete;

  // Ends the loan. `values` are the results, values[i] that of outs[i]: one that lies in lent
  // memory, but not in its own output's very place, is replaced by copy(value). What else
  // still lives in lent memory moves out of it.
  template <size_t n, typename Copy>
  void Settle(Tensor (&values)[n], Copy copy) {
    Close();
    if (!taken()) return;
    for (size_t i = 0; i < n; ++i)
      if (IsLent(values[i]) && !Fills(values[i], items_[i].out)) values[i] = copy(values[i]);
    Evict({values, static_cast<int64_t>(n)});
  }
  // Whether the value lies where `out` does, so that a copy would do nothing.
  bool Fills(const Tensor& value, const Tensor& out) const;

 private:
  friend Storage TakeLent(int64_t nbytes, DType dtype);
  friend bool IsLent(const StorageImpl* storage);
  struct Item {
    Tensor out;
    bool lendable;
    Storage storage;  // once it is taken
  };
  void Offer(const Tensor& out);
  void Withdraw(const Tensor& input);
  void Withdraw(TensorSpan inputs);
  void Open();
  void Close();
  bool taken() const;
  bool IsLent(const Tensor& value) const;
  void Evict(TensorSpan values);

  absl::InlinedVector<Item, 2> items_;  // one for each output
  MemoryLoan* before_ = nullptr;
  bool open_ = false;
};

// For tensor.cc and storage.cc: memory for a fresh contiguous CPU tensor, or an empty Storage;
// and whether a storage is a loan that this thread's calls made.
Storage TakeLent(int64_t nbytes, DType dtype);
bool IsLent(const StorageImpl* storage);
namespace internal {
extern thread_local constinit MemoryLoan* t_loan __attribute__((tls_model("initial-exec")));
}  // namespace internal

}  // namespace mica
