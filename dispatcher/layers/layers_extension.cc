// Third-party layers: their records become entries of the plugin's scope, their boxed
// functions stand behind one kernel of the host, and frames are those of frames.h.
#include "dispatcher/layers/layers_extension.h"

#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "absl/container/node_hash_map.h"
#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/calls/boxed_results.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/layers/faces.h"
#include "dispatcher/layers/layers_tensors.h"
#include "dispatcher/layers/layers_wrappers.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/plugins/status.h"
#include "dispatcher/registration/registration.h"
#include "dispatcher/tables/dispatcher.h"
#include "dispatcher/tables/keys.h"
#include "schema/value.h"
#include "tensor/generator.h"

namespace mica {
namespace {

std::string Text(const char* s) { return s ? s : ""; }
const Operator& OpOf(void* op) { return *static_cast<const Operator*>(op); }

// ---- registration ------------------------------------------------------------

// A boxed function of a plugin and its context. Never freed: a call may be in flight.
struct LayerFunction {
  MicaLayerFunction function;
  void* context;
};
LayerFunction* Keep(MicaLayerFunction function, void* context) {
  static auto& mutex = *new std::mutex();
  static auto& kept = *new absl::node_hash_map<std::pair<MicaLayerFunction, void*>, LayerFunction>();
  const std::lock_guard lock(mutex);
  return &kept.try_emplace({function, context}, LayerFunction{function, context}).first->second;
}

// Whether the operator gives one tensor and writes none of its arguments: nearly all do.
bool GivesTensor(const Operator& op) {
  const OperatorSpec& spec = op.spec();
  if (spec.form != OpForm::kFunctional || spec.written_args || spec.num_args > 64) return false;
  const std::vector<schema::Return>& returns = op.schema().returns;
  return returns.size() == 1 && returns[0].type.is_tensor();
}

void CallLayerFunction(const LayerFunction& f, const Operator& op, uint64_t keys, const MicaValue* args,
                       int64_t n, MicaValue* results) {
  const MicaLayerCall call = {sizeof(call),
                              HostTable(),
                              LayersExtension(),
                              f.context,
                              const_cast<Operator*>(&op),
                              layers::FaceOf(CurrentThread())};
  if (GivesTensor(op)) {
    results[0] = {kNoResult, 0, {}};
    ThrowIfError(f.function(keys, &call, args, n, results, 1));
    if (__builtin_expect(results[0].tag != MICA_VALUE_TENSOR, 0))
      CheckResults(op, "a plugin's layer", results);
    return;
  }
  const auto count = static_cast<int64_t>(op.schema().returns.size());
  if (!ExpectResults(op, results)) {  // an out form's caller has no room for what the schema returns
    ResultRoom unused(op);
    return ThrowIfError(f.function(keys, &call, args, n, unused, count));
  }
  ThrowIfError(f.function(keys, &call, args, n, results, count));
  CheckResults(op, "a plugin's layer", results);
}
void RunLayerFunction(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                      MicaValue* results) {
  CallLayerFunction(*static_cast<const LayerFunction*>(k.context), op, keys.bits(), args, n, results);
}

template <typename F>
MicaStatus InScope(void* context, F&& f) {
  return CatchAll([&] {
    Scope& scope = *static_cast<Scope*>(context);
    const std::lock_guard lock(RegistrationMutex());
    MICA_CHECK(scope.open(), "Plugin (", scope.name(),
               ") registers after its init has returned; a registrar is valid during init only.");
    f(scope);
  });
}

MicaStatus RegisterLayerOf(void* context, const char* name, const char* after, const char* before,
                           int32_t* bit) {
  return InScope(context, [&](Scope& scope) {
    const absl::StatusOr<int> given = scope.AddLayer(Text(name), {Text(after), Text(before)});
    MICA_CHECK(given.ok(), std::string(given.status().message()));
    if (bit) *bit = *given;
  });
}

Tensor Taken(MicaTensorResult r) {
  ThrowIfError(r.status);
  return Tensor::Steal(r.value);
}

// What a plugin's record says of its kind.
frames::Kind KindOfRecord(const MicaFrameKindRecord& r) {
  frames::Kind k;
  k.name = Text(r.name);
  k.after_escape = Text(r.after_escape);
  k.own_autograd = (r.flags & MICA_KIND_OWN_AUTOGRAD) != 0;
  k.writes_captured = (r.flags & MICA_KIND_WRITES_CAPTURED) != 0;
  k.moves_memory = (r.flags & MICA_KIND_MOVES_MEMORY) != 0;
  if (r.flags & MICA_KIND_HIDES_VALUE)
    k.unreadable = absl::StrCat("stands for more than one value inside of ", k.name,
                                ": choose by values with mica.where instead of `if`, or return the tensor "
                                "and read it outside");
  if (r.unreadable) k.unreadable = r.unreadable;
  if (r.flags & MICA_KIND_MIRRORS) k.settle = &frames::Mirror;
  void* const context = r.context;
  if (r.is_constant)
    k.is_constant = [f = r.is_constant, context](const Tensor& t, const frames::Wrapper&) {
      return f(context, t.impl()) != 0;
    };
  if (r.below_autograd)
    k.below_autograd = [f = r.below_autograd, context](const Operator& op, const MicaValue* args, int64_t n,
                                                       MicaValue* results) {
      CallLayerFunction({f, context}, op, 0, args, n, results);
    };
  if (r.lift)
    k.lift = [f = r.lift, context](Tensor value, const frames::Frame& frame) {
      return Taken(f(context, value.impl(), &frame));
    };
  if (r.read)
    k.read = [f = r.read, context](const Tensor& t, const frames::Frame& frame) {
      return Taken(f(context, t.impl(), &frame));
    };
  if (r.settle)
    k.settle = [f = r.settle, context](const Tensor& wrapper) { ThrowIfError(f(context, wrapper.impl())); };
  return k;
}

MicaStatus RegisterKindOf(void* context, const MicaFrameKindRecord* r, int32_t* kind) {
  return InScope(context, [&](Scope& scope) {
    MICA_CHECK(r && r->struct_size >= sizeof(*r), "Plugin (", scope.name(),
               ") registers a frame kind by a record that is NULL or too small.");
    const absl::StatusOr<int> given = scope.AddKind(KindOfRecord(*r));
    MICA_CHECK(given.ok(), std::string(given.status().message()));
    if (kind) *kind = *given;
  });
}

MicaStatus RegisterKernelOf(void* context, const MicaLayerKernelRecord* r) {
  return InScope(context, [&](Scope& scope) {
    MICA_CHECK(r && r->struct_size >= sizeof(*r) && r->key, "Plugin (", scope.name(),
               ") registers a layer's kernel by a record that is NULL, too small, or without a key.");
    MICA_CHECK(!r->function != !r->boxed, "The layer's kernel of plugin (", scope.name(), ") for (",
               r->name ? r->name : "all operators", ") at (", r->key,
               ") must have one function, boxed or unboxed.");
    const SourceLocation where{Text(r->file).empty() ? "" : r->file, static_cast<int>(r->line)};
    const BoxedKernel boxed{&RunLayerFunction, r->boxed ? Keep(r->boxed, r->context) : nullptr, nullptr};
    if (r->function) {
      MICA_CHECK(r->name && r->schema_hash, "The unboxed kernel of plugin (", scope.name(), ") at (", r->key,
                 ") names no operator or no schema_hash; one signature does not fit all.");
      scope.AddKernel(r->name, r->key, r->function, r->context, where, r->schema_hash);
    } else if (r->name) {
      scope.AddBoxedKernel(r->name, r->key, boxed, where);
    } else {
      scope.AddBoxedFallback(r->key, boxed, where);
    }
  });
}

// A plugin's rule. Never freed: a table may be in the making.
struct Rule {
  void (*choose)(void* context, void* op, MicaLayerChoice* out);
  void* context;
};

LayerChoice ChooseBy(void* context, const Operator& op) {
  const Rule& rule = *static_cast<const Rule*>(context);
  MicaLayerChoice given{};
  given.struct_size = sizeof(given);
  rule.choose(rule.context, const_cast<Operator*>(&op), &given);
  LayerChoice choice;
  if (given.what == MICA_CHOICE_PASS) choice.what = LayerChoice::What::kPass;
  if (given.what != MICA_CHOICE_KERNEL || !given.boxed) return choice;
  choice.what = LayerChoice::What::kKernel;
  choice.kernel = {&RunLayerFunction, Keep(given.boxed, given.context), nullptr};
  return choice;
}

MicaStatus RegisterRuleOf(void* context, const MicaLayerRuleRecord* r) {
  return InScope(context, [&](Scope& scope) {
    MICA_CHECK(r && r->struct_size >= sizeof(*r) && r->key && r->choose, "Plugin (", scope.name(),
               ") registers a rule by a record that is NULL, too small, or without a key or a function.");
    scope.AddRule(r->key, &ChooseBy, new Rule{r->choose, r->context});
  });
}

MicaStatus DecomposeAtKey(void* context, const char* key) {
  return InScope(context, [&](Scope& scope) { scope.DecomposeAt(Text(key)); });
}
MicaStatus FallThroughAt(void* context, const char* name, const char* key) {
  return InScope(context, [&](Scope& scope) { scope.AddFallthrough(Text(name), Text(key)); });
}

// ---- operators and this thread -----------------------------------------------

const MicaOperatorInfo* OperatorInfoOf(void* op) { return &InfoOf(OpOf(op)); }

const char* OperatorPolicyOf(void* op, const char* name) { return PolicyOf(OpOf(op).spec(), name); }

MicaStatus OpenLayer(const char* name) {
  return CatchAll([&] { EnsureProvider(absl::StrCat("layer:", name)); });
}
void* FindOperatorNamed(const char* name) { return FindOperator(name); }

// In a rule, which is asked with the dispatcher's lock held.
int32_t OperatorAt(void* op, const char* key) {
  const int number = KeyByName(key);
  if (number < 0) return MICA_AT_NOTHING;
  const Resolution r = Dispatcher::Get().ResolveSlot(OpOf(op), number);
  if (r.fallthrough || r.reason == SlotReason::kMissing) return MICA_AT_NOTHING;
  const MicaFunction composite = OpOf(op).spec().composite;
  const bool decomposes = composite ? r.slot.fn == composite : r.reason == SlotReason::kComposite;
  return decomposes ? MICA_AT_DECOMPOSITION : MICA_AT_KERNEL;
}

// Likewise.
uint64_t TakesOpaqueTensors(void* op) { return Dispatcher::Get().TakesOpaque(OpOf(op)).bits(); }

MicaStatus ComputeDType(void* op, const MicaValue* args, int64_t n, int32_t* dtype) {
  return CatchAll([&] {
    const OperatorSpec& spec = OpOf(op).spec();
    MICA_CHECK_TYPE(n >= spec.num_functional_args, "Operator ", spec.name, " takes (",
                    spec.num_functional_args, ") arguments in its functional form, and a layer gives (", n,
                    ").");
    MetaResult meta;
    if (spec.meta) spec.meta(spec, args, meta);
    *dtype = meta.compute_dtype;
  });
}

MicaStatus Redispatch(void* op, uint64_t keys, const MicaValue* args, int64_t n, MicaValue* results,
                      int64_t num_results) {
  return CatchAll([&] {
    MICA_CHECK(!(KeySet(keys) & keys::kBackends).empty(), "Operator ", OpOf(op).spec().name,
               " is redispatched with a key set (", ToString(KeySet(keys)),
               ") that has no backend; pass on the keys that the kernel got, less those of its own layer.");
    CheckBoxedCall(OpOf(op), n, num_results);
    OpOf(op).RedispatchBoxed(KeySet(keys), args, n, results);
  });
}

uint64_t KeysOfCall(void* op, const MicaValue* args, int64_t n) {
  const ThreadState& t = CurrentThread();
  return ((OpOf(op).KeysOf(args, n) | t.include) - t.exclude).bits();
}

MicaStatus Decompose(void* op, uint64_t keys, const MicaValue* args, int64_t n, MicaValue* results,
                     int64_t num_results) {
  return CatchAll([&] {
    const OperatorSpec& spec = OpOf(op).spec();
    MICA_CHECK_IMPLEMENTED(spec.composite && spec.adapters, "Operator ", spec.name,
                           " has no decomposition of Mica's to run at a layer; redispatch it instead.");
    CheckBoxedCall(OpOf(op), n, num_results);
    spec.adapters->call_slot({spec.composite, nullptr}, KeySet(keys), args, results);
  });
}

// A plugin has no say in what frames include.
constexpr KeySet kOfFrames =
    KeySet::Of(keys::kFrame) | KeySet::Of(keys::kFrameEscape) | KeySet::Of(keys::kFrameBelow);

uint64_t Exchange(KeySet& set, uint64_t bits) {
  const KeySet theirs = keys::kLayers - kOfFrames, before = set;
  set = (set - theirs) | (KeySet(bits) & theirs);
  return before.bits();
}
uint64_t ExchangeInclude(uint64_t bits) { return Exchange(CurrentThread().include, bits); }
uint64_t ExchangeExclude(uint64_t bits) { return Exchange(CurrentThread().exclude, bits); }

int32_t ExchangeGradEnabled(int32_t on) { return std::exchange(CurrentThread().grad_enabled, on != 0); }

MicaDevice DefaultDevice() { return CurrentThread().default_device.ToAbi(); }

// A value, and a reference to the generator that it may be.
struct KeptValue {
  explicit KeptValue(const MicaValue& v) : value(Value::FromBorrowed(v)) {
    if (v.tag == MICA_VALUE_GENERATOR && v.u.generator) generator = Generator::FromAbi(v.u.generator);
    if (generator) generator->Retain();
  }
  ~KeptValue() {
    if (generator) generator->Release();
  }
  KeptValue(const KeptValue&) = delete;
  KeptValue& operator=(const KeptValue&) = delete;
  Value value;
  Generator* generator = nullptr;
};
MicaStatus KeepValue(const MicaValue* value, MicaKeptValue** kept, MicaValue* copy) {
  return CatchAll([&] {
    auto made = std::make_unique<KeptValue>(*value);
    *copy = made->value.Borrow();
    *kept = reinterpret_cast<MicaKeptValue*>(made.release());
  });
}
void ReleaseValue(MicaKeptValue* kept) { delete reinterpret_cast<KeptValue*>(kept); }

uint64_t TensorKeys(MicaTensor* t) { return Tensor::Ref(t).keys().bits(); }
MicaStatus TensorAttach(MicaTensor* t, int32_t bit, int32_t on) {
  return CatchAll([&] {
    MICA_CHECK_VALUE(IsThirdPartyLayer(bit), "Bit (", bit,
                     ") is not of a layer that a plugin registered, so it is not put on a tensor.");
    TensorImpl& impl = *Tensor::Ref(t).impl();
    impl.keys = on ? impl.keys | KeySet::Of(bit) : impl.keys - KeySet::Of(bit);
  });
}

// ---- frames ------------------------------------------------------------------

// What a MicaFrameScope holds.
template <typename T>
T& In(MicaFrameScope* scope) {
  static_assert(sizeof(T) <= sizeof(MicaFrameScope) && alignof(T) <= alignof(MicaFrameScope));
  return *std::launder(reinterpret_cast<T*>(scope->opaque));
}

MicaStatus FrameEnter(int32_t kind, void* payload, uint64_t tag, MicaFrameScope* scope) {
  return CatchAll([&] {
    MICA_CHECK_VALUE(kind >= 0 && kind < frames::NumKinds(), "Frame kind number (", kind,
                     ") is not given to a kind.");
    new (scope->opaque) frames::FrameScope(kind, payload, tag);
  });
}
MicaStatus FrameExit(MicaFrameScope* scope) {
  return CatchAll([&] {
    auto& entered = In<frames::FrameScope>(scope);
    MICA_CHECK(frames::Current() == &entered.frame(), "A frame of (",
               frames::KindOf(entered.frame().kind).name,
               ") is left on another thread than it was entered on, or while one inside of it is active.");
    entered.~FrameScope();
  });
}
MicaStatus FrameLeave(MicaFrameScope* scope, MicaFrame* left) {
  return CatchAll([&] {
    MICA_CHECK(frames::Current(), "A frame is left while none is current: leave it in a kernel of its kind.");
    *left = *frames::Current();
    new (scope->opaque) frames::LeaveFrame();
  });
}
void FrameReturn(MicaFrameScope* scope) { In<frames::LeaveFrame>(scope).~LeaveFrame(); }

void Put(const MicaPayload& p, frames::Wrapper& w) {
  w.number = p.number;
  w.second = Tensor::Borrow(p.second);
  w.shared = frames::SharedObject(p.shared);
}

MicaTensorResult WrapValue(MicaTensor* value, const MicaFrame* frame, MicaTensor* base,
                           const MicaPayload* payload) {
  return layers::ReturnTensor([&] {
    MICA_CHECK(value && frame && frame->kind >= 0, "A wrapper needs a value and a frame.");
    const int64_t hidden = payload ? payload->hidden : 0;
    MICA_CHECK_VALUE(hidden >= 0 && hidden <= value->dl.ndim, "A wrapper hides (", hidden,
                     ") leading dimensions of a value (", Tensor::Ref(value).ToString(),
                     "), which has fewer.");
    Tensor wrapper = frames::Wrap(Tensor::Borrow(value), *frame, Tensor::Ref(base), static_cast<int>(hidden));
    if (payload && (payload->second || payload->number || payload->shared))
      Put(*payload, frames::WrapperOf(wrapper));
    return wrapper;
  });
}

MicaStatus SetPayload(MicaTensor* t, const MicaFrame* frame, const MicaPayload* payload) {
  return CatchAll([&] {
    frames::Wrapper* const w = frames::Own(Tensor::Ref(t), *frame);
    if (!w) return;
    MICA_CHECK_VALUE(payload->hidden == w->hidden, "A payload that hides (", payload->hidden,
                     ") dimensions is put on a wrapper that hides (", w->hidden, "); wrap the value anew.");
    Put(*payload, *w);
  });
}

MicaStatus CallInParentOf(void* op, const MicaValue* args, int64_t n, MicaValue* results,
                          int64_t num_results) {
  return CatchAll([&] {
    MICA_CHECK(frames::Current(), "Operator ", OpOf(op).spec().name,
               " is called in the parent of a frame while none is current.");
    CheckBoxedCall(OpOf(op), n, num_results);
    frames::CallInParent(OpOf(op), args, n, results);
  });
}

}  // namespace

const MicaLayers* LayersExtension() {
  static const MicaLayers table = {.struct_size = sizeof(MicaLayers),
                                   .major = MICA_LAYERS_MAJOR,
                                   .minor = MICA_LAYERS_MINOR,
                                   .register_layer = &RegisterLayerOf,
                                   .register_kind = &RegisterKindOf,
                                   .register_kernel = &RegisterKernelOf,
                                   .register_rule = &RegisterRuleOf,
                                   .decompose_at = &DecomposeAtKey,
                                   .fall_through = &FallThroughAt,
                                   .operator_info = &OperatorInfoOf,
                                   .operator_policy = &OperatorPolicyOf,
                                   .compute_dtype = &ComputeDType,
                                   .redispatch = &Redispatch,
                                   .call_of = &layers::CallOf,
                                   .keys_of = &KeysOfCall,
                                   .decompose = &Decompose,
                                   .exchange_include = &ExchangeInclude,
                                   .exchange_exclude = &ExchangeExclude,
                                   .thread = &layers::ThreadFace,
                                   .tensor_traits = &layers::TensorTraits,
                                   .tensor_version = &layers::TensorVersion,
                                   .set_requires_grad = &layers::SetRequiresGrad,
                                   .gradient = &layers::GradientOf,
                                   .set_gradient = &layers::SetGradient,
                                   .tensor_empty_strided = &layers::EmptyStridedOf,
                                   .default_device = &DefaultDevice,
                                   .layer_bit = [](const char* name) -> int32_t { return LayerBit(name); },
                                   .keep_value = &KeepValue,
                                   .release_value = &ReleaseValue,
                                   .tensor_keys = &TensorKeys,
                                   .tensor_attach = &TensorAttach,
                                   .frame_enter = &FrameEnter,
                                   .frame_exit = &FrameExit,
                                   .frame_leave = &FrameLeave,
                                   .frame_return = &FrameReturn,
                                   .wrap = &WrapValue,
                                   .wrapper = &layers::WrapperFace,
                                   .call_in_parent = &CallInParentOf,
                                   .set_payload = &SetPayload,
                                   .set_value = &layers::SetValue,
                                   .show_device = &layers::ShowDevice,
                                   .exchange_grad_enabled = &ExchangeGradEnabled,
                                   .open_layer = &OpenLayer,
                                   .find_operator = &FindOperatorNamed,
                                   .operator_at = &OperatorAt,
                                   .tensor_details = &layers::TensorDetails,
                                   .tensor_storage = &layers::TensorStorage,
                                   .tensor_view = &layers::ViewTensor,
                                   .view_by = &layers::ViewByOperator,
                                   .set_view_creation = &layers::SetViewCreation,
                                   .show_memory = &layers::ShowMemory,
                                   .call_on_meta = &layers::CallOnMeta,
                                   .overlap = &layers::OverlapOf,
                                   .check_overlap = &layers::CheckOverlap,
                                   .check_writable = &layers::CheckWritableBy,
                                   .check_recorded_write = &layers::CheckRecordedWrite,
                                   .refuse_captured = &layers::RefuseCaptured,
                                   .mark_written = &layers::MarkWrittenBy,
                                   .views_of = &layers::ViewsOf,
                                   .raise_version = &layers::RaiseVersion,
                                   .frame_of = &layers::FrameOf,
                                   .move_wrapper = &layers::MoveWrapper,
                                   .settle = &layers::Settle,
                                   .check_readable = &layers::CheckReadable,
                                   .describe = &layers::Describe,
                                   .has_own_class = &layers::HasOwnClass,
                                   .warn_once = &layers::WarnOnceOf,
                                   .take_list = &layers::TakeList,
                                   .takes_opaque = &TakesOpaqueTensors,
                                   .make_memory = &layers::MakeMemory};
  static_assert(MICA_KEYS_OF_BACKENDS == keys::kBackends.bits());
  return &table;
}

}  // namespace mica
