// What kinds of operators there are: `class:` and `dtype:` of an entry, and its forms.
//
// mica-gen reads these words in YAML and writes the enumerators; the dispatcher and the
// kernels act on them. Plugins give classes by name and dtype rules by the ABI's numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <mica/operators.h>

namespace mica {

enum class OpClass : uint8_t {
  kCustom,
  kPointwise,
  kReduction,
  kScan,
  kRow,
  kWindow,
  kGather,
  kScatter,
  kRandom,
  kView,
  kFactory,
  kContraction,
  kCore,
  kFold,
  kDecompose,
};
inline constexpr int kOpClassCount = 15;

enum class OpForm : uint8_t { kFunctional, kInplace, kOut };

enum class DTypeRule : uint8_t {
  kPromote = MICA_RULE_PROMOTE,        // result of type promotion over tensors and scalars
  kFloat = MICA_RULE_FLOAT,            // the same, integers and bool to the default float dtype
  kBool = MICA_RULE_BOOL,              // computed in the promoted dtype, stored as bool
  kSame = MICA_RULE_SAME,              // dtype of the first tensor
  kIndex = MICA_RULE_INDEX,            // int64
  kReal = MICA_RULE_REAL,              // computed in the promoted dtype, complex stored as its real dtype
  kComplex = MICA_RULE_COMPLEX,        // the complex dtype over the promoted float
  kAccumulate = MICA_RULE_ACCUMULATE,  // bool and integers to int64, others unchanged
  kFixed = MICA_RULE_FIXED,            // the dtype that the entry names
  kArgument = MICA_RULE_ARGUMENT,      // of the dtype argument, else kSame or the default dtype
};
inline constexpr int kDTypeRuleCount = 10;

// As YAML spells them: "pointwise", "out", "accumulate".
const char* Name(OpClass c);
const char* Name(OpForm f);
const char* Name(DTypeRule r);

std::optional<OpClass> OpClassNamed(std::string_view name);

}  // namespace mica
