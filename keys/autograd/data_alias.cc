// Storages over the memory of others; see data_alias.h.
#include "keys/autograd/data_alias.h"

#include <mutex>
#include <unordered_map>

#include "dispatcher/frames/frames.h"
#include "keys/autograd/forward.h"
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

// Whether data can be put behind `t`: it is of no transform, or of dual levels and without a tangent.
bool IsReplaceable(const Tensor& t) {
  for (const Tensor* at = &t; frames::IsWrapper(*at); at = &frames::WrapperOf(*at).value)
    if (frames::WrapperOf(*at).kind != forward::JvpKind() || forward::HasTangent(*at)) return false;
  return true;
}

}  // namespace

StorageImpl* OwnerOf(StorageImpl* storage) {
  if (storage->resizable()) return storage;
  std::lock_guard guard(AllOwners().lock);
  const auto found = AllOwners().of.find(storage);
  return found == AllOwners().of.end() ? storage : found->second;
}

Tensor DataAlias(const Tensor& t) {
  if (!frames::IsWrapper(t)) t.data();  // has its memory: the alias shows that of the storage
  Tensor alias = DetachedAlias(t);
  const bool shown =
      frames::IsWrapper(t) || t.keys().has(keys::kPythonSubclass) || t.keys().has(keys::kNoData);
  if (shown || t.is_inference() || t.device().is_meta()) return alias;
  alias.impl()->MoveTo(AliasOf(OwnerOf(alias.impl()->storage)).get());
  return alias;
}

void SetData(const Tensor& t, const Tensor& data) {
  MICA_CHECK(t.dtype() == data.dtype() || !t.requires_grad() || IsDifferentiable(data.dtype()),
             "data set to a tensor that requires gradients must be floating point or complex dtype; this "
             "data's dtype is (",
             Name(data.dtype()), ").");
  MICA_CHECK_IMPLEMENTED(
      IsReplaceable(t) && IsReplaceable(data) && (!frames::IsWrapper(t) || t.dtype() == data.dtype()),
      "The data of a tensor cannot be replaced inside a transform (mica.func); use copy_.");
  if (t.is_same(data)) return;
  if (!frames::IsWrapper(data)) data.data();  // has its memory: what may fail comes first
  if (t.is_view()) LeaveBase(t);
  if (frames::IsWrapper(data)) return SetData(t, frames::WrapperOf(data).value);
  if (frames::IsWrapper(t)) {
    SetData(frames::WrapperOf(t).value, data);
    return frames::Refresh(t);
  }
  TensorImpl* to = t.impl();
  const TensorImpl* from = data.impl();
  to->PointWhere(*from);
  to->MoveTo(OwnerOf(from->storage));
  to->dl.device = from->dl.device;
  to->dl.dtype = from->dl.dtype;
  constexpr uint64_t kOfData = (uint64_t{0xff} << MICA_TENSOR_DTYPE_SHIFT) |
                               (uint64_t{0xff} << MICA_TENSOR_BACKEND_SHIFT) | tensor_flags::kInference;
  to->flags = (to->flags & ~kOfData) | (from->flags & kOfData);
  const KeySet of_data = keys::kBackends | keys::kOfMemory;
  to->keys = (to->keys - of_data) | (from->keys & of_data);
  to->SetSizesStrides(from->sizes(), from->strides());
  RefreshAccumulator(t);
}

}  // namespace mica::autograd
