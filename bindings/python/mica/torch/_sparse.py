"""torch.sparse: a switch of checks."""

from __future__ import annotations

import contextlib


class check_sparse_tensor_invariants(contextlib.ContextDecorator):
    """torch.sparse's switch of checks; Mica has no sparse tensors, so that it is remembered alone."""

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._enable = enable
        self._before: list[bool] = []

    @classmethod
    def is_enabled(cls) -> bool:
        """What enable() and disable() said last, False before."""
        return cls._enabled

    @classmethod
    def enable(cls) -> None:
        """Remembered."""
        cls._enabled = True

    @classmethod
    def disable(cls) -> None:
        """Remembered."""
        cls._enabled = False

    def __enter__(self) -> None:
        kind = type(self)
        self._before.append(kind._enabled)
        kind._enabled = self._enable

    def __exit__(self, *exc: object) -> None:
        type(self)._enabled = self._before.pop()
