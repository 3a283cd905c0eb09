"""Nudges: other roundings of torch's results, which say how much a result may differ.

A nudge moves a number by some units in the last place. Values with short mantissas, whose sums and
products are exact, are not nudged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

NUDGE = 4  # units in the last place
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
EPSILON |= {"complex64": EPSILON["float32"], "complex128": EPSILON["float64"]}
# The lower half of the mantissa; where it is zero, the value is short. NumPy has bfloat16 as float32.
LOW_BITS = {
    "float16": ("u2", 0xF),
    "bfloat16": ("u4", 0x70000),
    "float32": ("u4", 0xFFF),
    "float64": ("u8", 0xFFFFFFF),
}


class Roundings(TorchDispatchMode):
    """Nudges the result of each of torch's operators by a unit, in backward passes and transforms too.

    Within one statement sums cancel whose parts nobody sees; where a part's last place decides the result, it is
    rounding that does. What an operator only moves, as a copy does, is not rounded.
    """

    def __init__(self, noise: np.random.Generator) -> None:
        super().__init__()
        self.noise = noise

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        result = function(*arguments, **(keywords or {}))
        if any(returned.alias_info is not None for returned in function._schema.returns):
            return result  # a view, or a write
        given = [np.abs(numbers(t)).ravel() for t in tree_leaves((arguments, keywords)) if rounds(t)]
        for value in tree_leaves(result):
            if rounds(value):
                memory = numbers(value)
                computed = ~np.isin(np.abs(memory), np.concatenate(given or [[]])) & is_long(
                    memory, value.dtype
                )
                value.copy_(whole(moved(memory, value.dtype, self.noise, computed, 1), value))
        return result


def rounds(value: Any) -> bool:
    """Whether an operator's argument or result holds numbers that may be rounded."""
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and has_roundings(value)


def numbers(value: torch.Tensor) -> np.ndarray:
    """A tensor's real numbers, of a complex one's both parts, in a copy."""
    memory = value.detach().clone().contiguous().resolve_conj().resolve_neg()
    memory = memory.float() if value.dtype == torch.bfloat16 else memory
    return np.asarray((torch.view_as_real(memory) if value.is_complex() else memory).numpy())


def whole(memory: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    """The tensor that has such numbers."""
    parts = torch.from_numpy(np.ascontiguousarray(memory)).reshape(memory.shape)
    return torch.view_as_complex(parts) if like.is_complex() else parts


def nudged(value: torch.Tensor, noise: np.random.Generator, everything: bool) -> torch.Tensor:
    """A tensor of which each number with a long mantissa, or each at all, is nudged."""
    memory = numbers(value)
    return whole(moved(memory, value.dtype, noise, is_long(memory, value.dtype) | everything, NUDGE), value)


def is_long(memory: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """Where real numbers of a dtype have long mantissas."""
    bits, low = LOW_BITS[real(dtype)]
    return np.asarray((memory.view(bits) & low).astype(bool))


def real(dtype: torch.dtype) -> str:
    """The dtype's name, of a complex one that of its parts."""
    return str(dtype.to_real()).removeprefix("torch.")


def moved(
    memory: np.ndarray, dtype: torch.dtype, noise: np.random.Generator, where: np.ndarray, units: float
) -> np.ndarray:
    """Real numbers of a dtype, with noise of some units on some of them."""
    with np.errstate(all="ignore"):
        shares = noise.uniform(0.5, 1, memory.shape) * noise.choice([-1, 1], memory.shape)
        noisy = memory * (1 + units * EPSILON[real(dtype)] * shares)
        return np.where(where & np.isfinite(memory), noisy, memory).astype(memory.dtype)


def has_roundings(value: torch.Tensor) -> bool:
    """Whether a tensor holds numbers that may be rounded, each in memory of its own, expanded ones apart."""
    floats = value.is_floating_point() or value.is_complex()
    return floats and value.numel() > 0 and alone(unexpanded(value)) and not value._is_zerotensor()


def unexpanded(value: torch.Tensor, strides: tuple[int, ...] | None = None) -> torch.Tensor:
    """The first element along each dimension of stride 0, of the tensor's own strides or of others."""
    strides = value.stride() if strides is None else strides
    return value[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)]


def move(value: torch.Tensor, content: torch.Tensor) -> bool:
    """Gives a tensor other roundings, which counts as no write; says whether it has."""
    if not has_roundings(value) or value.shape != content.shape:
        return False
    with torch.inference_mode(value.is_inference()):
        unexpanded(value.data).copy_(unexpanded(content, value.stride()))
    return True


def alone(t: torch.Tensor) -> bool:
    """Whether each element has memory of its own: strides that nest."""
    reach = 1
    for stride, size in sorted((st, n) for st, n in zip(t.stride(), t.shape) if n > 1):
        if stride < reach:
            return False
        reach = stride * (size - 1) + reach
    return True
