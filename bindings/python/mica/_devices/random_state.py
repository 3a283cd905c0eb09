"""Random state of the default generators."""

from __future__ import annotations

from mica import _C
from mica._C import Generator, Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

default_generator: Generator = _C._default_generator("cpu")


def _rebuild_generator(device: Any, algorithm: str, state: Tensor) -> Generator:
    """What a pickled generator is loaded by."""
    generator = Generator(device, algorithm)
    generator.set_state(state)
    return generator


def manual_seed(seed: int) -> Generator:
    """Seeds the default generators of all devices; returns the CPU's."""
    try:
        number = int(seed)
    except ValueError:
        raise ValueError(f"A seed is an integer; this value is ({seed!r}).") from None
    return _C._manual_seed(number)


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


def _named(device: Any, device_type: str | None) -> str:
    return f"{device_type or 'cuda'}:{device}" if isinstance(device, int) else str(device)


class fork_rng:
    """A context after which the state of the CPU's generator, and of those of `devices`, is as before."""

    def __init__(
        self,
        devices: Iterable[Any] | None = None,
        enabled: bool = True,
        _caller: str = "fork_rng",
        _devices_kw: str = "devices",
        device_type: str | None = None,
    ) -> None:
        names = ["cpu", *(_named(d, device_type) for d in devices or ())] if enabled else []
        self._generators: list[Generator] = [_C._default_generator(name) for name in names]

    def __enter__(self) -> None:
        self._states = [g.get_state() for g in self._generators]

    def __exit__(self, *exc: object) -> None:
        for generator, state in zip(self._generators, self._states):
            generator.set_state(state)
