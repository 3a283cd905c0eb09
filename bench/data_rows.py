"""`./dev bench data`: loaders with worker processes and checkpoints, Mica beside torch.

Each library has a process of its own, which stays; they take turns.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from measure import Result
from programs import Program

TURNS = 7
# Name, what a step is, steps a turn, and the ratio to stay under.
ROWS = [
    ("images", "loader, 4 workers, a batch of 32 x 3 x 224 x 224", 30, 1 / 1.5),
    ("rows", "loader, 2 workers, a batch of 64 x 16", 200, 1.0),
    ("mapped", "first element of a mapped checkpoint of 1 GB", 3, 1.0),
    ("read", "a checkpoint of 64 MB", 3, 1.0),
]


def results(only: str) -> Iterator[Result]:
    for name, what, steps, goal in ROWS:
        if only not in name and only not in what:
            continue
        with Program(name, "mica", "data_child.py") as mica, Program(name, "torch", "data_child.py") as torch:
            for p in (mica, torch):
                p.run(1)
            pairs = [
                (mica.run(steps)["seconds"] / steps * 1e6, torch.run(steps)["seconds"] / steps * 1e6)
                for _ in range(TURNS)
            ]
        low, middle, high = statistics.quantiles([m / t for m, t in pairs], n=4)
        mica_us, torch_us = (statistics.median(side) for side in zip(*pairs, strict=True))
        yield Result(what, "torch", mica_us, torch_us, middle, low, high, goal)
