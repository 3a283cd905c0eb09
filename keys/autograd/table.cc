// The functions of MicaAutograd over the engine: mostly one line each.
#include "keys/autograd/table.h"

#include <algorithm>
#include <functional>
#include <string>

#include "keys/autograd/anomaly.h"
#include "keys/autograd/backward.h"
#include "keys/autograd/copy_on_write.h"
#include "keys/autograd/custom.h"
#include "keys/autograd/data_alias.h"
#include "keys/autograd/forward.h"
#include "keys/autograd/given.h"
#include "keys/autograd/grad_frame.h"
#include "keys/autograd/graph_task.h"
#include "keys/autograd/hooks.h"
#include "keys/autograd/inspect.h"
#include "keys/autograd/meta.h"
#include "keys/autograd/saved_tensor.h"

using mica::autograd::Node;
using mica::autograd::SavedTensor;

// What the table's handles are.
struct MicaSavedTensor {
  std::weak_ptr<mica::autograd::NodeExtra> owner;  // the node most often holds this through what it saved
  SavedTensor saved;
};
struct MicaSavedCopies {
  mica::autograd::SavedLister list;
};

namespace mica::autograd {
namespace {

// What is computed with a dual number is recorded where its value is, outside of the frame: there lie
// its gradient, its node and its hooks.
using forward::Primal;

// As AbiReturn's, inline: the attributes of a tensor are read by these.
template <typename F>
[[gnu::always_inline]] inline MicaIntResult ReturnInt(F&& f) noexcept {
  try {
    return {static_cast<int64_t>(f()), nullptr};
  } catch (...) {
    return {0, StatusOfCurrentException()};
  }
}
template <typename F>
[[gnu::always_inline]] inline MicaTensorResult ReturnTensor(F&& f) noexcept {
  try {
    return {f().release(), nullptr};
  } catch (...) {
    return {nullptr, StatusOfCurrentException()};
  }
}
template <typename F>
[[gnu::always_inline]] inline MicaStatus ReturnStatus(F&& f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return StatusOfCurrentException();
  }
}
// Into the caller's array.
void GiveAll(std::vector<Tensor> tensors, MicaTensor** out) {
  for (Tensor& t : tensors) *out++ = t.release();
}

// A gradient that is given: one with a tangent gives it on.
const Tensor& Cotangent(const Tensor& t) { return forward::HasTangent(t) ? t : Primal(t); }
std::vector<Tensor> Cotangents(MicaTensorSpan given) {
  std::vector<Tensor> cotangents;
  for (const Tensor& t : ListOf(given)) cotangents.push_back(t.defined() ? Cotangent(t) : t);
  return cotangents;
}

// Where gradients are asked for, of tensors whose tangents the gradients would not have.
Tensor PointIn(const Tensor& t) {
  MICA_CHECK_IMPLEMENTED(!forward::HasTangent(t) || !RequiresGrad(Primal(t)), "The tensor ", t.ToString(),
                         " is a dual number, and gradients of dual numbers would lose their tangents. Take "
                         "unpack_dual(output).primal (or .tangent) for the gradient alone, or "
                         "mica.func.jvp(mica.func.grad(f), (x,), (v,)) for its tangent, too.");
  return Primal(t);
}
GradientPoints PointsOf(MicaGradientPoints given) {
  GradientPoints points;
  points.reserve(static_cast<size_t>(std::max<int64_t>(given.size, 0)));
  for (int64_t i = 0; i < given.size; ++i) {
    const MicaGradientPoint& point = given.data[i];
    if (point.tensor || !point.edge.node) {
      points.push_back({point.tensor ? PointIn(Tensor::Ref(point.tensor)) : Tensor(), {}});
      continue;
    }
    const NodeRef node = NodeRef::Borrow(FromAbi(point.edge.node));
    const int64_t number = point.edge.input_nr;
    MICA_CHECK_INDEX(number >= 0 && number < node->num_outputs(), "The edge into number (", number, ") of ",
                     node->name(), " is none of its (", node->num_outputs(), ") edges.");
    points.push_back({Tensor(), {node, static_cast<uint32_t>(number)}});
  }
  return points;
}
uint64_t CheckedFlags(uint64_t flags) {
  constexpr uint64_t kKnown = MICA_BACKWARD_RETAIN_GRAPH | MICA_BACKWARD_CREATE_GRAPH |
                              MICA_BACKWARD_ALLOW_UNUSED | MICA_BACKWARD_MATERIALIZE_GRADS;
  MICA_CHECK_VALUE((flags & ~kKnown) == 0, "The flags (", flags,
                   ") of a backward hold some that there are not; expected bits of (", kKnown, ").");
  return flags;
}

const frames::Frame& CurrentFrame(int kind, const char* name, const char* call) {
  const frames::Frame* frame = frames::Current();
  MICA_CHECK(frame && frame->kind == kind, "MicaAutograd::", call, " is called where the current frame is ",
             frame ? frames::KindOf(frame->kind).name : "none", "; expected one of the kind ", name, ".");
  return *frame;
}

// ---- tensors

Tensor Grad(const Tensor& t) {
  const Meta* meta = GetMeta(t);
  if (!meta) return Tensor();
  if (meta->retained) return meta->retained->grad;
  std::lock_guard lock(LockOf(t.impl()));
  return meta->grad;
}

void CheckGrad(const Tensor& t, const Tensor& grad) {
  MICA_CHECK(grad.sizes() == t.sizes(), "The gradient's shape ", ShapeText(grad.sizes()),
             " differs from the tensor's shape ", ShapeText(t.sizes()), ".");
  MICA_CHECK(grad.dtype() == t.dtype(), "The gradient's dtype (", Name(grad.dtype()),
             ") differs from the tensor's dtype (", Name(t.dtype()), ").");
  MICA_CHECK(grad.device() == t.device(), "The gradient's device (", grad.device().ToString(),
             ") differs from the tensor's device (", t.device().ToString(), ").");
  MICA_CHECK(!grad.is_same(t), "A tensor cannot be its own gradient.");
}

void SetGrad(const Tensor& t, const Tensor& grad) {
  if (grad.defined()) CheckGrad(t, grad);
  if (!grad.defined() && !GetMeta(t)) return;
  Meta& meta = EnsureMeta(t);
  if (meta.retained) {
    meta.retained->grad = grad;
    return;
  }
  Tensor old = grad;  // freed after the lock
  std::lock_guard lock(LockOf(t.impl()));
  std::swap(meta.grad, old);
}

void SetRequiresGradOf(const Tensor& t, bool on) {
  MICA_CHECK_IMPLEMENTED(!on || !forward::HasTangent(t), "requires_grad cannot be set on a dual number, ",
                         t.ToString(), ". Let the tensor require grad before make_dual().");
  SetRequiresGrad(Primal(t), on);
}

void DetachInPlace(const Tensor& t) {
  // Others have no history that their base could change.
  MICA_CHECK(!IsDifferentiableView(t) || t.is_inference(),
             "A view cannot be detached in place; use detach().");
  if (Meta* meta = GetMeta(t)) {
    meta->grad_fn = nullptr;
    meta->output_nr = 0;
    meta->retained = nullptr;
  }
  SetRequiresGrad(t, false);
}

MicaEdge Give(Edge edge) { return {edge.node.release(), edge.input_nr}; }

// ---- nodes

MicaEdge NextOf(Node& node, int64_t i) {
  MICA_CHECK_INDEX(i >= 0 && i < node.num_next(), "Edge (", i, ") is none of the (", node.num_next(), ") of ",
                   node.name(), ".");
  return Give(node.next(static_cast<int>(i)));
}
MicaNodeResult ResultOf(Node& node, int64_t i) {
  MICA_CHECK_INDEX(i >= 0 && i < node.num_outputs(), "Result (", i, ") is none of the (", node.num_outputs(),
                   ") of ", node.name(), ".");
  const OutputInfo& info = node.output(static_cast<int>(i));
  if (!info.defined) return {};
  return {1, static_cast<int32_t>(info.dtype), info.device.ToAbi(), {info.sizes().data(), info.ndim}};
}

// ---- saving

std::shared_ptr<SavedTensorHooks> HooksOf(const MicaSavedTensorHooks* given, const char* call) {
  const MicaSavedTensorHooks& functions = Given(given, call);
  const Held held(functions.held);
  CheckFunction(functions.pack, call);
  CheckFunction(functions.unpack, call);
  auto hooks = std::make_shared<SavedTensorHooks>();
  hooks->pack = [held, pack = functions.pack](const Tensor& t) {
    MicaHeld packed{};
    ThrowIfError(pack(held.object(), t.impl(), &packed));
    return std::shared_ptr<void>(packed.object, DestroyCustom{packed.destroy});
  };
  hooks->unpack = [held, unpack = functions.unpack](const std::shared_ptr<void>& packed) {
    return AbiReturn<Tensor>::Unpack(unpack(held.object(), packed.get()));
  };
  return hooks;
}

NodeRef Living(const std::weak_ptr<NodeExtra>& node) {
  const std::shared_ptr<NodeExtra> extra = node.lock();
  if (!extra) return NodeRef();
  const std::lock_guard lock(extra->node_lock);
  return extra->node && extra->node->TryRetain() ? NodeRef::Steal(extra->node) : NodeRef();
}
MicaSavedTensor* Save(const Tensor& t, Node* owner, bool is_output) {
  auto box = std::make_unique<MicaSavedTensor>();
  if (owner) {
    owner->EnsureExtra();
    box->owner = owner->weak_extra();
  }
  if (is_output)
    box->saved.SaveOutput(t, GetMeta(t) ? GetMeta(t)->output_nr : 0);
  else
    box->saved.Save(t);
  return box.release();
}

MicaStatus Forbid(const MicaStr* message, void* to, void (*before)(void* to, MicaStr message)) {
  return CatchAll([&] {
    const std::optional<std::string> old = ForbidSavedTensorHooks(
        message ? std::optional<std::string>(TextOf(*message)) : std::optional<std::string>());
    if (old && before) before(to, StrOf(*old));
  });
}

// ---- running

MicaStatus QueueCallback(MicaStatus (*function)(void*), MicaHeld object) {
  const Held held(object);
  return CatchAll([&] {
    CheckFunction(function, "queue_callback");
    GraphTask* task = GraphTask::Current();
    MICA_CHECK(task, "A callback for the end of backward can be queued during backward only.");
    task->AddCallback([held, function] { ThrowIfError(function(held.object())); });
  });
}

bool WillRun(const Node& node) {
  MICA_CHECK(GraphTask::Current(), "Which nodes run can be asked while backward runs only.");
  return GraphTask::Current()->WillRun(&node);
}

MicaStatus SetAnomalyHooks(MicaStatus (*record)(void*, void*, void (*)(void*, MicaStr)),
                           MicaStatus (*report)(void*, MicaStr), MicaHeld object) {
  const Held held(object);
  return CatchAll([&] {
    std::function<std::string()> stack;
    if (record)
      stack = [held, record] {
        std::string text;
        ThrowIfError(record(held.object(), &text,
                            [](void* to, MicaStr s) { static_cast<std::string*>(to)->append(TextOf(s)); }));
        return text;
      };
    std::function<void(const std::string&)> tell;
    if (report)
      tell = [held, report](const std::string& text) { ThrowIfError(report(held.object(), StrOf(text))); };
    SetAnomalyCallbacks(std::move(stack), std::move(tell));
  });
}

// ---- custom functions

MicaStatus MakeCustom(const MicaCustomFunction* function, void* object, MicaStr name, MicaTensorSpan inputs,
                      MicaNode** node) {
  CustomObject owned(object, DestroyCustom{function ? function->destroy : nullptr});
  return CatchAll([&] {
    const MicaCustomFunction& f = Given(function, "custom_node");
    CheckFunction(f.backward, "custom_node");
    *node = MakeCustomNode(f, std::move(owned), std::string(TextOf(name)), ListOf(inputs)).release();
  });
}

std::vector<Tensor> Finish(MicaNode* node, const MicaCustomOutputs* given) {
  const MicaCustomOutputs& call = Given(given, "custom_finish");
  return FinishCustom(FromAbi(node), {ListOf(call.inputs), ListOf(call.outputs), ListOf(call.dirty),
                                      ListOf(call.non_differentiable), call.materialize_grads != 0});
}

}  // namespace

const MicaAutograd kTable = {
    .table = {sizeof(MicaAutograd), 1, 0},

    .requires_grad =
        [](MicaTensor* t) {
          return ReturnInt([&] { return RequiresGrad(Primal(Given(t, "requires_grad"))); });
        },
    .set_requires_grad =
        [](MicaTensor* t, int32_t on) {
          return ReturnStatus([&] { SetRequiresGradOf(Given(t, "set_requires_grad"), on != 0); });
        },
    .is_leaf =
        [](MicaTensor* given) {
          return ReturnInt([&] {
            const Tensor &t = Given(given, "is_leaf"), &primal = Primal(t);
            return IsLeaf(primal) && !(forward::HasTangent(t) && RequiresGrad(primal));
          });
        },
    .grad = [](MicaTensor* t) { return ReturnTensor([&] { return Grad(Primal(Given(t, "grad"))); }); },
    .set_grad =
        [](MicaTensor* t, MicaTensor* grad) {
          return CatchAll(
              [&] { SetGrad(Primal(Given(t, "set_grad")), grad ? Cotangent(Tensor::Ref(grad)) : Tensor()); });
        },
    .grad_fn =
        [](MicaTensor* t, MicaNode** node) {
          return ReturnStatus([&] { *node = GradFn(Primal(Given(t, "grad_fn"))).release(); });
        },
    .output_nr =
        [](MicaTensor* given) {
          return ReturnInt([&] {
            const Tensor& t = Primal(Given(given, "output_nr"));
            return GradFn(t) ? GetMeta(t)->output_nr : 0;
          });
        },
    .gradient_edge =
        [](MicaTensor* t, MicaEdge* edge) {
          return CatchAll([&] { *edge = Give(GradientEdge(Primal(Given(t, "gradient_edge")))); });
        },
    .detach = [](MicaTensor* t) { return ReturnTensor([&] { return DetachedAlias(Given(t, "detach")); }); },
    .detach_in_place =
        [](MicaTensor* t) { return CatchAll([&] { DetachInPlace(Given(t, "detach_in_place")); }); },
    .leave_base = [](MicaTensor* t) { return CatchAll([&] { LeaveBase(Given(t, "leave_base")); }); },
    .data = [](MicaTensor* t) { return ReturnTensor([&] { return DataAlias(Given(t, "data")); }); },
    .set_data =
        [](MicaTensor* t, MicaTensor* data) {
          return CatchAll([&] { SetData(Given(t, "set_data"), Given(data, "set_data")); });
        },
    .retain_grad =
        [](MicaTensor* t) { return CatchAll([&] { RetainGrad(Primal(Given(t, "retain_grad"))); }); },
    .retains_grad =
        [](MicaTensor* given) {
          return ReturnInt([&] {
            const Meta* meta = GetMeta(Primal(Given(given, "retains_grad")));
            return meta && meta->retained;
          });
        },
    .check_in_place =
        [](MicaTensor* t, const char* op) {
          return CatchAll([&] { CheckInplace(Given(t, "check_in_place"), op); });
        },

    .add_tensor_hook = &AddTensorHook,
    .add_accumulate_hook = &AddAccumulateHook,
    .add_node_hook = &AddNodeHook,
    .add_node_post_hook = &AddNodePostHook,
    .hook_remove = [](MicaHook* hook) { hook->remove(); },
    .hook_release = [](MicaHook* hook) { delete hook; },

    .node_retain = [](MicaNode* node) { FromAbi(node)->Retain(); },
    .node_release = [](MicaNode* node) { FromAbi(node)->Release(); },
    .node_retain_living = [](MicaNode* node) -> int32_t { return FromAbi(node)->TryRetain(); },
    .node_held_once = [](MicaNode* node) -> int32_t { return FromAbi(node)->IsHeldOnce(); },
    .node_name = [](MicaNode* node) { return StrOf(FromAbi(node)->name()); },
    .node_sequence = [](MicaNode* node) { return FromAbi(node)->sequence_number(); },
    .node_num_next = [](MicaNode* node) -> int64_t { return FromAbi(node)->num_next(); },
    .node_next =
        [](MicaNode* node, int64_t i, MicaEdge* edge) {
          return ReturnStatus([&] { *edge = NextOf(Given(node, "node_next"), i); });
        },
    .node_variable = [](MicaNode* node) -> MicaTensor* {
      const Tensor* leaf = FromAbi(node)->variable();
      return leaf ? Tensor(*leaf).release() : nullptr;
    },
    .node_num_results = [](MicaNode* node) -> int64_t { return FromAbi(node)->num_outputs(); },
    .node_result =
        [](MicaNode* node, int64_t i, MicaNodeResult* result) {
          return CatchAll([&] { *result = ResultOf(Given(node, "node_result"), i); });
        },
    .saved_names =
        [](MicaNode* node, void* to, void (*name)(void* to, MicaStr name)) {
          return CatchAll([&] {
            for (const char* saved : SavedNamesOf(Given(node, "saved_names"))) name(to, StrOf(saved));
          });
        },
    .has_saved =
        [](MicaNode* node, MicaStr name) {
          return ReturnInt([&] { return HasSaved(Given(node, "has_saved"), TextOf(name)); });
        },
    .saved =
        [](MicaNode* node, MicaStr name, void* to, void (*take)(void* to, const MicaValue* value)) {
          return CatchAll([&] {
            const Value kept = SavedOf(Given(node, "saved"), TextOf(name));
            const MicaValue value = kept.Borrow();
            take(to, &value);
          });
        },
    .hook_saved =
        [](MicaNode* node, MicaStr name, int64_t index, const MicaSavedTensorHooks* hooks) {
          return CatchAll([&] {
            HookSaved(Given(node, "hook_saved"), TextOf(name), index, HooksOf(hooks, "hook_saved"));
          });
        },

    .backward =
        [](MicaGradientPoints outputs, MicaTensorSpan grads, MicaGradientPoints inputs, uint64_t flags) {
          return CatchAll(
              [&] { Backward(PointsOf(outputs), Cotangents(grads), PointsOf(inputs), CheckedFlags(flags)); });
        },
    .gradients =
        [](MicaGradientPoints outputs, MicaGradientPoints inputs, MicaTensorSpan grads, uint64_t flags,
           MicaTensor** found) {
          return CatchAll([&] {
            GiveAll(Gradients(PointsOf(outputs), PointsOf(inputs), Cotangents(grads), CheckedFlags(flags)),
                    found);
          });
        },
    .backward_number = []() -> uint64_t { return GraphTask::Current() ? GraphTask::Current()->number() : 0; },
    .will_run = [](MicaNode* node) { return ReturnInt([&] { return WillRun(Given(node, "will_run")); }); },
    .queue_callback = &QueueCallback,
    .set_interrupt_check = &SetInterruptCheck,

    .set_anomaly_mode = [](uint64_t flags) { g_anomaly.store((flags & MICA_ANOMALY_ON) != 0 ? flags : 0); },
    .anomaly_mode = []() -> uint64_t { return g_anomaly.load(); },
    .set_anomaly_hooks = &SetAnomalyHooks,

    .save =
        [](MicaTensor* t, MicaNode* owner, int32_t is_output, MicaSavedTensor** saved) {
          return CatchAll([&] { *saved = Save(Given(t, "save"), FromAbi(owner), is_output != 0); });
        },
    .saved_unpack =
        [](MicaSavedTensor* saved) {
          return ReturnTensor([&] {
            MICA_CHECK_TYPE(saved,
                            "MicaAutograd::saved_unpack was given NULL in the place of a saved tensor.");
            return saved->saved.Unpack(Living(saved->owner).get());
          });
        },
    .saved_release = [](MicaSavedTensor* saved) { delete saved; },
    .push_saved_tensor_hooks =
        [](const MicaSavedTensorHooks* hooks) {
          return CatchAll([&] { PushSavedTensorHooks(HooksOf(hooks, "push_saved_tensor_hooks")); });
        },
    .pop_saved_tensor_hooks = []() { return CatchAll([] { PopSavedTensorHooks(); }); },
    .forbid_saved_tensor_hooks = &Forbid,
    .push_copy_on_write =
        [](MicaSavedCopies** copies) {
          return CatchAll([&] { *copies = new MicaSavedCopies{PushCopyOnWrite()}; });
        },
    .pop_copy_on_write = []() { return CatchAll([] { PopCopyOnWrite(); }); },
    .saved_copies =
        [](MicaSavedCopies* copies, int32_t only_copies, void* to, void (*take)(void* to, MicaTensor* t)) {
          return CatchAll([&] {
            for (const Tensor& t : copies->list(only_copies != 0)) take(to, t.impl());
          });
        },
    .saved_copies_release = [](MicaSavedCopies* copies) { delete copies; },

    .custom_node = &MakeCustom,
    .custom_finish =
        [](MicaNode* node, const MicaCustomOutputs* call, MicaTensor** results) {
          return CatchAll([&] { GiveAll(Finish(node, call), results); });
        },
    .custom_object = [](MicaNode* node,
                        const MicaCustomFunction* function) { return FromAbi(node)->ObjectOf(function); },

    .grad_input =
        [](MicaTensor* value) {
          return ReturnTensor([&] {
            return MakeGradInput(Given(value, "grad_input"), CurrentFrame(GradKind(), "grad", "grad_input"));
          });
        },
    .dual =
        [](MicaTensor* value, MicaTensor* tangent) {
          return ReturnTensor([&] {
            return forward::MakeDual(Given(value, "dual"), Tensor::Ref(tangent),
                                     CurrentFrame(forward::JvpKind(), "jvp", "dual"));
          });
        },
    .tangent =
        [](MicaTensor* dual) {
          return ReturnTensor([&] { return forward::TangentOf(Given(dual, "tangent")); });
        },

    .visit_held = [](MicaTensor* t, void* to,
                     MicaVisitHeld visit) { VisitHeldByTensor(Tensor::Ref(t), to, visit); },
    .node_visit_held = [](MicaNode* node, void* to,
                          MicaVisitHeld visit) { VisitHeldBy(*FromAbi(node), to, visit); },
    .node_data = [](MicaNode* node) -> void* {
      const NodeExtra* extra = FromAbi(node)->extra();
      return extra ? extra->data.get() : nullptr;
    },
    .set_node_data =
        [](MicaNode* node, MicaHeld data) {
          Held held(data);
          return CatchAll([&] { Given(node, "set_node_data").EnsureExtra().data = std::move(held); });
        },
};

}  // namespace mica::autograd
