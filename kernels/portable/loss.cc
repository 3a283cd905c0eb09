// Losses of class indices: the negative log likelihood with its gradient, and the margins between
// classes that are targets and those that are none.
//
// Of the likelihood `self` is [classes] or [batch, classes]; other ranks are brought to these by
// composites. Rows whose class is `ignore_index` count for nothing.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

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

namespace {

// A row of classes: `targets` lists some of them, up to the first -1.
class MarginRow {
 public:
  MarginRow(const double* x, const int64_t* targets, int64_t classes)
      : x_(x), targets_(targets), classes_(classes) {
    while (count_ < classes && targets[count_] >= 0) ++count_;
  }
  void Mark(double* marks) const {
    for (int64_t k = 0; k < count_; ++k) marks[targets_[k]] = 1;
  }
  // The mean over all pairs of a target and a class that is none of max(0, 1 - x[target] + x[class]), and
  // its derivative by each class. The classes below a target's reach follow each other in falling order, so
  // that a search and a running sum stand for a loop; NaN is below any.
  double Loss(const double* marks, double* slopes, Patience* patience) const {
    std::vector<std::pair<double, int64_t>> others;
    for (int64_t c = 0; c < classes_; ++c)
      if (marks[c] == 0 && !std::isnan(x_[c])) others.emplace_back(x_[c], c);
    std::sort(others.begin(), others.end(), std::greater<>());
    patience->Spend(16 * classes_);
    std::vector<long double> sums = {0};
    for (const auto& [x, c] : others) sums.push_back(sums.back() + x);
    std::vector<int64_t> reaching(others.size() + 1, 0);  // targets that reach so many of the others
    long double loss = 0;
    for (int64_t k = 0; k < count_; ++k) {
      const double least = 1 - x_[targets_[k]];
      const auto end = std::partition_point(others.begin(), others.end(),
                                            [least](const auto& other) { return least + other.first > 0; });
      const int64_t inside = end - others.begin();
      ++reaching[static_cast<size_t>(inside)];
      slopes[targets_[k]] -= static_cast<double>(inside);
      if (inside > 0) loss += sums[static_cast<size_t>(inside)] + static_cast<long double>(inside) * least;
    }
    int64_t targets = 0;
    for (size_t k = others.size(); k > 0; --k)
      slopes[others[k - 1].second] += static_cast<double>(targets += reaching[k]);
    for (int64_t c = 0; c < classes_; ++c) slopes[c] /= static_cast<double>(classes_);
    return static_cast<double>(loss) / static_cast<double>(classes_);
  }

 private:
  const double* x_;
  const int64_t* targets_;
  int64_t classes_, count_ = 0;
};

}  // namespace

void _multilabel_margin(const Tensor& self, const Tensor& target, const Tensor& loss, const Tensor& slope,
                        const Tensor& is_target) {
  const int64_t classes = self.sizes()[self.ndim() - 1];
  const std::vector<double> x = ToLanes<double>(self);
  const std::vector<int64_t> targets = ToLanes<int64_t>(target);
  for (size_t i = 0; i < targets.size(); ++i)
    MICA_CHECK(targets[i] >= -1 && targets[i] < classes, "Argument `target` is out of range: element (", i,
               ") is (", targets[i], "); expected one of the (", classes,
               ") classes, or -1 behind the last.");
  std::vector<double> losses, slopes(x.size(), 0.0), marks(x.size(), 0.0);
  Patience patience;
  for (int64_t at = 0; at < self.numel(); at += classes) {
    const MarginRow row(x.data() + at, targets.data() + at, classes);
    row.Mark(marks.data() + at);
    losses.push_back(row.Loss(marks.data() + at, slopes.data() + at, &patience));
  }
  FromLanes(losses, loss);
  FromLanes(slopes, slope);
  FromLanes(marks, is_target);
}

}  // namespace mica::portable
