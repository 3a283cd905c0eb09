"""gradcheck's check_batched_grad and check_batched_forward_grad: derivatives under vmap.

A batch of two random directions goes through backward or forward mode at once, and
again one direction after the other; both ways must give the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mica
from mica._C import Tensor
from mica.autograd import forward_ad

if TYPE_CHECKING:
    from mica.autograd.gradcheck import _Check

_Derivative = Callable[[Tensor], list["Tensor | None"]]


def _batch(like: Tensor, rng: random.Random) -> list[Tensor]:
    """Two random tensors of the shape and dtype of `like`."""
    from mica.autograd.gradcheck import _components, _from_real

    return [_from_real([rng.gauss(0, 1) for _ in range(_components(like))], like) for _ in range(2)]


def _compare(derivative: _Derivative, directions: list[Tensor], names: list[str]) -> None:
    """derivative(direction) under vmap against a loop; `names` say what each result is."""
    from mica.autograd.gradcheck import GradcheckError

    loop = [derivative(d) for d in directions]
    present = [n for n, value in enumerate(loop[0]) if value is not None]

    def one(direction: Tensor) -> tuple[Tensor, ...]:
        found = derivative(direction)
        return tuple(found[n] for n in present)  # type: ignore[misc]

    if not present:
        return
    try:
        batched = mica.func.vmap(one)(mica.stack(directions))
    except RuntimeError as error:
        raise GradcheckError(f"{names[present[0]]} fails under vmap: {error}") from error
    for n, got in zip(present, batched):
        for k, values in enumerate(loop):
            expected: Any = values[n]
            if not mica.allclose(got[k], expected, equal_nan=True):
                worst = float((got[k] - expected).abs().max())
                raise GradcheckError(
                    f"{names[n]} differs by ({worst:.9g}) between vmap and a loop over the batch."
                )


def check_batched_backward(check: _Check) -> None:
    """vmap over cotangents of each output."""
    rng = random.Random(3)
    for o, output in zip(check.outputs, check.run()):

        def derivative(cotangent: Tensor, output: Tensor = output) -> list[Tensor | None]:
            return list(
                mica.autograd.grad(output, check.checked, cotangent, retain_graph=True, allow_unused=True)
            )

        names = [f"The gradient of output ({o}) with respect to input ({n})" for n in check.numbers]
        _compare(derivative, _batch(output, rng), names)


def check_batched_forward(check: _Check) -> None:
    """vmap over directions of each input."""
    rng = random.Random(4)
    for n, x in zip(check.numbers, check.checked):

        def derivative(direction: Tensor, n: int = n, x: Tensor = x) -> list[Tensor | None]:
            inputs: list[Any] = list(check.inputs)
            with forward_ad.dual_level():
                inputs[n] = forward_ad.make_dual(x.detach(), direction)
                result = check.func(*inputs)
                every = tuple(result) if isinstance(result, (tuple, list)) else (result,)
                return [forward_ad.unpack_dual(every[o]).tangent for o in check.outputs]

        names = [f"The derivative of output ({o}) along input ({n})" for o in check.outputs]
        _compare(derivative, _batch(x, rng), names)
