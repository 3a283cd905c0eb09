#include "dispatcher/devices/late_errors.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/driven_table.h"
#include "dispatcher/devices/graphs.h"
#include "dispatcher/devices/streams.h"
#include "dispatcher/plugins/status.h"
#include "tensor/error.h"

namespace mica {
namespace {

constexpr uint64_t kKept = 512;  // launches of a device
constexpr size_t kSaid = 24;     // kinds of them in a message

// Slots are written without a lock: a launch that is read while another takes its place is said as one of the
// two, which is all that a message needs.
struct Launch {
  std::atomic<const char*> what{nullptr};  // NULL: waited for
  std::atomic<uint64_t> stream{0};
};
struct Log {
  std::atomic<MicaStatus> late{nullptr};
  std::string lost_words;           // of the status that it is lost, and what ran; guarded by Logs::mutex
  std::atomic<bool> untold{false};  // that it is lost
  std::atomic<uint64_t> count{0};
  std::atomic<uint64_t> waited{0};  // the launches before this one were waited for
  std::array<Launch, kKept> launches;
  Launch& At(uint64_t number) { return launches[number % kKept]; }
  // The number of the oldest launch that counts.
  uint64_t Begin(uint64_t end) const {
    return std::max(waited.load(std::memory_order_relaxed), end > kKept ? end - kKept : 0);
  }
};

struct Logs {
  std::mutex mutex;
  std::map<std::pair<int, int>, std::unique_ptr<Log>> of;  // by backend and number
};
// Never destroyed: devices end after statics do.
Logs& AllLogs() {
  static auto* logs = new Logs();
  return *logs;
}
Log& LogOf(Device device) {
  static thread_local std::pair<Device, Log*> last{{}, nullptr};
  if (last.second && last.first == device) return *last.second;
  Logs& logs = AllLogs();
  const std::lock_guard lock(logs.mutex);
  std::unique_ptr<Log>& log = logs.of[{device.backend, device.index}];
  if (!log) log = std::make_unique<Log>();
  last = {device, log.get()};
  return *log;
}

struct Ran {
  const char* what;
  uint64_t stream;
  int times;
};

// What ran since the device was last waited for, the newest first; "" where nothing did.
std::string RanSentence(Device device) {
  Log& log = LogOf(device);
  const uint64_t end = log.count.load(std::memory_order_acquire);
  std::vector<Ran> ran;
  for (uint64_t i = end; i-- > log.Begin(end);) {
    const char* const what = log.At(i).what.load(std::memory_order_relaxed);
    const uint64_t stream = log.At(i).stream.load(std::memory_order_relaxed);
    if (!what) continue;
    const auto same = std::find_if(ran.begin(), ran.end(),
                                   [&](const Ran& r) { return r.what == what && r.stream == stream; });
    if (same == ran.end())
      ran.push_back({what, stream, 1});
    else
      ++same->times;
  }
  std::string said;
  for (size_t i = 0; i < std::min(ran.size(), kSaid); ++i)
    absl::StrAppend(&said, said.empty() ? "" : ", ", absl::StripPrefix(ran[i].what, "mica::"), " in stream (",
                    ran[i].stream, ")", ran[i].times > 1 ? absl::StrCat(" ", ran[i].times, " times") : "");
  if (said.empty()) return "";
  return absl::StrCat(" It may come from earlier work: since the device (", device.ToString(),
                      ") was last waited for it ran, the newest first, ", said,
                      ran.size() > kSaid ? absl::StrCat(" and ", ran.size() - kSaid, " others") : "",
                      ". MICA_LAUNCH_BLOCKING=1 waits after each operator.");
}

// Throws the error of the status, with what ran where it is the device's own.
[[noreturn]] void ThrowReported(Device device, MicaStatus status) {
  if (HasOwnClass(status)) ThrowStatus(status);
  try {
    ThrowStatus(status);
  } catch (const Error& e) {
    const std::string ran = RanSentence(device);
    const bool of_the_device = e.kind() == ErrorKind::kRuntime || e.kind() == ErrorKind::kInternal;
    if (!of_the_device || ran.empty() || absl::StrContains(e.message(), "last waited for")) throw;
    std::string message = e.message();
    message.insert(std::min(message.find('\n'), message.size()), ran);
    throw Error(e.kind(), std::move(message), e.file(), e.line());
  }
}

std::string LostSentence(Device device) {
  Log& log = LogOf(device);
  const std::lock_guard lock(AllLogs().mutex);
  return absl::StrCat("The device (", device.ToString(),
                      ") is lost and does nothing more in this process; tensors of the CPU and of other "
                      "devices can still be used and saved.",
                      log.lost_words);
}

[[noreturn]] void ThrowLost(Device device) {
  std::string sentence = LostSentence(device);  // which waits for who is noting the loss
  LogOf(device).untold.store(false);
  MICA_THROW(kDeviceLost, sentence);
}

bool Blocking() {
  static const bool blocking = [] {
    const char* const value = std::getenv("MICA_LAUNCH_BLOCKING");
    return value && std::string_view(value) == "1";
  }();
  return blocking;
}

}  // namespace

void KeepLate(Device device, MicaStatus status) noexcept {
  if (!status) return;
  if (CodeOf(status) == MICA_ERROR_DEVICE_LOST) return DropStatus(status);  // its table was noted as lost
  MicaStatus none = nullptr;
  const MicaStatus kept = CatchAll([&] { ThrowReported(device, status); });
  if (!LogOf(device).late.compare_exchange_strong(none, kept)) DropStatus(kept);
}

void RaiseReported(Device device, MicaStatus status) {
  if (!status) [[likely]]
    return;
  if (const MicaStatus kept = LogOf(device).late.exchange(nullptr)) {
    DropStatus(status);
    ThrowStatus(kept);
  }
  if (CodeOf(status) != MICA_ERROR_DEVICE_LOST) ThrowReported(device, status);
  DropStatus(status);
  ThrowLost(device);
}

void RaiseOfKernel(Device device, MicaStatus status) {
  if (!status) [[likely]]
    return;
  const MicaDeviceTable* const table = DeviceTable(device.backend);
  if (table && CodeOf(status) == MICA_ERROR_DEVICE_LOST) NoteLost(*table, device, status);
  RaiseReported(device, status);
}

void RaiseLate(Device device) {
  Log& log = LogOf(device);
  const bool lost = IsLost(device);
  if (!log.late.load(std::memory_order_relaxed) && !lost) [[likely]]
    return;
  if (const MicaStatus kept = log.late.exchange(nullptr)) ThrowStatus(kept);
  if (lost) ThrowLost(device);
}

void NoteLost(const MicaDeviceTable& driven, Device device, MicaStatus status) {
  if (IsLost(driven, device.index)) return;
  Log& log = LogOf(device);
  std::string words;
  if (!IsBareCode(status) && status->message_length > 0)
    words = absl::StrCat(" It said: ",
                         absl::string_view(status->message, static_cast<size_t>(status->message_length)));
  absl::StrAppend(&words, RanSentence(device));
  const std::lock_guard lock(AllLogs().mutex);  // who sees the mark waits here for the words
  if (!SetLost(driven, device.index)) return;
  log.lost_words = std::move(words);
  log.untold.store(true);
}

void NobodyWasTold(Device device) { LogOf(device).untold.store(true); }

bool IsLost(Device device) {
  const MicaDeviceTable* const table = DeviceTable(device.backend);
  return table && IsLost(*table, device.index);
}

std::vector<std::string> TakeLateErrors() {
  std::vector<std::pair<Device, Log*>> logs;
  {
    const std::lock_guard lock(AllLogs().mutex);
    for (const auto& [place, log] : AllLogs().of)
      logs.push_back({{static_cast<int16_t>(place.first), static_cast<int16_t>(place.second)}, log.get()});
  }
  std::vector<std::string> sentences;
  for (const auto& [device, log] : logs) {
    if (log->untold.load()) sentences.push_back(LostSentence(device));
    const MicaStatus kept = log->late.exchange(nullptr);
    if (!kept) continue;
    try {
      ThrowStatus(kept);
    } catch (const std::exception& e) {
      sentences.emplace_back(e.what());
    }
  }
  return sentences;
}

void Launched(Device device, const char* what, uint64_t stream) {
  Log& log = LogOf(device);
  Launch& launch = log.At(log.count.fetch_add(1, std::memory_order_acq_rel));
  launch.stream.store(stream, std::memory_order_relaxed);
  launch.what.store(what, std::memory_order_relaxed);
  if (Blocking() && !Recording() && !IsRecorded({device, stream})) SynchronizeStream({device, stream});
}

WaitedFor::WaitedFor(Device device, std::optional<uint64_t> stream)
    : device_(device), stream_(stream), count_(LogOf(device).count.load(std::memory_order_acquire)) {}

WaitedFor::~WaitedFor() {
  Log& log = LogOf(device_);
  uint64_t left = count_;  // the oldest launch of another stream
  for (uint64_t i = count_; stream_ && i-- > log.Begin(count_);) {
    Launch& launch = log.At(i);
    if (launch.stream.load(std::memory_order_relaxed) == *stream_)
      launch.what.store(nullptr, std::memory_order_relaxed);
    else if (launch.what.load(std::memory_order_relaxed))
      left = i;
  }
  uint64_t before = log.waited.load(std::memory_order_relaxed);
  while (before < left && !log.waited.compare_exchange_weak(before, left)) {
  }
}

}  // namespace mica
