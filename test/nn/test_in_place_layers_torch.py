"""Activations and dropout that write their input, as layers and functions: results and gradients are
torch's, those of the form that makes a tensor, and the tensor returned is the one given.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F

import mica
import mica.nn.functional

_ARGUMENTS = {"threshold": (0.1, 0.2)}
FUNCTIONS = [
    name
    for name, function in inspect.getmembers(F, callable)
    if not name.startswith("_") and not inspect.isclass(function) and not inspect.isbuiltin(function)
    if "inplace" in inspect.signature(function).parameters
]
LAYERS = [
    "ReLU",
    "LeakyReLU",
    "ELU",
    "CELU",
    "SELU",
    "Hardtanh",
    "ReLU6",
    "SiLU",
    "Mish",
    "Hardswish",
    "Hardsigmoid",
]


def _result(library: Any, name: str, in_place: bool) -> tuple[Any, Any, bool]:
    x = library.linspace(-2.0, 2.0, 48, dtype=library.float64).reshape(2, 3, 2, 4)
    if name == "dropout3d":
        x = x.unsqueeze(2)
    elif name == "dropout1d":
        x = x.flatten(2)
    x.requires_grad_()
    call = getattr(library.nn.functional, name)
    library.manual_seed(0)
    given = x * 1.0
    options = {"training": True} if name in ("alpha_dropout", "feature_alpha_dropout") else {}
    y = call(given, *_ARGUMENTS.get(name, ()), inplace=in_place, **options)
    (y * y).sum().backward()
    return y.detach().numpy(), x.grad.numpy(), y is given


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    expected = _result(torch, name, True)
    found, plain = _result(mica, name, True), _result(mica, name, False)
    numpy.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-14)
    # torch's gradient of hardsigmoid takes one sixth as a float32, whatever the dtype.
    numpy.testing.assert_allclose(found[1], expected[1], rtol=1e-7, atol=1e-14)
    numpy.testing.assert_array_equal(found[1], plain[1])
    assert found[2] == expected[2] and found[2]


@pytest.mark.parametrize("name", LAYERS)
def test_layers_after_a_normalisation(name: str) -> None:
    grads = []
    for library in (mica, torch):
        nn = library.nn
        library.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), getattr(nn, name)(inplace=True), nn.Conv2d(4, 1, 2)
        )
        net(library.linspace(-1.0, 1.0, 2 * 3 * 6 * 6).reshape(2, 3, 6, 6)).square().sum().backward()
        grads.append([p.grad.numpy() for p in net.parameters()])
    for found, expected in zip(*grads, strict=True):
        numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_layer_keeps_its_place_when_it_is_replaced() -> None:
    for library in (mica, torch):
        net = library.nn.Sequential()
        net.first, net.second = library.nn.Linear(2, 2), library.nn.ReLU()
        net.first = library.nn.Linear(2, 3)
        net.first.weight = library.nn.Parameter(library.ones(3, 2))
        assert [name for name, _ in net.named_children()] == ["first", "second"]
        assert [name for name, _ in net.first.named_parameters()] == ["weight", "bias"]
