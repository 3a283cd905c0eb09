#include "plugins/cpu/engine/short_rows.h"

#include "plugins/cpu/engine/lanes/lanes.h"

namespace mica::cpu {
namespace {

// From this width on a call for each row costs little.
constexpr int64_t kShort = 32;

struct Wide {
  uint64_t parts[2];
};

// kWidth 0: any; kColumn 0: one element for all columns, 1: columns side by side, -1: any.
template <class T, int kWidth, int kColumn, bool kGather>
void Copy(char* strided, char* dense, const RowsOf& m) {
  const int64_t width = kWidth != 0 ? kWidth : m.width;
  const int64_t column = kColumn >= 0 ? kColumn * static_cast<int64_t>(sizeof(T)) : m.column;
  T* other = reinterpret_cast<T*>(dense);
  for (int64_t r = 0; r < m.rows; ++r, strided += m.row, other += width)
    for (int64_t j = 0; j < width; ++j) {
      T* one = reinterpret_cast<T*>(strided + j * column);
      if constexpr (kGather)
        other[j] = *one;
      else
        *one = other[j];
    }
}

template <class T, int kWidth, bool kGather>
void ByColumn(char* strided, char* dense, const RowsOf& m) {
  if (m.column == static_cast<int64_t>(sizeof(T))) return Copy<T, kWidth, 1, kGather>(strided, dense, m);
  if (kGather && m.column == 0) return Copy<T, kWidth, 0, kGather>(strided, dense, m);
  Copy<T, kWidth, -1, kGather>(strided, dense, m);
}

template <class T, bool kGather>
void ByWidth(char* strided, char* dense, const RowsOf& m) {
  switch (m.width) {
    case 2:
      return ByColumn<T, 2, kGather>(strided, dense, m);
    case 3:
      return ByColumn<T, 3, kGather>(strided, dense, m);
    case 4:
      return ByColumn<T, 4, kGather>(strided, dense, m);
    case 8:
      return ByColumn<T, 8, kGather>(strided, dense, m);
    case 16:
      return ByColumn<T, 16, kGather>(strided, dense, m);
    default:
      return ByColumn<T, 0, kGather>(strided, dense, m);
  }
}

template <bool kGather>
void BySize(char* strided, char* dense, const RowsOf& m) {
  switch (m.size) {
    case 1:
      return ByWidth<uint8_t, kGather>(strided, dense, m);
    case 2:
      return ByWidth<uint16_t, kGather>(strided, dense, m);
    case 4:
      return ByWidth<uint32_t, kGather>(strided, dense, m);
    case 8:
      return ByWidth<uint64_t, kGather>(strided, dense, m);
    default:
      return ByWidth<Wide, kGather>(strided, dense, m);
  }
}

}  // namespace

void GatherRows(void* dst, const void* src, const RowsOf& m) {
  auto* to = static_cast<char*>(dst);
  const auto* from = static_cast<const char*>(src);
  if (m.width < kShort && m.rows > 1) return BySize<true>(const_cast<char*>(from), to, m);
  for (int64_t r = 0; r < m.rows; ++r)
    GatherStrided(to + r * m.width * m.size, from + r * m.row, m.column, m.size, m.width);
}

void ScatterRows(void* dst, const void* src, const RowsOf& m) {
  auto* to = static_cast<char*>(dst);
  const auto* from = static_cast<const char*>(src);
  if (m.width < kShort && m.rows > 1) return BySize<false>(to, const_cast<char*>(from), m);
  for (int64_t r = 0; r < m.rows; ++r)
    ScatterStrided(to + r * m.row, m.column, from + r * m.width * m.size, m.size, m.width);
}

}  // namespace mica::cpu
