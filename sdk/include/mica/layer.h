// The C++17 face of <mica/layers.h>: what a third party's layer or transform is written with.
//
//   void Count(layer::Call& call) {              // a boxed kernel of a layer, or of a frame kind
//     g_calls += 1;
//     call.Next();                               // goes on below this layer
//   }
//   void Init(const MicaHost* host, const MicaRegistrar* r) {
//     layer::Layer(r, "acme.count", {"frames", "Autograd"}).Fallback<&Count>();
//   }
//
// Kernels throw what plugin.h says; their thunks catch it. Header-only, over plugin.h, and
// locked to the host's version of the table: Table() throws a sentence when they differ.
// Do not use it for a backend, whose kernels are leaves: plugin.h has all of that.
#pragma once

#include <string>
#include <vector>

#include <mica/layers.h>
#include <mica/plugin.h>

namespace mica {
namespace layer {

using plugin::Check;

// The host's table, asked for once.
inline const MicaLayers* Table() {
  static const MicaLayers* const table = [] {
    const void* found = plugin::Host()->extension(plugin::Str(MICA_LAYERS_EXTENSION), MICA_LAYERS_MINOR);
    const auto* t = static_cast<const MicaLayers*>(found);
    if (!t || t->major != MICA_LAYERS_MAJOR || t->minor != MICA_LAYERS_MINOR)
      throw plugin::Error(MICA_ERROR_RUNTIME,
                          "The plugin's layer was built for version (" + std::to_string(MICA_LAYERS_MAJOR) +
                              "." + std::to_string(MICA_LAYERS_MINOR) +
                              ") of the host's table of layers, and this Mica has another; build the plugin "
                              "against the headers of this Mica.");
    return t;
  }();
  return table;
}

constexpr uint64_t Bit(int32_t bit) { return uint64_t{1} << bit; }
constexpr uint64_t Below(int32_t bit) { return Bit(bit) - 1; }

// What this thread's calls go by, as it is now.
inline const MicaThread& Thread() { return *Table()->thread(); }

// While it lives, this thread's calls pass the layers, or pass them over.
class Include {
 public:
  explicit Include(uint64_t keys) : before_(Table()->exchange_include(Thread().include | keys)) {}
  ~Include() { Table()->exchange_include(before_); }
  Include(const Include&) = delete;
  Include& operator=(const Include&) = delete;

 private:
  uint64_t before_;
};
class Exclude {
 public:
  explicit Exclude(uint64_t keys) : before_(Table()->exchange_exclude(Thread().exclude | keys)) {}
  ~Exclude() { Table()->exchange_exclude(before_); }
  Exclude(const Exclude&) = delete;
  Exclude& operator=(const Exclude&) = delete;

 private:
  uint64_t before_;
};

// One call at the layer's kernel, boxed.
class Call {
 public:
  Call(uint64_t keys, const MicaLayerCall* call, const MicaValue* args, int64_t n, MicaValue* results,
       int64_t num_results)
      : keys_(keys), call_(call), args_(args), n_(n), results_(results), num_results_(num_results) {}

  uint64_t keys() const { return keys_; }
  void* op() const { return call_->op; }
  // The frame that is current, in a kind's kernel: its own.
  const MicaFrame& frame() const { return *call_->thread->frame; }
  template <typename T>
  T* context() const {
    return static_cast<T*>(call_->context);
  }
  const MicaOperatorInfo& info() const { return *call_->layers->operator_info(call_->op); }
  const MicaValue* args() const { return args_; }
  int64_t size() const { return n_; }
  const MicaValue& operator[](int64_t i) const { return args_[i]; }
  MicaValue* results() const { return results_; }
  int64_t num_results() const { return num_results_; }

  // Goes on below layer `bit`, with these or other arguments. What is called on the way does
  // not pass the layer again.
  void Next(int32_t bit) { Next(bit, args_); }
  void Next(int32_t bit, const MicaValue* args) {
    const Exclude own(Bit(bit));
    Redispatch(keys_ & Below(bit), args);
  }
  // The same with other tensors, whose keys count.
  void NextOf(int32_t bit, const MicaValue* args) {
    Redispatch(call_->layers->keys_of(call_->op, args, n_) & Below(bit), args);
  }
  // At the kernel of the highest of `keys`.
  void Redispatch(uint64_t keys, const MicaValue* args) {
    Check(call_->layers->redispatch(call_->op, keys, args, n_, results_, num_results_));
  }
  // The same call with other arguments.
  Call With(const MicaValue* args) const { return Call(keys_, call_, args, n_, results_, num_results_); }
  // In a frame kind's kernel: the call in the parent, on values.
  void InParent() { InParent(args_); }
  void InParent(const MicaValue* args) {
    Check(call_->layers->call_in_parent(call_->op, args, n_, results_, num_results_));
  }
  // The operator's decomposition into others, each of which comes from the top.
  void Decompose() { Check(call_->layers->decompose(call_->op, keys_, args_, n_, results_, num_results_)); }
  // From the top, with this thread's layers and frame; into `results`, which the caller owns.
  void Again(const MicaValue* args, MicaValue* results) const {
    Check(plugin::Host()->op_call_boxed(call_->op, args, n_, results, num_results_));
  }
  // f(tensor, argument number) for each tensor among the arguments, those of lists too.
  template <typename F>
  void ForEachTensor(F&& f) const {
    for (int64_t i = 0; i < n_; ++i) {
      if (args_[i].tag == MICA_VALUE_TENSOR && args_[i].u.tensor) f(args_[i].u.tensor, i);
      if (args_[i].tag != MICA_VALUE_TENSORS) continue;
      for (int64_t j = 0; j < args_[i].u.tensors.size; ++j)
        if (args_[i].u.tensors.data[j]) f(args_[i].u.tensors.data[j], i);
    }
  }
  // f(tensor) for each tensor that the call has made or written, once it has run.
  template <typename F>
  void ForEachMade(F&& f) const {
    const MicaOperatorInfo& about = info();
    ForEachTensor([&](MicaTensor* t, int64_t i) {
      if ((about.written_args >> i) & 1) f(t);
    });
    if (about.form != MICA_FORM_FUNCTIONAL) return;
    for (int64_t i = 0; i < num_results_; ++i) {
      if (results_[i].tag == MICA_VALUE_TENSOR && results_[i].u.tensor) f(results_[i].u.tensor);
      if (results_[i].tag != MICA_VALUE_TENSORS) continue;
      for (int64_t j = 0; j < results_[i].u.tensors.size; ++j)
        if (results_[i].u.tensors.data[j]) f(results_[i].u.tensors.data[j]);
    }
  }

 private:
  uint64_t keys_;
  const MicaLayerCall* call_;
  const MicaValue* args_;
  int64_t n_;
  MicaValue* results_;
  int64_t num_results_;
};

// `void f(Call&)` as a boxed kernel.
template <void (*kFunction)(Call&)>
struct BoxedThunk {
  static MicaStatus Run(uint64_t keys, const MicaLayerCall* call, const MicaValue* args, int64_t n,
                        MicaValue* results, int64_t num_results) noexcept {
    return plugin::CatchAll([&] {
      Call c(keys, call, args, n, results, num_results);
      kFunction(c);
    });
  }
};

// `R f(uint64_t keys, abi arguments...)` as an unboxed kernel; R is void, MicaTensor* (owned),
// int64_t or double.
template <auto kFunction>
struct Thunk;
template <typename... A, void (*kFunction)(uint64_t, A...)>
struct Thunk<kFunction> {
  using Leaf = void (*)(const MicaCall*, A...);
  static MicaStatus Run(void*, uint64_t keys, A... a) noexcept {
    return plugin::CatchAll([&] { kFunction(keys, a...); });
  }
};
#define MICA_LAYER_THUNK_(type, result)                                      \
  template <typename... A, type (*kFunction)(uint64_t, A...)>                \
  struct Thunk<kFunction> {                                                  \
    using Leaf = type (*)(const MicaCall*, A...);                            \
    static result Run(void*, uint64_t keys, A... a) noexcept {               \
      result r{};                                                            \
      r.status = plugin::CatchAll([&] { r.value = kFunction(keys, a...); }); \
      return r;                                                              \
    }                                                                        \
  };
MICA_LAYER_THUNK_(MicaTensor*, MicaTensorResult)
MICA_LAYER_THUNK_(int64_t, MicaIntResult)
MICA_LAYER_THUNK_(double, MicaFloatResult)
#undef MICA_LAYER_THUNK_

// `void f(Call&)` as a kernel that a rule chooses.
template <void (*kFunction)(Call&)>
void Choose(MicaLayerChoice* out, void* context = nullptr) {
  out->what = MICA_CHOICE_KERNEL;
  out->boxed = &BoxedThunk<kFunction>::Run;
  out->context = context;
}
inline void Pass(MicaLayerChoice* out) { out->what = MICA_CHOICE_PASS; }

// Registers at one key: a layer's or a kind's. For the plugin's init.
class Key {
 public:
  Key(const MicaRegistrar* r, std::string name) : r_(r), name_(std::move(name)) {}
  // What is done with each operator, from what its entry says: Choose, Pass, or neither for nothing. Must not
  // throw.
  template <void (*kRule)(void* op, MicaLayerChoice* out)>
  Key& Rule() {
    MicaLayerRuleRecord record{};
    record.struct_size = sizeof(record);
    record.key = name_.c_str();
    record.choose = [](void*, void* op, MicaLayerChoice* out) { kRule(op, out); };
    Check(Table()->register_rule(r_->context, &record));
    return *this;
  }
  // For all operators without a kernel of their own.
  template <void (*kFunction)(Call&)>
  Key& Fallback(void* context = nullptr, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return Add(nullptr, &BoxedThunk<kFunction>::Run, context, file, line);
  }
  template <void (*kFunction)(Call&)>
  Key& Boxed(const char* op, void* context = nullptr, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) {
    return Add(op, &BoxedThunk<kFunction>::Run, context, file, line);
  }
  // By MICA_LAYER_KERNEL, which knows the hash and has checked the signature.
  template <auto kFunction>
  Key& Unboxed(const char* op, uint64_t schema_hash, const char* file, int line) {
    MicaLayerKernelRecord k = Record(op, file, line);
    k.function = reinterpret_cast<MicaFunction>(&Thunk<kFunction>::Run);
    k.schema_hash = schema_hash;
    Check(Table()->register_kernel(r_->context, &k));
    return *this;
  }
  Key& FallThrough(const char* op) {
    Check(Table()->fall_through(r_->context, op, name_.c_str()));
    return *this;
  }
  // Composites without a kernel here are decomposed here.
  Key& Decompose() {
    Check(Table()->decompose_at(r_->context, name_.c_str()));
    return *this;
  }
  // A layer's bit, a kind's number.
  int32_t number() const { return number_; }

 protected:
  int32_t number_ = -1;

 private:
  MicaLayerKernelRecord Record(const char* op, const char* file, int line) const {
    MicaLayerKernelRecord k{};
    k.struct_size = sizeof(k);
    k.name = op;
    k.key = name_.c_str();
    k.file = file;
    k.line = line;
    return k;
  }
  Key& Add(const char* op, MicaLayerFunction f, void* context, const char* file, int line) {
    MicaLayerKernelRecord k = Record(op, file, line);
    k.boxed = f;
    k.context = context;
    Check(Table()->register_kernel(r_->context, &k));
    return *this;
  }

  const MicaRegistrar* r_;
  std::string name_;
};

// Both empty: one of Mica's own layers, whose place is given.
struct Place {
  const char* after = "";   // nearer to the user
  const char* before = "";  // nearer to the backend
};
class Layer : public Key {
 public:
  Layer(const MicaRegistrar* r, const char* name, Place place) : Key(r, name) {
    Check(Table()->register_layer(r->context, name, place.after, place.before, &number_));
  }
};

class Kind : public Key {
 public:
  Kind(const MicaRegistrar* r, const MicaFrameKindRecord& record) : Key(r, record.name) {
    Check(Table()->register_kind(r->context, &record, &number_));
  }
};

// While it lives, the frame that was current is left: what a kind's kernel computes in.
class LeaveFrame {
 public:
  LeaveFrame() { Check(Table()->frame_leave(&scope_, &frame_)); }
  ~LeaveFrame() { Table()->frame_return(&scope_); }
  LeaveFrame(const LeaveFrame&) = delete;
  LeaveFrame& operator=(const LeaveFrame&) = delete;
  const MicaFrame& frame() const { return frame_; }

 private:
  MicaFrameScope scope_;
  MicaFrame frame_;
};

// Of kind -1 if there is none.
inline MicaFrame CurrentFrame() {
  const MicaFrame* const frame = Thread().frame;
  return frame ? *frame : MicaFrame{-1, 0, 0, nullptr};
}

// The wrapper of `frame` that a tensor is: its value and what it carries, as they are now. NULL of others.
inline const MicaWrapper* OwnOf(MicaTensor* t, const MicaFrame& frame) {
  const MicaWrapper* const w = t ? Table()->wrapper(t) : nullptr;
  return w && w->tag == frame.tag ? w : nullptr;
}

}  // namespace layer
}  // namespace mica

// MICA_LAYER_KERNEL(layer, &Count, "mica::mm(Tensor self, Tensor mat2) -> Tensor") registers an
// unboxed kernel under the schema's hash; it does not compile when the function differs.
#define MICA_LAYER_KERNEL(key, function, schema)                                                            \
  do {                                                                                                      \
    static_assert(                                                                                          \
        ::mica::plugin::MismatchOf(schema, static_cast<::mica::layer::Thunk<function>::Leaf>(nullptr)) < 0, \
        "The kernel's C++ function does not have the parameters and the result of its schema.");            \
    (key).Unboxed<function>(std::string(::mica::plugin::NameOf(schema)).c_str(),                            \
                            ::mica::plugin::SchemaHash(schema), __FILE__, __LINE__);                        \
  } while (false)
