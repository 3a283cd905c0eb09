// Errors that kernels find in their data, raised when somebody waits for the device.
//
// A kernel that meets an index out of bounds or a division of integers by zero writes an int
// into a word of host memory and goes on; nobody waits for it. Each kind of error of an
// operator has a word of its own, so that the sentence names the operator. Raise is called
// after a wait: it throws the first word that is set and clears all. One object for each
// device; safe from many threads.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <mica/kit/driver.h>

#include "plugins/gpu/driver/driver.h"

namespace gpu {

class LateErrors {
 public:
  LateErrors(Driver& driver, int device) : driver_(driver), device_(device) {}

  // The word of an error of an operator; NULL where all words are given out.
  void* WordOf(const char* operator_name, const mica::kit::LateError& error);
  // Throws what was found since the last call.
  void Raise();

 private:
  static constexpr size_t kWords = 1024;
  struct Kind {
    std::string operator_name;
    mica::kit::LateError error;
  };

  Driver& driver_;
  const int device_;
  std::mutex mutex_;
  volatile int32_t* words_ = nullptr;  // kWords of pinned memory, which stays
  std::vector<Kind> kinds_;            // of the words in use
};

}  // namespace gpu
