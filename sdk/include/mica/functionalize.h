/* functionalize, for those who enter its frames (the Python package), in C11: one level stands for
 * one call of a function whose writes and views are taken out. Its plugin offers the table as the
 * extension MICA_FUNCTIONALIZE_EXTENSION. Append-only.
 *
 * Inside, tensors are values that nobody writes; a write gives a tensor another value. The border
 * is here: `lift` on the way in, `result` and `updates` on the way out. On one thread, innermost
 * first, as frames are.
 */
#ifndef MICA_FUNCTIONALIZE_H_
#define MICA_FUNCTIONALIZE_H_

#include <mica/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_FUNCTIONALIZE_EXTENSION "mica.functionalize"

typedef struct MicaFunctionalLevel MicaFunctionalLevel; /* opaque */

typedef struct MicaFunctionalize {
  MicaTable table;
  /* Enters a frame, which `leave` leaves. With `remove_views`, views too become copies. */
  MicaStatus (*enter)(int32_t remove_views, MicaFunctionalLevel** level);
  void (*leave)(MicaFunctionalLevel* level);
  /* The function's inputs as tensors of the frame, in order; once. `list` gets a list of tensors, as a
   * kernel's result does. */
  MicaStatus (*lift)(MicaFunctionalLevel* level, MicaTensorSpan inputs, MicaValue* list);
  /* For each input the value that the function gave it, NULL where it wrote nothing. */
  MicaStatus (*updates)(MicaFunctionalLevel* level, MicaValue* list);
  /* Writes what changed of the inputs, if `inputs`, and of what the function captured and wrote;
   * shapes and strides too. */
  MicaStatus (*apply)(MicaFunctionalLevel* level, int32_t inputs);
  /* What stands behind a result. After `apply`, of inputs and views of them, the input itself
   * and real views of it, where it was written. */
  MicaTensorResult (*result)(MicaFunctionalLevel* level, MicaTensor* t);
} MicaFunctionalize;

#ifdef __cplusplus
}
#endif
#endif /* MICA_FUNCTIONALIZE_H_ */
