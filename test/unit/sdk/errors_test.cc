// Errors on their way through a plugin: from a status of the host, as an exception, to a status of its own.
#include <cstring>
#include <string>

#include <mica/plugin.h>
#include "test/support/mica_test.h"

namespace mica::plugin {
namespace {

// A status that overwrites its texts when it is destroyed, as an allocator may.
struct Passing {
  MicaStatusBody body{};
  char message[16] = "It is negative.";
  char file[16] = "kernels/host.cc";

  Passing() {
    body.struct_size = sizeof(body);
    body.code = MICA_ERROR_VALUE;
    body.message = message;
    body.message_length = static_cast<int64_t>(std::strlen(message));
    body.file = file;
    body.line = 7;
    body.destroy = [](MicaStatus status) {
      auto* self = reinterpret_cast<Passing*>(status);
      std::memset(self->message, 'x', sizeof(self->message) - 1);
      std::memset(self->file, 'x', sizeof(self->file) - 1);
    };
  }
};

TEST_CASE("an error made from a status keeps its message and its place when the status is gone", "[sdk]") {
  Passing status;
  try {
    Check(&status.body);
    FAIL("Check took a status for success");
  } catch (const Error& e) {
    CHECK(e.code == MICA_ERROR_VALUE);
    CHECK(std::string(e.what()) == "It is negative.");
    CHECK(std::string(e.file) == "kernels/host.cc");
    CHECK(e.line == 7);
  }
  CHECK(std::string(status.file) == "xxxxxxxxxxxxxxx");
}

TEST_CASE("a status may come without a place", "[sdk]") {
  Passing status;
  status.body.file = nullptr;
  try {
    Check(&status.body);
    FAIL("Check took a status for success");
  } catch (const Error& e) {
    CHECK(std::string(e.file).empty());
  }
}

}  // namespace
}  // namespace mica::plugin
