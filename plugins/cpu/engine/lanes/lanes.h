// The vocabulary of the CPU engine: lanes, blocks and primitives.
//
// A *lane* is the type in which a program computes; a *block* is up to
// kBlock lanes, held in L1; a *primitive* is one typed loop over a block. The
// lane files (lanes_*.cc, maths_*.cc, casts.cc) compile each primitive once per
// instruction set (SSE4, AVX2, AVX-512) and hand it out through the tables
// declared here; the plan (plan.h) strings primitives together.
//
// Always holds: a primitive writes exactly n lanes; `dst` may equal an operand
// but not overlap it otherwise; a mask is one byte a lane, 0 or 1; a complex
// register is two planes, the imaginary one kBlock lanes after the real one.
#ifndef MICA_PLUGINS_CPU_ENGINE_LANES_H_
#define MICA_PLUGINS_CPU_ENGINE_LANES_H_

#include <cstdint>

#include <mica/program.h>

namespace mica::cpu {

// Elements of a block, and so also the distance of a complex register's planes.
inline constexpr int64_t kBlock = 1024;

// What a primitive reports besides its result; flags are ORed over blocks.
enum PrimitiveFlags : int {
  kFlagNone = 0,
  kFlagZeroDivision = 1,  // integer division or remainder by zero
};

// dst, a, b, c: registers as the opcode needs them (unused ones are ignored).
using Primitive = int (*)(void* dst, const void* a, const void* b, const void* c, int64_t n);

// Opcodes of the engine's own, after those of program.h.
enum EngineOpcode : int {
  kOpCopy = MICA_OPCODE_COUNT,  // dst = a
  kOpMulAdd,                    // dst = a + b * c, rounded twice as MUL and ADD would
  kOpZeroImaginary,             // imaginary plane of dst = 0
  kOpIota,                      // dst = a[0] + i * a[1] (a is two int64)
  kOpSplat,                     // dst = a[0] everywhere (a is a register)
  kOpHot,                       // a whole program (hot.h); no primitive
  kOpHotResult,                 // one of its results after the first
  kEngineOpcodeCount,
};

// `rows` rows of n lanes of a step of two operands, one of which has a single lane for each row
// (a mean that is taken off, a channel's bias). Steps count bytes from row to row.
struct RepeatedRows {
  char* dst;
  const char* a;
  const char* b;
  int64_t dst_step, a_step, b_step;
  int64_t rows, n;
};
using RowPrimitive = void (*)(const RepeatedRows& rows);

// What a primitive does for each row where operand `repeated` (0: a, 1: b) is a single lane; NULL
// where there is no such loop. The arithmetic of the float lanes has one.
RowPrimitive RowPrimitiveOf(Primitive primitive, int repeated);

struct PrimitiveTable {
  Primitive at[kEngineOpcodeCount];
};

// The table of the lane that computes in `dtype`, best instruction set of this
// machine; NULL for a dtype that is no lane (the half and float8 types).
// An entry is NULL where the opcode has no meaning for the lane.
const PrimitiveTable* LaneTable(int32_t dtype);

// Operations that go from memory of the half or complex type `dtype` to memory of it with no
// cast between, nor planes; NULL where there are none. Few entries, and no constants.
const PrimitiveTable* NarrowTable(int32_t dtype);

// Loops over masks: MASK_AND, MASK_OR, MASK_XOR, MASK_NOT, MASK_SELECT, kOpCopy.
const PrimitiveTable* MaskTable();

// The lane in which a program of compute dtype `dtype` runs: itself (-1, none, too), or
// float32 for the half and float8 types.
int32_t LaneOf(int32_t dtype);

const char* DtypeName(int32_t dtype);
int64_t DtypeSize(int32_t dtype);
inline bool IsComplex(int32_t dtype) { return dtype == MICA_C64 || dtype == MICA_C128; }
inline bool IsFloat(int32_t dtype) { return LaneOf(dtype) == MICA_F32 || LaneOf(dtype) == MICA_F64; }
inline bool IsInteger(int32_t dtype) { return dtype >= MICA_U8 && dtype <= MICA_I64; }
inline int32_t RealOf(int32_t dtype) {
  return dtype == MICA_C64 ? MICA_F32 : dtype == MICA_C128 ? MICA_F64 : dtype;
}

// One conversion step from real dtype to real dtype; NULL where two steps over
// float32 are needed (half and float8 on both sides, or with 64-bit types).
Primitive DirectCast(int32_t from, int32_t to);

// Between interleaved complex memory and the two planes of the same precision.
Primitive Deinterleave(int32_t dtype);
Primitive Interleave(int32_t dtype);

// Both planes of a complex register, from float32 to float64 or back.
Primitive CastPlanes(bool widen);

// Copies n elements of `size` bytes from or to `stride` bytes apart.
void GatherStrided(void* dst, const void* src, int64_t stride, int64_t size, int64_t n);
void ScatterStrided(void* dst, int64_t stride, const void* src, int64_t size, int64_t n);
void Splat(void* dst, const void* value, int64_t size, int64_t n);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_LANES_H_
