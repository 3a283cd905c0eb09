// What a scope has put into the dispatcher, for `mica doctor`: read from the lists
// that slots are made from, so that it says what is there and not what was meant.
#include <algorithm>

#include "dispatcher/registration/scope_impl.h"
#include "tensor/device.h"

namespace mica {
namespace {

// The scope of the entry that stands directly below `scope`'s own in a stack, of
// those that `concerns` takes; "" if there is none.
template <typename Stack, typename Concerns>
std::string Below(const Stack& stack, const Scope* scope, Concerns&& concerns) {
  std::string below;
  for (const auto& e : stack) {
    if (!concerns(e)) continue;
    if (e.scope == scope) return below;
    if (e.scope) below = e.scope->name();
  }
  return "";
}

constexpr auto kAny = [](const auto&) { return true; };

}  // namespace

std::vector<std::string> Scope::Notes() const {
  Dispatcher& d = Dispatcher::Get();
  std::lock_guard lock(d.mutex);
  auto it = d.notes.find(this);
  return it == d.notes.end() ? std::vector<std::string>() : it->second;
}

std::vector<std::string> Scope::OperatorsAt(std::string_view key) const {
  std::vector<std::string> names;
  for (const NamedKernel& k : impl_->kernels)
    if (k.key == key && k.entry.kind != KernelEntry::Kind::kFallthrough) names.push_back(k.op);
  return names;
}

std::vector<std::string> Scope::BorrowedKeys() const {
  std::vector<std::string> keys;
  const auto add = [&](const std::string& key) {
    const auto in = [&](const std::vector<std::string>& v) {
      return std::find(v.begin(), v.end(), key) != v.end();
    };
    const auto brought = [&](const NamedPlace& place) { return place.name == key; };
    if (std::any_of(impl_->layers.begin(), impl_->layers.end(), brought)) return;
    if (std::any_of(impl_->kinds.begin(), impl_->kinds.end(), brought)) return;
    if (!in(impl_->backends) && !in(keys)) keys.push_back(key);
  };
  for (const NamedKernel& k : impl_->kernels) add(k.key);
  for (const NamedClass& c : impl_->classes) add(c.backend);
  for (const NamedRule& r : impl_->rules) add(r.key);
  for (const NamedFallback& f : impl_->fallbacks) add(f.key);
  return keys;
}

std::vector<Registration> Scope::Registrations() const {
  std::vector<Registration> out;
  Dispatcher& d = Dispatcher::Get();
  std::lock_guard lock(d.mutex);
  if (!impl_->enabled) return out;
  for (const std::string& b : impl_->backends) out.push_back({"device", b, b, "", false});
  for (const NamedPlace& l : impl_->layers) out.push_back({"layer", l.name, l.name, "", false});
  for (const NamedPlace& k : impl_->kinds) out.push_back({"frame kind", k.name, k.name, "", false});
  for (const Extension& e : impl_->extensions) out.push_back({"extension", e.name, "", "", false});
  for (const auto& def : impl_->definitions) out.push_back({"operator", def->name, "", "", false});
  for (const NamedClass& c : impl_->classes) {
    const auto& stack =
        d.classes[static_cast<size_t>(BackendIndex(c.backend))][static_cast<size_t>(c.op_class)];
    out.push_back(
        {"class", Name(static_cast<OpClass>(c.op_class)), c.backend, Below(stack, this, kAny), false});
  }
  for (const NamedKernel& k : impl_->kernels) {
    const Operator* op = d.Find(k.op);
    std::string below;
    if (op)
      below = Below(d.StateOf(*op).kernels, this, [&](const KernelEntry& e) { return e.key == k.entry.key; });
    out.push_back({"kernel", k.op, k.key, std::move(below), op == nullptr});
  }
  for (const NamedRule& r : impl_->rules)
    out.push_back(
        {"rule", "", r.key, Below(d.rules[static_cast<size_t>(*impl_->KeyOf(r.key))], this, kAny), false});
  for (const NamedFallback& f : impl_->fallbacks)
    out.push_back({"fallback", "", f.key,
                   Below(d.fallbacks[static_cast<size_t>(*impl_->KeyOf(f.key))], this, kAny), false});
  for (const std::string& layer : impl_->decompose) out.push_back({"decomposition", "", layer, "", false});
  return out;
}

}  // namespace mica
