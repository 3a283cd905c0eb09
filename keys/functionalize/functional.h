// Functionalize: the frame kind "functionalize". Inside, memory is not written: a tensor is a
// Link, which knows its value, an immutable tensor of the frame's parent, and how it comes of
// what it is a view of. A write computes a new value by the operator's functional form, puts
// it back through the links up to the Base (inverse.cc), and gives that its next generation;
// a link of an older generation computes its value again when it is used (links.cc).
//
// A wrapper looks as the tensor would without the frame: shape, strides, offset, a storage
// that all views of one base share (it tells them from other tensors and counts versions; it
// is not written, so its elements are those of the first value). Values have the shape
// alone in common with it; strides may differ. So views, errors about strides and overlap,
// and as_strided are decided by the wrapper, and computed of the value.
//
// All functions here run in the frame's parent (layer::LeaveFrame), unless they say so.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <mica/calls.h>
#include <mica/frame.h>
#include "keys/functionalize/arithmetic.h"
#include "keys/functionalize/calls.h"

namespace mica::functionalize {

using layer::Function;

// Where elements lie in a storage, in elements of `dtype`.
struct Place {
  Dims sizes, strides;
  int64_t offset = 0;
  DType dtype = DType::kF32;
  static Place Of(const Tensor& t) {
    return {formula::Own(t.sizes()), formula::Own(t.strides()), OffsetOf(t), t.dtype()};
  }
};

// What views of one another share.
struct Base {
  int64_t generation = 0;
  Tensor first;  // the first value: Autograd's checks of writes are made on it
  bool written = false;
  bool recorded = false;  // one of the writes was made while gradients are recorded
  bool resized = false;
  bool shares = false;  // memory with another input: it cannot be written
  bool copies = false;  // views are computed as copies
};

// Boxed arguments of a view operator, kept.
class KeptArguments {
 public:
  KeptArguments() = default;
  KeptArguments(const OperatorRef& op, const MicaValue* args, int64_t n);
  KeptArguments(KeptArguments&&) = default;
  KeptArguments& operator=(KeptArguments&&) = default;
  const std::vector<MicaValue>& values() const { return values_; }  // [0] is no tensor but a place for one

 private:
  std::vector<MicaValue> values_;
  std::vector<std::unique_ptr<Dims>> ints_;
};

struct Link : layer::SharedObject<Link> {
  std::shared_ptr<Base> base;
  layer::Shared<Link> from;  // NULL: this is the whole base
  OperatorRef op;            // the view operator that made it of `from`
  KeptArguments args;
  Place place;
  Tensor value;
  int64_t generation = 0;  // of the base, that the value belongs to

  // Whether its history is its own: of the base, and of views without a gradient.
  bool Ends() const;
  bool Detached() const;  // a view that is not recorded, or one of such a view
};
using LinkRef = layer::Shared<Link>;

// One frame's payload, and its border (border.cc), as <mica/functionalize.h> says it.
class Level {
 public:
  explicit Level(bool remove_views);
  ~Level();
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  std::vector<Tensor> Lift(MicaTensorSpan inputs);
  std::vector<Tensor> Updates();
  void Apply(bool inputs);
  Tensor Result(const Tensor& t);
  bool remove_views() const { return remove_views_; }
  // For a tensor of the parent: the wrapper of it, or of its part in the memory of an input that
  // was written; undefined where nothing stands for it.
  Tensor Find(const Tensor& t) const;
  // Takes a captured tensor, with what it is a view of, among the inputs.
  void Capture(const Tensor& t);

 private:
  struct Input {
    Tensor tensor, wrapper;
    LinkRef root;
    bool captured = false;
  };
  const Input* InputOf(const Base* base) const;
  std::vector<Input> inputs_;
  bool remove_views_;
  bool applied_ = false;
  MicaFrameScope scope_;
  MicaFrame frame_;
};

// The kind, for the plugin's init.
MicaFrameKindRecord KindRecord();
void SetKind(int32_t kind);
// NULL of a frame that was entered without one.
inline Level* LevelOf(const MicaFrame& frame) { return static_cast<Level*>(frame.payload); }

// ---- links.cc
Tensor Clone(const Tensor& t, std::optional<MemoryFormat> format);
// A wrapper of `frame` around `value`, a base of its own.
Tensor LiftRoot(const Tensor& value, const MicaFrame& frame);
// The same, which looks as `shown` says where that fits and is given.
Tensor LiftAs(const Tensor& value, const Place* shown, const MicaFrame& frame);
// A wrapper for `link`, in the storage of `self`; with `view`, a view of it.
Tensor WrapLink(const Tensor& self, LinkRef link, const MicaFrame& frame, bool view);
LinkRef LinkOf(const Tensor& wrapper);
void SetLink(const Tensor& wrapper, LinkRef link, const MicaFrame& frame);
// The value as it is now.
Tensor Value(const LinkRef& link);
// `t`, or its value if it is a wrapper of the frame, which is kept in the wrapper too.
Tensor ValueOf(const Tensor& t, const MicaFrame& frame);
// The link's view of another tensor in the place of what it is a view of.
Tensor Replay(const Link& link, const Tensor& from, bool copies);
// The same from the whole base on, of views.
Tensor ReplayAll(const Link& link, const Tensor& base);
// While it lives, gradients are recorded, or not.
class GradMode {
 public:
  explicit GradMode(bool on) : before_(layer::Table()->exchange_grad_enabled(on)) {}
  ~GradMode() { layer::Table()->exchange_grad_enabled(before_); }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  int32_t before_;
};
// While it lives, what a view computes is recorded: whether it has a history is decided by
// its base's.
class Recorded : public GradMode {
 public:
  Recorded() : GradMode(!layer::Thread().inference_mode) {}
};
bool RequiresGradHere(const Tensor& t);  // in the parent
bool RequiresGrad(const Tensor& t);      // or at a level around it
// The elements of `values` with the history of `of`: Note [Writes without gradients].
Tensor KeepHistory(const Tensor& of, const Tensor& values, bool moves);
// A link that is the place (`place`) in the memory of what `of` is a view of.
LinkRef LinkAt(const LinkRef& of, Place place);
// The view operator's other form, which copies: select.int -> select_copy.int; else the operator itself.
OperatorRef CopyFormOr(const OperatorRef& view);

// ---- places.cc: as_strided on values, whose strides are not those of the wrapper
Tensor ReadPlace(const Tensor& value, const Place& of, const Place& wanted, bool original, bool copies);
Tensor WritePlace(const Tensor& value, const Place& of, const Place& written, const Tensor& src, bool copies);
int64_t ExtentOf(const Place& place);  // elements from the first to the last
// The elements as one row in the order of their places; zeros between them.
Tensor RowOf(const Tensor& value, const Place& of, bool copies);
// The shape, the order of dimensions; as copies where views are to be.
Tensor Shaped(const Tensor& t, IntSpan sizes, bool copies);
Tensor Flat(const Tensor& t, bool copies);
Tensor Permuted(const Tensor& t, IntSpan dims, bool copies);
// The numbers from 0 on, and zeros of the dtype, on the device of `like`.
Tensor CountUp(int64_t count, const Tensor& like);
Tensor Zeros(int64_t count, const Tensor& like);

// ---- inverse.cc
// `from` after its view `link` got the value `src`.
Tensor Inverse(const Link& link, const Tensor& from, const Tensor& src);

// ---- writes.cc
// Gives the wrapper a new value of its shape and dtype. `op` is the operator that writes it.
void Write(const OperatorRef& op, const Tensor& wrapper, Tensor value, const MicaFrame& frame);
// Another shape for the memory of a wrapper, as resize_ gives.
void Resize(const OperatorRef& op, const Tensor& wrapper, IntSpan sizes, IntSpan strides,
            const MicaFrame& frame);
// Throws what Autograd throws for a write, by the operator `name` (NULL: its own), of the wrappers that
// `written` has a bit for.
void CheckRecorded(const OperatorRef& op, const char* name, const MicaValue* args, int64_t n,
                   uint64_t written, const MicaFrame& frame);

// ---- shapes.cc
// Runs a call without values, so that it throws what it throws without the frame.
void CheckShapes(const OperatorRef& op, const MicaValue* args, int64_t n);
// How the results of a call of wrappers would lie; none where only values can say.
std::vector<Place> PlacesOfResults(const OperatorRef& op, const MicaValue* args, int64_t n);

// ---- kernels.cc, in the frame: what the kind does with each operator
void Choose(void* op, MicaLayerChoice* out);

}  // namespace mica::functionalize
