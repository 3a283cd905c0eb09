"""Random state of the default generators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mica import _C
from mica._C import Generator, Tensor

default_generator: Generator = _C._default_generator("cpu")


def manual_seed(seed: int) -> Generator:
    """Seeds the default generators of all devices; returns the CPU's."""
    return _C._manual_seed(int(seed))


def seed() -> int:
    """Seeds from the system's entropy; returns the seed."""
    value: int = default_generator.seed()
    return value


def initial_seed() -> int:
    """The last seed given to the CPU's generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The CPU generator's state as bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Sets the CPU generator's state."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Sequence[Any] = (), enabled: bool = True) -> Iterator[None]:
    """The state of the CPU's generator, and of those of `devices`, is as before at the end."""
    names = ["cpu", *(str(d) for d in devices)] if enabled else []
    states = [(g, g.get_state()) for g in map(_C._default_generator, names)]
    try:
        yield
    finally:
        for generator, state in states:
            generator.set_state(state)
