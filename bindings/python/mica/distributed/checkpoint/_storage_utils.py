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


class InFolder:
    """What a reader and a writer of a folder have in common."""

    path: str

    @property
    def checkpoint_id(self) -> str:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Says whether it is a path: no address of another storage.

        Args:
            checkpoint_id (str or path): Which.

        Returns:
            bool: Whether.
        """
        text = os.fspath(checkpoint_id)
        return isinstance(text, str) and "://" not in text

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins a save or a load, on all ranks.

        Args:
            checkpoint_id (str or path, optional): The folder. Default: None, the same as before.
        """
        if checkpoint_id:
            self.path = os.fspath(checkpoint_id)
