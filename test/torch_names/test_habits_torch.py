"""What packages written for torch do in passing, which must end alike in torch and under the shim.

Each program was found in a package's own tests that passed on torch alone; it is named by what it
does, not by the package. It takes the library and returns what is compared.
"""

from __future__ import annotations

import copy
import importlib
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from mica.torch import namespace

SHIM = namespace()


def divergence_of_any_class(L: Any) -> Any:
    """A class that is no Distribution may be registered (a package has a base of its own)."""
    base = type("Base", (), {})
    register = L.distributions.kl.register_kl
    register(base, L.distributions.Normal)(lambda p, q: 7)
    with pytest.raises(TypeError):
        register(base(), base)
    return L.distributions.kl_divergence(base(), L.distributions.Normal(0.0, 1.0))


def tensor_of_numpy_scalars(L: Any) -> Any:
    return L.tensor((np.cos(1.0), np.float64(2.0), 0.0), dtype=L.float32).tolist()


def data_of_a_view(L: Any) -> Any:
    base = L.arange(6.0).requires_grad_()
    middle = base * 2
    view = middle.view(2, 3)[0]
    view.data = L.full((3,), 5.0)
    (view * view).sum().backward()
    leaf = L.arange(6.0)[:3].requires_grad_()
    leaf.data = L.ones(3)
    (leaf * 4).sum().backward()
    return (
        view.tolist(),
        middle.tolist(),
        base.grad.tolist(),
        view.requires_grad,
        leaf.grad.tolist(),
        leaf.is_leaf,
    )


def gradient_of_an_expanded_leaf(L: Any) -> Any:
    leaves = [L.zeros(()).expand(3, 1).detach().requires_grad_(), L.zeros(4)[::2].detach().requires_grad_()]
    for leaf in leaves:
        for _ in range(2):
            leaf.sum().backward()
            (leaf.t() * L.arange(float(leaf.numel()))).sum().backward()
    return [(leaf.grad.tolist(), leaf.grad.stride()) for leaf in leaves]


def autocast_to_another_dtype(L: Any) -> Any:
    found = []
    for dtype in (L.int64, L.float32):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with L.autocast("cpu", dtype=dtype):
                found.append((L.is_autocast_enabled("cpu"), L.mm(L.ones(1, 1), L.ones(1, 1)).dtype.itemsize))
        found.append((len(said), said[0].category.__name__))
    with L.autocast("cpu", dtype=L.float32, enabled=False):
        return found, L.is_autocast_enabled("cpu")


def directions_of_another_dtype(L: Any) -> Any:
    forward, x, along = L.autograd.forward_ad, L.ones(2, dtype=L.double), L.tensor([1.0, 3.0])
    with forward.dual_level():
        tangent = forward.unpack_dual(forward.make_dual(x, along) * 2).tangent
    pair = L.func.jvp(lambda v: v * 2, (x,), (along,))
    return tangent.tolist(), tangent.dtype.itemsize, [t.tolist() for t in pair], pair[1].dtype.itemsize


def padding_with_no_value(L: Any) -> Any:
    pad, x = L.nn.functional.pad, L.arange(3.0).reshape(1, 1, 3)
    with pytest.raises(RuntimeError):
        pad(x, (1, 1), mode="reflect", value=1.0)
    return [pad(x, (1, 1), mode=mode, value=0).tolist() for mode in ("reflect", "replicate", "circular")]


def arrays_without_grad_mode(L: Any) -> Any:
    x = L.arange(4.0).requires_grad_()
    middle = x * 2
    with pytest.raises(RuntimeError):
        x.view(-1).numpy()
    with L.no_grad():
        return [
            np.asarray(t).tolist() for t in (x, middle, x.view(-1), middle.view(2, 2))
        ], x.numpy().tolist()


def einsum_by_lists(L: Any) -> Any:
    a, b = L.arange(6.0).reshape(2, 3), L.arange(12.0).reshape(3, 4)
    with pytest.raises(ValueError):
        L.einsum(a, [52, 0])
    calls = [
        (a, [0, 1], b, [1, 30], [30, 0]),
        (a, [0, 1], b, [1, 2]),
        (a, [..., 1], [1]),
        (a, [27, 1]),
        (a, [51, 25]),
    ]
    return [L.einsum(*call).tolist() for call in calls]


def rows_of_one_weight(L: Any) -> Any:
    """Under vmap the gradient of weights that are one row of memory is each example's own."""
    weights = L.tensor([0.5, 2.0, -1.0]).expand(4, 3).detach().requires_grad_()
    x = L.arange(48.0).reshape(4, 1, 3, 4)
    y = L.vmap(lambda row, w: (row * w.reshape(1, 3, 1), row * w.view(3, 1)))(x, weights)
    (y[0].square().sum() + y[1].sum()).backward()
    return weights.grad.tolist(), weights.grad.stride()


def a_timer_of_indented_lines(L: Any) -> Any:
    timer = importlib.import_module(f"{L.__name__}.utils.benchmark") if L is torch else L.utils.benchmark
    return timer.Timer("\n  y = x + 1\n  y + 1\n", "\n      x = 1\n      z = 2\n").timeit(2).number_per_run


def a_function_before_its_module(L: Any) -> Any:
    return type(L.autograd.gradcheck).__name__, L.autograd.gradcheck.__name__


def an_attribute_that_is_not_there(L: Any) -> Any:
    with pytest.raises(AttributeError) as error:
        _ = L.nn.Linear(1, 1).nothing
    return str(error.value)


class Hooked(torch.nn.Module):
    """Replaced below by the same class of either library."""


def _hooked(L: Any) -> type:
    class Hooked(L.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.loads = 0
            self.weight = L.nn.Parameter(L.ones(1))
            self._register_load_state_dict_pre_hook(self.count)

        def count(self, *args: Any) -> None:
            self.loads += len(args)

    Hooked.__qualname__ = "Hooked"
    return Hooked


def copies_with_a_hook_of_their_own(L: Any) -> Any:
    globals()["Hooked"] = _hooked(L)
    first = Hooked()
    twins = [copy.deepcopy(first), pickle.loads(pickle.dumps(first))]
    for twin in twins:
        twin.load_state_dict(first.state_dict())
    return first.loads, [twin.loads for twin in twins]


def methods_added_to_the_class(L: Any) -> Any:
    """Tensor takes new methods, and wrappers of those that it has, operators among them."""
    T = L.Tensor
    before = {name: getattr(T, name) for name in ("mean", "__add__", "__len__", "__getitem__", "__repr__")}
    x, found = L.tensor([1.0, 2.0]), []
    T.twice, T.area = lambda t: t * 2, property(lambda t: t.numel())
    try:
        T.mean = lambda t: "mean of " + str(before["mean"](t).item())
        T.__add__ = lambda a, b: ("sum", before["__add__"](a, b).tolist())
        T.__len__, T.__repr__ = lambda t: 7, lambda t: "R" + before["__repr__"](t)
        T.__getitem__ = lambda t, i: before["__getitem__"](t, i).item()
        found += [x.twice().tolist(), L.nn.Parameter(x).area, x.mean(), x + 1, len(x), x[1], repr(x)]
    finally:
        for name, method in before.items():
            setattr(T, name, method)
        del T.twice, T.area
    return [*found, hasattr(x, "twice"), x.mean().item(), (x + 1).tolist(), len(x), x[1].item(), repr(x)]


PROGRAMS = [
    divergence_of_any_class,
    tensor_of_numpy_scalars,
    data_of_a_view,
    gradient_of_an_expanded_leaf,
    autocast_to_another_dtype,
    directions_of_another_dtype,
    padding_with_no_value,
    arrays_without_grad_mode,
    einsum_by_lists,
    rows_of_one_weight,
    a_timer_of_indented_lines,
    a_function_before_its_module,
    an_attribute_that_is_not_there,
    copies_with_a_hook_of_their_own,
    methods_added_to_the_class,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program: Callable[[Any], Any]) -> None:
    assert program(SHIM) == program(torch)
