// What a Scope holds. Internal to registration.cc and registrations.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatcher/registration/extensions.h"
#include "dispatcher/registration/registration.h"
#include "dispatcher/tables/dispatcher.h"

namespace mica {

struct NamedKernel {
  std::string op;
  std::string key;
  KernelEntry entry;
};
struct NamedClass {
  std::string backend;
  int op_class;
  ClassEntry entry;
};
struct NamedRule {
  std::string key;
  RuleEntry entry;
};
struct NamedFallback {
  std::string key;
  FallbackEntry entry;
};
// A device whose table is copied, and published by Commit and Enable.
struct NamedDevice {
  std::string name;
  const MicaDeviceTable* kept;
};
// A layer's bit or a frame kind's number that the scope brings.
struct NamedPlace {
  std::string name;
  int number;
  bool fresh;                          // nobody had it before
  const frames::Kind* kind = nullptr;  // of a frame kind; never freed, as wrappers may outlive it
};
// A run-time operator and the text that its spec points to.
struct Definition {
  std::string name, schema, file;
  std::string words;       // schema and place: what says that it is defined again
  bool completed = false;  // more than Define said was put into the spec
  bool committed = false;  // once: a handle may be kept
  OperatorSpec spec{};
  std::unique_ptr<Operator> op;
};

struct Scope::Impl {
  std::string name, path;
  std::vector<NamedKernel> kernels;
  std::vector<NamedClass> classes;
  std::vector<NamedRule> rules;
  std::vector<NamedFallback> fallbacks;
  std::vector<std::string> decompose;
  std::vector<std::string> backends;
  std::vector<NamedDevice> devices;
  std::vector<NamedPlace> layers, kinds;
  std::vector<Extension> extensions;
  std::vector<std::shared_ptr<Definition>> definitions;
  std::shared_ptr<Scope> replaced;  // whose place Commit takes
  uint64_t rank = 0;
  bool is_micas = false;
  bool committed = false;
  bool enabled = false;
  bool abandoned = false;

  // All with the dispatcher's mutex held.
  absl::StatusOr<int> KeyOf(const std::string& key) const;
  absl::Status Check(Dispatcher& d, bool may_replace) const;
  // A name that another plugin offers now, or this one's own build of before.
  absl::Status CheckExtensions(bool may_replace) const;
  absl::Status PublishDevices();
  // Once the mutex is free: of its devices, those that nobody holds.
  void EndStreams() const;
  // Takes out the kernels that cannot serve the operator they name, and says so.
  std::vector<std::string> DropUnfit(Dispatcher& d);
  // Puts the scope in place, or says why not; `said` gets what people are to be told once the mutex is free.
  absl::Status Activate(Dispatcher& d, const Scope* scope, bool replaces, std::vector<std::string>& said);
  // The same while `other`, if it is enabled, goes.
  absl::Status ActivateInPlaceOf(Dispatcher& d, const Scope* scope, Scope* other,
                                 std::vector<std::string>& said);
  // Takes over the operators that both define alike, those with data of their own apart.
  void ShareDefinitions(Dispatcher& d, const Impl& other);
  void Put(Dispatcher& d, const Scope* scope);
  void Take(Dispatcher& d, const Scope* scope);
  // Tables for others and frame kinds. Last of all, when the scope's kernels are found, and first, when they
  // go; whoever enters a frame finds its layer's table.
  void Offer() const;
  void Withdraw(const Impl* successor = nullptr) const;  // which offers some of them itself
  // Keeps the operators that were ever committed.
  void Retire(Dispatcher& d);
  // Gives layers and kinds back that were never committed.
  void ReleasePlaces();
};

}  // namespace mica
