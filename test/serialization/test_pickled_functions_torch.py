"""Functions of the library are pickled by name, as torch's are."""

from __future__ import annotations

import copy
import pickle
import types
from typing import Any

import pytest
import torch

import mica

SPACES = ["", "fft", "special", "linalg", "nn.functional", "nn.init", "Tensor"]


def _functions(space: str) -> dict[str, tuple[Any, Any]]:
    """Mica's and torch's functions of one name."""
    ours: Any = mica
    theirs: Any = torch
    for part in space.split(".") if space else []:
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    names = [n for n in dir(theirs) if not n.startswith("_") and hasattr(ours, n)]
    pairs = {n: (getattr(ours, n), getattr(theirs, n)) for n in names}
    kinds = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)
    return {n: (a, b) for n, (a, b) in pairs.items() if isinstance(b, kinds) and callable(a)}


def _comes_back(function: Any) -> bool:
    try:
        return pickle.loads(pickle.dumps(function)) == function and copy.deepcopy(function) == function
    except Exception:
        return False


@pytest.mark.parametrize("space", SPACES)
def test_functions_that_torch_pickles_are_pickled(space: str) -> None:
    functions = _functions(space)
    assert len(functions) > 10
    assert [n for n, (a, b) in functions.items() if _comes_back(b) and not _comes_back(a)] == []
