// A key set: one bit for each backend (0-21) and each layer (22-63).
//
// One list, MICA_FORALL_LAYERS, has Mica's own layers. Other layers and the backends get
// their bits and names at run time from the dispatcher (dispatcher/tables/keys.h).
#pragma once

#include <cstdint>

namespace mica {

class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr explicit KeySet(uint64_t bits) : bits_(bits) {}
  static constexpr KeySet Of(int bit) { return KeySet(uint64_t{1} << bit); }
  constexpr uint64_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(int bit) const { return (bits_ >> bit) & 1; }
  // The highest bit; undefined when empty.
  constexpr int highest() const { return 63 - __builtin_clzll(bits_); }
  // All keys strictly below `bit`.
  static constexpr KeySet Below(int bit) { return KeySet((uint64_t{1} << bit) - 1); }
  constexpr KeySet operator|(KeySet o) const { return KeySet(bits_ | o.bits_); }
  constexpr KeySet operator&(KeySet o) const { return KeySet(bits_ & o.bits_); }
  constexpr KeySet operator^(KeySet o) const { return KeySet(bits_ ^ o.bits_); }
  constexpr KeySet operator-(KeySet o) const { return KeySet(bits_ & ~o.bits_); }
  constexpr bool operator==(const KeySet&) const = default;

 private:
  uint64_t bits_ = 0;
};

// Mica's own layers, highest first. Between any two that a third party may part, five bits are free.
//
// FrameBelow, just below Autograd, is where the kernels of Autograd go on when they run for the
// tensors of a frame that has an Autograd of its own (grad). NoData, the lowest, is the key of
// tensors without memory, of a Python subclass that wraps other tensors: they have a shape, a dtype
// and a device, their storage says how many bytes there would be, and its data pointer is NULL. Views
// inherit it; an operator that no layer above has taken ends there with an error.
//
// Conjugate and Negative mark tensors whose memory holds the conjugates or the negatives of their
// elements (Tensor.conj(), and the imaginary part of such). They belong to the memory as NoData does.
//
// Opaque marks tensors whose elements a plugin laid out in a way of its own (DeferredElements in storage.h),
// and views of such: until they are written, or are made of memory that is there.
//
// X(bit, name, what it does: docs/pictures/layers.svg shows it)
#define MICA_FORALL_LAYERS(X)                                                            \
  X(63, FunctionMode, "modes and subclasses that see functions; asked before the call")  \
  X(57, Autocast, "casts arguments by the operator's policy")                            \
  X(51, Frame, "the current transform")                                                  \
  X(50, FrameEscape, "raises for a tensor that left its transform")                      \
  X(44, Autograd, "records what backward needs")                                         \
  X(43, FrameBelow, "leads from a transform's own Autograd to its parent")               \
  X(37, DispatchMode, "modes that see operators")                                        \
  X(36, PythonSubclass, "subclasses that see operators")                                 \
  X(30, Conjugate, "gives kernels the conjugates that conj() only promised")             \
  X(29, Negative, "the same for the imaginary parts of such")                            \
  X(23, Opaque, "gives kernels the elements that a plugin laid out in a way of its own") \
  X(22, NoData, "raises before a kernel reads a tensor without memory")

namespace keys {
inline constexpr int kCpu = 0;
inline constexpr int kMeta = 1;
inline constexpr int kBackendCount = 22;
inline constexpr KeySet kBackends = KeySet((uint64_t{1} << kBackendCount) - 1);
inline constexpr KeySet kLayers = KeySet(~kBackends.bits());
// kFunctionMode, kAutocast, ...
#define X(bit, name, does) inline constexpr int k##name = bit;
MICA_FORALL_LAYERS(X)
#undef X
// What memory holds in place of the elements. No call may leave these layers out.
inline constexpr KeySet kLazy = KeySet::Of(kConjugate) | KeySet::Of(kNegative);
// Of the memory, and so of every view of it.
inline constexpr KeySet kOfMemory = kLazy | KeySet::Of(kOpaque) | KeySet::Of(kNoData);
// What code that has reached a backend leaves out of the operators it calls.
inline constexpr KeySet kAboveBackends = kLayers - kLazy - KeySet::Of(kOpaque);
}  // namespace keys

}  // namespace mica
