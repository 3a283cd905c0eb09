"""What the tests of Module's protocol share: cases are programs over L (the shim or torch) whose result must
be the same in both. A case that raises must raise the same kind of exception at the same place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from shim import SHIM, agree, plain

Case = Callable[[Any], Any]


def kind(f: Callable[[], Any]) -> Any:
    """What f gives, or the builtin kind of what it raises."""
    try:
        return f()
    except Exception as error:
        return "raises " + next(b.__name__ for b in type(error).__mro__ if b.__module__ == "builtins")


def ones(L: Any, *shape: int) -> Any:
    """1, 2, 3, ... in a shape."""
    return L.arange(1.0, 1.0 + int(torch.Size(shape).numel())).reshape(shape)


def net(L: Any) -> Any:
    """A small network whose weights a seed draws."""
    L.manual_seed(0)
    return L.nn.Sequential(
        L.nn.Linear(3, 4), L.nn.BatchNorm1d(4), L.nn.Sequential(L.nn.ReLU(), L.nn.Linear(4, 2))
    )


def check(program: Case, name: str) -> None:
    """Runs a case in both libraries and compares."""
    agree(*(plain(kind(lambda L=L: program(L))) for L in (SHIM, torch)), name)
