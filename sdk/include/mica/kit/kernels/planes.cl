R"cl(
// Linear maps of planes, dimension by dimension: each element of the result is a sum over elements of the data that
// SUMS nests, the sum of the last dimension innermost. What stands before this text says how a dimension is mapped:
// MAP(d), its parameters, and SUM(d, next, above, WITHIN), which makes sum<d> of sum<next> at all places that belong
// to coordinate k<d> of the result, with WITHIN in its loop; `above` is where the dimensions before d stand.
//
// A plane is [size of dimension 0, ..., inner] without gaps. A work-item computes W neighbours of P planes, so that
// what a map reads or computes for a place serves all of them; SPLIT says which place it is.
//
// The host defines E (the element type), LOAD(p), STORE(v, p), MAPS (MAP of each dimension), SPLIT, SUMS and P. The
// text before may define ELEMENT(p, at), what stands for the element at `at` of plane p, and its OPERANDS.
#ifndef ELEMENT
#define ELEMENT(p, at) LOAD(planes[p] + at)
#define OPERANDS
#endif
#define NO_SUM(d) \
  L sum##d[P];    \
  UNROLL for (uint p = 0; p < P; ++p) sum##d[p] = ZERO;
#define ADD_TO(d, next, weight) UNROLL for (uint p = 0; p < P; ++p) sum##d[p] += (weight)*sum##next[p];
// The elements themselves, as the innermost sum.
#define ELEMENTS(d, at) \
  L sum##d[P];          \
  UNROLL for (uint p = 0; p < P; ++p) sum##d[p] = ELEMENT(p, at);

kernel void over_planes(const global E* data, global E* out, MAPS OPERANDS const INDEX blocks, const INDEX count,
                        const ulong data_plane, const ulong out_plane, const ulong num_planes, global int* raised) {
  const INDEX i = get_global_id(0);
  if (i >= count) return;
  SPLIT
  bool outside = false;
  for (ulong first = (ulong)get_group_id(1) * P; first < num_planes; first += (ulong)get_num_groups(1) * P) {
    const ulong left = num_planes - first;
    const global E* planes[P];  // behind the last one, the first again
    UNROLL for (uint p = 0; p < P; ++p) planes[p] = data + (first + (p < left ? p : 0)) * data_plane;
    SUMS
    UNROLL for (uint p = 0; p < P; ++p)
      if (p < left) STORE(sum0[p], out + (first + p) * out_plane + i * W);
  }
  if (outside) *raised = 1;
}
)cl"
