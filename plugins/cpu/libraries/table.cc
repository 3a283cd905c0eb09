// The one symbol of mica_cpu_libraries.so.
#include "plugins/cpu/libraries/blas.h"
#include "plugins/cpu/libraries/dnnl.h"
#include "plugins/cpu/libraries/lapack.h"
#include "plugins/cpu/libraries/libraries.h"

const mica::cpu::LibraryTable* mica_cpu_libraries() {
  using namespace mica::cpu;
  static const LibraryTable table = [] {
    PrepareBlas();
    return LibraryTable{&BlasGemm, &BlasGemv, &DnnlConvolution, &RunLapack};
  }();
  return &table;
}
