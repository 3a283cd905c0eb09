// Random generators: a stream of 32-bit words with a seed, a device, a state
// that can be read and set, and a mutex.
//
// Mt19937Generator is the CPU's default and follows torch's CPU stream word for
// word; its state is torch's 5,056 bytes. PhiloxGenerator (Philox 4x32-10,
// Salmon et al. 2011, counter-based as in curand) is for GPUs and by name: its
// word i depends on seed and i alone. Distributions are in random.h. The C ABI's
// opaque MicaGenerator is this class.
//
// Functions that lock take the mutex themselves; the others need it held.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <mica/abi.h>
#include "tensor/device.h"

struct MicaGenerator {};

namespace mica {

class Generator : public MicaGenerator {
 public:
  Generator(const Generator&) = delete;
  void Retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  std::mutex& mutex() { return mutex_; }
  Device device() const { return device_; }
  virtual const char* algorithm() const = 0;  // "mt19937", "philox4x32-10"

  // These lock.
  void ManualSeed(uint64_t seed);
  uint64_t InitialSeed();
  uint64_t Seed();  // seeds from the system's entropy and returns the seed
  std::string GetState();
  void SetState(std::string_view state);  // throws kRuntime unless of this algorithm's size and form
  Generator* Clone();                     // one reference, the caller's

  // These need the mutex held.
  virtual uint32_t Random32() = 0;
  uint64_t Random64() {  // the first word is the high one, as in torch
    const uint64_t high = Random32();
    return high << 32 | Random32();
  }
  virtual void Fill32(uint32_t* out, int64_t count) = 0;
  void Fill64(uint64_t* out, int64_t count);
  // The second value of the last Box-Muller pair, part of the state.
  std::optional<double> next_double_normal;
  std::optional<float> next_float_normal;

  static Generator* FromAbi(MicaGenerator* g) { return static_cast<Generator*>(g); }

 protected:
  explicit Generator(Device device) : device_(device) {}
  virtual ~Generator() = default;
  virtual void SeedStream(uint64_t seed) = 0;
  virtual uint64_t StreamSeed() const = 0;
  virtual std::string StateBytes() const = 0;
  virtual void SetStateBytes(std::string_view state) = 0;
  virtual Generator* CloneStream() const = 0;

 private:
  std::atomic<uint64_t> refs_{1};
  std::mutex mutex_;
  const Device device_;
};

class Mt19937Generator final : public Generator {
 public:
  explicit Mt19937Generator(Device device = {}, uint64_t seed = 5489);
  const char* algorithm() const override { return "mt19937"; }
  uint32_t Random32() override;
  void Fill32(uint32_t* out, int64_t count) override;

 private:
  static constexpr int kN = 624;
  void SeedStream(uint64_t seed) override;
  uint64_t StreamSeed() const override { return seed_; }
  std::string StateBytes() const override;
  void SetStateBytes(std::string_view state) override;
  Generator* CloneStream() const override;
  void NextBlock();

  uint64_t seed_ = 0;
  int32_t left_ = 1;  // words of the block that are left, plus one
  uint32_t next_ = 0;
  std::array<uint32_t, kN> state_;
};

class PhiloxGenerator final : public Generator {
 public:
  explicit PhiloxGenerator(Device device = {}, uint64_t seed = 0, uint64_t offset = 0);
  const char* algorithm() const override { return "philox4x32-10"; }
  uint32_t Random32() override;
  void Fill32(uint32_t* out, int64_t count) override;
  uint64_t offset() const { return offset_; }  // words drawn
  // Draws `count` words without making them: (seed, offset of the first). Needs the mutex held.
  std::pair<uint64_t, uint64_t> SetAside(int64_t count);
  // The four words of counter `block` under `seed`.
  static std::array<uint32_t, 4> Block(uint64_t seed, uint64_t block, uint64_t subsequence = 0);

 private:
  void SeedStream(uint64_t seed) override;
  uint64_t StreamSeed() const override { return seed_; }
  std::string StateBytes() const override;
  void SetStateBytes(std::string_view state) override;
  Generator* CloneStream() const override;

  uint64_t seed_;
  uint64_t offset_;
  std::array<uint32_t, 4> block_{};
  uint64_t block_index_ = UINT64_MAX;  // which block `block_` holds
};

// A device's default generator, seeded from the system's entropy or by the last
// ManualSeedAll: mt19937 on the CPU, philox elsewhere. Lives for good.
Generator& DefaultGenerator(Device device);
// Seeds every default generator, also those made later.
void ManualSeedAll(uint64_t seed);
// A new generator by algorithm name; one reference, the caller's. Throws kValue
// for an unknown name.
Generator* MakeGenerator(std::string_view algorithm, Device device);

}  // namespace mica
