"""DataLoader: batches of a dataset, loaded in the calling process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mica
from mica._C import Tensor
from mica.utils.data._dataset import TensorDataset


def default_collate(batch: list[Any]) -> Any:
    """Samples joined: tensors stacked, numbers made tensors, containers element by element."""
    first = batch[0]
    if isinstance(first, Tensor):
        return mica.stack(batch)
    if isinstance(first, (bool, int)):
        return mica.tensor(batch)
    if isinstance(first, float):
        return mica.tensor(batch, dtype=mica.float64)
    if isinstance(first, dict):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, (list, tuple)):
        joined = [default_collate(list(column)) for column in zip(*batch)]
        return joined if isinstance(first, list) or not hasattr(first, "_fields") else type(first)(*joined)
    if type(first).__module__ == "numpy":
        return mica.stack([mica.as_tensor(sample) for sample in batch])
    return batch


class DataLoader:
    """Iterates over a dataset in batches, shuffled if asked."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        generator: Any = None,
    ) -> None:
        if num_workers:
            raise NotImplementedError("DataLoader loads in the calling process; num_workers must be 0.")
        if batch_size is not None and batch_size <= 0:
            raise ValueError(f"The batch size ({batch_size}) must be positive.")
        self.dataset, self.batch_size, self.shuffle, self.sampler = dataset, batch_size, shuffle, sampler
        self.collate_fn, self.drop_last, self.generator = collate_fn, drop_last, generator

    def _order(self) -> list[int]:
        if self.sampler is not None:
            return list(self.sampler)
        if self.shuffle:
            order: list[int] = mica.randperm(len(self.dataset), generator=self.generator).tolist()
            return order
        return list(range(len(self.dataset)))

    def __iter__(self) -> Iterator[Any]:
        order = self._order()
        if self.batch_size is None:
            for i in order:
                yield self.dataset[i]
            return
        for start in range(0, len(order), self.batch_size):
            places = order[start : start + self.batch_size]
            if self.drop_last and len(places) < self.batch_size:
                return
            yield self._batch(places)

    def _batch(self, places: list[int]) -> Any:
        if self.collate_fn is None and type(self.dataset) is TensorDataset:
            index = mica.tensor(places, dtype=mica.int64)  # one gather instead of many rows
            return [t.index_select(0, index) for t in self.dataset.tensors]
        return (self.collate_fn or default_collate)([self.dataset[i] for i in places])

    def __len__(self) -> int:
        count = len(self.dataset) if self.sampler is None else len(self.sampler)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
