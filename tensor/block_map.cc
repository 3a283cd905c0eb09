#include "tensor/block_map.h"

#include <algorithm>
#include <utility>

namespace mica {

BlockMap::Block* BlockMap::Find(const void* data) {
  const auto found = blocks_.find(data);
  return found == blocks_.end() ? nullptr : &found->second;
}

void BlockMap::CountIdle(const Block& block, int64_t sign) {
  if (block.owner.pool == 0) idle_bytes_ += sign * block.capacity;
  if (block.whole()) return;
  split_bytes_ += sign * block.capacity;
  split_blocks_ += sign;
}

void BlockMap::Enter(Block* block) {
  block->state = State::kIdle;
  block->requested = 0;
  block->outlived_pool = false;
  IdleBlocks& idle = idle_[block->owner];
  // Before others of its size: the block freed last is the one still in cache.
  block->place = idle.emplace_hint(idle.lower_bound(block->capacity), block->capacity, block);
  CountIdle(*block, 1);
}

void BlockMap::Leave(Block* block) {
  idle_[block->owner].erase(block->place);
  CountIdle(*block, -1);
}

BlockMap::Block* BlockMap::Take(int64_t size, const Owner& owner, bool spare) {
  const auto of_owner = idle_.find(owner);
  if (of_owner == idle_.end()) return nullptr;
  const IdleBlocks& idle = of_owner->second;
  auto found = idle.lower_bound(size);
  if (whole_) {
    if (found != idle.end() && found->first > size + size / 4) found = idle.end();
  } else if (spare && !owner.small) {
    while (found != idle.end() && found->second->whole() && found->first / 4 > size) ++found;
  }
  if (found == idle.end()) return nullptr;
  Block* const block = found->second;
  Leave(block);
  block->state = State::kInUse;
  Cut(block, size);
  return block;
}

BlockMap::Block* BlockMap::Add(void* data, int64_t capacity, int64_t size, const Owner& owner) {
  Block* const block = &(blocks_[data] = {static_cast<char*>(data), capacity, owner});
  Cut(block, size);
  return block;
}

// Leaves what lies behind the first `size` bytes of a block in use idle.
void BlockMap::Cut(Block* block, int64_t size) {
  if (whole_ || block->capacity == size) return;
  char* const data = block->data + size;
  Block* const rest = &(blocks_[data] = {data, block->capacity - size, block->owner});
  rest->before = block;
  rest->after = std::exchange(block->after, rest);
  if (rest->after) rest->after->before = rest;
  block->capacity = size;
  Enter(rest);
}

BlockMap::Block* BlockMap::MakeIdle(Block* block) {
  Block* first = block;
  if (block->before && block->before->state == State::kIdle) Leave(first = block->before);
  Block* last = block;
  if (block->after && block->after->state == State::kIdle) Leave(last = block->after);
  while (first != last) {
    Block* const next = first->after;
    first->capacity += next->capacity;
    first->after = next->after;
    if (next->after) next->after->before = first;
    if (next == last) last = first;
    blocks_.erase(next->data);
  }
  Enter(first);
  return first;
}

BlockMap::Leaving BlockMap::Remove(Block* block) {
  const Leaving leaving{block->data, block->capacity, block->owner.stream};
  Leave(block);
  blocks_.erase(block->data);
  return leaving;
}

std::vector<BlockMap::Leaving> BlockMap::TakeSegments(int64_t bytes) {
  std::vector<Block*> idle;
  for (const auto& [owner, blocks] : idle_) {
    if (owner.pool != 0) continue;
    for (const auto& [capacity, block] : blocks)
      if (block->whole()) idle.push_back(block);
  }
  std::stable_sort(idle.begin(), idle.end(),
                   [](const Block* a, const Block* b) { return a->capacity > b->capacity; });
  std::vector<Leaving> leaving;
  for (Block* block : idle) {
    if (bytes <= 0) break;
    bytes -= block->capacity;
    leaving.push_back(Remove(block));
  }
  std::erase_if(idle_, [](const auto& entry) { return entry.second.empty(); });
  return leaving;
}

template <typename F>
void BlockMap::Rename(F&& to) {
  std::vector<Owner> changed;
  for (const auto& [owner, blocks] : idle_)
    if (to(owner) != owner) changed.push_back(owner);
  for (const Owner& owner : changed) {
    IdleBlocks blocks = std::move(idle_[owner]);
    idle_.erase(owner);
    for (const auto& [capacity, block] : blocks)
      if (owner.pool != 0 && to(owner).pool == 0) idle_bytes_ += capacity;
    idle_[to(owner)].merge(blocks);  // their places stay
  }
  for (auto& [data, block] : blocks_) block.owner = to(block.owner);
}

void BlockMap::EndStream(uint64_t stream) {
  for (auto& [data, block] : blocks_) std::erase(block.used_on, stream);
  Rename([stream](Owner owner) {
    if (owner.stream == stream) owner.stream = 0;
    return owner;
  });
}

void BlockMap::EndPool(uint64_t pool) {
  for (auto& [data, block] : blocks_)
    block.outlived_pool |= block.owner.pool == pool && block.state != State::kIdle;
  Rename([pool](Owner owner) {
    if (owner.pool == pool) owner.pool = 0;
    return owner;
  });
}

}  // namespace mica
