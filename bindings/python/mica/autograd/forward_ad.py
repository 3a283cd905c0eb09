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


class _Thread(threading.local):
    """The levels that this thread entered here, outermost first."""

    def __init__(self) -> None:
        self.levels: list[Any] = []


_thread = _Thread()


class UnpackedDualTensor(NamedTuple):
    """What unpack_dual returns; the tangent of a tensor that has none is None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enters a level; its number, for exit_dual_level. Prefer dual_level()."""
    _thread.levels.append(_C._frame_enter("jvp"))
    return len(_thread.levels) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """Leaves the innermost level, which `level`, where given, must be."""
    if not _thread.levels:
        raise RuntimeError("exit_dual_level: no dual level was entered.")
    if level is not None and level != len(_thread.levels) - 1:
        raise RuntimeError(
            f"exit_dual_level: the level ({level}) is not the innermost one ({len(_thread.levels) - 1}); leave that first."
        )
    _C._frame_exit(_thread.levels.pop())


class dual_level(_Mode):
    """A context manager for one dual level."""

    def __enter__(self) -> int:
        self._level = enter_dual_level()
        return self._level

    def __exit__(self, *exc: object) -> None:
        while exc[0] is not None and len(_thread.levels) > self._level + 1:
            exit_dual_level()  # of what failed inside, which would stand for ever
        exit_dual_level(level=self._level)


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
    """A tensor with the value of `tensor` that carries `tangent` through what is computed
    with it."""
    _check_level("make_dual", level)
    return _C._frame_dual(tensor, direction("make_dual", tensor, tangent))


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor, None where it has no tangent."""
    if not _thread.levels and _C._frame_kind() != "jvp":
        return UnpackedDualTensor(tensor, None)
    _check_level("unpack_dual", level)
    return UnpackedDualTensor(_C._frame_value(tensor), _C._frame_tangent(tensor))
