// MICA_PRIVATE_STRUCT stands in front of what no plugin may know of a struct of the host's. Builds with
// MICA_SHUFFLE (the sanitized ones) put a number there that is no address: a plugin that knows the members
// behind it reads that.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef MICA_SHUFFLE
#define MICA_PRIVATE_STRUCT uint64_t shuffled_ = 0x5a5a5a5a5a5a5a5a
inline constexpr size_t kMicaShuffledBytes = 8;
#else
#define MICA_PRIVATE_STRUCT static_assert(true)
inline constexpr size_t kMicaShuffledBytes = 0;
#endif
