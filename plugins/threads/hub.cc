#include "plugins/threads/hub.h"

#include <algorithm>

#include <mica/plugin.h>

namespace mica::threads {
namespace {

bool IsMessage(const MicaCollective& call) { return call.kind == MICA_SEND || call.kind == MICA_RECV; }

// Tells the owners of the memory that nobody touches it any more; without the lock, as they may call back.
void End(std::vector<Part>& parts) {
  for (Part& part : parts)
    if (part.done) part.done(part.held);
}

std::vector<Part> TakeEnds(Slot* slot) {
  std::vector<Part> ended;
  for (Part& part : slot->parts)
    if (part.done) {
      ended.push_back(part);
      part.done = nullptr;
    }
  return ended;
}

}  // namespace

bool Slot::full() const {
  return std::all_of(parts.begin(), parts.end(), [](const Part& part) { return part.arrived; });
}

bool Hub::HasLeft(int32_t rank) {
  const Lock lock(mutex_);
  return rank < static_cast<int32_t>(gone_.size()) && gone_[rank];
}

std::shared_ptr<Hub> Hub::Named(const std::string& name, int32_t rank, int32_t size) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Hub>> hubs;
  const std::lock_guard<std::mutex> lock(mutex);
  for (auto i = hubs.begin(); i != hubs.end();) i = i->second.expired() ? hubs.erase(i) : std::next(i);
  std::shared_ptr<Hub> hub = hubs[name].lock();
  if (!hub || hub->HasLeft(rank)) hubs[name] = hub = std::make_shared<Hub>(size);
  MICA_PLUGIN_CHECK(static_cast<int32_t>(hub->next_.size()) == size, MICA_ERROR_VALUE,
                    "The group (" + name + ") has (" + std::to_string(hub->next_.size()) +
                        ") ranks for one of them and (" + std::to_string(size) + ") for another.");
  return hub;
}

void Hub::Enter(int32_t rank) {
  const Lock lock(mutex_);
  MICA_PLUGIN_CHECK(!here_[rank], MICA_ERROR_VALUE,
                    "Rank (" + std::to_string(rank) +
                        ") enters the group a second time; give each rank a "
                        "number of its own.");
  here_[rank] = 1;
}

std::string Hub::Missing(const Slot& slot) const {
  std::string text;
  for (size_t i = 0; i < slot.parts.size(); ++i)
    if (!slot.parts[i].arrived) text += (text.empty() ? "" : ", ") + std::to_string(slot.ranks[i]);
  return text;
}

std::shared_ptr<Slot> Hub::SlotOf(int32_t rank, const MicaCollective& call, size_t* place) {
  if (!IsMessage(call)) {
    *place = static_cast<size_t>(rank);
    std::shared_ptr<Slot>& slot = open_[next_[rank]];
    if (!slot) {
      slot = std::make_shared<Slot>();
      slot->number = next_[rank];
      slot->parts.resize(next_.size());
      for (size_t i = 0; i < next_.size(); ++i) slot->ranks.push_back(static_cast<int32_t>(i));
    }
    ++next_[rank];
    return slot;
  }
  const bool sends = call.kind == MICA_SEND;
  *place = sends ? 0 : 1;
  const Line line = sends ? Line{rank, call.peer, call.tag} : Line{call.peer, rank, call.tag};
  auto& waiting = messages_[line];
  if (!waiting.empty() && !waiting.front()->parts[*place].arrived) return waiting.front();
  auto slot = std::make_shared<Slot>();
  slot->parts.resize(2);
  slot->ranks = {std::get<0>(line), std::get<1>(line)};
  waiting.push_back(slot);
  return slot;
}

void Hub::Fail(Slot* slot, int64_t code, std::string error, std::vector<Part>* ended) {
  if (slot->finished) return;
  slot->finished = true;
  slot->code = code;
  slot->error = std::move(error);
  for (const Part& part : TakeEnds(slot)) ended->push_back(part);
  changed_.notify_all();
}

std::shared_ptr<Slot> Hub::Start(int32_t rank, Part part) {
  std::vector<Part> ended;
  Lock lock(mutex_);
  size_t place = 0;
  const std::shared_ptr<Slot> slot = SlotOf(rank, part.call, &place);
  part.arrived = true;
  slot->parts[place] = std::move(part);
  const MicaCollective& call = slot->parts[place].call;
  const bool full = slot->full();
  if (full && !IsMessage(call)) open_.erase(slot->number);
  if (full && IsMessage(call)) {
    const auto waiting = messages_.find({slot->ranks[0], slot->ranks[1], call.tag});
    waiting->second.pop_front();
    if (waiting->second.empty()) messages_.erase(waiting);
  }
  for (size_t i = 0; i < slot->parts.size(); ++i)
    if (!slot->parts[i].arrived && gone_[slot->ranks[i]])
      Fail(slot.get(), MICA_ERROR_RUNTIME,
           "Rank (" + std::to_string(rank) + ") calls " + NameOf(call, slot->number) + ", but rank (" +
               std::to_string(slot->ranks[i]) + ") has left the group.",
           &ended);
  if (slot->finished) {  // it failed before this rank came
    for (const Part& late : TakeEnds(slot.get())) ended.push_back(late);
  } else if (full) {
    lock.unlock();
    int64_t code = 0;
    std::string error;
    try {
      RunSlot(*slot);
    } catch (const plugin::Error& e) {
      code = e.code;
      error = e.what();
    } catch (const std::bad_alloc&) {
      code = MICA_ERROR_OUT_OF_MEMORY;
      error = "There is no memory for " + NameOf(call, slot->number) + ".";
    }
    lock.lock();
    Fail(slot.get(), code, error, &ended);
  }
  lock.unlock();
  End(ended);
  return slot;
}

bool Hub::Wait(Slot* slot, int32_t rank, std::chrono::nanoseconds most,
               std::chrono::steady_clock::time_point deadline) {
  std::vector<Part> ended;
  Lock lock(mutex_);
  const auto until = std::min(deadline, std::chrono::steady_clock::now() + most);
  changed_.wait_until(lock, until, [&] { return slot->finished; });
  if (!slot->finished && std::chrono::steady_clock::now() >= deadline) {
    const size_t place = std::find(slot->ranks.begin(), slot->ranks.end(), rank) - slot->ranks.begin();
    const std::string missing = Missing(*slot);
    if (!missing.empty())  // else it runs just now
      Fail(slot, MICA_ERROR_RUNTIME,
           "Rank (" + std::to_string(rank) + ") has waited for ranks (" + missing + ") in " +
               NameOf(slot->parts[place].call, slot->number) +
               " for longer than the timeout; see why they did not call it.",
           &ended);
  }
  const bool finished = slot->finished;
  lock.unlock();
  End(ended);
  return finished;
}

void Hub::Leave(int32_t rank) {
  std::vector<Part> ended;
  Lock lock(mutex_);
  gone_[rank] = true;
  const auto fail = [&](const std::shared_ptr<Slot>& slot) {
    const auto at = std::find(slot->ranks.begin(), slot->ranks.end(), rank);
    const auto first =
        std::find_if(slot->parts.begin(), slot->parts.end(), [](const Part& p) { return p.arrived; });
    if (at == slot->ranks.end() || first == slot->parts.end()) return;
    Fail(slot.get(), MICA_ERROR_RUNTIME,
         "Rank (" + std::to_string(rank) + ") has left the group, in which " +
             NameOf(first->call, slot->number) + " waits for ranks (" + Missing(*slot) + ").",
         &ended);
  };
  for (const auto& [number, slot] : open_) fail(slot);
  for (const auto& [line, slots] : messages_)
    for (const auto& slot : slots) fail(slot);
  lock.unlock();
  End(ended);
}

}  // namespace mica::threads
