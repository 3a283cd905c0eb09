#include "dispatcher/calls/list_call.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>

#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/alike.h"
#include "dispatcher/calls/kernel_call.h"
#include "dispatcher/calls/placement.h"
#include "dispatcher/calls/supported_dtypes.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/calls/write_check.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/late_errors.h"
#include "tensor/shape.h"

namespace mica {
namespace {

// One call that may go with others: its kernel's outputs are ready.
struct Row {
  size_t number;
  int32_t compute_dtype;
  std::vector<Tensor> outs;
};

// The calls of one device with one kernel, dtype for dtype.
using Group = std::vector<Row>;

// The memory that a row reads or writes.
struct Range : ByteRange {
  size_t row;
};

class List {
 public:
  List(const ListOfCalls& calls, std::vector<Tensor>& results)
      : calls_(calls), results_(results), spec_(calls.op.spec()), done_(calls.count, false) {}

  std::vector<bool> Call() {
    if (!FindKernel() || !AreApart()) return done_;
    std::map<std::string, Group> groups;
    for (size_t i = 0; i < calls_.count; ++i) {
      Row row{i, MICA_DTYPE_NONE, {}};
      std::string kind;
      if (Prepare(row, kind)) groups[kind].push_back(std::move(row));
    }
    for (const auto& [kind, group] : groups)
      if (group.size() > 1) Launch(group);
    return done_;
  }

 private:
  int64_t num_inputs() const { return c_->functional->num_functional_args; }
  bool is_functional() const { return spec_.form == OpForm::kFunctional; }

  // Whether the calls come to a class kernel that takes lists, with no layer above it that has work.
  bool FindKernel() {
    if (spec_.op_class != OpClass::kPointwise || calls_.count < 2 || ChecksWrites()) return false;
    const ThreadState& thread = CurrentThread();
    if (thread.frame || thread.inference_mode) return false;
    KeySet keys = calls_.op.KeysOf(calls_.args.data(), static_cast<int64_t>(calls_.args.size()));
    if (!OnPluginDevice(keys)) return false;
    keys = (keys | thread.include) - thread.exclude;
    // Where nothing is recorded, Autograd's kernels of pointwise operators pass every call on.
    if (!thread.grad_enabled) keys = keys - KeySet::Of(keys::kAutograd);
    const OpTable& table = calls_.op.table();
    const int bit = (keys & KeySet(table.mask)).highest();
    if (bit <= keys::kMeta || bit >= keys::kBackendCount) return false;
    const Slot& slot = table.slots[bit];
    const SignatureAdapters* const adapters = spec_.adapters;
    if (adapters && slot.fn != adapters->boxing) return false;
    const auto& kernel = *static_cast<const BoxedKernel*>(slot.context);
    if (kernel.fn != &RunStructured && kernel.fn != &RunAlike) return false;
    c_ = static_cast<const StructuredContext*>(kernel.context);
    place_ = PlaceOfCall(keys, calls_.row(0), spec_.num_args);
    return c_->class_list_fn && !c_->leaf && !c_->leaf_boxed;
  }

  // Whether the call is as usual; then its outputs, and in `kind` what calls of one launch have in common.
  bool Prepare(Row& row, std::string& kind) {
    const MicaValue* const args = calls_.row(row.number);
    MetaResult meta;
    try {
      c_->functional->meta(*c_->functional, args, meta);
    } catch (const Error&) {
      return false;  // for the call itself to say
    }
    if (meta.compute_dtype < 0 || !Supports(*c_->functional, static_cast<DType>(meta.compute_dtype)))
      return false;
    row.compute_dtype = meta.compute_dtype;
    kind = std::to_string(meta.compute_dtype);
    const IntSpan sizes = meta.outputs[0].sizes;
    for (int64_t i = 0; i < num_inputs(); ++i) {
      const MicaValue& v = args[i];
      kind += ',' + std::to_string(v.tag);
      if (v.tag == MICA_VALUE_TENSORS) return false;
      if (v.tag != MICA_VALUE_TENSOR) continue;
      const Tensor& t = Tensor::Ref(v.u.tensor);
      const bool is_number = t.device().is_cpu() && t.ndim() == 0;
      if (!is_number && (t.device() != place_ || !t.is_contiguous())) return false;
      if (t.ndim() != 0 && t.sizes() != sizes) return false;
      kind += ':' + std::to_string(static_cast<int>(t.dtype())) +
              (is_number       ? "n"
               : t.ndim() == 0 ? "s"
                               : "");
    }
    if (!Objection(spec_, args, spec_.num_args, place_).empty()) return false;
    for (size_t r = 0; r < meta.outputs.size(); ++r)
      if (!AddOutput(row, meta.outputs[r], sizes, r)) return false;
    return true;
  }

  bool AddOutput(Row& row, const OutputSpec& want, IntSpan sizes, size_t r) {
    if (!want.strides.empty() || IntSpan(want.sizes) != sizes || want.device != place_) return false;
    if (is_functional()) {
      row.outs.push_back(EmptyTensor(want.sizes, want.dtype, want.device));
      return true;
    }
    const size_t at = spec_.form == OpForm::kInplace ? 0 : static_cast<size_t>(num_inputs()) + r;
    const MicaValue& given = calls_.row(row.number)[at];
    if (given.tag != MICA_VALUE_TENSOR) return false;
    const Tensor& out = Tensor::Ref(given.u.tensor);
    row.outs.push_back(out);
    return out.device() == place_ && out.dtype() == want.dtype && out.is_contiguous() && out.sizes() == sizes;
  }

  // Whether the order of the rows does not matter: none writes memory that another reads or writes, or its
  // own input in another place.
  bool AreApart() const {
    std::vector<Range> read, written;
    for (size_t row = 0; row < calls_.count; ++row)
      for (int64_t i = 0; i < spec_.num_args; ++i) {
        const MicaValue& v = calls_.row(row)[i];
        if (v.tag != MICA_VALUE_TENSOR || Tensor::Ref(v.u.tensor).numel() == 0) continue;
        if ((spec_.written_args >> i) & 1) written.push_back({ByteRangeOf(Tensor::Ref(v.u.tensor)), row});
        if (i < num_inputs()) read.push_back({ByteRangeOf(Tensor::Ref(v.u.tensor)), row});
      }
    const auto before = [](const Range& a, const Range& b) { return a.begin < b.begin; };
    std::sort(written.begin(), written.end(), before);
    for (size_t i = 1; i < written.size(); ++i)
      if (written[i].begin < written[i - 1].end) return false;
    for (const Range& r : read) {
      auto at = std::upper_bound(written.begin(), written.end(), r, before);
      if (at != written.begin() && (at - 1)->end > r.begin) --at;
      for (; at != written.end() && at->begin < r.end; ++at)
        if (at->row != r.row || at->begin != r.begin || at->end != r.end) return false;
    }
    return true;
  }

  void Launch(const Group& group) {
    for (const Row& row : group)
      if (!is_functional())
        for (const Tensor& out : row.outs) CheckWritable(out, spec_);
    const int64_t n = num_inputs();
    std::vector<MicaValue> args;
    std::vector<MicaTensor*> outs;
    std::deque<LocalArguments> local;
    for (const Row& row : group) {
      if (row.outs[0].numel() == 0) continue;
      local.emplace_back(calls_.row(row.number), n, place_, row.compute_dtype, true);
      args.insert(args.end(), local.back().data(), local.back().data() + n);
      for (const Tensor& out : row.outs) outs.push_back(out.impl());
    }
    const size_t num_outs = group[0].outs.size();
    const auto rows = static_cast<int64_t>(outs.size() / num_outs);
    MicaCall call = MakeCall(*c_, group[0].compute_dtype, place_);
    call.context = c_->class_context;
    call.program = ProgramFor(*c_->functional, group[0].compute_dtype);
    MicaStatus status = nullptr;
    if (rows > 0) {
      RaiseLate(place_);
      const DeviceGuard current(place_);
      const ExcludeGuard below_layers(keys::kAboveBackends);
      status = c_->class_list_fn(&call, args.data(), n, outs.data(), static_cast<int64_t>(num_outs), rows);
      if (!status) Launched(place_, call.name, call.stream);
    }
    if (Refused(status)) return;
    RaiseOfKernel(place_, status);
    for (const Row& row : group) Finish(row);
  }

  void Finish(const Row& row) {
    done_[row.number] = true;
    for (size_t r = 0; r < row.outs.size(); ++r) {
      if (is_functional())
        results_[row.number * row.outs.size() + r] = row.outs[r];
      else
        MarkWritten(row.outs[r], spec_);
    }
  }

  const ListOfCalls& calls_;
  std::vector<Tensor>& results_;
  const OperatorSpec& spec_;
  const StructuredContext* c_ = nullptr;
  Device place_;
  std::vector<bool> done_;
};

}  // namespace

std::vector<bool> CallList(const ListOfCalls& calls, std::vector<Tensor>& results) {
  return List(calls, results).Call();
}

}  // namespace mica
