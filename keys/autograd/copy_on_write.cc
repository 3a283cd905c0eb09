// A table from storage to the aliases of it that were saved.
#include "keys/autograd/copy_on_write.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "dispatcher/calls/write_log.h"
#include "dispatcher/frames/frames.h"
#include "keys/autograd/data_alias.h"
#include "keys/autograd/kernel.h"

namespace mica::autograd {
namespace {

struct Kept {
  Tensor tensor;  // an alias, later a copy
  uint32_t version = 0;
};

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
    const std::vector<std::weak_ptr<Kept>> all = std::move(found->second);
    kept_.erase(found);
    const BelowAutograd below;
    for (const std::weak_ptr<Kept>& weak : all) {
      const std::shared_ptr<Kept> kept = weak.lock();
      if (!kept || kept->tensor.version() != kept->version) continue;
      kept->tensor = ops::CloneLike(kept->tensor, kept->tensor);
      kept->version = kept->tensor.version();
    }
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
  absl::flat_hash_map<const StorageImpl*, std::vector<std::weak_ptr<Kept>>> kept_;
};

thread_local std::vector<std::shared_ptr<CopyOnWrite>> t_blocks;  // innermost last

}  // namespace

void PushCopyOnWrite() {
  auto hooks = std::make_shared<CopyOnWrite>();
  PushSavedTensorHooks(hooks);
  hooks->outer = SetWriteWatcher(hooks.get());
  t_blocks.push_back(std::move(hooks));
}

void PopCopyOnWrite() {
  MICA_CHECK(!t_blocks.empty(), "No copy on write stands on this thread to be taken away.");
  PopSavedTensorHooks();
  SetWriteWatcher(t_blocks.back()->outer);
  t_blocks.pop_back();
}

}  // namespace mica::autograd
