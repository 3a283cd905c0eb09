// uniform_, normal_, bernoulli_ and random_ from the device's Philox generator.
//
// The host sets words of the generator aside and the kernel makes them, so that a
// seed gives the same numbers whatever the device's width. Dense memory is filled in
// place, other memory through a dense copy.
#pragma once

#include <cmath>

#include <mica/kit/pointwise.h>

namespace mica {
namespace kit {
namespace random {

using plugin::TensorRef;

// One kind of draw: its name, the words of 32 bits that an element takes, the
// expression of kernels/random.cl, what it is called with, and what is computed for all
// elements of a work-item before.
struct Draw {
  const char* name;
  int words;
  const char* element;
  const char* parameters;
  const char* before = "";
};
inline constexpr Draw kUniform = {"uniform", 0, "uniform(UNIFORM(w, j), first, second)",
                                  "const LANE first, const LANE second"};
inline constexpr Draw kNormal = {"normal", 0, "(first + second * z[(j) / WORDS])",
                                 "const LANE first, const LANE second", "LANE z[PER]; normals(words, z);"};
inline constexpr Draw kBernoulli = {"bernoulli", 1, "((LANE)(w[j] < threshold))", "const ulong threshold"};
inline constexpr Draw kBernoulliEach = {"bernoulli_each", 1, "chance(w[j], p[i], raised)",
                                        "const global float* p, global int* raised"};
inline constexpr Draw kBelow = {"below", 1, "((LANE)(first + (long)below(w, j, range)))",
                                "const long first, const ulong range"};
inline constexpr Draw kBelowWide = {"below_wide", 2, kBelow.element, kBelow.parameters};

// Counters of the generator that the host sets aside, one for each work-item. In work that is recorded the
// kernel finds the generator's place at each replay in `recorded`, its last argument.
struct Counters {
  uint64_t seed = 0, first = 0;
  const uint64_t* recorded = nullptr;

  Counters(const MicaCall* call, MicaGenerator* generator, int64_t items) {
    const int64_t count =
        items * 4 + 3;  // three more, so that the first counter begins where a word may be used
    MicaRandomWords words = {};
    if (MICA_HAS(call->host, random_words))
      plugin::Check(call->host->random_words(generator, PlaceOf(call), count, &words));
    else
      plugin::Check(call->host->random_philox(generator, PlaceOf(call), count, &words.seed, &words.offset));
    seed = words.seed;
    first = (words.offset + 3) / 4;
    recorded = words.recorded;
  }
  // The text that makes the words, for kernels with RECORDED_PLACE behind their parameters.
  std::string Text() const { return (recorded ? Define("RECORDED", "1") : std::string()) + kPhiloxText; }
  void Place(Launch& launch) const {
    if (recorded) launch.Pointer(recorded);
  }
};

// Of the 2^32 words, how many stand for an event of probability p.
inline uint64_t ThresholdOf(double p) { return static_cast<uint64_t>(p * 4294967296.0); }

template <typename F>
inline void Run(const MicaCall* call, MicaTensor* self, MicaGenerator* generator, const Draw& draw,
                F&& set_arguments) {
  const TensorRef t(self);
  const Device& device = DeviceOf(call);
  CheckDtype(device, t.dtype());
  const bool is_float = t.dtype() >= MICA_F16;
  const int32_t lane = is_float ? LaneDtype(t.dtype()) : MICA_I64;
  const int words = draw.words > 0 ? draw.words : lane == MICA_F64 ? 2 : 1;
  const int64_t count = t.numel(), per = 4 / words, items = (count + per - 1) / per;
  if (count == 0) return;
  const Counters counters(call, generator, items);
  Key key("random");
  const bool small = count < (int64_t{1} << 31);
  key.Add(draw.name).Add(t.dtype()).Add(small).Add(counters.recorded != nullptr);
  const Kernel& kernel = FindKernel(device, key, "draw", call->name, [&] {
    const std::string suffix = Suffix(t.dtype());
    return LanesText(device, {lane, 1}, small) + Define("PER", std::to_string(per)) +
           Define("STORE(v, p)", "STORE_" + suffix + "(v, p, 1)") + Define("ROUNDED", "rounded_" + suffix) +
           Define("PARAMETERS", "global E_" + suffix + "* out, " + draw.parameters) +
           Define("ELEMENT", "E_" + suffix) + Define("VALUE(w, j, i)", draw.element) +
           Define("BEFORE_ALL", draw.before) + counters.Text() + kRandomText;
  });
  std::unique_ptr<Workspace> dense;
  if (!t.contiguous()) dense = std::make_unique<Workspace>(call, count * t.itemsize());
  {
    Launch launch(call, kernel);
    launch.Pointer(dense ? dense->data() : t.data<void>());
    set_arguments(launch, lane);
    launch.Value(counters.seed).Value(counters.first).Value<uint64_t>(static_cast<uint64_t>(count));
    counters.Place(launch);
    launch.Run(items, device.is_wide ? 256 : 64);
  }
  if (dense) pointwise::CopyFromDense(call, self, dense->data());
}

inline void SetLane(Launch& launch, int32_t lane, double value) {
  MicaValue boxed = {};
  boxed.tag = MICA_VALUE_FLOAT;
  boxed.u.f = value;
  const LaneBytes number = NumberOf(boxed, lane);
  launch.Bytes(number.bytes, number.size);
}

inline void FloatsOnly(const MicaTensor* self) {
  if (DtypeOf(self) < MICA_F16 || DtypeOf(self) > MICA_F64) throw plugin::NotImplemented();
}

inline void Uniform(const MicaCall* call, MicaTensor* self, double from, double to,
                    MicaGenerator* generator) {
  FloatsOnly(self);
  MICA_PLUGIN_CHECK(from <= to, MICA_ERROR_RUNTIME,
                    "uniform_ needs `from` (" + std::to_string(from) + ") to be at most `to` (" +
                        std::to_string(to) + ").");
  Run(call, self, generator, kUniform, [&](Launch& launch, int32_t lane) {
    SetLane(launch, lane, from);
    SetLane(launch, lane, to);
  });
}

inline void Normal(const MicaCall* call, MicaTensor* self, double mean, double std,
                   MicaGenerator* generator) {
  FloatsOnly(self);
  MICA_PLUGIN_CHECK(std >= 0, MICA_ERROR_RUNTIME,
                    "normal_ needs a standard deviation (" + std::to_string(std) + ") of at least 0.");
  Run(call, self, generator, kNormal, [&](Launch& launch, int32_t lane) {
    SetLane(launch, lane, mean);
    SetLane(launch, lane, std);
  });
}

inline void Bernoulli(const MicaCall* call, MicaTensor* self, double p, MicaGenerator* generator) {
  MICA_PLUGIN_CHECK(p >= 0 && p <= 1, MICA_ERROR_RUNTIME,
                    "bernoulli_ needs a probability (" + std::to_string(p) + ") from 0 to 1.");
  Run(call, self, generator, kBernoulli,
      [&](Launch& launch, int32_t) { launch.Value<uint64_t>(ThresholdOf(p)); });
}

inline void BernoulliEach(const MicaCall* call, MicaTensor* self, MicaTensor* p, MicaGenerator* generator) {
  const TensorRef t(self);
  // The probabilities as dense floats in the order of the elements.
  const Workspace dense(call, t.numel() * 4);
  pointwise::CopyToDense(call, dense.data(), MICA_F32, p, self);
  const Raise raise(call, {MICA_ERROR_RUNTIME, "bernoulli_ needs probabilities from 0 to 1.", ""});
  Run(call, self, generator, kBernoulliEach,
      [&](Launch& launch, int32_t) { launch.Pointer(dense.data()).Pointer(raise.word()); });
  raise.Check();
}

inline void RunBelow(const MicaCall* call, MicaTensor* self, int64_t from, int64_t to,
                     MicaGenerator* generator) {
  MICA_PLUGIN_CHECK(from < to, MICA_ERROR_RUNTIME,
                    "random_ needs `from` (" + std::to_string(from) + ") to be less than `to` (" +
                        std::to_string(to) + ").");
  const uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  Run(call, self, generator, range <= (uint64_t{1} << 28) ? kBelow : kBelowWide,
      [&](Launch& launch, int32_t) { launch.Value<int64_t>(from).Value<uint64_t>(range); });
}

// The range of whole numbers that a dtype holds, as torch's random_.
inline int64_t LimitOf(int32_t dtype) {
  static constexpr int64_t kLimits[] = {2,
                                        int64_t{1} << 8,
                                        int64_t{1} << 7,
                                        int64_t{1} << 16,
                                        int64_t{1} << 15,
                                        int64_t{1} << 32,
                                        int64_t{1} << 31,
                                        INT64_MAX,
                                        INT64_MAX,
                                        (int64_t{1} << 11) + 1,
                                        (int64_t{1} << 8) + 1,
                                        (int64_t{1} << 24) + 1,
                                        (int64_t{1} << 53) + 1};
  Suffix(dtype);
  return kLimits[dtype];
}

inline void RandomFrom(const MicaCall* call, MicaTensor* self, int64_t from, MicaOptInt to,
                       MicaGenerator* generator) {
  RunBelow(call, self, from, to.has ? to.value : LimitOf(DtypeOf(self)), generator);
}
inline void RandomTo(const MicaCall* call, MicaTensor* self, int64_t to, MicaGenerator* generator) {
  RunBelow(call, self, 0, to, generator);
}
inline void Random(const MicaCall* call, MicaTensor* self, MicaGenerator* generator) {
  RunBelow(call, self, 0, LimitOf(DtypeOf(self)), generator);
}

inline void RegisterRandom(plugin::Registrar& registrar) {
  registrar.Kernel<&Uniform>("uniform_");
  registrar.Kernel<&Normal>("normal_");
  registrar.Kernel<&Bernoulli>("bernoulli_.float");
  registrar.Kernel<&BernoulliEach>("bernoulli_.Tensor");
  registrar.Kernel<&RandomFrom>("random_.from");
  registrar.Kernel<&RandomTo>("random_.to");
  registrar.Kernel<&Random>("random_");
}

}  // namespace random
}  // namespace kit
}  // namespace mica
