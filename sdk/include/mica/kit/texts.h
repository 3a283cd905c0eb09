// The kernel texts, C in OpenCL's words, as strings.
#pragma once

namespace mica {
namespace kit {

// clang-format off
inline constexpr char kLanesText[] =
#include <mica/kit/kernels/lanes.cl>
    ;
inline constexpr char kFloatText[] =
#include <mica/kit/kernels/float.cl>
    ;
inline constexpr char kComplexText[] =
#include <mica/kit/kernels/complex.cl>
    ;
inline constexpr char kIntegerText[] =
#include <mica/kit/kernels/integer.cl>
    ;
inline constexpr char kPointwiseText[] =
#include <mica/kit/kernels/pointwise.cl>
    ;
inline constexpr char kPointwiseListText[] =
#include <mica/kit/kernels/pointwise_list.cl>
    ;
inline constexpr char kReduceText[] =
#include <mica/kit/kernels/reduce.cl>
    ;
inline constexpr char kScanText[] =
#include <mica/kit/kernels/scan.cl>
    ;
inline constexpr char kGatherText[] =
#include <mica/kit/kernels/gather.cl>
    ;
inline constexpr char kAtomicsText[] =
#include <mica/kit/kernels/atomics.cl>
    ;
inline constexpr char kScatterText[] =
#include <mica/kit/kernels/scatter.cl>
    ;
inline constexpr char kScatterCountsText[] =
#include <mica/kit/kernels/scatter_counts.cl>
    ;
inline constexpr char kWindowText[] =
#include <mica/kit/kernels/window.cl>
    ;
inline constexpr char kGemmText[] =
#include <mica/kit/kernels/gemm.cl>
    ;
inline constexpr char kSmallProductText[] =
#include <mica/kit/kernels/small_product.cl>
    ;
inline constexpr char kCopyRowsText[] =
#include <mica/kit/kernels/copy_rows.cl>
    ;
inline constexpr char kConvolutionText[] =
#include <mica/kit/kernels/convolution.cl>
    ;
inline constexpr char kResamplingText[] =
#include <mica/kit/kernels/resampling.cl>
    ;
inline constexpr char kReadersText[] =
#include <mica/kit/kernels/readers.cl>
    ;
inline constexpr char kUnpoolingText[] =
#include <mica/kit/kernels/unpooling.cl>
    ;
inline constexpr char kPlanesText[] =
#include <mica/kit/kernels/planes.cl>
    ;
inline constexpr char kSamplingText[] =
#include <mica/kit/kernels/sampling.cl>
    ;
inline constexpr char kGridText[] =
#include <mica/kit/kernels/grid.cl>
    ;
inline constexpr char kLossText[] =
#include <mica/kit/kernels/loss.cl>
    ;
inline constexpr char kCrossEntropyText[] =
#include <mica/kit/kernels/cross_entropy.cl>
    ;
inline constexpr char kNormalizationText[] =
#include <mica/kit/kernels/normalization.cl>
    ;
inline constexpr char kNormalizationForwardText[] =
#include <mica/kit/kernels/normalization_forward.cl>
    ;
inline constexpr char kNormalizationBackwardText[] =
#include <mica/kit/kernels/normalization_backward.cl>
    ;
inline constexpr char kNormalizationColumnsText[] =
#include <mica/kit/kernels/normalization_columns.cl>
    ;
inline constexpr char kBatchNormText[] =
#include <mica/kit/kernels/batch_norm.cl>
    ;
inline constexpr char kBatchNormForwardText[] =
#include <mica/kit/kernels/batch_norm_forward.cl>
    ;
inline constexpr char kBatchNormBackwardText[] =
#include <mica/kit/kernels/batch_norm_backward.cl>
    ;
inline constexpr char kPhiloxText[] =
#include <mica/kit/kernels/philox.cl>
    ;
inline constexpr char kDropoutText[] =
#include <mica/kit/kernels/dropout.cl>
    ;
inline constexpr char kRandomText[] =
#include <mica/kit/kernels/random.cl>
    ;
inline constexpr char kSortKeyText[] =
#include <mica/kit/kernels/sort_key.cl>
    ;
inline constexpr char kSortText[] =
#include <mica/kit/kernels/sort.cl>
    ;
inline constexpr char kRadixText[] =
#include <mica/kit/kernels/radix.cl>
    ;
inline constexpr char kRadixRowsText[] =
#include <mica/kit/kernels/radix_rows.cl>
    ;
inline constexpr char kRadixPassesText[] =
#include <mica/kit/kernels/radix_passes.cl>
    ;
inline constexpr char kRadixDifferencesText[] =
#include <mica/kit/kernels/radix_differences.cl>
    ;
inline constexpr char kSelectText[] =
#include <mica/kit/kernels/select.cl>
    ;
inline constexpr char kCountText[] =
#include <mica/kit/kernels/count.cl>
    ;
inline constexpr char kBinsText[] =
#include <mica/kit/kernels/bins.cl>
    ;
inline constexpr char kCountUpText[] =
#include <mica/kit/kernels/count_up.cl>
    ;
inline constexpr char kFewBinsText[] =
#include <mica/kit/kernels/few_bins.cl>
    ;
inline constexpr char kSearchText[] =
#include <mica/kit/kernels/search.cl>
    ;
// The functions of mica/maths, put together by the build (cmake/MathsText.cmake).
inline constexpr char kMathsText[] =
#include <mica/kit/kernels/maths.cl>
    ;
// clang-format on

}  // namespace kit
}  // namespace mica
