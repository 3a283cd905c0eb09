#include "dispatcher/plugins/status.h"

#include <new>
#include <string>
#include <typeinfo>

#include "absl/strings/str_cat.h"

namespace mica {
namespace {

// A status with its text behind it, in one allocation, and the exception that it was made of: a plugin that
// hands on what it got from the host loses nothing of it.
struct HostStatus {
  MicaStatusBody body;
  std::string message;
  std::string file;
  std::exception_ptr exception;
};

void DestroyHostStatus(MicaStatusBody* body) { delete reinterpret_cast<HostStatus*>(body); }

// What a status of the host's own was made of; NULL for others.
std::exception_ptr ExceptionOf(MicaStatus status) {
  if (status->destroy != &DestroyHostStatus) return nullptr;
  return reinterpret_cast<HostStatus*>(status)->exception;
}

MicaStatus WithException(MicaStatus status) {
  if (!IsBareCode(status)) reinterpret_cast<HostStatus*>(status)->exception = std::current_exception();
  return status;
}

const char* SentenceOfCode(int64_t code) {
  switch (code) {
    case MICA_ERROR_NOT_IMPLEMENTED:
      return "The kernel does not support this call.";
    case MICA_ERROR_OUT_OF_MEMORY:
      return "The kernel ran out of memory.";
    case MICA_ERROR_INTERRUPTED:
      return "The call was interrupted.";
    case MICA_ERROR_DEVICE_LOST:
      return "The device is lost: it does nothing more in this process.";
    default:
      return "The kernel returned an error without a message.";
  }
}

ErrorKind KindOfCode(int64_t code) {
  return code >= MICA_ERROR_RUNTIME && code <= MICA_ERROR_DEVICE_LOST ? static_cast<ErrorKind>(code)
                                                                      : ErrorKind::kRuntime;
}

}  // namespace

void ThrowStatus(MicaStatus status) {
  if (IsBareCode(status)) {
    const auto code = static_cast<int64_t>(reinterpret_cast<uintptr_t>(status));
    throw Error(KindOfCode(code), SentenceOfCode(code), "", 0);
  }
  if (status->struct_size < sizeof(MicaStatusBody) || !status->destroy)
    throw Error(ErrorKind::kRuntime,
                absl::StrCat("A plugin returned a status of struct_size (", status->struct_size,
                             status->destroy ? ")" : ") without destroy", "; ABI 1.0 asks for (",
                             sizeof(MicaStatusBody), ") bytes and a destroy."),
                "", 0);
  std::string message = status->message_length > 0
                            ? std::string(status->message, static_cast<size_t>(status->message_length))
                            : std::string(SentenceOfCode(status->code));
  const ErrorKind kind = KindOfCode(status->code);
  const std::exception_ptr exception = ExceptionOf(status);
  status->destroy(status);
  if (exception) std::rethrow_exception(exception);
  throw Error(kind, std::move(message), "", 0);
}

bool HasOwnClass(MicaStatus status) {
  const std::exception_ptr exception = IsBareCode(status) ? nullptr : ExceptionOf(status);
  if (!exception) return false;
  try {
    std::rethrow_exception(exception);
  } catch (const Error& e) {
    return typeid(e) != typeid(Error);
  } catch (...) {
    return true;
  }
}

MicaStatus MakeStatus(ErrorKind kind, std::string_view message, const char* file, int line) {
  auto* s = new (std::nothrow) HostStatus{{}, std::string(message), file ? file : "", nullptr};
  if (!s) return BareStatus(static_cast<int>(kind));
  s->body.struct_size = sizeof(MicaStatusBody);
  s->body.code = static_cast<int64_t>(kind);
  s->body.destroy = &DestroyHostStatus;
  s->body.message = s->message.data();
  s->body.message_length = static_cast<int64_t>(s->message.size());
  s->body.file = s->file.c_str();
  s->body.line = line;
  return &s->body;
}

MicaStatus StatusOfCurrentException() noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return WithException(MakeStatus(e.kind(), e.message(), e.file(), e.line()));
  } catch (const std::bad_alloc&) {
    return BareStatus(MICA_ERROR_OUT_OF_MEMORY);
  } catch (const std::exception& e) {
    return WithException(MakeStatus(ErrorKind::kRuntime, e.what(), "", 0));
  } catch (...) {
    return WithException(
        MakeStatus(ErrorKind::kInternal, "An object that is no std::exception was thrown.", "", 0));
  }
}

}  // namespace mica
