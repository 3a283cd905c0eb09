// The memory of one simulated device.
//
// An arena of addresses that only an Access opens: a stream's worker holds one while it works,
// and while nobody does the host cannot touch the arena (MICA_SIMT_GUARD=0: it always can).
// Every allocation stands between red zones; its bytes are 0xFF when it is new and again once
// it is freed, and who writes to it after that is found when it is taken again. Safe from many
// threads.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace simt {

class Memory {
 public:
  Memory(int device, int64_t limit);  // bytes that all allocations may have together

  void* Allocate(int64_t size);  // throws MICA_ERROR_OUT_OF_MEMORY
  // What is wrong with the allocation, a sentence, or "". Nobody may use it any more.
  std::string Free(void* data);
  // What is wrong with any allocation. No kernel may run.
  std::string CheckRedZones();

  // Whether the address lies in the arena.
  bool Owns(const void* data) const;
  // Whether all the bytes lie in one allocation, or with size 0 the address in one or at its end.
  bool Holds(const void* data, int64_t size);
  int64_t free_bytes();

  // Opens the arena while it lives; counted.
  class Access {
   public:
    explicit Access(Memory& memory) : memory_(memory) { memory_.Open(1); }
    ~Access() { memory_.Open(-1); }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    Memory& memory_;
  };

 private:
  struct Block {
    int64_t offset, length;  // with its red zones
    int64_t size;            // what was asked for
    uint64_t number;         // of the allocation on this device, from 1 on
  };
  void Open(int change);
  std::string Overwritten(const Block& block) const;
  std::string Name(const Block& block) const;

  const int device_;
  const int64_t limit_, length_;
  const bool guarded_;
  char* base_ = nullptr;
  std::mutex mutex_;
  std::map<int64_t, Block> blocks_;   // by offset of their data
  std::map<int64_t, int64_t> holes_;  // offset to length, below top_
  int64_t top_ = 0;                   // from here on the arena was never used
  int64_t used_ = 0;
  uint64_t count_ = 0;

  std::mutex access_mutex_;
  int open_ = 0;
};

}  // namespace simt
