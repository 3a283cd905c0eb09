"""mica.autograd.forward_ad: forward mode by dual numbers, within a dual level.

    with dual_level():
        dual = make_dual(x, tangent)
        value, derivative = unpack_dual(function(dual))

A dual level is a frame (mica.func.jvp enters one too), and levels nest. Unlike torch's,
dual tensors that have a tangent cannot be used after their level ended: unpack them inside."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from mica import _C
from mica._C import Tensor
from mica._functions.grad_mode import _Mode

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class _Thread(threading.local):
    """The levels that this thread entered here, outermost first: each frame, and its tag."""

    def __init__(self) -> None:
        self.levels: list[tuple[Any, int]] = []


_thread = _Thread()


class UnpackedDualTensor(NamedTuple):
    """The pair `(primal, tangent)` of a Tensor at a dual level; `tangent` is None where it has none.

    Args:
        primal (Tensor): The value.
        tangent (Tensor, optional): The derivative, of the value's shape.

    Example:
        >>> fwAD = mica.autograd.forward_ad
        >>> with fwAD.dual_level():
        ...     fwAD.unpack_dual(mica.ones(1))
        UnpackedDualTensor(primal=tensor([1.]), tangent=None)
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enters a dual level, in which Tensors can carry tangents; prefer `dual_level`, which leaves it again.

    As `torch.autograd.forward_ad.enter_dual_level`, but that levels nest.

    Returns:
        int: The level's number, from 0, for `exit_dual_level`.

    Example:
        >>> fwAD = mica.autograd.forward_ad
        >>> level = fwAD.enter_dual_level()
        >>> x = fwAD.make_dual(mica.tensor([3.0]), mica.tensor([1.0]))
        >>> fwAD.unpack_dual(x * x).tangent
        tensor([6.])
        >>> fwAD.exit_dual_level(level=level)
    """
    frame = _C._frame_enter("jvp")
    _thread.levels.append((frame, _C._frame_stack()[-1][1]))
    return len(_thread.levels) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """Leaves the innermost dual level; its dual Tensors cannot be used afterwards.

    As `torch.autograd.forward_ad.exit_dual_level`.

    Args:
        level (int, optional): Number of the level, which must be the innermost. Default: the innermost.

    Raises:
        RuntimeError: There is no level, or `level` is another one.

    Example:
        >>> mica.autograd.forward_ad.enter_dual_level()
        0
        >>> mica.autograd.forward_ad.exit_dual_level()
    """
    if not _thread.levels:
        raise RuntimeError("exit_dual_level: no dual level was entered.")
    if level is not None and level != len(_thread.levels) - 1:
        raise RuntimeError(
            f"exit_dual_level: the level ({level}) is not the innermost one ({len(_thread.levels) - 1}); leave that first."
        )
    _C._frame_exit(_thread.levels.pop()[0])


class dual_level(_Mode):
    """A `with` block in which Tensors carry tangents: forward-mode derivatives of what is computed.

    As `torch.autograd.forward_ad.dual_level`, but that levels nest, and that dual Tensors cannot be
    used after their level ended: unpack them inside. `mica.func.jvp` does all of it in one call.

    Example:
        >>> fwAD = mica.autograd.forward_ad
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(mica.tensor(3.0), mica.tensor(1.0))
        ...     print(fwAD.unpack_dual(x**2).tangent)
        tensor(6.)
    """

    def __enter__(self) -> int:
        self._level = enter_dual_level()
        return self._level

    def __exit__(self, *exc: object) -> None:
        while exc[0] is not None and len(_thread.levels) > self._level + 1:
            exit_dual_level()  # of what failed inside, which would stand for ever
        exit_dual_level(level=self._level)


def in_dual_level() -> bool:
    """Whether the innermost frame is a dual level, and not one of `mica.func.jvp`."""
    frames = _C._frame_stack()
    return bool(frames and _thread.levels) and frames[-1][1] == _thread.levels[-1][1]


def _check_level(name: str, level: int | None) -> None:
    if _C._frame_kind() != "jvp":
        raise RuntimeError(f"{name}: no dual level is active; write it inside `with dual_level():`.")
    if level is not None and level != len(_thread.levels) - 1:
        raise RuntimeError(
            f"{name}: the level ({level}) is not the innermost one ({len(_thread.levels) - 1})."
        )


def direction(name: str, primal: Tensor, tangent: Tensor, number: int | None = None) -> Tensor:
    """The tangent in the dtype of its primal; refused if it is none. `number` tells a pair from others."""
    given, along = (
        ("the primal", "the tangent") if number is None else (f"primal ({number})", f"tangent ({number})")
    )
    for what, t in ((given, primal), (along, tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(
                f"{name}: {what} must be of a floating or complex dtype, but it is {t.dtype}. "
                "Convert it (x.float()), or let the function capture it."
            )
    if primal.shape != tangent.shape:
        raise RuntimeError(
            f"{name}: the shape {tuple(tangent.shape)} of {along} differs from the shape "
            f"{tuple(primal.shape)} of its primal."
        )
    if tangent.is_complex() and not primal.is_complex():
        raise RuntimeError(
            f"{name}: {along} is complex ({tangent.dtype}), which the derivative of a real primal "
            f"({primal.dtype}) cannot be."
        )
    return tangent if primal.dtype == tangent.dtype else tangent.to(primal.dtype)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Makes a Tensor that carries a tangent through all that is computed with it.

    As `torch.autograd.forward_ad.make_dual`.

    Args:
        tensor (Tensor): The value, floating-point or complex.
        tangent (Tensor): The direction, of the value's shape; cast to its dtype.
        level (int, optional): Number of the level, which must be the innermost. Default: the innermost.

    Returns:
        Tensor: The dual Tensor.

    Raises:
        RuntimeError: No level is active, the shapes differ, or a real value has a complex tangent.
        ValueError: A dtype is integer.

    Example:
        >>> fwAD = mica.autograd.forward_ad
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(mica.ones(2), mica.tensor([1.0, 0.0]))
        ...     print(fwAD.unpack_dual(3 * x))
        UnpackedDualTensor(primal=tensor([3., 3.]), tangent=tensor([3., 0.]))
    """
    _check_level("make_dual", level)
    return _C._frame_dual(tensor, direction("make_dual", tensor, tangent))


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Returns the value and the tangent of a Tensor.

    As `torch.autograd.forward_ad.unpack_dual`.

    Args:
        tensor (Tensor): The Tensor.
        level (int, optional): Number of the level, which must be the innermost. Default: the innermost.

    Returns:
        UnpackedDualTensor: `(primal, tangent)`; the tangent is None where there is none.

    Raises:
        RuntimeError: `level` is not the innermost one.

    Example:
        >>> fwAD = mica.autograd.forward_ad
        >>> with fwAD.dual_level():
        ...     value, tangent = fwAD.unpack_dual(fwAD.make_dual(mica.ones(2), mica.ones(2)).sum())
        ...     print(value, tangent)
        tensor(2.) tensor(2.)
    """
    if not _thread.levels and _C._frame_kind() != "jvp":
        return UnpackedDualTensor(tensor, None)
    _check_level("unpack_dual", level)
    return UnpackedDualTensor(_C._frame_value(tensor), _C._frame_tangent(tensor))
