"""gradcheck's check_forward_ad: forward mode against central differences."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from mica.autograd import forward_ad

if TYPE_CHECKING:
    from mica.autograd.gradcheck import _Check


def check_forward(check: _Check) -> None:
    """Each input along a random direction: every element of every output."""
    from mica.autograd.gradcheck import GradcheckError, _components, _from_real, _place, _real

    rng = random.Random(2)
    for n, x in zip(check.numbers, check.checked):
        direction = [rng.random() for _ in range(_components(x))]
        numerical = check.difference(x, direction)
        inputs: list[Any] = list(check.inputs)
        with forward_ad.dual_level():
            # Not a view, so that a jvp() which must return one is seen to do it.
            inputs[n] = forward_ad.make_dual(x, _from_real(direction, x).clone())
            result = check.func(*inputs)
            every = tuple(result) if isinstance(result, (tuple, list)) else (result,)
            pairs = [forward_ad.unpack_dual(every[o]) for o in check.outputs]
        for o, (value, tangent), expected in zip(check.outputs, pairs, numerical):
            got = [0.0] * len(expected) if tangent is None else _real(tangent)
            # What atol allows for each entry of the Jacobian, carried to the sum.
            allowance = max(sum(direction), 1.0)
            for k, (a, b) in enumerate(zip(got, expected)):
                if not check.tolerance.allows(a, b, allowance):
                    raise GradcheckError(
                        f"Jacobian computed with forward mode mismatch for output {o} with respect to input {n}: it "
                        f"is wrong for output element "
                        f"{_place(value, k)}: forward mode gives ({a:.9g}), finite differences give ({b:.9g}), with "
                        f"atol ({check.tolerance.atol:g}) and rtol ({check.tolerance.rtol:g})."
                    )
