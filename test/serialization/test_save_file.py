"""Saving: what is written where, and what a failure or a kill leaves behind."""

import io
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

import mica
from mica.serialization import _atomic_file as _save_file

STATE = {"w": mica.arange(1000.0), "name": "a"}


def _is_state(path) -> bool:
    return bool((mica.load(path)["w"] == STATE["w"]).all())


def test_a_device_stays_a_device():
    before = os.stat("/dev/null")
    mica.save(STATE, "/dev/null")
    after = os.stat("/dev/null")
    assert stat.S_ISCHR(after.st_mode)
    assert (before.st_ino, before.st_mode, before.st_uid) == (after.st_ino, after.st_mode, after.st_uid)


def test_a_fifo_carries_the_bytes(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    mica.save(STATE, path)
    reader.join(30)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert _is_state(io.BytesIO(read[0]))


def test_all_names_of_a_file_see_the_new_bytes(tmp_path):
    path, other = tmp_path / "a.pt", tmp_path / "b.pt"
    path.write_bytes(b"x" * 100_000)  # longer than what comes
    os.link(path, other)
    mica.save(STATE, path)
    assert path.stat().st_ino == other.stat().st_ino
    assert _is_state(other)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "deep").mkdir()
    path = tmp_path / "link.pt"
    path.symlink_to(tmp_path / "deep" / "a.pt")
    for _ in range(2):
        mica.save(STATE, path)
        assert path.is_symlink()
        assert _is_state(tmp_path / "deep" / "a.pt")
    assert os.listdir(tmp_path / "deep") == ["a.pt"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o4755])
def test_mode_and_owner_stay(tmp_path, mode):
    path = tmp_path / "a.pt"
    path.write_bytes(b"old")
    if os.getuid() == 0:
        os.chown(path, 1234, 1235)
    os.chmod(path, mode)
    before = path.stat()
    mica.save(STATE, path)
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert _is_state(path)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_of_others(tmp_path, mask):
    before = os.umask(mask)
    try:
        mica.save(STATE, tmp_path / "a.pt")
        (tmp_path / "other").write_bytes(b"")
    finally:
        os.umask(before)
    assert (tmp_path / "a.pt").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_folder_that_takes_no_file_has_its_file_written_in_place(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    path.write_bytes(b"old")
    number = path.stat().st_ino

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied", str(tmp_path))

    # Root may write to any folder, so that what the system says is put in its mouth.
    monkeypatch.setattr(_save_file, "_fresh", refuse)
    mica.save(STATE, path)
    assert path.stat().st_ino == number
    assert _is_state(path)
    with pytest.raises(PermissionError):
        mica.save(STATE, tmp_path / "new.pt")


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("links", [1, 2])
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, links, unnamed):
    path = tmp_path / "a.pt"
    mica.save(STATE, path)
    if links == 2:
        os.link(path, tmp_path / "b.pt")
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    before, names = path.read_bytes(), sorted(os.listdir(tmp_path))
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        mica.save({"w": mica.ones(100_000), "f": lambda: 1}, path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == names


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="cannot be written as a file"):
        mica.save(STATE, tmp_path)
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        mica.save(STATE, tmp_path / "none" / "a.pt")


SAVES = """
import mica, sys
state = {"w": mica.arange(300_000.0)}
mica.save(state, sys.argv[1])
print("ready", flush=True)
while True:
    mica.save(state, sys.argv[1])
"""


def test_kills_leave_nothing_but_a_whole_file(tmp_path):
    path = tmp_path / "a.pt"
    for k in range(6):
        process = subprocess.Popen([sys.executable, "-c", SAVES, str(path)], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.05 + 0.0137 * k)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert float(mica.load(path)["w"].sum()) == float(mica.arange(300_000.0).sum())
    mica.save(STATE, path)
    assert os.listdir(tmp_path) == ["a.pt"]


def test_what_a_killed_process_left_is_swept(tmp_path):
    path = tmp_path / "a.pt"
    mica.save(STATE, path)
    here = _save_file._machine()
    stay = [
        ".a.pt.mine.part",
        f".a.pt.1-{_save_file._start(1)}-{here}.x.part",
        ".a.pt.999999-5-elsewhere.x.part",
    ]
    for name in (*stay, f".a.pt.999999-5-{here}.x.part"):
        (tmp_path / name).write_bytes(b"part")
    mica.save(STATE, path)
    assert sorted(os.listdir(tmp_path)) == sorted([*stay, "a.pt"])


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_name_as_long_as_a_folder_takes(tmp_path, monkeypatch, unnamed):
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / ("ä" * 125 + ".pt")
    for _ in range(2):
        mica.save(STATE, path)
    assert _is_state(path)
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_pipe_that_has_no_other_name(place):
    code = f"import mica; mica.save(mica.arange(3.0), {place!r})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert mica.load(io.BytesIO(run.stdout)).tolist() == [0, 1, 2], run.stderr


def test_a_file_without_a_name(tmp_path):
    with open(tmp_path / "gone.pt", "w+b") as file:
        file.write(b"x" * 100_000)
        file.flush()
        os.unlink(file.name)
        mica.save(STATE, f"/proc/self/fd/{file.fileno()}")
        file.seek(0)
        assert _is_state(file)
    assert os.listdir(tmp_path) == []


def test_a_protected_file_stays():
    """In a folder whose files anyone may replace. Root writes anything: another user then."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.pt")
        path.write_bytes(b"old")
        if os.getuid() == 0:
            os.chown(path, 1234, 1234)
        os.chmod(path, 0o444)
        os.chmod(folder, 0o777)
        child = os.fork()
        if child == 0:
            try:
                if os.getuid() == 0:
                    os.setgid(1234)
                    os.setuid(1234)
                mica.save(STATE, path)
            except PermissionError:
                os._exit(13)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 13
        assert path.read_bytes() == b"old"


def test_attributes_stay(tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.mine", b"kept")
    except (AttributeError, OSError):
        pytest.skip("This file system keeps no user attributes.")
    mica.save(STATE, path)
    assert os.getxattr(path, "user.mine") == b"kept"


@pytest.mark.parametrize("unnamed", [True, False])
def test_threads_save_to_one_path(tmp_path, monkeypatch, unnamed):
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    path, errors = tmp_path / "a.pt", []

    def save():
        try:
            for _ in range(40):
                mica.save(STATE, path)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and _is_state(path)
    assert os.listdir(tmp_path) == ["a.pt"]
