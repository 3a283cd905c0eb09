// A call that writes elements to places of its result (scatter.h), and the text of its
// kernels (kernels/scatter.cl, kernels/scatter_counts.cl).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <mica/kit/gather_call.h>
#include <mica/kit/lanes.h>
#include <mica/kit/programs.h>

namespace mica {
namespace kit {
namespace scatter {

using plugin::TensorRef;

// What an element does to what lies at its place.
enum class Combine : int8_t { kStore, kAdd, kMultiply, kMax, kMin, kProgram };

// How the kernel does it.
enum class Write : int8_t {
  kMove,   // elements of one dtype, as bits
  kStore,  // through a lane; of two at one place, one stays
  kAdd,    // atomically
  kSwap,   // by compare-and-swap, until it holds
};

struct Scatter {
  const MicaCall* call;
  const MicaProgram* program = nullptr;  // of Combine::kProgram
  std::vector<LaneBytes> numbers;        // its scalars
  Combine combine = Combine::kStore;
  Write write = Write::kMove;

  // What is written to: the result, or a workspace in its place.
  void* to = nullptr;
  int32_t dtype = 0;
  std::vector<int64_t> sizes, strides;

  // The elements; a scalar has no tensor.
  const MicaTensor* source = nullptr;
  std::vector<int64_t> side_sizes, source_strides;

  // For each dimension of the result, where its coordinate comes from.
  std::vector<gather::Source> places;
  std::vector<gather::Index> indices;
  bool wraps = false;  // negative indices count from the end
  int32_t bounds = MICA_BOUNDS_ERROR;

  bool counts = false;   // a kernel counts the elements of each place
  bool divides = false;  // elements by the count of their place
  bool skips = false;    // elements whose first index is `skipped`
  int64_t skipped = -1;
  bool windows = false;  // the last dimension of the side runs inside windows, `step` apart along window_dim
  size_t window_dim = 0;
  int64_t step = 0;

  explicit Scatter(const MicaCall* c) : call(c) {}
  int32_t lane() const { return write == Write::kMove ? MICA_I64 : LaneDtype(dtype); }
  int64_t Count() const {
    int64_t n = 1;
    for (const int64_t size : side_sizes) n *= size;
    return n;
  }
};

// The kernel's INDEX values by name, in order.
using Integers = std::vector<std::pair<std::string, int64_t>>;

inline std::string N(size_t n) { return std::to_string(n); }

inline Integers IntegersOf(const Scatter& s) {
  Integers all;
  const auto add = [&](const std::string& prefix, const std::vector<int64_t>& values) {
    for (size_t d = 0; d < values.size(); ++d) all.emplace_back(prefix + N(d), values[d]);
  };
  add("size_o", s.side_sizes);
  if (s.source) add("stride_source_o", s.source_strides);
  add("size_q", s.sizes);
  add("stride_to_q", s.strides);
  for (size_t j = 0; j < s.indices.size(); ++j) add("stride_index" + N(j) + "_o", s.indices[j].strides);
  if (s.windows) all.emplace_back("step", s.step);
  return all;
}

// Whether all offsets fit 31 bits.
inline bool IsSmall(const Scatter& s) {
  const auto is_beyond = [](const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
    int64_t last = 0;
    for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
    return last > INT32_MAX;
  };
  if (s.Count() > INT32_MAX || is_beyond(s.sizes, s.strides)) return false;
  if (s.source && is_beyond(s.side_sizes, s.source_strides)) return false;
  for (const gather::Index& index : s.indices)
    if (is_beyond(s.side_sizes, index.strides)) return false;
  return true;
}

inline std::string IndexText(const Scatter& s, size_t j) {
  return "(long)index" + N(j) + "[" + OffsetText("index" + N(j), "o", s.side_sizes.size()) + "]";
}

// The statements that find `from` and `inside`.
inline std::string PlaceText(const Scatter& s) {
  std::string text;
  for (size_t d = 0; d < s.places.size(); ++d) {
    const gather::Source& place = s.places[d];
    const std::string size = "size_q" + N(d), stride = "stride_to_q" + N(d);
    std::string own = place.side < 0 ? "0" : "o" + std::to_string(place.side);
    if (s.windows && d == s.window_dim) own = "(" + own + " * step + o" + N(s.side_sizes.size() - 1) + ")";
    if (place.index < 0) {
      text += "from += " + own + " * " + stride + "; ";
      continue;
    }
    text += "{ long y = " + IndexText(s, static_cast<size_t>(place.index)) + "; ";
    if (s.wraps) text += "if (y < 0) y += " + size + "; ";
    text += "INSIDE(y, " + size + ", " + stride + ") } ";
  }
  if (s.skips) text += "if (" + IndexText(s, 0) + " == skipped) inside = false; ";
  return text;
}

inline std::string CombineText(const Scatter& s) {
  switch (s.combine) {
    case Combine::kStore:
      return "s0 = x0; ";
    case Combine::kAdd:
      return "s0 = OP_ADD(s0, x0); ";
    case Combine::kMultiply:
      return "s0 = OP_MUL(s0, x0); ";
    case Combine::kMax:
      return "s0 = OP_MAX(s0, x0); ";
    case Combine::kMin:
      return "s0 = OP_MIN(s0, x0); ";
    default:
      return CodeText(*s.program, s.program->main);
  }
}

// From which the combination of a place's elements begins. -0 leaves every number as it is.
inline const char* NeutralText(Combine combine) {
  switch (combine) {
    case Combine::kMultiply:
      return "ONE";
    case Combine::kMax:
      return "CONST_NEG_INF";
    case Combine::kMin:
      return "CONST_INF";
    default:
      return "(-ZERO)";
  }
}

inline std::string WriteText(const Scatter& s) {
  const std::string at = OffsetText("source", "o", s.side_sizes.size());
  if (s.write == Write::kMove) return "to[from] = source[" + at + "]; ";
  std::string text;
  if (s.source) {
    text = "L x0 = LOAD_" + std::string(Suffix(DtypeOf(s.source))) + "(source + " + at + ", 1); ";
    if (s.divides) text += "x0 /= (L)counts[from]; ";
  }
  for (size_t i = 0; i < s.numbers.size(); ++i) text += "const L n" + N(i) + " = number_" + N(i) + "; ";
  const std::string combine = CombineText(s);
  if (s.write == Write::kSwap) return text + "SWAP_IN(to + from, " + combine + ") ";
  text += "L s0 = -ZERO; " + combine;
  if (s.write == Write::kAdd) return text + "const L added = s0; ADD_IN(to + from, added) ";
  return text + "STORE_" + Suffix(s.dtype) + "(s0, to + from, 1); ";
}

inline const char* BitsSuffix(int64_t itemsize) {
  return itemsize == 1   ? "u8"
         : itemsize == 2 ? "u16"
         : itemsize == 4 ? "u32"
         : itemsize == 8 ? "u64"
                         : "u128";
}

// The text; its entries are those of scatter.cl and, where it counts, scatter_counts.cl.
inline std::string ScatterSource(const Scatter& s, const Device& device, const Integers& integers,
                                 bool small) {
  const bool moves = s.write == Write::kMove;
  const std::string bits = moves ? BitsSuffix(TensorRef(s.source).itemsize()) : "";
  std::string parameters = "global E_" + (moves ? bits : Suffix(s.dtype)) + "* to, ";
  if (s.source) parameters += "const global E_" + (moves ? bits : Suffix(DtypeOf(s.source))) + "* source, ";
  for (size_t j = 0; j < s.indices.size(); ++j)
    parameters +=
        "const global E_" + std::string(Suffix(DtypeOf(s.indices[j].tensor))) + "* index" + N(j) + ", ";
  for (size_t i = 0; i < s.numbers.size(); ++i) parameters += "const LANE number_" + N(i) + ", ";
  for (const auto& integer : integers) parameters += "const INDEX " + integer.first + ", ";
  parameters += "const long skipped";
  std::string text = LanesText(device, {s.lane(), 1}, small);
  if (s.write == Write::kAdd || s.write == Write::kSwap) text += AtomicsText(s.dtype);
  if (s.counts) text += Define("NEUTRAL", NeutralText(s.combine));
  text += Define("PARAMETERS", parameters) + Define("SIDE", SplitText("i", "o", s.side_sizes.size())) +
          Define("PLACE", PlaceText(s)) +
          Define("OUTSIDE", s.bounds == MICA_BOUNDS_FILL ? "" : "*raised = 1;") +
          Define("WRITE", WriteText(s)) + kScatterText;
  return s.counts ? text + kScatterCountsText : text;
}

inline Key KeyOf(const Scatter& s, bool small) {
  Key key("scatter");
  key.Add(s.program).Add(s.combine).Add(s.write).Add(s.dtype).Add(small);
  key.Add(s.source ? DtypeOf(s.source) : -1).Add(s.source ? TensorRef(s.source).itemsize() : 0);
  key.Add(s.sizes.size()).Add(s.side_sizes.size()).Add(s.wraps).Add(s.bounds);
  key.Add(s.counts).Add(s.divides).Add(s.skips).Add(s.windows).Add(s.window_dim);
  for (const gather::Source& place : s.places) key.Add(place.side).Add(place.index);
  for (const gather::Index& index : s.indices) key.Add(DtypeOf(index.tensor));
  return key;
}

}  // namespace scatter
}  // namespace kit
}  // namespace mica
