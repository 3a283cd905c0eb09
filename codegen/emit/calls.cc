// calls_<i>.cc: the calls of typed_operator_impl.h, compiled once for each signature.
//
// Redispatch() is there for the signatures of operators with a gradient, whose kernels in
// Autograd go on below it. Who wants another includes typed_operator_impl.h.
#include <map>
#include <set>

#include "codegen/emit/emitters.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

std::string Types(const Function& f) {
  std::string types;
  for (const CppArgument& a : f.arguments) StrAppend(&types, ", ", a.type);
  return types;
}

}  // namespace

void EmitCalls(const Model& model, OutputFolder& out) {
  std::map<std::string, const Function*> signatures;
  std::set<std::string> differentiable;
  for (const auto& entry : model.entries)
    for (const auto& f : entry->functions) signatures[f->signature] = f.get();
  for (const auto& d : model.derivatives)
    for (const auto& f : d->entry->functions) differentiable.insert(f->signature);
  std::vector<Printer> shards(kCallShards);
  for (const auto& [signature, f] : signatures) {
    Printer& p = shards[ShardOf(signature, kCallShards)];
    p.Print({{"ret", f->return_type}, {"signature", signature}, {"types", Types(*f)}},
            "template $ret$ TypedOperator<$signature$>::Call(const Operator&$types$);");
    if (!differentiable.count(signature)) continue;
    p.Print({{"ret", f->return_type}, {"signature", signature}, {"types", Types(*f)}},
            "template $ret$ TypedOperator<$signature$>::Redispatch(const Operator&, KeySet$types$);");
  }
  for (int i = 0; i < kCallShards; ++i) {
    Printer p;
    p.Line("#include \"dispatcher/calls/typed_operator_impl.h\"\n\nnamespace mica {");
    p.Line(shards[i].text());
    p.Line("}  // namespace mica");
    out.Write(StrCat("calls_", i, ".cc"),
              GeneratedBanner(StrCat("Calls of the operators' signatures, part ", i, ".")) + p.text());
  }
}

}  // namespace mica::codegen
