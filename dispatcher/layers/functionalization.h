// The layer Functionalize, for those who enter its frames (the Python binding): one object
// stands for one call of a function whose writes and views are taken out.
//
// Inside, tensors are values that nobody writes; a write gives a tensor another value
// (docs/concepts/functionalize.md). The border is here: Lift on the way in, Result and
// Updates on the way out. On one thread, innermost first, as FrameScope.
#pragma once

#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace mica {

class Functionalization {
 public:
  virtual ~Functionalization() = default;  // leaves the frame
  // The function's inputs as tensors of the frame, in order; once.
  virtual std::vector<Tensor> Lift(TensorSpan inputs) = 0;
  // For each input the value that the function gave it, undefined where it wrote nothing.
  virtual std::vector<Tensor> Updates() = 0;
  // Writes what changed of the inputs, if `inputs`, and of what the function captured and wrote;
  // shapes and strides too.
  virtual void Apply(bool inputs) = 0;
  // What stands behind a result. After Apply, of inputs and views of them, the input itself
  // and real views of it, where it was written.
  virtual Tensor Result(const Tensor& t) = 0;
};

// Enters a frame. With `remove_views`, views too become copies. Loads the layer on first use.
std::unique_ptr<Functionalization> Functionalize(bool remove_views);

// What the layer offers.
inline constexpr const char* kFunctionalizationExtension = "mica.functionalization";
struct FunctionalizationLayer {
  std::unique_ptr<Functionalization> (*make)(bool remove_views);
};

}  // namespace mica
