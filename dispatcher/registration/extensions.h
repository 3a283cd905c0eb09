// Tables that plugins offer each other and the binding, by name: "mica.autograd".
//
// A plugin offers one by its scope (Scope::AddExtension), so that it is there as soon as the plugin's
// kernels are, never before, and gone while the plugin is disabled. Who asks knows the table's type, which
// begins with a MicaTable, from the header of sdk/ that the two share. Plugins find them through the ABI.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include <mica/abi.h>

namespace mica {

// Where the table of that name is, NULL while nobody offers it. The place itself stays.
const std::atomic<const void*>& ExtensionPlace(std::string_view name);

// The table that the plugin `provides` ("layer:Autograd") offers, the plugin opened on first use. NULL where
// there is none.
const void* ProvidedExtension(const std::atomic<const void*>& place, std::string_view provides);

// The same by the name of the extension, if the table's minor version is not below the least.
const MicaTable* PublicExtension(std::string_view name, uint32_t minimum_minor);

// For scopes.
struct Extension {
  std::string name;
  const MicaTable* table;
};
// Whose it is by the name of the plugin that offers it now, "" if nobody does.
std::string ExtensionOwner(std::string_view name);
void PublishExtension(const Extension& extension, std::string_view owner);
void WithdrawExtension(const Extension& extension);

}  // namespace mica
