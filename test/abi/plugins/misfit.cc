// Kernels registered by name alone, as docs/guides/write-a-backend.md does it, whose functions are not those
// that the operators' schemas ask for; and one that is.
#include <mica/plugin.h>

namespace {

using mica::plugin::TensorRef;

// Writes where an out form's result would be.
void Fill(MicaTensor* tensor, float value) {
  auto* to = static_cast<float*>(TensorRef(tensor).data<void>());
  for (int64_t i = 0; i < TensorRef(tensor).numel(); ++i) to[i] = value;
}

// add.out's function, given for add.Tensor: its `out` would be what stands behind the arguments.
void AddInto(const MicaCall*, MicaTensor*, MicaTensor*, MicaScalar, MicaTensor* out) { Fill(out, 70); }
// Two arguments changed places.
void AddTurned(const MicaCall*, MicaTensor*, MicaScalar, MicaTensor*, MicaTensor* out) { Fill(out, 71); }
// A float where the schema has a Scalar, and a type that no schema has.
void ThresholdOfFloats(const MicaCall*, MicaTensor*, double, float, MicaTensor* out) { Fill(out, 72); }
MicaTensor* NegGiven(const MicaCall*, MicaTensor*, MicaTensor* out) { return out; }
void Abs(const MicaCall*, MicaTensor*, MicaTensor* out) { Fill(out, 7); }

void Init(const MicaHost*, const MicaRegistrar* r) {
  mica::plugin::Registrar registrar(r, "cpu");
  registrar.Kernel<&AddInto>("add.Tensor");
  registrar.Kernel<&AddTurned>("add.out");
  registrar.Kernel<&ThresholdOfFloats>("threshold.out");
  registrar.Kernel<&NegGiven>("neg.out");
  registrar.Kernel<&Abs>("abs.out");
}

}  // namespace

MICA_PLUGIN("misfit", "Mica tests", "1.0", "", "", "kernels:misfit", Init)
