"""Datasets: anything with __getitem__ and __len__."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from types import GenericAlias
from typing import Any

import mica
from mica._C import Tensor


class Dataset:
    """The base of datasets whose samples are read by index: `dataset[i]`.

    As `torch.utils.data.Dataset`. A subclass defines `__getitem__(index)`, and `__len__()` where a
    `DataLoader` shall know how many samples there are. It may define `__getitems__(indices)`, which
    returns a list of samples, if many are read faster at once than one by one. `a + b` is
    `ConcatDataset([a, b])`.

    Example:
        >>> class Squares(mica.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 5
        ...     def __getitem__(self, index):
        ...         return index * index
        >>> list(mica.utils.data.DataLoader(Squares(), batch_size=2))
        [tensor([0, 1]), tensor([4, 9]), tensor([16])]
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__().")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """The base of datasets that are read as a stream, from the first sample to the last.

    As `torch.utils.data.IterableDataset`. A subclass defines `__iter__()`, and `__len__()` if it knows
    its length. A `DataLoader` takes its samples in the order in which they come, so it refuses
    `shuffle`, `sampler` and `batch_sampler`. Every worker process iterates over a copy of its own:
    `get_worker_info()` tells a copy which part to give. `a + b` is `ChainDataset([a, b])`.

    Example:
        >>> class Countdown(mica.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter([3, 2, 1])
        >>> list(mica.utils.data.DataLoader(Countdown(), batch_size=2))
        [tensor([3, 2]), tensor([1])]
    """

    def __add__(self, other: Any) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__().")


class ConcatDataset(Dataset):
    """Several datasets as one: the samples of the first, then those of the second, and so on.

    As `torch.utils.data.ConcatDataset`.

    Args:
        datasets (iterable of Dataset): Anything that has `__getitem__` and `__len__`.

    Attributes:
        datasets (list of Dataset): The parts.
        cumulative_sizes (list of int): For each part, how many samples it and those before it have.

    Raises:
        AssertionError: There is no dataset, or one of them is an `IterableDataset`.
        IndexError: An index is not less than the length (ValueError if it is below minus the length).

    Example:
        >>> both = mica.utils.data.ConcatDataset([["a", "b"], ["c"]])
        >>> len(both), both[2], both[-3]
        (3, 'c', 'a')
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset needs at least one dataset; the list is empty.")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError(
                "ConcatDataset indexes its datasets, which an IterableDataset has no way to."
            )
        self.cumulative_sizes = list(accumulate(len(d) for d in self.datasets))

    def __getitem__(self, index: int) -> Any:
        n = len(self)
        if not -n <= index < n:
            kind = ValueError if index < 0 else IndexError
            raise kind(f"The index ({index}) is out of range for ({n}) samples.")
        index %= n
        part = bisect_right(self.cumulative_sizes, index)
        return self.datasets[part][index - (self.cumulative_sizes[part - 1] if part else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class TensorDataset(Dataset):
    """Tensors of one first size as a dataset: sample `i` is the tuple of their rows `i`.

    As `torch.utils.data.TensorDataset`. A `DataLoader` of it takes a batch by one gather for each tensor.

    Args:
        *tensors (Tensor): Each `(N, ...)`, with the same `N`.

    Raises:
        AssertionError: The first sizes differ, or there is no tensor.

    Example:
        >>> data = mica.utils.data.TensorDataset(mica.ones(3, 2), mica.arange(3))
        >>> len(data)
        3
        >>> data[1]
        (tensor([1., 1.]), tensor(1))
    """

    def __init__(self, *tensors: Tensor) -> None:
        sizes = {t.size(0) for t in tensors}
        if len(sizes) != 1:
            raise AssertionError(f"The tensors have different first sizes: {sorted(sizes)}.")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


def _several(dataset: Any, indices: list[int]) -> list[Any]:
    """The samples of a batch, in one call of a dataset that takes such."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[i] for i in indices]
    samples: list[Any] = dataset.__getitems__(indices)
    if len(samples) != len(indices):
        raise ValueError(f"__getitems__() gave ({len(samples)}) samples for ({len(indices)}) indices.")
    return samples


class Subset(Dataset):
    """The samples of a dataset at given indices.

    As `torch.utils.data.Subset`. `random_split()` makes subsets by chance.

    Args:
        dataset (Dataset): The dataset that samples are taken from.
        indices (sequence of int): Sample `i` of the subset is `dataset[indices[i]]`. They are checked
            when a sample is read.

    Example:
        >>> odd = mica.utils.data.Subset(["a", "b", "c", "d"], [1, 3])
        >>> len(odd), odd[0]
        (2, 'b')
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return _several(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Divides a dataset at random into parts that share no sample.

    As `torch.utils.data.random_split`.

    Args:
        dataset (Dataset): The dataset; its length is asked.
        lengths (sequence of int or float): How many samples each part gets. If the numbers sum to 1,
            they are shares: each part gets `floor(share * len(dataset))` samples, and those that are
            left go one by one to the parts, from the first on.
        generator (Generator, optional): Draws the order. Default: the default generator.

    Returns:
        list of Subset: As many as `lengths` has numbers, in their order.

    Raises:
        ValueError: The lengths sum neither to 1 nor to the length of the dataset.

    Example:
        >>> parts = mica.utils.data.random_split(range(10), [0.7, 0.3], mica.Generator().manual_seed(0))
        >>> [list(part) for part in parts]
        [[4, 1, 7, 5, 3, 9, 0], [8, 6, 2]]
    """
    total = len(dataset)
    sizes = list(lengths)
    if abs(sum(sizes) - 1) < 1e-9 and all(0 <= s <= 1 for s in sizes):
        counts = [int(total * s) for s in sizes]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
    else:
        counts = [int(s) for s in sizes]
    if sum(counts) != total:
        raise ValueError(f"The lengths sum to ({sum(counts)}); the dataset has ({total}) samples.")
    order = mica.randperm(total, generator=generator).tolist()
    parts, start = [], 0
    for count in counts:
        parts.append(Subset(dataset, order[start : start + count]))
        start += count
    return parts


class ChainDataset(IterableDataset):
    """Several streams as one: all samples of the first, then those of the second, and so on.

    As `torch.utils.data.ChainDataset`.

    Args:
        datasets (iterable of IterableDataset): They are iterated over only when the chain is.

    Raises:
        AssertionError: While iterating, a dataset is no `IterableDataset`.

    Example:
        >>> class UpTo(mica.utils.data.IterableDataset):
        ...     def __init__(self, n):
        ...         self.n = n
        ...     def __iter__(self):
        ...         return iter(range(self.n))
        >>> list(UpTo(2) + UpTo(3))
        [0, 1, 0, 1, 2]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError(
                    f"ChainDataset chains IterableDatasets only; this one is a {type(d).__name__}."
                )
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class StackDataset(Dataset):
    """Datasets of one length side by side: sample `i` joins sample `i` of each.

    As `torch.utils.data.StackDataset`.

    Args:
        *args (Dataset): The datasets; a sample is a tuple.
        **kwargs (Dataset): The datasets by name; a sample is a dict. Give these or `args`, not both.

    Raises:
        ValueError: The lengths differ, there is no dataset, or both kinds are given.

    Example:
        >>> images, labels = ["cat.png", "dog.png"], [0, 1]
        >>> mica.utils.data.StackDataset(images, labels)[1]
        ('dog.png', 1)
        >>> mica.utils.data.StackDataset(image=images, label=labels)[1]
        {'image': 'dog.png', 'label': 1}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset takes datasets either by position or by name, and at least one.")
        self.datasets: Any = kwargs or args
        sizes = {len(d) for d in (kwargs.values() if kwargs else args)}
        if len(sizes) != 1:
            raise ValueError("Size mismatch between datasets")
        self._length = sizes.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {k: d[index] for k, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = {k: _several(d, indices) for k, d in self.datasets.items()}
            return [{k: c[i] for k, c in columns.items()} for i in range(len(indices))]
        return list(zip(*(_several(d, indices) for d in self.datasets)))

    def __len__(self) -> int:
        return self._length
