"""Checkpoints and what goes wrong: ranks that are killed, full disks, damaged and hostile files."""

from __future__ import annotations

import errno
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from process import printed as printed_alone
from processes import ran
from ranks import on_all, on_ranks

import mica
import mica.distributed as dist
from mica.distributed import checkpoint
from mica.distributed.checkpoint import CheckpointException
from mica.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys

# What programs below share: `dies_at(n)` has the process killed at the n-th line that it runs of the package, and
# `state(step)` is a state in which everything tells the step.
SHARED = """
    import os, signal, sys, mica, mica.distributed as dist
    from mica.distributed import checkpoint
    from mica.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys
    PACKAGE, lines = os.path.dirname(checkpoint.__file__), 0

    def dies_at(n):
        def line(frame, event, argument):
            global lines
            lines += event == "line"
            if lines == n:
                os.kill(os.getpid(), signal.SIGKILL)
            return line
        sys.settrace(lambda frame, event, argument: line if frame.f_code.co_filename.startswith(PACKAGE) else None)

    def state(step):
        return {"step": step, "x": mica.full((50,), float(step)), "deep": [{"y": mica.full((3, 3), float(step))}]}

    def step_of(folder):
        found = _load_state_dict_from_keys(checkpoint_id=folder)
        step = found["step"]
        assert found["x"].tolist() == [step] * 50 and found["deep"][0]["y"].tolist() == [[step] * 3] * 3, found
        return step
"""


def test_a_process_killed_at_any_moment_leaves_the_last_good_checkpoint(tmp_path: Path) -> None:
    program = """
        import warnings
        warnings.simplefilter("ignore")
        folder, seen = sys.argv[1], []
        checkpoint.save(state(0), checkpoint_id=folder, no_dist=True)
        dies_at(0)
        checkpoint.save(state(1), checkpoint_id=folder, no_dist=True)
        sys.settrace(None)
        total, last = lines, 1
        # Each line from about where the metadata is written, and some before.
        moments = [*range(1, total - 150, total // 45), *range(total - 150, total)]
        for i, moment in enumerate(moments):
            child = os.fork()
            if child == 0:
                lines = 0
                dies_at(moment)
                checkpoint.save(state(2 + i), checkpoint_id=folder, no_dist=True)
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
            found = step_of(folder)
            assert found in (last, 2 + i), (found, last, i)
            seen.append(found == 2 + i)
            last = found
        checkpoint.save(state(99), checkpoint_id=folder, no_dist=True)
        assert step_of(folder) == 99
        print(len(seen), seen.index(True), sum(seen), sorted(os.path.splitext(n)[1] for n in os.listdir(folder)))
    """
    moments, first, published, left = printed_alone(_program(program), str(tmp_path)).split(maxsplit=3)
    assert int(moments) > 60 and int(first) > 10 and int(published) >= 3
    assert left == "['', '.safetensors']\n"  # `.metadata` and one file: what the others left is gone


def _program(text: str) -> str:
    import textwrap

    return textwrap.dedent(SHARED) + textwrap.dedent(text)


@pytest.mark.skipif(not dist.is_gloo_available(), reason="the library Gloo is not here")
@pytest.mark.parametrize(("victim", "moment"), [(0, 0.2), (0, 0.6), (0, 0.97), (1, 0.2), (1, 0.9)])
def test_a_rank_killed_leaves_the_last_good_checkpoint(victim: int, moment: float, tmp_path: Path) -> None:
    program = """
        folder, victim, moment = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
        dist.init_process_group("gloo")
        checkpoint.save(state(0), checkpoint_id=folder)
        dies_at(0)
        checkpoint.save(state(1), checkpoint_id=folder)
        total, lines = lines, 0
        sys.settrace(None)
        if dist.get_rank() == victim:
            dies_at(1 + int(total * moment))
        try:
            checkpoint.save(state(2), checkpoint_id=folder)
        except dist.DistBackendError:
            print("told")
    """
    ended = ran(2, _program(program), str(tmp_path), str(victim), str(moment), timeout=40)
    assert ended[victim].status == -9 and ended[1 - victim].out == "told\n", ended
    assert _load_state_dict_from_keys(checkpoint_id=tmp_path)["x"].tolist() in ([1.0] * 50, [2.0] * 50)
    checkpoint.save({"x": mica.ones(1)}, checkpoint_id=tmp_path, no_dist=True)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_is_an_oserror_on_every_rank_and_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    program = """
        import resource, threading
        folder, told = sys.argv[1], [None] * 3

        def rank(r):
            dist.init_process_group("threads", rank=r, world_size=3, group_name="run")
            checkpoint.save(state(1), checkpoint_id=folder)
            dist.barrier()
            if r == 0:
                resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # what a file may have
            dist.barrier()
            large = {"only": mica.ones(50_000)} if r == 1 else {}
            try:
                checkpoint.save({**state(2), **large}, checkpoint_id=folder)
            except OSError as error:
                told[r] = (type(error).__name__, error.errno, sorted(error.failures), str(error))
            dist.destroy_process_group()

        ranks = [threading.Thread(target=rank, args=(r,)) for r in range(3)]
        [r.start() for r in ranks], [r.join() for r in ranks]
        print(told[0] == told[1] == told[2], *told[0], sep="|")
        print(step_of(folder), len(os.listdir(folder)))
    """
    first, second = printed_alone(_program(program), str(tmp_path)).splitlines()
    same, name, number, failed, said = first.split("|")
    assert (same, name, number, failed) == ("True", "CheckpointException", str(errno.EFBIG), "[1]")
    assert re.match(
        r"Rank \(1\) fails in the step \(write\): OSError: .*File too large: '.*__1_0\..*safetensors'", said
    )
    assert second == "1 4"  # `.metadata` and the three ranks' old files


def test_metadata_that_cannot_be_written_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.save({"x": mica.ones(2)}, checkpoint_id=tmp_path, no_dist=True)
    before = sorted(path.name for path in tmp_path.iterdir())

    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    found = on_ranks(2, lambda r: checkpoint.save({"x": mica.zeros(2)}, checkpoint_id=tmp_path))
    monkeypatch.undo()
    for one in found:
        assert isinstance(one, OSError) and one.errno == errno.ENOSPC
        assert re.match(r"Rank \(0\) fails in the step \(finish write\): OSError", str(one))
    assert _load_state_dict_from_keys(checkpoint_id=tmp_path)["x"].tolist() == [1, 1]
    checkpoint.save({"x": mica.zeros(2)}, checkpoint_id=tmp_path, no_dist=True)
    assert len(list(tmp_path.iterdir())) == len(before) == 2


def test_ranks_that_see_other_folders_are_told(tmp_path: Path) -> None:
    def save(r: int) -> None:
        checkpoint.save({"x": mica.ones(2), "y": mica.ones(2)}, checkpoint_id=tmp_path / str(r))

    for one in on_ranks(2, save):
        assert isinstance(one, FileNotFoundError) and "is not here; all ranks must see one folder" in str(one)


# ---- damaged files


def _refused(folder: Path) -> str:
    with pytest.raises(CheckpointException) as caught:
        _load_state_dict_from_keys(checkpoint_id=folder)
    assert isinstance(caught.value, (ValueError, OSError)), caught.value
    return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    state = {"a": {"x": mica.arange(6.0).reshape(2, 3)}, "n": 3}
    checkpoint.save(state, checkpoint_id=tmp_path, no_dist=True)
    return tmp_path


def _data(folder: Path) -> Path:
    return next(folder.glob("*.safetensors"))


def test_a_folder_without_a_checkpoint(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        said = _refused(path)
        assert f"The folder has no checkpoint: there is no file .metadata in it: '{path}/.metadata'" in said


def test_a_file_that_is_missing_or_cut_short(folder: Path) -> None:
    data = _data(folder)
    content = data.read_bytes()
    data.write_bytes(content[:-1])
    assert re.search(
        rf"{data}\) has \({len(content) - 1}\) bytes, and .* says \({len(content)}\)", _refused(folder)
    )
    data.unlink()
    assert f"A file of the checkpoint is missing, which its metadata names: '{data}'" in _refused(folder)
    os.mkfifo(data)
    assert "is no regular file" in _refused(folder)
    with open(folder / ".metadata", "r+b") as metadata:
        metadata.truncate(1 << 40)
    assert f"has ({1 << 40}) bytes; a checkpoint's metadata has at most" in _refused(folder)
    (folder / ".metadata").unlink()
    (folder / ".metadata").mkdir()
    assert "is no regular file" in _refused(folder)


def test_every_flipped_byte_of_the_data_is_noticed(folder: Path) -> None:
    data = _data(folder)
    content = data.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    for at in range(end, len(content), 7):
        data.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        assert re.search(rf"{data}\) is damaged: the checksum of its tensor \((a\.x|n)\)", _refused(folder))


def test_headers_that_say_something_else(folder: Path) -> None:
    data = _data(folder)
    content = data.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    entry = header["a.x"]

    def said_of(changed: Any, size: int | None = None) -> str:
        text = changed if isinstance(changed, bytes) else json.dumps(changed, separators=(",", ":")).encode()
        assert len(text) <= length
        text = text.ljust(length)
        size = length if size is None else size
        data.write_bytes((size.to_bytes(8, "little") + text + content[8 + length :])[: len(content)])
        return _refused(folder)

    assert "cannot have a header of" in said_of(header, 1 << 40)
    assert "cannot have a header of" in said_of(header, 0)
    assert "is damaged: it is no JSON" in said_of(b"{")
    assert "is damaged: it is no JSON" in said_of(b"[" * length)
    assert "is no object of JSON" in said_of(b"[]")
    assert "says no dtype, shape or offsets of the tensor (a.x)" in said_of(
        {**header, "a.x": {**entry, "shape": [-2, -3]}}
    )
    assert "says no dtype, shape or offsets of the tensor (a.x)" in said_of({**header, "a.x": 3})
    assert "(I32) [2, 3] in (24) bytes" in said_of({**header, "a.x": {**entry, "dtype": "I32"}})
    assert "(F32) [3, 2] in (24) bytes" in said_of({**header, "a.x": {**entry, "shape": [3, 2]}})
    moved = {**entry, "data_offsets": [8, 32]}
    assert "begins at (8), and the one before it ends at (0)" in said_of({**header, "a.x": moved})
    assert "has no tensor (a.x)" in said_of({"b.x" if k == "a.x" else k: v for k, v in header.items()})
    del header["n"]
    assert "its tensors end at the byte" in said_of(header)


HOSTILE = [
    None, True, -1, 0, 1, 1.5, 1 << 31, 1 << 62, 1 << 70, "", "x", "../../etc/passwd", "a\0b", [], {}, [0], [1 << 40],
    [1 << 61, 1 << 61], [-1, 2], ["x"], ["a", 1 << 40], [{}], {"x": 1}, [[[[]]]], "float64", "float32", "bool",
]  # fmt: skip


def _places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(found for key, value in inner for found in _places(value, (*path, key)))]


def _with(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    made = dict(node) if isinstance(node, dict) else list(node)
    made[path[0]] = _with(node[path[0]], path[1:], value)
    return made


def test_hostile_metadata_raises_sentences_in_little_memory(tmp_path: Path) -> None:
    whole = mica.arange(24.0).reshape(4, 6)
    from pieces import cut

    state = {"deep": [{"x": mica.ones(2, 3)}], "n": 3}
    on_all(2, lambda r: checkpoint.save({**state, "cut": cut(whole, 0, 2, r)}, checkpoint_id=tmp_path))
    text = (tmp_path / ".metadata").read_bytes()
    good = json.loads(text)
    mutants = [json.dumps(_with(good, path, v)).encode() for path in _places(good) for v in HOSTILE]
    mutants += [
        text[:at] + bytes([text[at] ^ bit]) + text[at + 1 :]
        for at in range(0, len(text), 5)
        for bit in (1, 32)
    ]
    mutants += [text[:at] for at in range(0, len(text), 37)]
    mutants += [b"[" * 100_000, b'{"format":' * 50_000, b"9" * 100_000, b"\xff" * 100, b"{}", b"null", b'"x"']
    mutants += [text.replace(b'"chunks":[', b'"chunks":[' + b'{"offsets":[0],"sizes":[1]},' * 1000)]
    (tmp_path / "mutants").write_bytes(b"\n".join(mutants))
    program = """
        import resource, warnings
        warnings.simplefilter("ignore")
        folder = sys.argv[1]
        mutants = open(f"{folder}/mutants", "rb").read().split(b"\\n")
        held = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (held + (256 << 20),) * 2)
        whole, kinds = mica.arange(24.0).reshape(4, 6), {}
        for text in mutants:
            open(f"{folder}/.metadata", "wb").write(text)
            try:
                found = _load_state_dict_from_keys(checkpoint_id=folder)
                kinds["loaded"] = kinds.get("loaded", 0) + 1
                for value in (found.get("cut"), *[one.get("x") for one in found.get("deep", []) if isinstance(one, dict)]):
                    assert not isinstance(value, mica.Tensor) or value.numel() <= 24, text
            except checkpoint.CheckpointException as raised:
                (error, _), = raised.failures.values()
                assert isinstance(error, (ValueError, OSError)), (error, text)
                said = error.strerror if isinstance(error, OSError) else str(error)
                assert said[-1] in (".", "s", "t") and " " in said and len(str(error)) < 1000, (str(error), text)
                kinds[type(error).__name__] = kinds.get(type(error).__name__, 0) + 1
        print(len(mutants), sorted(kinds), kinds)
    """
    out = printed_alone(_program(program), str(tmp_path), timeout=200)
    assert int(out.split()[0]) > 2000 and "['FileNotFoundError', 'ValueError', 'loaded']" in out, out


# ---- saved in the background


def test_async_save_copies_first_and_writes_later(tmp_path: Path) -> None:
    def f(r: int) -> None:
        x = mica.zeros(4)
        futures = []
        for step in range(3):
            futures.append(checkpoint.async_save({"x": x, "step": step}, checkpoint_id=tmp_path / str(step)))
            x += 1
            dist.all_reduce(mica.ones(1))  # the program's own collectives go on
        for step, future in enumerate(futures):
            assert set(future.result(30).state_dict_metadata) == {"x", "step"}
            state = {"x": mica.zeros(4), "step": -1}
            checkpoint.load(state, checkpoint_id=tmp_path / str(step))
            assert state["step"] == step and state["x"].tolist() == [step] * 4

    on_all(3, f)


def test_async_saves_of_one_folder_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, begun = threading.Event(), []
    write = checkpoint.FileSystemWriter.write_data

    def slow(self: Any, *arguments: Any) -> Any:
        begun.append(1)
        go.wait(20)
        return write(self, *arguments)

    monkeypatch.setattr(checkpoint.FileSystemWriter, "write_data", slow)
    futures = [checkpoint.async_save({"step": i}, checkpoint_id=tmp_path, no_dist=True) for i in range(4)]
    assert not any(future.done() for future in futures)
    threading.Timer(0.2, go.set).start()
    checkpoint.save({"step": 4}, checkpoint_id=tmp_path, no_dist=True)  # waits for them, too
    assert all(future.done() for future in futures)
    assert [len(future.result(20).state_dict_metadata) for future in futures] == [1] * 4
    assert _load_state_dict_from_keys(checkpoint_id=tmp_path) == {"step": 4} and len(begun) == 5
    assert len(list(tmp_path.iterdir())) == 2


def test_a_save_that_a_future_calls_when_it_is_done(tmp_path: Path) -> None:
    ended = threading.Event()

    def again(done: Any) -> None:
        checkpoint.save({"step": done.result() and 2}, checkpoint_id=tmp_path, no_dist=True)
        ended.set()

    for step in range(20):  # a callback of a Future that is done already runs here, and not in the thread
        ended.clear()
        checkpoint.async_save({"step": step}, checkpoint_id=tmp_path, no_dist=True).add_done_callback(again)
        assert ended.wait(20) and _load_state_dict_from_keys(checkpoint_id=tmp_path) == {"step": 2}


def test_errors_of_async_save_arrive_at_its_result(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")

    def f(r: int) -> None:
        future = checkpoint.async_save({"x": mica.ones(1)}, checkpoint_id=blocked / "folder")
        with pytest.raises(OSError, match=r"Rank \(0\) fails in the step \(plan\)"):
            future.result(20)
        checkpoint.async_save({"x": mica.ones(1)}, checkpoint_id=tmp_path / "good").result(20)

    on_all(2, f)


def test_a_process_that_was_forked_saves_in_the_background(tmp_path: Path) -> None:
    program = """
        folder = sys.argv[1]
        checkpoint.async_save(state(1), checkpoint_id=folder, no_dist=True).result()
        child = os.fork()
        if child == 0:
            checkpoint.save(state(2), checkpoint_id=folder, no_dist=True)
            checkpoint.async_save(state(3), checkpoint_id=folder, no_dist=True).result()
            os._exit(0)
        print(os.waitpid(child, 0)[1], step_of(folder))
    """
    assert printed_alone(_program(program), str(tmp_path), timeout=30) == "0 3\n"


def test_a_save_that_was_begun_ends_before_the_process_does(tmp_path: Path) -> None:
    program = """
        checkpoint.async_save({"x": mica.ones(3)}, checkpoint_id=sys.argv[1], no_dist=True)
    """
    printed_alone(_program(program), str(tmp_path))
    assert _load_state_dict_from_keys(checkpoint_id=tmp_path)["x"].tolist() == [1, 1, 1]
