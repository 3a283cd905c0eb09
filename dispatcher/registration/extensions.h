// Tables that plugins offer each other and the binding, by name: "mica.autograd".
//
// A plugin offers one by its scope (Scope::AddExtension), so that it is there as soon as the
// plugin's kernels are, never before, and gone while the plugin is disabled. Who asks knows the
// table's type from the header that the two share.
#pragma once

#include <atomic>
#include <string_view>

namespace mica {

// Where the table of that name is, NULL while nobody offers it. The place itself stays.
const std::atomic<const void*>& ExtensionPlace(std::string_view name);

// The table that the plugin `provides` ("layer:Autograd") offers, the plugin opened on first use. NULL where
// there is none.
const void* ProvidedExtension(const std::atomic<const void*>& place, std::string_view provides);

// For scopes.
void PublishExtension(std::string_view name, const void* table);

}  // namespace mica
