// TensorImpl's life, the factories, views and resizing.
#include "tensor/tensor.h"

#include <algorithm>
#include <cstring>

#include "tensor/loan.h"
#include "tensor/shape.h"
#include "tensor/small_pool.h"

namespace mica {

PyObjectHooks g_pyobject_hooks;

namespace {

constexpr int kImplClass = internal::SmallClass(sizeof(TensorImpl));
constexpr int kExtraClass = internal::SmallClass(sizeof(TensorExtra));

thread_local constinit bool t_inference_mode __attribute__((tls_model("initial-exec"))) = false;

bool CarriesAutograd(DType dtype) { return IsDifferentiable(dtype); }

// The bytes from a view's first element to the end of its last one, 0 if it has
// none. Throws for negative sizes and strides and for more than 2^63 - 1.
int64_t CheckedExtent(IntSpan sizes, IntSpan strides, int64_t item_size) {
  MICA_CHECK_VALUE(sizes.size() == strides.size(),
                   "There is a mismatch in length of strides and shape: the number of strides (",
                   strides.size(), ") differs from the number of sizes (", sizes.size(), ").");
  int64_t last = 0, elements = 1;
  bool empty = false;
  bool overflow = false;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    MICA_CHECK(sizes[i] >= 0, "Trying to create tensor with negative dimension ", sizes[i], ": ",
               ShapeText(sizes), "; the size of dimension (", i, ") is 0 or more.");
    MICA_CHECK_VALUE(strides[i] >= 0, "The stride (", strides[i], ") of dimension (", i,
                     ") is negative; strides are 0 or more.");
    empty |= sizes[i] == 0;
    int64_t step = 0;
    if (sizes[i] > 0) {
      overflow |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &step) ||
                  __builtin_add_overflow(last, step, &last) ||
                  __builtin_mul_overflow(elements, sizes[i], &elements);
    }
  }
  if (empty) return 0;
  int64_t bytes = 0;
  overflow |=
      __builtin_mul_overflow(last, item_size, &bytes) || __builtin_add_overflow(bytes, item_size, &bytes);
  MICA_CHECK(!overflow, "Storage size calculation overflowed with sizes=", ShapeText(sizes),
             " and strides=", ShapeText(strides), ": at ", item_size,
             " bytes an element it needs more than 2^63 - 1 bytes or elements.");
  return bytes;
}

// Where a tensor is and what its elements are, as its face says it.
struct Kind {
  MicaDLDevice device;
  const internal::DTypeInfo& dtype;
  uint64_t flags;  // dtype and backend
  KeySet keys;
};
Kind KindOf(DType dtype, Device device) {
  return {{DlpackTypeOf(device.backend), device.index},
          internal::kDTypeInfo[static_cast<int>(dtype)],
          static_cast<uint64_t>(dtype) << MICA_TENSOR_DTYPE_SHIFT | static_cast<uint64_t>(device.backend)
                                                                        << MICA_TENSOR_BACKEND_SHIFT,
          KeySet::Of(device.backend)};
}
// That of `like`, with another dtype.
Kind KindOf(DType dtype, const TensorImpl& like) {
  constexpr uint64_t kBackend = uint64_t{0xff} << MICA_TENSOR_BACKEND_SHIFT;
  return {like.dl.device, internal::kDTypeInfo[static_cast<int>(dtype)],
          static_cast<uint64_t>(dtype) << MICA_TENSOR_DTYPE_SHIFT | (like.flags & kBackend),
          like.keys & keys::kBackends};
}

// Where a storage's memory begins, 0 where it has none, and the flag that says so.
struct Memory {
  uintptr_t begin;
  uint64_t flag;
};
inline Memory MemoryOf(const StorageImpl& storage) {
  void* memory = storage.data();
  if (__builtin_expect(!memory, 0)) {
    if (storage.is_deferred()) return {0, MICA_TENSOR_OPAQUE};
    memory = storage.data();  // it may have been made just now
  }
  return {reinterpret_cast<uintptr_t>(memory), memory ? MICA_TENSOR_HAS_DATA : 0};
}

// An impl without dims over `held`.
__attribute__((always_inline)) inline TensorImpl* NewImpl(Storage&& held, int64_t byte_offset,
                                                          const Kind& kind) {
  auto* impl = static_cast<TensorImpl*>(internal::SmallAllocate(kImplClass));
  StorageImpl* const storage = held.release();
  const Memory memory = MemoryOf(*storage);
  impl->refcount = 1;
  impl->vtable = nullptr;
  impl->flags = kind.flags | memory.flag | (t_inference_mode ? tensor_flags::kInference : 0);
  impl->reserved = 0;
  // Without memory (meta) the pointer holds the offset alone.
  impl->dl.data = reinterpret_cast<void*>(memory.begin + static_cast<uintptr_t>(byte_offset));
  impl->dl.device = kind.device;
  impl->dl.ndim = 0;
  impl->dl.dtype = kind.dtype.dl;
  impl->dl.shape = impl->dims_inline;
  impl->dl.strides = impl->dims_inline + kInlineDims;
  impl->dl.byte_offset = 0;
  impl->storage = storage;
  impl->keys = kind.keys;
  impl->extra = nullptr;
  impl->pyobject = nullptr;
  Tensor guard = Tensor::Steal(impl);
  storage->Enlist(impl);
  return guard.release();
}

// The dims of an impl that has none yet.
void PutDims(TensorImpl* impl, IntSpan sizes, IntSpan strides) {
  const int64_t n = sizes.size();
  if (n > kInlineDims || strides.size() != n) return impl->SetSizesStrides(sizes, strides);
  for (int64_t i = 0; i < n; ++i) {
    impl->dims_inline[i] = sizes[i];
    impl->dims_inline[kInlineDims + i] = strides[i];
  }
  impl->dl.ndim = static_cast<int32_t>(n);
  impl->RefreshContiguity();
}

void AttachView(TensorImpl* impl, const Tensor& base, bool detached) {
  if (base.is_inference()) {
    impl->flags |= tensor_flags::kInference;
  } else {
    impl->flags &= ~tensor_flags::kInference;
  }
  impl->keys = impl->keys | (base.keys() & keys::kOfMemory);
  if (!impl->has_flag(MICA_TENSOR_OPAQUE)) impl->keys = impl->keys - KeySet::Of(keys::kOpaque);
  if (detached) return;
  TensorExtra& extra = impl->EnsureExtra();
  TensorImpl* root =
      base.impl()->extra && base.impl()->extra->view_base ? base.impl()->extra->view_base : base.impl();
  root->Retain();
  extra.view_base = root;
  if (base.is_inference()) return;
  if (t_inference_mode) extra.view_creation = static_cast<uint8_t>(ViewCreation::kInference);
  if (CarriesAutograd(impl->dtype())) impl->keys = impl->keys | KeySet::Of(keys::kAutograd);
}

}  // namespace

void* TensorExtra::operator new(size_t) { return internal::SmallAllocate(kExtraClass); }
void TensorExtra::operator delete(void* p) noexcept { internal::SmallFree(p, kExtraClass); }

TensorExtra::~TensorExtra() {
  if (extension_deleter) extension_deleter(extension);
  delete layer_state;
  if (view_base) view_base->Release();
}

bool InferenceModeEnabled() { return t_inference_mode; }
void SetInferenceMode(bool enabled) { t_inference_mode = enabled; }

void TensorImpl::RefreshContiguity() {
  uint64_t bits = IsContiguous(sizes(), strides()) ? MICA_TENSOR_CONTIGUOUS : 0;
  if (dl.ndim >= 4 && IsChannelsLast(sizes(), strides())) bits |= MICA_TENSOR_CHANNELS_LAST;
  flags = (flags & ~(MICA_TENSOR_CONTIGUOUS | MICA_TENSOR_CHANNELS_LAST)) | bits;
}

void TensorImpl::SetSizesStrides(IntSpan sizes, IntSpan strides) {
  MICA_INTERNAL(sizes.size() == strides.size(), "a tensor gets ", sizes.size(), " sizes and ", strides.size(),
                " strides.");
  const int64_t n = sizes.size();
  int64_t* target = dims_inline;
  int64_t half = kInlineDims;
  if (n > kInlineDims) {
    target = new int64_t[2 * n];
    half = n;
  }
  // memmove: the new dims may be the old ones in another order.
  if (n > 0) {
    std::memmove(target, sizes.data(), n * sizeof(int64_t));
    std::memmove(target + half, strides.data(), n * sizeof(int64_t));
  }
  if (has_flag(tensor_flags::kExternalDims)) delete[] dl.shape;
  set_flag(tensor_flags::kExternalDims, n > kInlineDims);
  dl.shape = target;
  dl.strides = target + half;
  dl.ndim = static_cast<int32_t>(n);
  RefreshContiguity();
}

TensorImpl* TensorImpl::Make(Storage storage, int64_t byte_offset, IntSpan sizes, IntSpan strides,
                             DType dtype) {
  MICA_INTERNAL(storage, "a tensor is made without a storage.");
  const Device device = storage->device();
  TensorImpl* impl = NewImpl(std::move(storage), byte_offset, KindOf(dtype, device));
  Tensor guard = Tensor::Steal(impl);
  PutDims(impl, sizes, strides);
  return guard.release();
}

void TensorImpl::PointWhere(const TensorImpl& other) {
  const int64_t offset = other.byte_offset();
  MoveTo(other.storage);
  const Memory memory = MemoryOf(*storage);
  dl.data = reinterpret_cast<void*>(memory.begin + static_cast<uintptr_t>(offset));
  flags = (flags & ~(MICA_TENSOR_HAS_DATA | MICA_TENSOR_OPAQUE)) | memory.flag;
}

void TensorImpl::MoveTo(StorageImpl* to) {
  if (to == storage) return;
  const Storage old = Storage::Borrow(storage);
  storage->Delist(this);
  storage->Release();
  to->Retain();
  storage = to;
  to->Enlist(this);
}

void TensorImpl::Destroy() {
  if (pyobject && g_pyobject_hooks.last_reference) {
    refs().store(1, std::memory_order_relaxed);
    g_pyobject_hooks.last_reference(this);
    if (refs().fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  }
  storage->Delist(this);
  delete extra;
  storage->Release();
  if (has_flag(tensor_flags::kExternalDims)) delete[] dl.shape;
  internal::SmallFree(this, kImplClass);
}

int64_t Tensor::size(int64_t dim) const { return impl_->dl.shape[WrapDim(dim, ndim(), false)]; }
int64_t Tensor::stride(int64_t dim) const { return impl_->dl.strides[WrapDim(dim, ndim(), false)]; }

namespace {
int64_t ImageDims(MemoryFormat format) { return format == MemoryFormat::kChannelsLast3d ? 5 : 4; }
}  // namespace

Dims StridesIn(MemoryFormat format, IntSpan sizes) {
  if (!IsChannelsLast(format)) return ContiguousStrides(sizes);
  const int64_t n = sizes.size();
  MICA_CHECK(n == ImageDims(format), "Memory format (",
             format == MemoryFormat::kChannelsLast ? "channels_last" : "channels_last_3d",
             ") needs a tensor of ", ImageDims(format), " dimensions, but the shape ", ShapeText(sizes),
             " has ", n, ".");
  return ChannelsLastStrides(sizes);
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (IsChannelsLast(format))
    return impl_->has_flag(MICA_TENSOR_CHANNELS_LAST) && ndim() == ImageDims(format);
  return format == MemoryFormat::kPreserve || impl_->contiguous();
}

Storage Tensor::storage() const {
  data();
  return Storage::Borrow(impl_->storage);
}

int64_t TensorImpl::byte_offset() const {
  if (__builtin_expect(is_apart(), 0)) return storage->OffsetOf(this);
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(dl.data) -
                              reinterpret_cast<uintptr_t>(storage->data()));
}

int64_t Tensor::storage_offset() const { return impl_->byte_offset() / itemsize(); }

Tensor Tensor::view_base() const { return is_view() ? Borrow(impl_->extra->view_base) : Tensor(); }

std::string Tensor::ToString() const {
  if (!defined()) return "undefined tensor";
  return absl::StrCat(Name(dtype()), ShapeText(sizes()), " on ", device().ToString());
}

namespace {
// Fresh, or lent by an output (loan.h).
Storage ContiguousMemory(int64_t nbytes, DType dtype, Device device) {
  if (__builtin_expect(internal::t_loan != nullptr, 0) && device.is_cpu())
    if (Storage lent = TakeLent(nbytes, dtype)) return lent;
  return Storage::Allocate(nbytes, device);
}

// A contiguous tensor of at most kInlineDims dimensions; the sizes are checked.
__attribute__((always_inline)) inline Tensor NewDense(IntSpan sizes, Storage&& memory, const Kind& kind) {
  const int64_t n = sizes.size();
  TensorImpl* const impl = NewImpl(std::move(memory), 0, kind);
  impl->dl.ndim = static_cast<int32_t>(n);
  impl->flags |= MICA_TENSOR_CONTIGUOUS;
  int64_t step = 1;
  for (int64_t i = n; i-- > 0;) {
    const int64_t size = sizes[i];
    impl->dims_inline[i] = size;
    impl->dims_inline[kInlineDims + i] = step;
    step *= std::max<int64_t>(size, 1);
  }
  if (n >= 4 && IsChannelsLast(impl->sizes(), impl->strides())) impl->flags |= MICA_TENSOR_CHANNELS_LAST;
  return Tensor::Steal(impl);
}
}  // namespace

Tensor EmptyTensor(IntSpan sizes, DType dtype, Device device, MemoryFormat format) {
  const int64_t n = sizes.size();
  if (!IsChannelsLast(format) && n <= kInlineDims) {
    int64_t numel = 1, padded = 1, nbytes, least = 0;
    bool overflow = false;
    for (const int64_t size : sizes) {
      least = std::min(least, size);
      overflow |= __builtin_mul_overflow(numel, size, &numel);
      overflow |= __builtin_mul_overflow(padded, std::max<int64_t>(size, 1), &padded);
    }
    overflow |= __builtin_mul_overflow(numel, ItemSize(dtype), &nbytes);
    if (__builtin_expect(overflow || least < 0, 0)) {
      CheckedNumel(sizes);
      MICA_THROW(kRuntime, "Storage size calculation overflowed with sizes=", ShapeText(sizes),
                 ": it needs more than 2^63 - 1 bytes of ", Name(dtype), ".");
    }
    return NewDense(sizes, ContiguousMemory(nbytes, dtype, device), KindOf(dtype, device));
  }
  CheckedNumel(sizes);
  return EmptyStrided(sizes, StridesIn(format, sizes), dtype, device);
}

Tensor EmptyLike(const TensorImpl& like, DType dtype) {
  int64_t nbytes;
  if (like.ndim() > kInlineDims || __builtin_mul_overflow(like.numel(), ItemSize(dtype), &nbytes))
    return EmptyTensor(like.sizes(), dtype, like.device());
  return NewDense(like.sizes(), ContiguousMemory(nbytes, dtype, like.device()), KindOf(dtype, like));
}

Tensor EmptyStrided(IntSpan sizes, IntSpan strides, DType dtype, Device device) {
  const int64_t nbytes = CheckedExtent(sizes, strides, ItemSize(dtype));
  CheckedNumel(sizes);
  const bool may_be_lent =
      internal::t_loan != nullptr && strides == IntSpan(ContiguousStrides(sizes)) && device.is_cpu();
  Storage storage = may_be_lent ? ContiguousMemory(nbytes, dtype, device) : Storage::Allocate(nbytes, device);
  return Tensor::Steal(TensorImpl::Make(std::move(storage), 0, sizes, strides, dtype));
}

Tensor WrappedNumber(const Scalar& value) {
  const DType dtype = value.is_bool()    ? DType::kBool
                      : value.is_int()   ? DType::kI64
                      : value.is_float() ? DType::kF64
                                         : DType::kC128;
  Tensor t = EmptyTensor({}, dtype, Device{});
  switch (dtype) {
    case DType::kBool:
      *t.data_as<bool>() = value.ToBool();
      break;
    case DType::kI64:
      *t.data_as<int64_t>() = value.ToInt();
      break;
    case DType::kF64:
      *t.data_as<double>() = value.ToDouble();
      break;
    default:
      *t.data_as<std::complex<double>>() = value.ToComplex();
      break;
  }
  t.impl()->flags |= MICA_TENSOR_WRAPPED_NUMBER;
  return t;
}

Tensor MakeView(const Tensor& base, IntSpan sizes, IntSpan strides, int64_t byte_offset, bool detached) {
  return MakeViewAs(base, sizes, strides, byte_offset, base.dtype(), detached);
}

Tensor MakeViewAs(const Tensor& base, IntSpan sizes, IntSpan strides, int64_t byte_offset, DType dtype,
                  bool detached) {
  StorageImpl* storage = base.impl()->storage;
  const int64_t extent = CheckedExtent(sizes, strides, ItemSize(dtype));
  MICA_CHECK(byte_offset >= 0 && (extent == 0 || extent <= storage->nbytes() - byte_offset),
             "setStorage: sizes ", ShapeText(sizes), ", strides ", ShapeText(strides), ", storage offset ",
             byte_offset / ItemSize(dtype), ", and itemsize ", ItemSize(dtype),
             " requiring a storage size of ", byte_offset + extent, " are out of bounds for storage of size ",
             storage->nbytes(), ".");
  TensorImpl* impl = NewImpl(Storage::Borrow(storage), byte_offset, KindOf(dtype, *base.impl()));
  Tensor view = Tensor::Steal(impl);
  PutDims(impl, sizes, strides);
  AttachView(impl, base, detached);
  return view;
}

Tensor MakeInnerView(const Tensor& base, int64_t hidden) {
  const TensorImpl& from = *base.impl();
  TensorImpl* impl = NewImpl(Storage::Borrow(from.storage), from.byte_offset(), KindOf(base.dtype(), from));
  Tensor view = Tensor::Steal(impl);
  const int64_t n = from.ndim() - hidden;
  PutDims(impl, from.sizes().subspan(hidden, n), from.strides().subspan(hidden, n));
  AttachView(impl, base, /*detached=*/true);
  return view;
}

void ResizeTensor(const Tensor& self, IntSpan sizes, IntSpan strides, bool keep) {
  TensorImpl* impl = self.impl();
  CheckedNumel(sizes);
  const int64_t extent = CheckedExtent(sizes, strides, self.itemsize());
  const int64_t offset = self.storage_offset() * self.itemsize();
  MICA_CHECK(extent <= INT64_MAX - offset, "The shape ", ShapeText(sizes), " at offset ", offset,
             " bytes needs more than 2^63 - 1 bytes.");
  if (extent > 0 && offset + extent > impl->storage->nbytes()) impl->storage->Resize(offset + extent, keep);
  impl->SetSizesStrides(sizes, strides);
}

}  // namespace mica
