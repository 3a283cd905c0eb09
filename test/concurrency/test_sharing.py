"""Tensors in memory that several processes see: mica.multiprocessing, share_memory_(), loaders' workers."""

from __future__ import annotations

import gc
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from process import ran

import mica
import mica.multiprocessing as mp
from mica.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


def left_behind() -> list[str]:
    gc.collect()
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"mica_{os.getpid()}_")]


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request: Any) -> Any:
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


def answer(questions: Any, answers: Any) -> None:
    whole, part, parameter = questions.get()
    part.fill_(5)
    answers.put((whole.tolist(), whole.is_shared(), type(parameter).__name__, parameter.requires_grad))
    answers.put(mica.arange(3))
    questions.get()  # what it sent must live until it is taken


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_both_processes_see_what_either_writes(method: str, strategy: str) -> None:
    context = mp.get_context(method)
    questions, answers = context.Queue(), context.Queue()
    base = mica.zeros(4)
    view = base[2:]
    process = context.Process(target=answer, args=(questions, answers))
    process.start()
    questions.put((base, view, mica.nn.Parameter(mica.ones(2))))
    assert answers.get(timeout=60) == ([0, 0, 5, 5], True, "Parameter", True)
    assert base.tolist() == [0, 0, 5, 5] and view.tolist() == [5, 5]
    assert base.is_shared() and view.is_shared() and base.data_ptr() + 8 == view.data_ptr()
    assert answers.get(timeout=60).tolist() == [0, 1, 2]
    questions.put(None)
    process.join(30)
    assert process.exitcode == 0
    del base, view, process, questions
    assert left_behind() == []


def test_views_follow_when_memory_moves() -> None:
    x = mica.arange(6.0)
    views = [x[1:], x.view(2, 3).t(), x.view(1, 1, 1, 1, 1, 6)]
    before = [v.tolist() for v in views]
    gone = x[2:]
    del gone  # what stood in a tensor that is no more is not taken for one
    x.share_memory_()
    assert [v.tolist() for v in views] == before and all(v.is_shared() for v in views)
    x.mul_(2)
    assert views[0].tolist() == [2, 4, 6, 8, 10]
    assert not mica.ones(2).is_shared()


def test_a_shared_storage_grows() -> None:
    x = mica.arange(3.0)
    y, z = x[1:], x.detach()
    y.resize_(100000)
    z.fill_(7)
    assert y[:2].tolist() == [7, 7] and x.data_ptr() == z.data_ptr() and y.data_ptr() == x.data_ptr() + 4


def test_modules_are_shared() -> None:
    model = mica.nn.Linear(3, 2).share_memory()
    assert all(p.is_shared() and p.requires_grad and p.is_leaf for p in model.parameters())


def test_history_does_not_travel() -> None:
    with pytest.raises(RuntimeError, match="detach"):
        mp.reductions.reduce_tensor(mica.ones(2, requires_grad=True) * 2)


def test_names_go_when_processes_are_killed() -> None:
    program = """
        import os, signal, mica, mica.multiprocessing as mp
        mp.set_sharing_strategy("file_system")
        x = mica.ones(4).share_memory_()
        print(*[n for n in os.listdir("/dev/shm") if n.startswith(f"mica_{os.getpid()}_")], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    name = ran(program).stdout.strip()
    assert name.startswith("mica_")
    end = time.monotonic() + 20
    while (Path("/dev/shm") / name).exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not (Path("/dev/shm") / name).exists()


def test_a_full_file_system_is_an_error_and_no_bus_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.setattr("mica._memory.shared._strategy", ["file_system"])
    with pytest.raises(RuntimeError, match="no room for 16 bytes"):
        mica.ones(4).share_memory_()
    assert left_behind() == []


class Samples(Dataset):
    """What workers send, by index."""

    def __init__(self, samples: list[Any]) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> Any:
        return self.samples[i]


def test_batches_lie_in_shared_memory() -> None:
    loader = DataLoader(Samples([mica.full((64, 64), float(i)) for i in range(40)]), 2, num_workers=2)
    seen = []
    for batch in loader:
        assert batch.is_shared()
        seen.append(batch)  # kept: its memory is not used again
    assert [int(b[1, 5, 5]) for b in seen] == list(range(1, 40, 2))


def test_memory_is_used_again_and_only_then() -> None:
    loader = DataLoader(Samples([mica.full((64, 64), float(i)) for i in range(60)]), 1, num_workers=1)
    addresses, kept = set(), []
    for i, batch in enumerate(loader):
        addresses.add(batch.data_ptr())
        if i % 10 == 0:
            kept.append((i, batch[0, 1]))  # a view keeps it too
        assert batch.eq(i).all()
    assert all(view.eq(i).all() for i, view in kept)
    assert len(addresses) < 20


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_what_workers_send(method: str) -> None:
    base = mica.arange(12.0).view(3, 4)
    samples = [
        {
            "view": base[1],
            "whole": base,
            "turned": base.t(),
            "none": mica.empty(0, 3),
            "bool": mica.tensor(True),
        },
        mica.nn.Parameter(mica.ones(2)),
        [1, "text", mica.ones(2, dtype=mica.bfloat16), mica.ones(1, dtype=mica.complex64)],
    ]
    loader = DataLoader(Samples(samples), None, num_workers=1, multiprocessing_context=method)
    first, parameter, rest = loader
    assert first["view"].tolist() == base[1].tolist() and first["turned"].tolist() == base.t().tolist()
    assert (
        first["turned"].stride() == (1, 4) and first["none"].shape == (0, 3) and first["bool"].item() is True
    )
    first["whole"].fill_(-3)
    assert first["turned"].eq(-3).all()
    if method == "fork":  # else the dataset went to the worker through shared memory
        assert not base.eq(-3).any()
    assert isinstance(parameter, mica.nn.Parameter) and parameter.tolist() == [1, 1]
    assert rest[:2] == [1, "text"] and rest[2].dtype == mica.bfloat16 and rest[3].tolist() == [1]


def test_batches_that_are_kept_take_few_descriptors() -> None:
    loader = DataLoader(Samples([mica.ones(2)] * 700), None, num_workers=2)
    before = len(os.listdir("/proc/self/fd"))
    kept = list(loader)
    assert len(kept) == 700 and len(os.listdir("/proc/self/fd")) <= before + 256
    first, last = mp.get_context("fork").Pipe()
    last.send(kept[0])
    kept[0][0] = 7
    assert first.recv().tolist() == [7, 1]  # sent on as it lies
    with pytest.raises(RuntimeError, match="clone"):
        last.send(kept[-1])


class Unsendable(Samples):
    def __getitem__(self, i: int) -> Any:
        return lambda: i


class Stops(Samples):
    def __getitem__(self, i: int) -> Any:
        raise StopIteration


class Fails(IterableDataset):
    def __iter__(self) -> Any:
        yield 1
        raise OSError("the disk is gone")


def failing(worker: int) -> None:
    raise RuntimeError(f"worker {worker} does not start")


@pytest.mark.parametrize(
    ("dataset", "options", "kind", "text"),
    [
        (Unsendable([0]), {"batch_size": None}, Exception, "ickle"),
        (Stops([0]), {}, RuntimeError, "StopIteration"),
        (Fails(), {"batch_size": None}, OSError, "the disk is gone"),
        (Samples([0]), {"worker_init_fn": failing}, RuntimeError, "worker 0 does not start"),
    ],
)
def test_errors_of_workers_come_with_their_traceback(
    dataset: Any, options: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text) as caught:
        list(DataLoader(dataset, num_workers=1, **options))
    assert "Traceback" in str(caught.value) and "Worker process (0)" in str(caught.value)


def test_an_error_does_not_end_the_loader() -> None:
    class Odd(Samples):
        def __getitem__(self, i: int) -> Any:
            if i % 2:
                raise ValueError(f"sample {i}")
            return i

    batches, seen = iter(DataLoader(Odd([0] * 6), None, num_workers=2)), []
    for _ in range(6):
        try:
            seen.append(next(batches))
        except ValueError as error:
            seen.append(str(error).splitlines()[-1])
    assert seen == [0, "ValueError: sample 1", 2, "ValueError: sample 3", 4, "ValueError: sample 5"]


class Waits(Samples):
    def __getitem__(self, i: int) -> Any:
        if i == 1:
            time.sleep(60)
        return i


def test_timeouts_and_ends_in_bounded_time() -> None:
    start = time.monotonic()
    loader = iter(DataLoader(Waits([0] * 3), None, num_workers=2, timeout=0.5))
    pids = [process.pid for process in loader._workers]
    assert next(loader) == 0
    with pytest.raises(RuntimeError, match=r"timed out.*\(0.5\) seconds"):
        next(loader)
    del loader
    assert time.monotonic() - start < 15
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_out_of_order() -> None:
    class Slow(Samples):
        def __getitem__(self, i: int) -> Any:
            info = get_worker_info()
            if info is not None and info.id == 0:
                time.sleep(0.3)
            return i

    seen = list(DataLoader(Slow([0] * 8), None, num_workers=2, in_order=False))
    assert sorted(seen) == list(range(8)) and seen != sorted(seen)


def test_killed_between_batches() -> None:
    loader = DataLoader(Samples([mica.ones(3)] * 20), None, num_workers=2, persistent_workers=True)
    batches = iter(loader)
    next(batches)
    victim = batches._workers[1]
    os.kill(victim.pid, signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"\(pid\(s\) {victim.pid}\).*SIGKILL"):
        list(batches)
    assert time.monotonic() - start < 10


def test_workers_end_with_the_main_process() -> None:
    program = """
        import os, signal, mica
        from mica.utils.data import DataLoader
        loader = iter(DataLoader(mica.rand(1000, 8), 4, num_workers=2))
        next(loader)
        print(*[p.pid for p in loader._workers], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    pids = [int(pid) for pid in ran(program).stdout.split()]
    assert len(pids) == 2
    end = time.monotonic() + 20
    while any(alive(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in pids)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_part_of_a_storage_begins_where_it_was_cut():
    storage = mica.arange(24, dtype=mica.uint8).untyped_storage()
    part = storage[8:24]
    assert mica.asarray(part, dtype=mica.uint8).tolist() == list(range(8, 24))
    assert mica.tensor(part, dtype=mica.uint8).tolist() == list(range(8, 24))
    assert mica.empty(0, dtype=mica.uint8).set_(part, 2, (3,), (2,)).tolist() == [10, 12, 14]
    assert mica.asarray(part, dtype=mica.int32)[0].item() == int.from_bytes(bytes(range(8, 12)), "little")
