// Error: construction, context, and the one throwing function of the macros.
#include "tensor/error.h"

namespace mica {

Error::Error(ErrorKind kind, std::string message, const char* file, int line)
    : kind_(kind), message_(std::move(message)), file_(file), line_(line) {}

Error::~Error() = default;

void Error::AddContext(const std::string& call) {
  if (has_context_) return;
  has_context_ = true;
  absl::StrAppend(&message_, "\n  in ", call);
}

namespace internal {

void Throw(ErrorKind kind, std::string message, const char* file, int line) {
  throw Error(kind, std::move(message), file, line);
}

}  // namespace internal
}  // namespace mica
