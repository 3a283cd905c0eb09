R"cl(
// Operations of float and double lanes.
#ifdef LANE_DOUBLE
#define CONST(x, i) ((L)(x))
#else
#define CONST(x, i) ((L)(x##f))
#endif
#define CONST_INF ((L)((LANE)INFINITY))
#define CONST_NEG_INF ((L)((LANE)-INFINITY))
#define CONST_NAN ((L)((LANE)NAN))

#define OP_ADD(a, b) ((a) + (b))
#define OP_SUB(a, b) ((a) - (b))
#define OP_MUL(a, b) ((a) * (b))
#define OP_DIV(a, b) ((a) / (b))
#define OP_TRUNC_DIV(a, b) trunc((a) / (b))
#define OP_FMOD(a, b) fmod(a, b)
#define OP_NEG(a) (-(a))
#define OP_ABS(a) fabs(a)
#define OP_SIGN(a) CHOOSE((a) > ZERO, ONE, CHOOSE((a) < ZERO, -ONE, ZERO))
#define OP_POW(a, b) pow(a, b)
#define OP_FMA(a, b, c) fma(a, b, c)
#define OP_SQUARE(a) ((a) * (a))
#define OP_RECIPROCAL(a) (ONE / (a))
#define OP_IS_NAN(a) ((a) != (a))
#define OP_IS_INF(a) (fabs(a) == CONST_INF)
#define OP_IS_FINITE(a) (fabs(a) < CONST_INF)
#define OP_SIGNBIT(a) (copysign(ONE, a) < ZERO)
#define OP_FLOOR(a) floor(a)
#define OP_CEIL(a) ceil(a)
#define OP_TRUNC(a) trunc(a)
#define OP_ROUND(a) rint(a)
#define OP_SQRT(a) sqrt(a)
#define OP_RSQRT(a) (ONE / sqrt(a))
#define OP_CBRT(a) cbrt(a)
#define OP_EXP(a) exp(a)
#define OP_EXP2(a) exp2(a)
#define OP_EXPM1(a) expm1(a)
#define OP_LOG(a) log(a)
#define OP_LOG2(a) log2(a)
#define OP_LOG10(a) log10(a)
#define OP_LOG1P(a) log1p(a)
#define OP_SIN(a) sin(a)
#define OP_COS(a) cos(a)
#define OP_TAN(a) tan(a)
#define OP_ASIN(a) asin(a)
#define OP_ACOS(a) acos(a)
#define OP_ATAN(a) atan(a)
#define OP_SINH(a) sinh(a)
#define OP_COSH(a) cosh(a)
#define OP_TANH(a) tanh(a)
#define OP_ASINH(a) asinh(a)
#define OP_ACOSH(a) acosh(a)
#define OP_ATANH(a) atanh(a)
#define OP_ATAN2(a, b) atan2(a, b)
#define OP_HYPOT(a, b) hypot(a, b)
#define OP_ERF(a) erf(a)
#define OP_ERFC(a) erfc(a)
#define OP_LGAMMA(a) lgamma(a)
#define OP_COPYSIGN(a, b) copysign(a, b)
#define OP_NEXTAFTER(a, b) nextafter(a, b)
#define OP_ANGLE(a) CHOOSE((a) < ZERO, CONST(3.14159265358979323846, 3L), CHOOSE((a) != (a), a, ZERO))
#define OP_CAST_11(a) CONVERT(LANE, CONVERT(float, a))
#define OP_CAST_12(a) (a)
#define OP_CAST_10(a) CONVERT(LANE, from_bf16(to_bf16(CONVERT(float, a))))
#define OP_CAST_8(a) trunc(a)

static L remainder_of(L a, L b) {
  const L m = fmod(a, b);
  return CHOOSE(m == ZERO, copysign(ZERO, b), CHOOSE((b < ZERO) != (m < ZERO), m + b, m));
}
#define OP_REMAINDER(a, b) remainder_of(a, b)

static L floor_divide(L a, L b) {
  const L m = fmod(a, b);
  L q = (a - m) / b;
  q = CHOOSE((m != ZERO) & ((b < ZERO) != (m < ZERO)), q - ONE, q);
  const L f = floor(q);
  const L whole = CHOOSE(q - f > CONST(0.5, 0L), f + ONE, f);
  return CHOOSE(b == ZERO, a / b, CHOOSE(q == ZERO, copysign(ZERO, a / b), whole));
}
#define OP_FLOOR_DIV(a, b) floor_divide(a, b)

static L sigmoid(L x) {
  const L e = exp(-fabs(x));
  return CHOOSE(x >= ZERO, ONE, e) / (ONE + e);
}
#define OP_SIGMOID(a) sigmoid(a)

static L log_add_exp(L a, L b) {
  const L m = fmax(a, b);
  const L sum = m + log1p(exp(-fabs(a - b)));
  return CHOOSE((a != a) | (b != b), CONST_NAN, CHOOSE((a == b) & (fabs(a) == CONST_INF), a, sum));
}
#define OP_LOGADDEXP(a, b) log_add_exp(a, b)

// Giles' approximation, then two steps of Newton.
static L erf_inverse(L x) {
  const L w = -log((ONE - x) * (ONE + x));
  const L u = w - CONST(2.5, 2L), v = sqrt(w) - CONST(3.0, 3L);
  L p = CONST(2.81022636e-08, 0L), q = CONST(-0.000200214257, 0L);
  p = CONST(3.43273939e-07, 0L) + p * u, q = CONST(0.000100950558, 0L) + q * v;
  p = CONST(-3.5233877e-06, 0L) + p * u, q = CONST(0.00134934322, 0L) + q * v;
  p = CONST(-4.39150654e-06, 0L) + p * u, q = CONST(-0.00367342844, 0L) + q * v;
  p = CONST(0.00021858087, 0L) + p * u, q = CONST(0.00573950773, 0L) + q * v;
  p = CONST(-0.00125372503, 0L) + p * u, q = CONST(-0.0076224613, 0L) + q * v;
  p = CONST(-0.00417768164, 0L) + p * u, q = CONST(0.00943887047, 0L) + q * v;
  p = CONST(0.246640727, 0L) + p * u, q = CONST(1.00167406, 1L) + q * v;
  p = CONST(1.50140941, 1L) + p * u, q = CONST(2.83297682, 2L) + q * v;
  L y = CHOOSE(w < CONST(5.0, 5L), p, q) * x;
  for (int i = 0; i < 2; ++i) y -= (erf(y) - x) / (CONST(1.1283791670955126, 1L) * exp(-y * y));
  y = CHOOSE(fabs(x) == ONE, copysign(CONST_INF, x), y);
  return CHOOSE(fabs(x) <= ONE, y, CONST_NAN);
}
#define OP_ERFINV(a) erf_inverse(a)

// Reflection below 0, recurrence up to 10, then the asymptotic series.
static L digamma(L x) {
  const L t = x - trunc(x);
  const M negative = x < ZERO;
  const L pi = CONST(3.14159265358979323846, 3L);
  L result = CHOOSE(negative, -pi / tan(pi * t), ZERO);
  L z = CHOOSE(negative, ONE - x, x);
  for (int i = 0; i < 10; ++i) {
    const M small = z < CONST(10.0, 10L);
    result -= CHOOSE(small, ONE / z, ZERO);
    z += CHOOSE(small, ONE, ZERO);
  }
  const L r = ONE / (z * z);
  const L series =
      r * (CONST(0.083333333333333333, 0L) -
           r * (CONST(0.0083333333333333333, 0L) -
                r * (CONST(0.003968253968253968, 0L) -
                     r * (CONST(0.0041666666666666667, 0L) - r * CONST(0.007575757575757576, 0L)))));
  const L value = result + log(z) - CONST(0.5, 0L) / z - series;
  return CHOOSE(x == ZERO, copysign(CONST_INF, -x), CHOOSE(negative & (t == ZERO), CONST_NAN, value));
}
#define OP_DIGAMMA(a) digamma(a)
)cl"
