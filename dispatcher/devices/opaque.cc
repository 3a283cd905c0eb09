// See opaque.h.
#include "dispatcher/devices/opaque.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/plugins/status.h"
#include "schema/object.h"
#include "tensor/shape.h"

namespace mica {
namespace {

bool CanReorder(const MicaObject* payload) {
  return payload && payload->type && payload->type->name && payload->type->destroy &&
         MICA_HAS(payload->type, reorder);
}

class Payload final : public DeferredElements {
 public:
  Payload(MicaObject* object, IntSpan sizes, DType dtype, Device device)
      : object_(object), sizes_(ToDims(sizes)), dtype_(dtype), device_(device) {
    RetainObject(object);
  }
  ~Payload() override { ReleaseObject(object_); }
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;

  void WriteTo(void* memory) override {
    const int64_t nbytes = CheckedNumel(sizes_) * ItemSize(dtype_);
    Storage lent = Storage::FromMemory(memory, nbytes, device_, nullptr, nullptr);
    const Tensor to =
        Tensor::Steal(TensorImpl::Make(std::move(lent), 0, sizes_, ContiguousStrides(sizes_), dtype_));
    const ExcludeGuard below_layers(keys::kAboveBackends);  // for operators that it calls
    ThrowIfError(object_->type->reorder(object_, to.impl()));
    MICA_CHECK(to.impl()->refs() == 1, "The payload (", std::string(TypeNameOf(object_)), ") of a tensor (",
               to.ToString(), ") kept a reference to the tensor that it was to write.");
  }

  MicaObject* object() const { return object_; }
  // Whether the tensor shows all of it, as it was made.
  bool IsAllOf(const Tensor& t) const {
    return t.sizes() == IntSpan(sizes_) && t.is_contiguous() && t.dtype() == dtype_ &&
           t.storage_offset() == 0 && !IsLazy(t);
  }

 private:
  MicaObject* const object_;
  const Dims sizes_;
  const DType dtype_;
  const Device device_;
};

}  // namespace

Tensor MakeOpaque(IntSpan sizes, DType dtype, Device device, MicaObject* payload) {
  MICA_CHECK_VALUE(payload, "An opaque tensor of the shape ", ShapeText(sizes),
                   " is made without a payload.");
  MICA_CHECK_VALUE(CanReorder(payload), "The payload (", std::string(TypeNameOf(payload)),
                   ") of an opaque tensor of the shape ", ShapeText(sizes),
                   " has a type without `reorder`, so that nobody else could read its elements.");
  MICA_CHECK_VALUE(!device.is_meta(), "An opaque tensor of the shape ", ShapeText(sizes),
                   " on the device (meta) would have elements, which no tensor there has.");
  return MakeDeferred(sizes, dtype, device, std::make_shared<Payload>(payload, sizes, dtype, device));
}

MicaObject* PayloadOf(const Tensor& t) {
  if (t.keys().has(keys::kOpaque)) {
    const std::shared_ptr<DeferredElements> elements = t.impl()->storage->deferred();
    const auto* payload = static_cast<const Payload*>(elements.get());  // no other kind is made
    if (payload && payload->IsAllOf(t)) {
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
