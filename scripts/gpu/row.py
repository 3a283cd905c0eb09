"""The rows of a section: each is a name and a function that gives numbers, or raises.

A section is a module of this folder with `rows(device, options)`. `child.py` runs its rows in a
process of its own; `report.py` starts that process, and starts it again behind a row that
ended or hung it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class Skipped(Exception):
    """A row that cannot run here; its text says why."""


@dataclass
class Row:
    """`run` gives what the report writes down: plain types alone."""

    name: str
    run: Callable[[], dict[str, Any]]
    limit: float = 60.0  # seconds until the process is ended


@dataclass
class Options:
    """What the command line says, for a section."""

    seconds: float = 100.0  # the section should be done by then
    scale: float = 1.0  # of the sizes in `speed`
    processes: int = 8
    out: str = "."
    more: dict[str, Any] = field(default_factory=dict)


def expect(condition: Any, sentence: str) -> None:
    """Raises AssertionError with a sentence unless the condition holds."""
    if not condition:
        raise AssertionError(sentence)


def fallbacks(device: str) -> dict[str, int]:
    """The operators that ran on the CPU since the last question, and how often."""
    import mica

    counts = mica.fallback_counts(reset=True).get(mica.device(device).type, {})
    return {name.removeprefix("mica::"): calls for name, calls in counts.items()}
