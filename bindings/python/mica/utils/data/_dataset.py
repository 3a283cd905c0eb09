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
    """The base of datasets that are indexed."""

    __class_getitem__ = classmethod(GenericAlias)

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__().")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """The base of datasets that are only iterated over."""

    def __add__(self, other: Any) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__().")


class ConcatDataset(Dataset):
    """Several datasets, one after the other."""

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
    """Samples are the rows of tensors."""

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
    """Some samples of a dataset."""

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
    """Parts of random samples, of the given lengths or shares."""
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
    """Several iterable datasets, one after the other."""

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
    """Samples of several datasets side by side: a tuple, or a dict where they are named."""

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
