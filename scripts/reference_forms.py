"""Shapes and dtypes for the reference, found by running an operator's own sample calls.

An operator that others are composed of states no rule of its own for them (its class is `decompose`,
`custom` or `view`). reference.py gives such a page two lines, which follow from running the sample
calls of mica.conformance here: what shape results from which shapes, and of which dtype the result is for
each dtype of the tensors. Nothing is written by hand, so that a line cannot be out of date.
"""

from __future__ import annotations

import re
from typing import Any

import mica
from mica.conformance.operators import DTYPES, ENTRIES, Entry, arguments, operator
from mica.conformance.samples import Call

SECTION = re.compile(r"^## `(?P<overload>[^`]+)`\n(?P<text>.*?)(?=^## `|\Z)", re.M | re.S)
SAME = "that of the tensors"
KINDS = {
    "integers": ("uint8", "int8", "int32", "int64"),
    "floats": ("float16", "bfloat16", "float32", "float64"),
    "complex numbers": ("complex64", "complex128"),
}
MOST = 4  # tensors and results whose shapes are told


def _run(entry: Entry, call: Call, dtype: str) -> tuple[list[Any], list[Any]] | None:
    """The call's tensors and the tensors that result; None where it is refused."""
    positional, named, tensors = arguments(mica, call, dtype, "contiguous")
    try:
        result = operator(entry)(*positional, **named)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return None
    results = result if isinstance(result, (tuple, list)) else [result]
    return tensors, [r for r in results if isinstance(r, mica.Tensor)]


def _word(x: Any) -> str:
    return str(x.dtype).removeprefix("mica.")


def shapes(entry: Entry) -> str:
    """`[2, 3], [3, 4] -> [2, 4]` of the first sample call that has elements."""
    for call in entry.calls():
        for dtype in ("float32", "int64"):
            ran = _run(entry, call, dtype)
            if ran and ran[1] and all(x.numel() for x in ran[0]) and len(ran[0]) <= MOST >= len(ran[1]):
                before, after = (", ".join(str(list(x.shape)) for x in group) for group in ran)
                return f"{before or 'no tensor'} → {after}"
    return ""


def _kinds(names: list[str]) -> str:
    """The dtypes, a kind of which all are there by its name."""
    for kind, members in KINDS.items():
        if set(members) <= set(names):
            names = [kind if n == members[0] else n for n in names if n not in members[1:]]
    return ", ".join(names)


def dtypes(entry: Entry) -> str:
    """Which dtype results from which, those that are refused last."""
    call = next(iter(entry.calls()), None)
    ran = {dtype: _run(entry, call, dtype) for dtype in DTYPES} if call else {}
    given = {dtype: [_word(r) for r in both[1]] for dtype, both in ran.items() if both}
    columns = list(zip(*given.values()))
    fixed = [len(given) > 1 and len(set(column)) == 1 for column in columns]  # as indices are int64
    found: dict[str, list[str]] = {}
    for dtype, names in given.items():
        words = [SAME if n == dtype and not f else n for n, f in zip(names, fixed)]
        if words:
            found.setdefault(", ".join(dict.fromkeys(words)), []).append(dtype)
    refused = [dtype for dtype in ran if dtype not in given]
    ordered = sorted(found.items(), key=lambda item: SAME not in item[0])
    if len(ordered) == 1 and not refused:
        return ordered[0][0]
    told = [f"{said} for {_kinds(names)}" for said, names in ordered]
    return "; ".join([*told, f"refused for {_kinds(refused)}"] if told and refused else told)


def with_forms(page: str) -> str:
    """The page with both lines in each section that lacks them."""

    def add(match: re.Match[str]) -> str:
        section, entry = match[0], ENTRIES.get(match["overload"])
        lines = ""
        if entry and "\n- Shape: " not in section:
            found = shapes(entry)
            lines += f"- Shape, in a sample call: {found}\n" if found else ""
        if entry and "\n- Result's dtype: " not in section:
            found = dtypes(entry)
            lines += f"- Result's dtype, in a sample call: {found}\n" if found else ""
        return section.replace("\n- Gradient:", f"\n{lines}- Gradient:", 1)

    return SECTION.sub(add, page)
