// batched.cc: the operators whose batch rule is written by hand, or who have none and say so.
//
// `batch_rule: Diagonal` names mica::batched::Diagonal of keys/batched; `refused` an operator
// whose result's shape depends on the values; `kernel` one with a kernel of its own at the
// layer. All other operators have the rule of their class, or decompose.
#include "codegen/emit/emitters.h"
#include "codegen/names.h"
#include "codegen/stats.h"
#include "codegen/text.h"

namespace mica::codegen {

void EmitBatched(const Model& model, OutputFolder& out) {
  Printer p;
  p.Line("#include \"keys/batched/batched.h\"\n");
  p.Line("namespace mica::batched {\n\nstd::vector<NamedRule> NamedRules() {\n  return {");
  for (const auto& entry : model.entries) {
    const BatchWay way = BatchWayOf(*entry);
    if (way != BatchWay::kHand && way != BatchWay::kRefused) continue;
    const bool function = way == BatchWay::kHand && entry->batch_rule != kBatchKernel;
    p.Print({{"name", CppString(entry->primary().full_name)},
             {"rule", function ? "&" + entry->batch_rule : "nullptr"},
             {"source", way == BatchWay::kHand ? "kByHand" : "kRefused"}},
            "      {$name$, {$rule$, Source::$source$}},");
  }
  p.Line("  };\n}\n\n}  // namespace mica::batched");
  out.Write("batched.cc", GeneratedBanner("Which operators have a batch rule by hand.") + p.text());
}

}  // namespace mica::codegen
