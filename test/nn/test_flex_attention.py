"""mica.nn.flex_attention beside scaled_dot_product_attention with the same masks and biases as tensors:
values and gradients (torch's CPU has none). test/torch_names/names_services.txt compares values with torch."""

from __future__ import annotations

from typing import Any

import pytest

import mica
from mica.nn import flex_attention as F

SIZES = ((2, 4, 6, 3), (2, 2, 5, 3), (2, 2, 5, 7))


def inputs() -> list[Any]:
    mica.manual_seed(1)
    return [mica.randn(*size, dtype=mica.float64).requires_grad_() for size in SIZES]


def gradients(output: Any, tensors: list[Any]) -> list[Any]:
    return list(mica.autograd.grad((output * output).sum(), tensors))


@pytest.mark.parametrize("masked", [False, True])
def test_values_and_gradients_are_those_of_dense_attention(masked: bool) -> None:
    q, k, v = inputs()
    bias = mica.randn(4, dtype=mica.float64).requires_grad_()
    documents = mica.tensor([0, 0, 1, 1, 1, 2])

    def score(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return s + bias[h] * (i - j)

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        return (documents[i] == documents[j]) | (j == b)

    blocks = F.create_block_mask(mask, 2, None, 6, 5, BLOCK_SIZE=(4, 2)) if masked else None
    found = F.flex_attention(q, k, v, score, blocks, enable_gqa=True)
    i, j = mica.arange(6)[:, None], mica.arange(5)
    dense = (bias[:, None, None] * (i - j)).expand(2, 4, 6, 5)
    if masked:
        allowed = (documents[i] == documents[j]) | (j == mica.arange(2)[:, None, None, None])
        dense = dense.masked_fill(~allowed, -mica.inf)
    wide = [t.repeat_interleave(2, 1) for t in (k, v)]
    expected = mica.nn.functional.scaled_dot_product_attention(q, *wide, attn_mask=dense)
    mica.testing.assert_close(found, expected)
    tensors = [q, k, v, bias]
    for ours, theirs in zip(gradients(found, tensors), gradients(expected, tensors)):
        mica.testing.assert_close(ours, theirs)


def test_a_query_that_meets_nothing_gives_zeros_and_no_gradient() -> None:
    q, k, v = inputs()
    blocks = F.create_block_mask(lambda b, h, i, j: i > 2, None, None, 6, 5)
    out, lse = F.flex_attention(q, k, v, block_mask=blocks, enable_gqa=True, return_lse=True)
    assert out[:, :, :3].abs().sum() == 0 and (lse[:, :, :3] == -mica.inf).all()
    (gradient,) = gradients(out, [q])
    assert gradient[:, :, :3].abs().sum() == 0 and gradient.isfinite().all()


def test_a_cut_mask_keeps_its_function() -> None:
    whole = F.create_block_mask(lambda b, h, i, j: (i + b) >= j + h, 3, 4, 6, 5, BLOCK_SIZE=2)
    part = whole[1:, 2]
    assert part.shape == (2, 1, 6, 5)
    mica.testing.assert_close(part._mask(2, 1, None), whole._mask(3, 4, None)[1:, 2:3])


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda q, k, v: F.flex_attention(q, k, v), "heads"),
        (lambda q, k, v: F.flex_attention(q[0], k, v), "4 dimensions"),
        (lambda q, k, v: F.flex_attention(q, k[..., :2], v), "last size"),
        (lambda q, k, v: F.flex_attention(q, k, v[:, :, :3], enable_gqa=True), "agree"),
        (
            lambda q, k, v: F.flex_attention(
                q, k, v, None, F.create_block_mask(F.noop_mask, 1, 1, 6, 6), enable_gqa=True
            ),
            "keys",
        ),
        (
            lambda q, k, v: F.flex_attention(
                q, k, v, None, F.create_block_mask(F.noop_mask, 1, 3, 6, 5), enable_gqa=True
            ),
            "heads",
        ),
        (lambda q, k, v: F.and_masks(3), "function"),
    ],
)
def test_refusals_say_what_differs(call: Any, words: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=words):
        call(*inputs())
