// From an operator's program to OpenCL C: the text that goes into the skeletons of
// kernels/.
//
// Each section of a program is straight-line code over the macros of lanes.cl
// (`const L r5 = OP_ADD(r3, r4);`), which have a meaning for a lane that is one
// number and for a lane that is a vector of them. mica-gen --emit=opencl made the
// text of Mica's own operators when this plugin was built; a program of another
// origin is printed at run time, in the same form.
#pragma once

#include <string>

#include <mica/program.h>
#include "runtime.h"
#include "space.h"

namespace opencl_device {

// The sections of a call's program, or of a stage of it; "" for those it lacks.
struct ProgramText {
  std::string main, init, combine, finish, map;
};
ProgramText TextOf(const MicaCall* call, const MicaProgram& program, int stage = 0, int ndim = 0);

// One section, printed. Inputs are x<k>, numbers n<k>, states s<k> and, on the
// right of a combine, t<k>; results are y<k>; coordinates are COORD(d) of `ndim`.
std::string CodeText(const MicaProgram& program, const MicaCode& code, int ndim = 0);

// "f32", the ending of ELEMENT_, LOAD_ and STORE_ in lanes.cl; throws NotImplemented
// for a dtype that OpenCL kernels do not hold.
const char* Suffix(int32_t dtype);

// How lanes are typed in a kernel.
struct Lanes {
  int32_t dtype;  // of arithmetic: an integer dtype, bool, f32 or f64
  int width = 1;
};
// The dtype of lanes for a compute dtype: half types compute in float.
int32_t LaneDtype(int32_t compute_dtype);
// The #defines that lanes.cl needs, and lanes.cl. Throws NotImplemented when the
// device lacks the dtype.
std::string LanesText(const Device& device, const Lanes& lanes, bool small_index);

// `INDEX` values for the coordinates of `from` (a variable) in dimensions named
// <prefix>0, ...: "const INDEX k1 = k % size_k1; ...".
std::string SplitText(const std::string& from, const std::string& prefix, size_t ndim);
// "p0 * stride_..": where operand `operand` lies at the coordinates; "0" without any.
std::string OffsetText(const std::string& operand, const std::string& prefix, size_t ndim);

// A macro of one line.
std::string Define(const std::string& name, const std::string& text);

// An argument of a program as the bytes of one lane; integers that do not fit
// raise.
struct LaneBytes {
  char bytes[8];
  size_t size;
};
LaneBytes NumberOf(const MicaValue& value, int32_t lane_dtype);

}  // namespace opencl_device
