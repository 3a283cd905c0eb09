"""mica.testing.opcheck passes what is right and names what lies: each operator of LIES
breaks one promise, and the check of that promise, and no other before it, finds it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import mica
from mica import library
from mica.testing import opcheck

_numbers = itertools.count()
_libraries: list[library.Library] = []  # what a library registers goes with it


def define(schema: str, kernel: Callable[..., Any], meta: Callable[..., Any] | None = None) -> str:
    """Registers an operator of a schema that begins at its arguments; returns its name."""
    space = f"opcheck{next(_numbers)}"
    lib = library.Library(space, "DEF")
    _libraries.append(lib)
    lib.define("op" + schema)
    lib.impl("op", kernel, "CPU")
    if meta is not None:
        lib.impl("op", meta, "Meta")
    return space + "::op"


def write(x: mica.Tensor) -> mica.Tensor:
    x.add_(1)
    return x.clone()


def flat_meta(x: mica.Tensor) -> mica.Tensor:
    return x.new_empty(x.numel())


# schema, kernel, meta kernel, the check that finds it, words of its message
LIES = [
    ("(Tensor x) -> Tensor", write, mica.empty_like, "test_schema", "wrote its argument `x`"),
    ("(Tensor x) -> Tensor", lambda x: x, mica.empty_like, "test_aliasing", "shares memory with its argument"),
    (
        "(Tensor x) -> (Tensor, Tensor)",
        lambda x: (y := x.clone(), y.view(-1)),
        lambda x: (mica.empty_like(x), flat_meta(x)),
        "test_aliasing",
        r"Results \(0\) and \(1\)",
    ),
    ("(Tensor x) -> Tensor", lambda x: x * 2, flat_meta, "test_meta", "shape"),
    ("(Tensor x) -> Tensor", lambda x: x * 2, lambda x: x.new_empty(x.shape, dtype=mica.int64), "test_meta", "dtype"),
    ("(Tensor x) -> Tensor", lambda x: x.t().clone(), lambda x: x.new_empty(x.t().shape), "test_meta", "strides"),
    ("(Tensor x) -> Tensor", lambda x: x * 2, None, "test_meta", "meta"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "kernel", "meta", "check", "words"), LIES, ids=[f"{lie[3]} {lie[4]}" for lie in LIES]
)
def test_finds_the_lie(schema: str, kernel: Any, meta: Any, check: str, words: str) -> None:
    name = define(schema, kernel, meta)
    with pytest.raises(mica.testing.OpCheckError, match=words) as error:
        opcheck(name, (mica.randn(2, 3),))
    assert check in str(error.value)
    verdicts = opcheck(name, (mica.randn(2, 3),), raise_exception=False)
    assert [k for k, v in verdicts.items() if v != "SUCCESS"] == [check]


def scale(factor_of_gradient: float) -> Any:
    @library.custom_op(f"opcheck{next(_numbers)}::scale", mutates_args=())
    def op(x: mica.Tensor, k: float = 2.0) -> mica.Tensor:
        return x.clone() * k

    op.register_fake(lambda x, k=2.0: mica.empty_like(x))
    op.register_autograd(
        lambda ctx, grad: (grad * ctx.k * factor_of_gradient, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
    )
    return op


def test_finds_a_wrong_gradient() -> None:
    x = mica.randn(2, 3, requires_grad=True)
    assert set(opcheck(scale(1.0), (x,), {"k": 3.0}).values()) == {"SUCCESS"}
    with pytest.raises(mica.testing.OpCheckError, match="test_gradients"):
        opcheck(scale(0.5), (x,), {"k": 3.0})
    assert opcheck(scale(0.5), (x.detach(),))["test_gradients"] == "SUCCESS"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("mica::add.Tensor", (mica.randn(2, 3, requires_grad=True), mica.randn(3, requires_grad=True))),
        ("mica::add_.Tensor", (mica.randn(2, 3), mica.randn(3))),
        ("mica::transpose.int", (mica.randn(2, 3, requires_grad=True), 0, 1)),
        ("mica::split.Tensor", (mica.randn(4, 3, requires_grad=True), 2)),
        ("mica::native_layer_norm", (mica.randn(2, 3, requires_grad=True), [3], None, None, 1e-5)),
        ("mica::cat", ([mica.randn(2, 3, requires_grad=True), mica.randn(1, 3)],)),
        ("mica::sort", (mica.randn(5, requires_grad=True),)),
        ("mica::ones", ([2, 3],)),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_passes_operators_of_mica(name: str, args: tuple[Any, ...]) -> None:
    assert set(opcheck(name, args).values()) == {"SUCCESS"}


def test_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="No operator is named"):
        opcheck("mica::no_such_operator", ())
    with pytest.raises(ValueError, match="The check"):
        opcheck("mica::add.Tensor", (mica.ones(1), mica.ones(1)), test_utils="test_taste")
