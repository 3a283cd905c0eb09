R"cl(
// Lanes, loads and stores: what generated code stands on.
//
// The host defines LANE (the type of one number), MASK (what comparing two vectors
// of LANE gives), W (lanes a work-item holds), INDEX, and LANE_FLOAT, LANE_INT or
// LANE_BOOL (none of them where complex.cl stands behind this text). L and M are W of
// them. A mask is 0 or 1 where W is 1, and 0 or -1 in a vector, as OpenCL has it. No
// product is fused with a sum, so that a value does not depend on where it stands.
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

// --- what OpenCL C and C++ say differently --------------------------------------------
// In C++ a prelude stands before this text, which has the words of OpenCL and vectors.
#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT OFF
#ifdef HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define VECTOR_OF(T, n) JOIN(T, n)
#define CONVERT(T, x) JOIN(convert_, VECTOR(T))(x)
#define AS(T, x) JOIN(as_, VECTOR(T))(x)
#define CHOOSE(m, a, b) ((m) ? (a) : (b))
#define LOAD_VECTOR(n, p) JOIN(vload, n)(0, p)
#define STORE_VECTOR(n, v, p) JOIN(vstore, n)(v, 0, p)
#define PACK(n, p) JOIN(vload, n)(0, p)
#define UNPACK(n, v, p) JOIN(vstore, n)(v, 0, p)
#define LOAD_HALVES(n, p) JOIN(vload_half, n)(0, p)
#define STORE_HALVES(n, v, p) JOIN(JOIN(vstore_half, n), _rte)(v, 0, p)
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))  // fused where contraction is on
#define UNROLL
#else
#define VECTOR_OF(T, n) Vec<T, n>
#define CONVERT(T, x) convert<VECTOR(T)>(x)
#define AS(T, x) as(x, VECTOR(T)())
#if W == 1
#define CHOOSE(m, a, b) ((m) ? (a) : (b))
#else
#define CHOOSE(m, a, b) choose(m, a, b)
template <typename T>
using Wide = Vec<T, W>;
#endif
#define LOAD_VECTOR(n, p) load_vector<n>(p)
#define STORE_VECTOR(n, v, p) store_vector<n>(v, p)
#define PACK(n, p) pack<n>(p)
#define UNPACK(n, v, p) unpack<n>(v, p)
#define LOAD_HALVES(n, p) load_halves<n>(p)
#define STORE_HALVES(n, v, p) store_halves<n>(v, p)
#define MULTIPLY_ADD(a, b, c) multiply_add(a, b, c)
#endif

#if W == 1
#define VECTOR(T) T
typedef LANE L;
typedef int M;
#define ANY(m) (m)
#define M_TRUE 1
#define MASK_NOT_(m) (!(m))
#else
#ifdef __OPENCL_VERSION__
#define VECTOR(T) VECTOR_OF(T, W)
#else
#define VECTOR(T) Wide<T>  // a macro's argument holds no bare commas
#endif
typedef VECTOR(LANE) L;
typedef VECTOR(MASK) M;
#define ANY(m) any(m)
#define M_TRUE ((M)(-1))
#define MASK_NOT_(m) (~(m))
#endif
#define M_FALSE ((M)(0))
#define ZERO ((L)(0))
#define ONE ((L)(1))

// --- memory: W elements at p, `left` of them valid where fewer are left ---------
typedef uchar E_b8;
typedef uchar E_u8;
typedef char E_i8;
typedef ushort E_u16;
typedef short E_i16;
typedef uint E_u32;
typedef int E_i32;
typedef ulong E_u64;
typedef long E_i64;
typedef half E_f16;
typedef ushort E_bf16;
typedef float E_f32;
#ifdef HAS_F64
typedef double E_f64;
#endif
typedef VECTOR_OF(ulong, 2) E_u128;  // moved, never computed with

#define DEFINE_TRUTH(T) \
  static VECTOR(uchar) truth_##T(VECTOR(T) v) { return CONVERT(uchar, v != (VECTOR(T))(0)) & (uchar)1; }
#if W == 1
#define DEFINE_MEMORY(T)                                         \
  static T load_##T(const global T* p, uint left) { return *p; } \
  static void store_##T(T v, global T* p, uint left) { *p = v; }
static float load_half(const global half* p, uint left) { return vload_half(0, p); }
static void store_half(float v, global half* p, uint left) { vstore_half_rte(v, 0, p); }
#else
// Past the end, the first element is repeated: a divisor there raises nothing new.
#define DEFINE_MEMORY(T)                                               \
  static VECTOR(T) load_##T(const global T* p, uint left) {            \
    if (left >= W) return LOAD_VECTOR(W, p);                           \
    T part[W];                                                         \
    UNROLL for (uint i = 0; i < W; ++i) part[i] = p[i < left ? i : 0]; \
    return PACK(W, part);                                              \
  }                                                                    \
  static void store_##T(VECTOR(T) v, global T* p, uint left) {         \
    if (left >= W) {                                                   \
      STORE_VECTOR(W, v, p);                                           \
      return;                                                          \
    }                                                                  \
    T part[W];                                                         \
    UNPACK(W, v, part);                                                \
    UNROLL for (uint i = 0; i < W; ++i)                                \
      if (i < left) p[i] = part[i];                                    \
  }
#ifndef __OPENCL_VERSION__
// W elements, each `spacing` behind the other. Where further ones follow, memory goes on in between, and one
// access reads what lies there too.
template <int spacing, typename T>
static Vec<T, W> load_spaced(const T* p, bool others_follow, uint left) {
  typedef Vec<T, W * spacing> Whole;
  Vec<T, W> r;
  if (others_follow && (size_t)p % alignof(Whole) == 0) {
    const Whole whole = *(const Whole*)p;
    UNROLL for (uint i = 0; i < W; ++i) r.v[i] = whole.v[i * spacing];
  } else {
    UNROLL for (uint i = 0; i < W; ++i) r.v[i] = p[(i < left ? i : 0) * spacing];
  }
  return r;
}
#endif
static VECTOR(float) load_half(const global half* p, uint left) {
  if (left >= W) return LOAD_HALVES(W, p);
  float part[W];
  UNROLL for (uint i = 0; i < W; ++i) part[i] = vload_half(i < left ? i : 0, p);
  return PACK(W, part);
}
static void store_half(VECTOR(float) v, global half* p, uint left) {
  if (left >= W) {
    STORE_HALVES(W, v, p);
    return;
  }
  float part[W];
  UNPACK(W, v, part);
  UNROLL for (uint i = 0; i < W; ++i)
    if (i < left) vstore_half_rte(part[i], i, p);
}
#endif
DEFINE_MEMORY(uchar)
DEFINE_TRUTH(uchar)
DEFINE_MEMORY(char)
DEFINE_TRUTH(char)
DEFINE_MEMORY(ushort)
DEFINE_TRUTH(ushort)
DEFINE_MEMORY(short)
DEFINE_TRUTH(short)
DEFINE_MEMORY(uint)
DEFINE_TRUTH(uint)
DEFINE_MEMORY(int)
DEFINE_TRUTH(int)
DEFINE_MEMORY(ulong)
DEFINE_TRUTH(ulong)
DEFINE_MEMORY(long)
DEFINE_TRUTH(long)
DEFINE_MEMORY(float)
#ifdef HAS_F64
DEFINE_MEMORY(double)
#endif

// bfloat16 is the upper half of a float, rounded to even; a NaN stays one.
static VECTOR(float) from_bf16(VECTOR(ushort) v) { return AS(float, CONVERT(uint, v) << 16); }
#if defined(HAS_BF16) && W == 1
static ushort to_bf16(float v) { return bf16_of_float(v); }
#elif defined(HAS_BF16)
static VECTOR(ushort) to_bf16(VECTOR(float) v) {
  VECTOR(ushort) r;
  UNROLL for (int i = 0; i < W; i += 2) {
    const uint pair = bf16_pair_of_floats(v.v[i], v.v[i + 1]);
    r.v[i] = (ushort)pair, r.v[i + 1] = (ushort)(pair >> 16);
  }
  return r;
}
#else
static VECTOR(ushort) to_bf16(VECTOR(float) v) {
  const VECTOR(uint) bits = AS(uint, v);
  const VECTOR(uint) rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return CONVERT(ushort, CHOOSE(v != v, (bits >> 16) | 0x40, rounded));
}
#endif

// --- elements as lanes, and back -------------------------------------------------
#ifdef LANE_BOOL
#define FROM_INTEGER(T, x) truth_##T(x)
#define FROM_BOOL(x) truth_uchar(x)
#define FROM_FLOATING(x) ((LANE)((x) != 0))
#elif defined(LANE_FLOAT)
#define FROM_INTEGER(T, x) CONVERT(LANE, x)
#define FROM_FLOATING(x) CONVERT(LANE, x)
#else
#define FROM_INTEGER(T, x) CONVERT(LANE, x)
#define FROM_FLOATING(x) ((LANE)integer_of(x))
#endif
#ifndef LANE_BOOL
// As a choice by a mask, which a compiler sees through where the program asks for the mask.
#define FROM_BOOL(x) CHOOSE(CONVERT(MASK, x) != CONVERT(MASK, (VECTOR(uchar))(0)), ONE, ZERO)
#endif

// A float as an integer of 64 bits, truncated, or of 32 without a sign; what does not fit is the least int64.
#ifdef HAS_F64
static long integer_of(double x) {
#else
static long integer_of(float x) {
#endif
  return x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? (long)x : LONG_MIN;
}
#ifdef HAS_F64
static ulong unsigned_of(double x) {
#else
static ulong unsigned_of(float x) {
#endif
  if (x >= 18446744073709551616.0f) return 0;
  return x >= 9223372036854775808.0f ? (ulong)x : (ulong)integer_of(x);
}
// What does not fit an int32 is the least one, of which narrower integers take the low bits.
#ifdef HAS_F64
static int int32_of(double x) {
#else
static int int32_of(float x) {
#endif
  return x >= -2147483648.0f && x < 2147483648.0f ? (int)x : INT_MIN;
}

#define LOAD_b8(p, left) FROM_BOOL(load_uchar(p, left))
#define LOAD_u8(p, left) FROM_INTEGER(uchar, load_uchar(p, left))
#define LOAD_i8(p, left) FROM_INTEGER(char, load_char(p, left))
#define LOAD_u16(p, left) FROM_INTEGER(ushort, load_ushort(p, left))
#define LOAD_i16(p, left) FROM_INTEGER(short, load_short(p, left))
#define LOAD_u32(p, left) FROM_INTEGER(uint, load_uint(p, left))
#define LOAD_i32(p, left) FROM_INTEGER(int, load_int(p, left))
#define LOAD_u64(p, left) FROM_INTEGER(ulong, load_ulong(p, left))
#define LOAD_i64(p, left) FROM_INTEGER(long, load_long(p, left))
#define LOAD_f16(p, left) FROM_FLOATING(load_half(p, left))
#define LOAD_bf16(p, left) FROM_FLOATING(from_bf16(load_ushort(p, left)))
#define LOAD_f32(p, left) FROM_FLOATING(load_float(p, left))
#define LOAD_f64(p, left) FROM_FLOATING(load_double(p, left))

// One element in every lane.
#define SPLAT_b8(p) FROM_BOOL((VECTOR(uchar))(*(p)))
#define SPLAT_u8(p) FROM_INTEGER(uchar, (VECTOR(uchar))(*(p)))
#define SPLAT_i8(p) FROM_INTEGER(char, (VECTOR(char))(*(p)))
#define SPLAT_u16(p) FROM_INTEGER(ushort, (VECTOR(ushort))(*(p)))
#define SPLAT_i16(p) FROM_INTEGER(short, (VECTOR(short))(*(p)))
#define SPLAT_u32(p) FROM_INTEGER(uint, (VECTOR(uint))(*(p)))
#define SPLAT_i32(p) FROM_INTEGER(int, (VECTOR(int))(*(p)))
#define SPLAT_u64(p) FROM_INTEGER(ulong, (VECTOR(ulong))(*(p)))
#define SPLAT_i64(p) FROM_INTEGER(long, (VECTOR(long))(*(p)))
#define SPLAT_f16(p) FROM_FLOATING((VECTOR(float))(vload_half(0, p)))
#define SPLAT_bf16(p) FROM_FLOATING(from_bf16((VECTOR(ushort))(*(p))))
#define SPLAT_f32(p) FROM_FLOATING((VECTOR(float))(*(p)))
#define SPLAT_f64(p) FROM_FLOATING((VECTOR(double))(*(p)))

#ifdef LANE_FLOAT
#define TO_INTEGER(T, y) ((T)integer_of(y))
#define TO_UNSIGNED(T, y) ((T)unsigned_of(y))
#define TO_NARROW(T, y) ((T)int32_of(y))
#else
#define TO_INTEGER(T, y) CONVERT(T, y)
#define TO_UNSIGNED(T, y) CONVERT(T, y)
#define TO_NARROW(T, y) CONVERT(T, y)
#endif
#define STORE_b8(y, p, left) store_uchar(CONVERT(uchar, (y) != ZERO) & (uchar)1, p, left)
#define STORE_u8(y, p, left) store_uchar(TO_NARROW(uchar, y), p, left)
#define STORE_i8(y, p, left) store_char(TO_NARROW(char, y), p, left)
#define STORE_u16(y, p, left) store_ushort(TO_NARROW(ushort, y), p, left)
#define STORE_i16(y, p, left) store_short(TO_NARROW(short, y), p, left)
#define STORE_u32(y, p, left) store_uint(TO_INTEGER(uint, y), p, left)
#define STORE_i32(y, p, left) store_int(TO_NARROW(int, y), p, left)
#define STORE_u64(y, p, left) store_ulong(TO_UNSIGNED(ulong, y), p, left)
#define STORE_i64(y, p, left) store_long(TO_INTEGER(long, y), p, left)
#define STORE_f16(y, p, left) store_half(CONVERT(float, y), p, left)
#define STORE_bf16(y, p, left) store_ushort(to_bf16(CONVERT(float, y)), p, left)
#define STORE_f32(y, p, left) store_float(CONVERT(float, y), p, left)
#define STORE_f64(y, p, left) store_double(CONVERT(double, y), p, left)

// --- what a program reads besides inputs, and casts ---------------------------------
#define COORD(d) ((L)(JOIN(c, d)))
#define SIZE(d) ((L)(JOIN(size_c, d)))
#define LIST(k) JOIN(list, k)
#define BEFORE(k) JOIN(before, k)
#define AFTER(k) JOIN(after, k)
#define AREA(k) ((L)(area))
#define GIVEN(k) JOIN(given, k)
#define AS_LANE(a) (a)
#define OP_CAST(dtype, a) JOIN(OP_CAST_, dtype)(a)
#define OP_MATHS1(f, a) ((L)JOIN(mica_, f)((double)(a)))
#define OP_MATHS2(f, a, b) ((L)JOIN(mica_, f)((double)(a), (double)(b)))

// --- operations that every kind of lane has ---------------------------------------
#define OP_TO_LANE(m) CHOOSE(m, ONE, ZERO)
#define OP_TO_MASK(a) ((a) != ZERO)
#define OP_SELECT(m, a, b) CHOOSE(m, a, b)
#define OP_MASK_SELECT(m, a, b) CHOOSE(m, a, b)
#define OP_MASK_AND(a, b) ((a) & (b))
#define OP_MASK_OR(a, b) ((a) | (b))
#define OP_MASK_XOR(a, b) ((a) ^ (b))
#define OP_MASK_NOT(a) MASK_NOT_(a)
#define OP_EQ(a, b) ((a) == (b))
#define OP_NE(a, b) ((a) != (b))
#define OP_LT(a, b) ((a) < (b))
#define OP_LE(a, b) ((a) <= (b))
#define OP_GT(a, b) ((a) > (b))
#define OP_GE(a, b) ((a) >= (b))
// NaN wins in min and max, a number wins over it in fmin and fmax.
#define OP_MIN(a, b) CHOOSE(((a) != (a)) | ((a) <= (b)), a, b)
#define OP_MAX(a, b) CHOOSE(((a) != (a)) | ((a) >= (b)), a, b)
#define OP_FMIN(a, b) CHOOSE(((b) != (b)) | ((a) <= (b)), a, b)
#define OP_FMAX(a, b) CHOOSE(((b) != (b)) | ((a) >= (b)), a, b)
#define OP_REAL(a) (a)
#define OP_IMAG(a) ZERO
#define OP_CONJ(a) (a)
#define OP_CAST_0(a) OP_TO_LANE(OP_TO_MASK(a))
)cl"
