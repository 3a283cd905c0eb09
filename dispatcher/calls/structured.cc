#include "dispatcher/calls/structured.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/boxed_results.h"
#include "dispatcher/calls/given_output.h"
#include "dispatcher/calls/in_place.h"
#include "dispatcher/calls/kernel_call.h"
#include "dispatcher/calls/placement.h"
#include "dispatcher/calls/supported_dtypes.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/calls/write_check.h"
#include "dispatcher/calls/write_log.h"
#include "dispatcher/devices/device_copy.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/late_errors.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/earlier_schema.h"
#include "tensor/shape.h"

namespace mica {
namespace {

using Outputs = absl::InlinedVector<Tensor, 2>;

Tensor AllocateOutput(const OutputSpec& spec) {
  return spec.strides.empty() ? EmptyTensor(spec.sizes, spec.dtype, spec.device)
                              : EmptyStrided(spec.sizes, spec.strides, spec.dtype, spec.device);
}

// Whether a tensor of the call may have history that an operator adds to, here or at an
// outer level of a transform.
bool AnyIsRecorded(const MicaValue* args, int64_t n) {
  bool any = false;
  frames::ForEachTensor(
      args, n, [&](const Tensor& t, int64_t) { any = any || IsRecorded(t) || frames::IsWrapper(t); });
  return any;
}

void SetDType(MicaValue& value, DType dtype) {
  value.tag = MICA_VALUE_DTYPE;
  value.u.i = static_cast<int64_t>(dtype);
}

Tensor CloneOf(const Tensor& t) {
  static Operator& clone = GetOperator("mica::clone");
  MicaValue args[2] = {AbiType<const Tensor&>::Box(t.impl()), {}};
  args[1].tag = MICA_VALUE_NONE;
  MicaValue result;
  clone.CallBoxed(args, 2, &result);
  return TakeTensor(result);
}

// Whether a sum, product or scan of numbers into bool is asked for: its elements then count as bools.
bool CountsAsBools(const OperatorSpec& spec, const MicaValue* args) {
  if (spec.dtype_rule != DTypeRule::kAccumulate || spec.dtype_arg < 0) return false;
  const MicaValue& dtype = args[spec.dtype_arg];
  return dtype.tag == MICA_VALUE_DTYPE && static_cast<DType>(dtype.u.i) == DType::kBool &&
         Tensor::Ref(args[0].u.tensor).dtype() != DType::kBool;
}

Tensor AsBools(const Tensor& t) {
  Tensor bools = EmptyTensor(t.sizes(), DType::kBool, t.device());
  if (!t.device().is_meta()) CopyValues(bools, t);
  return bools;
}

// fill_ and zero_ in place: what lies in one place for several elements gets one value.
bool FillsWithOneValue(const OperatorSpec& spec) {
  if (spec.form != OpForm::kInplace || spec.op_class != OpClass::kPointwise) return false;
  const MicaProgram* const program = AnyProgram(spec);
  return program && std::strcmp(program->hint, "fill") == 0;
}

// A range fills an `out` of as many elements in its own shape, as torch's do.
bool FillsInItsShape(const OperatorSpec& spec, const Tensor& out, const OutputSpec& want) {
  return spec.form == OpForm::kOut && spec.op_class == OpClass::kFactory && want.sizes.size() == 1 &&
         out.ndim() != 1 && out.numel() == want.sizes[0];
}

bool RunIntoGiven(const StructuredContext& c, const Operator& op, const MetaResult& meta,
                  const MicaValue* args, int64_t n, const Outputs& given) {
  const OperatorSpec& spec = op.spec();
  Outputs work;
  for (size_t i = 0; i < given.size(); ++i) {
    const OutputSpec& want = meta.outputs[i];
    const char* name = spec.form == OpForm::kInplace ? "self" : "out";
    CheckWritable(given[i], spec);
    const bool flat = FillsInItsShape(spec, given[i], want);
    FitOutput(spec, given[i], want, name, flat);
    if (!given[i].is_contiguous() && !FillsWithOneValue(spec)) CheckNoInternalOverlap(given[i], name);
    // A plugin's own operator finds every output as its shape function makes it.
    const bool as_made = !c.functional->shape || (want.strides.empty() && given[i].is_contiguous());
    const bool direct = (given[i].dtype() == want.dtype || ConvertsAtStore(c, want.dtype, given[i])) &&
                        as_made && !flat && !c.meta_only && !MustNotAlias(op, given[i], name, args, n);
    work.push_back(direct || c.meta_only ? given[i] : AllocateOutput(want));
  }
  if (!c.meta_only && !RunKernel(c, op, meta.compute_dtype, args, work)) return false;
  for (size_t i = 0; i < given.size(); ++i) {
    if (work[i].sizes() != given[i].sizes())
      work[i].impl()->SetSizesStrides(given[i].sizes(), ContiguousStrides(given[i].sizes()));
    if (!work[i].is_same(given[i])) CopyValues(given[i], work[i]);
    MarkWritten(given[i], spec);
  }
  return true;
}

}  // namespace

void MarkWritten(const Tensor& t, const OperatorSpec& spec) {
  t.impl()->storage->BumpVersion();
  LogWrite(t, spec.name);
}

void CheckWritable(const Tensor& t, const OperatorSpec& spec) {
  MICA_CHECK(!t.is_inference() || CurrentThread().inference_mode,
             "Inplace update to inference tensor outside InferenceMode is not allowed: the tensor that ",
             spec.name,
             " writes was made in inference mode, and inference mode is over; clone it first to get a tensor "
             "that can be "
             "written.");
  MICA_CHECK(!t.impl()->has_flag(MICA_TENSOR_READ_ONLY), "The tensor that ", spec.name,
             " writes is read-only.");
  AnnounceWrite(t);
}

void RunStructured(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args,
                   int64_t num_args, MicaValue* results) {
  const auto& c = *static_cast<const StructuredContext*>(k.context);
  const OperatorSpec& spec = op.spec();
  const OpForm form = spec.form;
  const int64_t n = form == OpForm::kOut ? num_args - spec.num_outputs : num_args;
  if (__builtin_expect(OnPluginDevice(keys), 0))
    CheckOnePlace(op, args, num_args, PlaceOfCall(keys, args, num_args));
  // What is written has the dtype, unless another is asked for.
  absl::InlinedVector<MicaValue, 8> with_dtype;
  if (form != OpForm::kFunctional && spec.dtype_arg >= 0 && args[spec.dtype_arg].tag == MICA_VALUE_NONE) {
    const int64_t written = form == OpForm::kInplace ? 0 : n;
    with_dtype.assign(args, args + num_args);
    if (args[written].tag == MICA_VALUE_TENSOR)
      SetDType(with_dtype[static_cast<size_t>(spec.dtype_arg)], Tensor::Ref(args[written].u.tensor).dtype());
    args = with_dtype.data();
  }
  Tensor bools;
  if (CountsAsBools(spec, args)) {
    bools = AsBools(Tensor::Ref(args[0].u.tensor));
    with_dtype.assign(args, args + num_args);
    with_dtype[0].u.tensor = bools.impl();
    args = with_dtype.data();
  }
  MetaResult meta;
  c.functional->meta(*c.functional, args, meta);
  CheckSupported(*c.functional, op, args, n, meta.compute_dtype);
  if (form != OpForm::kFunctional) {
    Outputs given;
    if (form == OpForm::kInplace) given.push_back(Tensor::Borrow(args[0].u.tensor));
    for (int64_t i = n; i < num_args; ++i) {
      MICA_CHECK_TYPE(args[i].tag == MICA_VALUE_TENSOR, "Output (", i - n, ") of ", spec.name,
                      " is not given.");
      given.push_back(Tensor::Borrow(args[i].u.tensor));
    }
    if (!RunIntoGiven(c, op, meta, args, n, given)) RunWithoutKernel(c, op, keys, args, num_args, results);
    return;
  }
  Outputs outs;
  for (const OutputSpec& o : meta.outputs) {
    outs.push_back(AllocateOutput(o));
    if (__builtin_expect(CurrentThread().inference_mode, 0))
      outs.back().impl()->set_flag(tensor_flags::kInference, true);
  }
  if (!c.meta_only && !RunKernel(c, op, meta.compute_dtype, args, outs))
    return RunWithoutKernel(c, op, keys, args, num_args, results);
  if (spec.flags & kReturnsTensorList) {
    results[0].tag = MICA_VALUE_TENSORS;
    results[0].u.tensors = GiveTensorList(std::vector<Tensor>(outs.begin(), outs.end()));
    return;
  }
  for (size_t i = 0; i < outs.size(); ++i) results[i] = OwnedTensorValue(std::move(outs[i]));
}

void RunLeaf(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
             MicaValue* results) {
  const auto& c = *static_cast<const StructuredContext*>(k.context);
  const OperatorSpec& spec = op.spec();
  const Device place = PlaceOfCall(keys, args, n);
  const bool on_device = place.backend > keys::kMeta;
  if (on_device) CheckOnePlace(op, args, n, place);
  if (spec.shape) [[unlikely]] {
    MetaResult checked;
    spec.meta(spec, args, checked);
  }
  MicaCall call = MakeCall(c, MICA_DTYPE_NONE, place);
  if (on_device) RaiseLate(place);  // first: of a lost device nothing is asked
  const DeviceGuard current(place);
  call.program = ProgramFor(spec, MICA_DTYPE_NONE);
  for (int64_t i = 0; i < n; ++i)
    if (((spec.written_args >> i) & 1) && args[i].tag == MICA_VALUE_TENSOR) {
      CheckWritable(Tensor::Ref(args[i].u.tensor), spec);
      CheckNoInternalOverlap(Tensor::Ref(args[i].u.tensor),
                             op.schema().arguments[static_cast<size_t>(i)].name.c_str());
    }
  MicaStatus status = BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
  if (!on_device || Objection(spec, args, n, place).empty()) {
    const LocalArguments local(args, n, place, MICA_DTYPE_NONE, false);
    const ExcludeGuard below_layers(keys::kAboveBackends);  // for operators that a kernel calls
    const WriteCheck check(args, n, spec.written_args);
    const bool gives = c.leaf_boxed && ExpectResults(op, results);
    status = CallLeaf(c, spec, call, local.data(), n, results, spec.num_outputs);
    if (on_device && !status) Launched(place, call.name, call.stream);
    if (!status && gives) CheckResults(op, KeyName(place.backend), results);
    if (!status) check.Verify(op, results, spec.num_outputs);
  }
  if (Refused(status) && !c.composite) MakeMemoryOf(args, n);  // which the next kernel reads
  // The portable kernel of a form that is not structured has that form's signature.
  if (Refused(status) && spec.portable && !(spec.flags & kStructured) && place.is_cpu()) {
    status = spec.adapters->call_leaf(spec.portable, &call, args, n, nullptr, results);
  }
  if (Refused(status) && (c.composite || c.decomposition || on_device))
    return RunWithoutKernel(c, op, keys, args, n, results);
  if (on_device) RaiseOfKernel(place, status);
  ThrowIfError(status);
  for (int64_t i = 0; i < n; ++i)
    if (((spec.written_args >> i) & 1) && args[i].tag == MICA_VALUE_TENSOR)
      MarkWritten(Tensor::Ref(args[i].u.tensor), spec);
  if (!CurrentThread().inference_mode || spec.written_args) return;
  for (int i = 0; i < spec.num_outputs; ++i)
    if (results[i].tag == MICA_VALUE_TENSOR)
      static_cast<TensorImpl*>(results[i].u.tensor)->set_flag(tensor_flags::kInference, true);
}

void RunMetaWrite(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t,
                  MicaValue*) {
  const Tensor& self = Tensor::Ref(args[0].u.tensor);
  MICA_CHECK_IMPLEMENTED(self.device().is_meta(), "Cannot copy out of meta tensor; no data! Operator ",
                         op.spec().name, " is to write a tensor on the device (", self.device().ToString(),
                         ").");
  CheckWritable(self, op.spec());
  CheckNoInternalOverlap(self, "self");
  MarkWritten(self, op.spec());
}

void RunView(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t,
             MicaValue* results) {
  const Tensor& base = Tensor::Ref(args[0].u.tensor);
  ViewSpecs specs;
  op.spec().view(args, specs);
  const ThreadState& thread = CurrentThread();
  const bool many = (op.spec().flags & kReturnsTensorList) != 0;
  // A view of an ordinary tensor is one also in inference mode, and requires grad as its base does.
  const bool detached =
      (thread.inference_mode && base.is_inference()) || (op.spec().flags & kNotDifferentiable);
  const auto make = [&](const ViewSpec& v) {
    const DType dtype = v.dtype < 0 ? base.dtype() : static_cast<DType>(v.dtype);
    Tensor t = MakeViewAs(base, v.sizes, v.strides, v.byte_offset, dtype, detached);
    t.impl()->keys = t.keys() ^ v.flips;
    if (TensorExtra* extra = t.impl()->extra; extra && extra->view_base) {
      if (thread.inference_mode)
        extra->view_creation = static_cast<uint8_t>(ViewCreation::kInference);
      else if (!thread.grad_enabled)
        extra->view_creation = static_cast<uint8_t>(ViewCreation::kNoGrad);
      else if (many)
        extra->view_creation = static_cast<uint8_t>(ViewCreation::kMultiOutput);
      else if (base.is_view())
        extra->view_creation = base.impl()->extra->view_creation;  // a view of such a view
    }
    return t;
  };
  if (!many) {
    results[0] = OwnedTensorValue(make(specs[0]));
    return;
  }
  std::vector<Tensor> list;
  list.reserve(specs.size());
  for (const ViewSpec& v : specs) list.push_back(make(v));
  results[0].tag = MICA_VALUE_TENSORS;
  results[0].u.tensors = GiveTensorList(std::move(list));
}

void RunUnlessRecorded(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args,
                       int64_t n, MicaValue* results) {
  if (!AnyIsRecorded(args, n))
    return op.RedispatchBoxed(keys & KeySet::Below(keys::kAutograd), args, n, results);
  RunWithoutKernel(*static_cast<const StructuredContext*>(k.context), op, keys, args, n, results);
}

void RunParts(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
              MicaValue* results) {
  const auto& c = *static_cast<const StructuredContext*>(k.context);
  CheckOnePlace(op, args, n, PlaceOfCall(keys, args, n));
  MetaResult meta;
  c.functional->meta(*c.functional, args, meta);
  CheckSupported(*c.functional, op, args, n, meta.compute_dtype);
  RunWithoutKernel(c, op, keys, args, n, results);
}

void RunThroughFunctional(const BoxedKernel& k, const Operator& op, KeySet, const MicaValue* args,
                          int64_t num_args, MicaValue*) {
  const auto& functional = *static_cast<const Operator*>(k.context);
  static Operator& copy = GetOperator("mica::copy_");
  const OperatorSpec& spec = op.spec();
  const int64_t outs = spec.form == OpForm::kOut ? spec.num_outputs : 0;
  ResultRoom results(functional);
  // The functional form may save `self` for its gradient, before the copy writes it.
  Tensor kept;
  absl::InlinedVector<MicaValue, 8> inputs(args, args + num_args - outs);
  if (spec.form == OpForm::kInplace && AnyIsRecorded(args, num_args)) {
    kept = CloneOf(Tensor::Ref(args[0].u.tensor));
    inputs[0].u.tensor = kept.impl();
  }
  functional.CallBoxed(inputs.data(), num_args - outs, results);
  const int count = spec.form == OpForm::kInplace ? 1 : spec.num_outputs;
  std::vector<Tensor> owned;
  for (int i = 0; i < count; ++i) owned.push_back(TakeTensor(results[i]));
  for (int i = 0; i < count; ++i) {
    const MicaValue& target = spec.form == OpForm::kInplace ? args[0] : args[num_args - outs + i];
    const Tensor& out = Tensor::Ref(target.u.tensor);
    const Tensor& value = owned[static_cast<size_t>(i)];
    OutputSpec want{ToDims(value.sizes()), ToDims(value.strides()), value.dtype(), value.device()};
    FitOutput(spec, out, want, spec.form == OpForm::kInplace ? "self" : "out");
    const MicaValue copy_args[3] = {target, AbiType<const Tensor&>::Box(value.impl()), AbiType<bool>::Box(0)};
    MicaValue unused;
    copy.CallBoxed(copy_args, 3, &unused);
    LogWrite(out, spec.name);
  }
}

void RunWithTensors(const BoxedKernel& k, const Operator&, KeySet keys, const MicaValue* args, int64_t n,
                    MicaValue* results) {
  const auto& other = *static_cast<const Operator*>(k.context);
  absl::InlinedVector<MicaValue, 8> values(args, args + n);
  std::vector<Tensor> numbers;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    if (args[i].tag != MICA_VALUE_SCALAR || !other.schema().arguments[at].type.is_tensor()) continue;
    numbers.push_back(WrappedNumber(Scalar::FromAbi(args[i].u.scalar)));
    values[at] = AbiType<const Tensor&>::Box(numbers.back().impl());
  }
  other.RedispatchBoxed(keys, values.data(), n, results);
}

namespace {

// Whether the operator has another slot at the bit than `k`, now or once the plugin is open: the table
// may be newer than the one that led here.
bool IsServedNow(const BoxedKernel& k, const Operator& op, int bit, const std::string& provider) {
  const auto changed = [&] { return op.table().slots[bit].context != &k; };
  return changed() || (EnsureProvider(provider) && changed());
}

}  // namespace

void RunGone(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
             MicaValue* results) {
  const bool is_back = op.table().slots[keys::kCpu].context != &k;  // since the call read its table
  if (is_back) return op.RedispatchBoxed(keys, args, n, results);
  MICA_THROW(
      kNotImplemented, "Operator ", op.spec().name,
      " is gone: the plugin or library that defined it is disabled (mica.plugins() says which are), or "
      "defines it otherwise now.");
}

void RunUnserved(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                 MicaValue* results) {
  const int bit = static_cast<int>(reinterpret_cast<intptr_t>(k.context));
  const std::string what = absl::StrCat("layer:", KeyName(bit));
  if (IsServedNow(k, op, bit, what)) return op.RedispatchBoxed(keys, args, n, results);
  MICA_THROW(kNotImplemented, "Operator ", op.spec().name, " gets a tensor of the layer (", KeyName(bit),
             bit == keys::kOpaque
                 ? "), whose elements a plugin laid out in a way of its own, and the layer is not there. "
                 : "), a view that conj() made, and the layer is not there; conj_physical() makes plain "
                   "tensors. ",
             MissingProviderSentence(what));
}

namespace {
// Whether the call would get something from the layer: gradients, or what the thread asks for by a context.
bool ReliesOn(int bit, const Operator& op, const MicaValue* args, int64_t n) {
  if (bit != keys::kAutograd) return t_state.include.has(bit) && !t_state.exclude.has(bit);
  const std::string_view name = op.spec().name;
  const bool leaves =
      (op.spec().flags & kNotDifferentiable) || name == "mica::detach" || name == "mica::detach_";
  return !leaves && AnyIsRecorded(args, n);
}
}  // namespace

void RunAsleep(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
               MicaValue* results) {
  const int bit = static_cast<int>(reinterpret_cast<intptr_t>(k.context));
  if (!ReliesOn(bit, op, args, n)) return op.RedispatchBoxed(keys & KeySet::Below(bit), args, n, results);
  MICA_THROW(kNotImplemented, "Operator ", op.spec().name, " needs the layer (", KeyName(bit),
             bit == keys::kAutograd ? "), as a tensor of the call requires grad; "
                                    : "), which the thread asks for; ",
             "without it the result would be another. Enable the plugin, or ",
             bit == keys::kAutograd ? "call detach() first, or compute under mica.no_grad(). "
                                    : "leave the context. ",
             MissingProviderSentence(absl::StrCat("layer:", KeyName(bit))));
}

void RunMissing(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                MicaValue* results) {
  const int bit = static_cast<int>(reinterpret_cast<intptr_t>(k.context));
  const std::string what = absl::StrCat("backend:", KeyName(bit));
  if (IsServedNow(k, op, bit, what)) return op.RedispatchBoxed(keys, args, n, results);
  MICA_CHECK_IMPLEMENTED(
      bit != keys::kMeta, "The result of ", op.spec().name,
      " follows from the values of its tensors, and tensors on the device (meta) have none; "
      "call it on a device with values.");
  const bool loaded = DeviceTable(bit) != nullptr && EnsureProvider(what);
  MICA_THROW(
      kNotImplemented, "Operator ", op.spec().name, " has no kernel for the backend (", KeyName(bit), "). ",
      loaded ? absl::StrCat(
                   "Its plugin is loaded and brings none, and the operator has no decomposition; move the "
                   "tensors to a device that has it, and see mica.explain(\"",
                   op.spec().name, "\", ...).")
             : MissingProviderSentence(what));
}

}  // namespace mica
