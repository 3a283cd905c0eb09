// A backend whose compiler takes kernel texts at run time: everything above its driver.
//
// Derive from Driver (driver.h), fill a device table (mica/device.h), and in the plugin's
// init call Register: every operator that runs from data gets a kernel, by its class, and
// so do copies, indexing, products, convolutions, losses and random fills. What no kernel
// text computes (linear algebra, most of complex numbers) goes on to the CPU, counted. Cost: a call
// makes a key of some tens of bytes and looks it up; a text is compiled when its key is new.
#pragma once

#include <mica/kit/batch_norm.h>
#include <mica/kit/bincount.h>
#include <mica/kit/convolution.h>
#include <mica/kit/copies.h>
#include <mica/kit/counting.h>
#include <mica/kit/cross_entropy.h>
#include <mica/kit/dropout.h>
#include <mica/kit/gather.h>
#include <mica/kit/loss.h>
#include <mica/kit/matmul.h>
#include <mica/kit/normalization.h>
#include <mica/kit/pointwise_list.h>
#include <mica/kit/random.h>
#include <mica/kit/reduce.h>
#include <mica/kit/resampling.h>
#include <mica/kit/sampling.h>
#include <mica/kit/scatter.h>
#include <mica/kit/searching.h>
#include <mica/kit/sorting.h>
#include <mica/kit/unpooling.h>
#include <mica/kit/window.h>

namespace mica {
namespace kit {

// Registers the class kernels and the kernels of single operators. `driver` lives as long
// as the process.
inline void Register(plugin::Registrar& registrar, Driver& driver) {
  TheDriver() = &driver;
  registrar.Class<&pointwise::RunPointwise, &pointwise::RunPointwiseList>("pointwise");
  registrar.Class<&pointwise::RunFactory>("factory");
  registrar.Class<&reduce::RunReduction>("reduction");
  registrar.Class<&reduce::RunScan>("scan");
  registrar.Class<&reduce::RunRow>("row");
  registrar.Class<&gather::RunGather>("gather");
  registrar.Class<&scatter::RunScatter>("scatter");
  registrar.Class<&window::RunWindow>("window");
  gather::RegisterIndexing(registrar);
  scatter::RegisterScatter(registrar);
  copies::RegisterCopies(registrar);
  sorting::RegisterSorting(registrar);
  counting::RegisterCounting(registrar);
  bincount::RegisterBincount(registrar);
  searching::RegisterSearching(registrar);
  matmul::RegisterMatmul(registrar);
  convolution::RegisterConvolution(registrar);
  unpooling::RegisterUnpooling(registrar);
  resampling::RegisterResampling(registrar);
  sampling::RegisterSampling(registrar);
  loss::RegisterLoss(registrar);
  loss::RegisterCrossEntropy(registrar);
  normalization::RegisterNormalization(registrar);
  batch_norm::RegisterBatchNorm(registrar);
  random::RegisterRandom(registrar);
  random::RegisterDropout(registrar);
}

}  // namespace kit
}  // namespace mica
