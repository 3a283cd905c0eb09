// OperatorSpec: what mica-gen knows of one operator, as static data.
//
// One spec stands for one form (functional, in-place or out) of one overload.
// The generated shards define them; the dispatcher reads them to parse the
// schema, to run the meta function, and to resolve slots. Nothing here is
// written after start-up.
#pragma once

#include <cstdint>
#include <string_view>

#include <mica/abi.h>
#include <mica/program.h>
#include "absl/container/inlined_vector.h"
#include "schema/operator_class.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/key_set.h"
#include "tensor/span.h"

struct MicaOperatorRecord;  // <mica/operators.h>

namespace mica {

// One output as the meta function decides it. Empty strides say contiguous.
struct OutputSpec {
  Dims sizes;
  Dims strides;
  DType dtype = DType::kF32;
  Device device;
};

struct MetaResult {
  absl::InlinedVector<OutputSpec, 1> outputs;
  // The dtype a kernel computes in (after promotion); absent for operators
  // where it has no meaning.
  int32_t compute_dtype = MICA_DTYPE_NONE;
};

struct OperatorSpec;
struct SignatureAdapters;  // dispatcher/calls/adapters.h

// Fills `result` from borrowed arguments of the functional form; throws on bad
// shapes, dtypes and indices.
using MetaFunction = void (*)(const OperatorSpec& spec, const MicaValue* args, MetaResult& result);

// A view as (sizes, strides, byte offset from the start of the storage).
struct ViewSpec {
  Dims sizes;
  Dims strides;
  int64_t byte_offset = 0;
  int8_t dtype = -1;  // another dtype over the same memory, or -1
  KeySet flips{};     // layers of keys::kLazy: what the memory holds is read the other way
};
using ViewSpecs = absl::InlinedVector<ViewSpec, 1>;
using ViewFunction = void (*)(const MicaValue* args, ViewSpecs& result);

// A schema that an operator had before: arguments with defaults were added since.
struct SchemaGeneration {
  const char* schema;                 // as OperatorSpec::schema
  const SignatureAdapters* adapters;  // of its signature; NULL: kernels are called boxed alone
};

inline constexpr uint32_t kStructured = 1;  // out form is the kernel; the host sizes outputs
inline constexpr uint32_t kNotDifferentiable = 2;
inline constexpr uint32_t kReturnsTensorList = 4;
inline constexpr uint32_t kTakesObjects = 8;  // an argument is an object, whose type each call is held to

// What the entry says to one layer: {"autocast", "lower"}. The layer knows what the words mean.
struct OperatorPolicy {
  const char* name;
  const char* text;
};

struct OperatorSpec {
  const char* name;    // "mica::add.Tensor"
  const char* schema;  // "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
  const char* doc;
  const char* file;  // of the YAML entry
  int32_t line;
  OpClass op_class;
  OpForm form;
  DTypeRule dtype_rule;
  int8_t fixed_dtype;  // kFixed
  int16_t dtype_arg;   // kArgument; -1 if none
  int16_t num_args;    // of this form
  int16_t num_functional_args;
  int16_t num_outputs;  // Tensor outputs of the functional form
  uint16_t supports;    // bit k: DTypeKind k is accepted as compute dtype
  uint32_t flags;
  uint64_t written_args;           // bit i: argument i is written, (a!)
  const MicaProgram* programs[5];  // by DTypeKind; NULL where the entry gives none
  int16_t dims_arg;                // of reduction, scan, row; -1 if none
  int16_t keepdim_arg;             // -1 if none
  int8_t none_dims;                // reduction: 1 None (or empty) means all, 0 it is an error
  MetaFunction meta;               // NULL for composites and in-place-only operators
  ViewFunction view;               // class view
  // Layer convention (typed, see adapters.h) and leaf convention, or NULL.
  MicaFunction composite;
  MicaFunction portable;
  // What the functional form of a structured operator is made of, in layer convention, or NULL: for devices
  // that have no kernel for it. Unlike a composite, it is one operator for layers.
  MicaFunction parts;
  const SignatureAdapters* adapters;
  // The operator of the other forms of the same group, by name, or NULL.
  const char* functional_name;
  const char* out_name;
  // Of this form, earlier than `schema`, whose kernels still serve it.
  const SchemaGeneration* generations;
  int32_t num_generations;
  // The same for all forms of an entry.
  const OperatorPolicy* policies;
  int32_t num_policies;
  // Of a plugin's operator, the record whose shape function `meta` asks, before every kernel on every device
  // (registration/vendor_shapes.h); else NULL.
  const MicaOperatorRecord* shape;
};

// The policy of that name, or NULL.
const char* PolicyOf(const OperatorSpec& spec, std::string_view name);

// The generic interpreter of a class in kernels/portable, or NULL.
void SetPortableClass(OpClass c, MicaClassFunction f);
// The meta function that all operators of a class share, or NULL: for operators
// that a plugin defines by their program.
void SetClassMeta(OpClass c, MetaFunction f);
MetaFunction ClassMeta(OpClass c);
MicaClassFunction PortableClass(OpClass c);

}  // namespace mica
