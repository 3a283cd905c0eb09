"""Wrong use of transforms, layers and the graph: one exception each, whose sentence says what is
wrong (`cause`) and what usually mends it (`fix`). The process goes on as if nothing had been."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import mica
from mica.func import grad, jacfwd, jacrev, jvp, vjp, vmap
from mica.fx import make_fx


def batch() -> mica.Tensor:
    return mica.tensor([[1.0, 2.0], [3.0, 4.0]])


def leaf() -> mica.Tensor:
    return batch().requires_grad_()


def escaped(transform: Callable[[Any, Any], Any]) -> Any:
    kept: list[Any] = []
    transform(lambda x: (kept.append(x * 2), x.sum())[1], batch())
    return kept[0] + 1


def freed() -> None:
    y = leaf().exp().sum()
    y.backward()
    y.backward()


def written() -> None:
    y = leaf() * 2
    z = y.sin()
    y.zero_()
    z.sum().backward()


def written_view() -> None:
    x = leaf()
    with mica.no_grad():
        view = x[0]
    view.add_(1)


def inference() -> mica.Tensor:
    with mica.inference_mode():
        x = mica.ones(2)
    return leaf() * x


class OldStyle(mica.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: mica.Tensor) -> mica.Tensor:
        return x * 2


class NoRule(mica.autograd.Function):
    @staticmethod
    def forward(x: mica.Tensor) -> mica.Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: mica.Tensor) -> mica.Tensor:
        return g * 2


@dataclass(frozen=True)
class Case:
    call: Callable[[], Any]
    kind: type[Exception]
    cause: str
    fix: str


KEPT = mica.zeros(2)
CASES = {
    # writes
    "a batch into a captured tensor": Case(
        lambda: vmap(KEPT.copy_)(batch()),
        RuntimeError,
        r"copy_ writes a tensor .* that the function of vmap captured",
        r"make it inside \(x.new_zeros\(...\)\)",
    ),
    "a batch into an expanded tensor": Case(
        lambda: vmap(lambda x: mica.zeros(1, 2).expand(2, 2).add_(x))(batch()),
        RuntimeError,
        "more than one element of the written-to tensor refers to a single memory location",
        "Please clone()",
    ),
    "a tracked value into a captured tensor": Case(
        lambda: grad(lambda x: (KEPT.copy_(x[0]), x.sum())[1])(batch()),
        RuntimeError,
        "captured from outside, with values that belong to this grad",
        "Pass the tensor to the function as an argument and return it",
    ),
    "a leaf": Case(lambda: leaf().add_(1), RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation", "wrap it in no_grad"),
    "a view made under no_grad": Case(
        written_view, RuntimeError, "A view was created in no_grad mode", "both outside"
    ),
    "what backward needs": Case(
        written, RuntimeError, r"SinBackward0 saved .* The write .* was mica::zero_", "Write to a clone"
    ),
    # values that are not there
    "if under vmap": Case(
        lambda: vmap(lambda x: x if x.sum() > 0 else -x)(batch()),
        RuntimeError,
        "stands for a batch inside of vmap",
        "mica.where instead of `if`",
    ),
    "item under vmap": Case(
        lambda: vmap(lambda x: x.sum().item())(batch()),
        RuntimeError,
        r"so that item\(\).* has no single value to read",
        "read it outside",
    ),
    "if in a trace": Case(
        lambda: make_fx(lambda x: x if x.sum() > 0 else -x)(batch()), RuntimeError, "trace|value", "where"
    ),
    "item in a trace": Case(
        lambda: make_fx(lambda x: x * x.sum().item())(batch()), RuntimeError, "trace|value", "outside|return|tensor"
    ),
    "nonzero under vmap": Case(
        lambda: vmap(lambda x: x.nonzero())(batch()),
        RuntimeError,
        "a shape that depends on the values",
        "mica.where with a mask",
    ),
    "random numbers without a choice": Case(
        lambda: vmap(lambda x: x + mica.rand(2))(batch()),
        RuntimeError,
        "was not told what it shall draw",
        "randomness='different' for one draw an example, or randomness='same'",
    ),
    # arguments
    "in_dims of another structure": Case(
        lambda: vmap(lambda x, y: x + y, in_dims=(0,))(batch(), batch()),
        ValueError,
        r"in_dims=\(0,\) does not fit the structure",
        "the same structure of them",
    ),
    "in_dims out of range": Case(
        lambda: vmap(lambda x: x, in_dims=5)(batch()), ValueError, r"the dimension \(5\)", "from -2 to 1"
    ),
    "batches of two sizes": Case(
        lambda: vmap(mica.add)(batch(), mica.ones(3, 2)), ValueError, r"\(2\) and \(3\)", "must be of one size"
    ),
    "no batch": Case(
        lambda: vmap(lambda x: x, in_dims=None)(batch()), ValueError, "maps over no argument", "at least one"
    ),
    "a number mapped over": Case(
        lambda: vmap(lambda x: x)(3), ValueError, "only Tensors can be mapped over", "Give None"
    ),
    "no tensor returned": Case(
        lambda: vmap(lambda x: 3)(batch()), ValueError, "must return Tensors", "Make a tensor of it"
    ),
    "grad of no number": Case(
        lambda: grad(lambda x: x)(batch()), RuntimeError, "must return a 0-d tensor", "Reduce it"
    ),
    "grad by integers": Case(
        lambda: grad(lambda x: x.sum())(mica.ones(2, dtype=mica.int64)),
        RuntimeError,
        r"dtype \(mica.int64\) cannot be differentiated",
        "Convert it",
    ),
    "a cotangent of another shape": Case(
        lambda: vjp(lambda x: x * 2, batch())[1](mica.ones(3)), RuntimeError, r"\[?\(?3", "shape"
    ),
    "a tangent of another shape": Case(
        lambda: jvp(lambda x: x * 2, (batch(),), (mica.ones(3),)), RuntimeError, "shape", "differs|must"
    ),
    # tensors that escape
    "out of vmap": Case(
        lambda: escaped(lambda f, x: vmap(f)(x)), RuntimeError, "escaped from that vmap", "Return it"
    ),
    "out of grad": Case(
        lambda: escaped(lambda f, x: grad(f)(x)), RuntimeError, "escaped from that grad", "has_aux=True"
    ),
    "out of jvp": Case(
        lambda: escaped(lambda f, x: jvp(f, (x,), (x,))), RuntimeError, "escaped from that jvp", "has_aux=True"
    ),
    "out of jacrev": Case(
        lambda: escaped(lambda f, x: jacrev(f)(x)), RuntimeError, "escaped from that", "Return it"
    ),
    "out of jacfwd": Case(
        lambda: escaped(lambda f, x: jacfwd(f)(x)), RuntimeError, "escaped from that", "Return it"
    ),
    "out of a trace": Case(
        lambda: escaped(lambda f, x: make_fx(f)(x)), RuntimeError, "escaped from", "[Rr]eturn|attribute"
    ),
    # the graph
    "backward through a freed graph": Case(
        freed, RuntimeError, "Trying to backward through the graph a second time", "retain_graph=True"
    ),
    "backward from nothing": Case(
        lambda: mica.ones(2).sum().backward(), RuntimeError, "does not require grad", "nothing that made this output of backward"
    ),
    "backward from many numbers": Case(
        lambda: (leaf() * 2).backward(), RuntimeError, "can be implicitly created only for scalar outputs", "give its gradient, or reduce it"
    ),
    "an unused input": Case(
        lambda: mica.autograd.grad(leaf().sum(), leaf()), RuntimeError, "appears to not have been used in the graph", "allow_unused=True"
    ),
    "a saved inference tensor": Case(inference, RuntimeError, "Inference tensors cannot be saved for backward", "Clone the tensor outside"),
    "a function with ctx in a transform": Case(
        lambda: grad(lambda x: OldStyle.apply(x).sum())(batch()),
        RuntimeError,
        "OldStyle is used inside a transform",
        "setup_context",
    ),
    "a function without a batch rule": Case(
        lambda: vmap(NoRule.apply)(batch()), RuntimeError, "NoRule is used .* vmap", "generate_vmap_rule"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_sentence(name: str) -> None:
    case = CASES[name]
    with pytest.raises(case.kind) as caught:
        case.call()
    text = str(caught.value)
    assert re.search(case.cause, text), text
    assert re.search(case.fix, text), text
    assert len(text.split("\n  in ")[0]) < 500, text
    assert mica._C._frame_depth() == 0 and mica.is_grad_enabled()
    assert vmap(grad(lambda x: x.sum()))(batch()).tolist() == [[1, 1], [1, 1]]
