#include "plugins/gpu/late_errors.h"

#include <cstring>

namespace gpu {

void* LateErrors::WordOf(const char* operator_name, const mica::kit::LateError& error) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const Kind& kind = kinds_[k];
    if (kind.error.code == error.code && kind.operator_name == operator_name &&
        kind.error.before == error.before && kind.error.after == error.after)
      return const_cast<int32_t*>(words_ + k);
  }
  if (kinds_.size() == kWords) return nullptr;
  if (!words_) {
    void* memory = driver_.PinnedAllocate(static_cast<int64_t>(kWords * sizeof(int32_t)));
    std::memset(memory, 0, kWords * sizeof(int32_t));
    words_ = static_cast<volatile int32_t*>(memory);
  }
  kinds_.push_back({operator_name, error});
  return const_cast<int32_t*>(words_ + kinds_.size() - 1);
}

void LateErrors::Raise() {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t first = kinds_.size();
  int32_t number = 0;
  for (size_t k = kinds_.size(); k-- > 0;) {
    if (words_[k] == 0) continue;
    first = k;
    number = words_[k];
    words_[k] = 0;
  }
  if (first == kinds_.size()) return;
  const Kind& kind = kinds_[first];
  std::string sentence = kind.error.Sentence(number);
  if (sentence.back() != '.') sentence += '.';
  const size_t name = kind.operator_name.rfind("mica::", 0) == 0 ? 6 : 0;
  MICA_PLUGIN_THROW(
      kind.error.code,
      sentence + " The operator (" + kind.operator_name.substr(name) + ") found this on the device (" +
          driver_.backend() + ":" + std::to_string(device_) +
          "), which computes later than it is called: what was computed of its result is void.");
}

}  // namespace gpu
