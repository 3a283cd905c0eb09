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
    """Seeds the default generators of all devices, so that a program draws the same numbers in each run.

    As `torch.manual_seed`.

    Args:
        seed (int): Any integer; the same one gives the same numbers again.

    Returns:
        Generator: That of the CPU.

    Raises:
        ValueError: The seed is a text that is no integer.

    Example:
        >>> generator = mica.manual_seed(0)
        >>> first = mica.rand(3)
        >>> generator = mica.manual_seed(0)
        >>> mica.equal(mica.rand(3), first)
        True
    """
    try:
        number = int(seed)
    except ValueError:
        raise ValueError(f"A seed is an integer; this value is ({seed!r}).") from None
    return _C._manual_seed(number)


def seed() -> int:
    """Seeds the CPU's default generator with a random number from the operating system.

    As `torch.seed`.

    Returns:
        int: The seed.

    Example:
        >>> mica.seed() == mica.initial_seed()
        True
    """
    value: int = default_generator.seed()
    return value


def initial_seed() -> int:
    """Returns the seed that the CPU's default generator was last given.

    As `torch.initial_seed`.

    Returns:
        int: The seed.

    Example:
        >>> generator = mica.manual_seed(7)
        >>> mica.initial_seed()
        7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Reads the state of the CPU's default generator, to go on from later.

    As `torch.get_rng_state`.

    Returns:
        Tensor: The state, uint8.

    Example:
        >>> state = mica.get_rng_state()
        >>> first = mica.rand(3)
        >>> mica.set_rng_state(state)
        >>> mica.equal(mica.rand(3), first)
        True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Sets the state of the CPU's default generator.

    As `torch.set_rng_state`.

    Args:
        new_state (Tensor): What `get_rng_state()` returned.

    Raises:
        TypeError: The tensor is not uint8.
        RuntimeError: It is no state of this generator.

    Example:
        >>> state = mica.get_rng_state()
        >>> first = mica.rand(3)
        >>> mica.set_rng_state(state)
        >>> mica.equal(mica.rand(3), first)
        True
    """
    default_generator.set_state(new_state)


def _named(device: Any, device_type: str | None) -> str:
    return f"{device_type or 'cuda'}:{device}" if isinstance(device, int) else str(device)


class fork_rng:
    """A block after which the CPU's default generator, and those of `devices`, are as they were before it.

    As `torch.random.fork_rng`, which forks all devices where none is named.

    Args:
        devices (iterable of int, str or device, optional): Numbers of the backend `device_type`, or
            names. Default: None, the CPU alone.
        enabled (bool): False changes nothing. Default: True.
        device_type (str, optional): The backend of the numbers. Default: "cuda".

    Example:
        >>> before = mica.get_rng_state()
        >>> with mica.random.fork_rng():
        ...     noise = mica.rand(3)
        >>> mica.equal(mica.get_rng_state(), before)
        True
    """

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
