#include "plugins/cpu/indexing/indexing.h"

namespace mica::cpu {

void RegisterIndexing(plugin::Registrar& r) {
  r.Kernel<&Gather>("gather.out");
  r.Kernel<&IndexSelect>("index_select.out");
  r.Kernel<&Embedding>("embedding.out");
  r.Kernel<&Embedding>("_bag_rows.out");
  r.Kernel<&Index>("_index.out");
  r.Kernel<&EmbeddingDenseBackward>("embedding_dense_backward.out");
  r.Kernel<&IndexAdd>("index_add.out");
  r.Kernel<&ScatterAdd>("scatter_add.out");
  r.Kernel<&ScatterSrc>("scatter.src_out");
  r.Kernel<&ScatterValue>("scatter.value_out");
  r.Kernel<&ScatterReduce>("scatter_reduce.two_out");
  r.Kernel<&IndexCopy>("index_copy.out");
  r.Kernel<&IndexPut>("_index_put.out");
  r.Kernel<&Nonzero>("nonzero");
  r.Kernel<&NonzeroOut>("nonzero.out");
  r.Kernel<&MaskedSelect>("masked_select");
  r.Kernel<&MaskedSelectOut>("masked_select.out");
  r.Kernel<&MaskedScatter>("masked_scatter.out");
  r.Kernel<&Bincount>("bincount");
  r.Kernel<&OneHot>("one_hot");
  r.Kernel<&EmbeddingBag>("embedding_bag");
  r.Kernel<&EmbeddingBagPadding>("embedding_bag.padding_idx");
}

}  // namespace mica::cpu
