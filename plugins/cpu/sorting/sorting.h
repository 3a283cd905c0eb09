// Sorting operators of the CPU backend.
#ifndef MICA_PLUGINS_CPU_SORTING_SORTING_H_
#define MICA_PLUGINS_CPU_SORTING_SORTING_H_

#include <mica/plugin.h>

namespace mica::cpu {

void RegisterSorting(plugin::Registrar& registrar);
void RegisterSearching(plugin::Registrar& registrar);
void RegisterSelection(plugin::Registrar& registrar);
void RegisterConsecutive(plugin::Registrar& registrar);

// Both are stable: of equal elements the earlier comes first.
void SortStable(const MicaCall* call, MicaTensor* self, MicaOptInt stable, int64_t dim, int32_t descending,
                MicaTensor* values, MicaTensor* indices);
void TopK(const MicaCall* call, MicaTensor* self, int64_t k, int64_t dim, int32_t largest, int32_t sorted,
          MicaTensor* values, MicaTensor* indices);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_SORTING_SORTING_H_
