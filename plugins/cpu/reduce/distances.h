// Distances between rows: _cdist and pdist in the norms of order 1, 2 and infinity, without the
// differences in memory. Other orders, half types and what is recorded go by the composition.
#ifndef MICA_PLUGINS_CPU_REDUCE_DISTANCES_H_
#define MICA_PLUGINS_CPU_REDUCE_DISTANCES_H_

#include <mica/plugin.h>

namespace mica::cpu {

MicaTensor* Cdist(const MicaCall* call, MicaTensor* x1, MicaTensor* x2, double p);
MicaTensor* Pdist(const MicaCall* call, MicaTensor* self, double p);
void RegisterDistances(plugin::Registrar& registrar);

// out[j] = the distance of row x from the rows[j], which are dense and `width` long.
template <class T>
using DistanceLoop = void (*)(const T* x, const T* rows, int64_t count, int64_t width, T* out);
// The loop of a norm, NULL for other orders; T is float or double.
template <class T>
DistanceLoop<T> DistanceLoopOf(double p);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_DISTANCES_H_
