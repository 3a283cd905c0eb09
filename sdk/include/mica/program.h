/* A MicaProgram is an operator's `compute`, `reduce` or `index` expression as
 * data: a short sequence of typed instructions over virtual registers, made by
 * mica-gen at build time and run by a class kernel (the CPU plugin's SIMD
 * engine, the portable interpreter, a vendor's own).
 *
 * Registers are lanes of the call's compute dtype ("lane"), except that
 * comparisons and the logical operations make and take masks ("mask"); which one
 * an instruction writes follows from its opcode. Registers are written once.
 * Complex lanes are two planes. Opcodes are append-only.
 */
#ifndef MICA_PROGRAM_H_
#define MICA_PROGRAM_H_

#include <mica/abi.h>
#include <mica/maths/functions.h>

#define MICA_OPCODE_OF_MATHS1(X, NAME, name) X(NAME, 1, L)
#define MICA_OPCODE_OF_MATHS2(X, NAME, name) X(NAME, 2, L)

/* X(name, number of operands, result: L lane / M mask / N none) */
/* clang-format off */
#define MICA_FORALL_OPCODES(X)                                                                               \
  /* sources; aux is the index of the input, scalar, constant, state or coordinate */                        \
  X(LOAD, 0, L)                                                                                              \
  X(SCALAR, 0, L) X(CONST, 0, L) X(STATE, 0, L) X(ELEMENT, 0, L)                                             \
      X(INDEX, 0, L) /* position along the reduced, scanned or row dimension */                              \
      X(COUNT, 0, L) /* number of elements reduced, or row length */                                         \
      X(COORD, 0, L) /* coordinate of output dimension aux (gather, scatter, factory) */                     \
      X(SIZE, 0, L)  /* size of input dimension aux */                                                       \
      X(U01, 0, L) X(NORMAL, 0, L)                                                                           \
          X(BITS, 0,                                                                                         \
            L) /* results; aux is the index of the output or state, operand a the value (lane or mask) */    \
      X(STORE, 1, N) X(STORE_STATE, 1, N)                                               /* conversions */    \
      X(TO_LANE, 1, L) X(TO_MASK, 1, M) X(CAST, 1, L) /* aux: dtype to round through */ /* arithmetic */     \
      X(ADD, 2, L) X(SUB, 2, L) X(MUL, 2, L) X(DIV, 2, L) X(FLOOR_DIV, 2, L) X(TRUNC_DIV, 2, L)              \
          X(REMAINDER, 2, L) X(FMOD, 2, L) X(NEG, 1, L) X(ABS, 1, L) X(SIGN, 1, L) X(POW, 2, L) X(MIN, 2, L) \
              X(MAX, 2, L) X(FMIN, 2, L) X(FMAX, 2, L) X(FMA, 3, L) X(SQUARE, 1, L)                          \
                  X(RECIPROCAL, 1, L) /* bits (integers, bool) */                                            \
      X(AND, 2, L) X(OR, 2, L) X(XOR, 2, L) X(NOT, 1, L) X(SHL, 2, L) X(SHR, 2, L) X(GCD, 2, L)              \
          X(LCM, 2, L) /* comparisons and masks */                                                           \
      X(EQ, 2, M) X(NE, 2, M) X(LT, 2, M) X(LE, 2, M) X(GT, 2, M) X(GE, 2, M) X(MASK_AND, 2, M)              \
          X(MASK_OR, 2, M) X(MASK_XOR, 2, M) X(MASK_NOT, 1, M)                                               \
              X(SELECT, 3, L) /* a mask, b where true, c where false */                                      \
      X(MASK_SELECT, 3, M) X(IS_NAN, 1, M) X(IS_INF, 1, M) X(IS_FINITE, 1, M)                                \
          X(SIGNBIT, 1, M)                                                          /* rounding */           \
      X(FLOOR, 1, L) X(CEIL, 1, L) X(TRUNC, 1, L) X(ROUND, 1, L) /* half to even */ /* maths */              \
      X(SQRT, 1, L) X(RSQRT, 1, L) X(CBRT, 1, L) X(EXP, 1, L) X(EXP2, 1, L) X(EXPM1, 1, L) X(LOG, 1, L)      \
          X(LOG2, 1, L) X(LOG10, 1, L) X(LOG1P, 1, L) X(SIN, 1, L) X(COS, 1, L) X(TAN, 1, L) X(ASIN, 1, L)   \
              X(ACOS, 1, L) X(ATAN, 1, L) X(SINH, 1, L) X(COSH, 1, L) X(TANH, 1, L) X(ASINH, 1, L)           \
                  X(ACOSH, 1, L) X(ATANH, 1, L) X(ATAN2, 2, L) X(HYPOT, 2, L) X(ERF, 1, L) X(ERFC, 1, L)     \
                      X(ERFINV, 1, L) X(LGAMMA, 1, L) X(DIGAMMA, 1, L) X(SIGMOID, 1, L) X(LOGADDEXP, 2, L)   \
                          X(COPYSIGN, 2, L) X(NEXTAFTER, 2, L) /* complex */                                 \
      X(REAL, 1, L) X(IMAG, 1, L) X(CONJ, 1, L) X(ANGLE, 1, L) X(COMPLEX, 2, L)                              \
      /* later sources; aux is the index of the list argument or of the scalar */                            \
      X(LIST, 0, L)   /* the list's value for the dimension at hand */                   \
      X(BEFORE, 0, L) /* of a list of pairs from the last dimension on: what stands before, */               \
      X(AFTER, 0, L)  /* and after, the dimension at hand */                                                 \
      X(AREA, 0, L)   /* window: places of the window inside the padding */                                  \
      X(GIVEN, 0, M)  /* whether an optional scalar is given; SCALAR reads 0 where it is not */ \
      /* functions of mica/maths/, without a vector form */                                       \
      MICA_FORALL_MATHS(MICA_OPCODE_OF_MATHS1, MICA_OPCODE_OF_MATHS2, X)
/* clang-format on */

enum {
#define MICA_OPCODE(name, arity, result) MICA_OP_##name,
  MICA_FORALL_OPCODES(MICA_OPCODE)
#undef MICA_OPCODE
      MICA_OPCODE_COUNT
};

typedef struct {
  uint16_t opcode;
  uint8_t dst; /* register written; 255 for STORE and STORE_STATE */
  uint8_t a, b, c;
  int16_t aux;
} MicaInstruction;

/* A constant in both kinds; `is_integer` says that the source had no point.
 * Integer lanes take `i` saturated to their range, so that inf (i = INT64_MAX) is
 * the largest value of each dtype and -inf the smallest. */
typedef struct {
  double f;
  int64_t i;
  int32_t is_integer;
  int32_t reserved;
} MicaConstant;

typedef struct {
  const MicaInstruction* data;
  int64_t size;
} MicaCode;

/* Argument numbers below index the schema of the functional form. */
typedef struct MicaProgram {
  uint64_t struct_size;
  const char* class_name; /* "pointwise", "reduction", "scan", "row", "window", "gather", ... */
  const char* source;     /* the expression as written in the YAML entry */
  const char* hint;    /* "sum", "max", "softmax", ... where an engine may have its own loop; "" otherwise */
  int32_t num_inputs;  /* tensors read by LOAD aux */
  int32_t num_scalars; /* Scalar, int, float or bool arguments read by SCALAR aux */
  int32_t num_outputs; /* written by STORE aux */
  int32_t num_states;  /* of reductions and scans */
  int32_t num_registers;
  int32_t num_constants;
  const int32_t* input_args;  /* num_inputs argument numbers */
  const int32_t* scalar_args; /* num_scalars argument numbers */
  const MicaConstant* constants;
  MicaCode main;       /* pointwise, random, factory: the whole; reduction, scan, row: the step */
  MicaCode init;       /* reduction, scan: STORE_STATE of each state */
  MicaCode combine;    /* STATE 0..n-1 is the left part, STATE n..2n-1 the right; STORE_STATE 0..n-1 */
  MicaCode finish;     /* STATE -> STORE outputs */
  MicaCode map;        /* row: per element, after the stages: ELEMENT, STATE -> STORE */
  int32_t dims_arg;    /* argument with the reduced dims, the scanned or row dim; -1 if none */
  int32_t keepdim_arg; /* -1 if none */
  int32_t flags;
  int32_t first_state; /* row: the first state of this stage; states below are results of earlier stages */
  /* row: the following stage, or NULL. States are numbered through all stages;
   * a stage's `finish` does STORE_STATE of its results, which later stages read
   * by STATE. Only the last stage has `map`. Tables of inputs, scalars and
   * constants belong to each stage. */
  const struct MicaProgram* next;
  /* gather, scatter. For each element of the output (gather) or of the source
   * (scatter) and each dimension that dims_arg names (all where there is none;
   * the dimension `dim` where dims_arg is -1 and dim is not MICA_NO_DIM), `index`
   * gives the coordinate in the data: STORE 0, in int64 lanes. It reads COORD 0
   * (the element's coordinate), SIZE 0 (the data's size), SIZE 1 (the element's
   * side's size), ELEMENT (the value of the tensor index_arg), LIST, BEFORE,
   * AFTER. `keep` gives a mask over the element's coordinates (COORD d, from the
   * end if negative): other elements are filled, or not scattered. Either may be
   * empty. A dimension that dims_arg's list names several times has `index` run
   * once for each, from the coordinate before. */
  MicaCode index;
  MicaCode keep;
  int32_t data_arg;    /* gathered from, scattered into, or seen through windows */
  int32_t source_arg;  /* scatter: the tensor whose elements are scattered; -1: a number alone */
  int32_t index_arg;   /* tensor of indices, -1 if none */
  int32_t index_place; /* MICA_INDEX_... */
  int32_t bounds;      /* MICA_BOUNDS_... */
  int32_t fill_arg;    /* gather: Scalar that fills; -1: 0 */
  int32_t dim;
  int32_t num_lists;
  const int32_t* list_args; /* int[] arguments read by LIST, BEFORE and AFTER */
  /* window: int[] arguments, one value a windowed dimension (the last ones) or one
   * for all; -1 where there is none. Where kernel_arg is -1 the windows divide the
   * dimension into output_arg parts. INDEX is the place in the flattened windowed
   * dimensions, COUNT the number of elements. */
  int32_t num_windowed;
  int32_t kernel_arg, stride_arg, pad_arg, dilation_arg, output_arg;
  int32_t reserved;
  const char* equation; /* contraction: "bij,bjk->bik", over input_args; "" otherwise */
  int32_t join;         /* fold: MICA_JOIN_..., of the list data_arg along the dimension dims_arg */
  int32_t reserved_of_fold;
} MicaProgram;

/* The size in ABI 1.0; members that come later are asked for with MICA_HAS. */
#define MICA_PROGRAM_SIZE_1_0 304
MICA_LAYOUT_ASSERT(sizeof(MicaProgram) >= MICA_PROGRAM_SIZE_1_0);

#define MICA_PROGRAM_DIMS_NONE_IS_ALL 1 /* dims None or empty: all of them */
#define MICA_PROGRAM_USES_INDEX 2
#define MICA_PROGRAM_TRAILING_DIMS 4     /* row: dims_arg is normalized_shape, the last dims */
#define MICA_PROGRAM_DIMS_NONE_IS_FLAT 8 /* gather: dims empty: the flattened tensor */

#define MICA_NO_DIM INT32_MIN

#define MICA_INDEX_WHOLE 0   /* the index has the element's shape: gather */
#define MICA_INDEX_REPLACE 1 /* its dimensions stand where `dim` stood: index_select, embedding */

#define MICA_JOIN_ALONG 0    /* one after the other in a dimension they have: cat */
#define MICA_JOIN_NEW 1      /* in a dimension of their own: stack */
#define MICA_JOIN_DIAGONAL 2 /* as blocks on the diagonal, zeros around */

#define MICA_BOUNDS_ERROR 0   /* a coordinate out of bounds raises INDEX */
#define MICA_BOUNDS_FILL 1    /* it is filled, or not scattered */
#define MICA_BOUNDS_RUNTIME 2 /* it raises RUNTIME, as torch's gather and scatter do */

#endif /* MICA_PROGRAM_H_ */
