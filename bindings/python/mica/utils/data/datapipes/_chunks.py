"""What pipes of chunks share, those that are iterated over and those that are indexed: sizes and lengths."""

from __future__ import annotations

from typing import Any

from mica.utils.data._datapipe import DataChunk


class Chunks:
    """Arguments and length of a pipe whose elements are chunks of another's."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __len__(self) -> int:
        n = len(self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
