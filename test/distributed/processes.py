"""Runs a Python program as the ranks of one group, each a process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from typing import NamedTuple


class Ended(NamedTuple):
    """How a rank ended."""

    status: int
    out: str
    err: str
    seconds: float


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def ran(
    world: int, program: str, *words: str, first: Sequence[int] = (), timeout: float = 60, **environment: str
) -> list[Ended]:
    """What came of the ranks of a program, which meet by env://; the others are killed when the first have ended."""
    shared = {
        **os.environ,
        "WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        **environment,
    }
    begun = time.monotonic()
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), *words],
            env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    ended = {}
    try:
        for i in first or range(world):
            out, err = ranks[i].communicate(timeout=timeout)
            ended[i] = Ended(ranks[i].returncode, out, err, time.monotonic() - begun)
    finally:
        for i in set(range(world)) - ended.keys():
            ranks[i].kill()
            ended[i] = Ended(-9, *ranks[i].communicate(), time.monotonic() - begun)
    return [ended[i] for i in range(world)]


def printed(world: int, program: str, *words: str, **options: str) -> list[str]:
    """What each rank of a program printed that must end well."""
    ended = ran(world, program, *words, **options)
    for rank in ended:
        assert rank.status == 0, rank.out + rank.err
    return [rank.out for rank in ended]
