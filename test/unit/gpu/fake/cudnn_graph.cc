// libcudnn.so.9's graphs, imitated: convolutions of two dimensions, and the operations that attention
// consists of, computed one after the other on the host, in double and rounded as each tensor's type says.
//
// Heuristics propose two engines for attention, and four for a convolution of float, the last one as a
// fallback: 0 rounds to TF32 and 1 is exact, both take a workspace; 2 is exact and adds up in any order; 3 is
// exact and takes no workspace. Engine i takes 8 - 2 i milliseconds of the imitated driver's clock, and the
// host 20 to queue 3, which counts where the device has nothing to do meanwhile.
//
// It is stricter than cuDNN: an attribute that a descriptor lacks, a second one of the same name, sizes that
// do not fit, a tensor without memory and a plan that two threads run at once are errors. FAKE_CUDNN_REFUSES
// names what it refuses: "graph", "plan" (the first configuration alone) or "run". A plan's JSON is the
// address of its graph, which this process alone takes, and while the graph is there.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#define FAKE(type) extern "C" __attribute__((visibility("default"))) type

FAKE(int) FakeFailure();

namespace {

constexpr int kFallback = 2, kTensorCore = 0, kNondeterministic = 4;  // a heuristic, and notes
constexpr int64_t kConvolutionWorkspace = 4096;
constexpr int kBadParam = 2000, kNotSupported = 3000, kInternal = 4000;
constexpr int kFloat = 0, kHalf = 2, kInt32 = 4, kBfloat16 = 9, kBoolean = 11;
enum Kind { kPointwise = 0, kConfiguration = 3, kHeuristics = 4, kPlan = 5, kPointwiseOperation = 13 };
enum MoreKinds { kGraph = 15, kPack = 16, kTensor = 17, kMatmul = 18, kMatmulOperation = 19 };
enum EvenMoreKinds { kReduction = 21, kReductionOperation = 22, kReshapeOperation = 31 };
enum Convolutions { kConvolution = 1, kEngine = 2, kForward = 10, kWeightGradient = 11, kInputGradient = 12 };

std::atomic<int> g_descriptors{0}, g_plans{0}, g_restored{0}, g_runs{0};
std::atomic<int> g_engine{-1}, g_convolutions{0};
std::atomic<int64_t> g_workspace{100};  // of a plan
std::set<const void*> g_graphs;         // of finalized plans

struct Descriptor {
  explicit Descriptor(int kind) : kind(kind) { ++g_descriptors; }
  ~Descriptor() { --g_descriptors, g_graphs.erase(this); }
  const int kind;
  bool finalized = false;
  std::atomic<bool> is_running{false};          // a plan
  int number = 0;                               // of an engine
  std::map<int, std::vector<char>> attributes;  // bytes

  template <typename T>
  std::vector<T> All(int name) const {
    const std::vector<char>& bytes = attributes.at(name);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  template <typename T>
  T One(int name) const {
    return All<T>(name).at(0);
  }
  bool Flag(int name) const { return attributes.count(name) && One<char>(name); }
  const Descriptor& Of(int name) const { return *static_cast<const Descriptor*>(One<void*>(name)); }
};

size_t SizeOfType(int type) {
  switch (type) {
    case 0:   // a handle
    case 3:   // int64
    case 6:   // a pointer
    case 15:  // a descriptor
      return 8;
    case 2:
    case 24:
      return 1;
    default:
      return 4;
  }
}

bool Refuses(const char* what) {
  const char* refused = std::getenv("FAKE_CUDNN_REFUSES");
  return refused && std::string(refused) == what;
}

// --- numbers

double FromBits(uint16_t bits, int type) {
  if (type == kBfloat16) {
    const uint32_t wide = uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return static_cast<double>(value);
  }
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double value = exponent == 0    ? std::ldexp(mantissa, -24)
                       : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                        : std::ldexp(1024 + mantissa, exponent - 25);
  return bits >> 15 ? -value : value;
}

// The nearest number with so many bits of mantissa, of two the even one.
double Rounded(double x, int type) {
  if (type == kFloat) return static_cast<double>(static_cast<float>(x));
  if ((type != kHalf && type != kBfloat16) || x == 0 || !std::isfinite(x)) return x;
  int exponent;
  std::frexp(x, &exponent);
  const int least = type == kHalf ? -24 : -133;
  const int step = std::max(exponent - (type == kHalf ? 11 : 8), least);
  return std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
}

uint16_t ToBits(double x, int type) {  // of a number that is rounded and finite
  if (type == kBfloat16) {
    const float value = static_cast<float>(x);
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    return static_cast<uint16_t>(wide >> 16);
  }
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double size = std::fabs(x);
  int exponent;
  std::frexp(size, &exponent);
  if (size < std::ldexp(1, -14)) return static_cast<uint16_t>(sign | static_cast<int>(std::ldexp(size, 24)));
  const int mantissa = static_cast<int>(std::ldexp(size, 11 - exponent)) - 1024;
  return static_cast<uint16_t>(sign | (exponent + 14) << 10 | mantissa);
}

// --- tensors

using Sizes = std::array<int64_t, 4>;

struct Tensor {
  explicit Tensor(const Descriptor& d)
      : type(d.One<int>(901)), id(d.One<int64_t>(906)), is_virtual(d.Flag(907)), by_value(d.Flag(908)) {
    std::memcpy(sizes.data(), d.attributes.at(902).data(), sizeof sizes);
    std::memcpy(strides.data(), d.attributes.at(903).data(), sizeof strides);
  }
  int64_t Count() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  // The index of an element, and where it lies.
  Sizes IndexOf(int64_t i) const {
    Sizes index{};
    for (size_t d = 4; d-- > 0; i /= sizes[d]) index[d] = i % sizes[d];
    return index;
  }
  int64_t OffsetOf(const Sizes& index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < 4; ++d) offset += index[d] * strides[d];
    return offset;
  }
  // The number of an element whose index may be one of a larger tensor: dimensions of size 1 are
  // broadcast, heads are shared by as many.
  int64_t NumberOf(const Sizes& index, const Sizes& larger) const {
    int64_t number = 0;
    for (size_t d = 0; d < 4; ++d) number = number * sizes[d] + index[d] / (larger[d] / sizes[d]);
    return number;
  }
  int type;
  int64_t id;
  bool is_virtual, by_value;
  Sizes sizes{}, strides{};
};

// What a plan has computed so far.
class Machine {
 public:
  explicit Machine(std::map<int64_t, void*> memory) : memory_(std::move(memory)) {}

  void Run(const Descriptor& operation) {
    switch (operation.kind) {
      case kPointwiseOperation:
        return Pointwise(operation);
      case kMatmulOperation:
        return Matmul(operation);
      case kReductionOperation:
        return Reduce(operation);
      case kForward:
      case kInputGradient:
      case kWeightGradient:
        return Convolve(operation);
      default:
        return Reshape(operation);
    }
  }

 private:
  using Values = std::vector<double>;

  // The elements in the order of their indices.
  const Values& Read(const Tensor& t) {
    const auto known = values_.find(t.id);
    if (known != values_.end()) return known->second;
    const void* data = memory_.at(t.id);
    Values read(static_cast<size_t>(t.Count()));
    for (int64_t i = 0; i < t.Count(); ++i) {
      const auto offset = static_cast<size_t>(t.OffsetOf(t.IndexOf(i)));
      read[static_cast<size_t>(i)] = t.type == kFloat
                                         ? static_cast<double>(static_cast<const float*>(data)[offset])
                                         : FromBits(static_cast<const uint16_t*>(data)[offset], t.type);
    }
    return values_[t.id] = std::move(read);
  }
  void Write(const Tensor& t, Values values) {
    for (double& x : values) x = Rounded(x, t.type);
    if (!t.is_virtual) {
      void* data = memory_.at(t.id);
      for (int64_t i = 0; i < t.Count(); ++i) {
        const auto offset = static_cast<size_t>(t.OffsetOf(t.IndexOf(i)));
        const double x = values[static_cast<size_t>(i)];
        if (t.type == kFloat) {
          static_cast<float*>(data)[offset] = static_cast<float>(x);
        } else {
          static_cast<uint16_t*>(data)[offset] = ToBits(x, t.type);
        }
      }
    }
    values_[t.id] = std::move(values);
  }

  static double Apply(int mode, double x, double y, bool condition) {
    switch (mode) {
      case 0:
        return x + y;
      case 1:
        return x * y;
      case 6:
        return x / y;
      case 9:
        return x - y;
      case 13:
        return std::exp(x);
      case 15:
        return std::log(x);
      case 21:
        return x;
      case 303:
        return x >= y;
      case 601:
        return condition ? x : y;
      default:
        return NAN;
    }
  }
  void Pointwise(const Descriptor& operation) {
    const Descriptor& how = operation.Of(750);
    const Tensor x(operation.Of(751)), to(operation.Of(753));
    const int mode = how.One<int>(0);
    Values made;
    for (int64_t i = 0; i < to.Count(); ++i) {
      const Sizes index = to.IndexOf(i);
      const auto value = [&](int name) {
        if (!operation.attributes.count(name)) return 0.0;
        const Tensor t(operation.Of(name));
        return Read(t).at(static_cast<size_t>(t.NumberOf(index, to.sizes)));
      };
      made.push_back(mode == 501 ? static_cast<double>(index[static_cast<size_t>(how.One<int64_t>(9))])
                                 : Apply(mode, value(751), value(752), value(758) != 0));
    }
    Write(to, std::move(made));
  }

  void Matmul(const Descriptor& operation) {
    const Tensor a(operation.Of(1520)), b(operation.Of(1521)), c(operation.Of(1522));
    const Values &left = Read(a), right = Read(b);
    Values made;
    for (int64_t i = 0; i < c.Count(); ++i) {
      const Sizes index = c.IndexOf(i);
      double sum = 0;
      for (int64_t k = 0; k < a.sizes[3]; ++k) {
        const Sizes at{index[0], index[1], index[2], k}, bt{index[0], index[1], k, index[3]};
        sum +=
            left.at(static_cast<size_t>(a.NumberOf(at, {c.sizes[0], c.sizes[1], c.sizes[2], a.sizes[3]}))) *
            right.at(static_cast<size_t>(b.NumberOf(bt, {c.sizes[0], c.sizes[1], a.sizes[3], c.sizes[3]})));
      }
      made.push_back(sum);
    }
    Write(c, std::move(made));
  }

  void Reduce(const Descriptor& operation) {
    const Tensor x(operation.Of(1610)), y(operation.Of(1611));
    const bool is_most = operation.Of(1612).One<int>(1600) == 3;
    const Values& from = Read(x);
    Values made(static_cast<size_t>(y.Count()), is_most ? -INFINITY : 0);
    for (int64_t i = 0; i < x.Count(); ++i) {
      double& to = made.at(static_cast<size_t>(y.NumberOf(x.IndexOf(i), x.sizes)));
      const double value = from[static_cast<size_t>(i)];
      to = is_most ? std::fmax(to, value) : to + value;
    }
    Write(y, std::move(made));
  }

  void Reshape(const Descriptor& operation) {
    const Tensor x(operation.Of(2200)), y(operation.Of(2201));
    const Values& from = Read(x);
    std::map<int64_t, double> lies;
    for (int64_t i = 0; i < x.Count(); ++i) lies[x.OffsetOf(x.IndexOf(i))] = from[static_cast<size_t>(i)];
    Values made;
    for (int64_t i = 0; i < y.Count(); ++i) made.push_back(lies.at(y.OffsetOf(y.IndexOf(i))));
    Write(y, std::move(made));
  }

  // By the definition: each product of an image's element and a weight belongs to an element of the result.
  void Convolve(const Descriptor& operation) {
    const int kind = operation.kind;
    const Tensor image(operation.Of(kind == kForward ? 704 : kind == kInputGradient ? 710 : 716));
    const Tensor weight(operation.Of(kind == kForward ? 703 : kind == kInputGradient ? 709 : 715));
    const Tensor result(operation.Of(kind == kForward ? 705 : kind == kInputGradient ? 711 : 717));
    const Descriptor& how = operation.Of(kind == kForward ? 702 : kind == kInputGradient ? 708 : 714);
    const auto dilation = how.All<int64_t>(102), stride = how.All<int64_t>(103),
               padding = how.All<int64_t>(105);
    const Tensor& written = kind == kForward ? result : kind == kInputGradient ? image : weight;
    const Values none;
    const auto values = [&](const Tensor& t) -> const Values& { return &t == &written ? none : Read(t); };
    const Values &x = values(image), &w = values(weight), &y = values(result);
    Values made(static_cast<size_t>(written.Count()), 0);
    const int64_t filters = result.sizes[1] / (image.sizes[1] / weight.sizes[1]);  // of a group
    for (int64_t i = 0; i < result.Count(); ++i)
      for (int64_t j = 0; j < weight.Count() / weight.sizes[0]; ++j) {
        const Sizes at = result.IndexOf(i);
        Sizes of = weight.IndexOf(j);
        of[0] = at[1];
        const Sizes from{at[0], at[1] / filters * weight.sizes[1] + of[1],
                         at[2] * stride[0] + of[2] * dilation[0] - padding[0],
                         at[3] * stride[1] + of[3] * dilation[1] - padding[1]};
        if (from[2] < 0 || from[3] < 0 || from[2] >= image.sizes[2] || from[3] >= image.sizes[3]) continue;
        const auto a = static_cast<size_t>(image.NumberOf(from, image.sizes));
        const auto b = static_cast<size_t>(weight.NumberOf(of, weight.sizes));
        const auto c = static_cast<size_t>(i);
        if (kind == kForward) made[c] += x[a] * w[b];
        if (kind == kInputGradient) made[a] += w[b] * y[c];
        if (kind == kWeightGradient) made[b] += x[a] * y[c];
      }
    Write(written, std::move(made));
  }

  std::map<int64_t, void*> memory_;
  std::map<int64_t, Values> values_;
};

// A convolution that a graph consists of, or NULL.
const Descriptor* ConvolutionOf(const Descriptor& graph) {
  const auto* operation = static_cast<const Descriptor*>(graph.All<void*>(801).at(0));
  return operation->kind >= kForward && operation->kind <= kInputGradient ? operation : nullptr;
}

int TypeOf(const Descriptor& convolution) {
  const int image = convolution.kind == kForward ? 704 : convolution.kind == kInputGradient ? 710 : 716;
  return convolution.Of(image).One<int>(901);
}

void Pass(double milliseconds, double idle) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* clock = driver ? dlsym(driver, "FakeClock") : nullptr;
  if (clock) reinterpret_cast<void (*)(double, double)>(clock)(milliseconds, idle);
}

// Which attributes a descriptor of a kind needs.
std::vector<int> Needed(int kind) {
  switch (kind) {
    case kPointwise:
      return {0, 1};
    case kHeuristics:
      return {200, 201};
    case kPlan:
      return {400};
    case kPointwiseOperation:
      return {750, 751, 753};
    case kGraph:
      return {800, 801};
    case kPack:
      return {1000, 1001, 1003};
    case kTensor:
      return {900, 901, 902, 903, 906};
    case kMatmul:
      return {1500};
    case kMatmulOperation:
      return {1520, 1521, 1522, 1523};
    case kReduction:
      return {1600, 1601};
    case kReductionOperation:
      return {1610, 1611, 1612};
    case kReshapeOperation:
      return {2200, 2201};
    case kConvolution:
      return {100, 101, 102, 103, 104, 105, 106};
    case kForward:
      return {700, 701, 702, 703, 704, 705};
    case kInputGradient:
      return {706, 707, 708, 709, 710, 711};
    case kWeightGradient:
      return {712, 713, 714, 715, 716, 717};
    default:
      return {};
  }
}

// Of a plan that was made of a configuration, or of JSON.
const Descriptor* GraphOf(const Descriptor& plan) {
  if (!plan.attributes.count(405)) return &plan.Of(401).Of(300);
  const std::vector<char> json = plan.All<char>(405);
  void* graph = nullptr;
  std::sscanf(std::string(json.begin(), json.end()).c_str(), "%p", &graph);
  return static_cast<const Descriptor*>(graph);
}

// The configurations that a heuristic proposes.
int Propose(const Descriptor& heuristic, int64_t most, int64_t* count, void** to) {
  const Descriptor* const graph = &heuristic.Of(201);
  const bool is_convolution = ConvolutionOf(*graph) != nullptr,
             is_fallback = heuristic.One<int>(200) == kFallback;
  const int first = is_fallback ? 3 : 0, end = !is_convolution ? (is_fallback ? 3 : 2) : is_fallback ? 4 : 3;
  *count = end - first;
  if (*count > most) return kBadParam;
  for (int i = first; i < end; ++i) {
    auto& configuration = *static_cast<Descriptor*>(to[i - first]);
    const auto* bytes = reinterpret_cast<const char*>(&graph);
    configuration.attributes[300].assign(bytes, bytes + sizeof graph);
    configuration.number = i;
    configuration.finalized = true;
  }
  return 0;
}

// The engine of a configuration, and what is noted of it.
int EngineOf(const Descriptor& configuration, Descriptor* engine) {
  engine->number = ConvolutionOf(configuration.Of(300)) ? configuration.number : -1;
  engine->finalized = true;
  return 0;
}
int NotesOf(const Descriptor& engine, int64_t* count, int* notes) {
  *count = engine.number == 0 || engine.number == 2;
  if (*count) *notes = engine.number == 0 ? kTensorCore : kNondeterministic;
  return 0;
}

// One convolution by a plan's engine.
int RunConvolution(const Descriptor& plan, void* workspace) {
  const int number = plan.Of(401).number;
  if ((number == 3) == (workspace != nullptr)) return kBadParam;
  if (workspace) std::memset(workspace, 1, kConvolutionWorkspace);
  g_engine = number;
  ++g_convolutions;
  Pass(8 - 2 * number, number == 3 ? 20 : 0);
  return 0;
}

bool HasType(int type, std::initializer_list<int> types) {
  for (const int one : types)
    if (one == type) return true;
  return false;
}

}  // namespace

FAKE(int) FakeDescriptors() { return g_descriptors; }
FAKE(int) FakePlans() { return g_plans; }
FAKE(int) FakeRestored() { return g_restored; }
FAKE(int) FakeGraphRuns() { return g_runs; }
FAKE(int) FakeEngine() { return g_engine; }  // of the last convolution
FAKE(int) FakeConvolutions() { return g_convolutions; }
FAKE(void) FakeWorkspace(int64_t size) { g_workspace = size; }

FAKE(int) cudnnBackendCreateDescriptor(int kind, void** made) { return *made = new Descriptor(kind), 0; }
FAKE(int) cudnnBackendDestroyDescriptor(void* descriptor) {
  return delete static_cast<Descriptor*>(descriptor), 0;
}

FAKE(int)
cudnnBackendSetAttribute(void* descriptor, int name, int type, int64_t count, const void* values) {
  auto& d = *static_cast<Descriptor*>(descriptor);
  if (d.finalized || d.attributes.count(name)) return kBadParam;
  const auto* bytes = static_cast<const char*>(values);
  d.attributes[name].assign(bytes, bytes + static_cast<size_t>(count) * SizeOfType(type));
  if (type != 15) return 0;
  for (const void* other : d.All<void*>(name))
    if (!other || !static_cast<const Descriptor*>(other)->finalized) return kBadParam;
  return 0;
}

FAKE(int) cudnnBackendFinalize(void* descriptor) {
  auto& d = *static_cast<Descriptor*>(descriptor);
  for (const int name : Needed(d.kind))
    if (!d.attributes.count(name)) return kBadParam;
  if (d.finalized ||
      (d.kind == kTensor && !HasType(d.One<int>(901), {kFloat, kHalf, kInt32, kBfloat16, kBoolean})))
    return kBadParam;
  if (d.kind == kGraph && Refuses("graph")) return kNotSupported;
  if (d.kind == kGraph && ConvolutionOf(d) && TypeOf(*ConvolutionOf(d)) != kFloat) return kNotSupported;
  if (d.kind == kPlan && d.attributes.count(405)) {
    if (!g_graphs.count(GraphOf(d))) return kNotSupported;
    ++g_restored;
  } else if (d.kind == kPlan) {
    if (Refuses("plan") && d.Of(401).number == 0) return kInternal;
    g_graphs.insert(GraphOf(d));
    ++g_plans;
  }
  d.finalized = true;
  return 0;
}

// Configurations, engines, their notes, the size of a plan's workspace, or its JSON.
FAKE(int)
cudnnBackendGetAttribute(void* descriptor, int name, int, int64_t most, int64_t* count, void* values) {
  const auto& d = *static_cast<const Descriptor*>(descriptor);
  if (!d.finalized) return kBadParam;
  if (name == 405) {
    char json[32] = "";
    *count = std::snprintf(json, sizeof json, "%p", static_cast<const void*>(GraphOf(d)));
    if (most > 0) std::memcpy(values, json, static_cast<size_t>(std::min(most, *count)));
    return 0;
  }
  if (most < 1) return kBadParam;
  switch (name) {
    case 202:
      return Propose(d, most, count, static_cast<void**>(values));
    case 300:
      return *count = 1, EngineOf(d, *static_cast<Descriptor**>(values));
    case 402:
      *count = 1;
      *static_cast<int64_t*>(values) = !ConvolutionOf(*GraphOf(d)) ? g_workspace.load()
                                       : d.Of(401).number == 3     ? 0
                                                                   : kConvolutionWorkspace;
      return 0;
    case 1303:
      return NotesOf(d, count, static_cast<int*>(values));
    default:
      return kBadParam;
  }
}

FAKE(int) cudnnBackendExecute(void*, void* plan, void* pack) {
  if (Refuses("run")) return kNotSupported;
  if (const int failure = FakeFailure()) return failure;
  std::atomic<bool>& is_running = static_cast<Descriptor*>(plan)->is_running;
  if (is_running.exchange(true)) return kBadParam;
  const auto& given = *static_cast<const Descriptor*>(pack);
  const auto ids = given.All<int64_t>(1000);
  const auto pointers = given.All<void*>(1001);
  if (ids.size() != pointers.size() || !given.finalized) return kBadParam;
  std::map<int64_t, void*> memory;
  for (size_t i = 0; i < ids.size(); ++i)
    if (!pointers[i] || !memory.emplace(ids[i], pointers[i]).second) return kBadParam;
  Machine machine(std::move(memory));
  const Descriptor& graph = *GraphOf(*static_cast<const Descriptor*>(plan));
  auto* const workspace = given.One<void*>(1003);
  if (!ConvolutionOf(graph)) {
    std::memset(workspace, 0xff, 100);
  } else if (const int failure = RunConvolution(*static_cast<const Descriptor*>(plan), workspace)) {
    return failure;
  }
  for (const void* operation : graph.All<void*>(801)) machine.Run(*static_cast<const Descriptor*>(operation));
  is_running = false;
  return ++g_runs, 0;
}
