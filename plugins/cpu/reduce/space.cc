// Splitting of dimensions into kept and reduced ones; see space.h.
#include "plugins/cpu/reduce/space.h"

#include <algorithm>

#include <mica/plugin.h>
#include "plugins/cpu/engine/pointwise.h"

namespace mica::cpu {
namespace {

void MarkDims(const ReduceCall& call, Space* space) {
  const MicaProgram& program = *call.call->program;
  const int ndim = call.inputs[0]->dl.ndim;
  const auto mark = [&](int64_t d) {
    const int64_t wrapped = d < 0 ? d + ndim : d;
    if (wrapped >= 0 && wrapped < ndim) space->reduced[wrapped] = true;
  };
  std::fill_n(space->reduced, kMaxDims, false);
  const MicaValue* dims = program.dims_arg < 0 ? nullptr : &call.args[program.dims_arg];
  if (dims != nullptr && dims->tag == MICA_VALUE_INT) return mark(dims->u.i);
  if (dims != nullptr && dims->tag == MICA_VALUE_INTS && dims->u.ints.size > 0) {
    if ((program.flags & MICA_PROGRAM_TRAILING_DIMS) != 0) {
      for (int64_t i = 0; i < dims->u.ints.size; ++i) mark(ndim - 1 - i);
    } else {
      for (int64_t i = 0; i < dims->u.ints.size; ++i) mark(dims->u.ints.data[i]);
    }
    return;
  }
  std::fill_n(space->reduced, ndim, true);
}

// Byte strides of `tensor` by dimension of the input. A tensor of fewer
// dimensions aligns at the last one, or, as a reduction's output without
// keepdim, at the kept ones.
void Strides(const MicaTensor* tensor, const Space& space, int ndim, bool aligns_kept, int64_t* strides) {
  const int64_t size = tensor->dl.dtype.bits / 8;
  const bool dropped = aligns_kept && tensor->dl.ndim != ndim;
  int own = dropped ? 0 : tensor->dl.ndim - ndim;
  for (int d = 0; d < ndim; ++d) {
    strides[d] = 0;
    if (dropped && space.reduced[d]) continue;
    if (own >= 0 && own < tensor->dl.ndim && tensor->dl.shape[own] != 1)
      strides[d] = tensor->dl.strides[own] * size;
    ++own;
  }
}

}  // namespace

ReduceCall MakeReduceCall(const MicaCall* call, const MicaValue* args, MicaTensor* const* outputs,
                          int64_t num_outputs) {
  const MicaProgram* program = call->program;
  MICA_PLUGIN_CHECK(program != nullptr && program->num_inputs <= kMaxInputs && num_outputs <= kMaxResults,
                    MICA_ERROR_NOT_IMPLEMENTED,
                    "The CPU engine runs programs of at most 16 inputs and 8 outputs.");
  ReduceCall result = {call, args, outputs, num_outputs, program->num_inputs, {}};
  for (int i = 0; i < program->num_inputs; ++i) {
    const MicaValue& value = args[program->input_args[i]];
    MICA_PLUGIN_CHECK(value.tag == MICA_VALUE_TENSOR && value.u.tensor != nullptr, MICA_ERROR_NOT_IMPLEMENTED,
                      "A program of the CPU engine has an optional input that is absent.");
    result.inputs[i] = value.u.tensor;
  }
  // The loops read complex elements as complex lanes only.
  if (program->num_inputs > 0 && IsComplex(DtypeOf(result.inputs[0])) &&
      !IsComplex(LaneOf(call->compute_dtype)))
    throw plugin::NotImplemented();
  return result;
}

void MakeSpace(const ReduceCall& call, bool keeps_order, bool elementwise, Space* space) {
  const MicaTensor* self = call.inputs[0];
  const int ndim = self->dl.ndim;
  int64_t kept_sizes[kMaxDims], reduced_sizes[kMaxDims];
  MICA_PLUGIN_CHECK(ndim <= kMaxDims, MICA_ERROR_NOT_IMPLEMENTED,
                    "The CPU backend takes tensors of at most 24 dimensions; this one has more.");
  MarkDims(call, space);
  space->num_inputs = call.num_inputs;
  int kept = 0, reduced = 0;
  for (int d = 0; d < ndim; ++d) {
    (space->reduced[d] ? reduced_sizes[reduced++] : kept_sizes[kept++]) = self->dl.shape[d];
  }
  space->outer.SetSizes(kept_sizes, kept);
  space->inner.SetSizes(reduced_sizes, reduced);
  for (int k = 0; k < call.num_inputs + call.num_outputs; ++k) {
    const bool is_output = k >= call.num_inputs;
    const MicaTensor* tensor = is_output ? call.outputs[k - call.num_inputs] : call.inputs[k];
    int64_t strides[kMaxDims], kept_strides[kMaxDims], reduced_strides[kMaxDims];
    Strides(tensor, *space, ndim, is_output && !elementwise, strides);
    kept = reduced = 0;
    for (int d = 0; d < ndim; ++d)
      (space->reduced[d] ? reduced_strides[reduced++] : kept_strides[kept++]) = strides[d];
    const int64_t size = tensor->dl.dtype.bits / 8;
    space->outer.Add(static_cast<char*>(tensor->dl.data), size, kept_strides);
    // A reduction's output takes no part in the inner space.
    if (!is_output || elementwise)
      space->inner.Add(static_cast<char*>(tensor->dl.data), size, reduced_strides);
  }
  space->outer.Normalize();
  space->inner.Normalize(!keeps_order);
}

}  // namespace mica::cpu
