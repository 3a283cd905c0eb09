// One of the files into which the kernels of a layer are divided: what EmitAutograd and
// EmitForward fill entry by entry, each in the file that ShardOf gives its name.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/emit/printer.h"
#include "codegen/model.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {

struct Shard {
  Printer code;
  Printer registration;
  std::set<std::string> headers;  // below mica/, without .h

  // Registers the kernel of one form at a layer, with the derivative's place.
  void Register(const Derivative& d, const Function& f, const char* layer) {
    registration.Print(
        {{"name", CppString(f.full_name)},
         {"layer", layer},
         {"function", f.struct_name},
         {"file", CppString(d.location.file ? d.location.file->name : "")},
         {"line", StrCat(d.location.line)}},
        "scope.AddKernel($name$, \"$layer$\", LayerKernel<&$function$>::Get(), nullptr, {$file$, $line$});");
  }
};

// What the files of one layer have in common.
struct ShardFiles {
  const char* name;            // of each file, before its number
  const char* what;            // in its banner
  const char* header;          // what its kernels are written with, below mica/
  const char* name_space;      // of its functions
  const char* register_shard;  // the function that registers its kernels, before the number
};
void WriteShards(const ShardFiles& files, const std::vector<Shard>& shards, OutputFolder& out);

}  // namespace mica::codegen
