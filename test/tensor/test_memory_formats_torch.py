"""channels_last_3d beside torch's: strides, what is refused, and the values of layers on such tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import mica

# `x` is a contiguous tensor of 5 dimensions, `y` the same with its channels last, `F` the format.
SAME = """
L.channels_last_3d
x.contiguous(memory_format=F).stride()
x.to(memory_format=F).stride()
x.to(L.float64, memory_format=F).stride()
x.half(memory_format=F).stride()
x.clone(memory_format=F).stride()
L.empty(2, 3, 4, 5, 6, memory_format=F).stride()
L.empty_like(x, memory_format=F).stride()
L.zeros_like(x, memory_format=F).stride()
L.zeros(1).resize_(2, 3, 4, 5, 6, memory_format=F).stride()
L.nn.Conv3d(3, 2, 2).to(memory_format=F).weight.stride()
L.nn.utils.convert_conv3d_weight_memory_format(L.nn.Conv3d(3, 2, 2), F).weight.stride()
y.clone().stride()
y.to(memory_format=L.contiguous_format).stride()
y.contiguous().stride()
y.is_contiguous(memory_format=F)
y.is_contiguous(memory_format=L.channels_last)
y.is_contiguous()
y.contiguous(memory_format=F) is y
x.is_contiguous(memory_format=F)
x[:, :1].contiguous().is_contiguous(memory_format=F)
x[:, 0].is_contiguous(memory_format=F)
x[0].clone(memory_format=L.channels_last).is_contiguous(memory_format=F)
(y * 2 + 1).stride()
(y + L.zeros(3, 1, 1, 1)).stride()
y.relu().sum(1).stride()
y.double().stride()
y.dim_order(ambiguity_check=[L.contiguous_format, F])
x.to(memory_format=L.channels_last)
x.contiguous(memory_format=L.channels_last)
x[0].to(memory_format=F)
x[0].contiguous(memory_format=F)
x[0].clone(memory_format=F)
L.empty_like(x[0], memory_format=F)
L.empty(2, 3, memory_format=F)
L.empty(2, 3, 4, 5, 6, memory_format=L.channels_last)
L.zeros(1).resize_(2, 3, memory_format=F)
""".strip().splitlines()
LAYERS = """
f.conv3d(x, w, b, padding=1)
f.conv3d(x, w, b, stride=2)
f.conv_transpose3d(x, w.transpose(0, 1), stride=2)
f.batch_norm(x, None, None, training=True)
f.group_norm(x, 1)
f.max_pool3d(x, 2)
f.avg_pool3d(x, 2)
f.adaptive_avg_pool3d(x, 2)
f.adaptive_max_pool3d(x, 2)
f.interpolate(x, scale_factor=2)
f.interpolate(x, scale_factor=2, mode="trilinear")
f.pad(x, (1, 1, 1, 1, 1, 1), mode="replicate")
f.conv3d(x.to(memory_format=L.contiguous_format), w.to(memory_format=L.channels_last_3d))
""".strip().splitlines()


def _outcome(library: Any, text: str) -> str:
    x = library.arange(720.0).reshape(2, 3, 4, 5, 6)
    format = library.channels_last_3d
    y = x.contiguous(memory_format=format)
    try:
        return str(eval(text, {"L": library, "x": x, "y": y, "F": format})).replace("mica", "torch")
    except RuntimeError:
        return "RuntimeError"


@pytest.mark.parametrize("text", SAME)
def test_five_dimensions_have_channels_last_as_in_torch(text: str) -> None:
    assert _outcome(mica, text) == _outcome(torch, text)


@pytest.mark.parametrize("text", LAYERS)
def test_layers_read_channels_last_in_three_dimensions(text: str) -> None:
    results = []
    for L in (mica, torch):
        values = (L.arange(720.0).reshape(2, 3, 4, 5, 6) * 0.37).sin()
        x = values.to(memory_format=L.channels_last_3d).requires_grad_()
        w = (L.arange(324.0).reshape(4, 3, 3, 3, 3) * 0.7).cos().requires_grad_()
        names = {"L": L, "f": L.nn.functional, "x": x, "w": w, "b": L.arange(4.0)}
        result = eval(text, names)
        result.square().sum().backward()
        grads = [t.grad for t in (x, w) if t.grad is not None]
        results.append([t.detach().numpy() for t in (result, *grads)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=1e-4, atol=1e-4)
