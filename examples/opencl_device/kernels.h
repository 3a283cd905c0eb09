// The kernels of single operators, by the file that registers them.
#pragma once

#include "classes.h"

namespace opencl_device {

void RegisterCopies(mica::plugin::Registrar& registrar);
void RegisterMatmul(mica::plugin::Registrar& registrar);
void RegisterConvolution(mica::plugin::Registrar& registrar);
void RegisterIndexing(mica::plugin::Registrar& registrar);
void RegisterPooling(mica::plugin::Registrar& registrar);
void RegisterLoss(mica::plugin::Registrar& registrar);
void RegisterRandom(mica::plugin::Registrar& registrar);

}  // namespace opencl_device
