// Streams and events: a worker thread for each stream, in order and late.
//
// A task waits in its stream's queue until somebody waits for it or it is a millisecond old
// (MICA_SIMT_LATE=0: the worker takes it at once), so that code which forgets to wait reads
// poison. A task's error goes to the function that the stream was made with. Safe from many
// threads; Stop() is called before the last reference goes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "plugins/simt/fibers.h"
#include "plugins/simt/memory.h"

namespace simt {

using Clock = std::chrono::steady_clock;

class Stream {
 public:
  using Task = std::function<void(Runner&)>;
  // The worker opens `memory` while it works. `keep_error` takes std::current_exception().
  Stream(int device, Memory& memory, std::function<void()> keep_error);

  int device() const { return device_; }
  // The task's number, from 1 on. After Stop() tasks are dropped.
  uint64_t Queue(Task task);
  // Waits for the tasks up to a number, which the worker now takes without delay.
  void Wait(uint64_t number);
  void WaitAll();
  bool Reached(uint64_t number);
  bool Done();
  // Ends the worker behind the task it is at; what is queued is dropped.
  void Stop();

 private:
  struct Queued {
    Task task;
    Clock::time_point since;
  };
  void Work();
  bool IsDue(Clock::time_point now) const;

  const int device_;
  Memory& memory_;
  const std::function<void()> keep_error_;
  const Clock::duration delay_;
  std::mutex mutex_;
  std::condition_variable work_, done_changed_;
  std::deque<Queued> queue_;
  uint64_t queued_ = 0, done_ = 0, hurried_ = 0;  // numbers of tasks
  bool stopped_ = false;
  Runner runner_;  // the worker's
  std::thread worker_;
};

// A place in a stream, made by each EventRecord.
struct Record {
  std::shared_ptr<Stream> stream;
  uint64_t number = 0;
  Clock::time_point time;  // once the stream reached the number
};

}  // namespace simt
