// A table from storage to the aliases of it that were saved.
#include "keys/autograd/copy_on_write.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "dispatcher/calls/write_log.h"
#include "dispatcher/frames/frames.h"
#include "keys/autograd/data_alias.h"
#include "keys/autograd/kernel.h"
#include "keys/autograd/saved_tensor.h"

namespace mica::autograd {
namespace {

struct Kept {
  Tensor tensor;  // an alias, later a copy
  uint32_t version = 0;
};
using KeptList = std::vector<std::weak_ptr<Kept>>;

bool IsSamePart(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

// The hooks, and the watcher of their thread's writes. A copy of a wrapper is made at
// once: its level need not be the current one when its memory is written.
class CopyOnWrite final : public SavedTensorHooks, public WriteWatcher {
 public:
  CopyOnWrite() {
    pack = [this](const Tensor& t) { return Pack(t); };
    unpack = [](const std::shared_ptr<void>& packed) { return Unpack(*static_cast<Kept*>(packed.get())); };
  }

  WriteWatcher* outer = nullptr;  // the block around this one

  void BeforeWrite(const Tensor& written) override {
    if (outer) outer->BeforeWrite(written);
    const auto found = kept_.find(OwnerOf(written.impl()->storage));
    if (found == kept_.end()) return;
    const KeptList all = std::move(found->second);
    kept_.erase(found);
    const BelowAutograd below;
    std::vector<std::pair<Tensor, Tensor>> copies;  // of each part of the memory one
    std::erase_if(copied_, [](const std::weak_ptr<Kept>& gone) { return gone.expired(); });
    for (const std::weak_ptr<Kept>& weak : all) {
      const std::shared_ptr<Kept> kept = weak.lock();
      if (!kept || kept->tensor.version() != kept->version) continue;
      auto copy = std::find_if(copies.begin(), copies.end(),
                               [&](const auto& made) { return IsSamePart(made.first, kept->tensor); });
      if (copy == copies.end())
        copy = copies.insert(copy, {kept->tensor, ops::CloneLike(kept->tensor, kept->tensor)});
      kept->tensor = copy->second;
      kept->version = kept->tensor.version();
      copied_.push_back(kept);
    }
  }

  std::vector<Tensor> Listed(bool copies) const {
    std::vector<Tensor> found;
    const auto add = [&](const KeptList& list) {
      for (const std::weak_ptr<Kept>& weak : list) {
        const std::shared_ptr<Kept> kept = weak.lock();
        if (kept && std::none_of(found.begin(), found.end(),
                                 [&](const Tensor& t) { return IsSamePart(t, kept->tensor); }))
          found.push_back(kept->tensor);
      }
    };
    add(copied_);
    if (!copies)
      for (const auto& [storage, list] : kept_) add(list);
    return found;
  }

 private:
  std::shared_ptr<void> Pack(const Tensor& t) {
    auto kept = std::make_shared<Kept>();
    if (frames::IsWrapper(t)) {
      const BelowAutograd below;
      kept->tensor = ops::Clone(t);
    } else {
      kept->tensor = DetachedAlias(t);
      kept_[OwnerOf(t.impl()->storage)].push_back(kept);
    }
    kept->version = kept->tensor.version();
    return kept;
  }

  static Tensor Unpack(const Kept& kept) {
    MICA_CHECK(kept.tensor.version() == kept.version, "A tensor that was saved for backward, ",
               kept.tensor.ToString(),
               ", was written in place after the end of allow_mutation_on_saved_tensors, or on another "
               "thread, where no copy is made; end that block after the last write.");
    return kept.tensor;
  }

  // Entries of storages that are gone cost a row and hold nothing.
  absl::flat_hash_map<const StorageImpl*, KeptList> kept_;
  KeptList copied_;
};

thread_local std::vector<std::shared_ptr<CopyOnWrite>> t_blocks;  // innermost last

}  // namespace

SavedLister PushCopyOnWrite() {
  auto hooks = std::make_shared<CopyOnWrite>();
  PushSavedTensorHooks(hooks);
  hooks->outer = SetWriteWatcher(hooks.get());
  t_blocks.push_back(hooks);
  return [hooks](bool copies) { return hooks->Listed(copies); };
}

void PopCopyOnWrite() {
  MICA_CHECK(!t_blocks.empty(), "No copy on write stands on this thread to be taken away.");
  PopSavedTensorHooks();
  SetWriteWatcher(t_blocks.back()->outer);
  t_blocks.pop_back();
}

}  // namespace mica::autograd
