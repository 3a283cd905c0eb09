// Tensors and programs made by hand, for tests and benchmarks of the CPU engine
// that run without the rest of Mica.
//
// HostTensor owns its elements and wears the ABI's face; Builder writes bytecode
// one instruction at a time. Not for tests that need the dispatcher.
#ifndef MICA_TEST_UNIT_CPU_ENGINE_FIXTURE_H_
#define MICA_TEST_UNIT_CPU_ENGINE_FIXTURE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/pointwise.h"

namespace mica::cpu::test {

inline MicaDLDataType DlType(int32_t dtype) {
  const uint8_t code = dtype == MICA_BOOL ? 6 : IsComplex(dtype) ? 5 : IsFloat(dtype) ? 2 : 0;
  return {code, static_cast<uint8_t>(DtypeSize(dtype) * 8), 1};
}

inline std::vector<int64_t> Dense(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t dense = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = dense;
    dense *= sizes[d];
  }
  return strides;
}

class HostTensor {
 public:
  HostTensor(int32_t dtype, std::vector<int64_t> sizes) : HostTensor(dtype, sizes, Dense(sizes)) {}
  HostTensor(int32_t dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides)
      : sizes_(std::move(sizes)), strides_(std::move(strides)) {
    int64_t last = 0;
    bool empty = false;
    for (size_t d = 0; d < sizes_.size(); ++d) {
      empty |= sizes_[d] == 0;
      last += (sizes_[d] - 1) * strides_[d];
    }
    // Exactly sized, so that the address sanitizer sees a read past the end.
    const size_t bytes = empty ? 1 : static_cast<size_t>((last + 1) * DtypeSize(dtype));
    memory_ = std::shared_ptr<char>(static_cast<char*>(::operator new (bytes, std::align_val_t{64})),
                                    [](char* p) { ::operator delete (p, std::align_val_t{64}); });
    std::memset(memory_.get(), 0, bytes);
    Face(dtype, memory_.get());
  }
  // A view of `base` at `offset` elements.
  HostTensor(const HostTensor& base, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset)
      : memory_(base.memory_), sizes_(std::move(sizes)), strides_(std::move(strides)) {
    Face(base.dtype(), static_cast<char*>(base.face_.dl.data) + offset * DtypeSize(base.dtype()));
  }
  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;

  MicaTensor* get() { return &face_; }
  int32_t dtype() const { return static_cast<int32_t>(face_.flags >> MICA_TENSOR_DTYPE_SHIFT & 0xff); }
  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t s : sizes_) n *= s;
    return n;
  }
  // The address of logical element i, in row-major order.
  char* At(int64_t i) const {
    int64_t offset = 0;
    for (size_t d = sizes_.size(); d-- > 0;) {
      offset += i % sizes_[d] * strides_[d];
      i /= sizes_[d];
    }
    return static_cast<char*>(face_.dl.data) + offset * DtypeSize(dtype());
  }
  template <class T>
  T* data() const {
    return static_cast<T*>(face_.dl.data);
  }
  template <class T>
  T& At(int64_t i) const {
    return *reinterpret_cast<T*>(At(i));
  }
  const std::vector<int64_t>& sizes() const { return sizes_; }

 private:
  void Face(int32_t dtype, char* data) {
    face_ = {};
    face_.refcount = 1;
    face_.flags = MICA_TENSOR_HAS_DATA | static_cast<uint64_t>(dtype) << MICA_TENSOR_DTYPE_SHIFT;
    int64_t dense = 1;
    bool contiguous = true;
    for (size_t d = sizes_.size(); d-- > 0;) {
      contiguous &= sizes_[d] == 1 || strides_[d] == dense;
      dense *= sizes_[d];
    }
    if (contiguous || dense == 0) face_.flags |= MICA_TENSOR_CONTIGUOUS;
    face_.dl.data = data;
    face_.dl.device = {1, 0};
    face_.dl.ndim = static_cast<int32_t>(sizes_.size());
    face_.dl.dtype = DlType(dtype);
    face_.dl.shape = sizes_.data();
    face_.dl.strides = strides_.data();
  }

  std::shared_ptr<char> memory_;
  std::vector<int64_t> sizes_, strides_;
  MicaTensor face_;
};

// Argument numbers are: the inputs, then the scalars, then one for dims and one
// for keepdim.
class Builder {
 public:
  int Op(int opcode, int a = 0, int b = 0, int c = 0, int aux = 0) {
    return Emit(&main_, opcode, a, b, c, aux);
  }
  int Emit(std::vector<MicaInstruction>* code, int opcode, int a = 0, int b = 0, int c = 0, int aux = 0) {
    const bool none = opcode == MICA_OP_STORE || opcode == MICA_OP_STORE_STATE;
    const int dst = none ? 255 : registers_++;
    code->push_back({static_cast<uint16_t>(opcode), static_cast<uint8_t>(dst), static_cast<uint8_t>(a),
                     static_cast<uint8_t>(b), static_cast<uint8_t>(c), static_cast<int16_t>(aux)});
    return dst;
  }
  int Load(int i) {
    num_inputs_ = std::max(num_inputs_, i + 1);
    return Op(MICA_OP_LOAD, 0, 0, 0, i);
  }
  int Scalar(int i) {
    num_scalars_ = std::max(num_scalars_, i + 1);
    return Op(MICA_OP_SCALAR, 0, 0, 0, i);
  }
  int Const(double value) {
    constants_.push_back({value, 0, 0, 0});
    return Op(MICA_OP_CONST, 0, 0, 0, static_cast<int>(constants_.size()) - 1);
  }
  int ConstInt(int64_t value) {
    constants_.push_back({static_cast<double>(value), value, 1, 0});
    return Op(MICA_OP_CONST, 0, 0, 0, static_cast<int>(constants_.size()) - 1);
  }
  void Store(int a, int i = 0) {
    num_outputs_ = std::max(num_outputs_, i + 1);
    Op(MICA_OP_STORE, a, 0, 0, i);
  }
  // A program of its own, which lives on: plans are kept by a program's address.
  const MicaProgram* Pointwise() {
    struct Storage {
      std::vector<MicaInstruction> main;
      std::vector<MicaConstant> constants;
      std::vector<int32_t> args;
      MicaProgram program = {};
    };
    static auto& kept = *new std::deque<Storage>;
    Storage& s = kept.emplace_back(Storage{main_, constants_, {}, {}});
    for (int i = 0; i < num_inputs_ + num_scalars_; ++i) s.args.push_back(i);
    s.program.struct_size = sizeof(MicaProgram);
    s.program.class_name = "pointwise";
    s.program.source = s.program.hint = "";
    s.program.num_inputs = num_inputs_;
    s.program.num_scalars = num_scalars_;
    s.program.num_outputs = num_outputs_;
    s.program.num_registers = registers_;
    s.program.num_constants = static_cast<int32_t>(s.constants.size());
    s.program.input_args = s.args.data();
    s.program.scalar_args = s.args.data() + num_inputs_;
    s.program.constants = s.constants.data();
    s.program.main = {s.main.data(), static_cast<int64_t>(s.main.size())};
    s.program.dims_arg = s.program.keepdim_arg = -1;
    return &s.program;
  }

 private:
  std::vector<MicaInstruction> main_;
  std::vector<MicaConstant> constants_;
  int registers_ = 0, num_inputs_ = 0, num_scalars_ = 0, num_outputs_ = 0;
};

// Bytecode of a reduction, scan or row stage. Argument 0 is the tensor, argument
// 1 the dims, argument 2 another tensor.
class StageBuilder {
 public:
  using Code = std::vector<MicaInstruction>;
  Code init, main, combine, finish, map;

  int Op(Code* code, int opcode, int a = 0, int b = 0, int c = 0, int aux = 0) {
    const bool none = opcode == MICA_OP_STORE || opcode == MICA_OP_STORE_STATE;
    const int dst = none ? 255 : registers_++;
    code->push_back({static_cast<uint16_t>(opcode), static_cast<uint8_t>(dst), static_cast<uint8_t>(a),
                     static_cast<uint8_t>(b), static_cast<uint8_t>(c), static_cast<int16_t>(aux)});
    return dst;
  }
  int Const(Code* code, double value) {
    constants_.push_back({value, std::isinf(value) ? 0 : static_cast<int64_t>(value), 0, 0});
    return Op(code, MICA_OP_CONST, 0, 0, 0, static_cast<int>(constants_.size()) - 1);
  }
  int State(Code* code, int s) { return Op(code, MICA_OP_STATE, 0, 0, 0, s); }
  int Element(Code* code) { return Op(code, MICA_OP_ELEMENT); }
  void StoreState(Code* code, int value, int s) { Op(code, MICA_OP_STORE_STATE, value, 0, 0, s); }
  void Store(Code* code, int value, int output = 0) { Op(code, MICA_OP_STORE, value, 0, 0, output); }

  // One state that starts at `start` and takes the elements in by `opcode`.
  void Simple(double start, int opcode, int state = 0, int right = 1) {
    StoreState(&init, Const(&init, start), state);
    const int step = State(&main, state);
    StoreState(&main, Op(&main, opcode, step, Element(&main)), state);
    const int left = State(&combine, state);
    StoreState(&combine, Op(&combine, opcode, left, State(&combine, right)), state);
  }
  MicaProgram* Program(const char* class_name, int states, int inputs = 1, const char* hint = "") {
    struct Storage {
      Code init, main, combine, finish, map;
      std::vector<MicaConstant> constants;
      MicaProgram program = {};
    };
    static auto& kept = *new std::deque<Storage>;
    Storage& s = kept.emplace_back(Storage{init, main, combine, finish, map, constants_, {}});
    MicaProgram& program = s.program;
    program.struct_size = sizeof(MicaProgram);
    program.class_name = class_name;
    program.source = "";
    program.hint = hint;
    program.num_inputs = inputs;
    program.num_outputs = 1;
    program.num_states = states;
    program.num_registers = registers_;
    program.num_constants = static_cast<int32_t>(s.constants.size());
    static constexpr int32_t kInputs[] = {0, 2};
    program.input_args = kInputs;
    program.constants = s.constants.data();
    const auto code = [](const Code& c) { return MicaCode{c.data(), static_cast<int64_t>(c.size())}; };
    program.init = code(s.init);
    program.main = code(s.main);
    program.combine = code(s.combine);
    program.finish = code(s.finish);
    program.map = code(s.map);
    program.dims_arg = 1;
    program.keepdim_arg = -1;
    return &program;
  }

 private:
  std::vector<MicaConstant> constants_;
  int registers_ = 0;
};

// Borrows `dims`.
MicaValue Dims(std::vector<int64_t>&&) = delete;
inline MicaValue Dims(const std::vector<int64_t>& dims) {
  MicaValue value = {};
  value.tag = MICA_VALUE_INTS;
  value.u.ints = {dims.data(), static_cast<int64_t>(dims.size())};
  return value;
}

inline MicaValue Value(HostTensor& tensor) {
  MicaValue value = {};
  value.tag = MICA_VALUE_TENSOR;
  value.u.tensor = tensor.get();
  return value;
}
inline MicaValue Value(double number) {
  MicaValue value = {};
  value.tag = MICA_VALUE_SCALAR;
  value.u.scalar.tag = MICA_SCALAR_FLOAT;
  value.u.scalar.u.f = number;
  return value;
}
inline MicaValue ValueOfInt(int64_t number) {
  MicaValue value = {};
  value.tag = MICA_VALUE_SCALAR;
  value.u.scalar.tag = MICA_SCALAR_INT;
  value.u.scalar.u.i = number;
  return value;
}

inline MicaCall MakeCall(const MicaProgram* program, int32_t compute_dtype, int32_t threads = 1) {
  MicaCall call = {};
  call.struct_size = sizeof(MicaCall);
  call.compute_dtype = compute_dtype;
  call.num_threads = threads;
  call.program = program;
  call.name = "mica::test";
  return call;
}

inline void Run(const MicaProgram* program, int32_t compute_dtype, std::vector<MicaValue> args,
                std::vector<HostTensor*> outputs, int32_t threads = 1) {
  const MicaCall call = MakeCall(program, compute_dtype, threads);
  std::vector<MicaTensor*> faces;
  for (HostTensor* output : outputs) faces.push_back(output->get());
  RunPointwise(&call, args.data(), static_cast<int64_t>(args.size()), faces.data(),
               static_cast<int64_t>(faces.size()));
}

}  // namespace mica::cpu::test

#endif  // MICA_TEST_UNIT_CPU_ENGINE_FIXTURE_H_
