// The blocks of one caching allocator: cut from segments of raw memory, and joined again.
//
// A segment is what the raw memory gave in one piece. A request takes the smallest idle block that
// holds it and leaves the rest idle; a block that is freed joins the idle ones beside it, so that
// memory of small tensors serves a large one later. Where blocks stay whole (the CPU, whose large
// blocks are mappings of their own, and devices that watch the bounds of each block), a block is a
// segment, and serves requests down to four fifths of it.
//
// Idle blocks wait for requests of their owner alone: a pool, a stream in it, and small or large.
// Small ones have segments of their own, since one that lives long would hold a large one.
//
// Calls nothing outside and locks nothing: CachingAllocator holds its mutex around every call.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace mica {

class BlockMap {
 public:
  // Whom an idle block may be given to.
  struct Owner {
    uint64_t pool, stream;
    bool small;
    auto operator<=>(const Owner&) const = default;
  };
  enum class State { kInUse, kWaiting, kIdle };  // waiting: freed, and other streams may use it still
  struct Block;
  using IdleBlocks = std::multimap<int64_t, Block*>;  // by capacity
  struct Block {
    char* data;
    int64_t capacity;
    Owner owner;
    int64_t requested = 0;                      // bytes that were asked for
    Block *before = nullptr, *after = nullptr;  // in its segment
    std::vector<uint64_t> used_on = {};         // other streams
    State state = State::kInUse;
    bool outlived_pool = false;                       // any stream may use it
    IdleBlocks::iterator place = {};                  // where it is idle
    bool whole() const { return !before && !after; }  // a segment by itself
  };
  // A segment on its way to the raw memory.
  struct Leaving {
    void* data;
    int64_t capacity;
    uint64_t stream;
  };

  // Requests up to this many bytes are small.
  static constexpr int64_t kSmall = int64_t{256} << 10;

  explicit BlockMap(bool whole) : whole_(whole) {}
  // From now on blocks are not cut.
  void KeepWhole() { whole_ = true; }
  bool keeps_whole() const { return whole_; }

  Block* Find(const void* data);  // NULL where no block begins there
  // The smallest idle block of the owner for `size` bytes, cut to them; in use now. NULL if there is none.
  // With `spare`, a whole segment of large blocks is not cut for less than a quarter of it: where it can go
  // back to the device and one of the right size come, a lesser block would hold all of it.
  Block* Take(int64_t size, const Owner& owner, bool spare);
  // A block of `size` bytes in use, the first of a new segment; the rest of the segment is idle.
  Block* Add(void* data, int64_t capacity, int64_t size, const Owner& owner);
  // For requests of its owner from now on; joins those beside it. Returns what it became.
  Block* MakeIdle(Block* block);
  // Removes idle segments that are no pool's, the largest first, until they hold `bytes`, or all.
  std::vector<Leaving> TakeSegments(int64_t bytes);
  Leaving Remove(Block* block);  // an idle segment

  // The stream's blocks are the default stream's from now on.
  void EndStream(uint64_t stream);
  // The pool's blocks are everybody's from now on; those in use, once no stream uses them.
  void EndPool(uint64_t pool);

  int64_t idle_bytes() const { return idle_bytes_; }    // without pools'
  int64_t split_bytes() const { return split_bytes_; }  // idle ones of segments that are partly in use
  int64_t split_blocks() const { return split_blocks_; }
  template <typename F>
  void ForEach(F&& f) const {
    for (const auto& [data, block] : blocks_) f(block);
  }

 private:
  void Cut(Block* block, int64_t size);
  void Enter(Block* block);  // into the idle ones
  void Leave(Block* block);  // out of them
  void CountIdle(const Block& block, int64_t sign);
  // Gives each owner's blocks to `to(owner)`.
  template <typename F>
  void Rename(F&& to);

  bool whole_;
  std::unordered_map<const void*, Block> blocks_;
  std::map<Owner, IdleBlocks> idle_;
  int64_t idle_bytes_ = 0, split_bytes_ = 0, split_blocks_ = 0;
};

}  // namespace mica
