// Tensor: one pointer, reference-counted, to a TensorImpl whose first 80 bytes
// are the frozen face of abi.h.
//
// Behind the face stand storage, key set, an extra block (view base, autograd
// state, extension; made on demand) and the Python object. Sizes and strides of
// up to 5 dimensions lie inline; an impl takes 192 bytes from a free list.
// Always holds: dl.data points at the first element (where there is no memory, or none yet, it holds the
// offset); shape and strides are never NULL and never negative; flags hold dtype, backend and contiguity.
//
// The class has no operator methods: those are free functions in generated
// headers (mica/ops/<name>.h), so that a new operator rebuilds little. Programs
// that want `x.matmul(w)` include <mica/api.h>.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <mica/abi.h>
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/error.h"
#include "tensor/key_set.h"
#include "tensor/private_struct.h"
#include "tensor/scalar.h"
#include "tensor/span.h"
#include "tensor/storage.h"

namespace mica {

enum class MemoryFormat : int8_t { kContiguous = 0, kPreserve = 1, kChannelsLast = 2, kChannelsLast3d = 3 };
inline constexpr int kMemoryFormatCount = 4;
inline bool IsChannelsLast(MemoryFormat format) { return format >= MemoryFormat::kChannelsLast; }
// The strides of a dense tensor in this format; kPreserve counts as contiguous. kRuntime where the
// number of dimensions is not the format's own: 4 for channels_last, 5 for channels_last_3d.
Dims StridesIn(MemoryFormat format, IntSpan sizes);
enum class Layout : int8_t { kStrided = 0 };

class Tensor;
struct TensorImpl;

// What a layer that records (Autograd) keeps with a tensor: defined there, destroyed through this base.
struct LayerState {
  virtual ~LayerState() = default;
};

// What few tensors have, made on demand.
struct TensorExtra {
  MICA_PRIVATE_STRUCT;
  TensorImpl* view_base = nullptr;    // owned reference; the root, never itself a view
  LayerState* layer_state = nullptr;  // owned
  void* extension = nullptr;
  void (*extension_deleter)(void*) = nullptr;
  uint8_t view_creation = 0;                                      // ViewCreation
  TensorImpl *next_holder = nullptr, *previous_holder = nullptr;  // of the storage (holders.cc)
  ~TensorExtra();
  static void* operator new(size_t size);  // from the small-block pool
  static void operator delete(void* p) noexcept;
};
enum class ViewCreation : uint8_t {
  kDefault = 0,
  kNoGrad = 1,
  kInference = 2,
  kMultiOutput = 3,
  kCustomFunction = 4
};

// Host-side flags, beside those of abi.h.
namespace tensor_flags {
inline constexpr uint64_t kRequiresGrad =
    uint64_t{1} << 48;  // leaf or interior: has autograd state that wants a gradient
inline constexpr uint64_t kInference = uint64_t{1} << 49;     // made in inference mode: no version counter
inline constexpr uint64_t kExternalDims = uint64_t{1} << 50;  // shape and strides on the heap (ndim > 5)
inline constexpr uint64_t kPythonOwns =
    uint64_t{1} << 51;  // we keep the Python object alive: Note [Python object of a tensor]
inline constexpr uint64_t kNoVersion = uint64_t{1} << 52;  // `.data`-like alias: own version, see autograd
}  // namespace tensor_flags

// Note [Python object of a tensor]
// A tensor and its Python object live as long as either is referenced, as in
// torch. Python-owned, the usual state: the object holds one C++ reference and
// `pyobject` points back without counting. When the object's count goes to 0
// while C++ references remain, the binding resurrects it, gives its C++
// reference up and sets kPythonOwns: now the impl keeps the object alive. When
// the object is handed out again the binding takes a C++ reference and clears
// the flag. When the last C++ reference goes with the flag set, Destroy calls
// `last_reference`, which takes the GIL, sets `pyobject` to NULL and drops the
// object. The impl has one reference during that call; if the callback keeps it,
// the impl lives on.
struct PyObjectHooks {
  void (*last_reference)(TensorImpl*) = nullptr;
};
extern PyObjectHooks g_pyobject_hooks;

inline constexpr int kInlineDims = 5;

struct TensorImpl : MicaTensor {
  MICA_PRIVATE_STRUCT;
  StorageImpl* storage;  // owned reference; NULL only while being made. Changed by MoveTo alone
  KeySet keys;
  TensorExtra* extra;  // owned or NULL
  void* pyobject;      // borrowed by hooks
  int64_t dims_inline[2 * kInlineDims];

  std::atomic<uint64_t>& refs() { return reinterpret_cast<std::atomic<uint64_t>&>(refcount); }
  void Retain() { refs().fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs().fetch_sub(1, std::memory_order_acq_rel) == 1) Destroy();
  }
  void Destroy();

  DType dtype() const { return static_cast<DType>((flags >> MICA_TENSOR_DTYPE_SHIFT) & 0xff); }
  Device device() const {
    return {static_cast<int16_t>((flags >> MICA_TENSOR_BACKEND_SHIFT) & 0xff),
            static_cast<int16_t>(dl.device.device_id)};
  }
  int ndim() const { return dl.ndim; }
  IntSpan sizes() const { return {dl.shape, dl.ndim}; }
  IntSpan strides() const { return {dl.strides, dl.ndim}; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < dl.ndim; ++i) n *= dl.shape[i];
    return n;
  }
  bool has_flag(uint64_t f) const { return (flags & f) != 0; }
  void set_flag(uint64_t f, bool on) { flags = on ? flags | f : flags & ~f; }
  bool contiguous() const { return has_flag(MICA_TENSOR_CONTIGUOUS); }
  int64_t byte_offset() const;  // of the first element, from where the storage begins
  // Whether `dl.data` holds the offset, of memory that is not there yet: what is asked before it is read.
  bool is_apart() const { return (__atomic_load_n(&flags, __ATOMIC_ACQUIRE) & MICA_TENSOR_OPAQUE) != 0; }
  TensorExtra& EnsureExtra() {
    if (!extra) extra = new TensorExtra();
    return *extra;
  }
  // Writes sizes and strides (their count may change) and the contiguity flags.
  void SetSizesStrides(IntSpan sizes, IntSpan strides);
  void RefreshContiguity();

  // Lies from now on where `other` does, whose memory may not be there yet.
  void PointWhere(const TensorImpl& other);
  // Becomes one over another storage, which it retains; where its elements lie is set beside it.
  void MoveTo(StorageImpl* to);
  // A fresh impl with refcount 1 over `storage` at `byte_offset`.
  static TensorImpl* Make(Storage storage, int64_t byte_offset, IntSpan sizes, IntSpan strides, DType dtype);
};
static_assert(sizeof(TensorImpl) == 192 + kMicaShuffledBytes);

// May alias: Ref() reads a caller's `MicaTensor*` as a Tensor, and plugins read Tensors the other way round,
// which to the compiler are types that never share memory unless it is told.
class __attribute__((may_alias)) Tensor {
 public:
  Tensor() = default;
  Tensor(std::nullptr_t) {}
  Tensor(const Tensor& o) : impl_(o.impl_) {
    if (impl_) impl_->Retain();
  }
  Tensor(Tensor&& o) noexcept : impl_(o.release()) {}
  Tensor& operator=(const Tensor& o) { return *this = Tensor(o); }
  Tensor& operator=(Tensor&& o) noexcept {
    if (this != &o) {
      reset();
      impl_ = o.release();
    }
    return *this;
  }
  ~Tensor() {
    if (impl_) impl_->Release();
  }
  void reset() {
    if (TensorImpl* p = release()) p->Release();
  }

  static Tensor Steal(TensorImpl* impl) {
    Tensor t;
    t.impl_ = impl;
    return t;
  }
  static Tensor Steal(MicaTensor* impl) { return Steal(static_cast<TensorImpl*>(impl)); }
  static Tensor Borrow(TensorImpl* impl) {
    if (impl) impl->Retain();
    return Steal(impl);
  }
  static Tensor Borrow(MicaTensor* impl) { return Borrow(static_cast<TensorImpl*>(impl)); }
  // A `const Tensor&` over a borrowed pointer, without touching the count.
  static const Tensor& Ref(MicaTensor* const& impl) { return reinterpret_cast<const Tensor&>(impl); }
  TensorImpl* release() {
    TensorImpl* const p = impl_;
    impl_ = nullptr;
    return p;
  }

  bool defined() const { return impl_ != nullptr; }
  explicit operator bool() const { return impl_ != nullptr; }
  TensorImpl* impl() const { return impl_; }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }

  // Shape. `dim` may be negative; out of range throws a kIndex Error.
  int64_t ndim() const { return impl_->dl.ndim; }
  int64_t dim() const { return impl_->dl.ndim; }
  IntSpan sizes() const { return impl_->sizes(); }
  IntSpan strides() const { return impl_->strides(); }
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  int64_t numel() const { return impl_->numel(); }
  DType dtype() const { return impl_->dtype(); }
  Device device() const { return impl_->device(); }
  int64_t itemsize() const { return ItemSize(dtype()); }
  bool is_contiguous() const { return impl_->contiguous(); }
  bool is_contiguous(MemoryFormat format) const;
  bool is_wrapped_number() const { return impl_->has_flag(MICA_TENSOR_WRAPPED_NUMBER); }
  bool is_inference() const { return impl_->has_flag(tensor_flags::kInference); }
  bool requires_grad() const { return impl_->has_flag(tensor_flags::kRequiresGrad); }
  KeySet keys() const { return impl_->keys; }

  // Of deferred elements too, whose memory it makes.
  void* data() const {
    if (__builtin_expect(impl_->is_apart(), 0)) impl_->storage->MakeMemoryOf(impl_);
    return impl_->dl.data;
  }
  template <typename T>
  T* data_as() const {
    return static_cast<T*>(data());
  }
  Storage storage() const;         // with its memory
  int64_t storage_offset() const;  // in elements
  uint32_t version() const { return impl_->storage->version(); }
  // The root of a chain of views, undefined if this is no view.
  Tensor view_base() const;
  bool is_view() const { return impl_->extra && impl_->extra->view_base; }
  std::string ToString() const;  // "float32[2, 3] on cpu": for messages

 private:
  // Ref() reads the callers' `MicaTensor*` as one of these, and plugins the other way round: to the compiler,
  // two types that never share memory, unless it is told.
  typedef TensorImpl* Pointer __attribute__((may_alias));
  Pointer impl_ = nullptr;
};
static_assert(sizeof(Tensor) == sizeof(void*));
using TensorSpan = Span<Tensor>;
// Whether its memory holds the conjugates or negatives of its elements.
inline bool IsLazy(const Tensor& t) { return !(t.keys() & keys::kLazy).empty(); }

// A fresh tensor of uninitialised memory. Sizes must be >= 0 and their product
// in bytes must fit 63 bits (else a kRuntime Error that names them).
Tensor EmptyTensor(IntSpan sizes, DType dtype, Device device,
                   MemoryFormat format = MemoryFormat::kContiguous);
// The same with the sizes and on the device of a tensor that exists, whatever its strides.
Tensor EmptyLike(const TensorImpl& like, DType dtype);
Tensor EmptyStrided(IntSpan sizes, IntSpan strides, DType dtype, Device device);
// A 0-d CPU tensor that holds a Python-style number: weakest in type promotion.
Tensor WrappedNumber(const Scalar& value);
// A contiguous tensor whose memory is made, and written by `elements`, when it is first read or written.
Tensor MakeDeferred(IntSpan sizes, DType dtype, Device device, std::shared_ptr<DeferredElements> elements);
// A view: same storage, own sizes, strides and byte offset into the storage.
// Checks bounds and that no stride is negative. Sets view base (the root) and
// the autograd bit on floating views, as docs/design.md says, unless
// `detached`.
Tensor MakeView(const Tensor& base, IntSpan sizes, IntSpan strides, int64_t byte_offset,
                bool detached = false);
// The same with another dtype (view_as_real, view.dtype).
Tensor MakeViewAs(const Tensor& base, IntSpan sizes, IntSpan strides, int64_t byte_offset, DType dtype,
                  bool detached = false);
// The first element along each of the first `hidden` dimensions, of which `base` has as many: a detached view
// that needs no check, since it lies within `base`.
Tensor MakeInnerView(const Tensor& base, int64_t hidden);

// Gives `self` new sizes and strides, growing its storage when needed; the
// contents stay. For resize_ and out= arguments; foreign memory does not grow
// (kRuntime Error), what other tensors share does. Sizes are checked as in EmptyTensor.
// Without `keep`, the contents are lost, which lets a block of a device grow.
void ResizeTensor(const Tensor& self, IntSpan sizes, IntSpan strides, bool keep = true);

// Inference mode of this thread: tensors made in it have kInference and no
// version counter, views of others get ViewCreation::kInference and no autograd
// bit. The dispatcher's guards set it.
bool InferenceModeEnabled();
void SetInferenceMode(bool enabled);

}  // namespace mica
