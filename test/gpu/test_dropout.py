"""Dropout in one kernel, as the kit computes it, on the simulated GPU."""

import itertools

import pytest
from gpu_device import DEVICE

import mica
from mica import nn

pytestmark = pytest.mark.usefixtures("simt")
F = nn.functional

DTYPES = ["float16", "bfloat16", "float32", "float64"]
LAYOUTS = {
    "transposed": lambda x: x.t().contiguous().t(),
    "columns": lambda x: x.repeat_interleave(2, 1)[:, ::2],
    "a slice": lambda x: mica.cat([x, x[:, :3]], 1)[:, : x.shape[1]],
    "rows that begin one element later": lambda x: mica.cat([x[0, :1], x.flatten()])[1:].view(x.shape),
    "expanded": lambda x: x[:1].expand(x.shape),
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_dropout_of_every_size(dtype):
    for count, p in itertools.product([1, 2, 3, 4, 5, 255, 1023, 1024, 1025, 4099], [0.1, 0.5, 0.9]):
        x = mica.linspace(-2, 3, count).to(getattr(mica, dtype)).to(DEVICE).requires_grad_(True)
        mica.manual_seed(count)
        result = F.dropout(x, p)
        after = mica.rand(3, device=DEVICE)
        result.backward(mica.ones_like(result))
        mica.manual_seed(count)
        mask = mica.empty_like(x).bernoulli_(1 - p).detach()
        assert mica.rand(3, device=DEVICE).tolist() == after.tolist()
        wide = mica.float64 if dtype == "float64" else mica.float32
        scale = mica.tensor(1 / (1 - p), dtype=wide, device=DEVICE)
        want = (x.detach().to(wide) * mask.to(wide) * scale).to(x.dtype)
        assert result.tolist() == want.tolist() and result.dtype == x.dtype
        assert x.grad.tolist() == (mask.to(wide) * scale).to(x.dtype).tolist()
    assert mica.fallback_counts() == {}


def test_native_dropout_says_what_stays():
    x = mica.full((3, 5), float("nan"), device=DEVICE)
    mica.manual_seed(0)
    result, mask = mica.native_dropout(x, 0.5, True)
    assert mask.dtype == mica.bool and mask.shape == x.shape and 0 < mask.sum().item() < 15
    assert result.isnan().all().item()  # 0 * nan
    assert mica.native_dropout(x, 0.5, False)[1].all().item()
    assert not mica.native_dropout(x, 1.0, True)[1].any().item()
    assert mica.native_dropout(x[:0], 0.5, True)[1].shape == (0, 5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dropout_of_every_layout(layout, dtype):
    x = LAYOUTS[layout](mica.ones(6, 37).to(getattr(mica, dtype)).to(DEVICE)).detach().requires_grad_(True)
    mica.manual_seed(5)
    result = F.dropout(x, 0.25)
    assert result.shape == x.shape
    assert set(result.flatten().tolist()) == {0.0, mica.tensor(1 / 0.75, dtype=x.dtype).item()}
    result.sum().backward()
    assert x.grad.tolist() == result.tolist()
    assert 0.6 < (result != 0).double().mean().item() < 0.9


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_the_derivatives_of_dropout(device):
    x = mica.ones(100, device=device, requires_grad=True)
    mica.manual_seed(0)
    result, mask = mica.native_dropout(x, 0.5, True)
    assert not mask.requires_grad
    [first] = mica.autograd.grad(result.square().sum(), x, create_graph=True)
    [second] = mica.autograd.grad(first.sum(), x)
    assert first.tolist() == second.tolist() == (8.0 * mask).tolist() and 0 < mask.sum().item() < 100
    [same] = mica.autograd.grad(mica.native_dropout(x, 0.5, False)[0].sum(), x)
    [none] = mica.autograd.grad(mica.native_dropout(x, 1.0, True)[0].sum(), x)
    assert same.tolist() == [1.0] * 100 and none.tolist() == [0.0] * 100
