"""Convolutions of float64, complex numbers and integers, and their gradients, beside torch."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

import mica

# Channels, outputs, groups; then size, kernel, stride, padding and dilation of every dimension. The last ones
# have more places than a block of columns (1 MB over channels and taps) holds.
CASES = [
    (1, 1, 1, 5, 3, 1, 1, 1),
    (4, 6, 2, 7, 2, 2, 0, 1),
    (6, 6, 6, 8, 3, 1, 2, 2),
    (3, 2, 1, 4, 1, 1, 0, 1),
    (2, 3, 1, 6, 3, 3, 1, 2),
]
WIDE = {1: (16, 4, 1, 9000, 3, 1, 1, 1), 2: (16, 4, 1, 64, 3, 1, 1, 1), 3: (8, 4, 2, 17, 3, 1, 1, 1)}
DTYPES = ["float64", "complex64", "complex128", "int64", "int32", "uint8", "int16"]


def _made(sizes: list[int], dtype: str, layout: str) -> torch.Tensor:
    kind = getattr(torch, dtype)
    if layout == "expanded":
        return _made(sizes[:-1] + [1], dtype, "dense").expand(sizes)
    if layout == "transposed":
        return _made(sizes[::-1], dtype, "dense").permute(*reversed(range(len(sizes))))
    if layout == "stepped":
        return _made(sizes[:-1] + [2 * sizes[-1]], dtype, "dense")[..., ::2]
    whole = not (kind.is_floating_point or kind.is_complex)
    return torch.randint(0, 5, sizes).to(kind) if whole else torch.randn(sizes, dtype=kind)


def _as_mica(x: torch.Tensor) -> mica.Tensor:
    """The same numbers in the same strides."""
    step, flat = x.stride(), torch.as_strided(x, (x.untyped_storage().size() // x.element_size(),), (1,), 0)
    return mica.as_strided(
        mica.from_numpy(flat.numpy().copy()), list(x.shape), list(step), x.storage_offset()
    )


def _near(got: mica.Tensor, expected: torch.Tensor) -> None:
    found = torch.from_numpy(got.detach().numpy())
    exact = not (expected.is_floating_point() or expected.is_complex())
    size = float(expected.abs().max()) if expected.numel() and not exact else 0.0
    precision = torch.finfo(expected.dtype).eps * 64 * size if not exact else 0.0
    torch.testing.assert_close(found, expected.detach(), rtol=0, atol=precision)


def _cases(spatial: int) -> list[Any]:
    return [*CASES, WIDE[spatial]]


@pytest.mark.parametrize("layout", ["dense", "expanded", "transposed", "stepped"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_values(spatial: int, dtype: str, layout: str, transposed: bool) -> None:
    torch.manual_seed(3)
    for (channels, outputs, groups, size, kernel, stride, padding, dilation), batch in itertools.product(
        _cases(spatial), (1, 2)
    ):
        weight = ([channels, outputs // groups] if transposed else [outputs, channels // groups]) + [
            kernel
        ] * spatial
        x = _made([batch, channels] + [size] * spatial, dtype, layout)
        w = _made(weight, dtype, layout)
        b = _made([outputs], dtype, "dense")
        name = f"conv_transpose{spatial}d" if transposed else f"conv{spatial}d"
        arguments = {"stride": stride, "padding": padding, "groups": groups, "dilation": dilation}
        # torch's integers go through their own float64, exact here.
        wide = x.dtype if x.is_floating_point() or x.is_complex() else torch.float64
        expected = getattr(torch.nn.functional, name)(x.to(wide), w.to(wide), b.to(wide), **arguments)
        got = getattr(mica.nn.functional, name)(_as_mica(x), _as_mica(w), _as_mica(b), **arguments)
        _near(got, expected.to(torch.int64).to(x.dtype) if wide is not x.dtype else expected)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_gradients(spatial: int, dtype: str) -> None:
    torch.manual_seed(4)
    for channels, outputs, groups, size, kernel, stride, padding, dilation in _cases(spatial):
        x = _made([2, channels] + [size] * spatial, dtype, "dense").requires_grad_()
        w = _made([outputs, channels // groups] + [kernel] * spatial, dtype, "dense").requires_grad_()
        arguments = {"stride": stride, "padding": padding, "groups": groups, "dilation": dilation}
        y = getattr(torch.nn.functional, f"conv{spatial}d")(x, w, **arguments)
        grad = _made(list(y.shape), dtype, "transposed")
        y.backward(grad)
        mx = _as_mica(x.detach()).requires_grad_()
        mw = _as_mica(w.detach()).requires_grad_()
        getattr(mica.nn.functional, f"conv{spatial}d")(mx, mw, **arguments).backward(_as_mica(grad))
        assert x.grad is not None and w.grad is not None and mx.grad is not None and mw.grad is not None
        _near(mx.grad, x.grad)
        _near(mw.grad, w.grad)
