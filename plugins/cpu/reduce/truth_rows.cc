// The loops of truth_rows.h over the elements' bits, piece by piece: the rest of a row is not read once it is
// decided.
#include "plugins/cpu/reduce/truth_rows.h"

#include <algorithm>

#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

constexpr int64_t kPiece = 4096;

// Of floats -0 is zero, too, and NaN is not.
template <class T, bool kFloating>
T Value(T bits) {
  return kFloating ? static_cast<T>(bits << 1) : bits;
}

// Whether a piece has an element that is zero (kAll), or that is not.
template <class T, bool kFloating, bool kAll>
bool Decides(const T* x, int64_t n) {
  T found = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T value = Value<T, kFloating>(x[i]);
    found = static_cast<T>(found | (kAll ? static_cast<T>(value == 0) : value));
  }
  return found != 0;
}

template <class T, bool kFloating, bool kAll>
void Rows(const DenseRows& rows, void* out, void*) {
  Patience patience(int64_t{1} << 22);
  for (int64_t r = 0; r < rows.rows; ++r) {
    const T* x = reinterpret_cast<const T*>(rows.data + r * rows.distance);
    bool decided = false;
    for (int64_t i = 0; i < rows.n && !decided; i += kPiece) {
      const int64_t n = std::min(kPiece, rows.n - i);
      decided = Decides<T, kFloating, kAll>(x + i, n);
      if (patience.Ends(n)) return;
    }
    static_cast<uint8_t*>(out)[r] = decided != kAll;
  }
}

template <class T, bool kFloating>
RowFold Choose(bool all) {
  return all ? Rows<T, kFloating, true> : Rows<T, kFloating, false>;
}

}  // namespace

RowFold TruthFoldOf(int32_t dtype, bool all) {
  if (IsComplex(dtype)) return nullptr;
  const bool floating = IsFloat(dtype);
  switch (DtypeSize(dtype)) {
    case 1:
      return floating ? nullptr : Choose<uint8_t, false>(all);
    case 2:
      return floating ? Choose<uint16_t, true>(all) : Choose<uint16_t, false>(all);
    case 4:
      return floating ? Choose<uint32_t, true>(all) : Choose<uint32_t, false>(all);
    default:
      return floating ? Choose<uint64_t, true>(all) : Choose<uint64_t, false>(all);
  }
}

}  // namespace mica::cpu
