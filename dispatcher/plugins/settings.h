// The host's side of <mica/settings.h>: numbers of the process, by name, that plugins' kernels read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <mica/settings.h>

namespace mica {

// The table that MicaHost::extension gives for MICA_SETTINGS_EXTENSION.
const MicaSettings* SettingsExtension();

// Throw a kValueError Error for a name that no setting has, and for a number that is none of its.
int64_t GetSetting(std::string_view name);
void SetSetting(std::string_view name, int64_t value);

// The options that plugins have declared, with their numbers.
std::map<std::string, int64_t> PluginOptions();
// Opens the plugin whose name begins the option's, if it was found and not opened. Throws a kValueError Error
// where no plugin declares the option.
void SetPluginOption(std::string_view name, int64_t value);

}  // namespace mica
