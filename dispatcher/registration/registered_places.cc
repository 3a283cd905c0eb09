// Layers and frame kinds that a scope brings: given out at once, since the plugin wants
// the number; a third party's are its own, and go back when it fails to start.
#include "absl/strings/str_cat.h"
#include "dispatcher/registration/scope_impl.h"
#include "tensor/device.h"

namespace mica {
namespace {

std::string Quoted(std::string_view name) { return std::string(name); }

// A name that kernels are registered under says one thing: a layer, a frame kind or a backend.
absl::Status CheckFree(std::string_view name, const char* what, bool taken_by_others) {
  if (name.empty()) return absl::InvalidArgumentError(absl::StrCat("A ", what, " has no name."));
  if (taken_by_others || BackendIndex(name) >= 0 || name == "Composite")
    return absl::AlreadyExistsError(absl::StrCat("The name (", Quoted(name), ") of a ", what,
                                                 " is taken by another layer, frame kind or backend; "
                                                 "choose one with the vendor's name in it."));
  return absl::OkStatus();
}

absl::Status CheckOwner(const Scope* owner, const Scope* scope, const Scope* replaced, std::string_view name,
                        const char* what) {
  if (!owner || owner == scope || owner == replaced) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("The ", what, " (", Quoted(name),
                                               ") is registered by plugin (", owner->name(),
                                               ") already; disable that first."));
}

}  // namespace

absl::StatusOr<int> Scope::AddLayer(std::string_view name, const LayerPlace& place) {
  Dispatcher& d = Dispatcher::Get();
  std::lock_guard lock(d.mutex);
  const int old = LayerBit(name);
  if (absl::Status s = CheckFree(name, "layer", frames::KindNumber(name) >= 0); !s.ok()) return s;
  const bool is_own = old >= 0 && !IsThirdPartyLayer(old);
  if (is_own && !(place.after.empty() && place.before.empty()))
    return absl::AlreadyExistsError(
        absl::StrCat("Layer (", Quoted(name),
                     ") is one of Mica's own, whose place is given; a layer of your own has another name."));
  if (old >= 0)
    if (absl::Status s =
            CheckOwner(d.brought_by[static_cast<size_t>(old)], this, impl_->replaced.get(), name, "layer");
        !s.ok())
      return s;
  absl::StatusOr<int> bit = is_own ? old : RegisterLayer(name, place);
  if (bit.ok()) impl_->layers.push_back({Quoted(name), *bit, old < 0});
  return bit;
}

absl::StatusOr<int> Scope::AddKind(const frames::Kind& kind) {
  Dispatcher& d = Dispatcher::Get();
  std::lock_guard lock(d.mutex);
  const int old = frames::KindNumber(kind.name);
  if (absl::Status s = CheckFree(kind.name, "frame kind", LayerBit(kind.name) >= 0); !s.ok()) return s;
  if (old >= 0) {
    // What was registered without a scope is Mica's own, and never goes.
    const Scope* owner = d.brought_by[static_cast<size_t>(kFirstKindKey + old)];
    if (!owner && frames::IsKindEnabled(old))
      return absl::AlreadyExistsError(absl::StrCat("Frame kind (", kind.name, ") is one of Mica's own."));
    if (absl::Status s = CheckOwner(owner, this, impl_->replaced.get(), kind.name, "frame kind"); !s.ok())
      return s;
  }
  try {
    const int number = frames::RegisterKind(kind);
    if (old < 0) frames::DisableKind(number);  // before Commit
    impl_->kinds.push_back({kind.name, number, old < 0, new frames::Kind(kind)});
    return number;
  } catch (const Error& error) {
    return absl::ResourceExhaustedError(error.message());
  }
}

int Scope::BringKind(const frames::Kind& kind) {
  const absl::StatusOr<int> number = AddKind(kind);
  MICA_CHECK(number.ok(), std::string(number.status().message()));
  return *number;
}

void Scope::Impl::ReleasePlaces() {
  for (const NamedPlace& layer : layers)
    if (layer.fresh) ReleaseLayer(layer.name);
  for (const NamedPlace& kind : kinds)
    if (kind.fresh) frames::ReleaseKind(kind.number);
  layers.clear();
  kinds.clear();
}

}  // namespace mica
