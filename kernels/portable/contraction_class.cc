// The class kernel of contractions: any equation over two tensors, by plain loops
// in wide lanes. Operators that scale and add (addmm) have kernels of their own.
#include <array>
#include <string_view>

#include "dispatcher/plugins/status.h"
#include "dispatcher/tables/operator_spec.h"
#include "kernels/portable/lanes.h"

namespace mica::portable {
namespace {

// Sizes and row-major strides of one operand, by label.
struct Operand {
  std::array<int64_t, 128> stride{};
  Operand(std::string_view labels, IntSpan sizes, std::array<int64_t, 128>* size_of) {
    int64_t step = 1;
    for (size_t d = labels.size(); d-- > 0;) {
      const auto label = static_cast<size_t>(labels[d]);
      stride[label] += step;
      step *= sizes[static_cast<int64_t>(d)];
      if (size_of) (*size_of)[label] = sizes[static_cast<int64_t>(d)];
    }
  }
};

// Calls f(offset in a, offset in b) for all values of the labels.
template <typename F>
void Walk(std::string_view labels, const std::array<int64_t, 128>& sizes, const Operand& a, const Operand& b,
          F&& f) {
  int64_t total = 1;
  for (const char c : labels) total *= sizes[static_cast<size_t>(c)];
  Dims at(labels.size(), 0);
  int64_t in_a = 0, in_b = 0;
  for (int64_t i = 0; i < total; ++i) {
    f(in_a, in_b);
    for (size_t d = labels.size(); d-- > 0;) {
      const auto label = static_cast<size_t>(labels[d]);
      in_a += a.stride[label];
      in_b += b.stride[label];
      if (++at[d] < sizes[label]) break;
      in_a -= at[d] * a.stride[label];
      in_b -= at[d] * b.stride[label];
      at[d] = 0;
    }
  }
}

template <typename T>
void Contract(const MicaProgram& p, const MicaValue* args, const Tensor& out) {
  const std::string_view equation = p.equation;
  const size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string_view left = equation.substr(0, comma),
                         right = equation.substr(comma + 1, arrow - comma - 1),
                         result = equation.substr(arrow + 2);
  const Tensor& x = Tensor::Ref(args[p.input_args[0]].u.tensor);
  const Tensor& y = Tensor::Ref(args[p.input_args[1]].u.tensor);
  std::array<int64_t, 128> sizes{};
  const Operand a(left, x.sizes(), &sizes), b(right, y.sizes(), &sizes);
  std::string summed;
  for (const char c : left)
    if (result.find(c) == std::string_view::npos) summed += c;
  const std::vector<T> in_a = ToLanes<T>(x), in_b = ToLanes<T>(y);
  std::vector<T> values(static_cast<size_t>(out.numel()));
  size_t place = 0;
  Walk(result, sizes, a, b, [&](int64_t i, int64_t j) {
    T sum(0);
    Walk(summed, sizes, a, b, [&](int64_t k, int64_t l) {
      sum += in_a[static_cast<size_t>(i + k)] * in_b[static_cast<size_t>(j + l)];
    });
    values[place++] = sum;
  });
  FromLanes(values, out);
}

MicaStatus RunContraction(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                          int64_t) {
  return CatchAll([&] {
    const Tensor& out = Tensor::Ref(outputs[0]);
    VisitLane(LaneOf(out.dtype()), [&]<typename T>() { Contract<T>(*call->program, args, out); });
  });
}

[[maybe_unused]] const bool kRegistered = [] {
  SetPortableClass(OpClass::kContraction, &RunContraction);
  return true;
}();

}  // namespace
}  // namespace mica::portable
