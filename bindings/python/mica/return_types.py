"""mica.return_types: the classes of operators' named results, `mica.return_types.max`.

A class is made when it is asked for, from the operator's schema; the functions give instances of the
same one.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from mica import _C, ops


@functools.cache
def _fields() -> dict[str, tuple[str, ...]]:
    """The names of the results, by operator; `max_out` is what max() with out= gives."""
    found: dict[str, tuple[str, ...]] = {}
    with_out = set()
    for full in _C._operator_names():
        space, _, name = full.partition("::")
        base = name.partition(".")[0]
        if space != "mica" or base.startswith("_"):
            continue
        results = str(ops.overload(full).schema).rpartition("-> (")[2]
        named = re.findall(r"Tensor (\w+)", results)
        if len(named) > 1 and results.endswith(")"):
            found.setdefault(base, tuple(named))
        elif "!" in results:
            with_out.add(base)
    return found | {f"{base}_out": found[base] for base in with_out if base in found}


def __getattr__(name: str) -> Any:
    fields = None if name.startswith("__") else _fields().get(name)
    if fields is None:
        raise AttributeError(
            f"module 'mica.return_types' has no attribute '{name}': no operator's results are so named"
        )
    return _C._result_type(name, fields)


def __dir__() -> list[str]:
    return sorted(_fields())
