"""mica.masked, mica.signal.windows, mica._functions.foreach and mica._functions.variadic against torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import mica

DTYPES = ["float32", "float64", "int64", "int32"]
_RNG = np.random.default_rng(3)


def _data(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    values = _RNG.uniform(-3, 3, shape)
    return values.astype(dtype)


def _same(got: Any, expected: Any, where: str = "") -> None:
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected), where
        for g, e in zip(got, expected):
            _same(g, e, where)
        return
    assert str(got.dtype).removeprefix("mica.") == str(expected.dtype).removeprefix("torch."), where
    assert tuple(got.shape) == tuple(expected.shape), where
    tolerance = 1e-5 if got.dtype is mica.float32 else 1e-12
    left, right = got.detach().numpy(), expected.detach().numpy()
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance, err_msg=where)


def _attempt(function: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    try:
        return function(*args, **kwargs), None
    except Exception as error:  # noqa: BLE001  (both libraries' errors are compared)
        return None, type(error)


REDUCTIONS: dict[str, list[dict[str, Any]]] = {
    "sum": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}, {"dim": -1, "dtype": "float64"}],
    "prod": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}],
    "amax": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}],
    "amin": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}],
    "argmax": [{}, {"dim": 1}, {"dim": 2, "keepdim": True}],
    "argmin": [{}, {"dim": 1}, {"dim": 2, "keepdim": True}],
    "mean": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}],
    "median": [{}, {"dim": 1}, {"dim": 2, "keepdim": True}],
    "logsumexp": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}],
    "norm": [{}, {"ord": 1, "dim": 1}, {"ord": math.inf, "dim": (0, 2)}, {"ord": -math.inf, "dim": 0}],
    "var": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True, "unbiased": False}, {"correction": 2}],
    "std": [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True, "unbiased": False}],
    "cumsum": [{"dim": 1}, {"dim": -1}],
    "cumprod": [{"dim": 1}, {"dim": -1}],
    "softmax": [{"dim": 1}, {"dim": -1}],
    "log_softmax": [{"dim": 1}],
    "softmin": [{"dim": 1}],
    "normalize": [{"ord": 2.0, "dim": 1}, {"ord": 1.0, "dim": -1}],
}


def _options(library: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    return {k: getattr(library, v) if k == "dtype" else v for k, v in kwargs.items()}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_masked(name: str, dtype: str) -> None:
    data = _data((3, 4, 2), dtype)
    masks = [None, _RNG.random((3, 4, 2)) < 0.6, _RNG.random((4, 1)) < 0.6]
    for kwargs in REDUCTIONS[name]:
        for mask in masks:
            expected, error = _attempt(
                getattr(torch.masked, name),
                torch.from_numpy(data),
                mask=None if mask is None else torch.from_numpy(mask),
                **_options(torch, kwargs),
            )
            got, own = _attempt(
                getattr(mica.masked, name),
                mica.tensor(data),
                mask=None if mask is None else mica.tensor(mask),
                **_options(mica, kwargs),
            )
            where = f"{kwargs} mask {None if mask is None else mask.shape}: {own} {error}"
            assert (own is None) == (error is None), where
            if error is None:
                _same(got, expected, where)


def test_masked_logaddexp() -> None:
    a, b = _data((3, 4), "float64"), _data((3, 4), "float64")
    mask = _RNG.random((3, 4)) < 0.5
    expected = torch.masked.logaddexp(
        torch.from_numpy(a), torch.from_numpy(b), input_mask=torch.from_numpy(mask)
    )
    _same(mica.masked.logaddexp(mica.tensor(a), mica.tensor(b), input_mask=mica.tensor(mask)), expected)


def test_masked_gradient() -> None:
    data, mask = _data((3, 4), "float64"), _RNG.random((3, 4)) < 0.6
    for name in ("sum", "mean", "softmax", "amax", "var", "normalize"):
        kwargs: dict[str, Any] = {"dim": 1} | ({"ord": 2.0} if name == "normalize" else {})
        x = torch.from_numpy(data).requires_grad_()
        y = mica.tensor(data).requires_grad_()
        (getattr(torch.masked, name)(x, mask=torch.from_numpy(mask), **kwargs) ** 2).nansum().backward()
        (getattr(mica.masked, name)(y, mask=mica.tensor(mask), **kwargs) ** 2).nansum().backward()
        _same(y.grad, x.grad, name)


WINDOWS: dict[str, list[dict[str, Any]]] = {
    "bartlett": [{}],
    "blackman": [{}],
    "cosine": [{}],
    "exponential": [{}, {"tau": 2.5}],
    "gaussian": [{}, {"std": 2.5}],
    "general_cosine": [{"a": [0.5, 0.3, 0.2]}],
    "general_hamming": [{}, {"alpha": 0.6}],
    "hamming": [{}],
    "hann": [{}],
    "kaiser": [{}, {"beta": 3.0}, {"beta": 0.0}],
    "nuttall": [{}],
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str) -> None:
    ours, theirs = getattr(mica.signal.windows, name), getattr(torch.signal.windows, name)
    for kwargs in WINDOWS[name]:
        for length in (0, 1, 2, 7, 12):
            for sym in (True, False):
                for dtype in ("float32", "float64"):
                    _same(
                        ours(length, sym=sym, dtype=getattr(mica, dtype), **kwargs),
                        theirs(length, sym=sym, dtype=getattr(torch, dtype), **kwargs),
                        f"{length} {sym} {dtype} {kwargs}",
                    )
        with pytest.raises(ValueError, match="negative"):
            ours(-1, **kwargs)
        with pytest.raises(ValueError, match="float32 or float64"):
            ours(5, dtype=mica.float16, **kwargs)


GRADIENTS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((6,), {}),
    ((4, 5), {}),
    ((4, 5), {"spacing": 0.5}),
    ((4, 5), {"dim": 1, "edge_order": 2}),
    ((4, 5), {"dim": (0, 1), "spacing": [2.0, 0.5], "edge_order": 2}),
    ((4, 5), {"dim": -1, "spacing": "places"}),
    ((4, 5), {"dim": 1, "spacing": "places", "edge_order": 2}),
]


@pytest.mark.parametrize(("shape", "kwargs"), GRADIENTS)
def test_gradient(shape: tuple[int, ...], kwargs: dict[str, Any]) -> None:
    data = _data(shape, "float64")
    places = np.cumsum(_RNG.uniform(0.5, 2, shape[-1]))
    there, here = dict(kwargs), dict(kwargs)
    if kwargs.get("spacing") == "places":
        there["spacing"], here["spacing"] = (torch.from_numpy(places),), (mica.tensor(places),)
    _same(mica.gradient(mica.tensor(data), **here), torch.gradient(torch.from_numpy(data), **there))


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("bins", [3, [2, 4], "edges"])
def test_histogramdd(bins: Any, density: bool) -> None:
    data, weight = _data((50, 2), "float64"), _RNG.uniform(0, 1, 50)
    edges = [np.linspace(-3, 3, 5), np.array([-2.0, 0.0, 0.5, 2.5])]
    own = [mica.tensor(e) for e in edges] if bins == "edges" else bins
    other = [torch.from_numpy(e) for e in edges] if bins == "edges" else bins
    for kwargs in ({}, {"range": [-1.0, 1.0, -2.0, 2.0]}) if bins != "edges" else ({},):
        got = mica.histogramdd(mica.tensor(data), own, weight=mica.tensor(weight), density=density, **kwargs)
        expected = torch.histogramdd(
            torch.from_numpy(data), other, weight=torch.from_numpy(weight), density=density, **kwargs
        )
        _same(got[0], expected[0])
        _same(got[1], list(expected[1]))


def test_unique_along_a_dimension() -> None:
    data = _RNG.integers(0, 3, (9, 2))
    for dim in (0, 1):
        ours = mica.unique(mica.tensor(data), return_inverse=True, return_counts=True, dim=dim)
        theirs = torch.unique(torch.from_numpy(data), return_inverse=True, return_counts=True, dim=dim)
        _same(ours, theirs)
    _same(mica.tensor(data).unique_consecutive(), torch.from_numpy(data).unique_consecutive())
    ours = mica.unique_consecutive(mica.tensor(data), return_counts=True, dim=0)
    _same(ours, torch.unique_consecutive(torch.from_numpy(data), return_counts=True, dim=0))


def test_unravel_index_and_atleast() -> None:
    places = _RNG.integers(0, 24, (3, 4))
    _same(
        mica.unravel_index(mica.tensor(places), (2, 3, 4)),
        torch.unravel_index(torch.from_numpy(places), (2, 3, 4)),
    )
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        for shape in ((), (3,), (2, 3), (2, 3, 4)):
            x = _data(shape, "float32")
            _same(getattr(mica, name)(mica.tensor(x)), getattr(torch, name)(torch.from_numpy(np.array(x))))
        two = getattr(mica, name)(mica.tensor(1.0), mica.tensor([2.0]))
        _same(two, getattr(torch, name)(torch.tensor(1.0), torch.tensor([2.0])))


@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(wrap: bool) -> None:
    for shape in ((3, 4), (7, 3), (3, 3, 3), (4, 3), (2, 2)):
        x = _data(shape, "float64")
        _same(mica.tensor(x).fill_diagonal_(5, wrap), torch.from_numpy(x).clone().fill_diagonal_(5, wrap))
        if len(shape) == 2:
            got, expected = mica.tensor(x).t(), torch.from_numpy(x).clone().t()
            _same(got.fill_diagonal_(5), expected.fill_diagonal_(5))


NAMED_WINDOWS = ["bartlett", "blackman", "hamming", "hann", "kaiser"]


@pytest.mark.parametrize("name", NAMED_WINDOWS)
def test_windows_of_the_main_namespace(name: str) -> None:
    for length in (0, 1, 2, 9):
        for periodic in (True, False):
            for dtype in ("float32", "float64"):
                got = getattr(mica, f"{name}_window")(length, periodic, dtype=getattr(mica, dtype))
                expected = getattr(torch, f"{name}_window")(length, periodic, dtype=getattr(torch, dtype))
                _same(got, expected, f"{length} {periodic} {dtype}")
    with pytest.raises(RuntimeError, match="floating"):
        getattr(mica, f"{name}_window")(5, dtype=mica.int64)


FOREACH: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("sqrt", (), {}),
    ("neg", (), {}),
    ("add", (2.0,), {}),
    ("add", ("list",), {"alpha": 2}),
    ("mul", ([1.0, 2.0],), {}),
    ("div", ("list",), {}),
    ("lerp", ("list", 0.25), {}),
    ("maximum", ("list",), {}),
    ("clamp_min", (1.5,), {}),
    ("addcmul", ("list", "list"), {"value": 2}),
    ("addcdiv", ("list", "list", [1.0, 0.5]), {}),
    ("pow", (2,), {}),
]


@pytest.mark.parametrize(("name", "arguments", "options"), FOREACH)
def test_foreach(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    data = [np.abs(_data((3,), "float64")) + 0.5, np.abs(_data((2, 2), "float64")) + 0.5]
    ours = [mica.tensor(d) for d in data]
    theirs = [torch.from_numpy(d.copy()) for d in data]
    here = [ours if a == "list" else a for a in arguments]
    there = [theirs if a == "list" else a for a in arguments]
    expected = getattr(torch, f"_foreach_{name}")(theirs, *there, **options)
    _same(getattr(mica, f"_foreach_{name}")(ours, *here, **options), expected)
    written = [t.clone() for t in ours]
    assert getattr(mica, f"_foreach_{name}_")(written, *here, **options) is None
    _same(written, expected)


INPLACE_VIEWS: list[tuple[str, tuple[Any, ...]]] = [
    ("unsqueeze", (0,)),
    ("squeeze", ()),
    ("squeeze", (0,)),
    ("transpose", (0, 2)),
    ("swapaxes", (0, 1)),
    ("swapdims", (1, 2)),
    ("as_strided", ([2, 2], [1, 2])),
]


@pytest.mark.parametrize(("name", "arguments"), INPLACE_VIEWS)
def test_inplace_views(name: str, arguments: tuple[Any, ...]) -> None:
    data = _data((1, 3, 2), "float64")
    ours, theirs = mica.tensor(data), torch.from_numpy(data.copy())
    same = getattr(ours, f"{name}_")(*arguments)
    assert same is ours
    _same(ours, getattr(theirs, f"{name}_")(*arguments))
    assert tuple(ours.stride()) == tuple(theirs.stride())
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(mica.tensor(data).requires_grad_(), f"{name}_")(*arguments)


def test_refusals() -> None:
    with pytest.raises(NotImplementedError, match="complex32"):
        mica.ones(2).chalf()
    with pytest.raises(TypeError, match="unravel_index: expected 'indices' to be integer dtype"):
        mica.unravel_index(mica.ones(2), (2, 3))
    with pytest.raises(RuntimeError, match="edge_order"):
        mica.gradient(mica.ones(4), edge_order=3)
    with pytest.raises(NotImplementedError, match="derivative for zeta"):
        x = mica.tensor([2.0], requires_grad=True)
        mica.special.zeta(x, mica.tensor([1.5])).sum().backward()
    _same(mica.tensor([2.0, 4.0]).__rdiv__(1), torch.tensor([2.0, 4.0]).__rdiv__(1))
