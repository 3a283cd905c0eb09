"""Random programs of views and in-place writes: a program is a list of steps over a growing list of tensors,
made from a seed, which any library of torch's names runs.
"""

from __future__ import annotations

import random
from typing import Any

Step = tuple[Any, ...]
VIEWS = [
    "slice",
    "select",
    "transpose",
    "reshape",
    "view",
    "unsqueeze",
    "expand",
    "diagonal",
    "as_strided",
    "detach",
    "no_grad_view",
    "view_as_real",
]
WRITES = ["mul_", "add_", "copy_", "zero_", "exp_", "sin_", "fill_", "masked_fill_"]
RESHAPES = ["t_", "transpose_", "unsqueeze_", "squeeze_", "as_strided_"]  # in-place views
PURE = ["mul", "add", "exp", "sin", "sum", "clone", "matmul"]


def program(seed: int, reshapes: bool) -> list[Step]:
    rng = random.Random(seed)
    steps: list[Step] = []
    for _ in range(rng.randint(4, 12)):
        groups = [VIEWS, WRITES, PURE, RESHAPES]
        group = rng.choices(groups, [4, 3, 3, 2 if reshapes else 0])[0]
        steps.append((rng.choice(group), rng.random(), rng.random(), rng.random()))
    return steps


def view(library: Any, name: str, x: Any, a: float) -> Any:
    n = x.dim()
    if name == "slice":
        return x[: max(1, int(a * x.shape[0]) + 1)] if n else x.view(1)
    if name == "select":
        return x[int(a * x.shape[0])] if n else x
    if name == "transpose":
        return x.transpose(0, -1) if n else x
    if name == "reshape":
        return x.reshape(-1)
    if name == "view":
        return x.view(-1)
    if name == "unsqueeze":
        return x.unsqueeze(0)
    if name == "expand":
        return x.expand(2, *x.shape)
    if name == "diagonal":
        return x.diagonal() if n >= 2 else x
    if name == "as_strided":
        return x.as_strided([2], [1], x.storage_offset()) if x.numel() >= 2 else x
    if name == "detach":
        return x.detach()
    if name == "view_as_real":
        return library.view_as_real(x) if x.is_complex() else x
    with library.no_grad():
        return x.view(x.shape)


def write(name: str, x: Any, y: Any, mask: Any) -> None:
    same = x.data_ptr() == y.data_ptr() and x.shape == y.shape and x.stride() == y.stride()
    base = [t if t._base is None else t._base for t in (x, y)]
    if 0 in x.stride() or (not same and name in ("mul_", "add_", "copy_") and _overlap(*base)):
        return
    if name in ("mul_", "add_", "copy_"):
        getattr(x, name)(y)
    elif name == "fill_":
        x.fill_(0.5)
    elif name == "masked_fill_":
        x.masked_fill_(mask, 0.25)
    else:
        getattr(x, name)()


def _overlap(a: Any, b: Any) -> bool:
    return a is b or abs(a.data_ptr() - b.data_ptr()) < 16 * max(a.numel(), b.numel())


def reshape(name: str, x: Any, a: float) -> None:
    if name == "transpose_":
        x.transpose_(0, -1) if x.dim() else x.transpose_(0, 0)
    elif name == "unsqueeze_":
        x.unsqueeze_(int(a * (x.dim() + 1)))
    elif name == "as_strided_":
        x.as_strided_([2], [1], x.storage_offset()) if x.numel() >= 2 else x
    else:
        getattr(x, name)()


def pure(library: Any, name: str, x: Any, y: Any) -> Any:
    if name in ("mul", "add", "matmul"):
        return getattr(library, name)(x, y)
    return x.sum() if name == "sum" else x.clone() if name == "clone" else getattr(library, name)(x * 0.1)
