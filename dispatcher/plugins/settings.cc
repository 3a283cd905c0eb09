#include "dispatcher/plugins/settings.h"

#include <limits>
#include <string>

#include "tensor/error.h"

namespace mica {
namespace {

struct Setting {
  std::string_view name;
  int64_t value;  // atomically
  int64_t most = 1;
};

// With the numbers that they have at first, as <mica/settings.h> says them, and may have at most; 0 at least.
Setting g_settings[] = {
    // clang-format off
    {MICA_SETTING_FLOAT32_MATMUL_PRECISION, 0, 2},
    {MICA_SETTING_FLOAT16_REDUCTION, 1},
    {MICA_SETTING_BFLOAT16_REDUCTION, 1},
    {MICA_SETTING_CONVOLUTION_LIBRARY, 1},
    {MICA_SETTING_ATTENTION_LIBRARY, 1},
    {MICA_SETTING_CONVOLUTION_TF32, 1},
    {MICA_SETTING_CONVOLUTION_BENCHMARK, 0},
    {MICA_SETTING_CONVOLUTION_BENCHMARK_LIMIT, 10, std::numeric_limits<int64_t>::max()},
    {MICA_SETTING_CONVOLUTION_DETERMINISTIC, 0},
    {MICA_SETTING_DETERMINISTIC, 0, 2},
    // clang-format on
};

Setting* Find(std::string_view name) {
  for (Setting& setting : g_settings)
    if (setting.name == name) return &setting;
  return nullptr;
}

Setting& Known(std::string_view name) {
  Setting* found = Find(name);
  MICA_CHECK_VALUE(found, "The setting (", std::string(name),
                   ") does not exist; <mica/settings.h> lists them.");
  return *found;
}

const int64_t* Place(MicaStr name) {
  const Setting* found = Find({name.data, static_cast<size_t>(name.size)});
  return found ? &found->value : nullptr;
}

}  // namespace

const MicaSettings* SettingsExtension() {
  static constexpr MicaSettings table = {{sizeof(MicaSettings), 1, 0}, &Place};
  return &table;
}

int64_t GetSetting(std::string_view name) { return mica_setting_read(&Known(name).value); }

void SetSetting(std::string_view name, int64_t value) {
  Setting& setting = Known(name);
  MICA_CHECK_VALUE(value >= 0 && value <= setting.most, "The number (", value, ") of the setting (",
                   std::string(name), ") is not from 0 to (", setting.most, ").");
  __atomic_store_n(&setting.value, value, __ATOMIC_RELAXED);
}

}  // namespace mica
