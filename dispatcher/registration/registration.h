// Registration: what a plugin (or a Python library) adds to the dispatcher, in
// any order, and takes back as a whole.
//
// Everything goes through a Scope. Nothing is visible to calls before Commit();
// a Scope that is dropped without it leaves the process as it was. Disable()
// takes all of a scope's kernels out of the tables, Enable() puts them back.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "dispatcher/tables/keys.h"
#include "dispatcher/tables/operator.h"

namespace mica {

namespace frames {
struct Kind;
}

// One thing that a scope put into the dispatcher.
struct Registration {
  std::string kind;       // "device", "layer", "frame kind", "operator", "kernel", "class", ...
  std::string name;       // of the operator, class or device
  std::string key;        // the backend or layer that it stands at, or ""
  std::string overrides;  // whose kernel it stands above: a plugin's name, or ""
  bool waits = false;     // a kernel for an operator that does not exist (yet)
};

struct SourceLocation {
  const char* file = "";
  int line = 0;
};

// What a layer or frame kind does with one operator.
struct LayerChoice {
  enum class What : uint8_t {
    kNothing,  // as if the layer had no rule: decomposition, fallback, or the next layer
    kKernel,
    kPass,  // the call passes the layer
  };
  What what = What::kNothing;
  BoxedKernel kernel{};
};
// Says it, from what the operator's entry says. Asked when a table is made, with the dispatcher's lock held:
// it calls nothing that registers or looks operators up, and throws nothing.
using LayerRule = LayerChoice (*)(void* context, const Operator& op);

class Scope {
 public:
  // `name` is the plugin's, for explain and messages; `path` its file or "".
  static std::shared_ptr<Scope> Create(std::string name, std::string path);
  // One that Commit puts in the place of `replaced`, in one step: calls in other threads meet the one or the
  // other. It may bring the same layers, frame kinds, extensions and operators; an operator of the same
  // schema, defined without data, stays the same object. Where Commit fails, the other stays.
  static std::shared_ptr<Scope> CreateInPlaceOf(std::shared_ptr<Scope> replaced, std::string name,
                                                std::string path);
  ~Scope();

  const std::string& name() const;
  // Of the scopes that were committed, in this order. Where two have a kernel for the same place, the younger
  // one's serves, also after either was disabled and enabled.
  uint64_t rank() const;
  const std::string& path() const;

  // A layer's kernel for one operator, in layer convention; `key` is a layer's
  // or a backend's name. The operator need not exist yet.
  void AddKernel(std::string_view op, std::string_view key, MicaFunction fn, void* context,
                 SourceLocation where);
  // The same, left out where the operator's schema has another hash.
  void AddKernel(std::string_view op, std::string_view key, MicaFunction fn, void* context,
                 SourceLocation where, uint64_t schema_hash);
  // A boxed kernel in the same place.
  void AddBoxedKernel(std::string_view op, std::string_view key, BoxedKernel kernel, SourceLocation where);
  // A backend's leaf kernel (unboxed, boxed, or both).
  absl::Status AddLeaf(const MicaKernelRecord& record);
  absl::Status AddClass(const MicaClassRecord& record);
  // For all operators without a kernel of their own at `key`: what the rule chooses for each; before the
  // decomposition.
  void AddRule(std::string_view key, LayerRule rule, void* context);
  // The same after it, one kernel for all.
  void AddBoxedFallback(std::string_view key, BoxedKernel kernel, SourceLocation where);
  // The operators that this scope has a kernel for at `key`, "mica::mul.Tensor".
  std::vector<std::string> OperatorsAt(std::string_view key) const;
  // This layer has nothing to do for the operator: the call passes it.
  void AddFallthrough(std::string_view op, std::string_view key);
  // This scope brings the layer, or the frame kind, of that name; its bit or number. One that
  // is given up gives it back; one that is disabled keeps it, for tensors may carry it. One of
  // Mica's own layers has its place: whoever brings it names no neighbours.
  absl::StatusOr<int> AddLayer(std::string_view name, const LayerPlace& place);
  absl::StatusOr<int> AddKind(const frames::Kind& kind);
  // The same of one of Mica's own layers, which cannot do without: throws.
  int BringKind(const frames::Kind& kind);
  // Of one of Mica's own plugins, whose extensions have names that begin with "mica.".
  void SetIsMicas();
  // Offers a table under a name (extensions.h).
  absl::Status AddExtension(std::string_view name, const MicaTable* table);
  // Composites without a kernel at `layer` run their decomposition there.
  void DecomposeAt(std::string_view layer);
  // This scope provides the device (backend) of that name.
  void AddBackend(std::string_view name);
  const std::vector<std::string>& Backends() const;
  // The same with a device table, which is copied and published by Commit.
  absl::Status AddDevice(const char* name, const MicaDeviceTable* table);
  // A new operator; boxed calls only. Errors when it exists with another schema.
  absl::Status Define(std::string_view schema_with_namespace, SourceLocation where);
  // What the last Define made, to be completed before Commit.
  OperatorSpec& LastDefined();

  // A kernel built for another schema than its operator's is left out, and said;
  // anything else that is wrong leaves out the whole scope.
  absl::Status Commit();
  // Drops everything collected; nothing more is taken.
  void Abandon();
  bool open() const;  // neither committed nor abandoned
  // The backends and layers of others that it registers at.
  std::vector<std::string> BorrowedKeys() const;
  // What was left out, a sentence each.
  std::vector<std::string> Notes() const;
  std::vector<Registration> Registrations() const;
  void Disable();
  // In the place of `replaced`, if given and enabled, in one step as above.
  absl::Status Enable(Scope* replaced = nullptr);
  bool enabled() const;

 private:
  friend class Dispatcher;
  Scope() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mica
