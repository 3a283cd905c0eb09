// A plugin's operator becomes a run-time operator of its scope, with boxed kernels:
// at "meta" the shape function, at "Composite" the decomposition, at "Autograd" one
// kernel for all that makes a custom node over the plugin's backward.
#include "dispatcher/registration/vendor_operators.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/layers/autograd_table.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/plugins/status.h"
#include "dispatcher/registration/registration.h"
#include "dispatcher/registration/vendor_programs.h"
#include "dispatcher/registration/vendor_shapes.h"
#include "schema/generation.h"
#include "schema/value.h"

namespace mica {
namespace {

// A record and the operator's name. Never freed: a disabled plugin's tables and
// the nodes that it made may still point here.
struct VendorOperator {
  MicaOperatorRecord record;
  std::string name, out_name;
  int16_t num_args = 0, num_outputs = 0;
  std::deque<std::vector<SchemaGeneration>> generations;  // of each form
  std::string batch_rule;
  std::vector<OperatorPolicy> policies;
};

bool Has(uint64_t bits, int64_t i) { return i < 64 && ((bits >> i) & 1) != 0; }

Tensor TensorIn(const MicaValue& v) {
  return v.tag == MICA_VALUE_TENSOR && v.u.tensor ? Tensor::Borrow(v.u.tensor) : Tensor();
}

// The tensors of an argument: of a list all, of any other value one, which a value without a tensor lacks.
std::vector<Tensor> TensorsIn(const MicaValue& v) {
  if (v.tag != MICA_VALUE_TENSORS) return {TensorIn(v)};
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < v.u.tensors.size; ++i) tensors.push_back(Tensor::Borrow(v.u.tensors.data[i]));
  return tensors;
}

// "SpinBackward" of acme::spin.Tensor.
std::string NodeName(const VendorOperator& op) {
  const std::string base = op.name.substr(op.name.find("::") + 2);
  return base.substr(0, base.find('.')) + "Backward";
}

// What one call keeps for its backward: the object of a custom function's node.
class VendorBackward {
 public:
  VendorBackward(const VendorOperator* op, const MicaValue* args, int64_t n) : op_(op) {
    for (int64_t i = 0; i < n; ++i) {
      const bool tensors = args[i].tag == MICA_VALUE_TENSOR || args[i].tag == MICA_VALUE_TENSORS;
      args_.push_back(
          {tensors ? Value() : Value::FromBorrowed(args[i]), args[i].tag == MICA_VALUE_TENSORS, {}});
    }
  }

  // Once the forward has run and its results have their history.
  void Keep(const MicaValue* args, const std::vector<Tensor>& results, const MicaAutograd& autograd,
            MicaNode* node) {
    for (size_t i = 0; i < args_.size(); ++i) {
      const bool kept = Has(op_->record.kept_args, static_cast<int64_t>(i));
      const bool differentiable = Has(op_->record.differentiable, static_cast<int64_t>(i));
      for (const Tensor& t : TensorsIn(args[i])) {
        args_[i].kept.push_back(kept && t.defined() ? Saved(autograd, t, node, false) : nullptr);
        if (differentiable)
          needs_.push_back(t.defined() && AbiReturn<bool>::Unpack(autograd.requires_grad(t.impl())));
      }
      if (!differentiable) needs_.push_back(0);
    }
    for (size_t r = 0; r < results.size(); ++r)
      kept_results_.push_back(Has(op_->record.kept_results, static_cast<int64_t>(r))
                                  ? Saved(autograd, results[r], node, true)
                                  : nullptr);
  }

  void Apply(MicaTensorSpan grads, MicaTensor** wanted) {
    MICA_CHECK(
        !released_,
        "Trying to backward through the graph a second time (or directly access saved tensors after they "
        "have already been freed): the tensors that ",
        NodeName(*op_),
        " saved are freed by the first backward. Specify retain_graph=True in the first call to run "
        "backward a second time.");
    std::deque<std::vector<Tensor>> tensors;  // of each argument
    std::vector<Tensor> results;
    std::vector<MicaValue> args;
    for (const Argument& a : args_) {
      std::vector<Tensor>& unpacked = tensors.emplace_back();
      for (const Kept& box : a.kept) unpacked.push_back(Unpacked(box));
      MicaValue v = a.value.Borrow();
      if (a.is_list) {
        v.tag = MICA_VALUE_TENSORS;
        v.u.tensors = AbiType<TensorSpan>::To(unpacked);
      } else if (unpacked[0].defined()) {
        v.tag = MICA_VALUE_TENSOR;
        v.u.tensor = unpacked[0].impl();
      }
      args.push_back(v);
    }
    for (const Kept& box : kept_results_) results.push_back(Unpacked(box));
    std::vector<MicaTensor*> gradients(needs_.size(), nullptr);
    const MicaStatus status =
        op_->record.backward(op_->record.context, args.data(), static_cast<int64_t>(args.size()),
                             AbiType<TensorSpan>::To(results).data, grads.data,
                             static_cast<int64_t>(results.size()), needs_.data(), gradients.data());
    size_t next = 0;
    for (size_t i = 0; i < args_.size(); ++i) {
      const bool differentiable = Has(op_->record.differentiable, static_cast<int64_t>(i));
      for (size_t count = differentiable ? args_[i].kept.size() : 1; count > 0; --count) {
        Tensor g = Tensor::Steal(gradients[next++]);
        if (differentiable) *wanted++ = g.release();
      }
    }
    ThrowIfError(status);
  }

  void ReleaseSaved() {
    const auto release = [&](Kept& box) {
      released_ = released_ || box;
      box.reset();
    };
    for (Argument& a : args_) std::for_each(a.kept.begin(), a.kept.end(), release);
    std::for_each(kept_results_.begin(), kept_results_.end(), release);
  }

 private:
  struct Release {
    const MicaAutograd* autograd = nullptr;
    void operator()(MicaSavedTensor* saved) const { autograd->saved_release(saved); }
  };
  using Kept = std::unique_ptr<MicaSavedTensor, Release>;

  static Kept Saved(const MicaAutograd& autograd, const Tensor& t, MicaNode* node, bool is_output) {
    MicaSavedTensor* saved = nullptr;
    ThrowIfError(autograd.save(t.impl(), node, is_output, &saved));
    return Kept(saved, Release{&autograd});
  }
  static Tensor Unpacked(const Kept& kept) {
    return kept ? AbiReturn<Tensor>::Unpack(kept.get_deleter().autograd->saved_unpack(kept.get())) : Tensor();
  }

  struct Argument {
    Value value;             // no tensors
    bool is_list;            // of tensors
    std::vector<Kept> kept;  // one for each tensor of a list, else one
  };
  const VendorOperator* op_;
  std::vector<Argument> args_;
  std::vector<Kept> kept_results_;
  std::vector<uint8_t> needs_;  // as MicaBackwardFunction's `wanted`
  bool released_ = false;       // of what was kept
};

VendorBackward& BackwardOf(void* object) { return *static_cast<VendorBackward*>(object); }
constexpr MicaCustomFunction kVendorFunction = {
    .struct_size = sizeof(MicaCustomFunction),
    .backward = [](void* object, MicaTensorSpan grads, MicaTensor** gradients,
                   int64_t) { return CatchAll([&] { BackwardOf(object).Apply(grads, gradients); }); },
    .release_saved = [](void* object) { BackwardOf(object).ReleaseSaved(); },
    .keep = nullptr,
    .visit_held = nullptr,
    .destroy = [](void* object) { delete &BackwardOf(object); },
};

// A node, owned.
struct ReleaseNode {
  const MicaAutograd* autograd;
  void operator()(MicaNode* node) const { autograd->node_release(node); }
};

// At "Autograd": the forward below it, then the node.
void RunAutograd(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                 MicaValue* results) {
  const auto& vendor = *static_cast<const VendorOperator*>(k.context);
  static const int bit = KeyBit("Autograd");
  const KeySet below(keys.bits() & KeySet::Below(bit).bits());
  const auto forward = [&] {
    const ExcludeGuard guard(KeySet(~KeySet::Below(bit).bits()));
    op.RedispatchBoxed(below, args, n, results);
  };
  const MicaAutograd& autograd = AutogradTable();
  std::vector<Tensor> inputs;
  for (int64_t i = 0; i < n; ++i)
    if (Has(vendor.record.differentiable, i))
      for (Tensor& t : TensorsIn(args[i])) inputs.push_back(std::move(t));
  auto* const kept = new VendorBackward(&vendor, args, n);
  const std::string name = NodeName(vendor);
  MicaNode* made = nullptr;
  ThrowIfError(autograd.custom_node(&kVendorFunction, kept, {name.data(), static_cast<int64_t>(name.size())},
                                    AbiType<TensorSpan>::To(inputs), &made));
  const std::unique_ptr<MicaNode, ReleaseNode> node(made, {&autograd});
  forward();
  if (!node) return;
  std::vector<Tensor> outputs;
  const int count = op.spec().num_outputs;
  for (int r = 0; r < count; ++r) outputs.push_back(TakeTensor(results[r]));
  std::vector<Tensor> without;
  for (int r = 0; r < count; ++r)
    if (!Has(vendor.record.differentiable_results, r)) without.push_back(outputs[static_cast<size_t>(r)]);
  MicaCustomOutputs call{};
  call.struct_size = sizeof(call);
  call.inputs = AbiType<TensorSpan>::To(inputs);
  call.outputs = AbiType<TensorSpan>::To(outputs);
  call.non_differentiable = AbiType<TensorSpan>::To(without);
  call.materialize_grads = 1;
  std::vector<Tensor> finished(outputs.size());
  ThrowIfError(autograd.custom_finish(node.get(), &call, reinterpret_cast<MicaTensor**>(finished.data())));
  outputs = std::move(finished);
  kept->Keep(args, outputs, autograd, node.get());
  for (int r = 0; r < count; ++r) results[r] = OwnedTensorValue(std::move(outputs[static_cast<size_t>(r)]));
}

// A plugin's boxed function as a kernel of "meta" or of "Composite".
template <MicaBoxedFunction MicaOperatorRecord::*kFunction>
void RunRecord(const BoxedKernel& k, const Operator& op, KeySet, const MicaValue* args, int64_t n,
               MicaValue* results) {
  const auto& vendor = *static_cast<const VendorOperator*>(k.context);
  MicaCall call{};
  call.struct_size = sizeof(call);
  call.host = HostTable();
  call.context = vendor.record.context;
  call.compute_dtype = MICA_DTYPE_NONE;
  call.num_threads = 1;
  call.name = op.spec().name;
  ThrowIfError((vendor.record.*kFunction)(&call, args, n, results, op.spec().num_outputs));
}

// What the class of an operator that runs from data says of one form.
void CompleteFromData(const MicaOperatorRecord& r, const VendorOperator& op, OperatorSpec& spec) {
  spec.op_class = OpClassNamed(r.class_name).value_or(OpClass::kCustom);
  spec.flags |= kStructured;
  spec.meta = ClassMeta(spec.op_class);
  MICA_CHECK(spec.meta && r.programs, "The class (", r.class_name, ") of the operator (", op.name,
             ") does not run from data; expected pointwise, reduction, scan or row, and programs.");
  for (int k = 0; k < 5; ++k) spec.programs[k] = r.programs[k];
  spec.dtype_rule = static_cast<DTypeRule>(r.dtype_rule);
  spec.fixed_dtype = static_cast<int8_t>(r.fixed_dtype);
  spec.dtype_arg = static_cast<int16_t>(r.dtype_arg);
  spec.dims_arg = static_cast<int16_t>(r.dims_arg);
  spec.keepdim_arg = static_cast<int16_t>(r.keepdim_arg);
  spec.none_dims = static_cast<int8_t>(r.none_dims);
  spec.supports = static_cast<uint16_t>(r.supports);
}

// Completes what Define made of one form's schema.
schema::FunctionSchema Parsed(const char* text, const char* what) {
  absl::StatusOr<schema::FunctionSchema> schema = schema::Parse(text);
  MICA_CHECK(schema.ok(), "The ", what, " (", text,
             ") of a plugin's operator is wrong: ", std::string(schema.status().message()));
  return *std::move(schema);
}

bool GivesTensorsAlone(const schema::FunctionSchema& schema) {
  return std::all_of(schema.returns.begin(), schema.returns.end(),
                     [](const schema::Return& r) { return r.type.is(schema::TypeKind::kTensor); });
}

// A further form takes what the functional form does; the out form then a tensor for each result, written,
// and the in-place form writes its first argument.
void CheckForm(const schema::FunctionSchema& functional, const schema::FunctionSchema& form, bool is_out) {
  const size_t n = functional.arguments.size();
  bool fits =
      GivesTensorsAlone(functional) && form.arguments.size() == n + (is_out ? functional.returns.size() : 0);
  for (size_t i = 0; fits && i < form.arguments.size(); ++i) {
    const schema::Argument& a = form.arguments[i];
    const bool is_written = is_out ? i >= n : i == 0;
    const std::string type = a.type.ToString(false);
    fits = a.is_mutable() == is_written &&
           type == (i < n ? functional.arguments[i].type.ToString(false) : "Tensor");
  }
  MICA_CHECK(fits, "The ", is_out ? "out" : "in-place", " form (", schema::ToString(form),
             ") does not fit the operator (", schema::ToString(functional), "); expected the same arguments",
             is_out ? " and behind them a written Tensor for each result, which are Tensors."
                    : " of which the first is written, and results that are Tensors.");
}

void Complete(const MicaOperatorRecord& r, const VendorOperator& op, OpForm form, bool gives_tensors,
              OperatorSpec& spec) {
  spec.form = form;
  if (r.class_name) {
    CompleteFromData(r, op, spec);
  } else if (r.shape && gives_tensors) {
    spec.meta = &ShapesFromRecord;
    spec.shape = &op.record;
    if (r.out_schema) spec.flags |= kStructured;
  }
  spec.num_functional_args = op.num_args;
  spec.num_outputs = op.num_outputs;
  spec.functional_name = op.name.c_str();
  spec.out_name = op.out_name.empty() ? nullptr : op.out_name.c_str();
}

// The earlier schemas that the record gives of the form `spec`.
void TakeEarlier(VendorOperator& op, OperatorSpec& spec) {
  const schema::FunctionSchema now = Parsed(spec.schema, "schema");
  std::vector<SchemaGeneration>& list = op.generations.emplace_back();
  for (const char* const* text = op.record.earlier; text && *text; ++text) {
    const schema::FunctionSchema earlier = Parsed(*text, "earlier schema");
    if (earlier.FullName() != now.FullName()) continue;
    const auto kept = schema::KeptArguments(earlier, now);
    MICA_CHECK(kept.ok(), std::string(kept.status().message()));
    list.push_back({*text, nullptr});
  }
  spec.generations = list.data();
  spec.num_generations = static_cast<int32_t>(list.size());
}

// What the record says to layers.
void TakePolicies(VendorOperator& op, OperatorSpec& spec) {
  const MicaOperatorRecord& r = op.record;
  if (r.autocast && *r.autocast) op.policies.push_back({"autocast", r.autocast});
  // A name without a namespace is one of the operator's own.
  op.batch_rule = r.batch_rule ? r.batch_rule : "";
  if (!op.batch_rule.empty() && op.batch_rule.find("::") == std::string::npos)
    op.batch_rule = op.name.substr(0, op.name.find("::") + 2) + op.batch_rule;
  if (!op.batch_rule.empty()) op.policies.push_back({"batch_rule", op.batch_rule.c_str()});
  spec.policies = op.policies.data();
  spec.num_policies = static_cast<int32_t>(op.policies.size());
}

void DefineForm(Scope& scope, VendorOperator& op, const char* schema, SourceLocation where) {
  const absl::Status defined = scope.Define(schema, where);
  MICA_CHECK(defined.ok(), std::string(defined.message()));
  TakeEarlier(op, scope.LastDefined());
  if (schema == op.record.schema) TakePolicies(op, scope.LastDefined());
}

// All forms of the operator.
void DefineForms(Scope& scope, VendorOperator& op, const schema::FunctionSchema& functional,
                 SourceLocation where) {
  const MicaOperatorRecord& r = op.record;
  MICA_CHECK(r.class_name || r.shape || r.composite || (!r.out_schema && !r.inplace_schema), "The operator (",
             op.name,
             ") has further forms and no class that runs from data, no shape function and no "
             "decomposition, so that nobody knows what their outputs are.");
  DefineForm(scope, op, r.schema, where);
  op.num_args = scope.LastDefined().num_args;
  op.num_outputs = scope.LastDefined().num_outputs;
  if (r.class_name) CheckOperatorData(r, op.name, op.num_args, op.num_outputs);
  if (r.out_schema) {
    op.out_name = Parsed(r.out_schema, "out form's schema").FullName();
  }
  const bool gives_tensors = GivesTensorsAlone(functional);
  Complete(r, op, OpForm::kFunctional, gives_tensors, scope.LastDefined());
  for (const auto& [text, form] :
       {std::pair(r.inplace_schema, OpForm::kInplace), std::pair(r.out_schema, OpForm::kOut)}) {
    if (!text) continue;
    CheckForm(functional, Parsed(text, "form's schema"), form == OpForm::kOut);
    DefineForm(scope, op, text, where);
    Complete(r, op, form, gives_tensors, scope.LastDefined());
  }
}

// The gradient's kernel takes the results for tensors.
void CheckGivesTensors(const schema::FunctionSchema& schema) {
  for (const schema::Return& r : schema.returns)
    MICA_CHECK_IMPLEMENTED(r.type.is(schema::TypeKind::kTensor), "The operator (", schema.FullName(),
                           ") of a plugin has a gradient and gives a value of the type (", r.type.ToString(),
                           "); its results have to be Tensors alone. Give the other value by an operator of "
                           "its own.");
}

VendorOperator* Remember(const MicaOperatorRecord& record, std::string name) {
  static std::mutex mutex;
  static auto& operators = *new std::deque<VendorOperator>();
  const std::lock_guard lock(mutex);
  operators.push_back({MicaOperatorRecord{}, std::move(name), {}});
  std::memcpy(&operators.back().record, &record,
              std::min<size_t>(record.struct_size, sizeof(MicaOperatorRecord)));
  return &operators.back();
}

MicaStatus Define(void* registrar_context, const MicaOperatorRecord* record) {
  return CatchAll([&] {
    MICA_CHECK(
        record && record->struct_size >= sizeof(uint64_t) + sizeof(char*) && record->schema,
        "An operator's record has no schema; expected text such as acme::spin(Tensor self) -> Tensor.");
    Scope& scope = *static_cast<Scope*>(registrar_context);
    const schema::FunctionSchema schema = Parsed(record->schema, "schema");
    VendorOperator* const op = Remember(*record, schema.FullName());
    const MicaOperatorRecord& r = op->record;
    const SourceLocation where{r.file ? r.file : "", static_cast<int>(r.line)};
    DefineForms(scope, *op, schema, where);
    void* const context = op;
    if (r.shape && !r.out_schema)
      scope.AddBoxedKernel(op->name, "meta", {&RunRecord<&MicaOperatorRecord::shape>, context, nullptr},
                           where);
    if (r.composite)
      scope.AddBoxedKernel(op->name, "Composite",
                           {&RunRecord<&MicaOperatorRecord::composite>, context, nullptr}, where);
    if (r.backward && r.differentiable) {
      CheckGivesTensors(schema);
      scope.AddBoxedKernel(op->name, "Autograd", {&RunAutograd, context, nullptr}, where);
    }
  });
}

}  // namespace

const MicaOperatorsExtension* OperatorsExtension() {
  static const MicaOperatorsExtension table = {sizeof(MicaOperatorsExtension), 1, MICA_OPERATORS_MINOR,
                                               &Define};
  return &table;
}

}  // namespace mica
