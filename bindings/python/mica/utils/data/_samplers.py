"""Samplers: iterables of the indices that a loader asks for, drawn as torch draws them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import GenericAlias
from typing import Any

import mica


class Sampler:
    """The base of samplers, which say in what order a `DataLoader` reads a dataset.

    As `torch.utils.data.Sampler`. A subclass defines `__iter__()`, which gives indices, or lists of
    indices where it is a loader's `batch_sampler`; and `__len__()`, if `len(loader)` shall work.

    Args:
        data_source (Any, optional): Ignored; old programs pass it. Default: None.

    Example:
        >>> class Backwards(mica.utils.data.Sampler):
        ...     def __init__(self, data):
        ...         self.data = data
        ...     def __iter__(self):
        ...         return iter(range(len(self.data) - 1, -1, -1))
        >>> data = [10, 20, 30]
        >>> list(mica.utils.data.DataLoader(data, batch_size=3, sampler=Backwards(data)))
        [tensor([30, 20, 10])]
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, data_source: Any = None) -> None:
        """Takes no data of its own."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__().")


class SequentialSampler(Sampler):
    """The indices 0, 1, 2, ... in order.

    As `torch.utils.data.SequentialSampler`. A `DataLoader` uses it unless `shuffle` is true.

    Args:
        data_source (Dataset): Only its length is asked, when iteration begins.

    Example:
        >>> list(mica.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """The indices of a dataset in random order, another one in each pass.

    As `torch.utils.data.RandomSampler`, number for number. A `DataLoader` with `shuffle=True` uses it.

    Args:
        data_source (Dataset): Only its length is asked.
        replacement (bool): Draws each index independently, so that one may come several times.
            Default: False, every index once before any comes again.
        num_samples (int, optional): Indices in a pass. Default: `len(data_source)`.
        generator (Generator, optional): Draws the order. Default: one that a number of the default
            generator seeds, anew in each pass.

    Raises:
        TypeError: `replacement` is no bool.
        ValueError: The number of samples is not positive.

    Example:
        >>> sampler = mica.utils.data.RandomSampler(range(5), generator=mica.Generator().manual_seed(0))
        >>> sorted(sampler)
        [0, 1, 2, 3, 4]
        >>> len(mica.utils.data.RandomSampler(range(5), replacement=True, num_samples=8))
        8
    """

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
        """Indices in a pass: as many as were asked for, or as the data source has now."""
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
    """Given indices in random order, another one in each pass.

    As `torch.utils.data.SubsetRandomSampler`. Two of them read a training and a test part of one dataset.

    Args:
        indices (sequence of int): The indices; each comes once in a pass.
        generator (Generator, optional): Draws the order. Default: the default generator.

    Example:
        >>> sampler = mica.utils.data.SubsetRandomSampler([1, 3, 5])
        >>> sorted(sampler)
        [1, 3, 5]
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in mica.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class BatchSampler(Sampler):
    """Groups the indices of another sampler into lists of one length.

    As `torch.utils.data.BatchSampler`.

    Args:
        sampler (Sampler or iterable of int): Gives the indices.
        batch_size (int): Indices in a list.
        drop_last (bool): Leaves out the last list if it is shorter than the others.

    Raises:
        ValueError: `batch_size` is not positive, or `drop_last` is no bool.

    Example:
        >>> list(mica.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
        >>> list(mica.utils.data.BatchSampler(range(5), batch_size=2, drop_last=True))
        [[0, 1], [2, 3]]
    """

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
    """Random indices, each as likely as its weight: balances classes of unequal size.

    As `torch.utils.data.WeightedRandomSampler`.

    Args:
        weights (sequence of float or Tensor): `(N,)`, one for each index, not negative; they need not sum to 1.
        num_samples (int): Indices in a pass.
        replacement (bool): An index may come several times. Default: True.
        generator (Generator, optional): Draws the indices. Default: the default generator.

    Raises:
        ValueError: `num_samples` is no positive int, `replacement` no bool, or `weights` not of one dimension.
        RuntimeError: While iterating: a weight is negative or not finite, or without replacement more
            indices are asked for than there are.

    Example:
        >>> sampler = mica.utils.data.WeightedRandomSampler([0.0, 0.0, 1.0], num_samples=4)
        >>> list(sampler)
        [2, 2, 2, 2]
    """

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
    """The part of a dataset that one of several processes trains on: indices `rank`, `rank + num_replicas`, ...

    As `torch.utils.data.DistributedSampler`.

    Args:
        dataset (Dataset): Only its length is asked.
        num_replicas (int, optional): How many processes there are. Default: None, the default group's ranks.
        rank (int, optional): Which of them this one is, from 0 on. Default: None, as the default group says.
        shuffle (bool): Shuffles all indices before they are dealt out. Default: True.
        seed (int): With the epoch, seeds the order. All processes must give the same one. Default: 0.
        drop_last (bool): Leaves out the samples at the end that do not go around. Default: False, first
            indices come again, so that every process gets the same number.

    Raises:
        ValueError: `num_replicas` or `rank` is None and there is no default group; or `rank` is not in `[0, num_replicas - 1]`.

    Example:
        >>> def part(rank):
        ...     return list(mica.utils.data.DistributedSampler(range(5), 2, rank, shuffle=False))
        >>> part(0), part(1)
        ([0, 2, 4], [1, 3, 0])
    """

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
            from mica.distributed import get_rank, get_world_size

            num_replicas = get_world_size() if num_replicas is None else num_replicas
            rank = get_rank() if rank is None else rank
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
        """Makes the next passes' order that of an epoch; call it before each, or all have the same order.

        Args:
            epoch (int): The number of the epoch. It is added to the seed.
        """
        self.epoch = epoch
