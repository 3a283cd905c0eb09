"""What the conformance kit finds: rows with one of three verdicts.

A row is one check of one operator in one dtype, or one check of the device itself; it
counts its cases. *Fails* when a case gave a wrong answer; else *unsupported* when the
backend said of a case that it has no kernel for it; else *passes*.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

PASSES, FAILS, UNSUPPORTED = "passes", "fails", "unsupported"
VERDICTS = (PASSES, FAILS, UNSUPPORTED)


@dataclass
class Failure:
    """A wrong answer: what is wrong, and the Python line that shows it again."""

    detail: str
    line: str


@dataclass
class Row:
    """`check` is "value", "in place", ... or, of a device, "runtime"; `dtype` is "" there."""

    check: str
    name: str
    dtype: str = ""
    passed: int = 0
    unsupported: int = 0
    reason: str = ""  # of the first unsupported case
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        if self.failures:
            return FAILS
        return UNSUPPORTED if self.unsupported else PASSES

    @property
    def cases(self) -> int:
        return self.passed + self.unsupported + len(self.failures)

    def say_unsupported(self, reason: str) -> None:
        self.unsupported += 1
        self.reason = self.reason or reason

    def fail(self, detail: str, line: str) -> None:
        self.failures.append(Failure(detail, line))


@dataclass
class Measurement:
    """A time of the device's own border, without a verdict."""

    name: str
    nanoseconds: float
    note: str


@dataclass
class Report:
    """A whole run on one device."""

    device: str
    about: dict[str, str]  # of the device, the plugin, the machine; for people
    rows: list[Row]
    measurements: list[Measurement] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)  # against a list of what is expected

    def count(self, verdict: str) -> int:
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def failed(self) -> bool:
        return bool(self.count(FAILS) or self.surprises or not self.rows)

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain types."""
        return {
            "device": self.device,
            "about": self.about,
            "counts": {verdict: self.count(verdict) for verdict in VERDICTS},
            "surprises": self.surprises,
            "measurements": [vars(m) for m in self.measurements],
            "rows": [_row_as_json(row) for row in self.rows],
        }


def _row_as_json(row: Row) -> dict[str, Any]:
    return {
        **{
            name: getattr(row, name)
            for name in ("check", "name", "dtype", "verdict", "passed", "unsupported")
        },
        "reason": row.reason,
        "failures": [vars(f) for f in row.failures],
        "seconds": round(row.seconds, 4),
    }


def row_from_json(row: dict[str, Any]) -> Row:
    """A row as as_json() gives it; its verdict follows from the rest."""
    fields = {name: value for name, value in row.items() if name != "verdict"}
    return Row(**{**fields, "failures": [Failure(**f) for f in row["failures"]]})


def of_check(rows: Iterable[Row], *checks: str) -> list[Row]:
    """The rows of these checks."""
    return [row for row in rows if row.check in checks]
