// FindPlan(): the process-wide map of all plans, which are never freed (there
// are as many as there are programs × dtypes in use). Class kernels keep their
// recent plans by thread before they ask here.
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "plugins/cpu/engine/plans/plan.h"

namespace mica::cpu {
namespace {

struct Entry {
  PlanRequest request;
  Plan plan;
};

static_assert(sizeof(PlanRequest) == 3 * 8 + 3 * 4 + 2 + 24 + 6 + 4);

bool Same(const PlanRequest& a, const PlanRequest& b) {
  return std::memcmp(&a, &b, sizeof(PlanRequest)) == 0;
}

uint64_t Hash(const PlanRequest& request) {
  uint64_t words[4];
  static_assert(sizeof(request.input_dtypes) + sizeof(request.output_dtypes) == 24);
  std::memcpy(words, request.input_dtypes, 24);
  uint64_t h = reinterpret_cast<uintptr_t>(request.code) ^ (static_cast<uint64_t>(request.lane) << 56);
  h ^= (words[0] * 0x9e3779b97f4a7c15u) ^ (words[2] * 0xc2b2ae3d27d4eb4fu) ^ words[1];
  h ^= (static_cast<uint64_t>(request.ones) << 32 | request.twos) * 0x165667b19e3779f9u;
  h *= 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

struct Hasher {
  size_t operator()(const PlanRequest& request) const { return Hash(request); }
};
struct Equal {
  bool operator()(const PlanRequest& a, const PlanRequest& b) const { return Same(a, b); }
};

const Entry* FindShared(const PlanRequest& request) {
  static std::mutex mutex;
  // Leaked on purpose: other threads may call until the process is gone.
  static auto& plans = *new std::unordered_map<PlanRequest, std::unique_ptr<Entry>, Hasher, Equal>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Entry>& entry = plans[request];
  if (entry == nullptr) {
    entry = std::make_unique<Entry>();
    entry->request = request;
    Compile(request, &entry->plan);
  }
  return entry.get();
}

}  // namespace

const Plan* FindPlan(const PlanRequest& request) { return &FindShared(request)->plan; }

}  // namespace mica::cpu
