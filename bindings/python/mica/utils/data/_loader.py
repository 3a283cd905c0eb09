"""DataLoader: batches of a dataset."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import mica
from mica._C import Tensor
from mica.utils.data._dataset import IterableDataset, TensorDataset
from mica.utils.data._samplers import BatchSampler, RandomSampler, SequentialSampler


def default_collate(batch: list[Any]) -> Any:
    """Samples joined: tensors stacked, numbers made tensors, containers element by element."""
    first = batch[0]
    if isinstance(first, Tensor):
        return _stack(batch)
    if isinstance(first, (bool, int)):
        return mica.tensor(batch)
    if isinstance(first, float):
        return mica.tensor(batch, dtype=mica.float64)
    if isinstance(first, dict):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, (list, tuple)):
        odd = next((i for i, sample in enumerate(batch) if len(sample) != len(first)), None)
        if odd is not None:
            raise RuntimeError(
                f"Sample ({odd}) of a batch has {len(batch[odd])} parts and sample (0) has {len(first)}. "
                "Give all samples the same parts, or pass DataLoader a collate_fn that joins yours."
            )
        joined = [default_collate(list(column)) for column in zip(*batch)]
        return joined if isinstance(first, list) or not hasattr(first, "_fields") else type(first)(*joined)
    if type(first).__module__ == "numpy":
        return _stack([mica.as_tensor(sample) for sample in batch])
    if isinstance(first, (str, bytes)):
        return batch
    raise TypeError(
        f"Samples of type ({type(first).__name__}) cannot be joined to a batch; expected tensors, NumPy arrays, "
        "numbers, strings, dicts, lists or tuples. Pass DataLoader a collate_fn that joins yours."
    )


def _stack(batch: list[Tensor]) -> Tensor:
    for i, sample in enumerate(batch):
        if isinstance(sample, Tensor) and sample.shape != batch[0].shape:
            raise RuntimeError(
                f"Sample ({i}) of a batch has the shape {list(sample.shape)} and sample (0) has {list(batch[0].shape)}; "
                "a batch stacks tensors of one shape. Pad or cut them in the dataset, or pass DataLoader a collate_fn "
                "that joins yours."
            )
    return mica.stack(batch)


def default_convert(sample: Any) -> Any:
    """One sample with its NumPy arrays and numbers made tensors."""
    if isinstance(sample, dict):
        return {key: default_convert(value) for key, value in sample.items()}
    if isinstance(sample, (list, tuple)):
        items = [default_convert(item) for item in sample]
        return type(sample)(*items) if hasattr(sample, "_fields") else type(sample)(items)
    return mica.as_tensor(sample) if type(sample).__module__ == "numpy" else sample


def _pinned(batch: Any) -> Any:
    """The batch with its tensors in pinned memory, in dicts, lists and tuples too; an object with a
    method pin_memory decides for itself."""
    if isinstance(batch, dict):
        return {key: _pinned(value) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        items = [_pinned(item) for item in batch]
        return type(batch)(*items) if hasattr(batch, "_fields") else type(batch)(items)
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch


class DataLoader:
    """Iterates over a dataset in batches, shuffled if asked, loaded by worker processes if asked."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self.pin_memory_device, self.in_order = pin_memory_device, in_order
        self._iterable = isinstance(dataset, IterableDataset)
        if num_workers < 0:
            raise ValueError(f"The number of workers ({num_workers}) must not be negative.")
        if num_workers and self._iterable:
            raise NotImplementedError(
                "An IterableDataset is loaded in the calling process; num_workers must be 0."
            )
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("batch_sampler excludes batch_size, shuffle, sampler and drop_last.")
        if sampler is not None and shuffle:
            raise ValueError("sampler excludes shuffle.")
        if batch_size is not None and (not isinstance(batch_size, int) or batch_size <= 0):
            raise ValueError(
                f"The batch size ({batch_size}) must be a positive integer, or None for single samples."
            )
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.batch_size = None if batch_sampler is not None else batch_size
        self.drop_last, self.generator = drop_last, generator
        self.pin_memory, self.persistent_workers = pin_memory, persistent_workers
        self.worker_init_fn, self.multiprocessing_context = worker_init_fn, multiprocessing_context
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        if sampler is None and not self._iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None and not self._iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_collate if self.batched else default_convert)
        self._gathers = collate_fn is None and type(dataset) is TensorDataset

    @property
    def batched(self) -> bool:
        return self.batch_size is not None or self.batch_sampler is not None

    def __iter__(self) -> Iterator[Any]:
        if not self.pin_memory:
            return self._load()
        if not mica._C._has_pinned_memory():
            warnings.warn(
                "pin_memory=True has no effect: no device that is loaded has pinned memory.", stacklevel=2
            )
            return self._load()
        return map(_pinned, self._load())

    def _load(self) -> Iterator[Any]:
        # One number is drawn before the order is, for the workers and without them, as torch does.
        seed = int(mica.empty((), dtype=mica.int64).random_(generator=self.generator).item())
        if self._iterable:
            return self._iterate()
        batches = iter(self.batch_sampler if self.batched else self.sampler)
        if self.num_workers == 0:
            return map(self._fetch, batches)
        from mica.utils.data import _workers

        return _workers.load(
            batches,
            self._fetch,
            dataset=self.dataset,
            num_workers=self.num_workers,
            prefetch=self.prefetch_factor or 2,
            seed=seed,
            init=self.worker_init_fn,
            timeout=self.timeout,
            context=self.multiprocessing_context,
        )

    def _iterate(self) -> Iterator[Any]:
        samples = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        while batch := list(islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def _fetch(self, places: Any) -> Any:
        if not self.batched:
            return self.collate_fn(self.dataset[places])
        if self._gathers:
            index = mica.tensor(places, dtype=mica.int64)  # one gather instead of many rows
            return [t.index_select(0, index) for t in self.dataset.tensors]
        return self.collate_fn([self.dataset[i] for i in places])

    def __len__(self) -> int:
        if self._iterable:
            count = len(self.dataset)
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.batch_sampler if self.batched else self.sampler)
