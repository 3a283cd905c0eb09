// The worker of a stream.
#include "plugins/simt/streams.h"

#include <algorithm>
#include <cstdlib>

namespace simt {
namespace {
Clock::duration Delay() {
  const char* text = std::getenv("MICA_SIMT_LATE");
  return std::chrono::milliseconds(text ? std::atoi(text) : 1);
}
}  // namespace

Stream::Stream(int device, Memory& memory, std::function<void()> keep_error)
    : device_(device), memory_(memory), keep_error_(std::move(keep_error)), delay_(Delay()) {
  worker_ = std::thread([this] { Work(); });
}

void Recording::Add(const Stream* stream, Task task) {
  std::lock_guard<std::mutex> lock(mutex_);
  tasks_.push_back(std::move(task));
  ++seen_[stream][stream];
}

Recording::Seen Recording::SeenBy(const Stream* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  return seen_[stream];
}

void Recording::Merge(const Stream* stream, const Seen& other) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [of, count] : other) {
    size_t& known = seen_[stream][of];
    known = std::max(known, count);
  }
}

bool Recording::HasUnjoined(const Stream* origin) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [stream, seen] : seen_) {
    const auto own = seen.find(stream);
    if (own != seen.end() && seen_[origin][stream] < own->second) return true;
  }
  return false;
}

void Recording::Run(Runner& runner) const {
  for (const Task& task : tasks_) task(runner);
}

void Stream::Record(std::shared_ptr<Recording> recording) {
  std::lock_guard<std::mutex> lock(mutex_);
  recording_.swap(recording);
}

std::shared_ptr<Recording> Stream::recording() {
  std::lock_guard<std::mutex> lock(mutex_);
  return recording_;
}

uint64_t Stream::Queue(Task task) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (recording_) {
    recording_->Add(this, std::move(task));
    return 0;
  }
  if (stopped_) return queued_;
  queue_.push_back({std::move(task), Clock::now()});
  work_.notify_one();
  return ++queued_;
}

void Stream::Wait(uint64_t number) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (done_ >= number) return;
  if (hurried_ < number) {
    hurried_ = number;
    work_.notify_one();
  }
  done_changed_.wait(lock, [&] { return done_ >= number || stopped_; });
}

void Stream::WaitAll() {
  uint64_t number;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    number = queued_;
  }
  Wait(number);
}

bool Stream::Reached(uint64_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  return done_ >= number;
}

bool Stream::Done() {
  std::lock_guard<std::mutex> lock(mutex_);
  return done_ == queued_;
}

void Stream::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    work_.notify_one();
    done_changed_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
}

bool Stream::IsDue(Clock::time_point now) const {
  return hurried_ > done_ || now - queue_.front().since >= delay_;
}

void Stream::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stopped_ || !queue_.empty(); });
    if (stopped_) return;
    work_.wait_until(lock, queue_.front().since + delay_, [&] { return stopped_ || hurried_ > done_; });
    Memory::Access access(memory_);
    while (!stopped_ && !queue_.empty() && IsDue(Clock::now())) {
      Task task = std::move(queue_.front().task);
      queue_.pop_front();
      lock.unlock();
      try {
        task(runner_);
      } catch (...) {
        keep_error_();
      }
      task = nullptr;  // what it holds may be a stream: not under the lock
      lock.lock();
      ++done_;
      done_changed_.notify_all();
    }
  }
}

}  // namespace simt
