// What is compiled once for each signature: adapters_<i>.cc, and calls_<i>.cc with the calls of
// typed_operator_impl.h.
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

// Files of what a header's templates are instantiated for.
void WriteInstances(const char* name, const char* what, const char* header,
                    const std::vector<Printer>& shards, OutputFolder& out) {
  for (size_t i = 0; i < shards.size(); ++i) {
    Printer p;
    p.Line(StrCat("#include \"dispatcher/calls/", header, "\"\n\nnamespace mica {"));
    p.Line(shards[i].text());
    p.Line("}  // namespace mica");
    out.Write(StrCat(name, "_", i, ".cc"),
              GeneratedBanner(StrCat(what, " of the operators' signatures, part ", i, ".")) + p.text());
  }
}

}  // namespace

void EmitAdapters(const Model& model, OutputFolder& out) {
  std::set<std::string> signatures;
  for (const auto& entry : model.entries)
    for (const auto& f : entry->functions) signatures.merge(SignaturesOf(*f));
  std::vector<Printer> shards(kAdapterShards);
  for (const std::string& s : signatures)
    shards[ShardOf(s, kAdapterShards)].Print({{"signature", s}},
                                             "template const SignatureAdapters kAdapters<$signature$>;");
  WriteInstances("adapters", "Adapters", "adapters.h", shards, out);
}

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
  WriteInstances("calls", "Calls", "typed_operator_impl.h", shards, out);
}

}  // namespace mica::codegen
