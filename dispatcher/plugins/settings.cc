#include "dispatcher/plugins/settings.h"

#include <cstdlib>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/plugins/status.h"
#include "tensor/error.h"

namespace mica {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

struct Setting {
  std::string name;
  int64_t value;  // atomically
  int64_t most = 1;
  int64_t least = 0;
};
struct Settings {
  std::mutex mutex;
  // What <mica/settings.h> names, with the numbers that they have at first, and may have at most.
  std::deque<Setting> known = {
      // clang-format off
      {MICA_SETTING_FLOAT32_MATMUL_PRECISION, 0, 2},
      {MICA_SETTING_FLOAT16_REDUCTION, 1},
      {MICA_SETTING_BFLOAT16_REDUCTION, 1},
      {MICA_SETTING_CONVOLUTION_LIBRARY, 1},
      {MICA_SETTING_ATTENTION_LIBRARY, 1},
      {MICA_SETTING_CONVOLUTION_TF32, 1},
      {MICA_SETTING_CONVOLUTION_BENCHMARK, 0},
      {MICA_SETTING_CONVOLUTION_BENCHMARK_LIMIT, 10, kMost},
      {MICA_SETTING_CONVOLUTION_DETERMINISTIC, 0},
      {MICA_SETTING_DETERMINISTIC, 0, 2},
      // clang-format on
  };
  std::deque<Setting> options;  // that plugins declared; what is in either stays where it is
};
Settings& AllSettings() {
  static auto* settings = new Settings();  // never destroyed: kernels read them until the end
  return *settings;
}

Setting* Find(std::string_view name) {
  Settings& all = AllSettings();
  const std::lock_guard lock(all.mutex);
  for (std::deque<Setting>* list : {&all.known, &all.options})
    for (Setting& setting : *list)
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
  const Setting* found = Find(TextOf(name));
  return found ? &found->value : nullptr;
}

// What MICA_PLUGIN_OPTIONS says of the option: "acme.npu.fast_math=1,acme.npu.cores=4".
std::optional<std::string> InEnvironment(std::string_view name) {
  const char* const options = std::getenv("MICA_PLUGIN_OPTIONS");
  for (const absl::string_view option : absl::StrSplit(options ? options : "", ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(option, absl::MaxSplits('=', 1));
    if (absl::StripAsciiWhitespace(parts.first) == absl::string_view(name.data(), name.size()))
      return std::string(absl::StripAsciiWhitespace(parts.second));
  }
  return std::nullopt;
}

const int64_t* DeclareOption(MicaStr given, int64_t first) {
  const std::string name(TextOf(given));
  if (const Setting* found = Find(name)) return &found->value;
  if (name.find('.') == std::string::npos) {
    HostWarn(absl::StrCat("A plugin declares the option (", name,
                          "), whose name does not begin with the plugin's, as in acme.npu.fast_math."));
    return nullptr;
  }
  int64_t value = first;
  if (const std::optional<std::string> set = InEnvironment(name); set && !absl::SimpleAtoi(*set, &value)) {
    HostWarn(absl::StrCat("MICA_PLUGIN_OPTIONS gives the option (", name, ") the value (", *set,
                          "), which is no number; it has (", first, ")."));
    value = first;
  }
  Settings& all = AllSettings();
  const std::lock_guard lock(all.mutex);
  return &all.options.emplace_back(Setting{name, value, kMost, std::numeric_limits<int64_t>::min()}).value;
}

}  // namespace

const MicaSettings* SettingsExtension() {
  static constexpr MicaSettings table = {{sizeof(MicaSettings), 1, 1}, &Place, &DeclareOption};
  return &table;
}

int64_t GetSetting(std::string_view name) { return mica_setting_read(&Known(name).value); }

void SetSetting(std::string_view name, int64_t value) {
  Setting& setting = Known(name);
  MICA_CHECK_VALUE(value >= setting.least && value <= setting.most, "The number (", value,
                   ") of the setting (", std::string(name), ") is not from (", setting.least, ") to (",
                   setting.most, ").");
  __atomic_store_n(&setting.value, value, __ATOMIC_RELAXED);
}

std::map<std::string, int64_t> PluginOptions() {
  Settings& all = AllSettings();
  const std::lock_guard lock(all.mutex);
  std::map<std::string, int64_t> options;
  for (const Setting& option : all.options) options[option.name] = mica_setting_read(&option.value);
  return options;
}

void SetPluginOption(std::string_view name, int64_t value) {
  const auto declared = [&] { return PluginOptions().count(std::string(name)) != 0; };
  if (!declared())
    for (const PluginInfo& plugin : Plugins())
      if (plugin.state == PluginState::kFound && name.starts_with(plugin.manifest.name + "."))
        LoadPlugin(plugin.path).IgnoreError();  // whose reason `mica doctor` has
  MICA_CHECK_VALUE(declared(), "No plugin that is loaded declares the option (", std::string(name),
                   "). Those that are declared: ", PluginOptions().empty() ? "none." : "",
                   absl::StrJoin(PluginOptions(), ", ", [](std::string* out, const auto& option) {
                     absl::StrAppend(out, "(", option.first, ")");
                   }));
  SetSetting(name, value);
}

}  // namespace mica
