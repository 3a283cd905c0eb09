// The host's side of <mica/settings.h>: numbers of the process, by name, that plugins' kernels read.
#pragma once

#include <cstdint>
#include <string_view>

#include <mica/settings.h>

namespace mica {

// The table that MicaHost::extension gives for MICA_SETTINGS_EXTENSION.
const MicaSettings* SettingsExtension();

// Throw a kValueError Error for a name that no setting has, and for a number that is none of its.
int64_t GetSetting(std::string_view name);
void SetSetting(std::string_view name, int64_t value);

}  // namespace mica
