R"cl(
// Lanes that are complex numbers, one a work-item: what lanes.cl and float.cl have for real ones.
//
// PART is the type of the two parts. Formulas are the CPU's, so that arithmetic gives its numbers; the exponential
// and the logarithm compute in WIDE. A real result has an imaginary part of 0.
#ifdef __OPENCL_VERSION__
#define RE(a) ((a).x)
#define IM(a) ((a).y)
#else
#define RE(a) ((a).v[0])
#define IM(a) ((a).v[1])
#endif
#ifdef HAS_F64
typedef double WIDE;
#else
typedef float WIDE;
#endif
typedef VECTOR_OF(float, 2) E_c64;
#ifdef HAS_F64
typedef VECTOR_OF(double, 2) E_c128;
#endif

static L complex_of(PART re, PART im) {
  L z;
  RE(z) = re;
  IM(z) = im;
  return z;
}
static int is_set(L a) { return (RE(a) != 0) | (IM(a) != 0); }
static int is_equal(L a, L b) { return (RE(a) == RE(b)) & (IM(a) == IM(b)); }

#undef ONE
#define ONE complex_of(1, 0)
#define CONST(x, i) complex_of((PART)(x), 0)
#define CONST_INF complex_of((PART)INFINITY, 0)
#define CONST_NEG_INF complex_of((PART)-INFINITY, 0)
#define CONST_NAN complex_of((PART)NAN, 0)

// --- memory -------------------------------------------------------------------------
#undef FROM_INTEGER
#undef FROM_FLOATING
#undef FROM_BOOL
#define FROM_INTEGER(T, x) complex_of((PART)(x), 0)
#define FROM_FLOATING(x) complex_of((PART)(x), 0)
#define FROM_BOOL(x) complex_of((x) != 0 ? (PART)1 : (PART)0, 0)
#define DEFINE_PAIRS(name, T)                                                                    \
  static L load_##name(const global E_##name* p) {                                               \
    const VECTOR_OF(T, 2) pair = LOAD_VECTOR(2, (const global T*)p);                             \
    return complex_of((PART)RE(pair), (PART)IM(pair));                                           \
  }                                                                                              \
  static void store_##name(L z, global E_##name* p) {                                            \
    VECTOR_OF(T, 2) pair;                                                                        \
    RE(pair) = (T)RE(z);                                                                         \
    IM(pair) = (T)IM(z);                                                                         \
    STORE_VECTOR(2, pair, (global T*)p);                                                         \
  }
DEFINE_PAIRS(c64, float)
#ifdef HAS_F64
DEFINE_PAIRS(c128, double)
#endif
#define LOAD_c64(p, left) load_c64(p)
#define LOAD_c128(p, left) load_c128(p)
#define SPLAT_c64(p) load_c64(p)
#define SPLAT_c128(p) load_c128(p)
#define STORE_c64(y, p, left) store_c64(y, p)
#define STORE_c128(y, p, left) store_c128(y, p)
// What is real takes the real part.
#undef TO_INTEGER
#undef TO_UNSIGNED
#undef TO_NARROW
#define TO_INTEGER(T, y) ((T)integer_of(RE(y)))
#define TO_UNSIGNED(T, y) ((T)unsigned_of(RE(y)))
#define TO_NARROW(T, y) ((T)int32_of(RE(y)))
#undef STORE_b8
#undef STORE_f16
#undef STORE_bf16
#undef STORE_f32
#undef STORE_f64
#define STORE_b8(y, p, left) store_uchar((uchar)is_set(y), p, left)
#define STORE_f16(y, p, left) store_half((float)RE(y), p, left)
#define STORE_bf16(y, p, left) store_ushort(to_bf16((float)RE(y)), p, left)
#define STORE_f32(y, p, left) store_float((float)RE(y), p, left)
#define STORE_f64(y, p, left) store_double((double)RE(y), p, left)

// --- arithmetic ---------------------------------------------------------------------
#undef OP_TO_MASK
#undef OP_EQ
#undef OP_NE
#undef OP_REAL
#undef OP_IMAG
#undef OP_CONJ
#define OP_TO_MASK(a) is_set(a)
#define OP_EQ(a, b) is_equal(a, b)
#define OP_NE(a, b) (!is_equal(a, b))
#define OP_REAL(a) complex_of(RE(a), 0)
#define OP_IMAG(a) complex_of(IM(a), 0)
#define OP_CONJ(a) complex_of(RE(a), -IM(a))
#define OP_COMPLEX(a, b) complex_of(RE(a), RE(b))
#define OP_ADD(a, b) ((a) + (b))
#define OP_SUB(a, b) ((a) - (b))
#define OP_NEG(a) complex_of(-RE(a), -IM(a))
#define OP_MUL(a, b) complex_multiply(a, b)
#define OP_SQUARE(a) complex_multiply(a, a)
#define OP_DIV(a, b) complex_divide(a, b)
#define OP_RECIPROCAL(a) complex_divide(ONE, a)
#define OP_ABS(a) complex_of(hypot(RE(a), IM(a)), 0)
#define OP_ANGLE(a) complex_of(atan2(IM(a), RE(a)), 0)
#define OP_IS_NAN(a) ((RE(a) != RE(a)) | (IM(a) != IM(a)))
#define OP_IS_INF(a) ((fabs(RE(a)) == (PART)INFINITY) | (fabs(IM(a)) == (PART)INFINITY))
#define OP_IS_FINITE(a) ((fabs(RE(a)) < (PART)INFINITY) & (fabs(IM(a)) < (PART)INFINITY))

static L complex_multiply(L a, L b) {
  return complex_of(RE(a) * RE(b) - IM(a) * IM(b), RE(a) * IM(b) + IM(a) * RE(b));
}
// One part of a divisor by the larger of the two; of an infinite divisor the infinite parts are 1 and the others 0.
static PART scaled(PART part, PART scale) {
  if (scale != (PART)INFINITY) return part / scale;
  return fabs(part) == (PART)INFINITY ? (part < 0 ? (PART)-1 : (PART)1) : part * (PART)0;
}
static L complex_divide(L a, L b) {
  const PART re = fabs(RE(b)), im = fabs(IM(b)), larger = re < im ? im : re;
  const PART scale = larger == 0 ? (PART)1 : larger;
  const PART x = scaled(RE(b), scale), y = scaled(IM(b), scale), norm = x * x + y * y;
  return complex_of((RE(a) * x + IM(a) * y) / norm / scale, (IM(a) * x - RE(a) * y) / norm / scale);
}
static L complex_sign(L a) {
  if (!is_set(a)) return ZERO;
  const PART size = hypot(RE(a), IM(a));
  return complex_of(RE(a) / size, IM(a) / size);
}
#define OP_SIGN(a) complex_sign(a)

// --- functions ------------------------------------------------------------------------
static L complex_exp(L a) {
  const WIDE re = RE(a), im = IM(a), size = exp(re);
  if (im == 0) return complex_of((PART)size, IM(a));
  // Without a direction an infinite number has no angle, and 0 needs none.
  if (!(fabs(im) < (WIDE)INFINITY) && re == -(WIDE)INFINITY) return ZERO;
  if (!(fabs(im) < (WIDE)INFINITY) && re == (WIDE)INFINITY) return complex_of((PART)INFINITY, (PART)NAN);
  return complex_of((PART)(size * cos(im)), (PART)(size * sin(im)));
}
#define OP_EXP(a) complex_exp(a)

// Near |a| = 1 the logarithm of the size by what it is more than 1.
static L complex_log(L a) {
  const WIDE re = RE(a), im = IM(a), x = fmax(fabs(re), fabs(im)), y = fmin(fabs(re), fabs(im));
  const WIDE size = hypot(re, im);
  const WIDE log_size = size > (WIDE)0.5f && size < 2 ? (WIDE)0.5f * log1p((x - 1) * (x + 1) + y * y) : log(size);
  return complex_of((PART)log_size, (PART)atan2(im, re));
}
#define OP_LOG(a) complex_log(a)
)cl"
