// The 8- and 16-bit integer lanes; the primitives stand in lanes_int-inl.h.
// Integers gain nothing from AVX-512 that these loops could use, so two
// instruction sets do.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/engine/lanes/lanes_int_narrow.cc"
#include "hwy/foreach_target.h"
//
#include "plugins/cpu/engine/lanes/lanes_int-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

const PrimitiveTable* IntNarrowTables(int32_t dtype) {
  static const PrimitiveTable tables[] = {MakeIntTable<uint8_t>(), MakeIntTable<int8_t>(),
                                          MakeIntTable<uint16_t>(), MakeIntTable<int16_t>()};
  return &tables[dtype - MICA_U8];
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(IntNarrowTables);
const PrimitiveTable* ChooseIntNarrowTable(int32_t dtype) {
  return HWY_DYNAMIC_DISPATCH(IntNarrowTables)(dtype);
}
}  // namespace mica::cpu
#endif
