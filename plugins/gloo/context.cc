// Connections among ranks from addresses that they told each other.
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include <gloo/transport/tcp/device.h>
#include <mica/plugin.h>

#include "plugins/gloo/group.h"

namespace mica::gloo_engine {
namespace {

// The interface that GLOO_SOCKET_IFNAME names, as torch's; else that of the machine's name; else the
// loopback, over which ranks of one machine meet.
std::shared_ptr<::gloo::transport::Device> MakeDevice() {
  ::gloo::transport::tcp::attr attr;
  if (const char* const interface = std::getenv("GLOO_SOCKET_IFNAME")) {
    attr.iface = interface;
    return ::gloo::transport::tcp::CreateDevice(attr);
  }
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) == 0) {
    try {
      attr.hostname = name;
      return ::gloo::transport::tcp::CreateDevice(attr);
    } catch (const std::exception&) {  // the name has no address of this machine
    }
  }
  attr.hostname = "127.0.0.1";
  return ::gloo::transport::tcp::CreateDevice(attr);
}

}  // namespace

// Note [The loop's thread yields]
// Gloo's own thread, which reads what arrives, asks again and again while the thread that holds a connection
// is not running, so that on a busy core it keeps that thread from running for a whole slice of the scheduler
// (4 ms, on one of 0.3). As a batch thread it does not interrupt others when it wakes up. A new thread has
// the policy of the one that makes it.
class AsBatch {
 public:
  AsBatch() : before_(sched_getscheduler(0)) {
    const sched_param none{};
    changed_ = before_ == SCHED_OTHER && sched_setscheduler(0, SCHED_BATCH, &none) == 0;
  }
  ~AsBatch() {
    const sched_param none{};
    if (changed_) sched_setscheduler(0, before_, &none);
  }

 private:
  int before_;
  bool changed_;
};

Context::Context(int32_t rank, int32_t size, std::chrono::milliseconds timeout)
    : ::gloo::Context(rank, size) {
  setTimeout(timeout);
  if (size == 1) return;  // nobody to reach
  {
    const AsBatch batch;
    device_ = MakeDevice();
  }
  transportContext_ = device_->createContext(rank, size);
  transportContext_->setTimeout(timeout);
  for (int other = 0; other < size; ++other)
    if (other != rank) transportContext_->createPair(other);
}

std::string Context::Address() const {
  std::string all;
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    const std::vector<char> bytes = transportContext_->getPair(other)->address().bytes();
    all.append(bytes.data(), bytes.size());
  }
  return all;
}

void Context::Connect(const std::vector<std::string>& addresses) {
  const size_t others = static_cast<size_t>(size - 1);
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    const std::string& all = addresses[other];
    const std::string number = "(" + std::to_string(other) + ")";
    const size_t length = all.size() / others;
    MICA_PLUGIN_CHECK(length > 0 && all.size() % others == 0, MICA_ERROR_VALUE,
                      "The address of rank " + number + " has (" + std::to_string(all.size()) +
                          ") bytes, which are none of the engine `gloo` with (" + std::to_string(size) +
                          ") ranks; all ranks give the same backend and world_size.");
    const char* const mine = all.data() + length * static_cast<size_t>(rank < other ? rank : rank - 1);
    try {
      transportContext_->getPair(other)->connect({mine, mine + length});
    } catch (const std::exception& e) {
      MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, "Rank (" + std::to_string(rank) + ") could not connect to rank " +
                                                number + " within the timeout (" +
                                                std::to_string(getTimeout().count() / 1e3) +
                                                " s): " + e.what());
    }
  }
}

void Context::Abort() {
  char byte = 0;
  const auto never = createUnboundBuffer(&byte, 1);
  try {
    never->waitRecv(std::chrono::milliseconds(1));
  } catch (const std::exception&) {  // as meant
  }
}

}  // namespace mica::gloo_engine
