"""The public names, one by one: an expression of names*.txt gives the same in torch and under the shim.
Modules are compared in test_modules_torch.py, with the configurations of modules.txt.

docs/reference/torch_coverage.md counts a name as tested when it has a row here, a module of
modules.txt, or is an operator of the conformance page. That a row really uses its name is tested
too: with the name taken away from the shim the row must fail. Programs that do not fit in an
expression are in name_programs.py and name_services.py.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import name_attention
import name_conversions
import name_programs
import name_services
import numpy as np
import pytest
import torch
from shim import SHIM, agree, plain

HERE = Path(__file__).resolve().parent


def _rows(pattern: str, mark: str) -> dict[str, str]:
    lines = [line for f in sorted(HERE.glob(pattern)) for line in f.read_text().splitlines()]
    rows = [line.split(mark, 1) for line in lines if line and not line.startswith("#")]
    twice = [name for name, count in Counter(name for name, _ in rows).items() if count > 1]
    assert not twice, f"rows of the same name: {twice}"
    return dict(rows)


LINES = _rows("names*.txt", "\t")
# torch loads these only when asked.
for module in {n for name in LINES if name.startswith("torch.") for n in (name, name.rpartition(".")[0])}:
    with contextlib.suppress(ImportError):
        importlib.import_module(module)
PROGRAMS = {**vars(name_programs), **vars(name_services), **vars(name_attention), **vars(name_conversions)}


def evaluated(L: Any, text: str) -> Any:
    """The row's result with what the heads of names*.txt say is at hand."""
    scope = dict(
        PROGRAMS,
        L=L,
        np=np,
        t=lambda v: L.tensor(v, dtype=L.float32),
        i=lambda v: L.tensor(v, dtype=L.int64),
        x=L.tensor([[-1.5, 0.25, 2.0], [0.5, -0.75, 1.0]]),
        b=L.tensor([[True, False, True], [False, False, True]]),
        c=L.tensor([1 + 2j, -0.5j, 3.0]),
        m=L.tensor([[2.0, 0.5, 0.0], [0.5, 1.5, 0.25], [0.0, 0.25, 1.0]]),
    )
    return plain(eval(text, scope))


class Missing:
    """Stands where a name was taken away."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@contextlib.contextmanager
def without(name: str) -> Iterator[bool]:
    """The shim without the name, if it can be taken away: methods of the Tensor type and checked flags cannot."""
    parts = name.split(".")
    try:
        owner: Any = name_services.namespace_module(".".join(parts[:-1]))
    except ModuleNotFoundError:
        owner = SHIM.Tensor if parts[0] == "Tensor" else SHIM
        for part in parts[1:-1]:
            owner = getattr(owner, part)
    own = vars(owner).get(parts[-1], Missing) if hasattr(owner, "__dict__") else Missing
    try:
        setattr(owner, parts[-1], Missing())
    except (AttributeError, TypeError, RuntimeError):
        yield False
        return
    try:
        yield True
    finally:
        delattr(owner, parts[-1])
        if own is not Missing:
            setattr(owner, parts[-1], own)


def _mentions(text: str, name: str) -> bool:
    """Whether the expression, or a program that it calls, writes the attribute."""
    called = [PROGRAMS[word] for word in re.findall(r"\w+", text) if callable(PROGRAMS.get(word))]
    sources = [text, *(inspect.getsource(f) for f in called if inspect.isfunction(f))]
    return any(re.search(rf"[.'\"]{re.escape(name)}\b", source) for source in sources)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LINES)
def test_name(name: str) -> None:
    text = LINES[name]
    ours, theirs = (evaluated(L, text) for L in (SHIM, torch))
    agree(ours, theirs, name)
    with without(name) as taken:
        if not taken:
            assert _mentions(text, name.rpartition(".")[2]), f"the row of {name} does not use it"
            return
        try:
            agree(evaluated(SHIM, text), theirs, name)
        except Exception:  # whatever a missing name leads to
            return
    pytest.fail(f"the row of {name} gives torch's result without it")


@pytest.mark.filterwarnings("ignore")
def test_foreign_names() -> None:
    """What torch_api_foreign.txt leaves out of the figures is not in torch."""
    lines = (HERE.parent / "data" / "torch_api_foreign.txt").read_text().splitlines()
    for name in (line for line in lines if not line.startswith("#")):
        owner, _, last = name.rpartition(".")
        if not (owner == "torch.xpu" and last.endswith("Tensor")):  # these types come only with a device
            assert not hasattr(torch.Tensor if owner == "Tensor" else importlib.import_module(owner), last), (
                name
            )
