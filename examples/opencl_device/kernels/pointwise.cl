// A pointwise operator: W elements a work-item.
//
// PARAMETERS: pointers q<k> to results and p<k> to inputs, numbers, *raised, sizes
// and strides. OFFSETS: where the work-item's elements lie. LOADS: x<k>. NUMBERS:
// n<k>. BODY: the operator's `compute`. STORES: y<k> to memory.
kernel void pointwise(PARAMETERS, const INDEX count) {
  const INDEX i = (INDEX)get_global_id(0) * W;
  if (i >= count) return;
  const uint left = (uint)min(count - i, (INDEX)W);
  OFFSETS
  LOADS
  NUMBERS
  BODY
  STORES
}
