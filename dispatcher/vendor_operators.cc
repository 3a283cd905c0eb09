// A plugin's operator becomes a run-time operator of its scope, with boxed kernels:
// at "meta" the shape function, at "Composite" the decomposition, at "Autograd" one
// kernel for all that makes a custom node over the plugin's backward.
#include "mica/dispatcher/vendor_operators.h"

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mica/dispatcher/adapters_return.h"
#include "mica/dispatcher/autograd_interface.h"
#include "mica/dispatcher/host.h"
#include "mica/dispatcher/registration.h"
#include "mica/dispatcher/status.h"
#include "mica/dispatcher/thread_state.h"
#include "mica/schema/value.h"

namespace mica {
namespace {

// A record and the operator's name. Never freed: a disabled plugin's tables and
// the nodes that it made may still point here.
struct VendorOperator {
  MicaOperatorRecord record;
  std::string name;
};

bool Has(uint64_t bits, int64_t i) { return i < 64 && ((bits >> i) & 1) != 0; }

Tensor TensorIn(const MicaValue& v) {
  return v.tag == MICA_VALUE_TENSOR && v.u.tensor ? Tensor::Borrow(v.u.tensor) : Tensor();
}

// What one call keeps for its backward.
class VendorBackward final : public CustomBackward {
 public:
  VendorBackward(const VendorOperator* op, const MicaValue* args, int64_t n) : op_(op) {
    for (int64_t i = 0; i < n; ++i)
      args_.push_back(args[i].tag == MICA_VALUE_TENSOR ? Value() : Value::FromBorrowed(args[i]));
  }

  // Once the forward has run and its results have their history.
  void Keep(const MicaValue* args, const std::vector<Tensor>& results, AutogradInterface& autograd,
            GraphNode* node) {
    for (size_t i = 0; i < args_.size(); ++i) {
      const Tensor t = TensorIn(args[i]);
      const bool wanted = t.defined() && Has(op_->record.kept_args, static_cast<int64_t>(i));
      kept_args_.push_back(wanted ? autograd.SaveTensor(t, node, false) : nullptr);
      needs_.push_back(Has(op_->record.differentiable, static_cast<int64_t>(i)) && t.defined() &&
                       autograd.RequiresGrad(t));
    }
    for (size_t r = 0; r < results.size(); ++r)
      kept_results_.push_back(Has(op_->record.kept_results, static_cast<int64_t>(r))
                                  ? autograd.SaveTensor(results[r], node, true)
                                  : nullptr);
  }

  std::string Name() const override {
    const std::string base = op_->name.substr(op_->name.find("::") + 2);
    return base.substr(0, base.find('.')) + "Backward";
  }

  std::vector<Tensor> Apply(std::vector<Tensor> grads) override {
    const auto unpack = [](const std::unique_ptr<SavedTensorBox>& box) {
      return box ? box->Unpack() : Tensor();
    };
    std::vector<Tensor> tensors, results;
    std::vector<MicaValue> args;
    for (size_t i = 0; i < args_.size(); ++i) {
      tensors.push_back(unpack(kept_args_[i]));
      MicaValue v = args_[i].Borrow();
      if (tensors.back().defined()) {
        v.tag = MICA_VALUE_TENSOR;
        v.u.tensor = tensors.back().impl();
      }
      args.push_back(v);
    }
    for (const auto& box : kept_results_) results.push_back(unpack(box));
    std::vector<MicaTensor*> gradients(args.size(), nullptr);
    static_assert(sizeof(Tensor) == sizeof(MicaTensor*));
    const MicaStatus status =
        op_->record.backward(op_->record.context, args.data(), static_cast<int64_t>(args.size()),
                             reinterpret_cast<MicaTensor* const*>(results.data()),
                             reinterpret_cast<MicaTensor* const*>(grads.data()),
                             static_cast<int64_t>(results.size()), needs_.data(), gradients.data());
    std::vector<Tensor> given;
    for (size_t i = 0; i < gradients.size(); ++i) {
      Tensor g = gradients[i] ? Tensor::Steal(gradients[i]) : Tensor();
      if (Has(op_->record.differentiable, static_cast<int64_t>(i))) given.push_back(std::move(g));
    }
    ThrowIfError(status);
    return given;
  }

  void ReleaseSaved() override {
    for (auto& box : kept_args_) box.reset();
    for (auto& box : kept_results_) box.reset();
  }

 private:
  const VendorOperator* op_;
  std::vector<Value> args_;  // no tensors
  std::vector<std::unique_ptr<SavedTensorBox>> kept_args_, kept_results_;
  std::vector<uint8_t> needs_;
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
  AutogradInterface& autograd = GetAutogradInterface();
  std::vector<Tensor> inputs;
  for (int64_t i = 0; i < n; ++i)
    if (Has(vendor.record.differentiable, i)) inputs.push_back(TensorIn(args[i]));
  auto backward = std::make_unique<VendorBackward>(&vendor, args, n);
  VendorBackward* const kept = backward.get();
  const NodePtr node = autograd.MakeCustomNode(std::move(backward), inputs);
  forward();
  if (!node) return;
  std::vector<Tensor> outputs;
  const int count = op.spec().num_outputs;
  for (int r = 0; r < count; ++r) outputs.push_back(TakeTensor(results[r]));
  std::vector<Tensor> without;
  for (int r = 0; r < count; ++r)
    if (!Has(vendor.record.differentiable_results, r)) without.push_back(outputs[static_cast<size_t>(r)]);
  AutogradInterface::CustomOutputs call;
  call.non_differentiable = without;
  call.inputs = inputs;
  call.outputs = outputs;
  outputs = autograd.FinishCustom(node, call);
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

const VendorOperator* Remember(const MicaOperatorRecord& record, std::string name) {
  static std::mutex mutex;
  static auto& operators = *new std::deque<VendorOperator>();
  const std::lock_guard lock(mutex);
  operators.push_back({MicaOperatorRecord{}, std::move(name)});
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
    absl::StatusOr<schema::FunctionSchema> schema = schema::Parse(record->schema);
    MICA_CHECK(schema.ok(), "The schema (", record->schema,
               ") of a plugin's operator is wrong: ", std::string(schema.status().message()));
    const VendorOperator* op = Remember(*record, schema->FullName());
    const MicaOperatorRecord& r = op->record;
    const SourceLocation where{r.file ? r.file : "", static_cast<int>(r.line)};
    const absl::Status defined = scope.Define(r.schema, where);
    MICA_CHECK(defined.ok(), std::string(defined.message()));
    void* const context = const_cast<VendorOperator*>(op);
    if (r.shape)
      scope.AddBoxedKernel(op->name, "meta", {&RunRecord<&MicaOperatorRecord::shape>, context, nullptr},
                           where);
    if (r.composite)
      scope.AddBoxedKernel(op->name, "Composite",
                           {&RunRecord<&MicaOperatorRecord::composite>, context, nullptr}, where);
    if (r.backward && r.differentiable)
      scope.AddBoxedKernel(op->name, "Autograd", {&RunAutograd, context, nullptr}, where);
  });
}

}  // namespace

const MicaOperatorsExtension* OperatorsExtension() {
  static const MicaOperatorsExtension table = {sizeof(MicaOperatorsExtension), 1, 0, &Define};
  return &table;
}

}  // namespace mica
