// Random fills of the CPU backend.
#ifndef MICA_PLUGINS_CPU_RANDOM_RANDOM_H_
#define MICA_PLUGINS_CPU_RANDOM_RANDOM_H_

#include <mica/plugin.h>

namespace mica::cpu {

void RegisterRandom(plugin::Registrar& registrar);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_RANDOM_RANDOM_H_
