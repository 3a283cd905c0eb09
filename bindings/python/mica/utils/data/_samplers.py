"""Samplers: iterables of the indices that a loader asks for, drawn as torch draws them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import mica


class Sampler:
    """The base of samplers: __iter__() gives indices, or lists of them."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__().")


class SequentialSampler(Sampler):
    """0, 1, 2, ... in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All indices in random order; with `replacement`, `num_samples` independent ones."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples
        if self.num_samples <= 0:
            raise ValueError(f"The number of samples ({self.num_samples}) must be positive.")

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, generator = len(self.data_source), self.generator
        if generator is None:  # one number of the default generator seeds the whole order
            generator = mica.Generator()
            generator.manual_seed(int(mica.empty((), dtype=mica.int64).random_().item()))
        if self.replacement:
            for start in range(0, self.num_samples, 32):
                size = (min(32, self.num_samples - start),)
                yield from mica.randint(0, n, size, dtype=mica.int64, generator=generator).tolist()
            return
        for _ in range(self.num_samples // n):
            yield from mica.randperm(n, generator=generator).tolist()
        yield from mica.randperm(n, generator=generator).tolist()[: self.num_samples % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in mica.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class BatchSampler(Sampler):
    """Lists of `batch_size` indices of another sampler."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        if batch_size <= 0:
            raise ValueError(f"The batch size ({batch_size}) must be positive.")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
