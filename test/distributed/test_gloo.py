"""The engine gloo among processes: how they meet, and what the others are told of one that dies, hangs or differs."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import free_port, printed, ran

import mica.distributed as dist

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="the library Gloo is not here")

SUM = """
    import sys, mica, mica.distributed as dist
    where, rank = sys.argv[1], int(__import__("os").environ["RANK"])
    if where == "env://":
        dist.init_process_group()
    else:
        dist.init_process_group("cpu:gloo,cuda:nccl", init_method=where, rank=rank, world_size=2)
    x = mica.full((3,), float(dist.get_rank() + 1))
    dist.all_reduce(x)
    pair = dist.new_group([1, 0])
    y = mica.tensor([dist.get_rank(pair)])
    dist.broadcast(y, src=1, group=pair)
    print(x.tolist(), y.item(), dist.get_backend(), dist.get_world_size(), dist.GroupMember.WORLD.rank())
    dist.destroy_process_group()
    dist.init_process_group(init_method=where, rank=rank, world_size=2)
    dist.barrier()
    dist.destroy_process_group()
    print(dist.is_initialized())
"""


@pytest.mark.parametrize("how", ["env", "tcp", "file"])
def test_two_processes_meet_compute_leave_and_meet_again(how: str, tmp_path: Path) -> None:
    path = tmp_path / "meeting"
    where = {"env": "env://", "tcp": f"tcp://127.0.0.1:{free_port()}", "file": f"file://{path}"}[how]
    for rank, out in enumerate(printed(2, SUM, where)):
        assert out == f"[3.0, 3.0, 3.0] 1 gloo 2 {rank}\nFalse\n"
    assert not path.exists()


def test_no_rank_is_done_before_all_have_connected() -> None:
    program = """
        import os, time, mica.distributed as dist
        from mica.distributed import _connect
        told, slow, at = _connect._told_by_all, os.environ["RANK"] == "1", 0.0
        def tell(store, name, what, *rest):
            global at
            if slow and what == "connected":
                time.sleep(0.5)
                at = time.time()
            return told(store, name, what, *rest)
        _connect._told_by_all = tell
        dist.init_process_group("gloo")
        print(at if slow else time.time(), flush=True)
        os._exit(0)  # as a rank that ends early: the others' connections and the store go with it
    """
    done, last_connected, done_too = map(float, printed(3, program))
    assert min(done, done_too) > last_connected > 0


def test_a_rank_that_ends_once_connected_is_told_of_by_the_first_collective() -> None:
    program = """
        import os, mica, mica.distributed as dist
        from mica.distributed import _connect
        told, _connect._MEETING = _connect._told_by_all, 0.5
        def tell(store, name, what, *rest):
            if what == "connected" and os.environ["RANK"] == "2":
                dist.PrefixStore(f"{name}/{what}", store).multi_get(["0", "1"])  # the others have connected, too
                os._exit(0)
            return told(store, name, what, *rest)
        _connect._told_by_all = tell
        dist.init_process_group("gloo")
        try:
            dist.all_reduce(mica.ones(1))
        except dist.DistBackendError as error:
            print("all_reduce number (0)" in str(error) and "(2) said nothing" in str(error) or error)
    """
    for rank in ran(3, program, timeout=20)[:2]:
        assert rank.out == "True\n", rank


@pytest.mark.parametrize("world", [1, 2])
def test_ranks_leave_and_come_again_many_times(world: int) -> None:
    program = """
        import os, time, mica, mica.distributed as dist
        rank = int(os.environ["RANK"])
        for i in range(10):
            dist.init_process_group("gloo", init_method="env://")
            x = mica.ones(1)
            dist.all_reduce(x)
            assert x.item() == dist.get_world_size()
            dist.destroy_process_group()
            if rank == 0 and i % 3 == 0:
                time.sleep(0.1)  # the other comes first
    """
    assert printed(world, program) == [""] * world


def test_a_forked_process_can_leave_its_copy_of_the_group_and_end() -> None:
    program = """
        import os, signal, sys, mica, mica.distributed as dist
        dist.init_process_group("gloo", rank=0, world_size=1)
        dist.barrier()
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # its end has a status of its own
            dist.destroy_process_group()
            sys.exit(0)
        print(os.waitpid(child, 0)[1])
        dist.barrier()
        dist.destroy_process_group()
    """
    assert printed(1, program) == ["0\n"]


FAILING = """
    import os, sys, time, datetime, mica, mica.distributed as dist
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
    rank, what = dist.get_rank(), sys.argv[1]
    dist.barrier()
    dist.all_reduce(mica.ones(2))
    if rank == 1:
        if what == "dies":
            os.kill(os.getpid(), 9)
        if what == "raises":
            raise KeyError("a bug of rank 1")
        if what == "hangs":
            time.sleep(30)
        if what == "leaves":
            dist.destroy_process_group()
            time.sleep(5)
            sys.exit()
        if what == "calls something else":
            dist.barrier()
        dist.all_reduce(mica.ones(4 if what == "brings another size" else 3))
    dist.all_reduce(mica.ones(3))
"""
SAYS = {
    "dies": "rank (1) said nothing, having ended",
    "raises": "rank (1) said nothing, having ended",
    "hangs": "rank (1) said nothing, having ended or being busy",
    "leaves": "rank (1) left the group",
    "calls something else": "rank (1) failed in barrier number (2) without tensors",
    "brings another size": "rank (1) failed in all_reduce number (2) with tensors of float32 (4,)",
}


@pytest.mark.parametrize("what", SAYS)
def test_the_others_end_in_time_and_name_the_rank_and_the_collective(what: str) -> None:
    ended = ran(3, FAILING, what, first=(0, 2))
    for rank in (0, 2):
        assert ended[rank].status == 1, ended[rank]
        assert "DistBackendError" in ended[rank].err
        assert f"Rank ({rank})" in ended[rank].err and "all_reduce number (2)" in ended[rank].err
        assert SAYS[what] in ended[rank].err, ended[rank].err
        assert ended[rank].seconds < 12, "the timeout is 2 s, and reports take 2 more"


def test_a_rank_that_never_comes_is_named() -> None:
    program = """
        import datetime, os, sys, mica.distributed as dist
        if os.environ["RANK"] != "1":
            dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=1))
    """
    ended = ran(3, program)
    assert "for ranks [1] to make the group" in ended[2].err
    assert "within" in ended[0].err or "for ranks [1]" in ended[0].err
    assert [rank.status for rank in ended] == [1, 0, 1]


def test_what_init_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(variable, raising=False)
    store = dist.HashStore()
    for given, says in (
        ({}, "environment variable RANK expected, but not set"),
        ({"rank": 0}, "environment variable WORLD_SIZE expected"),
        ({"rank": 0, "world_size": 2}, "environment variable MASTER_ADDR expected"),
        ({"init_method": "tcp://localhost", "rank": 0, "world_size": 1}, "names no port"),
        ({"init_method": "tcp://localhost:1?rank=x&world_size=2"}, "('x')"),
        ({"init_method": "file://", "rank": 0, "world_size": 1}, "names no file"),
        ({"init_method": "tcp://localhost:1"}, "gets no `rank`"),
        ({"init_method": "env://", "store": store}, "give one of them"),
        ({"store": store, "rank": 2, "world_size": 2}, "Rank (2) is none of (2) ranks"),
    ):
        with pytest.raises(ValueError) as error:
            dist.init_process_group("gloo", **given)
        assert says in str(error.value)
        assert not dist.is_initialized()
    with pytest.raises(RuntimeError, match=r"There is no rendezvous \(http://a\)"):
        dist.init_process_group("gloo", init_method="http://a", rank=0, world_size=1)
    with pytest.raises(NotImplementedError, match="names no engine for tensors on the CPU"):
        dist.init_process_group("cuda:nccl", rank=0, world_size=1)


def test_one_rank_needs_no_store() -> None:
    import mica

    dist.init_process_group("gloo", rank=0, world_size=1)
    x = mica.ones(2)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    out = [mica.zeros(2)]
    dist.all_gather(out, x)
    assert out[0].tolist() == [1.0, 1.0]
    dist.destroy_process_group()
