"""The deterministic mode: use_deterministic_algorithms(), and whether it fills memory that nobody wrote."""

from __future__ import annotations

from mica import _C

_deterministic = [False, False]  # the mode, and whether it only warns
_fill = [True]


def are_deterministic_algorithms_enabled() -> bool:
    """Returns whether `use_deterministic_algorithms(True)` was called.

    As `torch.are_deterministic_algorithms_enabled`.

    Returns:
        bool: Whether it was.

    Example:
        >>> mica.are_deterministic_algorithms_enabled()
        False
    """
    return _deterministic[0]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Returns whether `use_deterministic_algorithms()` was called with `warn_only`.

    As `torch.is_deterministic_algorithms_warn_only_enabled`.

    Returns:
        bool: Whether it was.

    Example:
        >>> mica.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return _deterministic[1]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Makes a program give the same results in every run, memory that it reads before it writes it included.

    As `torch.use_deterministic_algorithms`. Mica's CPU kernels give them anyway; what changes is memory that nobody
    wrote, as of `mica.empty`, which is filled (`mica.utils.deterministic.fill_uninitialized_memory`), and on other devices
    algorithms: a kernel that adds up in any order leaves the call to the CPU.

    Args:
        mode (bool): Whether results have to be the same in every run.
        warn_only (bool): Whether an operator that has no such algorithm warns only. Default: False.

    Raises:
        TypeError: An argument is no bool.

    Example:
        >>> mica.use_deterministic_algorithms(True)
        >>> mica.empty(2)
        tensor([nan, nan])
        >>> mica.use_deterministic_algorithms(False)
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name}'{' (position 1)' if name == 'mode' else ''} must be "
                f"bool, not {type(value).__name__}"
            )
    _deterministic[:] = [bool(mode), warn_only]
    _C._set_setting("deterministic", 0 if not mode else 2 if warn_only else 1)
    _apply()


def _apply() -> None:
    """Tells the factories what the flag and the mode come to."""
    _C._set_fill_uninitialized(_fill[0] and _deterministic[0])


def fill_uninitialized_memory() -> bool:
    """Whether the mode fills what empty() and its kin give."""
    return _fill[0]


def set_fill_uninitialized_memory(fill: bool) -> None:
    """Sets whether the mode fills what empty() and its kin give."""
    if not isinstance(fill, bool):
        raise RuntimeError(f"The flag is True or False; this value is of type ({type(fill).__name__}).")
    _fill[0] = fill
    _apply()
