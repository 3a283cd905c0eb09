"""Runs work in a process of its own, of which another process hears what it sends and how it ended.

torch ends the process in one of some 30,000 random programs, by an exception from a destructor. A run of programs
goes on after such an end, and asks which library ends a process that has no other program to run.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from draw import grow
from session import compiled

import mica

FORK = multiprocessing.get_context("fork")  # so that what a test has planted is there


class Died(Exception):
    """A process was ended by a signal."""


def messages(work: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """What `work(send, *arguments)` sends; raises `Died` after the last of it where a signal ends its process."""
    receiver, sender = FORK.Pipe(duplex=False)
    sys.stdout.flush()
    process = FORK.Process(target=work, args=(sender.send, *arguments))
    process.start()
    sender.close()
    try:
        while True:
            yield receiver.recv()
    except EOFError:
        process.join()
    if process.exitcode < 0:
        raise Died(signal.Signals(-process.exitcode).name)
    if process.exitcode > 0:
        raise SystemExit(process.exitcode)


def draw(send: Callable[[str], None], number: int) -> None:
    """Draws a program and sends each statement before it runs."""
    grow(number, send)


def alone(send: Callable[[str], None], library: Any, program: list[str]) -> None:
    """Runs a program on one library."""
    library.manual_seed(0)
    space = {"torch": library, "log": []}
    for statement in program:
        try:
            exec(compiled(statement), space)
        except Exception as error:  # noqa: BLE001 - programs go on after what is refused
            del error
    space.clear()
    gc.collect()


def dies(work: Callable[..., None], *arguments: Any) -> tuple[list[Any], str]:
    """What a process sent, and the signal that ended it, or nothing."""
    sent = []
    try:
        for message in messages(work, *arguments):
            sent.append(message)
    except Died as end:
        return sent, str(end)
    return sent, ""


def ended(number: int) -> tuple[str, list[str]]:
    """Whose end a process met in a program, "torch" or "mica" or nobody's who runs it alone, and the program."""
    program, _ = dies(draw, number)
    if dies(alone, mica, program)[1]:
        return "mica", program
    return "torch" if dies(alone, torch, program)[1] else "", program
