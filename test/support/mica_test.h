// What every C++ test includes: Catch2, and the helpers that several modules share.
//
// Each folder of test/unit is one program, whose main is in main.cc. Write
// TEST_CASE("what holds", "[module]"); tags name the module. MICA_REQUIRE_ERROR
// checks the sentence that a mistake gives, because the sentence is part of what
// an operator promises.
#pragma once

#include <catch2/catch.hpp>
#include <exception>
#include <string>

// `expression` throws, and what() contains `text`.
#define MICA_REQUIRE_ERROR(expression, text)                  \
  do {                                                        \
    std::string mica_what = "nothing was thrown";             \
    try {                                                     \
      static_cast<void>(expression);                          \
    } catch (const std::exception& error) {                   \
      mica_what = error.what();                               \
    }                                                         \
    REQUIRE_THAT(mica_what, Catch::Matchers::Contains(text)); \
  } while (false)
