// Slot resolution: from what is registered to what stands in one slot, and why.
//
// Backends, in this order: a kernel of its own for this form; a structured kernel (its
// out form, or its class kernel); a view; a composite; a portable kernel; on a device, what the
// operator is made of; a boxed fallback; on a device, the CPU; missing. Copies between devices, whose
// kernel is the host's own, come before all of these. Layers: a kernel; what the layer's rule chooses; the
// decomposition, where the layer asks for it; a boxed fallback; fallthrough.
#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/alike.h"
#include "dispatcher/devices/device_copy.h"
#include "dispatcher/devices/device_fill.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/tables/dispatcher.h"
#include "dispatcher/tables/fallback.h"
#include "tensor/device.h"

namespace mica {
namespace {

std::array<MicaClassFunction, kOpClassCount> g_portable_class{};
MetaFunction g_class_meta[kOpClassCount];

// Whether a class kernel computes all of the operator: a contraction with a kernel of its own
// (addmm) has a program for its equation alone.
bool HasProgram(const OperatorSpec& spec) {
  if (spec.op_class == OpClass::kContraction && spec.portable) return false;
  for (const MicaProgram* p : spec.programs)
    if (p) return true;
  return false;
}

Resolution Found(Slot slot, SlotReason reason, std::string detail) {
  Resolution r;
  r.slot = slot;
  r.reason = reason;
  r.detail = std::move(detail);
  return r;
}

// The backend's kernel `e`, called unboxed where that can be.
void SetLeaf(const OperatorSpec& form, const KernelEntry& e, StructuredContext& c) {
  const SignatureAdapters* adapters = e.earlier ? e.earlier->generation->adapters : form.adapters;
  c.leaf = adapters ? e.fn : nullptr;
  c.leaf_boxed = c.leaf ? nullptr : e.leaf_boxed;
  c.kernel_context = e.context;
  c.takes_opaque = e.takes_opaque;
  c.earlier = e.earlier;
}

// How a kernel of an earlier schema is called, for explain; "" for others.
std::string HowCalled(const KernelEntry& e) {
  if (!e.earlier) return "";
  return absl::StrCat("; it was built for the earlier schema ", e.earlier->generation->schema,
                      " and takes calls with the default of ", e.earlier->names);
}

}  // namespace

void SetPortableClass(OpClass c, MicaClassFunction f) { g_portable_class[static_cast<int>(c)] = f; }
MicaClassFunction PortableClass(OpClass c) { return g_portable_class[static_cast<int>(c)]; }
void SetClassMeta(OpClass c, MetaFunction f) { g_class_meta[static_cast<int>(c)] = f; }
MetaFunction ClassMeta(OpClass c) { return g_class_meta[static_cast<int>(c)]; }

const KernelEntry* Dispatcher::Top(const Operator& op, int key) {
  if (!op.state_) return nullptr;
  for (auto it = op.state_->kernels.rbegin(); it != op.state_->kernels.rend(); ++it)
    if (it->key == key) return &*it;
  return nullptr;
}

KeySet Dispatcher::TakesOpaque(const Operator& op) {
  KeySet found;
  if (op.spec().form != OpForm::kFunctional) return found;
  for (int bit = 0; bit < keys::kBackendCount; ++bit)
    if (const KernelEntry* e = Top(op, bit); e && e->takes_opaque) found = found | KeySet::Of(bit);
  return found;
}

// The backend's leaf kernels for `form`, for a slot of `op`: the youngest serves, and where it refuses those
// follow that it has replaced.
void Dispatcher::SetLeaves(const Operator& op, const Operator& form, int bit, StructuredContext& c) {
  const KernelEntry* const youngest = Top(form, bit);
  const StructuredContext* older = nullptr;
  for (const KernelEntry& e : form.state_->kernels) {
    if (e.key != bit || e.kind != KernelEntry::Kind::kLeaf) continue;
    StructuredContext replaced;
    StructuredContext& one = &e == youngest ? c : replaced;
    SetLeaf(form.spec(), e, one);
    one.replaced_leaf = older;
    if (&e != youngest) older = Intern(op, replaced);
  }
}

// The backend's class kernels, likewise.
void Dispatcher::SetClass(const Operator& op, const std::vector<ClassEntry>& stack, StructuredContext& c) {
  for (const ClassEntry& e : stack) {
    if (c.class_fn) {
      StructuredContext replaced;
      replaced.class_fn = c.class_fn;
      replaced.class_context = c.class_context;
      replaced.replaced_class = c.replaced_class;
      c.replaced_class = Intern(op, replaced);
    }
    c.class_fn = e.fn;
    c.class_list_fn = e.list_fn;
    c.class_context = e.context;
  }
}

Resolution Dispatcher::FromEntry(const Operator& op, const KernelEntry& e) {
  Resolution r;
  r.scope = e.scope;
  r.where = e.where;
  r.reason = SlotReason::kKernel;
  switch (e.kind) {
    case KernelEntry::Kind::kLayer:
      r.slot = {e.fn, e.context};
      r.detail = "a kernel registered for this operator";
      break;
    case KernelEntry::Kind::kBoxed:
      r.slot = BoxedSlot(op, e.boxed);
      r.detail = "a boxed kernel registered for this operator";
      break;
    case KernelEntry::Kind::kFallthrough:
      r.fallthrough = true;
      r.reason = SlotReason::kFallthrough;
      r.detail = "registered as having nothing to do for this operator";
      break;
    case KernelEntry::Kind::kLeaf: {
      StructuredContext c;
      c.functional = c.out = &op.spec();
      SetLeaves(op, op, e.key, c);
      c.composite = op.spec().adapters ? op.spec().composite : nullptr;
      if (const KernelEntry* d = Top(op, kCompositeKey); d && d->kind == KernelEntry::Kind::kBoxed)
        c.decomposition = static_cast<const BoxedKernel*>(BoxedSlot(op, d->boxed).context);
      // Where it declines, what served before it: the kernels of the out form or of the class.
      if (Resolution replaced;
          !c.composite && !c.decomposition && e.key != keys::kMeta && ResolveStructured(op, e.key, replaced))
        c.decomposition = static_cast<const BoxedKernel*>(replaced.slot.context);
      r.slot = BoxedSlot(op, {&RunLeaf, Intern(op, c), nullptr});
      r.detail = absl::StrCat("a kernel of the backend for this very form", HowCalled(e));
      break;
    }
  }
  return r;
}

bool Dispatcher::ResolveStructured(const Operator& op, int bit, Resolution& r) {
  const OperatorSpec& spec = op.spec();
  if (!(spec.flags & kStructured)) return false;
  StructuredContext c;
  c.functional = FunctionalSpec(spec, *this);
  const Operator* out = spec.out_name ? Find(spec.out_name) : (spec.form == OpForm::kOut ? &op : nullptr);
  c.out = out ? &out->spec() : nullptr;
  const BoxedFunction run = ServesAlike(*c.functional) ? &RunAlike : &RunStructured;
  const bool use_class = HasProgram(spec);
  if (bit == keys::kMeta) {
    c.meta_only = true;
    r.slot = BoxedSlot(op, {run, Intern(op, c), nullptr});
    r.reason = SlotReason::kMetaOnly;
    r.detail = "shapes and dtypes only, from the operator's meta function";
    return true;
  }
  if (bit > keys::kMeta) SetParts(op, c);  // where the backend's kernel refuses
  if (bit == keys::kCpu) {                 // the portable kernels run on the host's memory
    c.portable = spec.portable;
    c.portable_class = use_class ? PortableClass(spec.op_class) : nullptr;
  }
  const std::vector<ClassEntry>& stack = classes[static_cast<unsigned>(bit)][static_cast<int>(spec.op_class)];
  if (use_class) SetClass(op, stack, c);
  const KernelEntry* leaf = out ? Top(*out, bit) : nullptr;
  if (leaf && leaf->kind == KernelEntry::Kind::kLeaf) {
    SetLeaves(op, *out, bit, c);
    r.scope = leaf->scope;
    r.where = leaf->where;
    r.reason = SlotReason::kStructured;
    r.detail = absl::StrCat("the backend's kernel for ", out->spec().name, ", outputs made by the host",
                            HowCalled(*leaf));
  } else if (c.class_fn) {
    r.scope = stack.back().scope;
    r.where = stack.back().where;
    r.reason = SlotReason::kClassKernel;
    r.detail =
        absl::StrCat("the backend's kernel for class ", Name(spec.op_class), ", run on the entry's program");
  } else if (spec.composite) {
    return false;
  } else if (c.portable || c.portable_class) {
    r.reason = SlotReason::kPortable;
    r.detail = "the portable kernel";
  } else {
    return false;
  }
  r.slot = BoxedSlot(op, {run, Intern(op, c), nullptr});
  return true;
}

// How the call goes on where no kernel of a device takes it, before it leaves the device.
void Dispatcher::SetParts(const Operator& op, StructuredContext& c) {
  const OperatorSpec& spec = op.spec();
  c.composite = spec.composite ? spec.composite : spec.parts;
  Resolution through;
  const auto has_parts = [](const Operator& functional) { return functional.spec().parts != nullptr; };
  if (!c.composite && ResolveThroughFunctional(op, has_parts, through))
    c.decomposition = static_cast<const BoxedKernel*>(through.slot.context);
}

// A device without a kernel for a structured operator runs what it is made of.
bool Dispatcher::ResolveParts(const Operator& op, int bit, Resolution& r) {
  if (bit <= keys::kMeta || !op.spec().parts) return false;
  StructuredContext c;
  c.functional = &op.spec();
  c.composite = op.spec().parts;
  r = Found(BoxedSlot(op, {&RunParts, Intern(op, c), nullptr}), SlotReason::kComposite,
            "no kernel of the backend: what the operator is made of runs there");
  return true;
}

bool Dispatcher::ResolveHostKernel(const Operator& op, int bit, Resolution& r) {
  const BoxedFunction kernel =
      bit > keys::kMeta && BackendLoaded(bit) && DeviceTable(bit) ? HostKernel(op.name()) : nullptr;
  if (!kernel) return false;
  StructuredContext own;  // the backend's kernel for it, within one device
  own.functional = own.out = &op.spec();
  if (const KernelEntry* e = Top(op, bit); e && e->kind == KernelEntry::Kind::kLeaf)
    SetLeaves(op, op, bit, own);
  else
    SetClass(op, classes[bit][static_cast<int>(OpClass::kPointwise)], own);
  r.slot = BoxedSlot(op, {kernel, Intern(op, own), nullptr});
  r.reason = SlotReason::kKernel;
  r.detail = "the host's kernel over the device table, which copies between devices";
  return true;
}

// What an operator has for every backend: a view, or a decomposition.
bool Dispatcher::ResolveShared(const Operator& op, Resolution& r) {
  const OperatorSpec& spec = op.spec();
  if (spec.view) {
    r = Found(BoxedSlot(op, {&RunView, nullptr, nullptr}), SlotReason::kView, "a view, made by the host");
    return true;
  }
  if (spec.composite) {
    r = Found({spec.composite, nullptr}, SlotReason::kComposite, "the decomposition into other operators");
    return true;
  }
  const KernelEntry* e = Top(op, kCompositeKey);
  if (!e) return false;
  r = FromEntry(op, *e);
  r.reason = SlotReason::kComposite;
  r.detail = "the decomposition registered at run time";
  return true;
}

bool Dispatcher::ResolveFallback(const Operator& op, int bit, const char* detail, Resolution& r) {
  if (fallbacks[bit].empty()) return false;
  const FallbackEntry& f = fallbacks[bit].back();
  r = Found(BoxedSlot(op, f.kernel), SlotReason::kFallback, detail);
  r.scope = f.scope;
  r.where = f.where;
  return true;
}

// The functional form, then a copy, where `better` says that the functional form is
// worth it.
template <typename Better>
bool Dispatcher::ResolveThroughFunctional(const Operator& op, Better&& better, Resolution& r) {
  const OperatorSpec& spec = op.spec();
  if (spec.form == OpForm::kFunctional || !spec.functional_name) return false;
  Operator* functional = Find(spec.functional_name);
  if (!functional || functional == &op || !better(*functional)) return false;
  r.slot = BoxedSlot(op, {&RunThroughFunctional, functional, nullptr});
  r.reason = SlotReason::kComposite;
  r.detail = "the functional form, then a copy";
  return true;
}

// Whether `tensors` has what `numbers` has, with Tensors where that has Scalars.
bool TakesTensorsFor(const schema::FunctionSchema& numbers, const schema::FunctionSchema& tensors) {
  if (numbers.arguments.size() != tensors.arguments.size()) return false;
  bool differs = false;
  for (size_t i = 0; i < numbers.arguments.size(); ++i) {
    const schema::Argument &a = numbers.arguments[i], &b = tensors.arguments[i];
    const bool number = a.type.is(schema::TypeKind::kScalar) && b.type.is(schema::TypeKind::kTensor);
    if (a.name != b.name || (!number && !(a.type == b.type))) return false;
    differs |= number;
  }
  return differs;
}

// The overload of Tensors, called with a 0-d tensor for the number, where the backend
// has a kernel for that one: a device with add.out has `x + 1`.
bool Dispatcher::ResolveWithTensors(const Operator& op, int bit, Resolution& r) {
  const OperatorSpec& spec = op.spec();
  const char* const functional = spec.form == OpForm::kOut ? spec.functional_name : spec.name;
  if (!functional) return false;
  const std::string_view name = functional;
  for (const char* overload : {".Tensor", ".Tensor_Tensor"}) {
    Operator* other = Find(std::string(name.substr(0, name.find('.'))) + overload);
    if (!other || other == &op) continue;
    const OperatorSpec* base = FunctionalSpec(other->spec(), *this);
    const Operator* out = base->out_name ? Find(base->out_name) : nullptr;
    if (spec.form == OpForm::kOut) other = base->out_name ? Find(base->out_name) : nullptr;
    const bool has_kernel = (out && Top(*out, bit)) || (other && Top(*other, bit));
    if (!other || !has_kernel || !TakesTensorsFor(op.schema(), other->schema())) continue;
    r = Found(BoxedSlot(op, {&RunWithTensors, other, nullptr}), SlotReason::kComposite,
              absl::StrCat(other->spec().name, ", with the number as a 0-d tensor"));
    return true;
  }
  return false;
}

// What is left for a backend that has nothing for the operator itself.
bool Dispatcher::ResolveElsewhere(const Operator& op, int bit, Resolution& r) {
  const OperatorSpec& spec = op.spec();
  const bool on_device = bit > keys::kMeta && DeviceTable(bit);
  const auto better = [&](const Operator& functional) {
    return !on_device || functional.spec().composite || functional.spec().parts ||
           Top(functional, kCompositeKey) || Top(functional, bit);
  };
  if (on_device && ResolveWithTensors(op, bit, r)) return true;
  if (ResolveThroughFunctional(op, better, r)) return true;
  if (on_device) {
    r = Found(BoxedSlot(op, {&RunOnCpu, nullptr, nullptr}), SlotReason::kFallback,
              "no kernel of the backend: it runs on the CPU, with copies there and back");
  } else if (bit == keys::kMeta && spec.form == OpForm::kInplace) {
    r = Found(BoxedSlot(op, {&RunMetaWrite, nullptr, nullptr}), SlotReason::kMetaOnly,
              "writes no values, since there are none");
  } else if (bit == keys::kCpu && spec.portable) {
    StructuredContext c;
    c.functional = c.out = &spec;
    c.leaf = spec.portable;
    r = Found(BoxedSlot(op, {&RunLeaf, Intern(op, c), nullptr}), SlotReason::kPortable,
              "the portable kernel");
  } else {
    return false;
  }
  return true;
}

// Has the device fill bytes where it can, below whose kernel for the very form, or its out form, nothing
// goes.
void Dispatcher::FillWhereAlike(const Operator& op, int bit, Resolution& r) {
  if (bit <= keys::kMeta || !FillsBytes(op.name()) || !DeviceTable(bit) || !op.spec().adapters) return;
  if (r.slot.fn != op.spec().adapters->boxing || r.reason == SlotReason::kKernel ||
      r.reason == SlotReason::kStructured || r.reason == SlotReason::kMissing)
    return;
  r.slot = BoxedSlot(op, {&RunFill, r.slot.context, nullptr});
  r.detail = absl::StrCat("the device's `fill` where all bytes become alike; else ", r.detail);
}

Resolution Dispatcher::ResolveBackend(const Operator& op, int bit) {
  Resolution r = ResolveBackendKernel(op, bit);
  FillWhereAlike(op, bit, r);
  return r;
}

Resolution Dispatcher::ResolveBackendKernel(const Operator& op, int bit) {
  Resolution r;
  if (ResolveHostKernel(op, bit, r)) return r;
  if (const KernelEntry* e = Top(op, bit)) {
    // A leaf for the out form of a structured operator serves all forms: the host
    // checks and resizes `out` before it.
    const bool structured = e->kind == KernelEntry::Kind::kLeaf && op.spec().form == OpForm::kOut;
    if (structured && ResolveStructured(op, bit, r)) return r;
    return FromEntry(op, *e);
  }
  const bool known = bit == keys::kMeta || BackendLoaded(bit);
  if (known && (ResolveStructured(op, bit, r) || ResolveShared(op, r) || ResolveParts(op, bit, r) ||
                ResolveFallback(op, bit, "the backend's boxed fallback", r) || ResolveElsewhere(op, bit, r)))
    return r;
  void* const missing = reinterpret_cast<void*>(static_cast<intptr_t>(bit));
  return Found(BoxedSlot(op, {&RunMissing, missing, nullptr}), SlotReason::kMissing,
               known ? "no kernel, no decomposition, no fallback" : "no plugin for this backend is loaded");
}

// A composite for which a backend has a kernel, at Autograd: that kernel has no gradient, and
// so serves calls that nothing records.
bool Dispatcher::ResolveFused(const Operator& op, int bit, Resolution& r) {
  if (bit != keys::kAutograd) return false;
  bool fused = false;
  for (int backend = 0; backend < keys::kBackendCount; ++backend)
    fused = fused || (backend != keys::kMeta && Top(op, backend));
  StructuredContext c;
  c.composite = op.spec().composite;
  if (const KernelEntry* d = Top(op, kCompositeKey); d && d->kind == KernelEntry::Kind::kBoxed)
    c.decomposition = static_cast<const BoxedKernel*>(BoxedSlot(op, d->boxed).context);
  if (!fused || (!c.composite && !c.decomposition)) return false;
  c.functional = &op.spec();
  r = Found(BoxedSlot(op, {&RunUnlessRecorded, Intern(op, c), nullptr}), SlotReason::kComposite,
            "a kernel below serves calls that are not recorded; it has no gradient, so that with one "
            "wanted the composite decomposes here");
  return true;
}

// A layer that has no rule for a composite decomposes it.
bool Dispatcher::ResolveDecomposition(const Operator& op, int bit, Resolution& r) {
  if (decompose_at[bit].empty()) return false;
  if (ResolveFused(op, bit, r)) return true;
  const auto composed = [this](const Operator& o) { return o.spec().composite || Top(o, kCompositeKey); };
  if (op.spec().composite)
    r.slot = {op.spec().composite, nullptr};
  else if (const KernelEntry* e = Top(op, kCompositeKey))
    r.slot = FromEntry(op, *e).slot;
  else if ((op.spec().flags & kStructured) || !ResolveThroughFunctional(op, composed, r))
    return false;
  r.scope = decompose_at[bit].back();
  r.reason = SlotReason::kComposite;
  r.detail = "the layer has no rule for the composite: it decomposes here";
  return true;
}

// What the layer's or kind's rule says of the operator.
bool Dispatcher::ResolveRule(const Operator& op, int key, Resolution& r) {
  const RuleEntry* rule = nullptr;
  LayerChoice choice;
  // The youngest that says something: another plugin's rule at the key leaves the others as they are.
  for (auto it = rules[key].rbegin(); it != rules[key].rend() && choice.what == LayerChoice::What::kNothing;
       ++it) {
    rule = &*it;
    choice = rule->rule(rule->context, op);
  }
  if (choice.what == LayerChoice::What::kNothing) return false;
  const bool passes = choice.what == LayerChoice::What::kPass;
  r = passes ? Found({nullptr, nullptr}, SlotReason::kFallthrough,
                     "by the layer's rule it has nothing to do for this operator")
             : Found(BoxedSlot(op, choice.kernel), SlotReason::kKernel,
                     "the kernel that the layer's rule chooses for this operator");
  r.fallthrough = passes;
  r.scope = rule->scope;
  r.where = {op.spec().file ? op.spec().file : "", op.spec().line};
  return true;
}

Resolution Dispatcher::ResolveLayer(const Operator& op, int bit) {
  if (const KernelEntry* e = Top(op, bit)) return FromEntry(op, *e);
  Resolution r;
  if (ResolveRule(op, bit, r) || ResolveDecomposition(op, bit, r) ||
      ResolveFallback(op, bit, "the layer's boxed fallback", r))
    return r;
  void* const layer = reinterpret_cast<void*>(static_cast<intptr_t>(bit));
  if (keys::kLazy.has(bit) || bit == keys::kOpaque)
    return Found(BoxedSlot(op, {&RunUnserved, layer, nullptr}), SlotReason::kMissing,
                 "no plugin for this layer is loaded");
  if (asleep.has(bit))
    return Found(BoxedSlot(op, {&RunAsleep, layer, nullptr}), SlotReason::kMissing,
                 "the layer's plugin is disabled: calls that rely on it are refused, others pass");
  r = Found({nullptr, nullptr}, SlotReason::kFallthrough, "nothing to do");
  r.fallthrough = true;
  return r;
}

Resolution Dispatcher::ResolveSlot(const Operator& op, int key) {
  if (op.state_ && op.state_->gone)
    return Found(BoxedSlot(op, {&RunGone, nullptr, nullptr}), SlotReason::kMissing, "the operator is gone");
  if (key >= kFirstKindKey) return ResolveKind(op, key);
  if (key == keys::kFrame || key == keys::kFrameEscape || key == keys::kFrameBelow)
    return ResolveFrameBit(op, key);
  return key < keys::kBackendCount ? ResolveBackend(op, key) : ResolveLayer(op, key);
}

}  // namespace mica
