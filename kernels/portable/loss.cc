// Negative log likelihood of class indices, and its gradient.
//
// `self` is [classes] or [batch, classes]; other ranks are brought to these by
// composites. Rows whose class is `ignore_index` count for nothing.
#include "kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"

namespace mica::portable {
namespace {

constexpr int64_t kNone = 0, kMean = 1;

// The class and weight of each row; class -1 where the row is ignored.
struct Targets {
  int64_t rows, classes;
  bool each;  // a loss for each row is asked for
  std::vector<int64_t> class_of;
  std::vector<double> weight_of;

  Targets(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
          int64_t ignore_index)
      : rows(self.ndim() == 1 ? 1 : self.sizes()[0]),
        classes(self.sizes()[self.ndim() - 1]),
        each(reduction == kNone && self.ndim() == 2),
        class_of(ToLanes<int64_t>(target)),
        weight_of(class_of.size(), 0.0) {
    const std::vector<double> weights = weight.defined() ? ToLanes<double>(weight) : std::vector<double>();
    for (size_t i = 0; i < class_of.size(); ++i) {
      int64_t& c = class_of[i];
      if (c == ignore_index) {
        c = -1;
        continue;
      }
      MICA_CHECK_INDEX(c >= 0 && c < classes, "Target ", c, " is out of bounds: element (", i,
                       ") of `target` is no class of (", classes, ").");
      weight_of[i] = weights.empty() ? 1.0 : weights[static_cast<size_t>(c)];
    }
  }
  // Calls f(row, byte offset into t of the row's class, weight) for the rows that count;
  // t has the shape of self.
  template <typename F>
  void ForEach(const Tensor& t, F&& f) const {
    const int64_t across = t.strides()[t.ndim() - 1], down = t.ndim() == 1 ? 0 : t.strides()[0];
    for (size_t i = 0; i < class_of.size(); ++i)
      if (class_of[i] >= 0)
        f(i, (static_cast<int64_t>(i) * down + class_of[i] * across) * t.itemsize(), weight_of[i]);
  }
};

double ReadAt(const Tensor& t, int64_t offset) {
  double value;
  LoadLanes(Lane::kF64, t.dtype(), t.data_as<char>(), &offset, 1, &value);
  return value;
}
void WriteAt(const Tensor& t, int64_t offset, double value) {
  StoreLanes(Lane::kF64, t.dtype(), &value, t.data_as<char>(), &offset, 1);
}

}  // namespace

void nll_loss_forward(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                      int64_t ignore_index, const Tensor& output, const Tensor& total_weight) {
  const Targets targets(self, target, weight, reduction, ignore_index);
  std::vector<double> losses(static_cast<size_t>(targets.rows), 0.0);
  double total = 0, sum = 0;
  targets.ForEach(self, [&](size_t row, int64_t place, double w) {
    losses[row] = -ReadAt(self, place) * w;
    sum += losses[row];
    total += w;
  });
  if (targets.each) {
    FromLanes(losses, output);
    total = 0;
  } else {
    FromLanes(std::vector<double>{reduction == kMean ? sum / total : sum}, output);
  }
  FromLanes(std::vector<double>{total}, total_weight);
}

void nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                       const Tensor& weight, int64_t reduction, int64_t ignore_index,
                       const Tensor& total_weight, const Tensor& out) {
  const Targets targets(self, target, weight, reduction, ignore_index);
  const std::vector<double> grad = ToLanes<double>(grad_output);
  const double total = ToLanes<double>(total_weight)[0];
  VisitSize(out.itemsize(), [&]<typename T>() {
    if (out.is_contiguous())
      return void(std::memset(out.data(), 0, static_cast<size_t>(out.numel()) * sizeof(T)));
    for (const int64_t o : AllOffsets(out)) std::memset(out.data_as<char>() + o, 0, sizeof(T));
  });
  targets.ForEach(out, [&](size_t row, int64_t place, double w) {
    const double g = grad[targets.each ? row : 0];
    WriteAt(out, place, -w * (reduction == kMean ? g / total : g));
  });
}

}  // namespace mica::portable
