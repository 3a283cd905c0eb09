#include "plugins/gloo/group.h"

#include <algorithm>
#include <stdexcept>
#include <system_error>

#include <mica/plugin.h>

namespace mica::gloo_engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMessageSlots = uint64_t{0x42} << 56;
constexpr const char* kNames[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
                                  "gather",     "scatter",   "send",       "recv",           "barrier"};

bool IsMessage(const Work& work) { return work.call.kind == MICA_SEND || work.call.kind == MICA_RECV; }

std::string Number(int64_t n) { return "(" + std::to_string(n) + ")"; }

// Messages meet where tag, dtype and number of bytes agree.
uint64_t SlotOf(const MicaCollective& call) {
  const int64_t count = call.kind == MICA_SEND ? call.input_count : call.output_count;
  return kMessageSlots | Mixed(Mixed(Mixed(0, call.tag), call.dtype), count) >> 8;
}

}  // namespace

std::string NameOf(const Work& work) {
  const std::string name = kNames[work.call.kind];
  if (work.call.kind == MICA_SEND) return name + " to rank " + Number(work.call.peer);
  if (work.call.kind == MICA_RECV) return name + " from rank " + Number(work.call.peer);
  return name + " number " + Number(work.number);
}

Group::Group(std::string name, int32_t rank, int32_t size, std::chrono::nanoseconds timeout)
    : name_(std::move(name)),
      rank_(rank),
      size_(size),
      timeout_(std::max(std::chrono::duration_cast<std::chrono::milliseconds>(timeout),
                        std::chrono::milliseconds(1))),
      context_(std::make_shared<Context>(rank, size, timeout_)) {
  address_ = context_->Address();
  connected_ = size == 1;
  runner_ = std::thread([this] { RunCollectives(); });
}

Group::~Group() {
  runner_.join();
  for (Message& message : messages_)
    if (message.thread.joinable()) message.thread.join();
}

void Group::Connect(const std::vector<std::string>& addresses) {
  context_->Connect(addresses);
  const std::lock_guard<std::mutex> lock(mutex_);
  connected_ = true;
}

std::string Group::Explain(const Work& work, double seconds, const std::string& reason) const {
  const bool late = seconds >= 0.99 * std::chrono::duration<double>(timeout_).count();
  return "Rank " + Number(rank_) + (late ? " has waited in " : " lost its connection in ") + NameOf(work) +
         " of the group (" + name_ + ")" +
         (late ? " for longer than the timeout: another rank did not come, or called something else there."
               : ": another rank ended, or failed before.") +
         " Gloo says: " + reason;
}

template <class F>
void Group::Finish(Work* work, F run) {
  std::unique_lock<std::mutex> lock(mutex_);
  int64_t code = broken_.empty() ? 0 : MICA_ERROR_RUNTIME;
  std::string error = broken_;
  lock.unlock();
  if (!code) {
    const auto begun = Clock::now();
    try {
      run();
    } catch (const plugin::Error& e) {  // of this call alone: the arithmetic refuses a dtype on all ranks
      code = e.code;
      error = e.what();
    } catch (const std::bad_alloc&) {
      code = MICA_ERROR_OUT_OF_MEMORY;
      error = "There is no memory for " + NameOf(*work) + ".";
    } catch (const std::exception& e) {
      code = MICA_ERROR_RUNTIME;
      error = Explain(*work, std::chrono::duration<double>(Clock::now() - begun).count(), e.what());
      lock.lock();
      if (closing_) error = broken_;
      if (broken_.empty()) broken_ = error;
      lock.unlock();
    }
  }
  work->message.reset();
  if (work->done) work->done(work->held);
  lock.lock();
  work->code = code;
  work->error = std::move(error);
  work->finished = true;
  lock.unlock();  // else those that wake up would wait for it
  ended_.notify_all();
}

void Group::RunCollectives() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::shared_ptr<Work> work = std::move(waiting_.front());
    waiting_.pop_front();
    runs_ = true;
    lock.unlock();
    Finish(work.get(), [&] { RunCollective(context_, *work); });
    lock.lock();
    runs_ = false;
  }
}

void Group::Post(const std::shared_ptr<Work>& work) {
  const MicaCollective& call = work->call;
  const bool sends = call.kind == MICA_SEND;
  void* const memory = sends ? const_cast<void*>(call.input) : call.output;
  const int64_t count = sends ? call.input_count : call.output_count;
  work->message = context_->createUnboundBuffer(memory, static_cast<size_t>(count * call.item_size));
  if (sends)
    work->message->send(call.peer, SlotOf(call));
  else
    work->message->recv(call.peer, SlotOf(call));
}

void Group::JoinEnded() {
  for (auto i = messages_.begin(); i != messages_.end();) {
    if (i->ended) i->thread.join();
    i = i->ended ? messages_.erase(i) : std::next(i);
  }
}

void Group::AwaitMessage(Message* message, const std::string& refused) {
  Finish(message->work.get(), [&] {
    if (!refused.empty()) throw std::runtime_error(refused);
    if (message->work->call.kind == MICA_SEND)
      message->work->message->waitSend(timeout_);
    else
      message->work->message->waitRecv(timeout_);
  });
  const std::lock_guard<std::mutex> lock(mutex_);
  message->ended = true;
}

void Group::Start(const std::shared_ptr<Work>& work) {
  std::unique_lock<std::mutex> lock(mutex_);
  MICA_PLUGIN_CHECK(connected_, MICA_ERROR_RUNTIME,
                    "The ranks of the group (" + name_ +
                        ") are not connected yet; call connect with the addresses of all before " +
                        NameOf(*work) + ".");
  if (!IsMessage(*work)) {
    work->number = next_++;
    waiting_.push_back(work);
    lock.unlock();
    arrived_.notify_one();
    return;
  }
  JoinEnded();
  messages_.emplace_back();
  Message* const message = &messages_.back();
  message->work = work;
  const bool broken = !broken_.empty();
  lock.unlock();
  std::string refused;
  try {
    if (!broken) Post(work);
  } catch (const std::exception& e) {
    refused = e.what();
  }
  try {
    message->thread = std::thread([this, message, refused] { AwaitMessage(message, refused); });
  } catch (const std::system_error&) {  // no more threads: Gloo must not touch the memory any more
    work->message.reset();
    lock.lock();
    messages_.pop_back();
    throw;
  }
}

bool Group::Wait(const Work& work, std::chrono::nanoseconds most) {
  std::unique_lock<std::mutex> lock(mutex_);
  return ended_.wait_for(lock, most, [&] { return work.finished; });
}

void Group::Close() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (broken_.empty())
    broken_ = "Rank " + Number(rank_) + " has left the group (" + name_ + ") before this collective ended.";
  closing_ = true;
  JoinEnded();
  const bool busy = runs_ || !waiting_.empty() || !messages_.empty();
  lock.unlock();
  arrived_.notify_one();
  // Else the connections close with the group, after what was sent has left.
  if (busy && size_ > 1) context_->Abort();
}

}  // namespace mica::gloo_engine
