"""DataLoader: batches of a dataset."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import GenericAlias
from typing import Any

import mica
from mica.utils.data import _collate, _workers
from mica.utils.data._collate import default_collate, default_convert
from mica.utils.data._datapipe import IterDataPipe, apply_seed, apply_shuffle_settings, draw_seed
from mica.utils.data._dataset import IterableDataset
from mica.utils.data._fetch import _DatasetKind
from mica.utils.data._samplers import BatchSampler, RandomSampler, SequentialSampler

_collate_fn_t = Callable[[Any], Any]  # libraries annotate with these two
_worker_init_fn_t = Callable[[int], None]
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _InfiniteConstantSampler:
    """What stands for the indices of a dataset that has none."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader:
    """Iterates over a dataset in batches: reads, shuffles and joins samples, in worker processes if asked.

    As `torch.utils.data.DataLoader`, shuffled in the same order for the same seed. Samples are joined by
    `collate_fn`. `len(loader)` is the number of batches.

    Args:
        dataset (Dataset): Anything with `__getitem__` and `__len__`, or an `IterableDataset`.
        batch_size (int, optional): Samples in a batch. None gives single samples. Default: 1.
        shuffle (bool, optional): Reads in random order, another one in each pass. Default: None, in order.
        sampler (Sampler or iterable of int, optional): Gives the indices to read, in place of `shuffle`.
        batch_sampler (Sampler or iterable of list of int, optional): Gives the indices of a batch at a
            time, in place of `batch_size`, `shuffle`, `sampler` and `drop_last`.
        num_workers (int): Processes that load. Default: 0, the calling process loads.
        collate_fn (callable, optional): Makes a batch of a list of samples. Default: `default_collate`,
            or `default_convert` of each sample if `batch_size` is None.
        pin_memory (bool): Copies a batch's tensors to pinned memory, from where an accelerator copies
            them faster; a type with a method `pin_memory()` decides for itself. Default: False.
        drop_last (bool): Leaves out the last batch if it is smaller than the others. Default: False.
        timeout (float): Seconds to wait for a batch of the workers. Default: 0, without end.
        worker_init_fn (callable, optional): Called in each worker with its number, once it is seeded.
        multiprocessing_context (str or context, optional): How workers are started: "fork", "spawn",
            "forkserver", or a context of `multiprocessing`. Default: Python's usual way.
        generator (Generator, optional): Draws the order and the workers' seeds. Default: the default generator.
        prefetch_factor (int, optional): Batches that each worker loads ahead. Default: 2 with workers.
        persistent_workers (bool): Keeps the workers from one pass to the next. Default: False.
        pin_memory_device (str): Ignored: the accelerator that is loaded pins. Default: "".
        in_order (bool): Gives batches in the sampler's order. False gives them as they are ready.
            Default: True.

    Raises:
        ValueError: Options exclude each other or are out of range.
        RuntimeError: While iterating: `timeout` has passed, or a worker has died. What a dataset raises
            in a worker is raised in the caller, with the worker's traceback in its message.

    Example:
        >>> data = mica.utils.data.TensorDataset(mica.arange(5), mica.arange(5) * 10)
        >>> for numbers, tens in mica.utils.data.DataLoader(data, batch_size=2):
        ...     print(numbers, tens)
        tensor([0, 1]) tensor([ 0, 10])
        tensor([2, 3]) tensor([20, 30])
        tensor([4]) tensor([40])
        >>> len(mica.utils.data.DataLoader(data, batch_size=2, shuffle=True, drop_last=True))
        2
    """

    __class_getitem__ = classmethod(GenericAlias)  # DataLoader[Batch], in annotations
    __initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: _collate_fn_t | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: _worker_init_fn_t | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_numbers(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_choices(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if isinstance(dataset, IterDataPipe) and shuffle is not None:
            dataset = apply_shuffle_settings(dataset, shuffle)
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.batch_size = None if batch_sampler is not None else batch_size
        self.drop_last, self.generator, self.in_order = drop_last, generator, in_order
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.persistent_workers = persistent_workers
        self.worker_init_fn, self.multiprocessing_context = worker_init_fn, multiprocessing_context
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        if sampler is None and iterable:
            sampler = _InfiniteConstantSampler()
        elif sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self._IterableDataset_len_called: int | None = None
        self._iterator: Any = None
        self.__initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in _FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized."
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started: a context of multiprocessing, or None for the usual one."""
        return self.__context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            import multiprocessing

            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                    f"but num_workers is ({self.num_workers})."
                )
            methods = multiprocessing.get_all_start_methods()
            if isinstance(context, str) and context not in methods:
                raise ValueError(
                    f"multiprocessing_context option should specify a valid start method in {methods}, "
                    f"but it is ({context!r})."
                )
            context = multiprocessing.get_context(context) if isinstance(context, str) else context
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the "
                    f"start method, but it is a {type(context).__name__}."
                )
        self.__context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None or self._iterator.closed:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator  # type: ignore[no-any-return]

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        count = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warns if there are more workers than cores that this process may use."""
        cores = len(os.sched_getaffinity(0))
        if self.num_workers > cores:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total; this process may use "
                f"{cores} cores, and more workers than that slow each other down.",
                stacklevel=3,
            )


def _check_numbers(workers: int, timeout: float, prefetch: int | None, persistent: bool) -> None:
    if workers < 0:
        raise ValueError(f"The number of workers ({workers}) must not be negative.")
    if timeout < 0:
        raise ValueError(f"The timeout ({timeout}) must not be negative.")
    if workers == 0 and prefetch is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing: num_workers is 0."
        )
    if prefetch is not None and prefetch <= 0:
        raise ValueError(f"The prefetch_factor ({prefetch}) must be positive.")
    if persistent and workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0.")


def _check_choices(
    dataset: Any, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    given = {"sampler": sampler, "batch_sampler": batch_sampler}
    if isinstance(dataset, IterableDataset):
        if not isinstance(dataset, IterDataPipe) and shuffle not in (None, False):
            given["shuffle"] = shuffle
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got ({value})."
                )
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler and drop_last."
        )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle.")
    if batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last."
        )
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size <= 0):
        raise ValueError(
            f"The batch size ({batch_size}) must be a positive integer, or None for single samples."
        )


class _BaseDataLoaderIter:
    """One pass over a loader: the order, the seed, and what was given so far."""

    closed = False

    def __init__(self, loader: DataLoader) -> None:
        self._loader, self._dataset, self._dataset_kind = loader, loader.dataset, loader._dataset_kind
        self._index_sampler, self._num_workers = loader._index_sampler, loader.num_workers
        self._collate_fn, self._drop_last = loader.collate_fn, loader.drop_last
        self._auto_collation, self._timeout = loader._auto_collation, loader.timeout
        self._persistent_workers = loader.persistent_workers
        self._pin_memory = loader.pin_memory and mica._C._has_pinned_memory()
        if loader.pin_memory and not self._pin_memory:
            warnings.warn(
                "pin_memory=True has no effect: no device that is loaded has pinned memory.", stacklevel=4
            )
        self._seed_pipes(loader)
        self._sampler_iter = iter(self._index_sampler)
        # One number is drawn before the order is, for the workers and without them, as torch does.
        seed = mica.empty((), dtype=mica.int64).random_(generator=loader.generator)
        self._base_seed = int(seed.item())
        self._num_yielded = 0

    def _seed_pipes(self, loader: DataLoader) -> None:
        self._shared_seed = draw_seed(self._dataset, loader.generator)
        apply_seed(self._dataset, self._shared_seed)

    def _reset(self, loader: DataLoader) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._seed_pipes(loader)

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        batch = self._next_data()
        if self._pin_memory:
            batch = _collate.pin(batch)
        self._num_yielded += 1
        promised = self._loader._IterableDataset_len_called
        if (
            promised is not None
            and self._num_yielded > promised
            and self._dataset_kind == _DatasetKind.Iterable
        ):
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {promised} (when accessing "
                f"len(dataloader)), but {self._num_yielded} samples have been fetched. With workers, each must take a "
                "part of the dataset: see get_worker_info().",
                stacklevel=2,
            )
        return batch

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled.")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads in the caller's process."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        _workers.shard(self._dataset, 1, 0)
        how = (self._auto_collation, self._collate_fn, self._drop_last)
        self._dataset_fetcher = _DatasetKind.create_fetcher(self._dataset_kind, self._dataset, *how)

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(next(self._sampler_iter))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Loads in worker processes, which end with it, with its last batch, or with Ctrl-C."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        from mica.utils.data._parallel import Pool

        self._pool = Pool(loader, self._base_seed)
        self._shutdown_workers = weakref.finalize(self, self._pool.close)
        self._seed_pipes(loader)  # torch draws here too, once the workers have their seeds
        self._pool.start(self._sampler_iter)

    @property
    def closed(self) -> bool:  # type: ignore[override]
        """Whether its workers have ended."""
        return not self._pool.links

    @property
    def _workers(self) -> list[Any]:
        return [link.process for link in self._pool.links]

    def _reset(self, loader: DataLoader) -> None:
        super()._reset(loader)
        self._pool.reset(self._shared_seed)
        self._pool.start(self._sampler_iter)

    def _next_data(self) -> Any:
        try:
            return self._pool.next(self._sampler_iter)
        except StopIteration:
            if not self._persistent_workers:
                self._shutdown_workers()
            raise
        except KeyboardInterrupt:
            self._shutdown_workers()
            raise
