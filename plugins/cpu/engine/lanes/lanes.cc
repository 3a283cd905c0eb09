// Lane tables by dtype, and the byte movers that need no instruction set of
// their own (baseline SSE4); contracts in lanes.h.
#include "plugins/cpu/engine/lanes/lanes.h"

#include <algorithm>
#include <cstring>

#include "plugins/cpu/engine/transpose.h"

namespace mica::cpu {

const PrimitiveTable* ChooseBoolTable(bool mask);
const PrimitiveTable* ChooseIntNarrowTable(int32_t dtype);
const PrimitiveTable* ChooseIntWideTable(int32_t dtype);
const PrimitiveTable* ChooseFloatTable(int32_t dtype);
const PrimitiveTable* ChooseComplexTable(int32_t dtype);
const PrimitiveTable* ChooseHalfTable(int32_t dtype);
const PrimitiveTable* ChooseInterleavedTable(int32_t dtype);
void ChooseMaths(int32_t dtype, PrimitiveTable* table);

namespace {

struct FloatTables {
  PrimitiveTable at[2];
  FloatTables() {
    for (int i = 0; i < 2; ++i) {
      at[i] = *ChooseFloatTable(MICA_F32 + i);
      ChooseMaths(MICA_F32 + i, &at[i]);
    }
  }
};

template <class T>
void Gather(void* dst, const char* src, int64_t stride, int64_t n) {
  T* d = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) std::memcpy(d + i, src + i * stride, sizeof(T));
}

template <class T>
void Scatter(char* dst, int64_t stride, const void* src, int64_t n) {
  const T* s = static_cast<const T*>(src);
  for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * stride, s + i, sizeof(T));
}

struct Wide16 {
  uint64_t half[2];
};

// In stores of whole vectors, which a loop over elements does not become at -O2.
template <class T>
void Fill(void* dst, const void* value, int64_t n) {
  constexpr int64_t kMany = 32 / sizeof(T);
  T many[kMany];
  for (T& one : many) std::memcpy(&one, value, sizeof(T));
  T* d = static_cast<T*>(dst);
  int64_t i = 0;
  for (; i + kMany <= n; i += kMany) std::memcpy(d + i, many, sizeof(many));
  for (; i < n; ++i) d[i] = many[0];
}

}  // namespace

const PrimitiveTable* LaneTable(int32_t dtype) {
  switch (dtype) {
    case MICA_BOOL:
      return ChooseBoolTable(false);
    case MICA_U8:
    case MICA_I8:
    case MICA_U16:
    case MICA_I16:
      return ChooseIntNarrowTable(dtype);
    case MICA_U32:
    case MICA_I32:
    case MICA_U64:
    case MICA_I64:
      return ChooseIntWideTable(dtype);
    case MICA_F32:
    case MICA_F64: {
      static const FloatTables tables;
      return &tables.at[dtype - MICA_F32];
    }
    case MICA_C64:
    case MICA_C128:
      return ChooseComplexTable(dtype);
    default:
      return nullptr;
  }
}

const PrimitiveTable* NarrowTable(int32_t dtype) {
  if (dtype == MICA_BF16 || dtype == MICA_F16) return ChooseHalfTable(dtype);
  return IsComplex(dtype) ? ChooseInterleavedTable(dtype) : nullptr;
}

const PrimitiveTable* MaskTable() { return ChooseBoolTable(true); }

namespace {

// By dtype: its name, the bytes of an element, the lane in which it is computed.
constexpr struct {
  const char* name;
  int8_t size;
  int8_t lane;
} kDtypes[MICA_DTYPE_COUNT] = {
    {"bool", 1, MICA_BOOL},         {"uint8", 1, MICA_U8},        {"int8", 1, MICA_I8},
    {"uint16", 2, MICA_U16},        {"int16", 2, MICA_I16},       {"uint32", 4, MICA_U32},
    {"int32", 4, MICA_I32},         {"uint64", 8, MICA_U64},      {"int64", 8, MICA_I64},
    {"float16", 2, MICA_F32},       {"bfloat16", 2, MICA_F32},    {"float32", 4, MICA_F32},
    {"float64", 8, MICA_F64},       {"complex64", 8, MICA_C64},   {"complex128", 16, MICA_C128},
    {"float8_e4m3fn", 1, MICA_F32}, {"float8_e5m2", 1, MICA_F32},
};

}  // namespace

const char* DtypeName(int32_t dtype) { return kDtypes[dtype].name; }
int64_t DtypeSize(int32_t dtype) { return kDtypes[dtype].size; }
int32_t LaneOf(int32_t dtype) { return dtype < 0 ? dtype : kDtypes[dtype].lane; }

namespace {

// Through a pointer, since a compiler that knows a bound of the size writes `rep movs`.
void* (*const volatile copy_bytes)(void*, const void*, size_t) = std::memcpy;

// The C library copies from 4 KB on by `rep movsb`, which takes 1.4 times as long as
// its vector loop where rows are written that lie apart.
void CopyRow(char* dst, const char* src, int64_t bytes) {
  constexpr int64_t kPiece = 2048;
  for (; bytes > kPiece; bytes -= kPiece, dst += kPiece, src += kPiece) copy_bytes(dst, src, kPiece);
  copy_bytes(dst, src, static_cast<size_t>(bytes));
}

}  // namespace

void GatherStrided(void* dst, const void* src, int64_t stride, int64_t size, int64_t n) {
  const char* s = static_cast<const char*>(src);
  if (stride == size) {
    CopyRow(static_cast<char*>(dst), s, n * size);
    return;
  }
  if (stride == 0) return Splat(dst, src, size, n);
  if (stride == -size) return Reverse(size, dst, src, n);
  if (stride == 2 * size) return EverySecond(size, dst, src, n);
  switch (size) {
    case 1:
      return Gather<uint8_t>(dst, s, stride, n);
    case 2:
      return Gather<uint16_t>(dst, s, stride, n);
    case 4:
      return Gather<uint32_t>(dst, s, stride, n);
    case 8:
      return Gather<uint64_t>(dst, s, stride, n);
    default:
      return Gather<Wide16>(dst, s, stride, n);
  }
}

void ScatterStrided(void* dst, int64_t stride, const void* src, int64_t size, int64_t n) {
  char* d = static_cast<char*>(dst);
  if (stride == size) {
    CopyRow(d, static_cast<const char*>(src), n * size);
    return;
  }
  switch (size) {
    case 1:
      return Scatter<uint8_t>(d, stride, src, n);
    case 2:
      return Scatter<uint16_t>(d, stride, src, n);
    case 4:
      return Scatter<uint32_t>(d, stride, src, n);
    case 8:
      return Scatter<uint64_t>(d, stride, src, n);
    default:
      return Scatter<Wide16>(d, stride, src, n);
  }
}

namespace {

void SplatShort(void* dst, const void* value, int64_t size, int64_t n) {
  switch (size) {
    case 1:
      return Fill<uint8_t>(dst, value, n);
    case 2:
      return Fill<uint16_t>(dst, value, n);
    case 4:
      return Fill<uint32_t>(dst, value, n);
    case 8:
      return Fill<uint64_t>(dst, value, n);
    default:
      return Fill<Wide16>(dst, value, n);
  }
}

}  // namespace

// What is long is filled by the C library's loops, whose vectors are as wide as the machine's.
void Splat(void* dst, const void* value, int64_t size, int64_t n) {
  constexpr int64_t kPiece = 2048;
  char* to = static_cast<char*>(dst);
  const int64_t bytes = n * size;
  if (bytes <= 2 * kPiece) return SplatShort(to, value, size, n);
  SplatShort(to, value, size, kPiece / size);
  if (std::memcmp(to, to + 1, static_cast<size_t>(size)) == 0) {
    std::memset(to, to[0], static_cast<size_t>(bytes));
  } else {
    for (int64_t at = kPiece; at < bytes; at += kPiece)
      copy_bytes(to + at, to, static_cast<size_t>(std::min(kPiece, bytes - at)));
  }
}

}  // namespace mica::cpu
