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
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "plugins/simt/fibers.h"
#include "plugins/simt/memory.h"

namespace simt {

using Clock = std::chrono::steady_clock;

class Stream;

// What is queued on a stream between CaptureBegin and CaptureEnd, and on the streams that join by
// waiting for an event of it: run again as one task, in the order in which it was queued.
class Recording {
 public:
  using Task = std::function<void(Runner&)>;
  // How many tasks of each stream a stream's later work comes after.
  using Seen = std::map<const Stream*, size_t>;

  explicit Recording(int device) : device(device) {}
  void Add(const Stream* stream, Task task);
  Seen SeenBy(const Stream* stream);
  void Merge(const Stream* stream, const Seen& other);
  // Whether work of a stream is left that nothing of `origin` waits for.
  bool HasUnjoined(const Stream* origin);
  void Run(Runner& runner) const;

  const int device;
  std::vector<std::shared_ptr<Stream>> joined;  // under State's lock; the first began

 private:
  std::mutex mutex_;
  std::vector<Task> tasks_;
  std::map<const Stream*, Seen> seen_;
};

class Stream {
 public:
  using Task = Recording::Task;
  // The worker opens `memory` while it works. `keep_error` takes std::current_exception().
  Stream(int device, Memory& memory, std::function<void()> keep_error);

  int device() const { return device_; }
  // The task's number, from 1 on; 0 where it is recorded. After Stop() tasks are dropped.
  uint64_t Queue(Task task);
  // Records what is queued, NULL: no longer.
  void Record(std::shared_ptr<Recording> recording);
  std::shared_ptr<Recording> recording();
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
  std::shared_ptr<Recording> recording_;
  uint64_t queued_ = 0, done_ = 0, hurried_ = 0;  // numbers of tasks
  bool stopped_ = false;
  Runner runner_;  // the worker's
  std::thread worker_;
};

// A place in a stream, made by each EventRecord.
struct Record {
  std::shared_ptr<Stream> stream;
  uint64_t number = 0;
  Clock::time_point time;                // once the stream reached the number
  std::shared_ptr<Recording> recording;  // that it is a place of, and no place in time
  Recording::Seen seen;
};

}  // namespace simt
