// A plugin in one file: it defines an operator and gives it a kernel on the CPU.
//
// Built against the installed Mica::sdk alone. Load it with MICA_PLUGINS=path, and
// call it from Python as mica.ops.hello.scale(x, 2.0).
// snippet: plugin
#include <mica/plugin.h>

using namespace mica::plugin;

static void Scale(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const TensorRef x(args[0].u.tensor);
  MICA_PLUGIN_CHECK(x.dtype() == MICA_F32 && x.contiguous(), MICA_ERROR_TYPE,
                    "hello::scale needs contiguous float32.");
  OwnedTensor y = OwnedTensor::Empty(x.sizes(), x.ndim(), MICA_F32, MicaDevice{0, 0});
  for (int64_t i = 0; i < x.numel(); ++i)
    TensorRef(y.get()).data<float>()[i] = x.data<float>()[i] * args[1].u.f;
  results[0].tag = MICA_VALUE_TENSOR;
  results[0].u.tensor = y.release();
}

static void Init(const MicaHost*, const MicaRegistrar* r) {
  Registrar registrar(r, "cpu");
  registrar.Define("hello::scale(Tensor x, float factor) -> Tensor");
  registrar.Boxed<&Scale>("hello::scale");
}
MICA_PLUGIN("hello", "Mica examples", "1.0", "", "", "operators:hello", Init)
// end snippet
