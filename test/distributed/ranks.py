"""Runs a function on many ranks, each a thread with a default group of its own."""

from __future__ import annotations

import datetime
import itertools
import threading
from typing import Any

import mica.distributed as dist

_runs = itertools.count()


def on_ranks(world: int, f: Any, timeout: float = 20) -> list[Any]:
    """What f(rank) gave or raised on each rank; a rank leaves the group when it is done."""
    found: list[Any] = [None] * world
    run = f"run {next(_runs)}"

    def rank(r: int) -> None:
        try:
            limit = datetime.timedelta(seconds=timeout)
            dist.init_process_group("threads", rank=r, world_size=world, group_name=run, timeout=limit)
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
