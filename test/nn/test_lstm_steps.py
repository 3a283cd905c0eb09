"""float32 LSTMs whose samples are of one length, which the CPU runs in one call a layer, against the same
in float64, which it runs step by step: few and many samples and units, both directions, gradients, and
memory that does not lie together."""

from __future__ import annotations

import copy

import pytest

import mica
from mica import nn


@pytest.mark.parametrize("samples", [1, 3, 8, 9, 64, 65])
@pytest.mark.parametrize("width", [1, 5, 16, 70])
@pytest.mark.parametrize("steps", [1, 6])
def test_values_and_gradients(samples: int, width: int, steps: int) -> None:
    mica.manual_seed(samples + width)
    net = nn.LSTM(3, width, num_layers=2, bidirectional=True)
    inputs = [mica.randn(steps, samples, 3), *(mica.randn(4, samples, width) for _ in range(2))]
    found = []
    for module, dtype in ((net, mica.float32), (copy.deepcopy(net).double(), mica.float64)):
        x, h, c = (t.clone().to(dtype).requires_grad_() for t in inputs)
        y, (last_h, last_c) = module(x, (h, c))
        (y.square().sum() + last_h.sum() + 2 * last_c.sum()).backward()
        found.append([y, last_h, last_c, *(t.grad for t in (x, h, c, *module.parameters()))])
    for ours, exact in zip(*found):
        most = float(exact.detach().abs().max())
        assert mica.allclose(ours.double(), exact, rtol=1e-4, atol=1e-5 * most)


def test_state_that_does_not_lie_together() -> None:
    mica.manual_seed(0)
    net = nn.LSTM(4, 6)
    x = mica.randn(5, 4, 3).transpose(1, 2)
    h, c = (mica.randn(6, 3).t()[None] for _ in range(2))
    with mica.no_grad():
        expected = net(x.contiguous(), (h.contiguous(), c.contiguous()))
        y, (last_h, last_c) = net(x, (h, c))
    assert mica.equal(y, expected[0]) and mica.equal(last_h, expected[1][0])
    assert mica.equal(last_c, expected[1][1])
