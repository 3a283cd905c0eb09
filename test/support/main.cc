// The main program of every C++ test: Catch2's own, compiled once for all.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
