// Results of boxed kernels from elsewhere, held to the schema.
#include "dispatcher/calls/boxed_results.h"

#include "absl/strings/str_cat.h"
#include "schema/object.h"
#include "schema/schema.h"
#include "schema/value.h"
#include "tensor/error.h"

namespace mica {
namespace {

bool IsFilledList(const MicaTensorSpan& list) { return list.size == 0 || (list.size > 0 && list.data); }

// Whether the value is what a result of the type holds. A Tensor may be undefined, as a gradient is that
// nobody asked for.
bool Fits(const MicaValue& v, const schema::Type& type) {
  if (v.tag == kNoResult) return false;
  if (v.tag == MICA_VALUE_NONE) return type.is_optional() || type.is_tensor();
  const int32_t tag = TagOfType(type);
  if (tag == MICA_VALUE_TENSORS) return v.tag == tag && IsFilledList(v.u.tensors);
  if (tag == MICA_VALUE_SCALAR) return v.tag == tag || v.tag == MICA_VALUE_COMPLEX;
  if (tag == MICA_VALUE_OBJECT) return v.tag == tag && ObjectMismatch(v.u.object, type.object_name()).empty();
  return tag == MICA_VALUE_NONE || v.tag == tag;
}

void Release(MicaValue& v) {
  if (v.tag == MICA_VALUE_TENSOR) TakeTensor(v);
  if (v.tag == MICA_VALUE_TENSORS && IsFilledList(v.u.tensors)) TakeTensorList(v.u.tensors);
  if (v.tag == MICA_VALUE_OBJECT) ReleaseObject(v.u.object);
  v = MicaValue{};
}

bool Gives(const Operator& op, const schema::FunctionSchema& schema) {
  const OperatorSpec& spec = op.spec();
  if (spec.form != OpForm::kFunctional || schema.returns.empty()) return false;
  if (!spec.written_args && spec.num_args <= 64) return true;  // nearly all of them
  return !schema.is_mutable() || schema.is_view() || schema.ReturnsAliasOfArgument(0) < 0;
}

}  // namespace

void RefuseBoxedCall(const Operator& op, int64_t num_args, int64_t num_results) {
  const OperatorSpec& spec = op.spec();
  MICA_CHECK_TYPE(num_args == spec.num_args, "Operator ", spec.name, " takes (", spec.num_args,
                  ") boxed arguments, defaults included, and a plugin passes (", num_args, ").");
  MICA_THROW(kType, "Operator ", spec.name, " gives (", op.schema().returns.size(),
             ") results, and a plugin has room for (", num_results, ").");
}

int32_t TagOfType(const schema::Type& type) {
  using schema::TypeKind;
  const schema::Type& t = type.unwrapped();
  const bool list = t.is(TypeKind::kList);
  switch ((list ? t.elements[0].unwrapped() : t).kind) {
    case TypeKind::kTensor:
      return list ? MICA_VALUE_TENSORS : MICA_VALUE_TENSOR;
    case TypeKind::kInt:
    case TypeKind::kSymInt:
      return list ? MICA_VALUE_INTS : MICA_VALUE_INT;
    case TypeKind::kFloat:
    case TypeKind::kSymFloat:
      return list ? MICA_VALUE_FLOATS : MICA_VALUE_FLOAT;
    case TypeKind::kBool:
      return list ? MICA_VALUE_BOOLS : MICA_VALUE_BOOL;
    case TypeKind::kScalar:
      return list ? MICA_VALUE_SCALARS : MICA_VALUE_SCALAR;
    case TypeKind::kStr:
      return MICA_VALUE_STR;
    case TypeKind::kDevice:
      return MICA_VALUE_DEVICE;
    case TypeKind::kScalarType:
      return MICA_VALUE_DTYPE;
    case TypeKind::kLayout:
      return MICA_VALUE_LAYOUT;
    case TypeKind::kMemoryFormat:
      return MICA_VALUE_MEMORY_FORMAT;
    case TypeKind::kGenerator:
      return MICA_VALUE_GENERATOR;
    case TypeKind::kClass:
      return list ? MICA_VALUE_NONE : MICA_VALUE_OBJECT;
    default:
      return MICA_VALUE_NONE;
  }
}

bool GivesResults(const Operator& op) { return Gives(op, op.schema()); }

void ReleaseResults(const Operator& op, MicaValue* results) {
  if (!GivesResults(op)) return;
  for (size_t i = 0; i < op.schema().returns.size(); ++i) Release(results[i]);
}

bool ExpectResults(const Operator& op, MicaValue* results) {
  const schema::FunctionSchema& schema = op.schema();
  if (!Gives(op, schema)) return false;
  for (size_t i = 0; i < schema.returns.size(); ++i) results[i] = {kNoResult, 0, {}};
  return true;
}

namespace {
std::string Given(const MicaValue& v, const schema::Type& type) {
  if (v.tag == kNoResult) return "nothing";
  if (v.tag == MICA_VALUE_OBJECT && TagOfType(type) == MICA_VALUE_OBJECT)
    return ObjectMismatch(v.u.object, type.object_name());
  return absl::StrCat("a value of the tag (", v.tag, ")");
}
}  // namespace

void CheckResults(const Operator& op, std::string_view whose, MicaValue* results) {
  const std::vector<schema::Return>& returns = op.schema().returns;
  for (size_t i = 0; i < returns.size(); ++i) {
    if (Fits(results[i], returns[i].type)) continue;
    const std::string given = Given(results[i], returns[i].type);
    ReleaseResults(op, results);
    MICA_THROW(kRuntime, "The kernel of ", op.spec().name, " at (", std::string(whose), ") returned ", given,
               " as result (", i, "), which its schema says is a value of the type ",
               returns[i].type.ToString(false), ": ", op.spec().schema, ".");
  }
}

}  // namespace mica
