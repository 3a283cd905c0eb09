"""Stores: what each kind does, across threads and processes, and what hostile bytes do to a server."""

from __future__ import annotations

import datetime
import os
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from process import printed

import mica.distributed as dist
from mica.distributed import _connect, _store, _store_tcp

KINDS = ("hash", "file", "tcp", "prefix")


def seconds(n: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=n)


def made(kind: str, folder: Path) -> list[Any]:
    """Two ends of one store."""
    if kind == "file":
        return [dist.FileStore(str(folder / "store"), 2) for _ in range(2)]
    if kind == "tcp":
        master = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        return [master, dist.TCPStore("localhost", master.port, wait_for_workers=False)]
    if kind == "prefix":
        return [dist.PrefixStore("p", end) for end in made("tcp", folder)]
    return [dist.HashStore()] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_one_end_sees_what_the_other_does(kind: str, tmp_path: Path) -> None:
    a, b = made(kind, tmp_path)
    a.set("x", "1")
    assert (b.get("x"), b.add("x", 41), a.add("y", -2)) == (b"1", 42, -2)
    assert (a.compare_set("x", "42", "7"), a.compare_set("x", "8", "9"), b.get("x")) == (b"7", b"7", b"7")
    assert (a.compare_set("q", "old", "new"), b.check(["q"]), a.compare_set("q", "", "new")) == (
        b"old",
        False,
        b"new",
    )
    b.append("z", b"\0\xff")
    a.append("z", "")
    assert (b.multi_get(["z", "q"]), a.check(["x", "z"]), b.check(["x", "no"])) == (
        [b"\0\xff", b"new"],
        True,
        False,
    )
    assert (b.delete_key("z"), a.delete_key("z"), a.num_keys()) == (True, False, 3)
    b.multi_set(["m", "n"], ["", b"2"])
    assert (a.multi_get(["m", "n"]), len(a.list_keys())) == ([b"", b"2"], 5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_is_waited_for_and_its_absence_named(kind: str, tmp_path: Path) -> None:
    a, b = made(kind, tmp_path)
    late = threading.Timer(0.2, lambda: b.set("late", "here"))
    late.start()
    assert a.get("late") == b"here"
    begun = time.monotonic()
    with pytest.raises(dist.DistStoreError, match=r"\['late', 'never'\] within \(0.1\) s"):
        a.wait(["late", "never"], seconds(0.1))
    a.set_timeout(seconds(0.05))
    with pytest.raises(dist.DistStoreError, match="never"):
        a.get("never")
    assert 0.15 <= time.monotonic() - begun < 5


@pytest.mark.parametrize("kind", KINDS)
def test_bad_calls_are_refused_and_leave_the_store_as_it_was(kind: str, tmp_path: Path) -> None:
    a, b = made(kind, tmp_path)
    a.set("text", "abc")
    a.set("most", str((1 << 63) - 1))
    for call, error, says in (
        (lambda: a.add("text", 1), ValueError, "is no number"),
        (lambda: a.set("k" * 5000, "1"), ValueError, "(5000) bytes"),
        (lambda: a.set(1, "1"), TypeError, "type (int)"),
        (lambda: a.set("k", 1), TypeError, "type (int)"),
        (lambda: a.wait("k"), TypeError, "list of keys"),
        (lambda: a.multi_set(["k"], []), ValueError, "(1) keys and (0) values"),
        (lambda: a.set_timeout(seconds(0)), ValueError, "not positive"),
    ):
        with pytest.raises(error) as raised:
            call()
        assert says in str(raised.value)
    assert sorted(b.multi_get(["text", "most"])) == [str((1 << 63) - 1).encode(), b"abc"]


@pytest.mark.parametrize("kind", ["file", "tcp"])
def test_sums_of_threads_and_processes_lose_nothing(kind: str, tmp_path: Path) -> None:
    a, b = made(kind, tmp_path)
    where = (
        f"FileStore({str(tmp_path / 'store')!r})" if kind == "file" else f"TCPStore('localhost', {a.port})"
    )
    program = f"""
        import mica.distributed as dist
        store = dist.{where}
        print([store.add("sum", 1) for _ in range(200)][-1] > 0)
    """
    threads = [threading.Thread(target=lambda s=s: [s.add("sum", 1) for _ in range(200)]) for s in (a, b, a)]
    for thread in threads:
        thread.start()
    assert printed(program) == "True\n"
    for thread in threads:
        thread.join()
    assert b.add("sum", 0) == 800


def frame(what: int, *fields: bytes, count: int | None = None) -> bytes:
    return struct.pack("<BI", what, len(fields) if count is None else count) + b"".join(
        struct.pack("<I", len(f)) + f for f in fields
    )


GREETING = _store_tcp._GREETING
HOSTILE = {
    "another protocol": b"GET / HTTP/1.1\r\n\r\n" + b"x" * 100,
    "nothing": b"",
    "unknown request": GREETING + frame(99, b"a"),
    "too few fields": GREETING + frame(1, b"a"),
    "too many fields announced": GREETING + frame(10, count=0xFFFFFFFF),
    "huge field announced": GREETING + struct.pack("<BII", 1, 2, 0xFFFFFFFF) + b"a",
    "cut short": GREETING + frame(1, b"key", b"value")[:-2],
    "a wait that is no number": GREETING + frame(12, b"nan", b"a"),
    "a wait of NaN seconds": GREETING + frame(12, struct.pack("<d", float("nan")), b"a"),
    "a wait without end": GREETING + frame(12, struct.pack("<d", float("inf")), b"a"),
    "a key that is too long": GREETING + frame(1, b"k" * 5000, b"value"),
    "a key that is no text": GREETING + frame(1, b"\xff", b"value"),
    "a sum of text": GREETING + frame(3, b"key", b"\xff" * 30),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_bytes_cost_their_sender_the_connection_alone(what: str) -> None:
    store = dist.TCPStore("localhost", 0, is_master=True)
    with socket.create_connection(("localhost", store.port)) as link:
        answer = b""
        link.settimeout(5)
        try:
            link.sendall(HOSTILE[what])
            link.shutdown(socket.SHUT_WR)
            for part in iter(lambda: link.recv(4096), b""):
                answer += part
        except TimeoutError:
            pytest.fail("the server neither answers nor leaves")
        except OSError:  # it did not even read all of it
            pass
    assert answer in (b"", GREETING) or answer.startswith(GREETING + struct.pack("<BI", 1, 1))
    store.set("a", "1")
    assert store.get("a") == b"1"


def test_random_bytes_do_not_stop_the_server() -> None:
    import random

    store, draw = dist.TCPStore("localhost", 0, is_master=True), random.Random(0)
    for _ in range(200):
        with socket.create_connection(("localhost", store.port)) as link:
            link.sendall(GREETING + bytes([draw.randrange(14)]) + draw.randbytes(draw.randrange(60)))
    store.set("a", "1")
    assert store.get("a") == b"1"


def test_keys_and_bytes_of_a_table_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_store, "KEYS_LIMIT", 3)
    monkeypatch.setattr(_store, "TOTAL_LIMIT", 20)
    store = dist.TCPStore("localhost", 0, is_master=True)
    store.multi_set(["a", "b", "c"], ["1"] * 3)
    with pytest.raises(ValueError, match=r"\(3\) keys and \(6\) bytes"):
        store.set("d", "")
    with pytest.raises(ValueError, match=r"\(3\) keys and \(6\) bytes"):
        store.append("a", "x" * 20)
    store.delete_key("b")
    store.set("d", "x" * 15)
    assert store.num_keys() == 3


def test_a_master_that_is_gone_a_port_in_use_and_a_stranger_are_named() -> None:
    master = dist.TCPStore("localhost", 0, is_master=True)
    client = dist.TCPStore("localhost", master.port)
    with pytest.raises(dist.DistNetworkError, match=rf"cannot listen on port \({master.port}\)"):
        dist.TCPStore("localhost", master.port, is_master=True)
    del master
    with pytest.raises(dist.DistNetworkError, match="is gone"):
        client.get("a")
    with pytest.raises(dist.DistNetworkError, match=r"within \(0.2\) s"):
        dist.TCPStore("localhost", client.port, timeout=seconds(0.2))
    with socket.create_server(("localhost", 0)) as stranger:

        def answer() -> None:
            link, _ = stranger.accept()
            link.sendall(b"220 mail server ready, say hello\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(dist.DistNetworkError, match="another service|within"):
            dist.TCPStore("localhost", stranger.getsockname()[1], timeout=seconds(0.5))


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_store_tcp, "_ANSWER", 100)
    store = dist.TCPStore("localhost", 0, is_master=True)
    store.set("a", "x" * 60)
    with pytest.raises(ValueError, match=r"has \(120\) bytes; at most \(100\)"):
        store.multi_get(["a", "a"])
    for name in ("b" * 40, "c" * 60):
        store.set(name, "")
    with pytest.raises(ValueError, match=r"has \(101\) bytes"):
        store.list_keys()
    assert store.get("a") == b"x" * 60


def test_a_server_without_free_files_serves_when_there_are_some_again() -> None:
    program = """
        import os, resource, socket, time, mica.distributed as dist
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
        master = dist.TCPStore("localhost", 0, is_master=True)
        waiting = socket.socket()
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        waiting.connect(("127.0.0.1", master.port))
        time.sleep(0.5)
        for file in taken:
            os.close(file)
        links = []
        for _ in range(35):  # more than half of the files
            links.append(socket.create_connection(("127.0.0.1", master.port)))
            time.sleep(0.01)
            if len(links) > 12:
                links.pop(0).close()
        waiting.close()
        for link in links:
            link.close()
        master.set("a", "1")
        print(dist.TCPStore("localhost", master.port).get("a"))
    """
    assert printed(program) == "b'1'\n"


def test_a_master_that_hangs_ends_waits_and_reports_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_store_tcp, "_MARGIN", 0.5)
    program = """
        import time, mica.distributed as dist
        store = dist.TCPStore("localhost", 0, is_master=True)
        print(store.port, flush=True)
        time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE) as master:
        try:
            assert master.stdout is not None
            port = int(master.stdout.readline())
            ends = [dist.TCPStore("localhost", port, timeout=seconds(1)) for _ in range(4)]
            master.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            with pytest.raises(dist.DistNetworkError, match="does not answer within"):
                ends[0].wait(["never"], seconds(1))
            with pytest.raises(dist.DistNetworkError, match=r"does not answer within \(1\) s"):
                ends[1].set("a", "1")
            with pytest.raises(dist.DistNetworkError, match="is gone"):
                ends[1].set("a", "1")  # an answer that came late would be another request's
            for end in ends[2:]:
                end.set_timeout(seconds(60))  # as the store of a group
            reports = [_connect.Reports("group", [0, 1], 1, end, 60) for end in ends[2:]]
            assert "ended or hangs" in reports[0].explain("all_reduce number (1)", "")
            reports[1].leave()
            assert time.monotonic() - begun < 8
        finally:
            master.kill()


def test_a_prefix_and_a_key_are_too_long_together(tmp_path: Path) -> None:
    for store in (dist.HashStore(), dist.FileStore(str(tmp_path / "store"))):
        with pytest.raises(ValueError, match=r"has \(4101\) bytes"):
            dist.PrefixStore("p" * 4000, store).set("k" * 100, "1")
        assert store.num_keys() == 0


def test_threads_that_read_one_file_store_lose_no_key(tmp_path: Path) -> None:
    reader, writer = made("file", tmp_path)
    lost: list[str] = []

    def read() -> None:
        while not reader.check(["end"]):
            pass
        lost.extend(f"k{i}" for i in range(300) if not reader.check([f"k{i}"]))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(300):
        writer.set(f"k{i}", "1")
    writer.set("end", "1")
    for thread in threads:
        thread.join()
    assert lost == []


def test_a_forked_process_that_ends_leaves_the_masters_sockets_alone() -> None:
    program = """
        import os, sys, mica.distributed as dist
        master = dist.TCPStore("localhost", 0, is_master=True)
        client = dist.TCPStore("localhost", master.port)
        child = os.fork()
        if child == 0:
            sys.exit(0)
        os.waitpid(child, 0)
        client.set("a", "1")
        print(dist.TCPStore("localhost", master.port).get("a"))
    """
    assert printed(program) == "b'1'\n"


def test_a_master_that_was_dropped_can_be_made_again_at_its_port() -> None:
    port = 0
    for _ in range(20):
        master = dist.TCPStore("localhost", port, is_master=True, multi_tenant=True)
        assert master.add("here", 1) == 1, "a new table"
        port = master.port
        del master


def test_a_master_waits_for_its_workers() -> None:
    with pytest.raises(dist.DistStoreError, match="within"):
        dist.TCPStore("localhost", 0, 2, True, seconds(0.1))
    found: list[Any] = []
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    worker = threading.Thread(target=lambda: found.append(dist.TCPStore("localhost", port, 2)))
    worker.start()
    found.append(dist.TCPStore("localhost", port, 2, True, seconds(20)))
    worker.join()
    assert len(found) == 2


def test_a_file_that_is_no_store_or_lost_its_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store"
    dist.FileStore(str(path)).set("key", "value")
    whole = path.read_bytes()
    for content in (whole[:-1], b"\xff" * 64, whole + b"\1"):
        path.write_bytes(content)
        with pytest.raises(dist.DistStoreError, match="is no FileStore, or its end is lost"):
            dist.FileStore(str(path))
    with pytest.raises(dist.DistStoreError, match="cannot open"):
        dist.FileStore(str(tmp_path / "no" / "store"))
    assert os.path.exists(path)
