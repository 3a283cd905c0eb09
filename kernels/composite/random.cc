// Composites of random operators: fresh memory and the in-place fill that draws.
#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/_randperm_.h"
#include "mica/ops/add.h"
#include "mica/ops/bernoulli_.h"
#include "mica/ops/empty.h"
#include "mica/ops/empty_like.h"
#include "mica/ops/mul.h"
#include "mica/ops/normal_.h"
#include "mica/ops/random_.h"
#include "mica/ops/uniform_.h"

namespace mica::composite {
namespace {

Tensor Fresh(IntSpan size, DType dtype, std::optional<Device> device) {
  return ops::empty(size, dtype, std::nullopt, device);
}
Tensor Like(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device,
            std::optional<MemoryFormat> format) {
  return ops::empty_like(self, dtype, std::nullopt, device, std::nullopt, format);
}
Tensor Uniform(const Tensor& t, Generator* g) {
  ops::uniform_(t, 0.0, 1.0, g);
  return t;
}
Tensor Normal(const Tensor& t, double mean, double std, Generator* g) {
  ops::normal_(t, mean, std, g);
  return t;
}
Tensor Integers(const Tensor& t, int64_t low, int64_t high, Generator* g) {
  MICA_CHECK(low < high, "Range from (", low, ") to (", high, ") is empty; expected `high` above `low`.");
  ops::op::random__from::call(t, low, high, g);
  return t;
}
void CheckStd(double std) {
  MICA_CHECK(std >= 0, "Standard deviation (", std, ") is negative; expected 0 or more.");
}

}  // namespace

Tensor rand(IntSpan size, std::optional<DType> dtype, std::optional<Layout>, std::optional<Device> device,
            std::optional<bool>) {
  return Uniform(Fresh(size, dtype.value_or(DefaultDType()), device), nullptr);
}
Tensor rand_generator(IntSpan size, Generator* generator, std::optional<DType> dtype, std::optional<Layout>,
                      std::optional<Device> device, std::optional<bool>) {
  return Uniform(Fresh(size, dtype.value_or(DefaultDType()), device), generator);
}
Tensor rand_like(const Tensor& self, std::optional<DType> dtype, std::optional<Layout>,
                 std::optional<Device> device, std::optional<bool>,
                 std::optional<MemoryFormat> memory_format) {
  return Uniform(Like(self, dtype, device, memory_format), nullptr);
}
Tensor randn(IntSpan size, std::optional<DType> dtype, std::optional<Layout>, std::optional<Device> device,
             std::optional<bool>) {
  return Normal(Fresh(size, dtype.value_or(DefaultDType()), device), 0, 1, nullptr);
}
Tensor randn_generator(IntSpan size, Generator* generator, std::optional<DType> dtype, std::optional<Layout>,
                       std::optional<Device> device, std::optional<bool>) {
  return Normal(Fresh(size, dtype.value_or(DefaultDType()), device), 0, 1, generator);
}
Tensor randn_like(const Tensor& self, std::optional<DType> dtype, std::optional<Layout>,
                  std::optional<Device> device, std::optional<bool>,
                  std::optional<MemoryFormat> memory_format) {
  return Normal(Like(self, dtype, device, memory_format), 0, 1, nullptr);
}

Tensor randint(int64_t high, IntSpan size, std::optional<DType> dtype, std::optional<Layout>,
               std::optional<Device> device, std::optional<bool>) {
  return Integers(Fresh(size, dtype.value_or(DType::kI64), device), 0, high, nullptr);
}
Tensor randint_generator(int64_t high, IntSpan size, Generator* generator, std::optional<DType> dtype,
                         std::optional<Layout>, std::optional<Device> device, std::optional<bool>) {
  return Integers(Fresh(size, dtype.value_or(DType::kI64), device), 0, high, generator);
}
Tensor randint_low(int64_t low, int64_t high, IntSpan size, std::optional<DType> dtype, std::optional<Layout>,
                   std::optional<Device> device, std::optional<bool>) {
  return Integers(Fresh(size, dtype.value_or(DType::kI64), device), low, high, nullptr);
}
Tensor randint_low_generator(int64_t low, int64_t high, IntSpan size, Generator* generator,
                             std::optional<DType> dtype, std::optional<Layout>, std::optional<Device> device,
                             std::optional<bool>) {
  return Integers(Fresh(size, dtype.value_or(DType::kI64), device), low, high, generator);
}
Tensor randint_like(const Tensor& self, int64_t high, std::optional<DType> dtype, std::optional<Layout>,
                    std::optional<Device> device, std::optional<bool>,
                    std::optional<MemoryFormat> memory_format) {
  return Integers(Like(self, dtype, device, memory_format), 0, high, nullptr);
}
Tensor randint_like_low(const Tensor& self, int64_t low, int64_t high, std::optional<DType> dtype,
                        std::optional<Layout>, std::optional<Device> device, std::optional<bool>,
                        std::optional<MemoryFormat> memory_format) {
  return Integers(Like(self, dtype, device, memory_format), low, high, nullptr);
}

Tensor randperm_generator(int64_t n, Generator* generator, std::optional<DType> dtype, std::optional<Layout>,
                          std::optional<Device> device, std::optional<bool>) {
  MICA_CHECK(n >= 0, "Length `n` (", n, ") of a permutation is negative; expected 0 or more.");
  const Tensor t = Fresh({n}, dtype.value_or(DType::kI64), device);
  ops::_randperm_(t, generator);
  return t;
}
Tensor randperm(int64_t n, std::optional<DType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin_memory) {
  return randperm_generator(n, nullptr, dtype, layout, device, pin_memory);
}

Tensor bernoulli(const Tensor& self, Generator* generator) {
  const Tensor t = ops::empty_like(self);
  ops::op::bernoulli__Tensor::call(t, self, generator);
  return t;
}
Tensor bernoulli_p(const Tensor& self, double p, Generator* generator) {
  const Tensor t = ops::empty_like(self);
  ops::op::bernoulli__float::call(t, p, generator);
  return t;
}

Tensor normal_float_float(double mean, double std, IntSpan size, Generator* generator,
                          std::optional<DType> dtype, std::optional<Layout>, std::optional<Device> device,
                          std::optional<bool>) {
  CheckStd(std);
  return Normal(Fresh(size, dtype.value_or(DefaultDType()), device), mean, std, generator);
}
Tensor normal_tensor_float(const Tensor& mean, double std, Generator* generator) {
  CheckStd(std);
  return ops::add(Normal(ops::empty_like(mean), 0, std, generator), mean);
}
Tensor normal_float_tensor(double mean, const Tensor& std, Generator* generator) {
  return ops::add(ops::mul(Normal(ops::empty_like(std), 0, 1, generator), std), Scalar(mean));
}
Tensor normal_tensor_tensor(const Tensor& mean, const Tensor& std, Generator* generator) {
  const Dims shape = BroadcastShapes(mean.sizes(), std.sizes(), "mean", "std");
  const Tensor noise = Normal(Fresh(shape, mean.dtype(), mean.device()), 0, 1, generator);
  return ops::add(ops::mul(noise, std), mean);
}

}  // namespace mica::composite
