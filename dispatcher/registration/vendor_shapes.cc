#include "dispatcher/registration/vendor_shapes.h"

#include <mica/operators.h>

#include <deque>
#include <vector>

#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/plugins/host.h"

namespace mica {
namespace {

// The arguments of one call with every tensor's place taken by one of the meta device.
class StandIns {
 public:
  StandIns(const char* name, const MicaValue* args, int64_t n) : name_(name), values_(args, args + n) {
    for (MicaValue& v : values_) {
      if (v.tag == MICA_VALUE_TENSOR && v.u.tensor)
        v.u.tensor = StandIn(v.u.tensor);
      else if (v.tag == MICA_VALUE_TENSORS)
        v.u.tensors = StandInsOf(v.u.tensors);
      else if (v.tag == MICA_VALUE_DEVICE)
        v.u.device = OnMeta(Device::FromAbi(v.u.device)).ToAbi();
    }
  }

  const MicaValue* data() const { return values_.data(); }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  // Where the results belong: where the first tensor is, else the device that is asked for, else the default.
  Device place() const { return has_place_ ? place_ : CurrentThread().default_device; }

 private:
  MicaTensor* StandIn(MicaTensor* of) {
    const Tensor& t = Tensor::Ref(of);
    MICA_CHECK(tensors_.empty() || t.device() == place_,
               "Expected all tensors to be on the same device, but found (", place_.ToString(), ") and (",
               t.device().ToString(), ") among the arguments of ", name_, ".");
    if (tensors_.empty()) place_ = t.device();
    has_place_ = true;
    tensors_.push_back(EmptyStrided(t.sizes(), t.strides(), t.dtype(), Device{keys::kMeta, 0}));
    TensorImpl& made = *tensors_.back().impl();
    made.set_flag(MICA_TENSOR_WRAPPED_NUMBER, t.impl()->has_flag(MICA_TENSOR_WRAPPED_NUMBER));
    return &made;
  }
  MicaTensorSpan StandInsOf(MicaTensorSpan list) {
    std::vector<MicaTensor*>& made = lists_.emplace_back();
    for (int64_t i = 0; i < list.size; ++i) made.push_back(list.data[i] ? StandIn(list.data[i]) : nullptr);
    return {made.data(), list.size};
  }
  Device OnMeta(Device asked) {
    if (!has_place_) place_ = asked;
    has_place_ = true;
    return Device{keys::kMeta, 0};
  }

  const char* name_;  // of the operator
  std::vector<MicaValue> values_;
  std::deque<Tensor> tensors_;
  std::deque<std::vector<MicaTensor*>> lists_;
  Device place_;
  bool has_place_ = false;
};

}  // namespace

void ShapesFromRecord(const OperatorSpec& spec, const MicaValue* args, MetaResult& result) {
  const MicaOperatorRecord& record = *spec.shape;
  const StandIns stand_ins(spec.name, args, spec.num_functional_args);
  MicaCall call{};
  call.struct_size = sizeof(call);
  call.host = HostTable();
  call.context = record.context;
  call.compute_dtype = MICA_DTYPE_NONE;
  call.num_threads = 1;
  call.name = spec.name;
  std::vector<MicaValue> made(static_cast<size_t>(spec.num_outputs));
  {
    const ExcludeGuard no_layers(keys::kAboveBackends);
    ThrowIfError(record.shape(&call, stand_ins.data(), stand_ins.size(), made.data(), spec.num_outputs));
  }
  for (MicaValue& value : made) {
    const Tensor t = TakeTensor(value);
    MICA_CHECK_TYPE(t.defined(), "The shape function of the operator (", spec.name,
                    ") gives no tensor for one of its (", spec.num_outputs, ") results.");
    const Dims strides = t.is_contiguous() ? Dims() : ToDims(t.strides());
    result.outputs.push_back({ToDims(t.sizes()), strides, t.dtype(), stand_ins.place()});
  }
}

}  // namespace mica
