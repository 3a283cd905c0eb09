/* What a program has set of the ways to compute, for kernels to read, in C11: whether products of float32
 * may be rounded, whether results have to be the same in every run. mica::plugin::Setting in <mica/plugin.h>
 * is the C++17 face.
 *
 * The host offers this table as the extension MICA_SETTINGS_EXTENSION. A setting is one number of the
 * process under a name; mica.backends, mica.set_float32_matmul_precision and
 * mica.use_deterministic_algorithms write it. Append-only: a name is given once and keeps its meaning.
 */
#ifndef MICA_SETTINGS_H_
#define MICA_SETTINGS_H_

#include <mica/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_SETTINGS_EXTENSION "mica.settings"

typedef struct MicaSettings {
  MicaTable head; /* 1.0 */
  /* Where the number of a setting is: it stays there for good, and other threads may write it at any time,
   * so read it with mica_setting_read at each call. NULL for a name that this host does not know. */
  const int64_t* (*find)(MicaStr name);
  /* Since 1.1, which to ask `extension` for. Declares an option of the plugin's own, a number under a name
   * that begins with the plugin's ("acme.npu.fast_math"), for its users to set: with MICA_PLUGIN_OPTIONS in
   * the environment, or mica.set_plugin_option. `first` is its number where nobody has. The place is as of
   * `find`, which knows the name from then on; declared again, it is the same. NULL, and a warning, for a
   * name that has no dot; where the environment gives what is no number, a warning, and `first` stays. */
  const int64_t* (*option)(MicaStr name, int64_t first);
} MicaSettings;

static inline int64_t mica_setting_read(const int64_t* place) {
  return __atomic_load_n(place, __ATOMIC_RELAXED);
}

/* The names, each with what its number is where nobody has set it. */

/* How exact products of float32 matrices are: 0 float32 itself, 1 ten bits of mantissa (TF32) or what is as
 * exact, 2 eight bits (bfloat16) or more. First 0. */
#define MICA_SETTING_FLOAT32_MATMUL_PRECISION "float32_matmul_precision"
/* Whether partial sums of a product of float16, or bfloat16, may be rounded to that type. First 1. */
#define MICA_SETTING_FLOAT16_REDUCTION "matmul_reduced_precision_float16"
#define MICA_SETTING_BFLOAT16_REDUCTION "matmul_reduced_precision_bfloat16"
/* Whether convolutions may be computed by a vendor's library, and attention: by cuDNN. First 1. */
#define MICA_SETTING_CONVOLUTION_LIBRARY "convolution_library"
/* Whether attention may, where the former allows it. First 1. */
#define MICA_SETTING_ATTENTION_LIBRARY "attention_library"
/* Whether convolutions of float32 may round their operands to TF32. First 1. */
#define MICA_SETTING_CONVOLUTION_TF32 "convolution_tf32"
/* Whether a convolution of new sizes tries its algorithms and keeps the fastest, and how many it tries (0:
 * all). First 0, and 10. */
#define MICA_SETTING_CONVOLUTION_BENCHMARK "convolution_benchmark"
#define MICA_SETTING_CONVOLUTION_BENCHMARK_LIMIT "convolution_benchmark_limit"
/* Whether convolutions have to give the same bits in every run, and gradients of attention. First 0. */
#define MICA_SETTING_CONVOLUTION_DETERMINISTIC "convolution_deterministic"
/* Whether every operator has to give the same bits in every run: 0 no, 1 yes, 2 where it can, else it warns.
 * A kernel that cannot answers NOT_IMPLEMENTED, and the CPU computes. First 0. */
#define MICA_SETTING_DETERMINISTIC "deterministic"

MICA_LAYOUT_ASSERT(offsetof(MicaSettings, find) == sizeof(MicaTable));
MICA_LAYOUT_ASSERT(offsetof(MicaSettings, option) == sizeof(MicaTable) + 8);

#ifdef __cplusplus
}
#endif
#endif /* MICA_SETTINGS_H_ */
