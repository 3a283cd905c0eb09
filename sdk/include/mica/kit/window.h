// The window class: an operator's reduction over the windows of the last dimensions
// (max_pool2d_with_indices, avg_pool2d, adaptive pooling). A work-item a window, or those of neighbours that
// lie side by side in memory, as channels may; in the order of the result's memory.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mica/kit/lanes.h>
#include <mica/kit/programs.h>

namespace mica {
namespace kit {
namespace window {

using plugin::TensorRef;

struct Windows {
  const MicaCall* call;
  const MicaValue* args;
  const MicaProgram* program;
  TensorRef data;
  MicaTensor* const* outputs;
  int64_t num_outputs;
  int32_t lane;
  std::vector<int> order;  // the dimensions as the first result has them in memory, the innermost last
  int width = 1;           // windows of a work-item
  bool small = false;      // whether places and offsets are ints

  int ndim() const { return data.ndim(); }
  int first() const { return data.ndim() - program->num_windowed; }  // of the windowed dimensions
  TensorRef out(int64_t o) const { return TensorRef(outputs[o]); }
  const char* place_type() const { return small ? "const int " : "const long "; }
};

inline std::string N(int64_t n) { return std::to_string(n); }

// The numbers of a call, in the order of the kernel's parameters.
inline std::vector<std::pair<std::string, int64_t>> Numbers(const Windows& w) {
  std::vector<std::pair<std::string, int64_t>> all;
  const MicaProgram& p = *w.program;
  for (int d = 0; d < w.ndim(); ++d) {
    all.emplace_back("size_o" + N(d), w.out(0).size(d));
    all.emplace_back("size_q" + N(d), w.data.size(d));
    all.emplace_back("stride_data_" + N(d), w.data.stride(d));
    for (int64_t o = 0; o < w.num_outputs; ++o)
      all.emplace_back("stride_" + N(o) + "_o" + N(d), w.out(o).stride(d));
  }
  const auto at = [&](int32_t arg, int d, int64_t otherwise) {
    if (arg < 0 || w.args[arg].u.ints.size == 0) return otherwise;
    const MicaIntSpan& list = w.args[arg].u.ints;
    return list.data[list.size == 1 ? 0 : d];
  };
  for (int d = 0; d < p.num_windowed; ++d) {
    const int64_t kernel = at(p.kernel_arg, d, 1);
    all.emplace_back("kernel_" + N(d), kernel);
    all.emplace_back("step_" + N(d), at(p.stride_arg, d, kernel));
    all.emplace_back("pad_" + N(d), at(p.pad_arg, d, 0));
    all.emplace_back("dilation_" + N(d), at(p.dilation_arg, d, 1));
  }
  return all;
}

// Declares first, end and by (the step) of the window in windowed dimension d, how many
// places it has, and how many with the padding that it reaches into.
inline std::string RangeText(const Windows& w, int d) {
  const std::string type = w.place_type(), cast = w.small ? "(int)" : "(long)";
  const std::string n = N(d), o = "o" + N(w.first() + d), size = "size_q" + N(w.first() + d);
  const std::string outs = "size_o" + N(w.first() + d);
  if (w.program->kernel_arg < 0)
    return type + "by" + n + " = 1, first" + n + " = " + cast + o + " * " + size + " / " + outs + ", end" +
           n + " = ((" + cast + o + " + 1) * " + size + " + " + outs + " - 1) / " + outs + ", padded" + n +
           " = end" + n + " - first" + n + "; ";
  return type + "by" + n + " = dilation_" + n + ", begin" + n + " = " + cast + o + " * step_" + n +
         " - pad_" + n + ", reach" + n + " = begin" + n + " + (kernel_" + n + " - 1) * by" + n + " + 1, end" +
         n + " = min(reach" + n + ", " + size + "), first" + n + " = begin" + n + " >= 0 ? begin" + n +
         " : begin" + n + " + (-begin" + n + " + by" + n + " - 1) / by" + n + " * by" + n + ", padded" + n +
         " = (min(reach" + n + ", " + size + " + pad_" + n + ") - begin" + n + " + by" + n + " - 1) / by" +
         n + "; ";
}

// The coordinates o<d> of a work-item's first window, from its number i.
inline std::string CoordinatesText(const Windows& w) {
  std::string text = "INDEX rest = i; ";
  for (size_t k = w.order.size(); k-- > 0;) {
    const std::string o = "o" + N(w.order[k]);
    const bool is_inner = k + 1 == w.order.size() && w.width > 1;
    const std::string size = is_inner ? "(size_" + o + " / W)" : "size_" + o;
    text +=
        "const INDEX " + o + " = rest % " + size + (is_inner ? " * W; " : "; ") + "rest /= " + size + "; ";
  }
  return text;
}

// Writes result o. Vectors of floats are not stored as integers, as indices are: those are converted one by
// one.
inline std::string StoreText(const Windows& w, int64_t o) {
  const std::string suffix = Suffix(w.out(o).dtype()), n = N(o);
  const std::string to = "out" + n + " + " + OffsetText(n, "o", static_cast<size_t>(w.ndim()));
  if (w.width == 1 || w.lane < MICA_F16 || w.out(o).dtype() >= MICA_F16)
    return "STORE_" + suffix + "(y" + n + ", " + to + ", W); ";
  const std::string made = "made" + n;
  return "Vec<E_" + suffix + ", W> " + made + "; UNROLL for (int j = 0; j < W; ++j) " + made + ".v[j] = (E_" +
         suffix + ")integer_of(y" + n + ".v[j]); store_vector<W>(" + made + ", " + to + "); ";
}

inline std::string SourceOf(const Windows& w, const Device& device) {
  const MicaProgram& p = *w.program;
  const ProgramText text = TextOf(p);
  std::string parameters, setup, loops, at = "base", place = "0", count = "1", area = "1", stores;
  parameters = "const global E_" + std::string(Suffix(w.data.dtype())) + "* data, ";
  for (int64_t o = 0; o < w.num_outputs; ++o)
    parameters += "global E_" + std::string(Suffix(w.out(o).dtype())) + "* out" + N(o) + ", ";
  for (const auto& [name, value] : Numbers(w)) parameters += w.place_type() + name + ", ";
  for (int i = 0; i < p.num_scalars; ++i)
    parameters += "const LANE number_" + N(i) + ", const int is_given_" + N(i) + ", ";
  setup = CoordinatesText(w) + "INDEX base = 0; ";
  for (int d = 0; d < w.first(); ++d) setup += "base += o" + N(d) + " * stride_data_" + N(d) + "; ";
  for (int i = 0; i < p.num_scalars; ++i)
    setup += "const L n" + N(i) + " = (L)(number_" + N(i) + "); const M given" + N(i) + " = is_given_" +
             N(i) + " ? M_TRUE : M_FALSE; ";
  for (int d = 0; d < p.num_windowed; ++d) {
    const std::string n = N(d), q = N(w.first() + d);
    setup += RangeText(w, d);
    loops += std::string("for (") + (w.small ? "int" : "long") + " w" + n + " = first" + n + "; w" + n +
             " < end" + n + "; w" + n + " += by" + n + ") ";
    at += " + w" + n + " * stride_data_" + q;
    place = "(" + place + " * size_q" + q + " + w" + n + ")";
    count += " * (end" + n + " <= first" + n + " ? 0 : (end" + n + " - first" + n + " + by" + n +
             " - 1) / by" + n + ")";
    area += " * padded" + n;
  }
  setup += "const L count = (L)(" + count + "); " + w.place_type() + "area = " + area + "; ";
  for (int s = 0; s < p.num_states; ++s) setup += "L s" + N(s) + "; ";
  for (int64_t o = 0; o < w.num_outputs; ++o) {
    setup += "L y" + N(o) + "; ";
    stores += StoreText(w, o);
  }
  return LanesText(device, {w.lane, w.width}, w.small) +
         Define("PARAMETERS", parameters + "global int* raised, const INDEX total") +
         Define("SETUP", setup + "{ " + text.init + "}") + Define("EACH", loops) +
         Define("ELEMENT", "const L index = (L)(" + place + "); const L x0 = LOAD_" +
                               std::string(Suffix(w.data.dtype())) + "(data + " + at + ", W);") +
         Define("STEP", text.main) + Define("FINISH", text.finish + stores) + kWindowText;
}

inline void Enqueue(const Windows& w, const Kernel& kernel, const void* raised) {
  const MicaProgram& p = *w.program;
  Launch launch(w.call, kernel);
  launch.Pointer(w.data.data<void>());
  for (int64_t o = 0; o < w.num_outputs; ++o) launch.Pointer(w.out(o).data<void>());
  for (const auto& [name, value] : Numbers(w))
    w.small ? launch.Value(static_cast<int32_t>(value)) : launch.Value(value);
  for (int i = 0; i < p.num_scalars; ++i) {
    const MicaValue& value = w.args[p.scalar_args[i]];
    const bool given = value.tag != MICA_VALUE_NONE;
    const LaneBytes number = NumberOf(given ? value : MicaValue{MICA_VALUE_INT, 0, {}}, w.lane);
    launch.Bytes(number.bytes, number.size).Value<int32_t>(given);
  }
  const int64_t total = w.out(0).numel() / w.width;
  launch.Pointer(raised).Index(total, w.small).Run(total, 64);
}

// Whether offsets, places and the products that adaptive windows are computed by fit an int.
inline bool IsSmall(const Windows& w) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto reach = [&](const TensorRef& t) {
    int64_t last = 0;
    for (int d = 0; d < t.ndim(); ++d) last += (t.size(d) - 1) * std::abs(t.stride(d));
    return last;
  };
  bool small = reach(w.data) < kMost && w.data.numel() < kMost && w.out(0).numel() < kMost;
  for (int64_t o = 0; o < w.num_outputs; ++o) small = small && reach(w.out(o)) < kMost;
  for (int d = w.first(); d < w.ndim(); ++d) small = small && w.data.size(d) * (w.out(0).size(d) + 1) < kMost;
  for (const auto& [name, value] : Numbers(w)) small = small && std::abs(value) < kMost;
  return small;
}

// How work-items walk through the result.
inline void ChooseShape(Windows& w, const Device& device) {
  const TensorRef out = w.out(0);
  w.order.resize(static_cast<size_t>(w.ndim()));
  std::iota(w.order.begin(), w.order.end(), 0);
  std::stable_sort(w.order.begin(), w.order.end(),
                   [&](int a, int b) { return out.stride(a) > out.stride(b); });
  w.small = IsSmall(w);
  const int inner = w.order.empty() ? w.ndim() : w.order.back();
  if (device.access_bytes == 0 || inner >= w.first() || w.data.stride(inner) != 1) return;
  for (int64_t o = 0; o < w.num_outputs; ++o)
    if (w.out(o).stride(inner) != 1) return;
  w.width = 4;
  while (out.size(inner) % w.width != 0) w.width /= 2;
}

inline void RunWindow(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                      int64_t num_outputs) {
  const MicaProgram& p = *call->program;
  Windows w = {call, args, &p, TensorRef(args[p.data_arg].u.tensor), outputs, num_outputs, 0, {}};
  const Device& device = DeviceOf(call);
  CheckDtype(device, w.data.dtype());
  w.lane = LaneDtype(call->compute_dtype >= 0 ? call->compute_dtype : w.data.dtype());
  int64_t plane = 1;
  for (int d = w.first(); d < w.ndim(); ++d) plane *= w.data.size(d);
  const bool indexed = (p.flags & MICA_PROGRAM_USES_INDEX) != 0;
  if (indexed && w.lane < MICA_F16 && w.lane != MICA_U64) w.lane = MICA_I64;
  if (indexed && w.lane == MICA_F32 && plane > (int64_t{1} << 24)) w.lane = MICA_F64;
  CheckDtype(device, w.lane);
  if (w.ndim() > 8 || p.map.size > 0) throw plugin::NotImplemented();
  ChooseShape(w, device);
  Key key("window");
  key.Add(&p).Add(w.lane).Add(w.data.dtype()).Add(w.ndim()).Add(w.width).Add(w.small);
  for (const int d : w.order) key.Add(static_cast<int8_t>(d));
  for (int64_t o = 0; o < num_outputs; ++o) key.Add(w.out(o).dtype());
  const Kernel& kernel = FindKernel(device, key, "window", call->name, [&] { return SourceOf(w, device); });
  std::optional<Raise> raise;
  if (MayRaise(p, w.lane)) raise.emplace(call, ZeroDivision());
  Enqueue(w, kernel, raise ? raise->word() : nullptr);
  if (raise) raise->Check();
}

}  // namespace window
}  // namespace kit
}  // namespace mica
