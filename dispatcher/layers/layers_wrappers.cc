// Each is one function of frames.h, of an operator's spec or of a tensor, at the C border: errors become
// statuses, and what is borrowed stays so.
#include "dispatcher/layers/layers_wrappers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/calls/warn_once.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/plugins/status.h"

namespace mica::layers {
namespace {

// What stands behind a wrapper of the frame; NULL of other tensors.
frames::Wrapper* OwnOf(MicaTensor* t, const MicaFrame& frame) {
  if (!frames::IsWrapper(Tensor::Ref(t))) return nullptr;
  frames::Wrapper& w = frames::WrapperOf(Tensor::Ref(t));
  return w.tag == frame.tag ? &w : nullptr;
}

}  // namespace

MicaStatus ViewsOf(void* op, const MicaValue* args, int64_t n, MicaViewReceiver receive, void* context) {
  return CatchAll([&] {
    const OperatorSpec& spec = static_cast<const Operator*>(op)->spec();
    MICA_CHECK_TYPE(spec.view && n == spec.num_args, "Operator ", spec.name,
                    " is no view, or takes other than (", n, ") arguments.");
    ViewSpecs views;
    spec.view(args, views);
    for (const ViewSpec& v : views)
      receive(context, {v.sizes.data(), static_cast<int64_t>(v.sizes.size())},
              {v.strides.data(), static_cast<int64_t>(v.strides.size())}, v.byte_offset);
  });
}

void RaiseVersion(MicaTensor* t, uint64_t to) {
  const Tensor& tensor = Tensor::Ref(t);
  while (tensor.version() < to) tensor.impl()->storage->BumpVersion();
}

int32_t FrameOf(MicaTensor* wrapper, MicaFrame* out) {
  *out = {-1, 0, 0, nullptr};
  if (!wrapper || !frames::IsWrapper(Tensor::Ref(wrapper))) return 0;
  const frames::Wrapper& w = frames::WrapperOf(Tensor::Ref(wrapper));
  *out = {w.kind, 0, w.tag, nullptr};
  for (const frames::Frame* f = frames::Current(); f; f = f->parent) {
    if (f->tag != w.tag) continue;
    out->payload = f->payload;
    return 1;
  }
  return 0;
}

MicaStatus MoveWrapper(MicaTensor* wrapper, const MicaFrame* frame, MicaTensor* value, int64_t hidden) {
  return CatchAll([&] {
    frames::Wrapper* const w = OwnOf(wrapper, *frame);
    MICA_CHECK_VALUE(w, "Only a wrapper of the frame gets another value.");
    if (value) {
      const Tensor& given = Tensor::Ref(value);
      MICA_CHECK_VALUE(hidden >= 0 && hidden <= given.ndim() && given.dtype() == w->value.dtype(),
                       "Another value of a wrapper has its dtype, and no fewer than the (", hidden,
                       ") dimensions that it hides.");
      w->value = given;
      w->hidden = static_cast<int>(hidden);
    }
    frames::Refresh(Tensor::Ref(wrapper));
  });
}

MicaStatus SetValue(MicaTensor* t, const MicaFrame* frame, MicaTensor* value) {
  return CatchAll([&] {
    frames::Wrapper* const w = OwnOf(t, *frame);
    const Tensor& given = Tensor::Ref(value);
    // What the wrapper shows may have changed first (show_memory).
    const IntSpan sizes = !w ? IntSpan() : w->hidden ? w->value.sizes() : Tensor::Ref(t).sizes();
    MICA_CHECK_VALUE(
        w && given.defined() && given.sizes() == sizes && given.dtype() == Tensor::Ref(t).dtype(),
        "Another value of a wrapper has its frame, its shape and its dtype.");
    w->value = given;
  });
}
MicaStatus ShowDevice(MicaTensor* t, MicaDevice device) {
  return CatchAll([&] {
    MICA_CHECK_VALUE(frames::IsWrapper(Tensor::Ref(t)), "Only wrappers of a frame show another device.");
    frames::ShowDevice(Tensor::Ref(t), Device::FromAbi(device));
  });
}

MicaStatus Settle(MicaTensor* t) {
  return CatchAll([&] { frames::Settle(Tensor::Ref(t)); });
}

MicaStatus CheckReadable(MicaTensor* t, const char* what) {
  return CatchAll([&] { frames::CheckReadable(Tensor::Ref(t), what); });
}

int64_t Describe(MicaTensor* t, char* text, int64_t room) {
  const std::string said = Tensor::Ref(t).ToString();
  std::copy_n(said.data(), std::min(room, static_cast<int64_t>(said.size())), text);
  return static_cast<int64_t>(said.size());
}

int32_t HasOwnClass(MicaStatus status) { return ::mica::HasOwnClass(status); }

void WarnOnceOf(MicaStr key, MicaStr message) { WarnOnce(TextOf(key), TextOf(message)); }

void TakeList(MicaValue* result, MicaTensor** out) {
  for (Tensor& t : TakeTensorList(result->u.tensors)) *out++ = t.release();
  *result = MicaValue{};
}

}  // namespace mica::layers
