// What value.cc and borrow.cc share of Value's inside.
#pragma once

#include <vector>

#include "schema/value.h"

namespace mica {

// Scalars and, because a Scalar is no MicaScalar, the borrowed array over them.
// Complex entries of `abi` point into `values`, so neither changes once made.
struct Value::ScalarList {
  explicit ScalarList(std::vector<Scalar> v);
  ScalarList(const ScalarList&) = delete;
  ScalarList& operator=(const ScalarList&) = delete;

  std::vector<Scalar> values;
  std::vector<MicaScalar> abi;
};

}  // namespace mica
