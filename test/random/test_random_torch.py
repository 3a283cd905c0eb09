"""Random streams against torch, number for number: the same seed gives the same draws.

STREAMS is the data: what draws. Each runs after the
same seed, twice in a row, so that what one draw leaves in the generator counts.
On Intel torch draws scalar bernoulli, and so dropout, from MKL; there the shares
are compared instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from both import dtype_name, to_numpy

import mica

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64"]
BOTH = [*INTEGERS, *FLOATS]
SIZES = [(0,), (1,), (7,), (15,), (16,), (17,), (40,), (3, 5), (4, 10)]


def _dtype(library: Any, name: str) -> Any:
    return getattr(library, name)


def _transposed(library: Any, shape: tuple[int, ...], dtype: str) -> Any:
    return library.empty(tuple(reversed(shape)), dtype=_dtype(library, dtype)).permute(
        *reversed(range(len(shape)))
    )


def _filled(name: str, *args: Any) -> dict[str, Callable[..., Any]]:
    """An in-place fill of contiguous, transposed and strided memory."""

    def contiguous(L: Any, shape: Any, dtype: str) -> Any:
        return getattr(L.zeros(shape, dtype=_dtype(L, dtype)), name)(*args)

    def transposed(L: Any, shape: Any, dtype: str) -> Any:
        return getattr(_transposed(L, shape, dtype), name)(*args)

    def strided(L: Any, shape: Any, dtype: str) -> Any:
        return getattr(L.zeros((*shape, 2), dtype=_dtype(L, dtype))[..., 1], name)(*args)

    return {f"{name} {args} {f.__name__}": f for f in (contiguous, transposed, strided)}


# Draws of a shape and a dtype; the dtypes that they have.
SHAPED: list[tuple[dict[str, Callable[..., Any]], list[str]]] = [
    ({"rand": lambda L, s, d: L.rand(s, dtype=_dtype(L, d))}, [*FLOATS, "complex64", "complex128"]),
    ({"randn": lambda L, s, d: L.randn(s, dtype=_dtype(L, d))}, [*FLOATS, "complex64", "complex128"]),
    ({"rand_like": lambda L, s, d: L.rand_like(_transposed(L, s, d))}, FLOATS),
    ({"randn_like": lambda L, s, d: L.randn_like(_transposed(L, s, d))}, FLOATS),
    ({"randint": lambda L, s, d: L.randint(2, s, dtype=_dtype(L, d))}, BOTH),
    ({"randint of two": lambda L, s, d: L.randint(1, 100, s, dtype=_dtype(L, d))}, BOTH[1:]),
    ({"randint wide": lambda L, s, d: L.randint(-(2**40), 2**40, s)}, ["int64"]),
    ({"randint_like": lambda L, s, d: L.randint_like(_transposed(L, s, d), 5)}, BOTH[1:]),
    ({"bernoulli of p": lambda L, s, d: L.bernoulli(L.full(s, 0.3, dtype=_dtype(L, d)))}, FLOATS),
    ({"normal": lambda L, s, d: L.normal(1.0, 2.0, s, dtype=_dtype(L, d))}, ["float32", "float64"]),
    (_filled("uniform_", -3, 4), FLOATS),
    (_filled("normal_", 1, 2), FLOATS),
    (_filled("random_"), BOTH),
    (_filled("random_", 3, 50), BOTH[1:]),
    (_filled("exponential_", 2.0), FLOATS),
    (_filled("cauchy_", 1.0, 3.0), FLOATS),
    (_filled("log_normal_", 0.5, 0.25), FLOATS),
    (_filled("geometric_", 0.3), BOTH[1:]),
]
STREAMS = {
    f"{name} {dtype}": (f, dtype) for draws, dtypes in SHAPED for name, f in draws.items() for dtype in dtypes
}
# Float32 normals are torch's AVX2 ones; its other builds take the C library's logarithm: 2 ULP.
ULPS = () if torch.backends.cpu.get_cpu_capability() == "AVX2" else ("randn", "normal")


def _values(library: Any, f: Callable[..., Any], *args: Any) -> np.ndarray:
    library.manual_seed(42)
    first, second = f(library, *args), f(library, *args)
    assert dtype_name(first.dtype) == dtype_name(second.dtype)
    return np.stack([to_numpy(library, first), to_numpy(library, second)])


@pytest.mark.parametrize("name", STREAMS)
def test_stream(name: str) -> None:
    f, dtype = STREAMS[name]
    found = []
    for shape in SIZES:
        ours, theirs = _values(mica, f, shape, dtype), _values(torch, f, shape, dtype)
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        if name.startswith(ULPS) and dtype in ("float32", "complex64"):
            off = np.abs(ours - theirs) > 2 * np.spacing(np.abs(theirs)) + 2 * np.spacing(np.float32(1))
        elif name.startswith("cauchy_") and dtype == "float64":  # torch's tangent is another library's
            off = np.abs(ours - theirs) > 2 * np.spacing(np.abs(theirs))
        else:
            off = ours != theirs
        if off.any():
            found.append(f"{shape}: {ours[off][0]!r}, torch {theirs[off][0]!r} ({off.sum()} of {off.size})")
    assert not found, "\n".join(found)


def _turned(library: Any, value: float) -> Any:
    """Numbers in the order of channels_last: torch's results are contiguous for some draws."""
    x = library.full((7, 6, 10, 5), value, dtype=library.float64)
    return x.contiguous(memory_format=library.channels_last)


WHOLE: dict[str, Callable[[Any], Any]] = {
    "randperm": lambda L: L.randperm(1000),
    "randperm int32": lambda L: L.randperm(17, dtype=L.int32),
    "multinomial with replacement": lambda L: L.multinomial(L.tensor([0.1, 0.2, 0.3, 0.4]), 50, True),
    "multinomial without": lambda L: L.multinomial(L.tensor([[0.1, 0.2, 0.3, 0.4], [1.0, 0.0, 2.0, 3.0]]), 3),
    "multinomial of one": lambda L: L.multinomial(L.tensor([[0.1, 0.9], [0.5, 0.5]]).double(), 1, True),
    "normal of tensors": lambda L: L.normal(L.arange(0, 20.0).double(), L.arange(1, 21.0).double()),
    "normal of mean": lambda L: L.normal(L.arange(0, 20.0).double(), 2.0),
    "normal of std": lambda L: L.normal(1.5, L.arange(1, 21.0).double()),
    "normal of strided mean": lambda L: L.normal(_turned(L, 1.0), 2.0),
    "normal of strided std": lambda L: L.normal(1.5, _turned(L, 1.0)),
    "bernoulli of strided p": lambda L: L.bernoulli(_turned(L, 0.3)),
    "bernoulli of p by element": lambda L: L.zeros(100).bernoulli_(L.linspace(0, 1, 100).double()),
    "mixed": lambda L: L.cat([L.rand(3).double(), L.randn(5, dtype=L.float64), L.randn(17, dtype=L.float64)]),
    "initialised": lambda L: L.nn.init.kaiming_uniform_(L.empty(6, 5)),
    "module": lambda L: L.nn.Linear(7, 3).weight.detach(),
}


if not ULPS:
    WHOLE |= {
        "randn": lambda L: L.randn(100_003),
        "randn float16": lambda L: L.randn(100_003, dtype=L.float16),
        "normal_": lambda L: L.empty(4099).normal_(0.5, 2.3),
    }


@pytest.mark.parametrize("name", WHOLE)
def test_whole(name: str) -> None:
    np.testing.assert_array_equal(_values(mica, WHOLE[name]), _values(torch, WHOLE[name]))


SCALAR: dict[str, Callable[[Any], Any]] = {
    "bernoulli_": lambda L: L.zeros(2000).bernoulli_(0.3),
    "bernoulli.p": lambda L: L.bernoulli(L.zeros(2000), 0.3),
    "bernoulli.p strided": lambda L: L.bernoulli(_turned(L, 0.0), 0.3),
    "dropout channels_last": lambda L: L.nn.functional.dropout(_turned(L, 1.0), 0.3),
    "dropout": lambda L: L.nn.functional.dropout(L.ones(2000), 0.3),
    "feature_dropout": lambda L: L.nn.functional.dropout2d(L.ones(500, 4, 2, 1), 0.3),
    "native_dropout": lambda L: L.native_dropout(L.ones(2000), 0.3, True)[0],
}


@pytest.mark.parametrize("name", SCALAR)
def test_scalar_probability(name: str) -> None:
    ours, theirs = _values(mica, SCALAR[name]), _values(torch, SCALAR[name])
    assert np.array_equal(np.unique(ours), np.unique(theirs))
    if torch.backends.mkl.is_available() and not np.array_equal(ours, theirs):
        share = (ours != 0).mean()
        assert abs(share - (theirs != 0).mean()) < 0.05
        assert abs(share - (0.3 if name.startswith("bernoulli") else 0.7)) < 0.04
    else:
        np.testing.assert_array_equal(ours, theirs)


def test_generator_state() -> None:
    """A state taken goes back, into another generator, and between both libraries."""
    g, t = mica.Generator(), torch.Generator()
    assert g.manual_seed(5).initial_seed() == t.manual_seed(5).initial_seed() == 5
    mica.rand(3, generator=g), torch.rand(3, generator=t)
    mica.randn(3, generator=g), torch.randn(3, generator=t)  # leaves the second of a pair behind
    state = g.get_state()
    assert state.tolist() == t.get_state().tolist()
    first = mica.randn(5, generator=g).tolist()
    g.set_state(state)
    assert mica.randn(5, generator=g).tolist() == first
    other = mica.Generator()
    other.set_state(mica.from_numpy(t.get_state().numpy()))
    assert mica.randn(5, generator=other).tolist() == first
    twin = other.clone_state()
    assert mica.rand(4, generator=twin).tolist() == mica.rand(4, generator=other).tolist()


def test_default_generator_state() -> None:
    mica.manual_seed(9)
    state = mica.get_rng_state()
    drawn = mica.rand(4).tolist()
    with mica.random.fork_rng():
        mica.manual_seed(1)
        mica.rand(100)
    after = mica.rand(4).tolist()
    mica.set_rng_state(state)
    assert mica.rand(4).tolist() == drawn and mica.rand(4).tolist() == after
    torch.manual_seed(9)
    assert torch.rand(4).tolist() == drawn
    assert mica.initial_seed() == 9


# The overloads that take a generator of one's own.
GIVEN: dict[str, Callable[[Any, Any], Any]] = {
    "rand": lambda L, g: L.rand(9, generator=g),
    "randn": lambda L, g: L.randn(9, generator=g, dtype=L.float64),
    "randint": lambda L, g: L.randint(9, (9,), generator=g),
    "randint of two": lambda L, g: L.randint(-9, 9, (9,), generator=g),
    "randperm": lambda L, g: L.randperm(9, generator=g),
    "bernoulli": lambda L, g: L.bernoulli(L.full((9,), 0.5), generator=g),
    "multinomial": lambda L, g: L.multinomial(L.ones(9), 4, generator=g),
    "normal": lambda L, g: L.normal(L.zeros(9).double(), 2.0, generator=g),
    "uniform_": lambda L, g: L.zeros(9).uniform_(generator=g),
    "normal_": lambda L, g: L.zeros(9, dtype=L.float64).normal_(generator=g),
    "random_": lambda L, g: L.zeros(9).random_(0, 9, generator=g),
    "exponential_": lambda L, g: L.zeros(9).exponential_(generator=g),
}


@pytest.mark.parametrize("name", GIVEN)
def test_given_generator(name: str) -> None:
    values = []
    for library in (mica, torch):
        library.manual_seed(0)
        before = library.get_rng_state().tolist()
        g = library.Generator().manual_seed(11)
        values.append(to_numpy(library, GIVEN[name](library, g)))
        assert library.get_rng_state().tolist() == before  # the default generator is not touched
    np.testing.assert_array_equal(*values)
