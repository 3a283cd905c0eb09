// The switch between fibers (x86-64, and ucontext elsewhere) and the schedule of a group.
#include "plugins/simt/fibers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <numeric>

#include <mica/plugin.h>

#if !defined(__x86_64__) || defined(MICA_SIMT_UCONTEXT)
#include <ucontext.h>
#define MICA_SIMT_UCONTEXT 1
#endif

// Sanitizers follow one stack a thread: what runs on fibers is not for them.
#define ON_FIBER __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

namespace simt {
namespace {
thread_local Runner* t_runner = nullptr;  // of this worker, while it runs a kernel
constexpr size_t kStack = 256 << 10;      // reserved; a page is used once it is touched
}  // namespace

#if MICA_SIMT_UCONTEXT
struct Context {
  ucontext_t context;
  void Start(void* stack, size_t size, void (*body)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = size;
    context.uc_link = nullptr;
    makecontext(&context, body, 0);
  }
};
ON_FIBER static void Switch(Context* from, Context* to) { swapcontext(&from->context, &to->context); }
#else
// Saves the registers that a callee keeps on the stack of `from`, and takes those of `to`.
extern "C" void mica_simt_switch(void** from, void* to) __attribute__((visibility("hidden")));
asm(R"(
.text
.hidden mica_simt_switch
.globl mica_simt_switch
.type mica_simt_switch, @function
mica_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size mica_simt_switch, . - mica_simt_switch
)");
struct Context {
  void* top = nullptr;
  void Start(void* stack, size_t size, void (*body)()) {
    // A function begins eight bytes off a multiple of 16, as behind a call.
    void** at = reinterpret_cast<void**>(static_cast<char*>(stack) + size) - 1;
    *at = nullptr;                                // where the body would return to
    *--at = reinterpret_cast<void*>(body);        // where the first switch returns to
    for (int i = 0; i < 6; ++i) *--at = nullptr;  // the registers
    top = at;
  }
};
ON_FIBER static void Switch(Context* from, Context* to) { mica_simt_switch(&from->top, to->top); }
#endif

struct Fiber {
  Context context;
  char* stack = nullptr;  // its first page may not be touched
  size_t color = 0;
  uint32_t item = 0;
  int line = 0;  // of the barrier it waits at; 0: none

  ON_FIBER static void Body() {
    for (;;) {
      t_runner->TakeItems();
      Switch(&t_runner->current_->context, &t_runner->scheduler_->context);
    }
  }
  // Stacks begin at different offsets of a page: else all of a group compete for the same lines of cache.
  void Start() {
    line = 0;
    context.Start(stack, kStack - color, Body);
  }
  ~Fiber() {
    if (stack) munmap(stack, kStack);
  }
};

Order::Order(uint64_t n, uint64_t seed, uint64_t number) : n_(n) {
  if (seed == 0 || n < 2) return;
  uint64_t x = seed * 0x9E3779B97F4A7C15 + number;  // splitmix64
  const auto random = [&x] {
    uint64_t z = x += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  };
  at_ = random() % n;
  do {
    step_ = 1 + random() % (n - 1);
  } while (std::gcd(step_, n) != 1);
}

ON_FIBER uint64_t Order::Next() {
  const uint64_t at = at_;
  at_ += step_;
  if (at_ >= n_) at_ -= n_;
  return at;
}

Runner::Runner() : scheduler_(new Fiber) {}
Runner::~Runner() = default;

ON_FIBER void Runner::Place(uint32_t item) {
  const uint32_t* ids = ids_.data() + 3 * item;
  uint32_t* to = kernel_->table->item.id;
  to[0] = ids[0], to[1] = ids[1], to[2] = ids[2];
}

ON_FIBER void Runner::TakeItems() {
  while (left_ > 0) {
    --left_;
    const uint32_t item = static_cast<uint32_t>(order_->Next());
    current_->item = item;
    Place(item);
    kernel_->thunk(arguments_);
  }
}

ON_FIBER void Runner::Barrier(int line) {
  Fiber* fiber = t_runner->current_;
  fiber->line = line;
  Switch(&fiber->context, &t_runner->scheduler_->context);
}

// Runs until the fiber waits at a barrier, or has no item left.
void Runner::Resume(Fiber* fiber) {
  fiber->line = 0;
  current_ = fiber;
  Switch(&scheduler_->context, &fiber->context);
  (fiber->line != 0 ? waiting_ : idle_).push_back(fiber);
}

void Runner::Diverged(const std::string& what) {
  for (Fiber* fiber : waiting_) {  // their items are given up
    fiber->Start();
    idle_.push_back(fiber);
  }
  waiting_.clear();
  const uint32_t* g = kernel_->table->item.group;
  MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, "A barrier of the kernel (" + kernel_->name +
                                            ") is divergent in the group (" + std::to_string(g[0]) + ", " +
                                            std::to_string(g[1]) + ", " + std::to_string(g[2]) +
                                            "): " + what);
}

void Runner::RunGroup(uint64_t seed, uint64_t number) {
  const Table& table = *kernel_->table;
  if (table.shared) std::memset(table.shared, 0xFF, static_cast<size_t>(table.shared_end - table.shared));
  Order order(items_, seed, number);
  order_ = &order;
  left_ = items_;
  while (left_ > 0) {
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>());
      Fiber* made = fibers_.back().get();
      void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
      if (stack == MAP_FAILED) Diverged("there is no memory for the stacks of its work-items.");
      made->stack = static_cast<char*>(stack);
      made->color = fibers_.size() * 320 % 8192;
      mprotect(stack, static_cast<size_t>(getpagesize()), PROT_NONE);
      made->Start();
      idle_.push_back(made);
    }
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    Resume(fiber);
  }
  for (uint64_t phase = 1; !waiting_.empty(); ++phase) {
    if (waiting_.size() != items_) {
      Diverged("(" + std::to_string(waiting_.size()) + ") of its (" + std::to_string(items_) +
               ") work-items reached it, the others had ended.");
    }
    for (const Fiber* fiber : waiting_) {
      if (fiber->line == waiting_[0]->line) continue;
      Diverged("work-items wait at line (" + std::to_string(waiting_[0]->line) + ") and at line (" +
               std::to_string(fiber->line) + ") of its text.");
    }
    resumed_.swap(waiting_);
    Order again(items_, seed, number + (phase << 40));
    for (uint32_t i = 0; i < items_; ++i) {
      Fiber* fiber = resumed_[again.Next()];
      Place(fiber->item);
      Resume(fiber);
    }
    resumed_.clear();
  }
}

void Runner::Run(const Kernel& kernel, const uint32_t groups[3], const uint32_t size[3], void** arguments,
                 uint64_t seed) {
  t_runner = this;
  kernel_ = &kernel;
  arguments_ = arguments;
  items_ = size[0] * size[1] * size[2];
  ids_.clear();
  for (uint32_t i = 0; i < items_; ++i) {
    ids_.insert(ids_.end(), {i % size[0], i / size[0] % size[1], i / size[0] / size[1]});
  }
  Item& item = kernel.table->item;
  std::memcpy(item.size, size, sizeof(item.size));
  std::memcpy(item.groups, groups, sizeof(item.groups));
  item.barrier = Barrier;
  item.misaligned = 0;
  const uint64_t count = uint64_t{groups[0]} * groups[1] * groups[2];
  Order order(count, seed, ~uint64_t{0});
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t group = order.Next();
    item.group[0] = static_cast<uint32_t>(group % groups[0]);
    item.group[1] = static_cast<uint32_t>(group / groups[0] % groups[1]);
    item.group[2] = static_cast<uint32_t>(group / groups[0] / groups[1]);
    RunGroup(seed, group);
  }
  if (item.misaligned != 0)
    MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME,
                      "The kernel (" + kernel.name + ") reads or writes several elements at once at line (" +
                          std::to_string(item.misaligned) +
                          ") of its text, from an address that is no multiple of their size.");
}

}  // namespace simt
