// Objects that callers leave with autograd (MicaHeld), and the functions that are called with them.
//
// Whoever is about to call a function copies its Hook, so that the object lives until the call is done,
// though the hook is taken away meanwhile. A garbage collector sees the objects that nobody copied, and
// may take them: a function whose object is gone is not called any more.
#pragma once

#include <mica/autograd.h>

#include <memory>

#include "tensor/error.h"

namespace mica::autograd {

class Held {
 public:
  Held() = default;
  explicit Held(MicaHeld given) : shared_(std::make_shared<Object>(given)) {}
  // NULL where there is none, or a garbage collector took it.
  void* get() const { return shared_ && !shared_->taken ? shared_->held.object : nullptr; }
  // For a call with it.
  void* object() const {
    MICA_INTERNAL(!shared_ || !shared_->taken, "A hook runs after a garbage collector took its object.");
    return get();
  }
  // Shows the object, unless there is none or it is shared with somebody who may use it.
  void Visit(void* to, MicaVisitHeld visit) {
    if (shared_.use_count() == 1 && !shared_->taken) shared_->taken = visit(to, &shared_->held) != 0;
  }

 private:
  struct Object {
    explicit Object(MicaHeld given) : held(given) {}
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    ~Object() {
      if (held.destroy && !taken) held.destroy(held.object);
    }
    const MicaHeld held;
    bool taken = false;
  };
  std::shared_ptr<Object> shared_;
};

template <typename Function>
struct Hook {
  Function function;
  Held held;
};

}  // namespace mica::autograd
