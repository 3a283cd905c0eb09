// The text of kernels that gather; see gather.h and kernels/gather.cl.
#pragma once

#include <mica/kit/gather_call.h>

namespace mica {
namespace kit {
namespace gather {

using plugin::TensorRef;

inline const char* BitsOf(int64_t size) {
  return size == 1 ? "uchar" : size == 2 ? "ushort" : size == 4 ? "uint" : size == 8 ? "ulong" : "E_u128";
}

// The lists' values for dimension d: LIST, BEFORE and AFTER of the program.
struct ListValues {
  int64_t value, before, after;
};
inline ListValues ListAt(const Gather& g, int k, int d) {
  const MicaIntSpan& list = g.args[g.program->list_args[k]].u.ints;
  const MicaValue* dims = g.program->dims_arg < 0 ? nullptr : &g.args[g.program->dims_arg];
  ListValues v = {0, 0, 0};
  if (g.flat) return {list.size > 0 ? list.data[0] : 0, 0, 0};
  for (int64_t i = 0; dims && i < dims->u.ints.size && i < list.size; ++i)
    if (g.Wrapped(dims->u.ints.data[i]) == d) v.value += list.data[i];
  if (!dims && d < list.size) v.value = list.data[d];
  const int64_t pair = 2 * (static_cast<int64_t>(g.ndim()) - 1 - d);
  if (pair < list.size) v.before = list.data[pair];
  if (pair + 1 < list.size) v.after = list.data[pair + 1];
  return v;
}

inline std::string N(size_t n) { return std::to_string(n); }

// The statements that add dimension d's coordinate to `from`.
inline std::string PlaceText(const Gather& g, size_t d) {
  const Source& source = g.sources[d];
  const std::string own = source.side < 0 ? "0" : "o" + std::to_string(source.side);
  const std::string size = g.flat ? "count" : "size_q" + N(d);
  const std::string stride = g.flat ? "1" : "stride_data_q" + N(d);
  std::string text = "{ const long c0 = " + std::string(g.flat ? "i" : own) + "; L y0 = c0; ";
  if (source.index >= 0) {
    const auto j = static_cast<size_t>(source.index);
    text += "const L x0 = LOAD_" + std::string(Suffix(DtypeOf(g.indices[j].tensor))) + "(index" + N(j) +
            " + " + OffsetText("index" + N(j), "o", g.side_sizes.size()) + ", 1); y0 = x0; ";
  }
  if (source.named && g.program->index.size > 0) {
    text += "const long size_c0 = " + size +
            ", size_c1 = " + (g.flat || source.side < 0 ? size : "size_o" + std::to_string(source.side)) +
            "; ";
    for (int k = 0; k < g.program->num_lists; ++k) {
      const std::string i = std::to_string(k), from = i + "_" + N(d);
      text += "const L list" + i + " = list_" + from + ", before" + i + " = before_" + from + ", after" + i +
              " = after_" + from + "; ";
    }
    text += CodeText(*g.program, g.program->index, 2);
  }
  if (g.wraps && source.index >= 0) text += "if (y0 < 0) y0 += " + size + "; ";
  if (g.flat) return text + "flat = y0; } ";
  return text + "INSIDE(y0, " + size + ", " + stride + ") } ";
}

inline GatherParameters ParametersOf(const Gather& g) {
  GatherParameters p;
  p.Add("size_o", g.side_sizes);
  p.Add("stride_out_o", g.side_strides);
  p.Add("size_q", g.data_sizes);
  p.Add("stride_data_q", g.data_strides);
  for (size_t j = 0; j < g.indices.size(); ++j) p.Add("stride_index" + N(j) + "_o", g.indices[j].strides);
  if (!g.program) return p;
  for (int i = 0; i < g.program->num_scalars; ++i) {
    const MicaValue& value = g.args[g.program->scalar_args[i]];
    p.Add("number_" + std::to_string(i), value.tag == MICA_VALUE_SCALAR ? value.u.scalar.u.i : value.u.i);
  }
  for (size_t d = 0; d < g.sources.size(); ++d) {
    for (int k = 0; g.sources[d].named && k < g.program->num_lists; ++k) {
      const ListValues v = ListAt(g, k, static_cast<int>(d));
      const std::string n = std::to_string(k) + "_" + N(d);
      p.Add("list_" + n, v.value);
      p.Add("before_" + n, v.before);
      p.Add("after_" + n, v.after);
    }
  }
  return p;
}

// The text; the entry is "gather".
inline std::string GatherSource(const Gather& g, const Device& device, const GatherParameters& parameters) {
  const size_t sides = g.side_sizes.size();
  const std::string bits = BitsOf(g.bytes);
  std::string pointers = "global " + bits + "* out, const global " + bits + "* data, ";
  for (size_t j = 0; j < g.indices.size(); ++j)
    pointers +=
        "const global E_" + std::string(Suffix(DtypeOf(g.indices[j].tensor))) + "* index" + N(j) + ", ";
  std::string numbers, place;
  if (g.program)
    for (int i = 0; i < g.program->num_scalars; ++i)
      numbers += "const L n" + std::to_string(i) + " = number_" + std::to_string(i) + "; ";
  if (g.flat) {
    place = "long flat; " + PlaceText(g, 0) + SplitText("flat", "q", g.ndim()) +
            "from = " + OffsetText("data", "q", g.ndim()) + "; ";
  } else {
    for (size_t d = 0; d < g.sources.size(); ++d) place += PlaceText(g, d);
  }
  if (g.program && g.program->keep.size > 0) {
    place += "{ L y0; ";
    for (size_t d = 0; d < sides; ++d)
      place += "const long c" + N(d) + " = o" + N(d) + ", size_c" + N(d) + " = size_o" + N(d) + "; ";
    place +=
        CodeText(*g.program, g.program->keep, static_cast<int>(sides)) + "if (y0 == 0) inside = false; } ";
  }
  std::string text = parameters.text();
  text.resize(text.size() - 2);
  return LanesText(device, {MICA_I64, 1}, g.small) + Define("BITS", bits) +
         Define("EACH", N(static_cast<size_t>(g.each))) + Define("PARAMETERS", pointers + text) +
         Define("SIDE", SplitText("i", "o", sides) + numbers) + Define("PLACE", place) +
         Define("OUTSIDE(at)", g.bounds == MICA_BOUNDS_FILL ? "" : "outside = true;") +
         Define("OUT_AT", OffsetText("out", "o", sides)) + kGatherText;
}

}  // namespace gather
}  // namespace kit
}  // namespace mica
