// einsum: the equation is parsed, every operand gets all labels as dimensions
// (size 1 where it has none), and operands are multiplied and summed from left to
// right, each pair by one bmm, or by mul where nothing is summed. So the results lie
// in memory as torch's do.
#include <algorithm>
#include <array>
#include <string>

#include "mica/kernels/composite_declarations.h"
#include "mica/ops/bmm.h"
#include "mica/ops/diagonal.h"
#include "mica/ops/movedim.h"
#include "mica/ops/mul.h"
#include "mica/ops/permute.h"
#include "mica/ops/reshape.h"
#include "mica/ops/squeeze.h"
#include "mica/ops/sum.h"
#include "mica/ops/to.h"
#include "tensor/shape.h"

namespace mica::composite {
namespace {

constexpr int kEllipsis = 52;  // labels are 0..51: a-z, A-Z

int LabelOf(char c) {
  if (c >= 'a' && c <= 'z') return c - 'a';
  if (c >= 'A' && c <= 'Z') return 26 + c - 'A';
  return -1;
}

std::string LabelText(int label) {
  if (label == kEllipsis) return "...";
  return std::string(1, static_cast<char>(label < 26 ? 'a' + label : 'A' + label - 26));
}

using Labels = std::vector<int>;

Labels ParseTerm(std::string_view term, std::string_view equation) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (term[i] == '.') {
      const bool is_ellipsis =
          term.substr(i, 3) == "..." && std::find(labels.begin(), labels.end(), kEllipsis) == labels.end();
      MICA_CHECK(is_ellipsis,
                 "einsum(): found '.' for an operand that is not part of any ellipsis, in the equation (",
                 std::string(equation), ").");
      labels.push_back(kEllipsis);
      i += 2;
      continue;
    }
    const int label = LabelOf(term[i]);
    MICA_CHECK(label >= 0, "einsum(): invalid subscript given: the equation (", std::string(equation),
               ") has the character (", std::string(1, term[i]), "), and subscripts must be in [a-zA-Z].");
    labels.push_back(label);
  }
  return labels;
}

struct Equation {
  std::vector<Labels> operands;
  Labels output;
};

Equation ParseEquation(std::string_view text) {
  Equation e;
  const size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  while (true) {
    const size_t comma = left.find(',');
    e.operands.push_back(ParseTerm(left.substr(0, comma), text));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  std::array<int, 53> count{};
  for (const Labels& labels : e.operands)
    for (const int l : labels) ++count[static_cast<size_t>(l)];
  if (arrow != std::string_view::npos) {
    e.output = ParseTerm(text.substr(arrow + 2), text);
    for (const int l : e.output) {
      MICA_CHECK(l == kEllipsis || count[static_cast<size_t>(l)] > 0, "einsum(): output subscript ",
                 LabelText(l), " does not appear in the equation for any input operand: (", std::string(text),
                 ").");
      MICA_CHECK(std::count(e.output.begin(), e.output.end(), l) == 1, "einsum(): output subscript ",
                 LabelText(l), " appears more than once in the output of `equation` (", std::string(text),
                 ").");
    }
    return e;
  }
  // No arrow: `...` first, then the labels that come once, in alphabetical order
  // (capitals first, as torch orders them).
  if (count[kEllipsis] > 0) e.output.push_back(kEllipsis);
  for (const int first : {26, 0})
    for (int l = first; l < first + 26; ++l)
      if (count[static_cast<size_t>(l)] == 1) e.output.push_back(l);
  return e;
}

// Multiplies two operands with all labels as dimensions and sums over `sum`.
Tensor ProductPair(Tensor left, Tensor right, const Dims& sum) {
  if (sum.empty()) return ops::mul(left, right);
  const int64_t n = left.ndim();
  Dims lro, lo, ro, both, lone_left, lone_right;
  for (int64_t d = 0; d < n; ++d) {
    const bool l = left.sizes()[d] != 1, r = right.sizes()[d] != 1;
    if (std::find(sum.begin(), sum.end(), d) != sum.end()) {
      if (l && r)
        both.push_back(d);
      else if (l)
        lone_left.push_back(d);
      else if (r)
        lone_right.push_back(d);
    } else if (l && r) {
      lro.push_back(d);
    } else if (l) {
      lo.push_back(d);
    } else {
      ro.push_back(d);
    }
  }
  if (!lone_left.empty()) left = ops::sum(left, lone_left, true);
  if (!lone_right.empty()) right = ops::sum(right, lone_right, true);
  const bool integers = !IsDifferentiable(left.dtype()) && !IsDifferentiable(right.dtype());
  if (integers && left.dtype() != right.dtype()) {  // a sum of integers is of int64
    left = ops::to(left, DType::kI64);
    right = ops::to(right, DType::kI64);
  }
  const auto size = [](const Tensor& t, const Dims& dims) {
    int64_t count = 1;
    for (const int64_t d : dims) count *= t.sizes()[d];
    return count;
  };
  for (const Dims* dims : {&lro, &both})
    for (const int64_t d : *dims)
      MICA_CHECK(left.sizes()[d] == right.sizes()[d], "Sizes (", left.sizes()[d], ") and (", right.sizes()[d],
                 ") of one label of einsum differ.");
  const int64_t batch = size(left, lro), rows = size(left, lo), inner = size(left, both),
                columns = size(right, ro);
  Dims order_left, order_right;
  const auto append = [](Dims& to, const Dims& from) { to.insert(to.end(), from.begin(), from.end()); };
  Dims rest;  // summed dimensions of size 1 in both
  for (int64_t d = 0; d < n; ++d)
    if (std::find(sum.begin(), sum.end(), d) != sum.end() &&
        std::find(both.begin(), both.end(), d) == both.end())
      rest.push_back(d);
  for (const Dims* dims : {&lro, &lo, &both, &ro, &rest}) append(order_left, *dims);
  for (const Dims* dims : {&lro, &both, &ro, &lo, &rest}) append(order_right, *dims);
  const Tensor a = ops::reshape(ops::permute(left, order_left), {batch, rows, inner});
  const Tensor b = ops::reshape(ops::permute(right, order_right), {batch, inner, columns});
  Tensor out = ops::bmm(a, b);
  // [lro, lo, ro, both and rest as 1], then back into the labels' order.
  Dims sizes, order;
  for (const int64_t d : lro) sizes.push_back(left.sizes()[d]);
  for (const int64_t d : lo) sizes.push_back(left.sizes()[d]);
  for (const int64_t d : ro) sizes.push_back(right.sizes()[d]);
  for (size_t i = 0; i < both.size() + rest.size(); ++i) sizes.push_back(1);
  for (const Dims* dims : {&lro, &lo, &ro, &both, &rest}) append(order, *dims);
  Dims back(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) back[static_cast<size_t>(order[static_cast<size_t>(i)])] = i;
  return ops::permute(ops::reshape(out, sizes), back);
}

// Sizes of one label are equal, or 1, in all operands.
void CheckSizes(const Equation& e, std::string_view equation, TensorSpan tensors) {
  std::array<int64_t, 52> size_of;
  size_of.fill(1);
  for (size_t i = 0; i < e.operands.size(); ++i) {
    const Tensor& t = tensors[static_cast<int64_t>(i)];
    int64_t d = 0;
    for (const int l : e.operands[i]) {
      if (l == kEllipsis) {
        d = t.ndim() - (static_cast<int64_t>(e.operands[i].size()) - (d + 1));
        continue;
      }
      int64_t& known = size_of[static_cast<size_t>(l)];
      const int64_t size = t.size(d++);
      MICA_CHECK(size == known || size == 1 || known == 1, "Label (", LabelText(l), ") of equation (",
                 std::string(equation), ") has the size (", size, ") in operand (", i, ") with shape ",
                 ShapeText(t.sizes()), ", and the size (", known, ") before; expected equal sizes, or 1.");
      if (known == 1) known = size;
    }
  }
}

}  // namespace

Tensor einsum(std::string_view equation, TensorSpan tensors, std::optional<IntSpan>) {
  const Equation e = ParseEquation(equation);
  MICA_CHECK(static_cast<int64_t>(e.operands.size()) == tensors.size(),
             "einsum(): ", static_cast<int64_t>(e.operands.size()) > tensors.size() ? "fewer" : "more",
             " operands were provided than specified in the equation (", std::string(equation),
             "), which has (", e.operands.size(), ") terms; einsum gets (", tensors.size(), ") tensors.");
  // How many dimensions `...` stands for.
  int64_t ellipsis = 0;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    const Tensor& t = tensors[static_cast<int64_t>(i)];
    const bool has = std::find(e.operands[i].begin(), e.operands[i].end(), kEllipsis) != e.operands[i].end();
    const int64_t named = static_cast<int64_t>(e.operands[i].size()) - has;
    MICA_CHECK(has ? named <= t.ndim() : named == t.ndim(),
               "einsum(): the number of subscripts in the equation (", named, ") ",
               has ? "is more than the number of dimensions (" : "does not match the number of dimensions (",
               t.ndim(), ") for operand ", i, ", whose equation is (", std::string(equation), ")",
               has ? "." : " and no ellipsis was given.");
    if (has) ellipsis = std::max(ellipsis, t.ndim() - named);
  }
  CheckSizes(e, equation, tensors);
  // Places: output labels first, then the summed ones.
  std::array<int64_t, 53> place;
  place.fill(-1);
  int64_t total = 0, out_count = 0;
  const auto give = [&](int l) {
    place[static_cast<size_t>(l)] = total;
    total += l == kEllipsis ? ellipsis : 1;
  };
  for (const int l : e.output) give(l);
  out_count = total;
  for (const Labels& labels : e.operands)
    for (const int l : labels)
      if (place[static_cast<size_t>(l)] < 0) give(l);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    Tensor t = tensors[static_cast<int64_t>(i)];
    // Where each dimension goes; a repeated label takes the diagonal.
    std::vector<int64_t> to;
    const int64_t own = t.ndim() - (static_cast<int64_t>(e.operands[i].size()) - 1);
    for (const int l : e.operands[i]) {
      if (l == kEllipsis) {
        for (int64_t k = 0; k < own; ++k) to.push_back(place[kEllipsis] + ellipsis - own + k);
        continue;
      }
      const auto seen = std::find(to.begin(), to.end(), place[static_cast<size_t>(l)]);
      if (seen == to.end()) {
        to.push_back(place[static_cast<size_t>(l)]);
        continue;
      }
      const int64_t first = seen - to.begin(), second = static_cast<int64_t>(to.size());
      MICA_CHECK(t.sizes()[first] == t.sizes()[second], "Sizes (", t.sizes()[first], ") and (",
                 t.sizes()[second], ") of one label of einsum differ.");
      t = ops::movedim(ops::diagonal(t, 0, first, second), -1, first);
    }
    Dims order, sizes(static_cast<size_t>(total), 1);
    for (int64_t d = 0; d < total; ++d) {
      const auto at = std::find(to.begin(), to.end(), d);
      if (at == to.end()) continue;
      order.push_back(at - to.begin());
      sizes[static_cast<size_t>(d)] = t.sizes()[at - to.begin()];
    }
    operands.push_back(ops::reshape(ops::permute(t, order), sizes));
  }
  // A summed label can go as soon as no later operand has it.
  Tensor result = operands[0];
  const auto later = [&](int64_t d, size_t from) {
    for (size_t i = from; i < operands.size(); ++i)
      if (operands[i].sizes()[d] != 1) return true;
    return false;
  };
  for (size_t i = 1; i < operands.size(); ++i) {
    Dims sum;
    for (int64_t d = out_count; d < total; ++d)
      if (!later(d, i + 1)) sum.push_back(d);
    result = ProductPair(result, operands[i], sum);
  }
  if (operands.size() == 1 && total > out_count) {
    Dims sum;
    for (int64_t d = out_count; d < total; ++d) sum.push_back(d);
    result = ops::sum(result, sum, true);
  }
  for (int64_t d = total; d-- > out_count;) result = ops::squeeze(result, d);
  return result;
}

}  // namespace mica::composite
