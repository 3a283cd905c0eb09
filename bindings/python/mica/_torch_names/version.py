"""The version that Mica gives for torch's."""

from __future__ import annotations

from typing import Any

VERSION = "2.13.0+mica"


class TorchVersion(str):
    """A version that compares with strings and tuples as a version, not letter by letter."""

    @staticmethod
    def _parts(value: Any) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return tuple(int(v) for v in value)
        release = str(value).split("+")[0].split(".")
        digits = ("".join(c for c in part if c.isdigit()) for part in release)
        numbers = [int(d) for d in digits if d]
        return tuple(numbers + [0] * (3 - len(numbers)))

    def _both(self, other: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        mine, yours = self._parts(str(self)), self._parts(other)
        return mine[: len(yours)] if isinstance(other, tuple) else mine, yours

    def __lt__(self, other: Any) -> bool:
        mine, yours = self._both(other)
        return mine < yours

    def __le__(self, other: Any) -> bool:
        mine, yours = self._both(other)
        return mine <= yours

    def __gt__(self, other: Any) -> bool:
        mine, yours = self._both(other)
        return mine > yours

    def __ge__(self, other: Any) -> bool:
        mine, yours = self._both(other)
        return mine >= yours


__version__ = TorchVersion(VERSION)
