"""Which storage a call means."""

from __future__ import annotations

import os
from typing import Any

from mica.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter


def storage_of(storage: Any, checkpoint_id: str | os.PathLike[str] | None, reader: bool) -> Any:
    """The storage that was given, or the folder of `checkpoint_id`."""
    what = "storage_reader" if reader else "storage_writer"
    if storage is not None:
        if checkpoint_id is not None:
            storage.reset(checkpoint_id)
        return storage
    if not checkpoint_id:
        raise RuntimeError(f"`checkpoint_id` must be specified if {what} is None.")
    kind: Any = FileSystemReader if reader else FileSystemWriter
    if not kind.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(
            f"The checkpoint_id ({os.fspath(checkpoint_id)!s:.80}) is no path; for another storage than a folder give a "
            f"`{what}`."
        )
    made = kind(checkpoint_id)
    made.reset(checkpoint_id)
    return made
