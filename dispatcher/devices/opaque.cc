// See opaque.h.
#include "dispatcher/devices/opaque.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/kernel_call.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/devices/streams.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/plugins/status.h"
#include "schema/object.h"
#include "tensor/shape.h"

namespace mica {
namespace {

bool CanReorder(const MicaObject* payload) {
  return IsWhole(payload->type) && MICA_HAS(payload->type, reorder);
}

class Payload final : public DeferredElements {
 public:
  Payload(MicaObject* object, IntSpan sizes, DType dtype, Device device)
      : object_(object),
        sizes_(ToDims(sizes)),
        dtype_(dtype),
        device_(device),
        stream_{device, CurrentStream(device)} {
    RetainObject(object);
  }
  ~Payload() override { ReleaseObject(object_); }
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;

  // On the stream on which the tensor was made: who reads it on another one has waited for that. The host
  // waits, too, since they did so before there was work to wait for; in work that is recorded that raises.
  Storage InMemory() override {
    const StreamGuard on(stream_);
    const Tensor to =
        Tensor::Steal(TensorImpl::Make(Storage::Allocate(CheckedNumel(sizes_) * ItemSize(dtype_), device_), 0,
                                       sizes_, ContiguousStrides(sizes_), dtype_));
    Write(to);
    if (!device_.is_cpu()) SynchronizeStream(stream_);
    return to.storage();
  }

  MicaObject* object() const { return object_; }
  // Whether the tensor shows all of it, as it was made.
  bool IsAllOf(const Tensor& t) const {
    return t.sizes() == IntSpan(sizes_) && t.is_contiguous() && t.dtype() == dtype_ &&
           t.storage_offset() == 0 && !IsLazy(t);
  }

 private:
  void Write(const Tensor& to) {
    const std::string whose =
        absl::StrCat("`reorder` of the payload (", std::string(TypeNameOf(object_)), ") of ", to.ToString());
    const MicaStatus status = [&] {
      const ExcludeGuard below_layers(keys::kAboveBackends);  // for operators that it calls
      return object_->type->reorder(object_, to.impl());
    }();
    MICA_CHECK_IMPLEMENTED(!Refused(status), whose, " declines to write its elements.");
    try {
      ThrowIfError(status);
    } catch (Error& error) {
      error.AddContext(whose);
      throw;
    }
    MICA_CHECK(to.impl()->refs() == 1 && to.impl()->storage->use_count() == 1, whose,
               " kept a reference to the tensor that it was to write.");
    MICA_CHECK(to.sizes() == IntSpan(sizes_) && to.is_contiguous(), whose,
               " resized the tensor that it was to write, from ", ShapeText(sizes_), ".");
  }

  MicaObject* const object_;
  const Dims sizes_;
  const DType dtype_;
  const Device device_;
  const StreamRef stream_;
};

}  // namespace

Tensor MakeOpaque(IntSpan sizes, DType dtype, Device device, MicaObject* payload) {
  MICA_CHECK_VALUE(payload, "An opaque tensor of the shape ", ShapeText(sizes),
                   " is made without a payload.");
  MICA_CHECK_VALUE(CanReorder(payload), "The payload (", std::string(TypeNameOf(payload)),
                   ") of an opaque tensor of the shape ", ShapeText(sizes),
                   " has a type without `reorder`, so that nobody else could read its elements.");
  MICA_CHECK_VALUE(device.backend >= 0 && device.backend < BackendNameCount() && device.index >= 0,
                   "An opaque tensor of the shape ", ShapeText(sizes), " is made on a device (",
                   device.backend, ", ", device.index, ") that nobody registered.");
  MICA_CHECK_VALUE(!device.is_meta(), "An opaque tensor of the shape ", ShapeText(sizes),
                   " on the device (meta) would have elements, which no tensor there has.");
  return MakeDeferred(sizes, dtype, device, std::make_shared<Payload>(payload, sizes, dtype, device));
}

MicaObject* PayloadOf(const Tensor& t, const MicaObjectType* type) {
  if (t.keys().has(keys::kOpaque)) {
    const std::shared_ptr<DeferredElements> elements = t.impl()->storage->deferred();
    const auto* payload = static_cast<const Payload*>(elements.get());  // no other kind is made
    if (payload && payload->object()->type == type && payload->IsAllOf(t)) {
      RetainObject(payload->object());
      return payload->object();
    }
  }
  t.data();
  return nullptr;
}

void MakeMemoryOf(const MicaValue* args, int64_t n) {
  frames::ForEachTensor(args, n, [](const Tensor& t, int64_t) {
    if (t.defined()) t.data();
  });
}

}  // namespace mica
