// The two streams, their states, and the default generators.
#include "tensor/generator.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "tensor/error.h"

namespace mica {

namespace {

uint64_t EntropySeed() {
  std::random_device device;
  // 53 bits, as torch: the seed survives a trip through a Python float.
  return ((static_cast<uint64_t>(device()) << 32) | device()) & 0x1fffffffffffffull;
}

// torch's CPUGeneratorImplState, byte for byte.
struct TorchMtState {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t state[624];
  double normal_x;
  double normal_y;  // the double sample that waits
  double normal_rho;
  int32_t normal_is_valid;
  int32_t padding;
  float next_float_normal;
  uint8_t has_float_normal;
  uint8_t padding_2[3];
};
static_assert(sizeof(TorchMtState) == 5056);

struct PhiloxState {
  uint64_t seed;
  uint64_t offset;
  double double_normal;
  float float_normal;
  uint8_t has_double_normal;
  uint8_t has_float_normal;
  uint8_t padding[2];
};
static_assert(sizeof(PhiloxState) == 32);
constexpr size_t kTorchPhiloxState = 16;  // seed and offset alone

template <typename T>
std::string BytesOf(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void Generator::ManualSeed(uint64_t seed) {
  std::lock_guard<std::mutex> lock(mutex_);
  next_double_normal.reset();
  next_float_normal.reset();
  SeedStream(seed);
}

uint64_t Generator::InitialSeed() {
  std::lock_guard<std::mutex> lock(mutex_);
  return StreamSeed();
}

uint64_t Generator::Seed() {
  const uint64_t seed = EntropySeed();
  ManualSeed(seed);
  return seed;
}

std::string Generator::GetState() {
  std::lock_guard<std::mutex> lock(mutex_);
  return StateBytes();
}

void Generator::SetState(std::string_view state) {
  std::lock_guard<std::mutex> lock(mutex_);
  SetStateBytes(state);
}

Generator* Generator::Clone() {
  std::lock_guard<std::mutex> lock(mutex_);
  Generator* copy = CloneStream();
  copy->next_double_normal = next_double_normal;
  copy->next_float_normal = next_float_normal;
  return copy;
}

void Generator::Fill64(uint64_t* out, int64_t count) {
  // Both words of each result first lie in its place, high word first.
  auto* words = reinterpret_cast<unsigned char*>(out);
  uint32_t buffer[256];
  for (int64_t done = 0; done < count;) {
    const int64_t n = std::min<int64_t>(count - done, 128);
    Fill32(buffer, 2 * n);
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t value = static_cast<uint64_t>(buffer[2 * i]) << 32 | buffer[2 * i + 1];
      std::memcpy(words + (done + i) * 8, &value, 8);
    }
    done += n;
  }
}

Mt19937Generator::Mt19937Generator(Device device, uint64_t seed) : Generator(device) {
  Mt19937Generator::SeedStream(seed);
}

void Mt19937Generator::SeedStream(uint64_t seed) {
  seed_ = seed;
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kN; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  left_ = 1;
  next_ = 0;
}

namespace {

// Loops of a fixed length over copies, which the compiler turns into vectors.
constexpr int kRun = 16;

inline uint32_t Twist(uint32_t u, uint32_t v) {
  const uint32_t y = (u & 0x80000000u) | (v & 0x7fffffffu);
  return (y >> 1) ^ (-(v & 1) & 0x9908b0dfu);
}

// at[i] = far[i] ^ Twist(at[i], at[i + 1]) for i below n, in order; `far` is at least a
// run away from what is written.
void TwistRun(uint32_t* at, const uint32_t* far, int n) {
  int i = 0;
  for (; i + kRun <= n; i += kRun) {
    uint32_t u[kRun], v[kRun], w[kRun];
    std::memcpy(u, at + i, sizeof(u));
    std::memcpy(v, at + i + 1, sizeof(v));
    std::memcpy(w, far + i, sizeof(w));
    for (int k = 0; k < kRun; ++k) w[k] ^= Twist(u[k], v[k]);
    std::memcpy(at + i, w, sizeof(w));
  }
  for (; i < n; ++i) at[i] = far[i] ^ Twist(at[i], at[i + 1]);
}

inline uint32_t Temper(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

void TemperRun(const uint32_t* words, uint32_t* out, int64_t n) {
  int64_t i = 0;
  for (; i + kRun <= n; i += kRun) {
    uint32_t w[kRun];
    std::memcpy(w, words + i, sizeof(w));
    for (int k = 0; k < kRun; ++k) w[k] = Temper(w[k]);
    std::memcpy(out + i, w, sizeof(w));
  }
  for (; i < n; ++i) out[i] = Temper(words[i]);
}

}  // namespace

void Mt19937Generator::NextBlock() {
  constexpr int kM = 397;
  uint32_t* s = state_.data();
  TwistRun(s, s + kM, kN - kM);
  TwistRun(s + kN - kM, s, kM - 1);
  s[kN - 1] = s[kM - 1] ^ Twist(s[kN - 1], s[0]);
  left_ = kN;
  next_ = 0;
}

uint32_t Mt19937Generator::Random32() {
  if (--left_ == 0) NextBlock();
  return Temper(state_[next_++]);
}

void Mt19937Generator::Fill32(uint32_t* out, int64_t count) {
  while (count > 0) {
    *out++ = Random32();  // begins a block where one is due
    --count;
    const int64_t run = std::min<int64_t>(count, left_ - 1);
    TemperRun(state_.data() + next_, out, run);
    left_ -= static_cast<int32_t>(run);
    next_ += static_cast<uint32_t>(run);
    out += run;
    count -= run;
  }
}

std::string Mt19937Generator::StateBytes() const {
  TorchMtState s{};
  s.seed = seed_;
  s.left = left_;
  s.seeded = 1;
  s.next = next_;
  std::copy(state_.begin(), state_.end(), s.state);
  s.normal_y = next_double_normal.value_or(0);
  s.normal_is_valid = next_double_normal.has_value();
  s.next_float_normal = next_float_normal.value_or(0);
  s.has_float_normal = next_float_normal.has_value();
  return BytesOf(s);
}

void Mt19937Generator::SetStateBytes(std::string_view state) {
  MICA_CHECK(state.size() == sizeof(TorchMtState), "The state has ", state.size(),
             " bytes; expected a state of mt19937, which has ", sizeof(TorchMtState), ".");
  TorchMtState s;
  std::memcpy(&s, state.data(), sizeof s);
  // A block's first word is drawn with `left` at 624 and `next` at 0.
  const bool fresh = s.left == 1 && s.next == 0;
  const bool ok = s.seeded == 1 && s.left >= 1 && s.left <= kN &&
                  (fresh || s.next == static_cast<uint64_t>(kN + 1 - s.left));
  MICA_CHECK(ok, "The state is not one of mt19937: its counters (left ", s.left, ", next ", s.next,
             ", seeded ", s.seeded, ") do not fit together.");
  seed_ = s.seed;
  left_ = s.left;
  next_ = static_cast<uint32_t>(s.next);
  for (int i = 0; i < kN; ++i) state_[i] = static_cast<uint32_t>(s.state[i]);
  next_double_normal.reset();
  next_float_normal.reset();
  if (s.normal_is_valid) next_double_normal = s.normal_y;
  if (s.has_float_normal) next_float_normal = s.next_float_normal;
}

Generator* Mt19937Generator::CloneStream() const {
  auto* copy = new Mt19937Generator(device(), seed_);
  copy->left_ = left_;
  copy->next_ = next_;
  copy->state_ = state_;
  return copy;
}

PhiloxGenerator::PhiloxGenerator(Device device, uint64_t seed, uint64_t offset)
    : Generator(device), seed_(seed), offset_(offset) {}

std::array<uint32_t, 4> PhiloxGenerator::Block(uint64_t seed, uint64_t block, uint64_t subsequence) {
  uint32_t key0 = static_cast<uint32_t>(seed);
  uint32_t key1 = static_cast<uint32_t>(seed >> 32);
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                               static_cast<uint32_t>(subsequence), static_cast<uint32_t>(subsequence >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

uint32_t PhiloxGenerator::Random32() {
  const uint64_t index = offset_ / 4;
  if (index != block_index_) {
    block_ = Block(seed_, index);
    block_index_ = index;
  }
  return block_[offset_++ % 4];
}

void PhiloxGenerator::Fill32(uint32_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = Random32();
}

std::pair<uint64_t, uint64_t> PhiloxGenerator::SetAside(int64_t count) {
  MICA_CHECK_VALUE(count >= 0, "The number of words (", count, ") to set aside is negative.");
  const uint64_t first = offset_;
  offset_ += static_cast<uint64_t>(count);
  return {seed_, first};
}

void PhiloxGenerator::SeedStream(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
  block_index_ = UINT64_MAX;
}

std::string PhiloxGenerator::StateBytes() const {
  PhiloxState s{};
  s.seed = seed_;
  s.offset = offset_;
  s.double_normal = next_double_normal.value_or(0);
  s.float_normal = next_float_normal.value_or(0);
  s.has_double_normal = next_double_normal.has_value();
  s.has_float_normal = next_float_normal.has_value();
  return BytesOf(s);
}

void PhiloxGenerator::SetStateBytes(std::string_view state) {
  MICA_CHECK(state.size() == sizeof(PhiloxState) || state.size() == kTorchPhiloxState, "The state has ",
             state.size(), " bytes; expected a state of philox4x32-10, which has ", sizeof(PhiloxState),
             ", or torch's of ", kTorchPhiloxState, ".");
  PhiloxState s{};
  std::memcpy(&s, state.data(), state.size());
  seed_ = s.seed;
  offset_ = s.offset;
  block_index_ = UINT64_MAX;
  next_double_normal.reset();
  next_float_normal.reset();
  if (s.has_double_normal) next_double_normal = s.double_normal;
  if (s.has_float_normal) next_float_normal = s.float_normal;
}

Generator* PhiloxGenerator::CloneStream() const { return new PhiloxGenerator(device(), seed_, offset_); }

namespace {

struct Defaults {
  std::mutex mutex;
  std::optional<uint64_t> seed;  // of the last ManualSeedAll
  std::map<std::pair<int, int>, Generator*> generators;
};

Defaults& GetDefaults() {
  static Defaults* defaults = new Defaults();
  return *defaults;
}

}  // namespace

Generator* MakeGenerator(std::string_view algorithm, Device device) {
  if (algorithm == "mt19937") return new Mt19937Generator(device);
  if (algorithm == "philox4x32-10" || algorithm == "philox") return new PhiloxGenerator(device);
  MICA_THROW(kValue, "The generator algorithm (", absl::string_view(algorithm.data(), algorithm.size()),
             ") is unknown; expected \"mt19937\" or \"philox4x32-10\".");
}

Generator& DefaultGenerator(Device device) {
  Defaults& defaults = GetDefaults();
  std::lock_guard<std::mutex> lock(defaults.mutex);
  Generator*& slot = defaults.generators[{device.backend, device.index}];
  if (slot == nullptr) {
    slot = MakeGenerator(device.is_cpu() ? "mt19937" : "philox4x32-10", device);
    slot->ManualSeed(defaults.seed ? *defaults.seed : EntropySeed());
  }
  return *slot;
}

void ManualSeedAll(uint64_t seed) {
  Defaults& defaults = GetDefaults();
  std::lock_guard<std::mutex> lock(defaults.mutex);
  defaults.seed = seed;
  for (auto& [device, generator] : defaults.generators) generator->ManualSeed(seed);
}

}  // namespace mica
