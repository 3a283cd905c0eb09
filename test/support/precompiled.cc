// The home of the tests' precompiled header: it holds Catch2, and nothing is here.
#include <catch2/catch.hpp>
