// Negative log likelihood of class indices, and its gradient.
//
// `self` is [classes] or [batch, classes, ...], and has a row for each element of `target`.
// Rows whose class is `ignore_index` count for nothing.
#include "mica/kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"

namespace mica::portable {
namespace {

constexpr int64_t kNone = 0, kMean = 1;

// The class and weight of each row; class -1 where the row is ignored.
struct Targets {
  int64_t classes;
  bool each;  // a loss for each row is asked for
  std::vector<int64_t> class_of;
  std::vector<double> weight_of;

  Targets(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
          int64_t ignore_index)
      : classes(self.sizes()[self.ndim() == 1 ? 0 : 1]),
        each(reduction == kNone && self.ndim() >= 2),
        class_of(ToLanes<int64_t>(target)),
        weight_of(class_of.size(), 0.0) {
    const std::vector<double> weights = weight.defined() ? ToLanes<double>(weight) : std::vector<double>();
    for (size_t i = 0; i < class_of.size(); ++i) {
      int64_t& c = class_of[i];
      if (c == ignore_index) {
        c = -1;
        continue;
      }
      MICA_CHECK_INDEX(c >= 0 && c < classes, "Class (", c, ") of element (", i,
                       ") of `target` is out of bounds for the number of classes (", classes, ").");
      weight_of[i] = weights.empty() ? 1.0 : weights[static_cast<size_t>(c)];
    }
  }

  // The byte offsets into t, which has the shape of self, of the classes of the rows that count.
  std::vector<int64_t> Places(const Tensor& t) const {
    Dims sizes, strides;
    for (int64_t d = 0; d < t.ndim(); ++d) {
      if (d == (t.ndim() == 1 ? 0 : 1)) continue;
      sizes.push_back(t.sizes()[d]);
      strides.push_back(t.strides()[d]);
    }
    std::vector<int64_t> rows(class_of.size());
    if (!rows.empty())
      Offsets(sizes, strides, t.itemsize()).Next(rows.data(), static_cast<int64_t>(rows.size()));
    const int64_t across = t.strides()[t.ndim() == 1 ? 0 : 1] * t.itemsize();
    size_t count = 0;
    for (size_t i = 0; i < rows.size(); ++i)
      if (class_of[i] >= 0) rows[count++] = rows[i] + class_of[i] * across;
    rows.resize(count);
    return rows;
  }
  // Calls f(row, weight) for the rows that count, in the order of Places().
  template <typename F>
  void ForEach(F&& f) const {
    for (size_t i = 0; i < class_of.size(); ++i)
      if (class_of[i] >= 0) f(i, weight_of[i]);
  }
};

}  // namespace

void nll_loss_forward(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                      int64_t ignore_index, const Tensor& output, const Tensor& total_weight) {
  const Targets targets(self, target, weight, reduction, ignore_index);
  const std::vector<int64_t> places = targets.Places(self);
  std::vector<double> chosen(places.size()), losses(targets.class_of.size(), 0.0);
  LoadLanes(Lane::kF64, self.dtype(), self.data_as<char>(), places.data(),
            static_cast<int64_t>(places.size()), chosen.data());
  double total = 0, sum = 0;
  size_t next = 0;
  targets.ForEach([&](size_t row, double w) {
    losses[row] = -chosen[next++] * w;
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
  const std::vector<int64_t> places = targets.Places(out);
  std::vector<double> shares;
  shares.reserve(places.size());
  targets.ForEach([&](size_t row, double w) {
    const double g = grad[targets.each ? row : 0];
    shares.push_back(-w * (reduction == kMean ? g / total : g));
  });
  StoreLanes(Lane::kF64, out.dtype(), shares.data(), out.data_as<char>(), places.data(),
             static_cast<int64_t>(places.size()));
}

}  // namespace mica::portable
