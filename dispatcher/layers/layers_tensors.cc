#include "dispatcher/layers/layers_tensors.h"

#include "dispatcher/calls/boxed_results.h"
#include "dispatcher/calls/given_output.h"
#include "dispatcher/calls/structured.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/calls/write_log.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/layers/autograd_table.h"
#include "tensor/shape.h"

namespace mica::layers {
namespace {

const Operator& OpOf(void* op) { return *static_cast<const Operator*>(op); }
IntSpan Ints(MicaIntSpan s) { return {s.data, s.size}; }

// ---- calls without values

// While it lives, calls go to backends alone.
class Bare {
 public:
  Bare() : saved_(t_state) {
    t_state.frame = nullptr;
    t_state.include = t_state.include - KeySet::Of(keys::kFrame);
    t_state.exclude = t_state.exclude | keys::kAboveBackends;
  }
  ~Bare() { t_state = saved_; }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

 private:
  ThreadState saved_;
};

// The same tensor without elements.
Tensor WithoutElements(const Tensor& t) {
  const Storage storage = Storage::Allocate(t.impl()->storage->nbytes(), Device{keys::kMeta, 0});
  Tensor twin = Tensor::Steal(
      TensorImpl::Make(storage, t.storage_offset() * t.itemsize(), t.sizes(), t.strides(), t.dtype()));
  twin.impl()->flags |= t.impl()->flags & MICA_TENSOR_WRAPPED_NUMBER;
  return twin;
}

// A storage of its own over the same memory: nobody else's versions count there.
Storage OwnStorage(const Tensor& t) {
  StorageImpl* shared = t.storage().release();
  return Storage::FromMemory(
      shared->data(), shared->nbytes(), t.device(),
      [](void* context) { static_cast<StorageImpl*>(context)->Release(); }, shared);
}

// Whether elements of these sizes and strides, from `offset` on, lie within so many bytes.
bool Fits(IntSpan sizes, IntSpan strides, int64_t offset, int64_t itemsize, int64_t nbytes) {
  if (sizes.size() != strides.size() || offset < 0) return false;
  int64_t last = offset;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    last += (sizes[i] - 1) * strides[i];
  }
  return (last + 1) * itemsize <= nbytes;
}

}  // namespace

// ---- tensors

uint64_t TensorTraits(MicaTensor* t) {
  const Tensor& tensor = Tensor::Ref(t);
  const MicaAutograd* const autograd = LoadedAutogradTable();
  uint64_t traits = tensor.requires_grad() ? MICA_TRAIT_REQUIRES_GRAD : 0;
  const bool has_history = autograd && (tensor.requires_grad() || tensor.is_view());
  const MicaIntResult leaf = has_history ? autograd->is_leaf(t) : MicaIntResult{1, nullptr};
  DropStatus(leaf.status);
  if (leaf.value) traits |= MICA_TRAIT_LEAF;
  if (tensor.is_view()) traits |= MICA_TRAIT_VIEW;
  if (frames::IsWrapper(tensor)) traits |= MICA_TRAIT_WRAPPER;
  if (IsRecorded(tensor)) traits |= MICA_TRAIT_RECORDED;
  return traits;
}
uint64_t TensorVersion(MicaTensor* t) { return Tensor::Ref(t).version(); }

MicaStatus SetRequiresGrad(MicaTensor* t, int32_t on) {
  return CatchAll([&] { ThrowIfError(AutogradTable().set_requires_grad(t, on)); });
}
MicaTensorResult GradientOf(MicaTensor* t) {
  return ReturnTensor([&] {
    const MicaTensorResult grad = AutogradTable().grad(t);
    ThrowIfError(grad.status);
    return Tensor::Steal(grad.value);
  });
}
MicaStatus SetGradient(MicaTensor* t, MicaTensor* grad) {
  return CatchAll([&] { ThrowIfError(AutogradTable().set_grad(t, grad)); });
}
MicaTensorResult EmptyStridedOf(MicaIntSpan sizes, MicaIntSpan strides, int32_t dtype, MicaDevice device) {
  return ReturnTensor([&] {
    MICA_CHECK_VALUE(dtype >= 0 && dtype < kDTypeCount, "The dtype number (", dtype, ") is unknown.");
    return EmptyStrided(Ints(sizes), Ints(strides), static_cast<DType>(dtype), Device::FromAbi(device));
  });
}

void TensorDetails(MicaTensor* t, MicaTensorDetails* out) {
  const Tensor& tensor = Tensor::Ref(t);
  const StorageImpl* const storage = tensor.impl()->storage;
  *out = {};
  out->holders = storage->use_count();
  out->nbytes = storage->nbytes();
  out->offset = tensor.storage_offset();
  out->requires_grad = tensor.requires_grad();
  if (!tensor.is_view()) return;
  out->base = tensor.impl()->extra->view_base;
  out->base_requires_grad = tensor.impl()->extra->view_base->has_flag(tensor_flags::kRequiresGrad);
  out->view_creation = tensor.impl()->extra->view_creation;
}

const void* TensorStorage(MicaTensor* t) { return static_cast<TensorImpl*>(t)->storage; }

MicaTensorResult ViewTensor(MicaTensor* t, MicaIntSpan sizes, MicaIntSpan strides, int64_t offset,
                            int32_t dtype, int32_t detached) {
  return ReturnTensor([&] {
    MICA_CHECK_VALUE(dtype >= 0 && dtype < kDTypeCount, "The dtype number (", dtype, ") is unknown.");
    const auto type = static_cast<DType>(dtype);
    return MakeViewAs(Tensor::Ref(t), Ints(sizes), Ints(strides), offset * ItemSize(type), type,
                      detached != 0);
  });
}

MicaTensorResult ViewByOperator(void* op, const MicaValue* args, int64_t n) {
  return ReturnTensor([&] {
    const OperatorSpec& spec = OpOf(op).spec();
    MICA_CHECK_VALUE(spec.view && n == spec.num_args, "Operator ", spec.name,
                     " is no view, or does not take (", n, ") arguments.");
    const Tensor& self = Tensor::Ref(args[0].u.tensor);
    ViewSpecs specs;
    spec.view(args, specs);
    const ViewSpec& view = specs[0];
    const DType dtype = view.dtype < 0 ? self.dtype() : static_cast<DType>(view.dtype);
    return MakeViewAs(self, view.sizes, view.strides, view.byte_offset, dtype, /*detached=*/true);
  });
}

MicaStatus SetViewCreation(MicaTensor* view, int32_t creation) {
  return CatchAll([&] {
    const Tensor& t = Tensor::Ref(view);
    MICA_CHECK_VALUE(t.is_view() && creation >= MICA_VIEW_DEFAULT && creation <= MICA_VIEW_OF_FUNCTION,
                     "The tensor (", t.ToString(), ") is no view, or no view is made in the way (", creation,
                     ").");
    t.impl()->extra->view_creation = static_cast<uint8_t>(creation);
  });
}

MicaStatus MakeMemory(MicaTensor* t, int32_t is_written) {
  return CatchAll([&] {
    const Tensor& tensor = Tensor::Ref(t);
    tensor.data();
    if (is_written) tensor.impl()->keys = tensor.keys() - KeySet::Of(keys::kOpaque);
  });
}

MicaStatus ShowMemory(MicaTensor* t, MicaTensor* of, MicaIntSpan sizes, MicaIntSpan strides, int64_t offset) {
  return CatchAll([&] {
    const Tensor& wrapper = Tensor::Ref(t);
    MICA_CHECK_VALUE(frames::IsWrapper(wrapper), "Only wrappers of a frame show other memory.");
    TensorImpl& impl = *wrapper.impl();
    const Storage storage = of ? Tensor::Ref(of).storage() : OwnStorage(wrapper);
    MICA_CHECK_VALUE(Fits(Ints(sizes), Ints(strides), offset, wrapper.itemsize(), storage.get()->nbytes()),
                     "A wrapper of the shape ", ShapeText(Ints(sizes)), ", strides ",
                     ShapeText(Ints(strides)), " and offset ", offset, " does not lie within memory of (",
                     storage.get()->nbytes(), ") bytes.");
    impl.MoveTo(storage.get());
    impl.set_flag(MICA_TENSOR_OPAQUE, false);
    const auto start = reinterpret_cast<uintptr_t>(storage.get()->data());
    impl.dl.data = reinterpret_cast<void*>(start + static_cast<uintptr_t>(offset * wrapper.itemsize()));
    if (impl.sizes() == Ints(sizes) && impl.strides() == Ints(strides)) return;
    impl.SetSizesStrides(Ints(sizes), Ints(strides));
  });
}

MicaStatus CallOnMeta(void* op, const MicaValue* args, int64_t n, MicaValue* results, int64_t num_results) {
  return CatchAll([&] {
    CheckBoxedCall(OpOf(op), n, num_results);
    const Bare bare;
    const frames::ReplacedArguments twins(args, n, [](const Tensor& t) { return WithoutElements(t); });
    OpOf(op).CallBoxed(twins.data(), n, results);
  });
}

// ---- writes

int32_t OverlapOf(MicaTensor* a, MicaTensor* b) {
  switch (GetOverlap(Tensor::Ref(a), Tensor::Ref(b))) {
    case Overlap::kNo:
      return MICA_OVERLAP_NONE;
    case Overlap::kFull:
      return MICA_OVERLAP_FULL;
    case Overlap::kPartial:
      return MICA_OVERLAP_PARTIAL;
    case Overlap::kTooHard:
      break;
  }
  return MICA_OVERLAP_UNKNOWN;
}

MicaStatus CheckOverlap(MicaTensor* output, const char* output_name, MicaTensor* input,
                        const char* input_name) {
  return CatchAll([&] {
    if (input)
      CheckNoPartialOverlap(Tensor::Ref(output), Tensor::Ref(input), output_name, input_name);
    else
      CheckNoInternalOverlap(Tensor::Ref(output), output_name);
  });
}

MicaStatus CheckWritableBy(void* op, MicaTensor* t) {
  return CatchAll([&] { CheckWritable(Tensor::Ref(t), OpOf(op).spec()); });
}

MicaStatus CheckRecordedWrite(void* op, const char* name, MicaTensor* t) {
  return CatchAll([&] {
    const OperatorSpec& spec = OpOf(op).spec();
    if (spec.form == OpForm::kOut) RefuseRecordedOut(spec);
    if (OpOf(op).name() == "mica::resize_") RefuseRecordedResize(spec);
    ThrowIfError(AutogradTable().check_in_place(t, name ? name : spec.name));
  });
}

MicaStatus RefuseCaptured(void* op, const MicaFrame* frame, MicaTensor* t) {
  return CatchAll([&] { frames::ThrowCaptured(OpOf(op), *frame, Tensor::Ref(t)); });
}

void MarkWrittenBy(void* op, MicaTensor* t) {
  if (op) return MarkWritten(Tensor::Ref(t), OpOf(op).spec());
  Tensor::Ref(t).impl()->storage->BumpVersion();
}

}  // namespace mica::layers
