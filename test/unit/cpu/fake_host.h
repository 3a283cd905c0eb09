// A host of a few functions, for kernels that make their own results.
#ifndef MICA_TEST_UNIT_CPU_FAKE_HOST_H_
#define MICA_TEST_UNIT_CPU_FAKE_HOST_H_

#include <map>
#include <memory>

#include "test/unit/cpu/library_fixture.h"

namespace mica::cpu::test {

// Makes tensors and keeps them until it dies; stands in plugin::Host() meanwhile.
class FakeHost {
 public:
  FakeHost() {
    host_ = {};
    host_.struct_size = sizeof(host_);
    host_.tensor_empty = [](MicaIntSpan sizes, int32_t dtype, MicaDevice, int32_t format) {
      const std::vector<int64_t> shape(sizes.data, sizes.data + sizes.size);
      const bool last = format == MICA_CHANNELS_LAST;
      auto tensor = std::make_unique<HostTensor>(
          dtype, shape, Strides(shape, last ? Layout::kChannelsLast : Layout::kDense));
      MicaTensor* face = tensor->get();
      if (last) face->flags |= MICA_TENSOR_CHANNELS_LAST;
      Tensors()[face] = std::move(tensor);
      return MicaTensorResult{face, nullptr};
    };
    // The view holds its base's memory.
    host_.tensor_as_strided = [](MicaTensor* base, MicaIntSpan sizes, MicaIntSpan strides, int64_t) {
      auto tensor = std::make_unique<HostTensor>(
          *Tensors().at(base), std::vector<int64_t>(sizes.data, sizes.data + sizes.size),
          std::vector<int64_t>(strides.data, strides.data + strides.size), 0);
      MicaTensor* face = tensor->get();
      Tensors()[face] = std::move(tensor);
      return MicaTensorResult{face, nullptr};
    };
    host_.tensor_release = [](MicaTensor* tensor) { Tensors().erase(tensor); };
    plugin::Host() = &host_;
  }
  ~FakeHost() {
    plugin::Host() = nullptr;
    Tensors().clear();
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  // The tensor in a result.
  static const HostTensor& Of(const MicaValue& result) { return *Tensors().at(result.u.tensor); }

 private:
  static std::map<MicaTensor*, std::unique_ptr<HostTensor>>& Tensors() {
    static std::map<MicaTensor*, std::unique_ptr<HostTensor>> tensors;
    return tensors;
  }
  MicaHost host_;
};

}  // namespace mica::cpu::test

#endif  // MICA_TEST_UNIT_CPU_FAKE_HOST_H_
