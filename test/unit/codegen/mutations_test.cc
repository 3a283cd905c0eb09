// Random changes of right files: each ends in a model or in a message with a
// place, never in a crash.
#include <fstream>
#include <random>
#include <sstream>

#include "codegen/emit/emitters.h"
#include "test/unit/codegen/codegen_test.h"

namespace mica::codegen {
namespace {

std::string ReadGolden() {
  std::ifstream in(std::string(MICA_SOURCE_DIR) + "/test/unit/codegen/golden/native.yaml", std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

constexpr const char* kDerivatives =
    "helpers:\n- pick(Tensor grad, Tensor x) -> (Tensor, Tensor)\nderivatives:\n- op: add.Tensor\n  self: "
    "grad\n"
    "  other: sum(grad, None) if is_complex(self) else total(grad, other)\n- op: sum.dim\n  self: "
    "transpose(grad, 0, 1)\n";

// Deletes, doubles, or replaces a few bytes, or takes a piece from elsewhere.
std::string Mutate(std::string text, std::mt19937& random) {
  static constexpr std::string_view kBytes = "()[]{}:,-+*/.\"'#&|?!<>= \n\tab01_";
  const int changes = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < changes && !text.empty(); ++i) {
    const size_t at = random() % text.size();
    switch (random() % 4) {
      case 0:
        text.erase(at, 1 + random() % 8);
        break;
      case 1:
        text.insert(at, text.substr(random() % text.size(), random() % 16));
        break;
      case 2:
        text[at] = kBytes[random() % kBytes.size()];
        break;
      default:
        text.insert(at, 1, kBytes[random() % kBytes.size()]);
        break;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("mutated files end in a model or in a message with a place", "[codegen]") {
  const std::string native = ReadGolden();
  std::mt19937 random(7);
  int models = 0, mistakes = 0;
  for (int i = 0; i < 4000; ++i) {
    const bool change_native = i % 2 == 0;
    try {
      LoadTexts(change_native ? Mutate(native, random) : native,
                change_native ? kDerivatives : Mutate(kDerivatives, random));
      ++models;
    } catch (const std::exception& error) {
      const std::string message = error.what();
      INFO(message);
      REQUIRE((message.starts_with("native.yaml:") || message.starts_with("derivatives.yaml:")));
      REQUIRE(message.find("xpected") != std::string::npos);
      ++mistakes;
    }
  }
  CHECK(models > 100);
  CHECK(mistakes > 1000);
}

}  // namespace mica::codegen
