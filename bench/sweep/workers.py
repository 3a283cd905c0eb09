"""Runs cells in child processes, one at a time: what dies or does not end costs its cell alone."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable, Iterator
from typing import Any

from cells import Cell
from measuring import measure
from operands import Operands

_SILENCE = 60.0  # seconds that a cell may take


def _serve(pipe: Any, op: Any, cells: list[Cell]) -> None:
    operands = Operands(op)
    for cell in cells:
        pipe.send(measure(operands, cell))


def _of_one(op: Any, cells: list[Cell], end: float) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """The operator's cells; a new process goes on behind one that died."""
    fork = multiprocessing.get_context("fork")
    at = 0
    while at < len(cells) and time.monotonic() < end:
        ours, theirs = fork.Pipe(duplex=False)
        child = fork.Process(target=_serve, args=(theirs, op, cells[at:]), daemon=True)
        child.start()
        theirs.close()
        while at < len(cells) and time.monotonic() < end:
            cell, at = cells[at], at + 1
            try:
                if ours.poll(_SILENCE):
                    yield cell, ours.recv()
                    continue
                yield cell, {"failed": f"no end after {_SILENCE:.0f} s"}
            except EOFError:
                child.join()
                yield cell, {"failed": f"the process ended with {child.exitcode}"}
            break
        child.kill()
        child.join()
        ours.close()


def run(
    chosen: Iterable[tuple[Any, list[Cell]]], known: dict[str, Any], end: float
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Measures the cells that are not known yet, until the time `end`."""
    for op, cells in chosen:
        left = [cell for cell in cells if cell.name not in known]
        if left and time.monotonic() < end:
            yield from _of_one(op, left, end)
