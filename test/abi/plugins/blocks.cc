// The C++ face of opaque tensors: `blocks::pack` makes one whose elements are kept twice as large, which
// `blocks::total` sums as they are; and a kernel for an out form that says it takes such, which is refused.
#include <mica/object.h>

#include <vector>

namespace {

using namespace mica::plugin;

struct Doubled {
  static constexpr const char* kTypeName = "blocks.Doubled";
  std::vector<float> values;
  void Reorder(MicaTensor* to) {
    if (values.empty()) throw Error(MICA_ERROR_VALUE, "there are no blocks");
    for (size_t i = 0; i < values.size(); ++i) static_cast<float*>(to->dl.data)[i] = values[i] / 2;
  }
};

void Pack(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const TensorRef x(args[0].u.tensor);
  Doubled blocks;
  for (int64_t i = 0; i < x.numel(); ++i) blocks.values.push_back(x.data<float>()[i] * 2);
  results[0].tag = MICA_VALUE_TENSOR;
  results[0].u.tensor = Object<Doubled>::Make(std::move(blocks))
                            .Opaque(x.sizes(), x.ndim(), MICA_F32, MicaDevice{0, 0})
                            .release();
}

// The sum, and 1,000 more where the blocks were read.
void Total(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const auto blocks = Object<Doubled>::PayloadOf(args[0].u.tensor);
  const TensorRef x(args[0].u.tensor);
  double sum = blocks ? 1000 : 0;
  for (int64_t i = 0; i < x.numel(); ++i) sum += blocks ? blocks->values[i] / 2 : x.data<float>()[i];
  results[0].tag = MICA_VALUE_FLOAT;
  results[0].u.f = sum;
}

template <void (*kKernel)(const MicaCall*, const MicaValue*, int64_t, MicaValue*, int64_t)>
MicaStatus Guarded(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results,
                   int64_t count) {
  return CatchAll([&] { kKernel(call, args, n, results, count); });
}

void Init(const MicaHost*, const MicaRegistrar* r) {
  Registrar registrar(r, "cpu");
  registrar.Define("blocks::pack(Tensor x) -> Tensor");
  registrar.Define("blocks::total(Tensor x) -> float");
  registrar.Boxed<&Pack>("blocks::pack");
  MicaKernelRecord record = {};
  record.struct_size = sizeof(record);
  record.backend = "cpu";
  record.flags = MICA_KERNEL_TAKES_OPAQUE;
  record.name = "blocks::total";
  record.boxed = &Guarded<&Total>;
  Check(r->register_kernel(r->context, &record));
  record.name = "mica::neg.out";
  record.boxed = &Guarded<&Pack>;
  Check(r->register_kernel(r->context, &record));
}

}  // namespace

MICA_PLUGIN("blocks", "Mica tests", "1.0", "", "", "operators:blocks", Init)
