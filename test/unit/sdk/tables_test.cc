// The question that a reader of a table asks: is this member inside, and not NULL?
#include <mica/abi.h>
#include "test/support/mica_test.h"

namespace mica::plugin {
namespace {

int32_t Interrupted() { return 0; }

TEST_CASE("a member is there when it lies inside the table's size and is not NULL", "[sdk]") {
  MicaHost host{};
  host.interrupted = &Interrupted;
  struct Row {
    uint64_t size;
    bool has;
  };
  const uint64_t at = offsetof(MicaHost, interrupted);
  for (const Row& row : {Row{0, false}, Row{at, false}, Row{at + 7, false}, Row{at + 8, true},
                         Row{sizeof(MicaHost), true}, Row{sizeof(MicaHost) + 800, true}}) {
    host.struct_size = row.size;
    INFO(row.size);
    CHECK(MICA_HAS(&host, interrupted) == row.has);
    CHECK_FALSE(MICA_HAS(&host, warn));
  }
}

TEST_CASE("1.0 is there when both tables have its size", "[sdk]") {
  MicaHost host{};
  MicaRegistrar registrar{};
  host.struct_size = MICA_HOST_SIZE_1_0;
  registrar.struct_size = MICA_REGISTRAR_SIZE_1_0;
  CHECK(MICA_IS_1_0(&host, &registrar));
  host.struct_size -= 8;
  CHECK_FALSE(MICA_IS_1_0(&host, &registrar));
  host.struct_size += 80;
  registrar.struct_size -= 8;
  CHECK_FALSE(MICA_IS_1_0(&host, &registrar));
}

}  // namespace
}  // namespace mica::plugin
