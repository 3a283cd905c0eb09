#include "tensor/poison.h"

#include <cstdlib>
#include <cstring>

namespace mica::internal {

namespace {

// The byte, or -1 for none.
int ByteOfEnvironment() {
  const char* text = std::getenv("MICA_POISON_MEMORY");
  if (text == nullptr || *text == '\0') return -1;
  char* end = nullptr;
  const long byte = std::strtol(text, &end, 0);
  return *end == '\0' && byte >= 0 && byte <= 255 ? static_cast<int>(byte) : -1;
}

int TheByte() {
  static const int byte = ByteOfEnvironment();
  return byte;
}

}  // namespace

bool PoisonsMemory() { return TheByte() >= 0; }

void Poison(void* block, int64_t size) {
  if (PoisonsMemory()) std::memset(block, TheByte(), static_cast<size_t>(size));
}

}  // namespace mica::internal
