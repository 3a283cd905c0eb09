"""Fake tensors beside torch's: what each expression gives inside a FakeTensorMode, and what it raises.

In both, `L` is the library, `x` ones of [2, 3], `net` a layer after a backward, `m` the mode, `real` a
tensor from before.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch._subclasses.fake_tensor
from shim import SHIM

from mica.torch._modules import module

EXPRESSIONS = """
x; x.sum(); type(x).__name__; x.fake_mode is m; x.fake_device; x.device; x.double(); x.view(3, 2).t(); x[0]
net.weight; isinstance(net.weight, L.nn.Parameter); net(x); net.weight.grad; copy.deepcopy(net).weight; copy.deepcopy(x)
x.sum().item(); x.nonzero(); bool(x.sum() > 0); x.tolist(); x.numpy(); x.unique(); x[x > 0]; x @ x
x.add_(1) is x; L.zeros(2, dtype=L.int64); x.to('meta').device; L.cat([x, x]).stride(); L.arange(4); x.new_zeros(3)
x[:, None].expand(2, 5, 3).stride(); L.randn(2, device='meta').device; L.tensor([1.0, 2.0]); x * L.tensor(2.0)
L.tensor(2.0).item(); L.tensor(2).add_(1).item(); (L.tensor(2.0) * 3).item(); L.empty_like(x).stride(); x.clone()
L.nn.Sequential(L.nn.Conv2d(3, 4, 3), L.nn.BatchNorm2d(4), L.nn.MaxPool2d(2), L.nn.Flatten())(L.randn(2, 3, 8, 8))
L.optim.Adam(net.parameters()).step(); L.nn.functional.cross_entropy(L.randn(3, 4), L.tensor([1, 2, 3]))
L.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(L.randn(2, 4, 8)).shape; L.nn.LSTM(3, 4)(x[None])[0].shape
real + 1; x[0] + real; m.from_tensor(real) + x; m.from_tensor(real) is m.from_tensor(real); x + L.ones(3, device='meta')
isinstance(m.from_tensor(L.nn.Parameter(real)), L.nn.Parameter); F.is_fake(x); F.is_fake(real); F.FakeTensorMode()
F.maybe_get_fake_mode(x) is m; F.maybe_get_fake_mode(real); type(F.FakeTensorMode().from_tensor(x)).__name__
"""
PROGRAMS = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split(";")]


def shown(L: Any, program: str) -> str:  # noqa: N803 - as programs name it
    fakes = torch._subclasses.fake_tensor if L is torch else module("torch._subclasses.fake_tensor")
    real, m = L.ones(3), fakes.FakeTensorMode()
    with m:
        x, net = L.ones(2, 3), L.nn.Linear(3, 4)
        net(x).sum().backward()
        scope = {"L": L, "F": fakes, "real": real, "m": m, "x": x, "net": net, "copy": copy}
        try:
            value = eval(program, scope)
        except Exception as error:
            return f"raises {type(error).__name__}"
        text = repr(value)
    return type(value).__name__ if " at 0x" in text else text.replace("mica.", "torch.")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_fakes(program: str) -> None:
    assert shown(SHIM, program) == shown(torch, program)


@pytest.mark.filterwarnings("ignore")
def test_copies() -> None:
    found = []
    for L in (SHIM, torch):  # noqa: N806
        fakes = torch._subclasses.fake_tensor if L is torch else module("torch._subclasses.fake_tensor")
        net = L.nn.Sequential(L.nn.Linear(2, 3), L.nn.BatchNorm1d(3))
        with fakes.FakeCopyMode(fakes.FakeTensorMode()):
            made, cloned = copy.deepcopy(net), L.ones(2).clone()
        shapes = [(k, fakes.is_fake(v), tuple(v.shape)) for k, v in made.state_dict(keep_vars=True).items()]
        kinds = [(isinstance(p, L.nn.Parameter), p.requires_grad) for p in made.parameters()]
        found.append([shapes, kinds, repr(cloned)])
    assert found[0] == found[1]


def test_real_inputs_where_they_are_allowed() -> None:
    fakes = module("torch._subclasses.fake_tensor")
    with fakes.FakeTensorMode(allow_non_fake_inputs=True):
        assert (SHIM.ones(3) + 1).fake_device.type == "cpu"
    with pytest.raises(NotImplementedError, match="shape_env"):
        fakes.FakeTensorMode(shape_env=object())
