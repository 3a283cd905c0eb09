"""`./dev bench train`: the time of a training step of each program, Mica beside torch.

Both processes stay; they take turns, and each turn's ratio is one of the sample.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from measure import Result
from programs import NAMES, Program

STEPS = {"digits": 20, "gpt": 6, "resnet": 10, "tagger": 8, "vae": 60, "dqn": 200}
TURNS = 5


def results(only: str) -> Iterator[Result]:
    for name in NAMES:
        if only not in name:
            continue
        with Program(name, "mica") as mica, Program(name, "torch") as torch:
            for p in (mica, torch):
                p.run(2)
            pairs = [
                (mica.step_seconds(STEPS[name]) * 1e6, torch.step_seconds(STEPS[name]) * 1e6)
                for _ in range(TURNS)
            ]
        ratios = [m / t for m, t in pairs]
        low, middle, high = statistics.quantiles(ratios, n=4)
        mica_us, torch_us = (statistics.median(side) for side in zip(*pairs, strict=True))
        yield Result(f"{name}, one step", "torch", mica_us, torch_us, middle, low, high, 1.0)
