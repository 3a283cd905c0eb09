// mica-gen: turns native_functions.yaml and derivatives.yaml into C++, stubs and
// reference pages.
//
//   mica-gen --native F [--derivatives F] --out DIR [--emit ops,registry,...]
//            [--stats] [--check]
//   mica-gen --base native_functions.yaml --native MINE [--derivatives MINE] --out DIR
//
// The second form makes the operators of a plugin, built outside of this repository.
// Prints nothing when all is well. Exits with 1 and one message a mistake when a
// file is wrong; with --check, with 2 when the output folder is not up to date.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit/emitters.h"
#include "codegen/stats.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

struct Emitter {
  std::string_view name;
  void (*run)(const Model&, OutputFolder&);
  bool by_default = true;
};
constexpr Emitter kEmitters[] = {
    {"ops", &EmitOps},
    {"registry", &EmitRegistry},
    {"adapters", &EmitAdapters},
    {"calls", &EmitCalls},
    {"declarations", &EmitDeclarations},
    {"composites", &EmitComposites},
    {"api", &EmitApi},
    {"autograd", &EmitAutograd},
    {"forward", &EmitForward},
    {"python", &EmitPython},
    {"stubs", &EmitStubs},
    {"docs", &EmitDocs},
    {"hot", &EmitHot, false},
    {"plugin", &EmitPlugin, false},
};

struct Options {
  std::string native, derivatives, base, out;
  std::vector<std::string> emit;  // empty: all
  bool stats = false;
  bool check = false;
};

constexpr const char* kUsage =
    "usage: mica-gen --native FILE [--derivatives FILE] --out DIR [--emit LIST] [--stats] [--check]\n"
    "  --emit LIST  comma-separated: ops, registry, adapters, calls, declarations, composites, api, "
    "autograd,\n"
    "               forward, python, stubs, docs (all of these if absent), hot, plugin\n"
    "  --base FILE  Mica's operators, which those of --native call; emits `plugin` alone\n"
    "  --stats      count how the operators are made, and write nothing\n"
    "  --check      write nothing; exit with 2 if the output folder is not up to date\n";

// False, with a message printed, when the command line is wrong.
bool ReadOptions(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    std::string_view flag = argv[i];
    const size_t equals = flag.find('=');
    const bool joined = flag.starts_with("--") && equals != std::string_view::npos;  // --emit=hot
    if (joined) flag = flag.substr(0, equals);
    std::string* target = flag == "--native"        ? &options->native
                          : flag == "--derivatives" ? &options->derivatives
                          : flag == "--base"        ? &options->base
                          : flag == "--out"         ? &options->out
                                                    : nullptr;
    std::string list;
    if (flag == "--emit") target = &list;
    if (flag == "--stats") {
      options->stats = true;
      continue;
    }
    if (flag == "--check") {
      options->check = true;
      continue;
    }
    if (!target || (!joined && i + 1 >= argc)) {
      std::fprintf(stderr, "Option (%s) %s.\n%s", argv[i],
                   target ? "has no value; expected one after it" : "is unknown", kUsage);
      return false;
    }
    *target = joined ? argv[i] + equals + 1 : argv[++i];
    if (flag != "--emit" || list == "all") continue;
    for (const std::string_view name : Split(list, ',')) {
      bool known = false;
      for (const Emitter& emitter : kEmitters) known = known || emitter.name == name;
      if (!known) {
        std::fprintf(stderr, "Output (%s) of --emit is unknown.\n%s", std::string(name).c_str(), kUsage);
        return false;
      }
      options->emit.emplace_back(name);
    }
  }
  if (!options->native.empty() && (options->stats || !options->out.empty())) return true;
  std::fprintf(stderr, "Option (%s) is missing.\n%s", options->native.empty() ? "--native" : "--out", kUsage);
  return false;
}

int Run(const Options& options) {
  const auto native = SourceFile::Read(options.native);
  const auto derivatives = options.derivatives.empty() ? nullptr : SourceFile::Read(options.derivatives);
  const auto base = options.base.empty() ? nullptr : SourceFile::Read(options.base);
  const std::unique_ptr<const Model> model = LoadModel(native, derivatives, base);
  if (options.stats) {
    std::fputs(StatsText(*model).c_str(), stdout);
    return 0;
  }
  OutputFolder out(options.out, options.check);
  for (const Emitter& emitter : kEmitters) {
    bool wanted = options.emit.empty() && (base ? emitter.name == "plugin" : emitter.by_default);
    for (const std::string& name : options.emit) wanted = wanted || name == emitter.name;
    if (wanted) emitter.run(*model, out);
  }
  if (options.emit.empty()) out.Write("headers.txt", out.Listing(".h"));  // for the build: what ninja tracks
  if (!options.check || out.num_written() == 0) return 0;
  std::fprintf(stderr,
               "Output folder (%s) is not up to date: %d of %d files differ; expected none. Run mica-gen "
               "without --check.\n",
               options.out.c_str(), out.num_written(), out.num_files());
  return 2;
}

}  // namespace
}  // namespace mica::codegen

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(mica::codegen::kUsage, stdout);
    return 0;
  }
  mica::codegen::Options options;
  if (!mica::codegen::ReadOptions(argc, argv, &options)) return 1;
  try {
    return mica::codegen::Run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
