// Lists of tensors as results of boxed calls.
#include <cstdlib>
#include <new>

#include "dispatcher/calls/adapters_return.h"

namespace mica {

MicaTensor** NewTensorList(int64_t size) {
  auto* p =
      static_cast<MicaTensor**>(std::calloc(static_cast<size_t>(size > 0 ? size : 1), sizeof(MicaTensor*)));
  if (!p) throw std::bad_alloc();
  return p;
}

std::vector<Tensor> TakeTensorList(MicaTensorSpan list) {
  std::vector<Tensor> out;
  out.reserve(static_cast<size_t>(list.size > 0 ? list.size : 0));
  for (int64_t i = 0; i < list.size; ++i) out.push_back(Tensor::Steal(list.data[i]));
  FreeTensorList(list.data);
  return out;
}

void FreeTensorList(MicaTensor* const* list) { std::free(const_cast<MicaTensor**>(list)); }

MicaTensorSpan GiveTensorList(std::vector<Tensor> tensors) {
  MicaTensor** data = NewTensorList(static_cast<int64_t>(tensors.size()));
  for (size_t i = 0; i < tensors.size(); ++i) data[i] = tensors[i].release();
  return {data, static_cast<int64_t>(tensors.size())};
}

}  // namespace mica
