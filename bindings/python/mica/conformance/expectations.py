"""Which rows of a device are expected to be unsupported: a list kept beside its source.

A line is `operator checks dtypes`, as `sum value,out float16 bfloat16`: checks are joined
by commas, and `*` stands for all that the operator has; after a `!` the dtypes are all
others, as in `add.Tensor value,inplace !float32 !float64`. A row of the device itself is
`runtime <its name>`. After the line `rest open` an operator without a line may have support or not, as far as
a new one is made of what the device knows; one that must have it all says so, `relu supported`: the list of a device
that knows few operators. What follows `#` is a comment. A surprise either way is a failure: a
row that is unsupported and not listed, and a listed one that is supported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from mica.conformance.results import UNSUPPORTED, Row

_RUNTIME = "runtime"
_REST = "rest open"
_SUPPORTED = "supported"


@dataclass(frozen=True)
class Line:
    """One line; of a runtime check `name` is the check's own."""

    text: str
    name: str
    checks: frozenset[str]
    dtypes: frozenset[str] = frozenset()
    others: bool = False  # all dtypes but those

    def fits(self, row: Row) -> bool:
        if row.name != self.name or not ({"*", row.check} & self.checks):
            return False
        return row.check == _RUNTIME or "*" in self.dtypes or (row.dtype in self.dtypes) != self.others


def _line(text: str) -> Line:
    words = text.split()
    if text == _REST or words[1:] == [_SUPPORTED]:
        return Line(text, words[0], frozenset())
    if words[0] == _RUNTIME:
        return Line(text, " ".join(words[1:]), frozenset([_RUNTIME]))
    dtypes = frozenset(w.removeprefix("!") for w in words[2:])
    signs = {w.startswith("!") for w in words[2:]}
    if len(signs) != 1:
        raise ValueError(f"The line ({text}) is not `operator checks dtypes`.")
    return Line(text, words[0], frozenset(words[1].split(",")), dtypes, signs == {True})


def read(text: str) -> list[Line]:
    """The lines, comments left out."""
    parts = (line.split("#")[0].strip() for line in text.splitlines())
    return [_line(part) for part in parts if part]


def surprises(rows: Iterable[Row], listed: list[Line], whole: bool) -> list[str]:
    """Sentences; `whole` says that all rows were run, so that unused lines are surprises too."""
    found, used = [], set()
    by_name: dict[str, list[Line]] = defaultdict(list)
    for line in listed:
        by_name[line.name].append(line)
    is_open = bool(by_name.pop("rest", []))
    names = set()
    for row in rows:
        place = " ".join(filter(None, (row.check, row.name, row.dtype)))
        names.add(row.name)
        fitting = [line for line in by_name[row.name] if line.fits(row)]
        used.update(fitting)
        may_lack = is_open and row.check != _RUNTIME and not by_name[row.name]
        if row.verdict == UNSUPPORTED and not fitting and not may_lack:
            found.append(f"{place} is unsupported and not listed: {row.reason}")
        elif row.verdict != UNSUPPORTED and fitting:
            found.append(f"{place} is listed as unsupported, and {row.verdict}")
    if whole:
        # Lines without checks: operators said to be supported, and the one of the rest.
        used.update(line for line in listed if not line.checks and line.name in {*names, "rest"})
        found += [f"The line ({line.text}) fits no row" for line in listed if line not in used]
    return found


def _dtypes(lacking: set[str], every: set[str]) -> str:
    if lacking == every:
        return "*"
    rest = every - lacking
    return " ".join(sorted(lacking) if len(lacking) <= len(rest) else [f"!{d}" for d in sorted(rest)])


def write(rows: Iterable[Row], device: str) -> str:
    """The list that these rows fulfil, as short as it can be said."""
    every: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    lacking: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    lines = [f"# What {device} does not support, as `mica conformance --write-expected` lists it."]
    for row in rows:
        if row.check == _RUNTIME:
            lines += [f"{_RUNTIME} {row.name}"] if row.verdict == UNSUPPORTED else []
            continue
        every[row.name][row.check].add(row.dtype)
        if row.verdict == UNSUPPORTED:
            lacking[row.name][row.check].add(row.dtype)
    none = {name for name, checks in lacking.items() if checks == every[name]}
    full = every.keys() - lacking.keys()
    few = 2 * len(none) > len(every)
    if few:
        lines += [_REST, *(f"{name} {_SUPPORTED}" for name in every if name in full)]
    for name, checks in lacking.items():
        if name in none:
            lines += [] if few else [f"{name} * *"]
            continue
        said: dict[str, list[str]] = defaultdict(list)
        for c, dtypes in checks.items():
            said[_dtypes(dtypes, every[name][c])].append(c)
        lines += [f"{name} {','.join(cs)} {text}" for text, cs in said.items()]
    return "\n".join(lines) + "\n"
