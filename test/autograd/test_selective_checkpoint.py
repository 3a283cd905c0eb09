"""Selective checkpointing: what is kept is not computed again, gradients stay what they are,
and the errors of policies and of functions that do not do the same twice."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import pytest

import mica
from mica.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)
from mica.utils.python_dispatch import DispatchMode


class Counting(DispatchMode):
    """How often each operator runs."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __mica_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls[func.name()] += 1
        return func(*args, **(kwargs or {}))


def block(x: mica.Tensor, w: mica.Tensor) -> mica.Tensor:
    return ((x @ w).sin() @ w).exp().sin()


def inputs() -> list[mica.Tensor]:
    x = (mica.arange(12, dtype=mica.float64).reshape(3, 4) / 10).requires_grad_()
    w = (mica.arange(16, dtype=mica.float64).sin().reshape(4, 4) / 2).requires_grad_()
    return [x, w]


def run(policy: Any, **options: Any) -> tuple[list[mica.Tensor], Counter[str]]:
    """The gradients, and what ran from the second run on."""
    given = inputs()
    contexts = functools.partial(create_selective_checkpoint_contexts, policy, **options)
    y = checkpoint(block, *given, context_fn=contexts, use_reentrant=False)
    with Counting() as counting:
        found = mica.autograd.grad(y.sum(), given)
    return list(found), counting.calls


def expected() -> tuple[list[mica.Tensor], Counter[str]]:
    given = inputs()
    y = block(*given)
    with Counting() as counting:
        found = mica.autograd.grad(y.sum(), given)
    return list(found), counting.calls


def is_product(context: Any, func: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    saved = func.name() == "mica::mm"
    return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE


POLICIES = {
    "function": is_product,
    "bool": lambda context, func, *args, **kwargs: func.name() == "mica::mm",
    "list": [mica.ops.mica.mm.default],
    "offload": lambda context, func, *args, **kwargs: (
        CheckpointPolicy.MUST_CPU_OFFLOAD if func.name() == "mica::mm" else CheckpointPolicy.MUST_RECOMPUTE
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_products_are_kept(name: str) -> None:
    gradients, plain = expected()
    nothing_kept, again = run(lambda *args, **kwargs: False)
    found, calls = run(POLICIES[name])
    for g, h, e in zip(found, nothing_kept, gradients):
        assert mica.equal(g, e) and mica.equal(h, e)
    assert again["mica::mm"] == plain["mica::mm"] + 2
    assert calls["mica::mm"] == plain["mica::mm"]  # those of the backward alone
    assert calls["mica::sin"] == plain["mica::sin"] + 1  # the last one is not needed


def test_the_policy_sees_operator_and_result() -> None:
    seen = []

    def policy(context: Any, func: Any, *args: Any, **kwargs: Any) -> bool:
        assert context.is_recompute is False
        seen.append((func.name(), tuple(context.op_output.shape), len(args)))
        return False

    run(policy)
    assert ("mica::mm", (3, 4), 2) in seen and ("mica::exp", (3, 4), 1) in seen


def test_every_backward_gets_what_is_kept() -> None:
    given = inputs()
    contexts = functools.partial(create_selective_checkpoint_contexts, is_product)
    y = checkpoint(block, *given, context_fn=contexts).sum()
    first = mica.autograd.grad(y, given, retain_graph=True)
    second = mica.autograd.grad(y, given, create_graph=True)
    assert all(mica.equal(a, b) for a, b in zip(first, second))
    plain = block(*given).sum()
    curved = mica.autograd.grad(sum(g.sum() for g in second), given)
    wanted = mica.autograd.grad(
        sum(g.sum() for g in mica.autograd.grad(plain, given, create_graph=True)), given
    )
    assert all(mica.allclose(a, b) for a, b in zip(curved, wanted))


def test_kept_tensors_must_not_be_written() -> None:
    def written(x: mica.Tensor, w: mica.Tensor) -> mica.Tensor:
        y = x @ w
        z = y.sin()
        with mica.no_grad():
            y.detach().mul_(1)
        return z.exp()

    for allow, raises in ((False, True), (True, False)):
        given = inputs()
        contexts = functools.partial(
            create_selective_checkpoint_contexts, is_product, allow_cache_entry_mutation=allow
        )
        y = checkpoint(written, *given, context_fn=contexts)
        if raises:
            with pytest.raises(RuntimeError, match="kept was written in place since"):
                y.sum().backward()
        else:
            y.sum().backward()


def test_errors() -> None:
    with pytest.raises(ValueError, match="the list holds 3; expected overloads"):
        create_selective_checkpoint_contexts([3])
    calls = []

    def more_the_second_time(x: mica.Tensor) -> mica.Tensor:
        calls.append(1)
        for _ in range(len(calls)):
            x = x.cos()
        return x.exp()

    contexts = functools.partial(create_selective_checkpoint_contexts, is_product)
    y = checkpoint(more_the_second_time, inputs()[0], context_fn=contexts, early_stop=False)
    with pytest.raises(
        RuntimeError, match=r"mica::cos is called \(2\) times .* \(1\) times in the first run"
    ):
        y.sum().backward()
