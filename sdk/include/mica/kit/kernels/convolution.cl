R"cl(
// Convolution in 1 to 3 dimensions as a matrix product whose operands are looked up.
//
// No matrix of image patches is made: a work-item computes where an element of it
// lies. `image` is the tensor that windows slide over, `result` the one with a place
// for each window, `weight` is [filters, channels of a group, window]. Missing
// dimensions have size 1. The host defines ELEMENT, LOAD(p) and STORE(v, p), and
// FORWARD, BACKWARD_INPUT or BACKWARD_WEIGHT: which of the three is written; and
// UNIT_STRIDE where it is.
//
// An element of B at (k, n) lies at `base` + info.at_b, if its place, which is
// `origin` + info.shift, is inside; one of A at (m, k) lies at `row` + info.at_a. So
// only the own row and column, and each k once for all, need divisions.
typedef struct {
  int channels, filters;  // of a group
  int image[3], window[3], result[3], stride[3], padding[3], dilation[3];
  int image_stride[5], weight_stride[5], result_stride[5];
} Shape;
typedef const global ELEMENT* Elements;

typedef struct {
  int z, y, x;
} Place;
static Place PlaceOf(int z, int y, int x) {
  const Place p = {z, y, x};
  return p;
}
static Place Add(Place a, Place b) { return PlaceOf(a.z + b.z, a.y + b.y, a.x + b.x); }
static Place Scale(Place p, const int* by) { return PlaceOf(p.z * by[0], p.y * by[1], p.x * by[2]); }
// p + sign * by
static Place Move(Place p, const int* by, int sign) {
  return PlaceOf(p.z + sign * by[0], p.y + sign * by[1], p.x + sign * by[2]);
}
static int Dot(Place p, const int* stride) { return p.z * stride[2] + p.y * stride[3] + p.x * stride[4]; }

// A flat index as an index of the first kind, and a place.
typedef struct {
  int first;
  Place place;
} Position;
static Position Split(int flat, const int* size) {
  const int rest = flat / size[2], rest1 = rest / size[1];
  const Position p = {rest1 / size[0], {rest1 % size[0], rest % size[1], flat % size[2]}};
  return p;
}

// Aligned, so that a compiler may read its first four numbers at once.
typedef struct __attribute__((aligned(16))) {
  int at_b;
  Place shift;
  int at_a;
} Info;
#define INFO Info
static Info InfoOf(int at_b, Place shift, int at_a) {
  const Info info = {at_b, shift, at_a};
  return info;
}

// An element of B that lies where a place says; 0 outside.
static LANE Inside(Elements b, int at, Place p, const int* size) {
  if ((uint)p.z >= (uint)size[0] || (uint)p.y >= (uint)size[1] || (uint)p.x >= (uint)size[2]) return 0;
  return LOAD(b + at);
}
static LANE BiasAt(Elements bias, int stride, int channel) {
  return bias ? LOAD(bias + channel * stride) : (LANE)0;
}
#define LOAD_A(k, info) LOAD(operand_a + row + info.at_a)
#define LOAD_B(k, info) Inside(operand_b, base + info.at_b, Add(origin, info.shift), inside)

#ifdef FORWARD
// m: filter; n: (number in the batch, place of the result); k: (channel, window)
#define PARAMETERS \
  Elements image, Elements weight, Elements bias, int bias_stride, global ELEMENT* result, const Shape s
#define SETUP                                                                                           \
  Elements operand_a = weight, operand_b = image;                                                       \
  const int* inside = s.image;                                                                          \
  const int filter = z * s.filters + own_m, row = filter * s.weight_stride[0];                          \
  const Position own = Split(own_n, s.result);                                                          \
  const Place origin = Move(Scale(own.place, s.stride), s.padding, -1);                                 \
  const int base =                                                                                      \
      own.first * s.image_stride[0] + z * s.channels * s.image_stride[1] + Dot(origin, s.image_stride); \
  const long m_out = filter * s.result_stride[1];                                                       \
  const long n_out = own.first * s.result_stride[0] + Dot(own.place, s.result_stride);
#define DECODE(k) OfWindow(k, &s)
static Info OfWindow(int k, const Shape* s) {
  const Position w = Split(k, s->window);
  const Place shift = Scale(w.place, s->dilation);
  return InfoOf(w.first * s->image_stride[1] + Dot(shift, s->image_stride), shift,
                w.first * s->weight_stride[1] + Dot(w.place, s->weight_stride));
}
#define STORE_C(m, n, at, value) \
  STORE(value + BiasAt(bias, bias_stride, z * s.filters + (m)), result + (at))

#elif defined(BACKWARD_INPUT)
// m: channel; n: (number in the batch, place of the image); k: (filter, window)
#define PARAMETERS \
  Elements result, Elements weight, Elements bias, int bias_stride, global ELEMENT* image, const Shape s
#define SETUP                                                                           \
  Elements operand_a = weight, operand_b = result;                                      \
  const int* inside = s.result;                                                         \
  const int channel = z * s.channels + own_m;                                           \
  const int row = z * s.filters * s.weight_stride[0] + own_m * s.weight_stride[1];      \
  const Position own = Split(own_n, s.image);                                           \
  const Place origin = Move(own.place, s.padding, 1);                                   \
  const int base = own.first * s.result_stride[0] + z * s.filters * s.result_stride[1]; \
  const long m_out = channel * s.image_stride[1];                                       \
  const long n_out = own.first * s.image_stride[0] + Dot(own.place, s.image_stride);
#define DECODE(k) OfWindow(k, &s)
static Info OfWindow(int k, const Shape* s) {
  const Position w = Split(k, s->window);
  const Place far = Scale(w.place, s->dilation);
  return InfoOf(w.first * s->result_stride[1], PlaceOf(-far.z, -far.y, -far.x),
                w.first * s->weight_stride[0] + Dot(w.place, s->weight_stride));
}
#undef LOAD_B
#define LOAD_B(k, info) Over(operand_b, base + info.at_b, Add(origin, info.shift), &s)
// The result whose window has the place under its element; 0 if there is none.
static LANE Over(Elements result, int at, Place p, const Shape* s) {
#ifndef UNIT_STRIDE
  const Place q = PlaceOf(p.z / s->stride[0], p.y / s->stride[1], p.x / s->stride[2]);
  const Place back = Scale(q, s->stride);
  if (back.z != p.z || back.y != p.y || back.x != p.x) return 0;
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
#define SETUP                                                                                      \
  Elements operand_a = result, operand_b = image;                                                  \
  const int* inside = s.image;                                                                     \
  const int filter = z * s.filters + own_m, row = filter * s.result_stride[1];                     \
  const Position own = Split(own_n, s.window);                                                     \
  const Place origin = Scale(own.place, s.dilation);                                               \
  const int base = (z * s.channels + own.first) * s.image_stride[1] + Dot(origin, s.image_stride); \
  const long m_out = filter * s.weight_stride[0];                                                  \
  const long n_out = own.first * s.weight_stride[1] + Dot(own.place, s.weight_stride);
#define DECODE(k) OfResult(k, &s)
static Info OfResult(int k, const Shape* s) {
  const Position y = Split(k, s->result);
  const Place corner = Move(Scale(y.place, s->stride), s->padding, -1);
  return InfoOf(y.first * s->image_stride[0] + Dot(corner, s->image_stride), corner,
                y.first * s->result_stride[0] + Dot(y.place, s->result_stride));
}
#define STORE_C(m, n, at, value) STORE(value, weight + (at))
#endif
)cl"
