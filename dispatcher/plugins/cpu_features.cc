#include "dispatcher/plugins/cpu_features.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace mica {
namespace {

struct Feature {
  const char* name;
  bool present;
};

// The compiler takes a feature's name as a literal only, hence the macro.
const std::vector<Feature>& Features() {
#if defined(__x86_64__)
#define HAS(name) \
  { name, __builtin_cpu_supports(name) != 0 }
  static const std::vector<Feature> features = [] {
    __builtin_cpu_init();
    return std::vector<Feature>{HAS("sse3"),       HAS("ssse3"),      HAS("sse4.1"),     HAS("sse4.2"),
                                HAS("popcnt"),     HAS("aes"),        HAS("pclmul"),     HAS("avx"),
                                HAS("fma"),        HAS("bmi"),        HAS("bmi2"),       HAS("avx2"),
                                HAS("avx512f"),    HAS("avx512bw"),   HAS("avx512cd"),   HAS("avx512dq"),
                                HAS("avx512vl"),   HAS("avx512ifma"), HAS("avx512vbmi"), HAS("avx512vnni"),
                                HAS("avx512bf16"), HAS("gfni"),       HAS("vpclmulqdq")};
  }();
#undef HAS
#elif defined(__aarch64__)
  // Bits of AT_HWCAP and AT_HWCAP2, from Linux's uapi/asm/hwcap.h.
  static const std::vector<Feature> features = [] {
    const unsigned long a = getauxval(AT_HWCAP), b = getauxval(AT_HWCAP2);
    return std::vector<Feature>{
        {"asimd", (a >> 1 & 1) != 0},    {"aes", (a >> 3 & 1) != 0},  {"crc32", (a >> 7 & 1) != 0},
        {"atomics", (a >> 8 & 1) != 0},  {"fphp", (a >> 9 & 1) != 0}, {"asimdhp", (a >> 10 & 1) != 0},
        {"asimddp", (a >> 20 & 1) != 0}, {"sve", (a >> 22 & 1) != 0}, {"sve2", (b >> 1 & 1) != 0},
        {"i8mm", (b >> 13 & 1) != 0},    {"bf16", (b >> 14 & 1) != 0}};
  }();
#else
  static const std::vector<Feature> features;
#endif
  return features;
}

}  // namespace

absl::Status CheckCpuFeatures(std::string_view list) {
  const std::vector<std::string> needed = absl::StrSplit(std::string(list), ',', absl::SkipEmpty());
  for (const std::string& name : needed) {
    const Feature* found = nullptr;
    for (const Feature& f : Features())
      if (f.name == name) found = &f;
    if (!found)
      return absl::FailedPreconditionError(
          absl::StrCat("needs the CPU feature (", name, "), which this Mica does not know"));
    if (!found->present)
      return absl::FailedPreconditionError(
          absl::StrCat("needs the CPU feature (", name, "), which this machine lacks"));
  }
  return absl::OkStatus();
}

}  // namespace mica
