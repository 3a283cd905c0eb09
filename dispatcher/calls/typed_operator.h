// Operators as C++ functions: their calls, one instance per *signature*, not per operator.
//
// `Signature` is the C++ function type of the operator; in-place and out forms return
// void here (the generated function returns the written argument). The definitions stand
// in typed_operator_impl.h; those of the operators' signatures are compiled once, in the
// generated calls_<i>.cc, and a caller only passes the operator on.
#pragma once

#include "tensor/key_set.h"

namespace mica {

class Operator;

template <typename Signature>
struct TypedOperator;
template <typename R, typename... A>
struct TypedOperator<R(A...)> {
  static R Call(const Operator& op, A... a);
  // `keys` as a layer's kernel got them, less the layer and all above.
  static R Redispatch(const Operator& op, KeySet keys, A... a);
};

// What the generated struct of an operator is: its object, and the calls of its signature.
template <Operator& kOperator, typename Signature_>
struct OperatorCalls;
template <Operator& kOperator, typename R, typename... A>
struct OperatorCalls<kOperator, R(A...)> {
  using Signature = R(A...);
  static Operator& op() { return kOperator; }
  static R call(A... a) { return TypedOperator<Signature>::Call(kOperator, a...); }
  static R redispatch(KeySet keys, A... a) {
    return TypedOperator<Signature>::Redispatch(kOperator, keys, a...);
  }
};

}  // namespace mica
