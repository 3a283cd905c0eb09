// Batched: the frame kind "vmap". A wrapper stands for one example of a batch: its value
// has the batch as dimension 0 (MicaPayload::hidden is 1), or is the same for all examples and
// has no such dimension (hidden 0: what the function made without batched tensors).
//
// A rule computes an operator for the whole batch at once. Rules belong to classes, not to
// operators (rules.cc has the table): a Call opens the arguments, which the rule changes
// (ranks aligned, dimensions shifted by one), and runs the operator in the parent frame.
//
//   bool Trailing(Call& call) {          // an operator of the last dimensions alone
//     call.AllBatched();                 // each tensor gets the batch in front
//     return call.Run();                 // the results are wrapped
//   }
//
// What has no rule runs example by example (Loop), with one warning that names it.
#pragma once

#include <algorithm>
#include <atomic>
#include <forward_list>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mica/batched.h>
#include <mica/frame.h>

namespace mica::batched {

using formula::Device;
using formula::Dims;
using formula::DType;
using formula::IntSpan;
using formula::MemoryFormat;
using formula::Own;
using formula::Scalar;
using formula::Show;
using formula::Tensor;
using formula::WrapDim;
using layer::DetailsOf;
using layer::TextOf;

MicaFrameKindRecord KindRecord();

inline const MicaBatch& BatchOf(const MicaFrame& frame) {
  return *static_cast<const MicaBatch*>(frame.payload);
}

// Of what is borrowed, without a reference.
inline IntSpan SizesOf(MicaTensor* t) { return {t->dl.shape, t->dl.ndim}; }
inline IntSpan SizesOf(const MicaValue& v) { return SizesOf(v.u.tensor); }
inline IntSpan StridesOf(MicaTensor* t) { return {t->dl.strides, t->dl.ndim}; }
inline IntSpan IntsOf(const MicaValue& v) { return {v.u.ints.data, v.u.ints.size}; }
// Each as WrapDim says, none twice.
Dims WrapDims(IntSpan dims, int64_t rank);
// `first`, and the rest behind it.
Dims Prepended(int64_t first, IntSpan rest);

// A tensor among the arguments, opened.
struct Part {
  Tensor value;          // of the parent; undefined where the argument is
  bool batched = false;  // dimension 0 of the value is the batch
  int64_t rank = 0;      // of one example
};

class Call;
struct Op;
// False: this call is not for the rule; its decomposition takes it, or the loop.
using Rule = bool (*)(Call& call);

// Where a rule comes from, for the statistics.
enum class Source : uint8_t { kClass, kByHand, kDecomposition, kLoop, kRefused };
const char* Name(Source s);

struct RuleEntry {
  Rule rule = nullptr;  // NULL: Loop, or an error
  Source source = Source::kLoop;
};

// How the rule of views makes the view of a batch: views.cc.
enum class ViewWay : uint8_t {
  kWhole,    // the operator itself, which keeps all dimensions where they are, counted from the last
  kByDims,   // the operator itself, its dimensions shifted
  kPermute,  // the batch stays in front
  kT,
  kSqueeze,
  kView,     // the batch's size in front
  kExpand,   // by the sizes of an example's view
  kByPlace,  // by its sizes, strides and offset
};
ViewWay WayOfView(const MicaOperatorInfo& info);
// The arguments of a view that count dimensions of its first, a bit each.
uint64_t DimsArgs(const MicaOperatorInfo& info);

// What is asked of an operator at each call; made once and kept for good.
struct Op {
  void* handle = nullptr;
  const MicaOperatorInfo* info = nullptr;
  std::string_view text;  // its name, "mica::add.Tensor"
  RuleEntry entry;
  ViewWay view = ViewWay::kByPlace;
  uint64_t dims_args = 0;
  const Op* functional = nullptr;                       // of another form; NULL if there is none
  mutable std::atomic<const Op*> dimensional{nullptr};  // once it was looked for: reduction.cc
  std::string_view name() const { return text; }
  bool has(uint64_t flag) const { return (info->flags & flag) != 0; }
  bool is_class(std::string_view c) const { return c == info->class_name; }
  // The number of the argument of that name; -1 if there is none.
  int64_t Find(std::string_view argument) const;
};
// Takes no lock after the first time.
const Op& OpOf(void* handle);
// By name; NULL if there is none.
const Op* FindOp(std::string_view name);
RuleEntry RuleOf(void* handle);

// Whether `t` is of the frame and has a value for each example.
bool IsBatched(MicaTensor* t, const MicaFrame& frame);
// What stands behind `t` as a wrapper of the frame, brought up to date with its base; nothing of others. In
// the parent.
const MicaWrapper* Opened(MicaTensor* t, const MicaFrame& frame);
// Gives a wrapper that is the same for all examples a value for each, so that it can be
// written; raises where the frame did not make `t`. In the parent.
void Promote(const Op& op, MicaTensor* t, const MicaFrame& frame);
// The kind's `settle`: a view made before its base got a batch takes its place in it.
MicaStatus SettleLate(void*, MicaTensor* wrapper);
// A wrapper of the frame, less `hidden` dimensions; with `base` a view of it. Undefined of what is undefined.
Tensor Wrapped(const Tensor& value, const MicaFrame& frame, int64_t hidden = 1, MicaTensor* base = nullptr);

// A batch of a tensor: its dimension 0 is one, which `rank` - t.rank ones follow.
Tensor Aligned(Part t, int64_t rank);
// The value with the batch in front; a tensor without one is expanded.
Tensor WithBatch(const Part& t, int64_t size);
// Raises NotImplementedError for what joins a batch without examples with a dimension of theirs.
void CheckNotEmpty(int64_t size);
// The batch joined with the first dimension of the examples, and back.
Tensor Fold(const Tensor& t);
Tensor Unfold(const Tensor& t, int64_t size);

// One operator's call while it is computed in the parent frame.
class Call {
 public:
  Call(const Op& op, const MicaValue* args, int64_t n, MicaValue* results);

  const Op& op() const { return op_; }
  const MicaFrame& frame() const { return left_.frame(); }
  int64_t batch() const { return BatchOf(frame()).size; }
  const MicaValue* given() const { return given_; }  // the caller's arguments, wrappers and all
  int64_t size() const { return static_cast<int64_t>(values_.size()); }

  bool IsTensor(int64_t i) const { return given_[i].tag == MICA_VALUE_TENSOR; }
  bool IsTensors(int64_t i) const { return given_[i].tag == MICA_VALUE_TENSORS; }
  Part PartAt(int64_t i) const;
  // Of a tensor: whether its value has a batch, as it was opened.
  bool IsBatched(int64_t i) const { return openings_[static_cast<size_t>(i)].batched; }
  std::vector<Part> PartsAt(int64_t i) const;
  // The number of the argument of that name; -1 if there is none.
  int64_t Find(std::string_view name) const { return op_.Find(name); }
  const MicaValue& operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }

  void Set(int64_t i, Tensor t);
  void SetList(int64_t i, std::vector<Tensor> list);
  void SetInt(int64_t i, int64_t value);
  void SetInts(int64_t i, Dims values);
  void SetValue(int64_t i, const MicaValue& v) { values_[static_cast<size_t>(i)] = v; }

  // Gives argument i, which is written, a batch (see below).
  void Promote(int64_t i);
  // Each tensor with the batch in front.
  void AllBatched();
  // The same, all of the rank that the highest has.
  void AllAligned();

  // Runs the operator, or another of the same arguments and results, and wraps what it
  // returns after `then` changed it.
  using Then = std::function<Tensor(Tensor)>;
  bool Run(const Then& then = nullptr) { return Run(op_, values_.data(), size(), then); }
  bool Run(const Op& other, const MicaValue* args, int64_t n, const Then& then = nullptr);
  // The results instead.
  bool Return(Tensor result, int i = 0);
  // A view of the memory of argument 0.
  bool ReturnView(Tensor result);

 private:
  // What stands behind a tensor of the call.
  struct Opening {
    MicaTensor* value = nullptr;
    bool batched = false;
  };
  // Puts the value of a tensor in its place.
  void Open(int64_t i);

  const Op& op_;
  const MicaValue* given_;
  MicaValue* results_;
  layer::LeaveFrame left_;
  layer::Few<Opening, 12> openings_;
  layer::Few<MicaValue, 12> values_;
  layer::Few<Tensor, 6> kept_;
  std::forward_list<std::vector<Tensor>> lists_;  // keeps addresses
  std::forward_list<Dims> ints_;
};

// Calls the operator boxed. Its results are the caller's.
void CallBoxed(const Op& op, const MicaValue* args, int64_t n, MicaValue* results);
// A result, with its reference.
inline MicaValue Given(Tensor t) {
  const MicaValue v = formula::Box(t);
  static_cast<void>(t.release());
  return v;
}
using Results = layer::Few<MicaValue, 4>;
// f(tensor, argument number) for each tensor among boxed arguments.
template <typename F>
void ForEachTensor(const MicaValue* args, int64_t n, F&& f) {
  layer::Call(0, nullptr, args, n, nullptr, 0).ForEachTensor(f);
}

// Of a batched call that raised: runs `op` on the examples until one raises as it does in a loop, where
// dimensions and sizes are those that the caller knows. In the frame's parent; changes nothing.
void RefuseAsTheLoop(const Op& op, const MicaValue* args, int64_t n, const MicaFrame& frame);
// Runs `op` once an example and stacks the results; in the frame, which it leaves.
void Loop(const Op& op, const MicaValue* args, int64_t n, MicaValue* results);

// Rules, by class.
bool Pointwise(Call&);  // pointwise.cc
bool Reduction(Call&);  // reduction.cc
bool Along(Call&);      // reduction.cc: scans, rows, sorting, gather and scatter by a `dim`
bool FlatAlong(Call&);  // reduction.cc: the same; without dims, of all elements as one row
bool UnfoldBackward(Call&);
bool View(Call&);            // views.cc
bool Contraction(Call&);     // contraction.cc
bool Trailing(Call&);        // contraction.cc: core(n), triangles, padding
bool SquareMatrices(Call&);  // contraction.cc: linalg_matrix_exp
bool Transform(Call&);       // contraction.cc: Fourier
bool Copied(Call&);          // pointwise.cc: clone, empty_like
bool Filled(Call&);          // pointwise.cc: fill.Tensor
bool MaskedFilled(Call&);
bool Whole(Call&);                      // contraction.cc: the same of the whole batch
bool LdlSolve(Call&);                   // contraction.cc
bool Sorted(Call&);                     // contraction.cc: searchsorted
bool Join(Call&);                       // folds.cc: cat, stack
bool Diagonal(Call&);                   // folds.cc: block_diag
bool MaskedScatter(Call&);              // counting.cc
bool Bincount(Call&);                   // counting.cc
bool Images(Call&);                     // windows.cc: pooling
bool Folded(Call&);                     // windows.cc: resampling
bool Convolution(Call&);                // windows.cc
bool ConvolutionBackwardInput(Call&);   // windows.cc
bool ConvolutionBackwardWeight(Call&);  // windows.cc
bool IndexSelect(Call&);                // indexing.cc
bool IndexAdd(Call&);
bool IndexCopy(Call&);
bool Index(Call&);
bool IndexPut(Call&);
bool Embedding(Call&);
bool EmbeddingBackward(Call&);
bool NllLoss(Call&);  // losses.cc
bool NllLossBackward(Call&);
bool CtcLoss(Call&);
bool CtcLossBackward(Call&);
bool BecomeView(Call&);  // views.cc
bool Resize(Call&);      // views.cc
bool ByOperator(Call&);  // contraction.cc: a plugin's, by the operator that its record names

bool LayerNorm(Call&);  // composites.cc
bool Attention(Call&);

// The kernel of random operators, which also runs without batched arguments: random.cc.
void RunRandom(layer::Call& call);
// Of reading one element: raises where the examples differ.
void RunRead(layer::Call& call);
// The kind's kernel for all other operators: batched.cc.
void RunBatched(layer::Call& call);

}  // namespace mica::batched
