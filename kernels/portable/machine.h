// A machine that runs MicaPrograms on wide lanes, 256 at a time, with plain loops.
//
// The caller fills the sources (inputs, element, states, coordinates, draws) of a block
// and runs one code of the program; results are in outputs and states. The class
// kernels in classes.cc drive it over tensors.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <mica/program.h>
#include "kernels/portable/lanes.h"

namespace mica::portable {

template <typename T>
class Machine {
 public:
  static constexpr int64_t kBlock = Offsets::kBlock;

  // `args` of the functional form give the scalars; `compute` is the dtype whose
  // range integer results wrap to.
  Machine(const MicaProgram& program, const MicaValue* args, DType compute);

  T* input(int i) { return &inputs_[static_cast<size_t>(i) * kBlock]; }
  T* output(int i) { return &outputs_[static_cast<size_t>(i) * kBlock]; }
  T* state(int i) { return &states_[static_cast<size_t>(i) * kBlock]; }
  T* coordinate(int d) { return &coordinates_[static_cast<size_t>(d) * kBlock]; }
  T* element() { return element_.data(); }
  T* draw(int i) { return &draws_[static_cast<size_t>(i) * kBlock]; }
  void SetDraws(int count) { draws_.resize(static_cast<size_t>(count) * kBlock); }
  void SetIndex(int64_t index) { index_ = index; }
  void SetCount(int64_t count) { count_ = count; }
  void SetArea(int64_t area) { area_ = area; }
  // What LIST, BEFORE and AFTER of list argument `list` read.
  void SetList(int list, int64_t value, int64_t before, int64_t after);
  // Of the tensor that COORD and SIZE speak of.
  void SetSizes(IntSpan sizes);
  // The program whose tables (inputs, scalars, constants) the next Run uses: a
  // stage of a row. States stay.
  void Select(const MicaProgram& stage);

  void Run(const MicaCode& code, int64_t n);

 private:
  void RunOne(const MicaInstruction& in, int64_t n);
  bool RunSource(const MicaInstruction& in, int64_t n);
  bool RunMask(const MicaInstruction& in, int64_t n);
  bool RunReal(const MicaInstruction& in, int64_t n);
  void Wrap(T* v, int64_t n) const;
  T* lane(int r) { return &lanes_[static_cast<size_t>(r) * kBlock]; }
  uint8_t* mask(int r) { return &masks_[static_cast<size_t>(r) * kBlock]; }
  T Constant(const MicaConstant& c) const;

  const MicaProgram* program_;
  const MicaValue* args_;
  DType compute_;
  std::vector<T> lanes_, inputs_, outputs_, states_, coordinates_, element_, draws_, scalars_;
  std::vector<uint8_t> masks_, is_mask_;
  Dims sizes_;
  std::vector<std::array<int64_t, 3>> lists_;
  int64_t index_ = 0, count_ = 0, area_ = 0;
};

}  // namespace mica::portable
