// Meta functions of joining, reordering and padding.
#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"

namespace mica::meta {
namespace {

DType CommonDType(TensorSpan tensors) {
  ResultType type;
  for (const Tensor& t : tensors) type.Add(t);
  return type.dtype();
}

// Channels last where all tensors are.
Dims JoinedStrides(TensorSpan tensors, IntSpan sizes) {
  Dims strides;
  for (const Tensor& t : tensors) {
    if (t.ndim() != sizes.size()) continue;
    strides = StridesInFormatOf(t, sizes);
    if (strides.empty()) break;
  }
  return strides;
}

// An empty vector goes with any shape, as in torch.
bool IsLegacyEmpty(const Tensor& t) { return t.ndim() == 1 && t.sizes()[0] == 0; }

}  // namespace

void cat(MetaResult& result, TensorSpan tensors, int64_t dim) {
  MICA_CHECK_VALUE(!tensors.empty(),
                   "torch.cat(): expected a non-empty list of Tensors; `tensors` is empty.");
  const Tensor* first = nullptr;
  for (const Tensor& t : tensors) {
    MICA_CHECK(t.ndim() > 0,
               "zero-dimensional tensor cannot be concatenated; expected at least one dimension (stack joins "
               "0-d tensors).");
    if (!first && !IsLegacyEmpty(t)) first = &t;
  }
  if (!first) first = &tensors[0];
  // Where all are empty vectors, `dim` may be one of the tensors that they stand for.
  dim = IsLegacyEmpty(*first) ? 0 : WrapDim(dim, first->ndim());
  Dims sizes = ToDims(first->sizes());
  sizes[static_cast<size_t>(dim)] = 0;
  for (int64_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    CheckSameDevice(*first, t, "tensors[0]", "another of `tensors`");
    if (IsLegacyEmpty(t) && first->ndim() != 1) continue;
    MICA_CHECK(t.ndim() == first->ndim(), "Tensors must have same number of dimensions: got ", first->ndim(),
               " and ", t.ndim(), ", the latter in tensor (", i, ").");
    for (int64_t d = 0; d < t.ndim(); ++d) {
      if (d == dim) continue;
      MICA_CHECK(t.sizes()[d] == first->sizes()[d], "Sizes of tensors must match except in dimension ", dim,
                 ". Expected size ", first->sizes()[d], " but got size ", t.sizes()[d], " for tensor number ",
                 i, " in the list, in dimension (", d, ").");
    }
    sizes[static_cast<size_t>(dim)] += t.sizes()[dim];
  }
  AddOutput(result, sizes, CommonDType(tensors), first->device()).strides = JoinedStrides(tensors, sizes);
}

void stack(MetaResult& result, TensorSpan tensors, int64_t dim) {
  MICA_CHECK(!tensors.empty(), "stack expects a non-empty TensorList; `tensors` is empty.");
  dim = WrapDim(dim, tensors[0].ndim() + 1);
  for (int64_t i = 0; i < tensors.size(); ++i) {
    CheckSameDevice(tensors[0], tensors[i], "tensors[0]", "another of `tensors`");
    MICA_CHECK(tensors[i].sizes() == tensors[0].sizes(),
               "stack expects each tensor to be equal size, but got ", ShapeText(tensors[0].sizes()),
               " at entry 0 and ", ShapeText(tensors[i].sizes()), " at entry ", i, ".");
  }
  Dims sizes = ToDims(tensors[0].sizes());
  Dims strides;
  if (dim < tensors[0].ndim()) {  // what cat gives, the joined dimension split
    const int64_t size = sizes[static_cast<size_t>(dim)];
    sizes[static_cast<size_t>(dim)] = size * tensors.size();
    strides = JoinedStrides(tensors, sizes);
    sizes[static_cast<size_t>(dim)] = size;
    if (!strides.empty()) strides.insert(strides.begin() + dim, strides[static_cast<size_t>(dim)] * size);
  }
  sizes.insert(sizes.begin() + dim, tensors.size());
  AddOutput(result, sizes, CommonDType(tensors), tensors[0].device()).strides = strides;
}

void block_diag(MetaResult& result, TensorSpan tensors) {
  MICA_CHECK(!tensors.empty(), "List `tensors` is empty; expected at least one matrix.");
  int64_t rows = 0, columns = 0;
  for (int64_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    MICA_CHECK(t.ndim() <= 2, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input ", i,
               " has ", t.ndim(), " dimensions.");
    rows += t.ndim() == 2 ? t.sizes()[0] : 1;
    columns += t.ndim() == 0 ? 1 : t.sizes()[t.ndim() - 1];
  }
  AddOutput(result, {rows, columns}, CommonDType(tensors), tensors[0].device());
}

void flip(MetaResult& result, const Tensor& self, IntSpan dims) {
  WrapDims(dims, self.ndim());
  AddLike(result, self);
}

void roll(MetaResult& result, const Tensor& self, IntSpan shifts, IntSpan dims) {
  MICA_CHECK(!shifts.empty(), "`shifts` required: the list is empty; expected at least one shift.");
  MICA_CHECK(dims.empty() ? shifts.size() == 1 : dims.size() == shifts.size(),
             "shifts and dimensions must align. shifts: ", shifts.size(),
             ", dims: ", dims.empty() ? 0 : dims.size(), ".");
  for (const int64_t d : dims) WrapDim(d, self.ndim(), false);
  AddOutput(result, self.sizes(), self.dtype(), self.device()).strides =
      StridesInFormatOf(self, self.sizes());
}

namespace {
void Triangle(MetaResult& result, const Tensor& self) {
  MICA_CHECK(self.ndim() >= 2, "The input tensor must have at least 2 dimensions, but `self` has ",
             self.ndim(), ".");
  AddOutput(result, self.sizes(), self.dtype(), self.device());
}
}  // namespace
void tril(MetaResult& result, const Tensor& self, int64_t) { Triangle(result, self); }
void triu(MetaResult& result, const Tensor& self, int64_t) { Triangle(result, self); }

void constant_pad_nd(MetaResult& result, const Tensor& self, IntSpan pad, const Scalar& value) {
  MICA_CHECK(pad.size() % 2 == 0,
             "Padding length must be divisible by 2, a pair for each padded dimension; it is (", pad.size(),
             ").");
  MICA_CHECK(pad.size() / 2 <= self.ndim(), "Number of padding pairs (", pad.size() / 2,
             ") exceeds the number of dimensions (", self.ndim(), ").");
  CheckInRange(value, self.dtype(), "value");
  Dims sizes = ToDims(self.sizes());
  for (int64_t i = 0; i < pad.size() / 2; ++i) {
    int64_t& size = sizes[static_cast<size_t>(self.ndim() - 1 - i)];
    MICA_CHECK(!__builtin_add_overflow(size, pad[2 * i], &size) &&
                   !__builtin_add_overflow(size, pad[2 * i + 1], &size),
               "Padding (", pad[2 * i], ", ", pad[2 * i + 1], ") of dimension (", self.ndim() - 1 - i,
               ") leads beyond the range of int64.");
    MICA_CHECK(size >= 0, "Padding (", pad[2 * i], ", ", pad[2 * i + 1], ") of dimension (",
               self.ndim() - 1 - i, ") leaves a negative size (", size, ").");
  }
  AddOutput(result, sizes, self.dtype(), self.device()).strides = StridesInFormatOf(self, sizes);
}
void mode_pad(MetaResult& result, const Tensor& self, IntSpan pad) {
  constant_pad_nd(result, self, pad, Scalar(0));
}
void circular_pad(MetaResult& result, const Tensor& self, IntSpan pad) {
  mode_pad(result, self, pad);
  result.outputs[0].strides.clear();  // contiguous, whatever the format of `self`
}

void unfold_backward(MetaResult& result, const Tensor& grad_in, IntSpan input_sizes, int64_t dim,
                     int64_t size, int64_t step) {
  const int64_t ndim = input_sizes.size(), d = WrapDim(dim, ndim), length = ndim == 0 ? 1 : input_sizes[d];
  MICA_CHECK(size >= 0 && size <= length && step > 0, "Window size (", size, ") or step (", step,
             ") is out of range for a dimension of size (", length, ").");
  Dims windows = ToDims(input_sizes);
  if (ndim > 0) windows[static_cast<size_t>(d)] = (length - size) / step + 1;
  windows.push_back(size);
  MICA_CHECK(grad_in.sizes() == IntSpan(windows), "Shape ", ShapeText(grad_in.sizes()),
             " of `grad_in` is not the shape ", ShapeText(windows), " of the windows.");
  AddOutput(result, input_sizes, grad_in.dtype(), grad_in.device());
}

}  // namespace mica::meta
