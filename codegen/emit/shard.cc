// The text around what the emitters of a layer's kernels filled into a shard: includes,
// the namespace, and the function that registers its kernels.
#include "codegen/emit/shard.h"

namespace mica::codegen {

void WriteShards(const ShardFiles& files, const std::vector<Shard>& shards, OutputFolder& out) {
  for (size_t i = 0; i < shards.size(); ++i) {
    const Shard& shard = shards[i];
    Printer p;
    p.Print({{"header", files.header}},
            "#include <array>\n#include <cmath>\n#include <tuple>\n\n#include \"$header$\"");
    for (const std::string& header : shard.headers)
      p.Print({{"header", header}}, "#include \"mica/$header$.h\"");
    p.Line("#include \"kernels/formula.h\"\n#include \"tensor/scalar_math.h\"\n");
    p.Print({{"space", files.name_space}}, "namespace $space$ {\nnamespace {\n");
    p.Line(shard.code.text());
    p.Print({{"function", StrCat(files.register_shard, i)}},
            "}  // namespace\n\nvoid $function$(Scope& scope);\nvoid $function$([[maybe_unused]] Scope& "
            "scope) {");
    p.Indent();
    p.Line(shard.registration.text());
    p.Outdent();
    p.Print({{"space", files.name_space}}, "}\n\n}  // namespace $space$");
    out.Write(StrCat(files.name, "_", i, ".cc"),
              GeneratedBanner(StrCat(files.what, ", part ", i, ".")) + p.text());
  }
}

}  // namespace mica::codegen
