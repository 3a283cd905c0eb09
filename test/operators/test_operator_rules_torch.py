"""What torch's own tests ask of many operators at once: dtypes of `out=`, overlap, formats, old names.

Each call runs on torch and on Mica, and the results agree; test_messages_torch.py has what both refuse.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import mica


def test_zeros_for_what_nothing_depends_on_but_for_edges() -> None:
    for m in (torch, mica):
        x, y = (m.ones(2, requires_grad=True).clone() for _ in range(2))
        edge = m.autograd.graph.get_gradient_edge
        out = x.clone().sum()
        found = m.autograd.grad(out, (edge(x), y), retain_graph=True, materialize_grads=True)
        assert [g.tolist() for g in found] == [[1, 1], [0, 0]]
        with pytest.raises(RuntimeError, match="cannot be used when the given input is a GradientEdge"):
            m.autograd.grad(out, (x, edge(y)), materialize_grads=True)


@pytest.mark.parametrize("memory_format", ["contiguous_format", "channels_last"])
def test_the_format_of_one_interpolated_image_of_bytes(memory_format: str) -> None:
    """Of strides that are channels_last by a batch of one alone, the result is contiguous."""
    made = {}
    for m in (torch, mica):
        image = m.ones(1, 3, 8, 8, dtype=m.uint8).contiguous(memory_format=getattr(m, memory_format))
        for x in (image, image[0][None]):
            got = m.nn.functional.interpolate(x, (5, 5), mode="bilinear", antialias=True)
            made.setdefault(m.__name__, []).append(got.stride())
    assert made["mica"] == made["torch"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("size", [(2, 2), (4, 2), (2, 3)])
def test_infinities_of_an_interpolated_image_spread_as_far(dtype: str, size: tuple[int, int]) -> None:
    """To the neighbours that an element is made of, whatever their weight; a side that keeps its size has none."""
    found = []
    for m in (torch, mica):
        image = m.tensor([[float("-inf"), 1.0], [2.0, float("nan")]], dtype=getattr(m, dtype))
        for mode in ("bilinear", "nearest", "area"):
            found.append(str(m.nn.functional.interpolate(image[None, None], size, mode=mode).tolist()))
    assert found[:3] == found[3:]


def test_gradients_of_no_complex_numbers() -> None:
    for m in (torch, mica):
        x = m.ones(0, dtype=m.complex64, requires_grad=True)
        m.view_as_real(x).mean().backward()
        assert x.grad.shape == (0,)
        assert x.grad.dtype == m.complex64


def test_gradients_of_one_complex_number() -> None:
    """Their strides may be any where a dimension has one element."""
    for m in (torch, mica):
        x = m.ones(1, dtype=m.complex64, requires_grad=True)
        m.nn.functional.smooth_l1_loss(m.view_as_real(x).mT, m.zeros(2, 1)).backward()
        assert x.grad.tolist() == [0.5]
        assert m.view_as_complex(m.arange(2.0).as_strided((1, 2), (1, 1))).tolist() == [1j]


SAME_DTYPE = ("neg", "floor", "ceil", "round", "trunc", "frac", "sign", "sgn", "bitwise_not", "square", "exp")
DTYPES = ("bool", "int32", "int64", "float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("name", SAME_DTYPE)
def test_which_dtypes_an_out_may_have(name: str) -> None:
    """As torch's: of rounding and signs only the input's."""

    def ran(m: Any, given: str, into: str) -> bool:
        try:
            getattr(m, name)(m.ones(2, dtype=getattr(m, given)), out=m.empty(0, dtype=getattr(m, into)))
        except (RuntimeError, TypeError):
            return False
        return True

    wrong = [
        (given, into)
        for given in DTYPES
        for into in DTYPES
        if ran(mica, given, into) != ran(torch, given, into)
    ]
    assert not wrong


@pytest.mark.parametrize("method, value", [("fill_", 3), ("fill_", 0), ("zero_", None)])
def test_filling_elements_that_share_memory(method: str, value: int | None) -> None:
    given = () if value is None else (value,)
    for m in (torch, mica):
        assert getattr(m.ones(1).expand(4), method)(*given).tolist() == [value or 0] * 4
        with pytest.raises(RuntimeError, match="unsupported operation"):
            m.ones(1).expand(4).add_(1)


def test_what_a_failed_block_leaves() -> None:
    """A level that was entered by hand in a block that fails ends with it."""
    with pytest.raises(ZeroDivisionError), mica.autograd.forward_ad.dual_level():
        mica.autograd.forward_ad.enter_dual_level()
        raise ZeroDivisionError
    assert mica._C._frame_depth() == 0


def test_the_old_variable() -> None:
    for m in (torch, mica):
        data = m.ones(2)
        x = m.autograd.Variable(data, requires_grad=True)
        assert x.requires_grad and not data.requires_grad and x.data_ptr() == data.data_ptr()
        assert isinstance(x, m.autograd.Variable) and not isinstance(1, m.autograd.Variable)
        p = m.ones(2, requires_grad=True)
        p._grad = m.ones(2)
        assert p.grad.tolist() == [1, 1]


def test_gradients_of_products_into_another_dtype() -> None:
    """Only the real parts are multiplied; torch's cumprod loses the imaginary part of its own gradient."""
    for m in (torch, mica):
        x = m.tensor([1.5, 2, -1], dtype=m.complex128, requires_grad=True)
        whole = (x * (1 + 2j)).prod(dtype=m.float64)
        assert m.autograd.grad(whole, x)[0].tolist() == [-2 + 4j, -1.5 + 3j, 3 - 6j]
        assert m.autograd.grad(x.prod(dtype=m.float64), x)[0].tolist() == [-2, -1.5, 3]
    running = (x * (1 + 2j)).cumprod(0, dtype=mica.float64)
    assert mica.autograd.grad(running.sum(), x)[0].tolist() == [1 - 2j, 0, 3 - 6j]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("dim", [0, 1])
def test_running_products_come_back_from_beyond_the_largest_number(dtype: str, dim: int) -> None:
    x = np.array([[1e30, 1e10, 1e-10, 1e-10, 2.0]] * 3, dtype=dtype)
    x = x if dim else x.T.copy()
    found, wanted = (m.cumprod(m.from_numpy(x), dim).numpy() for m in (mica, torch))
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_allclose(found[np.isfinite(found)], wanted[np.isfinite(found)], rtol=1e-6)


def test_three_matrices_whose_orders_cost_the_same_are_multiplied_from_the_left() -> None:
    """Which is seen where infinities meet."""
    for m in (torch, mica):
        a = m.tensor([[-m.inf, -m.inf], [1.0, 2.0]])
        b = m.tensor([[1.0, -1.0], [2.0, 0.5]])
        for product in (m.linalg.multi_dot([a, b, b]), m.chain_matmul(a, b, b)):
            np.testing.assert_array_equal(product.numpy(), (a @ b @ b).numpy())
    assert not np.array_equal((a @ b @ b).numpy(), (a @ (b @ b)).numpy())


def test_a_negative_base_with_a_complex_exponent() -> None:
    found = []
    for m in (torch, mica):
        base = m.tensor([-1.5, 0.5], dtype=m.float64, requires_grad=True)
        exponent = m.tensor([1 + 2j, -1j], dtype=m.complex128, requires_grad=True)
        found.append(
            [g.numpy() for g in m.autograd.grad(m.pow(base, exponent).abs().sum(), (base, exponent))]
        )
    for ours, theirs in zip(*found):
        assert ours == pytest.approx(theirs, rel=1e-12)


def test_heaviside_takes_one_dtype() -> None:
    for m in (torch, mica):
        with pytest.raises(RuntimeError, match="heaviside is not yet implemented for tensors with different"):
            m.heaviside(m.ones(2), m.ones(2).double())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_second_gradients_of_logcumsumexp(dtype: str) -> None:
    for m in (torch, mica):
        x = m.tensor([-1.0], dtype=getattr(m, dtype), requires_grad=True)
        (slope,) = m.autograd.grad(m.logcumsumexp(x, 0), x, create_graph=True)
        assert slope.tolist() == [1]
        assert m.autograd.grad(slope, x)[0].tolist() == [0]


@pytest.mark.parametrize("dtype", ["float64", "int64", "float16"])
def test_lerp_takes_any_number_as_its_weight(dtype: str) -> None:
    for m in (torch, mica):
        x = m.ones(2, dtype=m.bfloat16)
        assert m.lerp(x, x * 3, m.tensor(1, dtype=getattr(m, dtype))).tolist() == [3, 3]


def test_old_constructors_of_a_tensor_give_views() -> None:
    for m in (torch, mica):
        y = m.ones(2, 2, requires_grad=True)
        for made in (m.ones(1).new(y), m.Tensor(y)):
            assert made.requires_grad and made.data_ptr() == y.data_ptr() and made is not y
            assert made.grad_fn.name() == "AliasBackward0"
        with pytest.raises(TypeError):
            m.ones(1).new(y.double())


def test_what_python_maps_has_no_gradient() -> None:
    for m in (torch, mica):
        x, y = m.ones(3), m.ones(3, requires_grad=True)
        assert x.map2_(x, x, lambda a, b, c: a + b * c).tolist() == [2, 2, 2]
        with pytest.raises(RuntimeError, match="requires grad"):
            x.map_(y, lambda a, b: a)
        with pytest.raises(RuntimeError, match="requires grad"):
            x.map2_(x, y, lambda a, b, c: a)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_no_complex_number_fills_slices_of_real_ones(dtype: str) -> None:
    for m in (torch, mica):
        with pytest.raises(RuntimeError, match="Converting complex Scalar to non-complex type"):
            m.ones(2, 2, dtype=getattr(m, dtype)).index_fill_(1, m.tensor([0]), 1 + 1j)


def holder(m: Any) -> Any:
    """A class whose objects have no memory and hold another tensor."""

    class Holder(m.Tensor):  # type: ignore[misc]
        __slots__ = ("elem",)

        @staticmethod
        def __new__(cls: Any, elem: Any) -> Any:
            made = m.Tensor._make_subclass(cls, elem.to("meta"))
            made.elem = elem
            return made

        def clone(self) -> Any:
            return type(self)(self.elem.clone())

    return Holder


def test_deep_copies_of_what_holds_another_tensor() -> None:
    for m in (torch, mica):
        given = holder(m)(m.ones(2))
        given.note = ["bar"]
        made = copy.deepcopy(given)
        assert type(made) is type(given) and made.note == ["bar"] and made.note is not given.note
        assert made.elem.tolist() == [1, 1] and made.elem is not given.elem
