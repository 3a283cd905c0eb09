"""Loaders beside torch's: the same batches in the same order, the same draws, the same seeds of
workers, from the same program with either library under the name L."""

from __future__ import annotations

import pickle
import random
import warnings
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest
import torch

import mica

import mica.utils.data  # isort: skip
from mica.torch import namespace  # isort: skip
import torch.utils.data  # isort: skip

Pair = namedtuple("Pair", "a b")


class Rows:
    """Samples that say which they are, who loaded them and what that worker draws."""

    def __init__(self, L: Any, n: int = 11) -> None:
        self.L, self.n = L, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        info = self.L.utils.data.get_worker_info()
        who = (-1, 0, 0) if info is None else (info.id, info.num_workers, info.seed % 1000)
        return i, self.L.full((2,), float(i)), *who


class Draws(Rows):
    """What each generator of a worker draws first."""

    def __getitem__(self, i: int) -> Any:
        if self.L.utils.data.get_worker_info() is None:
            return i
        return self.L.randint(0, 1 << 30, (2,)), random.random(), int(np.random.randint(1 << 30))


class Many(Rows):
    def __getitems__(self, places: list[int]) -> list[Any]:
        return [(place, len(places)) for place in places]


def stream(L: Any, sizes: list[int]) -> Any:
    """An iterable dataset whose worker number k gives sizes[k] samples."""

    class Stream(L.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            info = L.utils.data.get_worker_info()
            k = 0 if info is None else info.id
            return iter(range(100 * k, 100 * k + sizes[k]))

    return Stream()


def fixed(L: Any) -> Any:
    class Fixed(L.utils.data.Sampler):
        def __init__(self) -> None:
            pass

        def __iter__(self) -> Any:
            return iter(L.randperm(7).tolist())  # draws when the iterator is made

        def __len__(self) -> int:
            return 7

    return Fixed()


def plain(value: Any) -> Any:
    if isinstance(value, (mica.Tensor, torch.Tensor)):
        return str(value.dtype).rpartition(".")[2], value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v) for v in value]
    return value


# Each: the loader of a library. The epochs' batches, and what is drawn after them, must be the same.
LOADERS: dict[str, Any] = {
    "plain": lambda L, D: D.DataLoader(Rows(L), 4),
    "shuffled": lambda L, D: D.DataLoader(Rows(L), 3, shuffle=True, drop_last=True),
    "generator": lambda L, D: D.DataLoader(
        Rows(L), 3, shuffle=True, generator=L.Generator().manual_seed(3), num_workers=2
    ),
    "workers": lambda L, D: D.DataLoader(Rows(L), 2, shuffle=True, num_workers=2),
    "worker seeds": lambda L, D: D.DataLoader(Draws(L, 4), 1, num_workers=2, collate_fn=list),
    "single samples": lambda L, D: D.DataLoader(Rows(L), None, sampler=fixed(L)),
    "an eager sampler": lambda L, D: D.DataLoader(Rows(L), 2, sampler=fixed(L), num_workers=1),
    "a batch sampler": lambda L, D: D.DataLoader(
        Rows(L), batch_sampler=D.BatchSampler(D.RandomSampler(range(11)), 4, False), num_workers=2
    ),
    "__getitems__": lambda L, D: D.DataLoader(Many(L), 4, num_workers=1),
    "subset": lambda L, D: D.DataLoader(D.Subset(Rows(L), [3, 1, 4, 1, 5]), 2),
    "stream": lambda L, D: D.DataLoader(stream(L, [5]), 2, drop_last=True),
    "uneven streams": lambda L, D: D.DataLoader(stream(L, [5, 1, 8]), 2, num_workers=3),
    "short stream first": lambda L, D: D.DataLoader(stream(L, [0, 7]), None, num_workers=2),
    "persistent": lambda L, D: D.DataLoader(Rows(L), 4, num_workers=2, persistent_workers=True),
    "persistent streams": lambda L, D: D.DataLoader(
        stream(L, [3, 6]), 2, num_workers=2, persistent_workers=True
    ),
    "weighted": lambda L, D: D.DataLoader(
        Rows(L), 4, sampler=D.WeightedRandomSampler([0.1, 3.0, 0.5, 1.0], 9)
    ),
    "replacement": lambda L, D: D.DataLoader(
        Rows(L), 5, sampler=D.RandomSampler(Rows(L), True, num_samples=40)
    ),
    "pipe": lambda L, D: D.DataLoader(
        D.datapipes.iter.IterableWrapper(range(20)).map(_double).filter(_third).shuffle().batch(2), None
    ),
    "a pipe that stays": lambda L, D: D.DataLoader(
        D.datapipes.iter.IterableWrapper(range(9)).shuffle(buffer_size=4).sharding_filter(),
        2,
        num_workers=2,
        persistent_workers=True,
    ),
    "pipe with shards": lambda L, D: D.DataLoader(
        D.datapipes.iter.IterableWrapper(range(20)).shuffle().sharding_filter(),
        3,
        num_workers=2,
        shuffle=True,
    ),
}


def _double(x: int) -> int:
    return 2 * x


def _third(x: int) -> bool:
    return x % 3 != 0


def run(L: Any, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        L.manual_seed(11)
        random.seed(4)
        loader = LOADERS[name](L, L.utils.data)
        epochs = [[plain(batch) for batch in loader] for _ in range(2)]
        return epochs, L.randint(0, 1000, (3,)).tolist(), random.random()


@pytest.mark.parametrize("name", LOADERS)
def test_batches(name: str) -> None:
    assert run(mica, name) == run(torch, name)


@pytest.mark.parametrize("workers", [0, 1])
def test_what_iter_draws(workers: int) -> None:
    """The order is drawn where torch draws it: with workers, in iter()."""
    found = []
    for L in (mica, torch):
        L.manual_seed(2)
        batches = iter(L.utils.data.DataLoader(range(8), 2, shuffle=True, num_workers=workers))
        drawn = L.randint(0, 1000, (2,)).tolist()
        found.append((drawn, [b.tolist() for b in batches]))
    assert found[0] == found[1]


def test_loaders_are_pickled() -> None:
    for L in (mica, torch):
        loader = L.utils.data.DataLoader(L.utils.data.TensorDataset(L.arange(4)), 2, num_workers=1)
        assert [b[0].tolist() for b in pickle.loads(pickle.dumps(loader))] == [[0, 1], [2, 3]]
        with pytest.raises(NotImplementedError):
            pickle.dumps(iter(loader))


SAMPLES: dict[str, Any] = {
    "numbers": lambda L: [1, 2, 3],
    "floats": lambda L: [1.5, 2.0],
    "bools": lambda L: [True, False],
    "texts": lambda L: ["a", "b"],
    "tuples": lambda L: [(1, "a"), (2, "b")],
    "named": lambda L: [Pair(1, L.ones(2)), Pair(2, L.zeros(2))],
    "dicts": lambda L: [{"x": [1.0, 2.0]}, {"x": [3.0, 4.0]}],
    "ordered": lambda L: [OrderedDict(x=1, y=2), OrderedDict(x=3, y=4)],
    "arrays": lambda L: [np.ones(2, np.float32), np.zeros(2, np.float32)],
    "numpy's numbers": lambda L: [np.float32(1.5), np.float32(2)],
    "numpy's integers": lambda L: [np.int16(3), np.int16(4)],
    "numpy's doubles": lambda L: [np.float64(3), np.float64(4)],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_collating(name: str) -> None:
    make = SAMPLES[name]
    assert plain(mica.utils.data.default_collate(make(mica))) == plain(
        torch.utils.data.default_collate(make(torch))
    )
    assert plain(mica.utils.data.default_convert(make(mica))) == plain(
        torch.utils.data.default_convert(make(torch))
    )


BAD: list[dict[str, Any]] = [
    {"num_workers": -1},
    {"timeout": -1},
    {"prefetch_factor": 2},
    {"persistent_workers": True},
    {"sampler": [1], "shuffle": True},
    {"batch_sampler": [[1]], "drop_last": True},
    {"batch_size": None, "drop_last": True},
    {"multiprocessing_context": "fork"},
    {"multiprocessing_context": "thread", "num_workers": 1},
    {"multiprocessing_context": 3, "num_workers": 1},
]


@pytest.mark.parametrize("options", BAD)
def test_bad_options_are_refused_alike(options: dict[str, Any]) -> None:
    with pytest.raises(Exception) as theirs:
        torch.utils.data.DataLoader(Rows(torch), **options)
    with pytest.raises(theirs.type, match=r"\.$"):
        mica.utils.data.DataLoader(Rows(mica), **options)


def test_a_stream_takes_no_sampler() -> None:
    for options in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}):
        for L in (mica, torch):
            with pytest.raises(ValueError, match="expected unspecified"):
                L.utils.data.DataLoader(stream(L, [1]), **options)


def test_what_is_fixed_stays() -> None:
    for L in (mica, torch):
        with pytest.raises(ValueError, match="should not be set"):
            L.utils.data.DataLoader(Rows(L)).batch_size = 3


SHIM = namespace()


class LookAlike:
    """What a library gives the iterators instead of a DataLoader: a stream that makes its own batches."""

    collate_fn, generator, timeout, prefetch_factor = staticmethod(lambda batch: batch), None, 0, None
    pin_memory, pin_memory_device, persistent_workers, drop_last, in_order = False, "", False, False, True
    num_workers, worker_init_fn, multiprocessing_context = 0, None, None
    _auto_collation, _IterableDataset_len_called, _get_shared_seed = False, None, None

    def __init__(self, kind: Any, dataset: Any) -> None:
        self.dataset = dataset
        self._dataset_kind, self._index_sampler = kind, range(3)


def test_look_alikes_of_a_loader() -> None:
    found = []
    for L in (SHIM, torch):
        data = L.utils.data
        kinds = data.dataloader._DatasetKind
        give = kinds.create_fetcher(kinds.Map, [5, 6, 7], True, list, False)
        found.append(
            [
                [kinds.Map, kinds.Iterable, give.fetch([2, 0])],
                list(data.dataloader._SingleProcessDataLoaderIter(LookAlike(kinds.Iterable, [1, 2]))),
                list(data.dataloader._SingleProcessDataLoaderIter(LookAlike(kinds.Map, [4, 5, 6]))),
            ]
        )
    assert found[0] == found[1] and found[0][1] == [1, 2]
