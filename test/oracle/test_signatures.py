"""Public functions whose signature torch shows: Mica shows one too, with torch's parameters first."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

MODULES = ["torch", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "utils.data", "linalg", "fft", "special", "autograd", "distributions", "random", "func", "testing", "overrides", "utils.checkpoint", "serialization", "amp", "hub", "profiler"]  # fmt: skip


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_signatures_are_shown(name: str) -> None:
    path = "" if name == "torch" else f".{name}"
    theirs, ours = importlib.import_module(f"torch{path}"), importlib.import_module(f"mica{path}")
    public = getattr(theirs, "__all__", None) or [n for n in dir(theirs) if not n.startswith("_")]
    pairs = [(n, getattr(theirs, n, None), getattr(ours, n, None)) for n in public]
    missing = [
        n
        for n, a, b in pairs
        if b is not None and callable(a) and callable(b) and _signature(a) and not _signature(b)
    ]
    assert not missing


def test_generated_functions_show_theirs() -> None:
    import mica

    assert str(inspect.signature(mica.nn.functional.glu)) == "(input, dim=-1)"
    assert str(inspect.signature(mica.Tensor.cumsum)) == "(self, /, dim, *, dtype=None, out=None)"
    assert "Short-time Fourier transform" in mica.stft.__doc__ and "--" not in mica.stft.__doc__
