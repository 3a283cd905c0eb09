"""Wrong calls whose exception is of torch's kind."""

from __future__ import annotations

import numpy
import pytest
import torch

import mica

WRONG = """
L.nn.AvgPool2d(2)(L.ones(4, 4))
L.nn.functional.avg_pool2d(L.ones(4), 2)
L.nn.functional.avg_pool2d(L.ones(1, 1, 1, 4, 4), 2)
L.nn.LPPool2d(2, 2)(L.ones(4, 4))
L.nn.MaxPool2d(2)(L.ones(4, 4))
L.nn.Unfold(2)(L.ones(4, 4))
L.nn.functional.unfold(L.ones(4), 2)
L.nn.functional.unfold(L.ones(1, 1, 1, 4, 4), 2)
L.linspace(L.ones(1), L.tensor(1.0), 3)
L.linspace(L.tensor(1.0), L.ones(1), 3)
L.linspace(0, L.ones(1), 3)
L.linspace(L.ones(1, 1), 1, 3)
L.logspace(L.ones(1), L.tensor(1.0), 3)
L.logspace(0, L.ones(1), 3)
L.logspace(L.ones(1), 1, 3)
L.linspace(L.tensor(0.0), 1, -1)
L.nn.functional.conv_transpose1d(L.ones(1, 2, 4), L.ones(2, 2, 2), output_padding=1)
L.nn.functional.conv_transpose2d(L.ones(1, 2, 4, 4), L.ones(2, 2, 2, 2), stride=2, output_padding=2)
L.nn.functional.conv_transpose2d(L.ones(1, 2, 4, 4), L.ones(2, 2, 2, 2), stride=(3, 1), output_padding=(2, 1))
L.nn.functional.conv_transpose2d(L.ones(1, 2, 4, 4), L.ones(2, 2, 2, 2), dilation=2, output_padding=2)
L.nn.functional.conv_transpose3d(L.ones(1, 2, 4, 4, 4), L.ones(2, 2, 2, 2, 2), stride=2, output_padding=(1, 1, 2))
L.nn.ConvTranspose2d(2, 2, 2, output_padding=1)(L.ones(1, 2, 4, 4))
L.convolution(L.ones(1, 2, 4), L.ones(2, 2, 2), None, [1], [0], [1], True, [1], 1)
L.nn.functional.embedding_bag(L.tensor([0, 7]), L.ones(3, 2), L.tensor([0]))
L.nn.functional.embedding_bag(L.tensor([0, 1]), L.ones(3, 2), L.tensor([1]))
L.nn.functional.embedding_bag(L.tensor([0, 1]), L.ones(3, 2), L.tensor([0, 5]))
L.nn.functional.embedding_bag(L.tensor([0, -1]), L.ones(3, 2), L.tensor([0]), mode="sum")
L.nn.functional.embedding_bag(L.tensor([0, 7]), L.ones(3, 2), L.tensor([0]), mode="max")
L.nn.functional.embedding_bag(L.tensor([[0, 7]]), L.ones(3, 2, dtype=L.float16), padding_idx=0)
L.nn.functional.embedding_bag(L.tensor([0, -1]), L.ones(3, 2, requires_grad=True), L.tensor([0]), mode="sum", per_sample_weights=L.ones(2))
L.nn.EmbeddingBag(3, 2)(L.tensor([[0, 3]]))
L.nn.EmbeddingBag(3, 2, max_norm=1.0)(L.tensor([[0, 3]]))
L.nn.functional.embedding(L.tensor([0, 7]), L.ones(3, 2))
L.meshgrid(L.ones(2, 2), L.ones(2), indexing="ij")
L.meshgrid(L.ones(2), L.ones(2, dtype=L.int64), indexing="ij")
L.meshgrid(indexing="ij")
L.meshgrid(L.ones(2), indexing="")
L.asarray(L.ones(2), dtype=L.int32, copy=False)
L.asarray([1, 2], copy=False)
L.asarray(numpy.float64(3), copy=False)
L.moveaxis(L.ones(2, 3), (0, 1), (0,))
L.moveaxis(L.ones(2, 3), (0, 0), (0, 1))
L.moveaxis(L.ones(2, 3), (0, 4), (0, 1))
L.isin(1, 2)
""".strip().splitlines()
RIGHT = """
L.nn.functional.conv_transpose2d(L.ones(1, 2, 4, 4), L.ones(2, 2, 2, 2), stride=(3, 1), output_padding=(2, 0))
L.nn.functional.conv_transpose2d(L.ones(1, 2, 4, 4), L.ones(2, 2, 2, 2), stride=(3, 1), dilation=(1, 3), output_padding=(2, 2))
L.nn.functional.conv_transpose1d(L.ones(1, 2, 4), L.ones(2, 2, 2), dilation=2, output_padding=1)
L.linspace(L.tensor(0.0), L.tensor(1.0), 3)
L.linspace(L.tensor(2), 5, 3, dtype=L.int64)
L.logspace(0, L.tensor(2.0), 3, base=2.0)
L.logspace(start=L.tensor(0.0), end=L.tensor(2.0), steps=3)
L.block_diag()
L.meshgrid(L.tensor(2.0), L.ones(3), indexing="ij")[1]
L.asarray(L.ones(2), dtype=L.float32, device="cpu", copy=False)
L.asarray(L.utils.dlpack.to_dlpack(L.ones(2, 3)))
L.moveaxis(L.arange(24).reshape(2, 3, 4), (0, 1), (1, 2))
L.moveaxis(L.arange(24).reshape(2, 3, 4), source=(0, -1), destination=(-1, 0))
L.isin(L.tensor([1, 2, 3]), 2)
L.isin(L.tensor([1, 2, 3]), 2.5, invert=True)
L.isin(2, L.tensor([[1, 2], [3, 4]]))
L.isin(5, L.tensor([[1, 2], [3, 4]]), invert=True)
L.isin(1, L.ones(0))
L.arange(3.0)[L.tensor(0, dtype=L.uint8)]
L.arange(3.0)[L.tensor(1, dtype=L.uint8)]
L.arange(6.0).reshape(2, 3)[L.tensor(1, dtype=L.uint8), L.tensor(1)]
L.tensor(3.0)[L.tensor(1, dtype=L.uint8)]
""".strip().splitlines()


@pytest.mark.parametrize("text", WRONG)
def test_wrong_calls_raise_torchs_kind(text: str) -> None:
    kinds = []
    for L in (mica, torch):
        with pytest.raises(Exception) as e:
            eval(text, {"L": L, "numpy": numpy})
        kinds.append(e.type)
    assert kinds[0] is kinds[1]


@pytest.mark.parametrize("text", RIGHT)
def test_right_calls_give_torchs_values(text: str) -> None:
    ours, theirs = (eval(text, {"L": L}) for L in (mica, torch))
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    assert ours.shape == theirs.shape
    torch.testing.assert_close(torch.tensor(ours.tolist()), torch.tensor(theirs.tolist()))


def test_output_padding_is_refused_on_meta() -> None:
    x, w = mica.ones(1, 2, 4, 4, device="meta"), mica.ones(2, 2, 2, 2, device="meta")
    with pytest.raises(RuntimeError, match=r"`output_padding`.*`stride` \(2\)"):
        mica.nn.functional.conv_transpose2d(x, w, stride=2, output_padding=2)
