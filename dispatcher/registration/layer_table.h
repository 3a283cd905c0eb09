// The tables that layers offer (sdk/include/mica/<layer>.h), as the core and the Python package find them: by
// name, as plugins do by MicaHost::extension.
#pragma once

#include <atomic>

#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/extensions.h"
#include "tensor/error.h"

namespace mica {

// Whether a table is one that this Mica was built for.
template <class Table>
bool IsOurTable(const MicaTable& head) {
  return head.major == 1 && head.struct_size >= sizeof(Table);
}

// The table of `extension`, whose plugin provides `layer` and is opened on first use. Where it is not there,
// an error that begins with `need`, "vmap needs the batched plugin.".
template <class Table>
const Table& LayerTable(const char* extension, const char* layer, const char* need) {
  static const std::atomic<const void*>& place = ExtensionPlace(extension);
  const void* table = ProvidedExtension(place, layer);
  MICA_CHECK(table, need, " ", MissingProviderSentence(layer));
  const auto& head = *static_cast<const MicaTable*>(table);
  MICA_CHECK(IsOurTable<Table>(head), need, " The one that is loaded offers (", extension, ") in version (",
             head.major, ".", head.minor, ") of (", head.struct_size,
             ") bytes, and this Mica asks for version 1 of (", sizeof(Table),
             "); build or install the two together.");
  return *static_cast<const Table*>(table);
}

}  // namespace mica
