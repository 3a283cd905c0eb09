"""Checkpoints where ranks, saves and programs meet: one rank's failure, a writer that several saves use, other savers."""

from __future__ import annotations

import dataclasses
import gc
import re
import threading
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from process import ran
from ranks import on_all

import mica
import mica.distributed as dist
from mica.distributed import checkpoint
from mica.distributed.checkpoint import CheckpointException, FileSystemReader, FileSystemWriter
from mica.distributed.checkpoint.staging import DefaultStager, _copied_dict
from mica.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from mica.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys


class Failing:
    """An object whose state cannot be had."""

    def state_dict(self) -> dict[str, Any]:
        raise ArithmeticError("no state today")

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes nothing."""


# ---- a rank that fails before it plans


def saved_at_once(state: dict[str, Any], folder: Path) -> None:
    checkpoint.save(state, checkpoint_id=folder)


def saved_later(state: dict[str, Any], folder: Path) -> None:
    found = checkpoint.async_save(state, checkpoint_id=folder)
    assert isinstance(found, Future)
    found.result(20)


def staged_later(state: dict[str, Any], folder: Path) -> None:
    stager = DefaultStager()
    found = checkpoint.async_save(state, checkpoint_id=folder, async_stager=stager)
    assert not isinstance(found, Future)
    try:
        found.upload_completion.result(20)
    finally:
        stager.close()


@pytest.mark.parametrize("save", [saved_at_once, saved_later, staged_later])
@pytest.mark.parametrize("bad", [Failing(), threading.Lock()], ids=["state_dict", "lock"])
def test_a_rank_without_a_state_fails_that_save_on_every_rank(save: Any, bad: Any, tmp_path: Path) -> None:
    def f(r: int) -> str:
        with pytest.raises(BaseException, match="no state today|lock") as caught:
            save({f"r{r}": mica.ones(3), **({"bad": bad} if r == 1 else {})}, tmp_path)
        save({f"r{r}": mica.zeros(3), "step": 2}, tmp_path)
        return str(caught.value)

    said = on_all(2, f)
    assert re.match(r"Rank \(1\) fails in the step \((plan|write)\): (ArithmeticError|TypeError): ", said[0])
    found = _load_state_dict_from_keys(checkpoint_id=tmp_path)
    assert found["step"] == 2 and found["r0"].tolist() == found["r1"].tolist() == [0, 0, 0]


class Odd(checkpoint.DefaultSavePlanner):
    """Plans what does not travel, or for another number of ranks."""

    def __init__(self, what: str, rank: int) -> None:
        super().__init__()
        self.what, self.rank = what, rank

    def create_local_plan(self) -> Any:
        plan = super().create_local_plan()
        odd = self.what == "local" and self.rank == 1
        return dataclasses.replace(plan, planner_data=threading.Lock()) if odd else plan

    def create_global_plan(self, all_plans: Any) -> Any:
        plans, metadata = super().create_global_plan(all_plans)
        if self.what == "global":
            plans = [dataclasses.replace(plan, planner_data=threading.Lock()) for plan in plans]
        return plans[:1] if self.what == "short" else plans, metadata


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("local", r"Rank \(1\) fails in the step \(plan\): TypeError: .*lock"),
        ("global", r"Rank \(0\) fails in the step \(finish plan\): TypeError: .*lock"),
        (
            "short",
            r"Rank \(0\) fails in the step \(finish plan\): ValueError: .* \(1\) plans for \(2\) ranks",
        ),
    ],
)
def test_plans_that_do_not_travel_fail_the_save_on_every_rank(what: str, said: str, tmp_path: Path) -> None:
    def f(r: int) -> None:
        state = {"x": mica.ones(4), "y": mica.ones(5)}
        with pytest.raises(CheckpointException, match=said):
            checkpoint.save(state, checkpoint_id=tmp_path, planner=Odd(what, r))
        checkpoint.save(state, checkpoint_id=tmp_path)

    on_all(2, f)


@pytest.mark.parametrize("what", ["state", "folder"])
def test_a_rank_that_cannot_begin_a_load_fails_it_on_every_rank(what: str, tmp_path: Path) -> None:
    checkpoint.save({"x": mica.ones(2)}, checkpoint_id=tmp_path, no_dist=True)

    def f(r: int) -> list[float]:
        state: dict[str, Any] = {"x": mica.zeros(2)}
        broken = {**state, "bad": Failing()} if r == 1 and what == "state" else state
        with pytest.raises(CheckpointException, match=r"Rank \(1\) fails in the step \(plan\)"):
            checkpoint.load(broken, checkpoint_id=None if r == 1 and what == "folder" else tmp_path)
        checkpoint.load(state, checkpoint_id=tmp_path)
        return state["x"].tolist()

    assert on_all(2, f) == [[1, 1], [1, 1]]


def test_a_rank_without_a_folder_fails_the_save_on_every_rank(tmp_path: Path) -> None:
    def f(r: int) -> None:
        for save in (checkpoint.save, lambda *a, **k: checkpoint.async_save(*a, **k).result(20)):
            with pytest.raises(RuntimeError, match=r"Rank \(1\) .*`checkpoint_id` must be specified"):
                save({"x": mica.ones(1)}, checkpoint_id=None if r == 1 else tmp_path)

    on_all(2, f)


def test_a_ctrl_c_while_a_state_is_copied_is_raised_and_told(tmp_path: Path) -> None:
    class Stopped(Failing):
        def state_dict(self) -> dict[str, Any]:
            raise KeyboardInterrupt

    def f(r: int) -> None:
        if r == 1:
            with pytest.raises(KeyboardInterrupt):
                checkpoint.async_save({"bad": Stopped()}, checkpoint_id=tmp_path)
        else:
            with pytest.raises(CheckpointException, match=r"Rank \(1\) .*KeyboardInterrupt"):
                saved_later({"x": mica.ones(1)}, tmp_path)

    on_all(2, f)


class Pair(NamedTuple):
    left: Any
    right: Any


def test_what_save_takes_async_save_takes(tmp_path: Path) -> None:
    leaf = mica.ones(2, requires_grad=True)
    state = {"pair": Pair(leaf * 2, 1), "view": MappingProxyType({"x": leaf * 3})}
    assert type(_copied_dict(state)["pair"]) is Pair
    with mica.serialization.safe_globals([Pair]):
        checkpoint.save(state, checkpoint_id=tmp_path / "now", no_dist=True)
        checkpoint.async_save(state, checkpoint_id=tmp_path / "later", no_dist=True).result(20)
        found_of_each = [
            _load_state_dict_from_keys(checkpoint_id=tmp_path / name) for name in ("now", "later")
        ]
    for found in found_of_each:
        assert found["pair"][0].tolist() == [2, 2] and found["view"]["x"].tolist() == [3, 3]


def test_a_save_that_waits_is_not_cancelled_on_one_rank(tmp_path: Path) -> None:
    def f(r: int) -> None:
        futures = [checkpoint.async_save({"step": i}, checkpoint_id=tmp_path / str(i)) for i in range(3)]
        if r == 1:
            assert [future.cancel() for future in futures] == [False] * 3
        for future in futures:
            assert list(future.result(20).state_dict_metadata) == ["step"]

    on_all(2, f)


def test_a_state_of_rank_0_that_does_not_travel_is_told() -> None:
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)

    def f(r: int) -> None:
        model = mica.nn.Linear(2, 2)
        for more in ({"lock": threading.Lock()}, {}):
            state = {"weight": mica.full((2, 2), 3.0), "bias": mica.zeros(2), **more} if r == 0 else {}
            if more:
                with pytest.raises(TypeError, match=r"Rank \(0\) .*lock"):
                    set_model_state_dict(model, state, options=options)
            else:
                set_model_state_dict(model, state, options=options)
        assert model.weight.tolist() == [[3, 3], [3, 3]]

    on_all(2, f)


# ---- a writer that several saves use


class Stops(checkpoint.DefaultSavePlanner):
    """Fails before anything is written."""

    def finish_plan(self, new_plan: Any) -> Any:
        raise ArithmeticError("stops")


@pytest.mark.parametrize("world", [1, 2])
def test_a_save_that_fails_leaves_what_its_writer_wrote_before(world: int, tmp_path: Path) -> None:
    def f(r: int) -> None:
        writer, state = FileSystemWriter(tmp_path), {"x": mica.ones(3), "y": mica.ones(3)}
        checkpoint.save(state, storage_writer=writer)
        with pytest.raises(CheckpointException, match="stops"):
            checkpoint.save(state, storage_writer=writer, planner=Stops() if r == world - 1 else None)

    on_all(world, f)
    assert _load_state_dict_from_keys(checkpoint_id=tmp_path)["x"].tolist() == [1, 1, 1]


def test_saves_that_share_a_writer_keep_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, writer = threading.Event(), FileSystemWriter(tmp_path / "unused")
    plan = FileSystemWriter.prepare_global_plan

    def slow(self: Any, plans: Any) -> Any:
        go.wait(20)
        return plan(self, plans)

    monkeypatch.setattr(FileSystemWriter, "prepare_global_plan", slow)
    to: dict[str, Any] = {"storage_writer": writer, "no_dist": True}
    futures = [checkpoint.async_save({"n": n}, checkpoint_id=tmp_path / str(n), **to) for n in range(2)]
    threading.Timer(0.2, go.set).start()
    last = checkpoint.save({"n": 2}, checkpoint_id=tmp_path / "2", **to)
    for n, metadata in enumerate([*(future.result(20) for future in futures), last]):
        assert metadata.storage_meta.checkpoint_id == str(tmp_path / str(n))
        assert _load_state_dict_from_keys(checkpoint_id=tmp_path / str(n)) == {"n": n}
    assert not (tmp_path / "unused").exists()


# ---- the end of the process


def ended(program: str, folder: Path) -> str:
    """What a program said whose process ends while it saves."""
    start = "import sys, mica\nfrom mica.distributed import checkpoint\n"
    done = ran(start + program, str(folder))
    assert done.returncode == 0 and done.stdout == "", done
    return done.stderr


def test_threads_of_a_writer_end_before_the_process_does(tmp_path: Path) -> None:
    program = """
writer = checkpoint.FileSystemWriter(sys.argv[1], thread_count=3)
checkpoint.async_save({str(i): mica.full((9000,), float(i)) for i in range(6)}, storage_writer=writer, no_dist=True)
"""
    assert ended(program, tmp_path) == ""
    found = _load_state_dict_from_keys(checkpoint_id=tmp_path)
    assert {key: set(x.tolist()) for key, x in found.items()} == {str(i): {float(i)} for i in range(6)}
    assert len(list(tmp_path.iterdir())) == 4


def test_a_writer_whose_threads_cannot_be_started_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: threading.Thread) -> None:  # as Python 3.12 does when the process ends
        raise RuntimeError("can't create new thread at interpreter shutdown")

    writer, state = FileSystemWriter(tmp_path, thread_count=3), {str(i): mica.ones(3) for i in range(6)}
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        checkpoint.save(state, storage_writer=writer, no_dist=True)
    assert len(_load_state_dict_from_keys(checkpoint_id=tmp_path)) == 6 and len(list(tmp_path.iterdir())) == 4


def test_a_thread_of_a_writer_that_fails_fails_the_save(tmp_path: Path) -> None:
    writer = FileSystemWriter(tmp_path, thread_count=2, single_file_per_rank=False)
    state: dict[str, Any] = {str(i): mica.full((3,), float(i)) for i in range(5)}
    with pytest.raises(TypeError, match=r"key \(bad\), of type \(lock\), cannot be saved"):
        checkpoint.save({**state, "bad": threading.Lock()}, storage_writer=writer, no_dist=True)
    assert not list(tmp_path.iterdir())
    checkpoint.save(state, storage_writer=writer, no_dist=True)
    assert len(list(tmp_path.iterdir())) == 6


@pytest.mark.parametrize("holds", ["", "begun = "])
def test_a_failure_that_nobody_asks_for_is_said(holds: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    call = 'checkpoint.async_save({"x": mica.ones(1)}, checkpoint_id=sys.argv[1] + "/file/below", no_dist=True)\n'
    said = ended(holds + call, tmp_path)
    assert re.search(r"nobody has asked .* Rank \(0\) fails in the step \(plan\): NotADirectoryError", said)
    asked = f"begun = {call}assert begun.exception() is not None"
    assert (
        ended(asked, tmp_path)
        == ended(f"{call[:-1]}.add_done_callback(lambda f: f.exception())", tmp_path)
        == ""
    )


def test_a_failure_is_said_once_its_future_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")

    def saved(folder: Path, **more: Any) -> Any:
        return checkpoint.async_save({"x": mica.ones(1), **more}, checkpoint_id=folder, no_dist=True)

    gc.collect()
    caplog.clear()
    gc.disable()
    try:
        saved(tmp_path / "file" / "below")
        saved(tmp_path / "good").result(20)  # the thread has come past it
        assert len(caplog.messages) == 1 and "nobody has asked" in caplog.messages[0]
    finally:
        gc.enable()
    with pytest.raises(OSError):
        saved(tmp_path / "file" / "below").result(20)
    with pytest.raises(ArithmeticError):
        saved(tmp_path, bad=Failing())
    gc.collect()
    assert len(caplog.messages) == 1


# ---- another program that saves into the folder


def test_ranks_that_find_different_checkpoints_are_told(tmp_path: Path) -> None:
    class Late(FileSystemReader):
        def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
            dist.barrier()  # the other rank has read
            checkpoint.save({"a": mica.zeros(4), "b": mica.zeros(4)}, checkpoint_id=tmp_path, no_dist=True)
            return super().read_metadata()

    class Early(FileSystemReader):
        def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
            found = super().read_metadata()
            dist.barrier()
            return found

    checkpoint.save({"a": mica.ones(4), "b": mica.ones(4)}, checkpoint_id=tmp_path, no_dist=True)

    def f(r: int) -> None:
        state = {"ab"[r]: mica.full((4,), 7.0)}
        with pytest.raises(
            RuntimeError, match=r"The ranks find different checkpoints: rank \(0\) finds .* rank \(1\)"
        ):
            checkpoint.load(state, storage_reader=(Early, Late)[r](tmp_path))
        assert state["ab"[r]].tolist() == [7] * 4
        checkpoint.load(state, checkpoint_id=tmp_path)
        assert state["ab"[r]].tolist() == [0] * 4

    on_all(2, f)
