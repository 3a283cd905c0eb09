"""Calls under vmap and functionalize for test_cost.py, which counts the instructions from each getppid to the
next. Prints the calls' names."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import mica
from mica.func import functionalize, vmap

row, matrix, image = mica.ones(4, 3), mica.ones(3, 5), mica.ones(4, 3, 2)
CALLS: dict[str, tuple[Any, Callable[[mica.Tensor], mica.Tensor], mica.Tensor]] = {
    "vmap reshape": (vmap, lambda a: a.reshape(6), image),
    "vmap select": (vmap, lambda a: a.select(0, 1), image),
    "vmap x @ w": (vmap, lambda a: a @ matrix, row),
    "vmap sum(0)": (vmap, lambda a: a.sum(0), image),
    "functionalize view, mul_": (functionalize, lambda a: a.view(12).mul_(2), row),
    "functionalize x + y": (functionalize, lambda a: a + a, row),
}


def repeated(call: Callable[[mica.Tensor], mica.Tensor], times: int) -> Callable[[mica.Tensor], mica.Tensor]:
    def run(a: mica.Tensor) -> mica.Tensor:
        for _ in range(times):
            call(a)
        return a

    return run


for name, (transform, call, given) in CALLS.items():
    print(name)
    for times in (200, 200, 1200):
        os.getppid()
        transform(repeated(call, times))(given)
os.getppid()
