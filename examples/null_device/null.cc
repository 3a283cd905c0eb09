// The null device: a whole backend in one file, and the template to copy.
//
// It is called "null", has two devices, and keeps their memory on the host, but
// under addresses that the host cannot read, as a real device's: whoever reads one
// without a copy crashes. Work runs at once, so streams and events have nothing to
// wait for. It brings five kernels; all other operators run on the CPU.
//
//   1. the device     a class of 15 methods, which DeviceTableOf turns into C
//   2. add            one operator, contiguous float32 alone: the place to begin
//   3. pointwise      every operator of the class, from the program in its entry
//   4. reductions     sum, from the class; the others are refused, and run on the CPU
//   5. products       mm, any strides
//   6. registration
//
// A kernel that gets a call it does not support throws NotImplemented: the host
// runs it elsewhere. Built against the installed Mica::sdk alone.
#include <mica/device.h>
#include <mica/program.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

using mica::plugin::NotImplemented;
using mica::plugin::TensorRef;

namespace {

// ------------------------------------------------------------- 1. the device

constexpr int32_t kDevices = 2;
// No address of a process on x86-64 or arm64 has this bit.
constexpr uintptr_t kDeviceBit = uintptr_t{1} << 62;

template <typename T>
T* OnHost(T* device_address) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(device_address) & ~kDeviceBit);
}
void* OnDevice(void* host_address) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host_address) | kDeviceBit);
}

class NullDevice {
 public:
  int32_t Count() { return kDevices; }
  void Properties(int32_t device, MicaDeviceProperties* out) {
    out->name = "the null device";
    out->total_memory = total_;
    out->free_memory = total_ - used_[device];
  }
  int32_t ExchangeDevice(int32_t device) {
    static thread_local int32_t current = 0;
    return std::exchange(current, device);
  }

  void* Allocate(int32_t device, int64_t size) {
    if (used_[device].fetch_add(size) + size > total_) {
      used_[device] -= size;
      throw std::bad_alloc();
    }
    void* data = std::aligned_alloc(64, static_cast<size_t>((size + 63) / 64 * 64));
    if (!data) throw std::bad_alloc();
    return OnDevice(data);
  }
  void Free(int32_t device, void* data, int64_t size) {
    used_[device] -= size;
    std::free(OnHost(data));
  }

  // Everything is done when its call returns. Handles only have to differ.
  uint64_t StreamCreate(int32_t, int32_t) { return ++handles_; }
  void StreamDestroy(int32_t, uint64_t) {}
  void StreamSync(int32_t, uint64_t) {}
  uint64_t EventCreate(int32_t) { return ++handles_; }
  void EventDestroy(int32_t, uint64_t) {}
  void EventRecord(int32_t, uint64_t, uint64_t) {}
  void EventWait(int32_t, uint64_t, uint64_t) {}
  void EventSync(int32_t, uint64_t) {}
  bool EventQuery(int32_t, uint64_t) { return true; }

  // OnHost leaves a host address as it is, so that either end may be the host's.
  void Copy(void* to, MicaDevice, const void* from, MicaDevice, int64_t size, uint64_t) {
    std::memmove(OnHost(to), OnHost(from), static_cast<size_t>(size));
  }
  void Fill(int32_t, void* data, uint8_t byte, int64_t size, uint64_t) {
    std::memset(OnHost(data), byte, static_cast<size_t>(size));
  }
  void PeerCopy(void* to, int32_t, const void* from, int32_t, int64_t size, uint64_t) {
    std::memmove(OnHost(to), OnHost(from), static_cast<size_t>(size));
  }

 private:
  static int64_t MemoryOfDevice() {
    const char* bytes = std::getenv("NULL_DEVICE_MEMORY");
    return bytes ? std::atoll(bytes) : int64_t{4} << 30;
  }

  const int64_t total_ = MemoryOfDevice();
  std::atomic<int64_t> used_[kDevices] = {};
  std::atomic<uint64_t> handles_{0};
};

// -------------------------------------------------------------------- 2. add

bool PlainFloats(const TensorRef& t) { return t.dtype() == MICA_F32 && t.contiguous(); }

// add.out(Tensor self, Tensor other, *, Scalar alpha, Tensor(a!) out): the host has
// checked shapes and dtypes and made `out`.
void Add(const MicaCall*, MicaTensor* self, MicaTensor* other, MicaScalar alpha, MicaTensor* out) {
  const TensorRef a(self), b(other), o(out);
  if (!PlainFloats(a) || !PlainFloats(b) || !PlainFloats(o) || a.numel() != o.numel() ||
      b.numel() != o.numel())
    throw NotImplemented();
  const auto scale = static_cast<float>(alpha.tag == MICA_SCALAR_FLOAT ? alpha.u.f : alpha.u.i);
  const float *x = OnHost(a.data<float>()), *y = OnHost(b.data<float>());
  float* z = OnHost(o.data<float>());
  for (int64_t i = 0; i < o.numel(); ++i) z[i] = x[i] + scale * y[i];
}

// -------------------------------------------------------------- 3. pointwise

constexpr int kBlock = 64;
constexpr int kMaxDims = 16;

// f(value of type T) for the dtypes that this device computes with.
template <typename F>
void VisitType(int32_t dtype, F&& f) {
  switch (dtype) {
    case MICA_BOOL:
    case MICA_U8:
      return f(uint8_t{});
    case MICA_I32:
      return f(int32_t{});
    case MICA_I64:
      return f(int64_t{});
    case MICA_F32:
      return f(float{});
    case MICA_F64:
      return f(double{});
    default:
      throw NotImplemented();
  }
}

// One tensor seen with the output's shape: broadcast dimensions have stride 0.
class Operand {
 public:
  Operand(const TensorRef& t, const TensorRef& shape) : dtype_(t.dtype()), data_(OnHost(t.data<char>())) {
    if (shape.ndim() > kMaxDims) throw NotImplemented();
    const int missing = shape.ndim() - t.ndim();
    for (int d = 0; d < shape.ndim(); ++d) {
      const bool broadcast = d < missing || (t.size(d - missing) == 1 && shape.size(d) != 1);
      strides_[d] = broadcast ? 0 : t.stride(d - missing);
    }
  }
  int32_t dtype() const { return dtype_; }
  char* data() const { return data_; }
  int64_t stride(int d) const { return strides_[d]; }

 private:
  int32_t dtype_;
  char* data_;
  int64_t strides_[kMaxDims] = {};
};

// Where the next elements of an operand lie, in row-major order of `shape`.
class Walk {
 public:
  explicit Walk(const TensorRef& shape) : shape_(shape) {}
  int64_t Next(const Operand& o) {
    const int64_t here = offset_;
    for (int d = shape_.ndim() - 1; d >= 0; --d) {
      offset_ += o.stride(d);
      if (++at_[d] < shape_.size(d)) break;
      offset_ -= o.stride(d) * at_[d];
      at_[d] = 0;
    }
    return here;
  }

 private:
  TensorRef shape_;
  int64_t at_[kMaxDims] = {};
  int64_t offset_ = 0;
};

using Lane = double[kBlock];

void Load(const Operand& o, Walk& walk, int n, Lane& out) {
  VisitType(o.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int i = 0; i < n; ++i) out[i] = static_cast<double>(reinterpret_cast<T*>(o.data())[walk.Next(o)]);
  });
}
void Store(const Operand& o, Walk& walk, int n, const Lane& values) {
  VisitType(o.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int i = 0; i < n; ++i)
      reinterpret_cast<T*>(o.data())[walk.Next(o)] =
          o.dtype() == MICA_BOOL ? static_cast<T>(values[i] != 0) : static_cast<T>(values[i]);
  });
}

double NumberOf(const MicaScalar& s) {
  if (s.tag == MICA_SCALAR_COMPLEX) throw NotImplemented();
  return s.tag == MICA_SCALAR_FLOAT ? s.u.f : static_cast<double>(s.u.i);
}
double NumberOf(const MicaValue& v) {
  if (v.tag == MICA_VALUE_SCALAR) return NumberOf(v.u.scalar);
  if (v.tag == MICA_VALUE_FLOAT) return v.u.f;
  if (v.tag == MICA_VALUE_INT || v.tag == MICA_VALUE_BOOL) return static_cast<double>(v.u.i);
  throw NotImplemented();
}

double Minimum(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : a < b ? a : b; }
double Maximum(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b; }

// One instruction on numbers; masks are 0 and 1. What is not here is refused.
double Compute(int opcode, double a, double b, double c) {
  switch (opcode) {
    case MICA_OP_TO_LANE:
      return a;
    case MICA_OP_TO_MASK:
      return a != 0;
    case MICA_OP_ADD:
      return a + b;
    case MICA_OP_SUB:
      return a - b;
    case MICA_OP_MUL:
      return a * b;
    case MICA_OP_DIV:
      return a / b;
    case MICA_OP_NEG:
      return -a;
    case MICA_OP_ABS:
      return std::fabs(a);
    case MICA_OP_SQUARE:
      return a * a;
    case MICA_OP_RECIPROCAL:
      return 1 / a;
    case MICA_OP_POW:
      return std::pow(a, b);
    case MICA_OP_MIN:
      return Minimum(a, b);
    case MICA_OP_MAX:
      return Maximum(a, b);
    case MICA_OP_FMA:
      return std::fma(a, b, c);
    case MICA_OP_EQ:
      return a == b;
    case MICA_OP_NE:
      return a != b;
    case MICA_OP_LT:
      return a < b;
    case MICA_OP_LE:
      return a <= b;
    case MICA_OP_GT:
      return a > b;
    case MICA_OP_GE:
      return a >= b;
    case MICA_OP_MASK_AND:
      return a != 0 && b != 0;
    case MICA_OP_MASK_OR:
      return a != 0 || b != 0;
    case MICA_OP_MASK_XOR:
      return (a != 0) != (b != 0);
    case MICA_OP_MASK_NOT:
      return a == 0;
    case MICA_OP_SELECT:
    case MICA_OP_MASK_SELECT:
      return a != 0 ? b : c;
    case MICA_OP_IS_NAN:
      return std::isnan(a);
    case MICA_OP_FLOOR:
      return std::floor(a);
    case MICA_OP_CEIL:
      return std::ceil(a);
    case MICA_OP_TRUNC:
      return std::trunc(a);
    case MICA_OP_SQRT:
      return std::sqrt(a);
    case MICA_OP_RSQRT:
      return 1 / std::sqrt(a);
    case MICA_OP_EXP:
      return std::exp(a);
    case MICA_OP_LOG:
      return std::log(a);
    case MICA_OP_SIN:
      return std::sin(a);
    case MICA_OP_COS:
      return std::cos(a);
    case MICA_OP_TANH:
      return std::tanh(a);
    case MICA_OP_ERF:
      return std::erf(a);
    case MICA_OP_SIGMOID:
      return 1 / (1 + std::exp(-a));
    default:
      throw NotImplemented();
  }
}

bool IsComputed(int opcode) {
  switch (opcode) {
    case MICA_OP_LOAD:
    case MICA_OP_SCALAR:
    case MICA_OP_CONST:
    case MICA_OP_STORE:
      return false;
    default:
      return true;
  }
}

// Runs a program over an output: its inputs and what it has stored so far.
class Machine {
 public:
  Machine(const MicaProgram& program, const MicaValue* args, MicaTensor* const* outputs, int64_t num_outputs)
      : program_(program), args_(args), shape_(outputs[0]) {
    for (int i = 0; i < program.num_inputs; ++i) {
      const MicaValue& v = args[program.input_args[i]];
      inputs_.push_back(v.tag == MICA_VALUE_TENSOR ? Operand(v.u.tensor, shape_) : Operand(shape_, shape_));
      input_walks_.emplace_back(shape_);
    }
    for (int64_t i = 0; i < num_outputs; ++i) {
      outputs_.emplace_back(TensorRef(outputs[i]), shape_);
      output_walks_.emplace_back(shape_);
    }
    registers_ = std::vector<std::vector<double>>(static_cast<size_t>(program.num_registers),
                                                  std::vector<double>(kBlock));
    // Before the first element is written: whether every instruction is known.
    for (int64_t i = 0; i < program.main.size; ++i)
      if (IsComputed(program.main.data[i].opcode)) Compute(program.main.data[i].opcode, 1, 1, 1);
  }

  void Run() {
    for (int64_t left = shape_.numel(); left > 0; left -= kBlock) {
      const int n = static_cast<int>(left < kBlock ? left : kBlock);
      for (int64_t i = 0; i < program_.main.size; ++i) Step(program_.main.data[i], n);
    }
  }

 private:
  // An operand that an opcode lacks names no register.
  Lane& Register(size_t r) {
    return *reinterpret_cast<Lane*>(registers_[r < registers_.size() ? r : 0].data());
  }
  void Set(size_t r, double value) {
    for (double& x : Register(r)) x = value;
  }
  void Step(const MicaInstruction& in, int n) {
    const auto aux = static_cast<size_t>(in.aux);
    if (in.opcode == MICA_OP_LOAD) {
      const MicaValue& v = args_[program_.input_args[aux]];
      if (v.tag == MICA_VALUE_TENSOR) return Load(inputs_[aux], input_walks_[aux], n, Register(in.dst));
      return Set(in.dst, NumberOf(v));  // a Python number in a tensor's place
    }
    if (in.opcode == MICA_OP_SCALAR) return Set(in.dst, NumberOf(args_[program_.scalar_args[aux]]));
    if (in.opcode == MICA_OP_CONST) return Set(in.dst, program_.constants[aux].f);
    if (in.opcode == MICA_OP_STORE) return Store(outputs_[aux], output_walks_[aux], n, Register(in.a));
    const Lane &a = Register(in.a), &b = Register(in.b), &c = Register(in.c);
    Lane& out = Register(in.dst);
    for (int i = 0; i < n; ++i) out[i] = Compute(in.opcode, a[i], b[i], c[i]);
  }

  const MicaProgram& program_;
  const MicaValue* args_;
  TensorRef shape_;
  std::vector<Operand> inputs_, outputs_;
  std::vector<Walk> input_walks_, output_walks_;
  std::vector<std::vector<double>> registers_;
};

// Lanes are doubles here: exact for float32, float64 and bool, and for nothing else.
bool ComputesExactly(int32_t dtype) { return dtype == MICA_F32 || dtype == MICA_F64 || dtype == MICA_BOOL; }

void Pointwise(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
               int64_t num_outputs) {
  if (!call->program || !ComputesExactly(call->compute_dtype)) throw NotImplemented();
  for (int64_t i = 0; i < num_outputs; ++i) VisitType(TensorRef(outputs[i]).dtype(), [](auto) {});
  for (int i = 0; i < call->program->num_inputs; ++i)
    if (const MicaValue& v = args[call->program->input_args[i]]; v.tag == MICA_VALUE_TENSOR)
      VisitType(TensorRef(v.u.tensor).dtype(), [](auto) {});
  Machine(*call->program, args, outputs, num_outputs).Run();
}

// ------------------------------------------------------------- 4. reductions

bool Has(const MicaIntSpan& dims, int64_t d, int64_t ndim) {
  for (int64_t i = 0; i < dims.size; ++i)
    if ((dims.data[i] + ndim) % ndim == d) return true;
  return dims.size <= 0;  // none: all
}

void Reduction(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs, int64_t) {
  const MicaProgram& program = *call->program;
  const TensorRef in(args[program.input_args[0]].u.tensor), out(outputs[0]);
  if (std::strcmp(program.hint, "sum") != 0 || in.dtype() != out.dtype() ||
      (in.dtype() != MICA_F32 && in.dtype() != MICA_F64) || in.ndim() > kMaxDims)
    throw NotImplemented();
  MicaIntSpan dims{nullptr, -1};
  if (program.dims_arg >= 0) {
    const MicaValue& v = args[program.dims_arg];
    if (v.tag == MICA_VALUE_INTS) dims = v.u.ints;
    if (v.tag == MICA_VALUE_INT) dims = {&v.u.i, 1};
  }
  // For each input dimension: the output's stride, 0 where it is summed.
  const bool kept = out.ndim() == in.ndim();
  int64_t strides[kMaxDims] = {};
  for (int d = 0, o = 0; d < in.ndim(); ++d) {
    const bool summed = Has(dims, d, in.ndim());
    strides[d] = summed ? 0 : out.stride(o);
    if (kept || !summed) ++o;
  }
  VisitType(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<double> sums(static_cast<size_t>(out.numel()), 0.0);
    if (!out.contiguous()) throw NotImplemented();
    const Operand values(in, in);
    Walk walk(in);
    int64_t at[kMaxDims] = {};
    for (int64_t i = 0; i < in.numel(); ++i) {
      int64_t to = 0;
      for (int d = 0; d < in.ndim(); ++d) to += at[d] * strides[d];
      sums[static_cast<size_t>(to)] +=
          static_cast<double>(reinterpret_cast<T*>(values.data())[walk.Next(values)]);
      for (int d = in.ndim() - 1; d >= 0 && ++at[d] == in.size(d); --d) at[d] = 0;
    }
    for (size_t i = 0; i < sums.size(); ++i) OnHost(out.data<T>())[i] = static_cast<T>(sums[i]);
  });
}

// --------------------------------------------------------------- 5. products

void MatrixProduct(const MicaCall*, MicaTensor* self, MicaTensor* mat2, MicaTensor* out) {
  const TensorRef a(self), b(mat2), o(out);
  if (a.dtype() != o.dtype() || b.dtype() != o.dtype() || (o.dtype() != MICA_F32 && o.dtype() != MICA_F64))
    throw NotImplemented();
  VisitType(o.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *x = OnHost(a.data<T>()), *y = OnHost(b.data<T>());
    T* z = OnHost(o.data<T>());
    std::vector<double> row(static_cast<size_t>(o.size(1)));
    for (int64_t i = 0; i < o.size(0); ++i) {
      std::fill(row.begin(), row.end(), 0.0);
      for (int64_t k = 0; k < a.size(1); ++k)
        for (int64_t j = 0; j < o.size(1); ++j)
          row[static_cast<size_t>(j)] += static_cast<double>(x[i * a.stride(0) + k * a.stride(1)]) *
                                         static_cast<double>(y[k * b.stride(0) + j * b.stride(1)]);
      for (int64_t j = 0; j < o.size(1); ++j)
        z[i * o.stride(0) + j * o.stride(1)] = static_cast<T>(row[static_cast<size_t>(j)]);
    }
  });
}

// ----------------------------------------------------------- 6. registration

void Init(const MicaHost*, const MicaRegistrar* r) {
  static NullDevice device;
  mica::plugin::Registrar registrar(r, "null");
  registrar.Device(mica::plugin::DeviceTableOf(device));
  registrar.Kernel<&Add>("add.out");
  registrar.Class<&Pointwise>("pointwise");
  registrar.Class<&Reduction>("reduction");
  registrar.Kernel<&MatrixProduct>("mm.out");
}

}  // namespace

MICA_PLUGIN("null", "Mica examples", "1.0", "", "", "backend:null", Init)
