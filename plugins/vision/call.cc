// Copies through the host's own operators.
#include "plugins/vision/call.h"

namespace mica::vision {
namespace {

OwnedTensor CallOne(void* handle, MicaValue* args, int64_t count) {
  MicaValue result{};
  plugin::Check(plugin::Host()->op_call_boxed(handle, args, count, &result, 1));
  return OwnedTensor(result.u.tensor);
}

void* Find(const char* name) {
  void* handle = nullptr;
  plugin::Check(plugin::Host()->op_find(plugin::Str(name), &handle));
  return handle;
}

OwnedTensor ToDType(MicaTensor* t, int32_t dtype) {
  static void* const handle = Find("mica::to.dtype");
  MicaValue args[5] = {};
  args[0].tag = MICA_VALUE_TENSOR;
  args[0].u.tensor = t;
  args[1].tag = MICA_VALUE_DTYPE;
  args[1].u.i = dtype;
  args[2].tag = args[3].tag = MICA_VALUE_BOOL;
  args[4].tag = MICA_VALUE_NONE;
  return CallOne(handle, args, 5);
}

}  // namespace

OwnedTensor Dense(MicaTensor* t, int32_t dtype) {
  static void* const handle = Find("mica::contiguous");
  const OwnedTensor converted = ToDType(t, dtype);
  MicaValue args[2] = {};
  args[0].tag = MICA_VALUE_TENSOR;
  args[0].u.tensor = converted.get();
  args[1].tag = MICA_VALUE_MEMORY_FORMAT;
  args[1].u.i = MICA_CONTIGUOUS;
  return CallOne(handle, args, 2);
}

std::string SizesOf(TensorRef t) {
  std::string text = "(";
  for (int d = 0; d < t.ndim(); ++d) text += (d ? ", " : "") + std::to_string(t.size(d));
  return text + ")";
}

void CheckDims(TensorRef t, int32_t ndim, const char* name, const char* meaning) {
  MICA_PLUGIN_CHECK(t.ndim() == ndim, MICA_ERROR_RUNTIME,
                    "Shape " + SizesOf(t) + " of `" + name + "` is not " + meaning + ".");
}

int32_t ComputeType(TensorRef t, const char* op) {
  switch (t.dtype()) {
    case MICA_F64:
      return MICA_F64;
    case MICA_F32:
    case MICA_F16:
    case MICA_BF16:
      return MICA_F32;
    default:
      MICA_PLUGIN_THROW(MICA_ERROR_NOT_IMPLEMENTED,
                        std::string("torchvision::") + op +
                            " takes floating tensors at layer cpu; convert with x.float() first.");
  }
}

void Give(MicaValue* result, OwnedTensor t, int32_t dtype) {
  result->tag = MICA_VALUE_TENSOR;
  result->u.tensor = TensorRef(t.get()).dtype() == dtype ? t.release() : ToDType(t.get(), dtype).release();
}

}  // namespace mica::vision
