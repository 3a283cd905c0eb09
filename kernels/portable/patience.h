// How the long loops of portable kernels ask for a Ctrl-C. Not for loops that hold a lock, which a
// signal's handler may want, too.
#pragma once

#include <cstdint>

#include "dispatcher/plugins/host.h"

namespace mica::portable {

class Patience {
 public:
  // After `n` more elements: throws an Error of kind kInterrupted when the user wants to stop.
  void Spend(int64_t n) {
    done_ += n;
    if (done_ < kElements) return;
    done_ = 0;
    CheckInterrupted();
  }

 private:
  static constexpr int64_t kElements = int64_t{1} << 18;  // a few milliseconds
  int64_t done_ = 0;
};

}  // namespace mica::portable
