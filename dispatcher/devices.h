// Device tables by backend, and the thread pool that a backend lends the host.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "mica/abi.h"

namespace mica {

// OK when the table has the right ABI and every mandatory function.
absl::Status CheckDeviceTable(const char* name, const MicaDeviceTable* table);
// Checks that every mandatory function is there, gives the backend its name and
// index, and puts the host's caching allocator over its memory.
absl::Status RegisterDeviceTable(const char* name, const MicaDeviceTable* table);
const MicaDeviceTable* DeviceTable(int backend);  // NULL if none

using HostParallelFor = void (*)(int64_t begin, int64_t end, int64_t grain,
                                 void (*body)(void* context, int64_t begin, int64_t end), void* context);
void SetParallelFor(HostParallelFor f);
HostParallelFor GetParallelFor();

}  // namespace mica
