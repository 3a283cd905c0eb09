"""Samplers: iterables of the indices that a loader asks for, drawn as torch draws them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import GenericAlias
from typing import Any

import mica


class Sampler:
    """The base of samplers: __iter__() gives indices, or lists of them."""

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, data_source: Any = None) -> None:
        """Takes no data of its own."""

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
        if not isinstance(replacement, bool):
            raise TypeError(f"The option replacement is True or False; this value is ({replacement!r}).")
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
        if not isinstance(drop_last, bool):
            raise ValueError(f"The option drop_last is True or False; this value is ({drop_last!r}).")
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


class WeightedRandomSampler(Sampler):
    """`num_samples` indices by weights, which need not sum to one."""

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = mica.as_tensor(weights, dtype=mica.double)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = mica.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class DistributedSampler(Sampler):
    """The indices of one process of several: every `num_replicas`-th, from `rank` on."""

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise RuntimeError("Requires distributed package to be available: give num_replicas and rank.")
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.drop_last, self.shuffle, self.seed = 0, drop_last, shuffle, seed
        whole = drop_last and len(dataset) % num_replicas != 0
        self.num_samples = len(dataset) // num_replicas if whole else -(-len(dataset) // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        if self.shuffle:
            generator = mica.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = mica.randperm(len(self.dataset), generator=generator).tolist()
        else:
            indices = list(range(len(self.dataset)))
        missing = self.total_size - len(indices)
        if missing > 0:
            indices += (indices * -(-missing // len(indices)))[:missing]
        return iter(indices[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Makes the order another."""
        self.epoch = epoch
