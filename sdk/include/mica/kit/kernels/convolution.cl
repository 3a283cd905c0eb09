// Convolution in 1 to 3 dimensions as a matrix product whose operands are looked up.
//
// No matrix of image patches is made: a work-item computes where an element of it
// lies. `image` is the tensor that windows slide over, `result` the one with a place
// for each window, `weight` is [filters, channels of a group, window]. Missing
// dimensions have size 1. The host defines ELEMENT, LOAD(p) and STORE(v, p), and
// FORWARD, BACKWARD_INPUT or BACKWARD_WEIGHT: which of the three is written; and
// UNIT_STRIDE where it is.
//
// An element of B at (k, n) lies at `base` + info.s0, if its place, which is
// `origin` + info.s123, is inside; one of A at (m, k) lies at `row` + info.s4. So
// only the own row and column, and each k once for all, need divisions.
typedef struct {
  int channels, filters;  // of a group
  int image[3], window[3], result[3], stride[3], padding[3], dilation[3];
  int image_stride[5], weight_stride[5], result_stride[5];
} Shape;
typedef const global ELEMENT* Elements;

// A flat index as (index of the first kind, place in three dimensions).
static int4 Split(int flat, const int* size) {
  const int rest = flat / size[2], rest1 = rest / size[1];
  return (int4)(rest1 / size[0], rest1 % size[0], rest % size[1], flat % size[2]);
}
static int3 Three(const int* v) { return (int3)(v[0], v[1], v[2]); }
static int Dot(int3 a, const int* stride) { return a.x * stride[2] + a.y * stride[3] + a.z * stride[4]; }
static int8 Info(int at_b, int3 place, int at_a) {
  return (int8)(at_b, place.x, place.y, place.z, at_a, 0, 0, 0);
}
// An element of B that lies where a place says; 0 outside.
static LANE Inside(Elements b, int at, int3 p, const int* size) {
  if ((uint)p.x >= (uint)size[0] || (uint)p.y >= (uint)size[1] || (uint)p.z >= (uint)size[2]) return 0;
  return LOAD(b + at);
}
static LANE BiasAt(Elements bias, int stride, int channel) {
  return bias ? LOAD(bias + channel * stride) : (LANE)0;
}
#define LOAD_A(k, info) LOAD(operand_a + row + info.s4)
#define LOAD_B(k, info) Inside(operand_b, base + info.s0, origin + info.s123, inside)

#ifdef FORWARD
// m: filter; n: (number in the batch, place of the result); k: (channel, window)
#define PARAMETERS \
  Elements image, Elements weight, Elements bias, int bias_stride, global ELEMENT* result, const Shape s
#define SETUP                                                                                  \
  Elements operand_a = weight, operand_b = image;                                              \
  const int* inside = s.image;                                                                 \
  const int filter = z * s.filters + own_m, row = filter * s.weight_stride[0];                 \
  const int4 place = Split(own_n, s.result);                                                       \
  const int3 origin = place.yzw * Three(s.stride) - Three(s.padding);                              \
  const int base = place.x * s.image_stride[0] + z * s.channels * s.image_stride[1] + Dot(origin, s.image_stride); \
  const long m_out = filter * s.result_stride[1];                                              \
  const long n_out = place.x * s.result_stride[0] + Dot(place.yzw, s.result_stride);
#define DECODE(k) OfWindow(k, &s)
static int8 OfWindow(int k, const Shape* s) {
  const int4 w = Split(k, s->window);
  const int3 shift = w.yzw * Three(s->dilation);
  return Info(w.x * s->image_stride[1] + Dot(shift, s->image_stride), shift,
              w.x * s->weight_stride[1] + Dot(w.yzw, s->weight_stride));
}
#define STORE_C(m, n, at, value) \
  STORE(value + BiasAt(bias, bias_stride, z * s.filters + (m)), result + (at))

#elif defined(BACKWARD_INPUT)
// m: channel; n: (number in the batch, place of the image); k: (filter, window)
#define PARAMETERS \
  Elements result, Elements weight, Elements bias, int bias_stride, global ELEMENT* image, const Shape s
#define SETUP                                                                                  \
  Elements operand_a = weight, operand_b = result;                                             \
  const int* inside = s.result;                                                                \
  const int channel = z * s.channels + own_m;                                                  \
  const int row = z * s.filters * s.weight_stride[0] + own_m * s.weight_stride[1];             \
  const int4 place = Split(own_n, s.image);                                                        \
  const int3 origin = place.yzw + Three(s.padding);                                                \
  const int base = place.x * s.result_stride[0] + z * s.filters * s.result_stride[1];              \
  const long m_out = channel * s.image_stride[1];                                              \
  const long n_out = place.x * s.image_stride[0] + Dot(place.yzw, s.image_stride);
#define DECODE(k) OfWindow(k, &s)
static int8 OfWindow(int k, const Shape* s) {
  const int4 w = Split(k, s->window);
  return Info(w.x * s->result_stride[1], -w.yzw * Three(s->dilation),
              w.x * s->weight_stride[0] + Dot(w.yzw, s->weight_stride));
}
#undef LOAD_B
#define LOAD_B(k, info) Over(operand_b, base + info.s0, origin + info.s123, &s)
// The result whose window has the place under its element; 0 if there is none.
static LANE Over(Elements result, int at, int3 p, const Shape* s) {
#ifndef UNIT_STRIDE
  const int3 stride = Three(s->stride), q = p / stride;
  if (any(q * stride != p)) return 0;
  p = q;
#endif
  return Inside(result, at + Dot(p, s->result_stride), p, s->result);
}
#define STORE_C(m, n, at, value) \
  STORE(value + BiasAt(bias, bias_stride, z * s.channels + (m)), image + (at))

#else
// m: filter; n: (channel, window); k: (number in the batch, place of the result)
#define PARAMETERS \
  Elements result, Elements image, Elements bias, int bias_stride, global ELEMENT* weight, const Shape s
#define SETUP                                                                                  \
  Elements operand_a = result, operand_b = image;                                              \
  const int* inside = s.image;                                                                 \
  const int filter = z * s.filters + own_m, row = filter * s.result_stride[1];                 \
  const int4 place = Split(own_n, s.window);                                                       \
  const int3 origin = place.yzw * Three(s.dilation);                                               \
  const int base = (z * s.channels + place.x) * s.image_stride[1] + Dot(origin, s.image_stride);   \
  const long m_out = filter * s.weight_stride[0];                                              \
  const long n_out = place.x * s.weight_stride[1] + Dot(place.yzw, s.weight_stride);
#define DECODE(k) OfResult(k, &s)
static int8 OfResult(int k, const Shape* s) {
  const int4 y = Split(k, s->result);
  const int3 corner = y.yzw * Three(s->stride) - Three(s->padding);
  return Info(y.x * s->image_stride[0] + Dot(corner, s->image_stride), corner,
              y.x * s->result_stride[0] + Dot(y.yzw, s->result_stride));
}
#define STORE_C(m, n, at, value) STORE(value, weight + (at))
#endif
