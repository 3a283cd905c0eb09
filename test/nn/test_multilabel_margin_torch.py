"""multilabel_margin_loss against torch: values, gradients and which classes are targets, of repeated and of
no targets, NaN and infinity; its second gradient; what it refuses; memory that grows with the input alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mica
import mica.nn.functional as F  # noqa: N812


def _targets(rng: np.random.Generator, rows: int, classes: int) -> np.ndarray:
    """Some classes of each row, some of them twice, and what nobody reads behind the first -1."""
    targets = rng.integers(0, classes, (rows, classes))
    for row in targets:
        count = rng.integers(0, classes + 1)
        row[count : count + 1] = -1
        row[count + 1 :] = rng.integers(-1, classes, max(classes - count - 1, 0))
    return targets


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_values_and_gradients(dtype: str, reduction: str) -> None:
    rng = np.random.default_rng(0)
    for rows, classes in ((1, 1), (4, 3), (30, 20), (2, 700)):
        x, targets = rng.normal(size=(rows, classes)).astype(dtype), _targets(rng, rows, classes)
        if classes == 20:
            x[3, 5], x[4, 2], x[5, 7] = np.nan, np.inf, -np.inf
        found: list[Any] = []
        for library, functional in ((mica, F), (torch, torch.nn.functional)):
            leaf = library.tensor(x, requires_grad=True)
            loss = functional.multilabel_margin_loss(leaf, library.tensor(targets), reduction=reduction)
            loss.sum().backward()
            found.append([loss.detach().numpy(), leaf.grad.numpy()])
        for ours, theirs in zip(*found):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6)
        marks = [
            operator(tensor(x), tensor(targets), 1)[1]
            for operator, tensor in (
                (mica._C._find_operator("multilabel_margin_loss_forward"), mica.tensor),
                (torch.ops.aten.multilabel_margin_loss_forward, torch.tensor),
            )
        ]
        np.testing.assert_array_equal(marks[0].numpy(), marks[1].numpy())


def test_second_gradient_and_tangent() -> None:
    mica.manual_seed(0)
    x = mica.randn(3, 5, dtype=mica.float64, requires_grad=True)
    t = mica.tensor([[0, 2, -1, 0, 0], [1, 1, 3, 4, -1], [-1, 0, 0, 0, 0]])
    assert mica.autograd.gradcheck(lambda y: F.multilabel_margin_loss(y, t), (x,), check_forward_ad=True)
    assert mica.autograd.gradgradcheck(lambda y: F.multilabel_margin_loss(y, t).square(), (x,))


@pytest.mark.parametrize("wrong", [3, -2])
def test_targets_out_of_range(wrong: int) -> None:
    for library, functional in ((mica, F), (torch, torch.nn.functional)):
        with pytest.raises(RuntimeError, match="target.*out of range"):
            functional.multilabel_margin_loss(
                library.zeros(2, 3), library.tensor([[0, 1, -1], [wrong, 0, 0]])
            )


@pytest.mark.parametrize(
    ("dtype", "classes"), [("complex64", "int64"), ("int64", "int64"), ("float32", "float32")]
)
def test_dtypes_that_are_refused(dtype: str, classes: str) -> None:
    for library, functional in ((mica, F), (torch, torch.nn.functional)):
        x = library.zeros(2, 3, dtype=getattr(library, dtype))
        with pytest.raises(RuntimeError):
            functional.multilabel_margin_loss(x, library.zeros(2, 3, dtype=getattr(library, classes)))


def test_memory_grows_with_the_input() -> None:
    x = mica.randn(4, 3000, requires_grad=True)
    t = mica.randint(0, 3000, (4, 3000))
    t[:, 1000:] = -1
    mica.reset_peak_memory_stats("cpu")
    before = mica.memory_stats("cpu")["bytes_in_use"]
    F.multilabel_margin_loss(x, t).backward()
    assert mica.memory_stats("cpu")["peak_bytes_in_use"] - before < 20 * x.numel() * x.itemsize + 200_000
