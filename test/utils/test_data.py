"""mica.utils.data: loaders with and without worker processes give the same batches."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
from process import printed

import mica
from mica.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info


class Squares(Dataset):
    def __len__(self) -> int:
        return 11

    def __getitem__(self, index: int) -> tuple[mica.Tensor, int]:
        return mica.full((2,), float(index)) ** 2, index


class Workers(Squares):
    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        return -1 if info is None else info.id


class Broken(Squares):
    def __getitem__(self, index: int) -> Any:
        if index == 5:
            raise KeyError(f"sample {index}")
        return index


class Dying(Squares):
    def __getitem__(self, index: int) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(range(5))


def batches(workers: int, **options: Any) -> list[Any]:
    mica.manual_seed(5)
    loader = DataLoader(Squares(), batch_size=4, num_workers=workers, **options)
    return [(x.tolist(), y.tolist()) for x, y in loader]


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"drop_last": True}, {"prefetch_factor": 1}])
@pytest.mark.parametrize("workers", [1, 3])
def test_workers_give_the_batches_in_order(workers: int, options: dict[str, Any]) -> None:
    without = {k: v for k, v in options.items() if k != "prefetch_factor"}
    assert batches(workers, **options) == batches(0, **without)


def test_workers_know_their_number() -> None:
    seen = [b.tolist() for b in DataLoader(Workers(), batch_size=3, num_workers=2)]
    assert seen == [[0] * 3, [1] * 3, [0] * 3, [1] * 2]
    assert get_worker_info() is None


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_comes_where_the_batch_is_awaited(workers: int) -> None:
    batches = iter(DataLoader(Broken(), batch_size=2, num_workers=workers))
    assert next(batches).tolist() == [0, 1] and next(batches).tolist() == [2, 3]
    with pytest.raises(KeyError, match="sample 5"):
        next(batches)


def test_a_worker_that_dies_is_reported() -> None:
    with pytest.raises(RuntimeError, match=r"exit code \(-9\)"):
        list(DataLoader(Dying(), num_workers=1))


CROWDED = """
import os, resource, mica
from mica.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(mica.ones(8, 4)), num_workers=1, multiprocessing_context="fork")
batches = iter(loader)
free = os.dup(0)
os.close(free)
resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, free + 1))  # for the socket, not for what comes by it
try:
    next(batches)
except RuntimeError as error:
    print(error)
"""


def test_too_many_open_files_are_reported() -> None:
    assert (
        "sent (1) descriptors" in (said := printed(CROWDED)) and "(0) came" in said and "open files" in said
    )


def test_a_loader_may_be_left_early() -> None:
    start = time.monotonic()
    for _ in range(3):
        assert len(next(iter(DataLoader(Squares(), num_workers=2)))) == 2
    assert time.monotonic() - start < 20


def test_streams() -> None:
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2, num_workers=1)] == [[0, 1], [2, 3], [4]]


def test_one_gather_serves_tensor_datasets() -> None:
    data = TensorDataset(mica.arange(6).reshape(3, 2), mica.arange(3))
    assert [[t.tolist() for t in b] for b in DataLoader(data, 2)] == [
        [[[0, 1], [2, 3]], [0, 1]],
        [[[4, 5]], [2]],
    ]


@pytest.mark.parametrize(
    "options", [{"batch_size": 0}, {"num_workers": -1}, {"sampler": [0], "shuffle": True}, {"batch_sampler": [[0]], "drop_last": True}]
)  # fmt: skip
def test_options_that_do_not_fit(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        DataLoader(Squares(), **options)
