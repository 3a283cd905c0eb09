// Batched: the frame kind "vmap". A wrapper stands for one example of a batch: its value
// has the batch as dimension 0 (Wrapper::hidden is 1), or is the same for all examples and
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

#include <forward_list>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <mica/batched.h>

#include "absl/container/inlined_vector.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/registration/registration.h"

namespace mica::batched {

void BringKind(Scope& scope);
inline const MicaBatch& BatchOf(const frames::Frame& frame) {
  return *static_cast<const MicaBatch*>(frame.payload);
}

// A tensor among the arguments, opened.
struct Part {
  Tensor value;          // of the parent; undefined where the argument is
  bool batched = false;  // dimension 0 of the value is the batch
  int64_t rank = 0;      // of one example
};

// Whether `t` is of the frame and has a value for each example.
bool IsBatched(const Tensor& t, const frames::Frame& frame);
// The wrapper of the frame behind `t`, brought up to date with its base; NULL of others. In the parent.
frames::Wrapper* Opened(const Tensor& t, const frames::Frame& frame);
// Gives a wrapper that is the same for all examples a value for each, so that it can be
// written; raises where the frame did not make `t`. In the parent.
void Promote(const Operator& op, const Tensor& t, const frames::Frame& frame);
// Kind::settle of vmap: a view made before its base got a batch takes its place in it.
void SettleLate(const Tensor& wrapper);

// A batch of a tensor: its dimension 0 is one, which `rank` - t.rank ones follow.
Tensor Aligned(const Part& t, int64_t rank);
// The value with the batch in front; a tensor without one is expanded.
Tensor WithBatch(const Part& t, int64_t size);
// The batch joined with the first dimension of the examples, and back.
Tensor Fold(const Tensor& t);
Tensor Unfold(const Tensor& t, int64_t size);

// One operator's call while it is computed in the parent frame.
class Call {
 public:
  Call(const Operator& op, const MicaValue* args, int64_t n, MicaValue* results);

  const Operator& op() const { return op_; }
  const frames::Frame& frame() const { return left_.frame(); }
  int64_t batch() const { return BatchOf(frame()).size; }
  const MicaValue* given() const { return given_; }  // the caller's arguments, wrappers and all
  int64_t size() const { return static_cast<int64_t>(values_.size()); }

  bool IsTensor(int64_t i) const { return given_[i].tag == MICA_VALUE_TENSOR; }
  bool IsTensors(int64_t i) const { return given_[i].tag == MICA_VALUE_TENSORS; }
  Part PartAt(int64_t i) const;
  std::vector<Part> PartsAt(int64_t i) const;
  // The number of the argument of that name; -1 if there is none.
  int64_t Find(std::string_view name) const { return op_.schema().FindArgument(name); }
  const MicaValue& operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }

  void Set(int64_t i, Tensor t);
  void SetList(int64_t i, std::vector<Tensor> list);
  void SetInt(int64_t i, int64_t value);
  void SetInts(int64_t i, Dims values);
  void SetValue(int64_t i, const MicaValue& v) { values_[static_cast<size_t>(i)] = v; }

  // Each tensor with the batch in front.
  void AllBatched();
  // The same, all of the rank that the highest has.
  void AllAligned();

  // Runs the operator, or another of the same arguments and results, and wraps what it
  // returns after `then` changed it.
  using Then = std::function<Tensor(Tensor)>;
  bool Run(const Then& then = nullptr) { return Run(op_, values_.data(), size(), then); }
  bool Run(const Operator& other, const MicaValue* args, int64_t n, const Then& then = nullptr);
  // The results instead.
  bool Return(Tensor result, int i = 0);
  // A view of the memory of argument 0.
  bool ReturnView(Tensor result);

 private:
  const Operator& op_;
  const MicaValue* given_;
  MicaValue* results_;
  frames::LeaveFrame left_;
  absl::InlinedVector<MicaValue, 12> values_;
  absl::InlinedVector<Tensor, 6> kept_;
  std::forward_list<std::vector<Tensor>> lists_;  // keeps addresses
  std::forward_list<Dims> ints_;
};

// False: this call is not for the rule; its decomposition takes it, or the loop.
using Rule = bool (*)(Call& call);

// Where a rule comes from, for the statistics.
enum class Source : uint8_t { kClass, kByHand, kDecomposition, kLoop, kRefused };
const char* Name(Source s);

struct RuleEntry {
  Rule rule = nullptr;  // NULL: Loop, or an error
  Source source = Source::kLoop;
};
RuleEntry RuleOf(const Operator& op);

// Of a batched call that raised: runs `op` on the examples until one raises as it does in a loop, where
// dimensions and sizes are those that the caller knows. In the frame's parent; changes nothing.
void RefuseAsTheLoop(const Operator& op, const MicaValue* args, int64_t n, const frames::Frame& frame);
// Runs `op` once an example and stacks the results; in the frame, which it leaves.
void Loop(const Operator& op, const MicaValue* args, int64_t n, MicaValue* results);

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
void RunRandom(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
               MicaValue* results);
// Of reading one element: raises where the examples differ.
void RunRead(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
             MicaValue* results);
// The kind's kernel for all other operators: batched.cc.
void RunBatched(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
                MicaValue* results);

}  // namespace mica::batched
