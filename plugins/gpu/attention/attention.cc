// Checks the operands, makes the results, chooses a text and launches; see attention.h.
#include "plugins/gpu/attention/attention.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include <mica/kit/pointwise.h>
#include <mica/kit/programs.h>

namespace gpu {
namespace {

using KitLaunch = mica::kit::Launch;  // the driver has a Launch of its own
using mica::plugin::NotImplemented;
using mica::plugin::OwnedTensor;
using mica::plugin::TensorRef;

const char kCommonText[] =
#include "plugins/gpu/attention/warp.inc"
// clang-format keeps the order: tiles stand on warps.
#include "plugins/gpu/attention/tiles.inc"
    ;
const char kForwardText[] =
#include "plugins/gpu/attention/flash.inc"
    ;
const char kBackwardText[] =
#include "plugins/gpu/attention/flash_backward.inc"
    ;

constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr double kLog2E = 1.4426950408889634;

// For fewer scores than these nothing is won: Mica's own kernel takes some 3 us for them on an H100 (97 us
// for 128 x 1024 x 1024), and a library compiles for each shape.
constexpr int64_t kLeastScoresOfLibrary = 1 << 20;

Devices* the_devices = nullptr;
Attention* the_library = nullptr;

// Whether the device has mma.m16n8k16: the simulation, or NVIDIA's sm_80 and later.
bool HasTensorCores(int64_t index) {
  const std::string& architecture = the_devices->At(index).info.architecture;
  if (architecture.rfind("sm_", 0) == 0) return std::atoi(architecture.c_str() + 3) >= 80;
  return architecture.rfind("simt", 0) == 0;
}

// As the texts' structs of these names.
struct Strides {
  int64_t batch = 0, head = 0, row = 0;
};
struct MaskStrides {
  int64_t batch = 0, head = 0, row = 0, column = 0;
};

// A tensor of four dimensions whose rows are adjacent elements.
struct Heads {
  void* data;
  Strides strides;
  bool aligned;  // every row begins at a multiple of 16 bytes

  // `swapped`: dimensions 1 and 2 are rows and heads.
  explicit Heads(const TensorRef& t, bool swapped = false) : data(t.data<void>()) {
    strides = {t.stride(0), t.stride(swapped ? 2 : 1), t.stride(swapped ? 1 : 2)};
    aligned = reinterpret_cast<uintptr_t>(data) % 16 == 0;
    for (int d = 0; d < 3; ++d) aligned = aligned && (t.size(d) == 1 || t.stride(d) % 8 == 0);
  }
};

struct Shape {
  int64_t batch, heads, queries, keys, width, group;
  int32_t dtype;
  bool causal;
  double scale;

  Shape(const MicaCall* call, const TensorRef& q, const TensorRef& k, const TensorRef& v, bool is_causal,
        double by)
      : causal(is_causal), scale(by) {
    if (q.ndim() != 4 || k.ndim() != 4 || v.ndim() != 4) throw NotImplemented();
    batch = q.size(0), heads = q.size(1), queries = q.size(2), width = q.size(3), keys = k.size(2);
    dtype = q.dtype();
    constexpr int64_t kMost = 1 << 30;
    const bool fits = (dtype == MICA_F16 || dtype == MICA_BF16) && k.dtype() == dtype && v.dtype() == dtype &&
                      k.size(3) == width && v.size(3) == width && k.size(0) == batch && v.size(0) == batch &&
                      k.size(1) > 0 && heads % k.size(1) == 0 && v.size(1) == k.size(1) &&
                      v.size(2) == keys && q.stride(3) == 1 && k.stride(3) == 1 && v.stride(3) == 1;
    if (!fits || batch * heads * queries * keys == 0) throw NotImplemented();
    if (queries > kMost || keys > kMost || batch * heads > kMost || !HasTensorCores(call->device_index))
      throw NotImplemented();
    group = heads / k.size(1);
  }

  // Whether the kernels of this folder take the width.
  bool HasKernels() const { return width == 32 || width == 64 || width == 96 || width == 128; }
};

// What is added to the scores, or nothing.
struct Mask {
  void* data = nullptr;
  int32_t dtype = -1;
  MaskStrides strides;

  Mask(const Shape& s, const MicaTensor* tensor) {
    if (tensor == nullptr) return;
    const TensorRef t(tensor);
    const int64_t scores[4] = {s.batch, s.heads, s.queries, s.keys};
    int64_t own[4] = {};
    if (t.ndim() > 4 || (t.dtype() != s.dtype && t.dtype() != MICA_F32)) throw NotImplemented();
    for (int d = 0; d < t.ndim(); ++d) {
      const int to = 4 - t.ndim() + d;
      if (t.size(d) != 1 && t.size(d) != scores[to]) throw NotImplemented();
      own[to] = t.size(d) == 1 ? 0 : t.stride(d);
    }
    data = t.data<void>(), dtype = t.dtype(), strides = {own[0], own[1], own[2], own[3]};
  }
};

// What a text depends on.
struct Choice {
  bool backward, aligned, prescaled;
  int32_t dtype, mask_dtype;
  int width;

  // Rows of a tile: two tiles each of two operands fit the 48 KB of shared memory that a kernel has without
  // asking.
  int Step() const { return width <= 64 ? 64 : 32; }
  // 16 queries of each warp: two halve the reads of shared memory, where 255 registers are enough for them.
  int TilesOfWarp() const {
    if (mask_dtype >= 0 || width > 64) return 1;
    return backward && width == 64 ? 1 : 2;
  }
  int Rows() const { return kWarps * TilesOfWarp() * 16; }

  std::string Text() const {
    const auto define = [](const char* name, int value) {
      return mica::kit::Define(name, std::to_string(value));
    };
    std::string text = define("THREADS", kThreads) + define("IS_BF16", dtype == MICA_BF16) +
                       define("D", width) + define("STEP", Step()) + define("TILES_OF_WARP", TilesOfWarp()) +
                       define("ALIGNED", aligned) + define("PRESCALED", prescaled);
    if (mask_dtype >= 0)
      text += mica::kit::Define("MASK_ELEMENT", mask_dtype == MICA_F32 ? "float" : "ushort");
    return text + kCommonText + (backward ? kBackwardText : kForwardText);
  }
  const mica::kit::Kernel& Find(const MicaCall* call, const char* entry) const {
    mica::kit::Key key("flash attention");
    key.Add(backward).Add(aligned).Add(prescaled).Add(dtype).Add(mask_dtype).Add(width);
    return mica::kit::FindKernel(mica::kit::DeviceOf(call), key, entry, call->name, [&] { return Text(); });
  }
};

void AddHeads(KitLaunch& launch, const Heads& heads) { launch.Pointer(heads.data).Value(heads.strides); }
void AddMask(KitLaunch& launch, const Mask& mask) { launch.Pointer(mask.data).Value(mask.strides); }
void AddInts(KitLaunch& launch, std::initializer_list<int64_t> numbers) {
  for (const int64_t number : numbers) launch.Value(static_cast<int32_t>(number));
}
void RunGroups(KitLaunch& launch, int64_t groups) {
  if (groups > INT32_MAX) throw NotImplemented();
  launch.Run(groups * kThreads, kThreads);
}
int64_t BlocksOf(int64_t rows, int64_t of_group) { return (rows + of_group - 1) / of_group; }

// Dimensions of [batch, heads, rows, width] from the outermost in memory to the innermost.
using Order = std::array<int, 4>;
constexpr Order kHeadsInside{0, 2, 1, 3};

// The order of a dense tensor like `t`: by falling strides, where 0 tells nothing. The width stays inside.
Order OrderOf(const TensorRef& t) {
  Order order{0, 1, 2, 3};
  for (size_t i = 1; i < 3; ++i)
    for (size_t j = i; j > 0; --j) {
      const int64_t outer = t.stride(order[j - 1]), inner = t.stride(order[j]);
      if (outer == 0 || inner == 0) continue;
      if (outer > inner || (outer == inner && t.size(order[j - 1]) >= t.size(order[j]))) break;
      std::swap(order[j - 1], order[j]);
    }
  return order;
}

// A tensor [batch, heads, rows, width] whose memory has the dimensions in an order; `swapped`: its dimensions
// 1 and 2 are rows and heads.
OwnedTensor Laid(const MicaCall* call, const std::array<int64_t, 4>& sizes, const Order& order, int32_t dtype,
                 bool swapped) {
  std::array<int64_t, 4> in_memory{}, seen = sizes, strides{};
  int64_t step = 1;
  for (size_t i = 4; i-- > 0;) {
    in_memory[i] = sizes[static_cast<size_t>(order[i])];
    strides[static_cast<size_t>(order[i])] = step;
    step *= in_memory[i];
  }
  if (swapped) {
    std::swap(seen[1], seen[2]);
    std::swap(strides[1], strides[2]);
  }
  const OwnedTensor memory = OwnedTensor::Empty(in_memory.data(), 4, dtype, mica::kit::PlaceOf(call));
  const MicaTensorResult r =
      mica::plugin::Host()->tensor_as_strided(memory.get(), {seen.data(), 4}, {strides.data(), 4}, 0);
  mica::plugin::Check(r.status);
  return OwnedTensor(r.value);
}

// --- the vendor's library

AttentionShape LibraryShapeOf(const Shape& s) {
  AttentionShape shape;
  shape.dtype = s.dtype, shape.is_causal = s.causal;
  shape.batch = s.batch, shape.heads = s.heads, shape.key_heads = s.heads / s.group;
  shape.queries = s.queries, shape.keys = s.keys, shape.width = s.width;
  return shape;
}

// Whether the library may take a call.
bool SuitsLibrary(const MicaCall* call, const Shape& s, const Mask& mask) {
  if (!the_library || mask.data != nullptr) return false;
  if (s.batch * s.heads * s.queries * s.keys < kLeastScoresOfLibrary) return false;
  return the_library->Has(call->device_index, LibraryShapeOf(s));
}

AttentionTensor LibraryTensorOf(const Heads& heads) {
  return {heads.data, heads.strides.batch, heads.strides.head, heads.strides.row};
}

// What both directions give the library; `workspace` holds what it asks for until the call's kernels are
// queued.
AttentionProblem ProblemOf(const MicaCall* call, const Shape& s, const Heads& query, const Heads& key,
                           const Heads& value, const Heads& output, void* log_sum,
                           std::optional<mica::kit::Workspace>& workspace) {
  AttentionProblem problem;
  problem.device = call->device_index;
  problem.stream = call->stream;
  problem.shape = LibraryShapeOf(s);
  problem.scale = s.scale;
  problem.query = LibraryTensorOf(query), problem.key = LibraryTensorOf(key);
  problem.value = LibraryTensorOf(value), problem.output = LibraryTensorOf(output);
  problem.log_sum = static_cast<float*>(log_sum);
  problem.workspace = [call, &workspace](size_t size) {
    workspace.emplace(call, static_cast<int64_t>(size));
    return workspace->data();
  };
  return problem;
}

void Give(MicaValue* result, OwnedTensor tensor) {
  *result = {};
  result->tag = tensor.get() != nullptr ? MICA_VALUE_TENSOR : MICA_VALUE_NONE;
  result->u.tensor = tensor.release();
}

// --- Mica's own kernels; they throw NotImplemented for a width that they do not have

void LaunchForward(const MicaCall* call, const Shape& s, const Heads& q, const Heads& k, const Heads& v,
                   const Mask& mask, const Heads& out, void* log_sum) {
  if (!s.HasKernels()) throw NotImplemented();
  const Choice choice{false,
                      q.aligned && k.aligned && v.aligned,
                      mask.data != nullptr || !(s.scale > 0),
                      s.dtype,
                      mask.dtype,
                      static_cast<int>(s.width)};
  const mica::kit::Kernel& kernel = choice.Find(call, "flash_forward");
  KitLaunch launch(call, kernel);
  for (const Heads& heads : {q, k, v}) AddHeads(launch, heads);
  AddMask(launch, mask);
  AddHeads(launch, out);
  launch.Pointer(log_sum);
  AddInts(launch, {s.heads, s.group, s.queries, s.keys});
  launch.Value(static_cast<float>(s.scale * kLog2E)).Value<int32_t>(s.causal);
  RunGroups(launch, s.batch * s.heads * BlocksOf(s.queries, choice.Rows()));
}

// What gradients are made of.
struct Gradients {
  Heads q, k, v, result, g;
  void* log_sum;
};

void LaunchBackward(const MicaCall* call, const Shape& s, const Gradients& from, const Mask& mask,
                    MicaBoolSpan output_mask, OwnedTensor (&made)[3]) {
  if (!s.HasKernels()) throw NotImplemented();
  const Choice choice{true,       from.q.aligned && from.k.aligned && from.v.aligned && from.g.aligned,
                      false,      s.dtype,
                      mask.dtype, static_cast<int>(s.width)};
  const int64_t rows = s.batch * s.heads * s.queries;
  const mica::kit::Workspace deltas(call, rows * static_cast<int64_t>(sizeof(float)));
  {
    KitLaunch launch(call, choice.Find(call, "flash_delta"));
    AddHeads(launch, from.g);
    AddHeads(launch, from.result);
    launch.Pointer(deltas.data());
    AddInts(launch, {s.heads, s.queries});
    launch.Value<int64_t>(rows);
    RunGroups(launch, BlocksOf(rows * 4, kThreads));
  }
  const auto add_inputs = [&](KitLaunch& launch) {
    for (const Heads& heads : {from.q, from.k, from.v, from.g}) AddHeads(launch, heads);
    AddMask(launch, mask);
    launch.Pointer(from.log_sum).Pointer(deltas.data());
  };
  const auto add_numbers = [&](KitLaunch& launch) {
    AddInts(launch, {s.heads, s.group, s.queries, s.keys});
    launch.Value(static_cast<float>(s.scale * kLog2E))
        .Value(static_cast<float>(s.scale))
        .Value<int32_t>(s.causal);
  };
  if (output_mask.data[0]) {
    KitLaunch launch(call, choice.Find(call, "flash_grad_query"));
    add_inputs(launch);
    AddHeads(launch, Heads(made[0].get()));
    add_numbers(launch);
    RunGroups(launch, s.batch * s.heads * BlocksOf(s.queries, choice.Rows()));
  }
  if (output_mask.data[1] || output_mask.data[2]) {
    KitLaunch launch(call, choice.Find(call, "flash_grad_key"));
    add_inputs(launch);
    for (int i = 1; i < 3; ++i) AddHeads(launch, Heads(made[i].get()));
    add_numbers(launch);
    RunGroups(launch, s.batch * (s.heads / s.group) * BlocksOf(s.keys, kWarps * 16));
  }
}

// False where the library does not take it.
bool RunLibraryBackward(const MicaCall* call, const Shape& s, const Gradients& from,
                        const OwnedTensor (&made)[3]) {
  std::optional<mica::kit::Workspace> workspace;
  AttentionProblem problem = ProblemOf(call, s, from.q, from.k, from.v, from.result, from.log_sum, workspace);
  problem.grad_output = LibraryTensorOf(from.g);
  problem.grad_query = LibraryTensorOf(Heads(made[0].get()));
  problem.grad_key = LibraryTensorOf(Heads(made[1].get()));
  problem.grad_value = LibraryTensorOf(Heads(made[2].get()));
  return the_library->Backward(problem);
}

}  // namespace

void FlashAttention(const MicaCall* call, MicaTensor* query, MicaTensor* key, MicaTensor* value,
                    MicaTensor* mask, int32_t is_causal, double scale, MicaValue* results) {
  const Shape s(call, query, key, value, is_causal != 0, scale);
  const Mask added(s, mask);
  const bool suits_library = SuitsLibrary(call, s, added);
  if (!suits_library && !s.HasKernels()) throw NotImplemented();
  const Heads q(query), k(key), v(value);
  OwnedTensor out = Laid(call, {s.batch, s.heads, s.queries, s.width}, OrderOf(query), s.dtype, true);
  const int64_t sizes[3] = {s.batch, s.heads, s.queries};
  OwnedTensor log_sum = OwnedTensor::Empty(sizes, 3, MICA_F32, mica::kit::PlaceOf(call));
  const Heads o(out.get(), true);
  void* const sums = TensorRef(log_sum.get()).data<void>();
  std::optional<mica::kit::Workspace> workspace;
  if (!suits_library || !the_library->Forward(ProblemOf(call, s, q, k, v, o, sums, workspace)))
    LaunchForward(call, s, q, k, v, added, o, sums);
  Give(&results[0], std::move(out));
  Give(&results[1], std::move(log_sum));
}

void FlashAttentionBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* query, MicaTensor* key,
                            MicaTensor* value, MicaTensor* mask, int32_t is_causal, double scale,
                            MicaTensor* output, MicaTensor* log_sum, MicaBoolSpan output_mask,
                            MicaValue* results) {
  const Shape s(call, query, key, value, is_causal != 0, scale);
  const Mask added(s, mask);
  const TensorRef gradient(grad_output), result(output), sums(log_sum);
  // Both are [batch, queries, heads, width].
  const auto fits = [&](const TensorRef& t) {
    return t.ndim() == 4 && t.dtype() == s.dtype && t.size(0) == s.batch && t.size(1) == s.queries &&
           t.size(2) == s.heads && t.size(3) == s.width;
  };
  const bool suits_library = SuitsLibrary(call, s, added);
  if (output_mask.data[3] || !fits(gradient) || !fits(result) || result.stride(3) != 1 ||
      sums.dtype() != MICA_F32 || !sums.contiguous() || sums.numel() != s.batch * s.heads * s.queries ||
      (!suits_library && !s.HasKernels()))
    throw NotImplemented();
  // A gradient that was expanded, as that of a sum, has no rows.
  OwnedTensor dense;
  if (gradient.stride(3) != 1) {
    dense = OwnedTensor::Empty(gradient.sizes(), 4, s.dtype, mica::kit::PlaceOf(call));
    mica::kit::pointwise::CopyTensor(call, dense.get(), grad_output);
  }
  const Gradients given{Heads(query),
                        Heads(key),
                        Heads(value),
                        Heads(result, true),
                        Heads(dense.get() ? dense.get() : grad_output, true),
                        sums.data<void>()};
  OwnedTensor made[3];
  // Kernels make gradients of keys and values together, the library all three.
  const bool wanted[3] = {output_mask.data[0] != 0, output_mask.data[1] || output_mask.data[2],
                          output_mask.data[1] || output_mask.data[2]};
  for (int i = 0; i < 3; ++i)
    if (wanted[i] || suits_library)
      made[i] =
          Laid(call, {s.batch, i == 0 ? s.heads : s.heads / s.group, i == 0 ? s.queries : s.keys, s.width},
               kHeadsInside, s.dtype, false);
  if (!suits_library || !RunLibraryBackward(call, s, given, made))
    LaunchBackward(call, s, given, added, output_mask, made);
  for (int i = 0; i < 3; ++i) Give(&results[i], output_mask.data[i] ? std::move(made[i]) : OwnedTensor());
  Give(&results[3], OwnedTensor());
}

void RegisterAttention(mica::plugin::Registrar& registrar, Devices& devices, Attention* library) {
  the_devices = &devices;
  the_library = library;
  registrar.Kernel<FlashAttention>("_flash_attention");
  registrar.Kernel<FlashAttentionBackward>("_flash_attention_backward");
}

}  // namespace gpu
