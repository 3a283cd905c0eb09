// Linear algebra of the CPU backend: LAPACK's cores behind the operators of class core.
#ifndef MICA_PLUGINS_CPU_LINALG_LINALG_H_
#define MICA_PLUGINS_CPU_LINALG_LINALG_H_

#include <mica/plugin.h>

namespace mica::cpu {

void RegisterLinalg(plugin::Registrar& registrar);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_LINALG_LINALG_H_
