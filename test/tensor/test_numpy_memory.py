"""Memory that a NumPy array shows stays what it was, whatever becomes of the tensor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mica

COUNT = 50_000


def share(x: mica.Tensor) -> None:
    x.share_memory_()


def give_other_data(x: mica.Tensor) -> None:
    x.data = mica.zeros(10)


def set_other_storage(x: mica.Tensor) -> None:
    x.set_(mica.zeros(10))


@pytest.mark.parametrize("change", [share, give_other_data, set_other_storage])
@pytest.mark.parametrize("through", [lambda x: x, lambda x: x.data, lambda x: x.detach()[10:]])
def test_an_array_keeps_the_memory(
    change: Callable[[mica.Tensor], None], through: Callable[[mica.Tensor], mica.Tensor]
) -> None:
    x = mica.arange(COUNT, dtype=mica.float32)
    array = through(x).numpy()
    expected = array.copy()
    change(x)
    others = [mica.full((COUNT,), 7.0) for _ in range(4)]
    np.testing.assert_array_equal(array, expected)
    assert len(others) == 4


@pytest.mark.parametrize(
    "through", [lambda x: x, lambda x: x.data, lambda x: x.detach(), lambda x: x.view(-1)]
)
def test_a_tensor_that_an_array_shows_does_not_grow(through: Callable[[mica.Tensor], mica.Tensor]) -> None:
    x = mica.arange(COUNT, dtype=mica.float32)
    array = through(x).numpy()
    with pytest.raises(RuntimeError, match="storage that is not resizable"):
        x.resize_(3 * COUNT)
    assert x.resize_(3).tolist() == [0, 1, 2] and array[-1] == COUNT - 1


def test_a_tensor_that_data_shows_does_not_grow_either() -> None:
    x = mica.arange(COUNT, dtype=mica.float32)
    alias = x.data
    with pytest.raises(RuntimeError, match="`.data` gave"):
        x.resize_(3 * COUNT)
    assert alias.sum() == x.sum()
    del alias
    assert x.resize_(3 * COUNT)[:3].tolist() == [0, 1, 2]
