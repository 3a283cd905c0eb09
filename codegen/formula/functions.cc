// The table: schema as the language sees it, C++ name in mica::formula.
#include "codegen/formula/functions.h"

#include "codegen/text.h"

namespace mica::codegen {
namespace {

struct Row {
  const char* schema;
  const char* cpp;
};
constexpr Row kRows[] = {
    // numbers
    {"min(int a, int b) -> int", "Min"},
    {"min(float a, float b) -> float", "Min"},
    {"max(int a, int b) -> int", "Max"},
    {"max(float a, float b) -> float", "Max"},
    {"abs(int a) -> int", "Abs"},
    {"abs(float a) -> float", "Abs"},
    {"sqrt(float a) -> float", "Sqrt"},
    {"isinf(float a) -> bool", "IsInf"},
    {"log(Scalar a) -> Scalar", "Log"},
    {"conj_physical(Scalar a) -> Scalar", "Conj"},
    {"complex(float real, float imag) -> Scalar", "MakeComplex"},
    {"is_complex_number(Scalar a) -> bool", "IsComplexNumber"},
    {"int(Scalar a) -> int", "ToInt"},
    {"float(Scalar a) -> float", "ToFloat"},
    {"bool(Scalar a) -> bool", "ToBool"},
    // lists
    {"product(int[] list) -> int", "Product"},
    {"total(int[] list) -> int", "Total"},
    {"offsets(int[] list) -> int[]", "Offsets"},
    {"contains(int[] list, int value) -> bool", "Contains"},
    {"find(int[] list, int value) -> int", "Find"},
    {"filled(int count, int value) -> int[]", "Filled"},
    {"repeated(int[] list, int count, int otherwise) -> int[]", "Repeated"},
    {"all_none(Tensor?[] list) -> bool", "AllNone"},
    {"views_of_one(Tensor[] views) -> Tensor[]", "ViewsOfOne"},
    // shapes
    {"wrap_dim(int dim, int ndim) -> int", "WrapDim"},
    {"wrap_dims(int[] dims, int ndim) -> int[]", "WrapDims"},
    {"dims_or_all(int[]? dims, int ndim) -> int[]", "DimsOrAll"},
    {"kept_sizes(int[] sizes, int[] dims) -> int[]", "KeptSizes"},
    {"infer_size(int[] sizes, int numel) -> int[]", "InferSize"},
    {"broadcast_shapes(int[] a, int[] b) -> int[]", "BroadcastShapes"},
    {"broadcast_shapes(int[] a, int[] b, str a_name, str b_name) -> int[]", "BroadcastShapes"},
    {"broadcast_all(Tensor[] tensors) -> int[]", "BroadcastAll"},
    {"can_expand_to(int[] from_, int[] to) -> bool", "CanExpandTo"},
    {"checked_numel(int[] sizes) -> int", "CheckedNumel"},
    // tensors' metadata
    {"can_view(Tensor self, int[] sizes) -> bool", "CanView"},
    {"is_contiguous(Tensor self, MemoryFormat format) -> bool", "IsContiguous"},
    {"format_of(Tensor self) -> MemoryFormat", "FormatOf"},
    {"storage_offset(Tensor self) -> int", "StorageOffset"},
    {"is_cpu(Tensor self) -> bool", "IsCpu"},
    {"is_meta(Tensor self) -> bool", "IsMeta"},
    {"is_conj(Tensor self) -> bool", "IsConj"},
    {"is_neg(Tensor self) -> bool", "IsNeg"},
    {"is_same(Tensor a, Tensor b) -> bool", "IsSame"},
    // dtypes
    {"default_dtype() -> ScalarType", "DefaultDType"},
    {"default_dtype(Scalar a) -> ScalarType", "DefaultDType"},
    {"scalar_type_name(ScalarType dtype) -> str", "TypeName"},
    {"statistics_dtype(ScalarType dtype) -> ScalarType", "StatisticsDType"},
    {"largest(ScalarType dtype) -> float", "Largest"},
    {"epsilon(ScalarType dtype) -> float", "Epsilon"},
    {"tiny(ScalarType dtype) -> float", "Tiny"},
    {"is_integer(ScalarType dtype) -> bool", "IsInteger"},
    {"is_floating(ScalarType dtype) -> bool", "IsFloating"},
    {"is_differentiable(ScalarType dtype) -> bool", "IsDifferentiable"},
    {"fits(Scalar value, ScalarType dtype) -> bool", "Fits"},
    {"can_cast_dtype(ScalarType from_, ScalarType to) -> bool", "CanCast"},
    {"promote_dtypes(ScalarType a, ScalarType b) -> ScalarType", "PromoteDTypes"},
    {"promote_tensors(Tensor a, Tensor b) -> ScalarType", "PromoteTensors"},
};

}  // namespace

const std::vector<std::unique_ptr<Helper>>& FormulaFunctions() {
  static const std::vector<std::unique_ptr<Helper>> functions = [] {
    std::vector<std::unique_ptr<Helper>> made;
    for (const Row& row : kRows) {
      auto helper = std::make_unique<Helper>();
      helper->schema = *schema::Parse(row.schema, {});
      helper->cpp_name = StrCat("::mica::formula::", row.cpp);
      made.push_back(std::move(helper));
    }
    return made;
  }();
  return functions;
}

}  // namespace mica::codegen
