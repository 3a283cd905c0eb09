// One of two builds of one plugin that take turns: its kernels answer
// with TURN.
#include <mica/plugin.h>

namespace {

void Value(const MicaCall*, const MicaValue*, int64_t, MicaValue* results, int64_t) {
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = TURN;
}

void Init(const MicaHost*, const MicaRegistrar* r) {
  mica::plugin::Registrar cpu(r, "cpu");
  cpu.Boxed<&Value>("turn::value");
  cpu.Boxed<&Value>("turn::replaced");
}

}  // namespace

MICA_PLUGIN("turn", "Mica tests", MICA_STRING_(TURN), "", "", "kernels:turn", Init)
