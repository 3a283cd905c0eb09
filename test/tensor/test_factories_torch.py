"""Factories against torch: every one x dtypes x devices, its shape, strides, dtype and device.

FACTORIES is the data. Values are compared where somebody wrote them and the
device holds them; what is uninitialised (UNINITIALISED of samples.py) is compared
by its form alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from both import difference, dtype_name, kind

import mica
from mica.conformance.operators import DTYPES, attempt

DEVICES = ["cpu", "meta"]


def _base(L: Any, device: str) -> Any:
    return L.zeros(2, 3, device=device).t()


# Of a library and the arguments dtype and device.
FACTORIES: dict[str, Callable[..., Any]] = {
    "zeros": lambda L, **k: L.zeros(2, 3, **k),
    "zeros of list": lambda L, **k: L.zeros([2, 0, 3], **k),
    "ones": lambda L, **k: L.ones((4,), **k),
    "full": lambda L, **k: L.full((2, 2), 3, **k),
    "full of bool": lambda L, **k: L.full((2,), True, **k),
    "full of float": lambda L, **k: L.full((2,), 1.5, **k),
    "scalar_tensor": lambda L, **k: L.scalar_tensor(2, **k),
    "arange": lambda L, **k: L.arange(5, **k),
    "arange of steps": lambda L, **k: L.arange(1, 9, 2, **k),
    "arange of floats": lambda L, **k: L.arange(0.5, 3, **k),
    "linspace": lambda L, **k: L.linspace(0, 8, 5, **k),
    "logspace": lambda L, **k: L.logspace(0, 2, 3, **k),
    "eye": lambda L, **k: L.eye(3, **k),
    "eye of two": lambda L, **k: L.eye(2, 4, **k),
    "tril_indices": lambda L, **k: L.tril_indices(3, 4, 1, **k),
    "triu_indices": lambda L, **k: L.triu_indices(3, 4, -1, **k),
    "zeros_like": lambda L, device, **k: L.zeros_like(_base(L, device), **k),
    "ones_like": lambda L, device, **k: L.ones_like(_base(L, device), **k),
    "full_like": lambda L, device, **k: L.full_like(_base(L, device), 3, **k),
    "new_zeros": lambda L, device, **k: _base(L, device).new_zeros(2, 2, **k),
    "new_ones": lambda L, device, **k: _base(L, device).new_ones((3,), **k),
    "new_full": lambda L, device, **k: _base(L, device).new_full((2,), 7, **k),
    "tensor": lambda L, **k: L.tensor([[1, 0], [2, 1]], **k),
    "as_tensor": lambda L, **k: L.as_tensor([1, 2], **k),
}
FORMS: dict[str, Callable[..., Any]] = {
    "empty": lambda L, **k: L.empty(2, 3, **k),
    "empty channels_last": lambda L, **k: L.empty(2, 3, 4, 5, memory_format=L.channels_last, **k),
    "empty of nothing": lambda L, **k: L.empty(0, **k),
    "empty_strided": lambda L, **k: L.empty_strided((2, 3), (1, 4), **k),
    "empty_like": lambda L, device, **k: L.empty_like(_base(L, device), **k),
    "empty_like expanded": lambda L, device, **k: L.empty_like(_base(L, device)[:1].expand(4, 2), **k),
    "empty_like contiguous": lambda L, device, **k: L.empty_like(
        _base(L, device), memory_format=L.contiguous_format, **k
    ),
    "new_empty": lambda L, device, **k: _base(L, device).new_empty((2, 5), **k),
    "new_empty_strided": lambda L, device, **k: _base(L, device).new_empty_strided((2, 3), (3, 1), **k),
    "resize_ larger": lambda L, **k: L.empty(2, 3, **k).resize_(4, 5),
    "resize_ smaller": lambda L, **k: L.empty(2, 3, **k).resize_(2),
    "resize_as_": lambda L, **k: L.empty(2, 3, **k).resize_as_(L.zeros(3, 3)),
}


def _form(x: Any) -> tuple[Any, ...]:
    return (tuple(x.shape), tuple(x.stride()), dtype_name(x.dtype), x.device.type, x.requires_grad)


@pytest.mark.parametrize("name", [*FACTORIES, *FORMS])
@pytest.mark.parametrize("device", DEVICES)
def test_factory(name: str, device: str) -> None:
    make, found = {**FACTORIES, **FORMS}[name], []
    for dtype in [None, *DTYPES]:
        results = []
        for L in (mica, torch):
            wanted = {} if dtype is None else {"dtype": getattr(L, dtype)}
            results.append(attempt(make, L, device=device, **wanted))
        (ours, error), (theirs, expected) = results
        if device == "meta" and expected is None:
            # Mica's meta refuses what the CPU refuses; torch's lets it pass.
            wanted = {} if dtype is None else {"dtype": getattr(torch, dtype)}
            expected = attempt(make, torch, device="cpu", **wanted)[1]
        if error is not None or expected is not None:
            if expected is None or (error is not None and kind(error) != kind(expected)):
                found.append(f"{dtype}: {error!r:.150}, torch {expected!r:.150}")
        elif _form(ours) != _form(theirs):
            found.append(f"{dtype}: {_form(ours)}, torch {_form(theirs)}")
        elif name in FACTORIES and device == "cpu" and (d := difference(ours, theirs)):
            found.append(f"{dtype}: {d}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", [n for n in FACTORIES if "_like" not in n and "new_" not in n])
def test_default_dtype(name: str) -> None:
    """The default dtype decides where a factory gets no other."""
    forms = []
    for L in (mica, torch):
        previous = L.get_default_dtype()
        L.set_default_dtype(L.float64)
        try:
            forms.append(_form(FACTORIES[name](L, device="cpu")))
        finally:
            L.set_default_dtype(previous)
    assert forms[0] == forms[1]


@pytest.mark.parametrize("name", ["zeros", "ones", "full of float", "empty", "new_zeros", "zeros_like"])
def test_requires_grad(name: str) -> None:
    make = {**FACTORIES, **FORMS}[name]
    for L in (mica, torch):
        assert make(L, device="cpu", requires_grad=True).requires_grad
        _, error = attempt(make, L, device="cpu", dtype=L.int64, requires_grad=True)
        assert kind(error) == "RuntimeError"
