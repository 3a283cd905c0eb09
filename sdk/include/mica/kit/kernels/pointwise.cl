R"cl(
// A pointwise operator: W elements a work-item.
//
// PARAMETERS: pointers a<k> to results, then inputs; numbers, sizes, strides, *raised.
// OFFSETS: where the work-item's elements lie. LOADS: x<k>. NUMBERS: n<k>. BODY: the
// operator's `compute`. STORES: y<k> to memory. `count` is how many elements there are, or
// how long a row is; unless WHOLE, the last vector may hold fewer elements than fit: `left`.
kernel void pointwise(PARAMETERS, const INDEX count) {
  const INDEX i = (INDEX)get_global_id(0) * W;
  if (i >= count) return;
  OFFSETS
  NUMBERS
  if (WHOLE || count - i >= W) {
    const uint left = W;
    LOADS
    BODY
    STORES
  } else {
    const uint left = count - i;
    LOADS
    BODY
    STORES
  }
}
)cl"
