// Distances between rows: _cdist, its gradient and pdist in the norms of order 0, 1, 2 and infinity,
// without the differences in memory. Other orders, half types and what is recorded go by the composition.
#ifndef MICA_PLUGINS_CPU_REDUCE_DISTANCES_H_
#define MICA_PLUGINS_CPU_REDUCE_DISTANCES_H_

#include <mica/plugin.h>

namespace mica::cpu {

MicaTensor* Cdist(const MicaCall* call, MicaTensor* x1, MicaTensor* x2, double p);
MicaTensor* CdistBackward(const MicaCall* call, MicaTensor* grad, MicaTensor* x1, MicaTensor* x2, double p,
                          MicaTensor* cdist);
MicaTensor* Pdist(const MicaCall* call, MicaTensor* self, double p);
void RegisterDistances(plugin::Registrar& registrar);

// Rows that a row is compared with at once, whatever their width.
template <class T>
inline constexpr int64_t kDistanceTile = 128 / static_cast<int64_t>(sizeof(T));

// out[j] = the distance of row x from row j of a tile; tile[i * kDistanceTile + j] is element i of row j, and
// 64-byte aligned.
template <class T>
using DistanceLoop = void (*)(const T* x, const T* tile, int64_t width, T* out);
// The loop of a norm, NULL for other orders; T is float or double.
template <class T>
DistanceLoop<T> DistanceLoopOf(double p);

// out[i] = the sum over j < count of weights[j] times what distances[j], from x to the rows[j], changes by
// x[i]; of order 2 the weights are divided by the distances. A row has kLeastWidth elements or more.
template <class T>
inline constexpr int64_t kLeastWidth = 64 / static_cast<int64_t>(sizeof(T));
template <class T>
using DistanceGradientLoop = void (*)(const T* x, const T* rows, const T* weights, const T* distances,
                                      int64_t count, int64_t width, T* out);
// The loop of a norm of order 1, 2 or infinity, NULL for other orders.
template <class T>
DistanceGradientLoop<T> DistanceGradientLoopOf(double p);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_DISTANCES_H_
