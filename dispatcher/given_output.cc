#include "mica/dispatcher/given_output.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "mica/dispatcher/host.h"
#include "mica/tensor/scalar_type_name.h"
#include "mica/tensor/shape.h"

namespace mica {

void CheckResizable(const Tensor& out, IntSpan sizes) {
  if (!out.is_view() || out.numel() == 0) return;
  if (out.numel() * out.itemsize() == out.impl()->storage->nbytes()) return;  // nothing else lies there
  int64_t count = 1;
  for (const int64_t s : sizes) count *= s;
  MICA_CHECK(out.is_contiguous() && count <= out.numel(), "`out` with shape ", ShapeText(out.sizes()),
             " is a view of a larger tensor and the result has the shape ", ShapeText(sizes),
             "; resizing it would write elements outside of the view. Give a view of the right shape or an "
             "empty tensor.");
}

std::string CannotHold(DType result, DType out) {
  const char *from = ScalarTypeName(result), *to = ScalarTypeName(out);
  return absl::StrCat("The result type ", from, " can't be cast to the desired output type ", to,
                      ": Expected out tensor to have dtype ", absl::AsciiStrToLower(from), ", but got ",
                      absl::AsciiStrToLower(to), " instead (Expected result to be safely castable from ",
                      from, " dtype, but got result with dtype ", to, ")");
}

void WarnOfResize(const Tensor& out, IntSpan sizes) {
  if (out.numel() == 0) return;
  HostWarn(absl::StrCat("An output with one or more elements was resized since it had shape ",
                        ShapeText(out.sizes()), ", which does not match the required output shape ",
                        ShapeText(sizes), "; give an empty tensor or the right shape."));
}

}  // namespace mica
