#include "dispatcher/calls/given_output.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "dispatcher/plugins/host.h"
#include "tensor/dtype.h"
#include "tensor/promote.h"
#include "tensor/shape.h"

namespace mica {
namespace {

// "any" of "mica::any.out".
std::string BareName(const OperatorSpec& spec) {
  std::string_view name = spec.name;
  if (const size_t at = name.find("::"); at != std::string_view::npos) name.remove_prefix(at + 2);
  return std::string(name.substr(0, name.find('.')));
}

}  // namespace

void CheckResizable(const Tensor& out, IntSpan sizes) {
  if (!out.is_view() || out.numel() == 0) return;
  if (out.numel() * out.itemsize() == out.impl()->storage->nbytes()) return;  // nothing else lies there
  MICA_CHECK(out.is_contiguous() && CheckedNumel(sizes) <= out.numel(), "`out` with shape ",
             ShapeText(out.sizes()), " is a view of a larger tensor and the result has the shape ",
             ShapeText(sizes),
             "; resizing it would write elements outside of the view. Give a view of the right shape or an "
             "empty tensor.");
}

std::string CannotHold(DType result, DType out, const char* name) {
  const char *from = ScalarTypeName(result), *to = ScalarTypeName(out);
  return absl::StrCat("The result type ", from, " can't be cast to the desired output type ", to,
                      ": Expected out tensor to have dtype ", absl::AsciiStrToLower(from), ", but got ",
                      absl::AsciiStrToLower(to), " instead (Expected ", name, " to be safely castable from ",
                      from, " dtype, but got ", name, " with dtype ", to, ")");
}

void WarnOfResize(const Tensor& out, IntSpan sizes) {
  if (out.numel() == 0) return;
  HostWarn(absl::StrCat(
      "An output with one or more elements was resized since it had shape ", ShapeText(out.sizes()),
      ", which does not match the required output shape ", ShapeText(sizes),
      ". The out tensor will be resized. This behavior is deprecated, and in a future PyTorch release "
      "outputs will not be resized unless they have zero elements; give an empty tensor, or one of the "
      "right shape."));
}

void FitOutput(const OperatorSpec& spec, const Tensor& out, const OutputSpec& want, const char* name,
               bool keeps_shape) {
  MICA_CHECK(CanCast(want.dtype, out.dtype()), CannotHold(want.dtype, out.dtype()), ": the result of ",
             spec.name, " has the dtype (", Name(want.dtype), "), which cannot be cast to the dtype (",
             Name(out.dtype()), ") of `", name,
             spec.form == OpForm::kInplace ? "`; call the operator that is not in-place."
                                           : "`; give one of a dtype that can hold it.");
  MICA_CHECK(spec.op_class != OpClass::kReduction || spec.dtype_rule != DTypeRule::kBool ||
                 out.dtype() == DType::kBool || out.dtype() == DType::kU8,
             BareName(spec), " only supports bool tensor for result, got: ", ScalarTypeName(out.dtype()),
             "; the dtype of `", name, "` is (", Name(out.dtype()), ").");
  MICA_CHECK(spec.form != OpForm::kOut || (spec.flags & kStructured) || out.dtype() == want.dtype,
             BareName(spec), ": Expected out tensor to have scalar type ", ScalarTypeName(want.dtype),
             " but got scalar type ", ScalarTypeName(out.dtype()), "; the dtype of `", name, "` is (",
             Name(out.dtype()), ").");
  MICA_CHECK(spec.form != OpForm::kOut || spec.op_class != OpClass::kPointwise ||
                 spec.dtype_rule != DTypeRule::kSame || out.dtype() == want.dtype,
             "Found dtype ", ScalarTypeName(out.dtype()), " but expected ", ScalarTypeName(want.dtype),
             ": the dtype of `", name, "` is (", Name(out.dtype()), "), and that of the result of ",
             spec.name, " is the dtype of its input, (", Name(want.dtype), ").");
  MICA_CHECK(out.device() == want.device, "Expected all tensors to be on the same device, but `", name,
             "` is on the device (", out.device().ToString(), "), and the result of ", spec.name, " on (",
             want.device.ToString(), ").");
  MICA_CHECK(spec.form != OpForm::kInplace || !IsComplex(out.dtype()) || !IsFloating(want.dtype),
             "The result of ", spec.name, " is real, with the dtype (", Name(want.dtype),
             "), and `self`, which is written in place, is complex; call the operator that is not in-place.");
  if (keeps_shape || out.sizes() == IntSpan(want.sizes)) return;
  MICA_CHECK(spec.form == OpForm::kOut, "The output with shape ", ShapeText(out.sizes()),
             " doesn't match the broadcast shape ", ShapeText(want.sizes), ", which the result of ",
             spec.name, " has.");
  CheckNoInternalOverlap(out, name);
  CheckResizable(out, want.sizes);
  WarnOfResize(out, want.sizes);
  ResizeTensor(out, want.sizes, want.strides.empty() ? ContiguousStrides(want.sizes) : want.strides, false);
}

void RefuseRecordedOut(const OperatorSpec& spec) {
  MICA_THROW(kRuntime, spec.name,
             ": functions with out=... arguments don't support automatic differentiation, but one of the "
             "arguments requires grad. Call it without out=, or inside no_grad.");
}

void RefuseRecordedResize(const OperatorSpec& spec) {
  MICA_THROW(kRuntime, "cannot resize variables that require grad: ", spec.name,
             " was called on one; detach it, or work inside no_grad.");
}

}  // namespace mica
