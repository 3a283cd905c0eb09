// Connectionist temporal classification (Graves et al., 2006), in logarithms.
//
// The targets of a sample, with a blank before, between and after them, are states;
// alpha(t, s) is the log of the probability of all alignments of the first t + 1 steps
// that end in state s, beta(t, s) of those of the steps from t on that begin in s. As
// torch, the gradient is that of probabilities which a softmax has normalised.
#include <cmath>
#include <limits>

#include "kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"

namespace mica::portable {
namespace {

template <typename T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b) + exp(c))
template <typename T>
T LogSum(T a, T b, T c = kNever<T>) {
  const T most = std::max({a, b, c});
  if (most == kNever<T>) return most;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

// A tensor's elements; float32 as float, in which torch computes too.
template <typename T>
std::vector<T> Numbers(const Tensor& t) {
  const std::vector<double> wide = ToLanes<double>(t);
  return std::vector<T>(wide.begin(), wide.end());
}

// One sample's states and the log probabilities of its steps.
template <typename T>
struct Alignment {
  std::vector<int64_t> states;
  const T* log_probs;
  int64_t steps, step, blank;

  T At(int64_t t, size_t s) const { return log_probs[t * step + states[s]]; }
  // Whether state s may follow state s - 2: another symbol, past the blank between.
  bool Skips(size_t s) const { return s >= 2 && states[s] != blank && states[s] != states[s - 2]; }
  size_t count() const { return states.size(); }
};

template <typename T>
class Batch {
 public:
  Batch(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths,
        int64_t blank)
      : probabilities_(Numbers<T>(log_probs)),
        targets_(ToLanes<int64_t>(targets)),
        samples_(log_probs.sizes()[1]),
        classes_(log_probs.sizes()[2]),
        rows_(targets.ndim() == 2 ? targets.sizes()[1] : 0),
        input_lengths_(input_lengths),
        target_lengths_(target_lengths),
        blank_(blank) {}

  Alignment<T> Sample(int64_t b) const {
    int64_t first = rows_ * b;
    if (rows_ == 0)
      for (int64_t k = 0; k < b; ++k) first += target_lengths_[k];
    Alignment a{
        {blank_}, probabilities_.data() + b * classes_, input_lengths_[b], samples_ * classes_, blank_};
    for (int64_t k = 0; k < target_lengths_[b]; ++k) {
      const int64_t symbol = targets_[static_cast<size_t>(first + k)];
      MICA_CHECK(symbol >= 0 && symbol < classes_, "Target (", symbol, ") of sample (", b,
                 ") is out of range for (", classes_, ") classes.");
      a.states.insert(a.states.end(), {symbol, blank_});
    }
    return a;
  }
  int64_t samples() const { return samples_; }

 private:
  std::vector<T> probabilities_;
  std::vector<int64_t> targets_;
  int64_t samples_, classes_, rows_;
  IntSpan input_lengths_, target_lengths_;
  int64_t blank_;
};

// alpha in rows of `width`, and the log likelihood.
template <typename T>
T Forward(const Alignment<T>& a, T* alpha, int64_t width) {
  const size_t n = a.count();
  if (a.steps == 0) return n == 1 ? T(0) : kNever<T>;
  for (size_t s = 0; s < std::min<size_t>(n, 2); ++s) alpha[s] = a.At(0, s);
  Patience patience;
  for (int64_t t = 1; t < a.steps; ++t) {
    const T* before = alpha + (t - 1) * width;
    T* now = alpha + t * width;
    patience.Spend(static_cast<int64_t>(16 * n));
    for (size_t s = 0; s < n; ++s)
      now[s] = a.At(t, s) +
               LogSum(before[s], s >= 1 ? before[s - 1] : kNever<T>, a.Skips(s) ? before[s - 2] : kNever<T>);
  }
  const T* last = alpha + (a.steps - 1) * width;
  return n == 1 ? last[0] : LogSum(last[n - 1], last[n - 2]);
}

// One step of beta, from the step after it.
template <typename T>
std::vector<T> StepBack(const Alignment<T>& a, int64_t t, const std::vector<T>& after) {
  const size_t n = a.count();
  std::vector<T> now(n);
  for (size_t s = 0; s < n; ++s) {
    if (t + 1 == a.steps)
      now[s] = s + 2 >= n ? a.At(t, s) : kNever<T>;
    else
      now[s] = a.At(t, s) + LogSum(after[s], s + 1 < n ? after[s + 1] : kNever<T>,
                                   s + 2 < n && a.Skips(s + 2) ? after[s + 2] : kNever<T>);
  }
  return now;
}

// d loss / d log_probs of one sample; `gradient` has the layout of log_probs.
template <typename T>
void Backward(const Alignment<T>& a, const T* alpha, int64_t width, int64_t classes, T loss, T scale,
              T* gradient) {
  std::vector<T> beta, share(static_cast<size_t>(classes));
  Patience patience;
  for (int64_t t = a.steps; t-- > 0;) {
    patience.Spend(static_cast<int64_t>(16 * a.count()) + classes);  // sums of logarithms take long
    beta = StepBack(a, t, beta);
    std::fill(share.begin(), share.end(), kNever<T>);
    for (size_t s = 0; s < a.count(); ++s) {
      T& sum = share[static_cast<size_t>(a.states[s])];
      sum = LogSum(sum, alpha[t * width + static_cast<int64_t>(s)] + beta[s]);
    }
    for (int64_t c = 0; c < classes; ++c) {
      const T p = a.log_probs[t * a.step + c];
      gradient[t * a.step + c] = (std::exp(p) - std::exp(share[static_cast<size_t>(c)] + loss - p)) * scale;
    }
  }
}

template <typename T>
void Give(const std::vector<T>& values, const Tensor& to) {
  FromLanes(std::vector<double>(values.begin(), values.end()), to);
}

// Calls f with a number of the type to compute in.
template <typename F>
void InTypeOf(const Tensor& t, F&& f) {
  t.dtype() == DType::kF32 ? f(float()) : f(double());
}

}  // namespace

void _ctc_loss(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths,
               int64_t blank, bool, const Tensor& out, const Tensor& log_alpha) {
  InTypeOf(log_probs, [&](auto zero) {
    using T = decltype(zero);
    const Batch<T> batch(log_probs, targets, input_lengths, target_lengths, blank);
    const int64_t width = log_alpha.sizes()[2], each = log_alpha.sizes()[1] * width;
    std::vector<T> loss, alpha(static_cast<size_t>(log_alpha.numel()), kNever<T>);
    for (int64_t b = 0; b < batch.samples(); ++b)
      loss.push_back(-Forward(batch.Sample(b), alpha.data() + b * each, width));
    Give(loss, out);
    Give(alpha, log_alpha);
  });
}

void _ctc_loss_backward(const Tensor& grad_output, const Tensor& log_probs, const Tensor& targets,
                        IntSpan input_lengths, IntSpan target_lengths, const Tensor& neg_log_likelihood,
                        const Tensor& log_alpha, int64_t blank, bool zero_infinity, const Tensor& out) {
  InTypeOf(log_probs, [&](auto zero) {
    using T = decltype(zero);
    const Batch<T> batch(log_probs, targets, input_lengths, target_lengths, blank);
    const int64_t width = log_alpha.sizes()[2], each = log_alpha.sizes()[1] * width, classes = out.sizes()[2];
    const std::vector<T> alpha = Numbers<T>(log_alpha), loss = Numbers<T>(neg_log_likelihood),
                         scale = Numbers<T>(grad_output);
    std::vector<T> gradient(static_cast<size_t>(out.numel()), T(0));
    for (int64_t b = 0; b < batch.samples(); ++b) {
      const auto at = static_cast<size_t>(b);
      if (zero_infinity && std::isinf(loss[at])) continue;
      Backward(batch.Sample(b), alpha.data() + b * each, width, classes, loss[at], scale[at],
               gradient.data() + b * classes);
    }
    Give(gradient, out);
  });
}

}  // namespace mica::portable
