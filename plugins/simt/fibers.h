// Work-items of a group as fibers of one thread.
//
// A stream's worker (streams.h) has one Runner. A fiber runs items one after another, each a
// plain call; at a barrier the item keeps its fiber, and another fiber takes the items that are
// left. Stricter than hardware: the order of groups, of items, and of items after each barrier
// is shuffled by MICA_SIMT_SEED; what a group shares is poisoned before it; a barrier that not
// all items of a group reach is an error. Not for several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace simt {

// What every compiled kernel text exports as `simt_table`: words.inc has the same.
struct Item {
  uint32_t id[3], group[3], size[3], groups[3];
  void (*barrier)(int line);
  int misaligned;  // the line of a promise (assume_aligned) that was not kept; 0 if there is none
};
struct Table {
  Item item;
  char *shared, *shared_end;
};

// A kernel of a module.
struct Kernel {
  std::string name;
  Table* table;
  void (*thunk)(void** arguments);
};

// 0, 1, ... n - 1 from a place on in steps of a number that has no divisor in common with n.
class Order {
 public:
  Order(uint64_t n, uint64_t seed, uint64_t number);  // seed 0: in order
  uint64_t Next();

 private:
  uint64_t n_, step_ = 1, at_ = 0;
};

struct Fiber;

class Runner {
 public:
  Runner();
  ~Runner();
  // Runs all groups; throws when a barrier is divergent, with the groups before it done.
  void Run(const Kernel& kernel, const uint32_t groups[3], const uint32_t size[3], void** arguments,
           uint64_t seed);

 private:
  friend struct Fiber;
  static void Barrier(int line);
  void RunGroup(uint64_t seed, uint64_t number);
  void Resume(Fiber* fiber);
  void TakeItems();
  void Place(uint32_t item);
  [[noreturn]] void Diverged(const std::string& what);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_, waiting_, resumed_;
  Fiber* current_ = nullptr;
  std::unique_ptr<Fiber> scheduler_;  // the worker's own stack

  const Kernel* kernel_ = nullptr;
  void** arguments_ = nullptr;
  std::vector<uint32_t> ids_;  // three of each item
  Order* order_ = nullptr;
  uint32_t items_ = 0, left_ = 0;
};

}  // namespace simt
