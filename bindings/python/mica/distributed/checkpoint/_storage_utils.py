"""What storages share."""

from __future__ import annotations

import os
from typing import Any

from mica.futures import Future


def done(value: Any) -> Future[Any]:
    """A Future that has its value."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def is_local_path(checkpoint_id: str | os.PathLike[str]) -> bool:
    """Whether it is a path, and no address of another storage."""
    text = os.fspath(checkpoint_id)
    return isinstance(text, str) and "://" not in text
