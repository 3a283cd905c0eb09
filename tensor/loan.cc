#include "tensor/loan.h"

#include <cstring>

#include "tensor/shape.h"

namespace mica {

namespace internal {
thread_local constinit MemoryLoan* t_loan __attribute__((tls_model("initial-exec"))) = nullptr;
}  // namespace internal

namespace {

using internal::t_loan;

// Smaller blocks come from the pool of small ones, and count little.
constexpr int64_t kLeast = 4096;

bool Meet(const Tensor& a, const Tensor& b) { return ByteRangeOf(a).overlaps(ByteRangeOf(b)); }

int64_t Bytes(const Tensor& t) { return t.numel() * t.itemsize(); }

bool MayBeLent(const Tensor& out) {
  return out.defined() && out.device().is_cpu() && out.is_contiguous() && Bytes(out) >= kLeast &&
         !out.impl()->has_flag(MICA_TENSOR_READ_ONLY | MICA_TENSOR_OPAQUE) && !IsLazy(out) &&
         !out.impl()->storage->watched() && (!out.is_inference() || InferenceModeEnabled());
}

void ReleaseOwner(void* storage) { static_cast<StorageImpl*>(storage)->Release(); }

}  // namespace

void MemoryLoan::Offer(const Tensor& out) {
  bool lendable = MayBeLent(out);
  for (Item& other : items_) {
    if (!lendable || !other.lendable || !Meet(other.out, out)) continue;
    lendable = other.lendable = false;
  }
  items_.push_back({out, lendable, {}});
}

void MemoryLoan::Withdraw(const Tensor& input) {
  if (!input.defined()) return;
  for (Item& item : items_) item.lendable = item.lendable && !Meet(item.out, input);
}

void MemoryLoan::Withdraw(TensorSpan inputs) {
  for (const Tensor& input : inputs) Withdraw(input);
}

void MemoryLoan::Open() {
  before_ = t_loan;
  t_loan = this;
  open_ = true;
}

void MemoryLoan::Close() {
  if (!open_) return;
  t_loan = before_;
  open_ = false;
}

bool MemoryLoan::taken() const {
  for (const Item& item : items_)
    if (item.storage) return true;
  return false;
}

bool MemoryLoan::IsLent(const Tensor& value) const {
  for (const Item& item : items_)
    if (item.storage && item.storage.get() == value.impl()->storage) return true;
  return false;
}

bool MemoryLoan::Fills(const Tensor& value, const Tensor& out) const {
  return IsLent(value) && value.data() == out.data() && value.dtype() == out.dtype() &&
         value.sizes() == out.sizes() && value.is_contiguous() && out.is_contiguous() && !IsLazy(value);
}

void MemoryLoan::Evict(TensorSpan values) {
  for (Item& item : items_) {
    if (!item.storage) continue;
    // A result holds the storage itself, and where it is a view through its base.
    uint32_t known = 1;
    for (const Tensor& value : values) {
      if (item.storage.get() != value.impl()->storage) continue;
      known += value.is_view() && value.impl()->extra->view_base->refs() == 1 ? 2 : 1;
      if (value.impl()->refs() > 1) known = 0;
    }
    if (known != 0 && item.storage->use_count() == known) continue;
    Storage own = Storage::Allocate(item.storage->nbytes(), Device{});
    std::memcpy(own->data(), item.storage->data(), static_cast<size_t>(item.storage->nbytes()));
    item.storage->MoveTensors(item.storage->data(), own.get());
  }
}

Storage TakeLent(int64_t nbytes, DType dtype) {
  if (nbytes < kLeast) return {};
  for (MemoryLoan::Item& item : t_loan->items_) {
    if (!item.lendable || item.storage || item.out.dtype() != dtype || Bytes(item.out) != nbytes) continue;
    StorageImpl* owner = item.out.impl()->storage;
    owner->Retain();
    item.storage = Storage::FromMemory(item.out.data(), nbytes, Device{}, ReleaseOwner, owner);
    return item.storage;
  }
  return {};
}

bool IsLent(const StorageImpl* storage) {
  for (const MemoryLoan* loan = t_loan; loan != nullptr; loan = loan->before_)
    for (const MemoryLoan::Item& item : loan->items_)
      if (item.storage.get() == storage) return true;
  return false;
}

}  // namespace mica
