R"cl(
// Operations of integer and bool lanes. Results wrap; a division by zero sets
// *raised and goes on with 1.
#define CONST(x, i) ((L)(saturated(i)))
#define CONST_INF ((L)((LANE)GREATEST))
#define CONST_NEG_INF ((L)((LANE)LEAST))
#define CONST_NAN ZERO

// Saturated to the dtype, so that infinity is its greatest value.
static LANE saturated(long i) {
#ifdef LANE_BOOL
  return i > 0;
#else
  if (i == LONG_MAX) return GREATEST;
  if (LEAST == 0) return i <= 0 ? 0 : (ulong)i > (ulong)GREATEST ? GREATEST : (LANE)i;
  return (LANE)clamp(i, (long)LEAST, (long)GREATEST);
#endif
}

#ifdef LANE_BOOL
#define WRAP(x) ((L)CHOOSE(((L)(x)) != ZERO, ONE, ZERO))
#define OP_NOT(a) CHOOSE((a) == ZERO, ONE, ZERO)
#else
#define WRAP(x) ((L)(x))
#define OP_NOT(a) WRAP(~(a))
#endif
#define OP_ADD(a, b) WRAP((a) + (b))
#define OP_SUB(a, b) WRAP((a) - (b))
#define OP_MUL(a, b) WRAP((a) * (b))
#define OP_NEG(a) WRAP(ZERO - (a))
#define OP_ABS(a) CHOOSE((a) < ZERO, (L)(ZERO - (a)), a)
#define OP_SIGN(a) CHOOSE((a) > ZERO, ONE, CHOOSE((a) < ZERO, (L)(ZERO - ONE), ZERO))
#define OP_FMA(a, b, c) WRAP((a) * (b) + (c))
#define OP_SQUARE(a) WRAP((a) * (a))
#define OP_AND(a, b) ((L)((a) & (b)))
#define OP_OR(a, b) ((L)((a) | (b)))
#define OP_XOR(a, b) ((L)((a) ^ (b)))
#define OP_IS_NAN(a) M_FALSE
#define OP_IS_INF(a) M_FALSE
#define OP_IS_FINITE(a) M_TRUE
#define OP_SIGNBIT(a) ((a) < ZERO)
#define OP_FLOOR(a) (a)
#define OP_CEIL(a) (a)
#define OP_TRUNC(a) (a)
#define OP_ROUND(a) (a)
#define OP_ANGLE(a) ZERO
// A shift by the width or more gives 0, or the sign.
#define SHIFTS(b) (((b) >= ZERO) & ((b) < (L)(LANE_BITS)))
#define OP_SHL(a, b) CHOOSE(SHIFTS(b), (L)((a) << ((b) & (L)(LANE_BITS - 1))), ZERO)
#define OP_SHR(a, b)                                               \
  CHOOSE(SHIFTS(b), (L)((a) >> ((b) & (L)(LANE_BITS - 1))), \
         CHOOSE((a) < ZERO, (L)(ZERO - ONE), ZERO))

// The divisor, or 1 where a division would trap.
static L checked(L b, global int* raised) {
  if (ANY(b == ZERO)) *raised = 1;
  return CHOOSE(b == ZERO, ONE, b);
}
static L truncated_quotient(L a, L b, global int* raised) {
  const L d = checked(b, raised);
  const M minus = LEAST == 0 ? M_FALSE : d == (L)(ZERO - ONE);  // the least number / -1 wraps
  return CHOOSE(minus, (L)(ZERO - a), (L)(a / CHOOSE(minus, ONE, d)));
}
static L truncated_remainder(L a, L b, global int* raised) {
  return (L)(a - (L)(truncated_quotient(a, b, raised) * checked(b, raised)));
}
static L floor_quotient(L a, L b, global int* raised) {
  const L q = truncated_quotient(a, b, raised), m = truncated_remainder(a, b, raised);
  return CHOOSE((m != ZERO) & ((m < ZERO) != (b < ZERO)), (L)(q - ONE), q);
}
static L floor_remainder(L a, L b, global int* raised) {
  const L m = truncated_remainder(a, b, raised);
  return CHOOSE((m != ZERO) & ((m < ZERO) != (b < ZERO)), (L)(m + b), m);
}
#define OP_TRUNC_DIV(a, b) truncated_quotient(a, b, raised)
#define OP_FMOD(a, b) truncated_remainder(a, b, raised)
#define OP_FLOOR_DIV(a, b) floor_quotient(a, b, raised)
#define OP_REMAINDER(a, b) floor_remainder(a, b, raised)

// These loop, so the host asks for one lane at a time.
#if W == 1
static LANE power(LANE base, LANE exponent) {
  if (LEAST != 0 && exponent < 0) return base == 1 ? 1 : base == (LANE)-1 ? (exponent % 2 ? -1 : 1) : 0;
  ulong result = 1, b = (ulong)base;
  for (ulong e = (ulong)exponent; e; e >>= 1, b *= b)
    if (e & 1) result *= b;
  return WRAP((LANE)result);
}
static ulong magnitude(LANE a) { return a < 0 ? 0 - (ulong)(long)a : (ulong)a; }
static LANE greatest_divisor(LANE a, LANE b) {
  ulong x = magnitude(a), y = magnitude(b);
  while (y) {
    const ulong r = x % y;
    x = y;
    y = r;
  }
  return (LANE)x;
}
static LANE least_multiple(LANE a, LANE b) {
  return a == 0 || b == 0 ? 0 : (LANE)(magnitude(a) / magnitude(greatest_divisor(a, b)) * magnitude(b));
}
#define OP_POW(a, b) power(a, b)
#define OP_GCD(a, b) greatest_divisor(a, b)
#define OP_LCM(a, b) least_multiple(a, b)
#endif
)cl"
