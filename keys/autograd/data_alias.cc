// Storages over the memory of others; see data_alias.h.
#include "keys/autograd/data_alias.h"

#include <mutex>
#include <unordered_map>

#include "dispatcher/frames/frames.h"
#include "keys/autograd/meta.h"

namespace mica::autograd {
namespace {

// Owner by alias. Aliases are few: those that Python programs hold.
struct Owners {
  std::mutex lock;
  std::unordered_map<StorageImpl*, StorageImpl*> of;
};
Owners& AllOwners() {
  static auto* const owners = new Owners();
  return *owners;
}

// What an alias gives its storage as context: both ends, filled in once the storage exists.
struct Link {
  StorageImpl* alias;
  StorageImpl* owner;
};

void Unlink(void* context) {
  auto* const link = static_cast<Link*>(context);
  {
    std::lock_guard guard(AllOwners().lock);
    AllOwners().of.erase(link->alias);
  }
  link->owner->Release();
  delete link;
}

Storage AliasOf(StorageImpl* owner) {
  auto* const link = new Link{nullptr, owner};
  owner->Retain();
  Storage alias = Storage::FromMemory(owner->data(), owner->nbytes(), owner->device(), Unlink, link, owner);
  link->alias = alias.get();
  if (owner->watched()) alias.get()->Watch();
  std::lock_guard guard(AllOwners().lock);
  AllOwners().of.emplace(alias.get(), owner);
  return alias;
}

}  // namespace

StorageImpl* OwnerOf(StorageImpl* storage) {
  if (storage->resizable()) return storage;
  std::lock_guard guard(AllOwners().lock);
  const auto found = AllOwners().of.find(storage);
  return found == AllOwners().of.end() ? storage : found->second;
}

Tensor DataAlias(const Tensor& t) {
  Tensor alias = DetachedAlias(t);
  const bool shown =
      frames::IsWrapper(t) || t.keys().has(keys::kPythonSubclass) || t.keys().has(keys::kNoData);
  if (shown || t.is_inference() || t.device().is_meta()) return alias;
  alias.impl()->MoveTo(AliasOf(OwnerOf(alias.impl()->storage)).get());
  return alias;
}

}  // namespace mica::autograd
