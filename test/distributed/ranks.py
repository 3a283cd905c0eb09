"""Runs a function on many ranks, each a thread with a default group of its own."""

from __future__ import annotations

import datetime
import itertools
import threading
from typing import Any

import mica.distributed as dist
from mica.distributed import _connect, _group

ENGINES = ["threads", *(["gloo"] if dist.is_gloo_available() else [])]
engine = "threads"  # of the ranks that on_ranks starts
_runs = itertools.count()


def enter(rank: int, world: int, run: str, store: Any, timeout: float) -> None:
    """init_process_group with the engine, for a rank that is a thread whatever the engine is."""
    if engine == "threads":
        limit = datetime.timedelta(seconds=timeout)
        dist.init_process_group("threads", rank=rank, world_size=world, group_name=run, timeout=limit)
        return
    held, ranks = _group.begin(of_thread=True), list(range(world))
    held.store, held.run = store, run
    handle = _connect.connected(engine, f"{run}/0", ranks, rank, timeout, store)
    held.default = _group.ProcessGroup(handle, ranks, f"{run}/0", engine, timeout, store)
    held.groups.append(held.default)


def on_ranks(world: int, f: Any, timeout: float = 20) -> list[Any]:
    """What f(rank) gave or raised on each rank; a rank leaves the group when it is done."""
    found: list[Any] = [None] * world
    run, store = f"run {next(_runs)}", dist.HashStore()

    def rank(r: int) -> None:
        try:
            enter(r, world, run, store, timeout)
            found[r] = f(r)
        except BaseException as error:
            found[r] = error
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()

    threads = [threading.Thread(target=rank, args=(r,), daemon=True) for r in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a rank hangs"
    return found


def on_all(world: int, f: Any) -> list[Any]:
    """The same, where no rank may fail."""
    found = on_ranks(world, f)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return found
