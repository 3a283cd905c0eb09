"""Draws by rejection beside torch's: the same numbers for a seed, and the generator in the same state
after them, so that what is drawn next agrees too. Then distributions made of them, and the
gradients of their rsample()."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mica

DTYPES = ["float64", "float32", "float16", "bfloat16"]
# Operators on parameters that reach every branch; t makes a tensor of the dtype.
DRAWS = {
    "gamma": "L._standard_gamma(t([0.0, 0.01, 0.3, 0.999, 1.0, 1.5, 8.0, 50.0, 1e4]).repeat(7, 3), g)",
    "gamma 0-d": "L._standard_gamma(t(0.7), generator=g)",
    "gamma strided": "L._standard_gamma(t([[0.2, 3.0], [7.0, 0.9], [1.0, 2.0]]).T.expand(4, 2, 3)[:, :, 1:], g)",
    "poisson": "L.poisson(t([0.0, 0.3, 3.0, 9.9, 10.0, 25.0, 1e3, 3e4]).repeat(7, 3), generator=g)",
    "poisson strided": "L.poisson(t([[0.5, 40.0], [9.0, 12.0]]).T.expand(5, 2, 2), generator=g)",
    "binomial": "L.binomial(t([0.0, 1.0, 5.0, 30.0, 400.0, 1e4, 20.0, 50.0]).repeat(7, 3),"
    " t([0.5, 0.3, 1.0, 0.0, 0.7, 0.001, 0.9, 0.2]).repeat(7, 3), generator=g)",
    "binomial broadcast": "L.binomial(t([[40.0], [7.5], [60.0]]).expand(3, 4), t([0.5, 0.1, 0.8, 0.3]), g)",
    "dirichlet": "L._sample_dirichlet(t([[0.01, 3.0, 2.5], [1e-3, 1e-2, 0.2], [4.0, 50.0, 8.0]]).repeat(9, 1), g)",
    "dirichlet strided": "L._sample_dirichlet(t([[0.3, 3.0], [2.5, 1.0]]).T.expand(6, 2, 2), generator=g)",
}
HALF_TOO = ("poisson", "poisson strided")  # the others raise in torch
# Families whose draws are made of these, with parameters of two dtypes.
FAMILIES = {
    "Gamma": "t([0.5, 3.0, 20.0]), t([1.0, 2.0, 0.1])",
    "InverseGamma": "t([2.5, 3.0]), t([1.0, 2.0])",
    "Chi2": "t([0.7, 1.5, 30.0])",
    "Beta": "t([0.5, 3.0, 9.0]), t([1.5, 0.2, 12.0])",
    "Dirichlet": "t([[0.5, 3.0, 2.0], [9.0, 0.1, 4.0]])",
    "StudentT": "t([0.8, 5.0]), t([0.5, -1.0]), t([1.0, 2.0])",
    "FisherSnedecor": "t([3.0, 6.0]), t([5.0, 9.0])",
    "LKJCholesky": "3, t([1.5, 0.5])",
    "Poisson": "t([[0.3], [12.0]])",
    "Binomial": "t([5.0, 100.0]), t([0.3, 0.8])",
    "NegativeBinomial": "t([5.0, 2.0]), t([0.3, 0.8])",
    "Multinomial": "9, t([0.3, 0.7, 1.0])",
    "VonMises": "t([0.5, -1.0]), t([1.0, 4.0])",
    "Wishart": "t([4.0, 3.0]), t([[2.0, 0.3], [0.3, 1.0]])",
}
REPARAMETERISED = ["Gamma", "InverseGamma", "Chi2", "Beta", "Dirichlet", "StudentT", "FisherSnedecor"]
EXACT = {"float64": 1e-13, "float32": 5e-7}


def _scope(L: Any, dtype: str) -> dict[str, Any]:
    return {"L": L, "t": lambda v: L.tensor(v, dtype=getattr(L, dtype))}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DRAWS)
def test_numbers_and_state_are_torchs(name: str, dtype: str) -> None:
    if dtype in ("float16", "bfloat16") and name not in HALF_TOO:
        pytest.skip("torch draws these in float32 and float64 alone")
    for seed in range(8):
        found = []
        for L in (mica, torch):
            g = L.Generator().manual_seed(seed)
            L.randn(3, generator=g)  # leaves the second of a pair in the state
            drawn = eval(DRAWS[name], {**_scope(L, dtype), "g": g})
            found.append((drawn.double().numpy(), drawn.stride(), g.get_state().numpy().tobytes()))
        np.testing.assert_array_equal(found[0][0], found[1][0], err_msg=f"seed {seed}")
        assert found[0][1] == found[1][1]
        assert found[0][2] == found[1][2], f"state after seed {seed}"


@pytest.mark.filterwarnings("ignore:Singular sample")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FAMILIES)
def test_samples_of_families_are_torchs(name: str, dtype: str) -> None:
    for seed in (0, 11):
        found = []
        for L in (mica, torch):
            L.manual_seed(seed)
            family = eval(f"L.distributions.{name}({FAMILIES[name]})", _scope(L, dtype))
            found.append((family.sample((4, 2)), family.sample(), L.rand(3)))
        for ours, theirs in zip(*found):
            assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=EXACT[dtype], atol=EXACT[dtype])


@pytest.mark.parametrize("name", REPARAMETERISED)
def test_gradients_of_rsample_are_torchs(name: str) -> None:
    found = []
    for L in (mica, torch):
        L.manual_seed(5)
        parameters: list[Any] = []

        def t(v: Any, L: Any = L, parameters: list[Any] = parameters) -> Any:
            parameters.append(L.tensor(v, dtype=L.float64, requires_grad=True))
            return parameters[-1]

        drawn = eval(f"L.distributions.{name}({FAMILIES[name]})", {"L": L, "t": t}).rsample((50,))
        (drawn * L.linspace(0.5, 2.0, drawn.numel(), dtype=L.float64).reshape(drawn.shape)).sum().backward()
        found.append([p.grad.numpy() for p in parameters])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_gradients_of_wishart_draws_come() -> None:
    """torch's own rsample() writes into a mask that its backward needs, and raises."""
    df = mica.tensor([4.0, 3.0], requires_grad=True)
    mica.distributions.Wishart(df, mica.eye(2)).rsample((3,)).sum().backward()
    assert (df.grad != 0).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients_of_draws_in_every_region(dtype: str) -> None:
    """torch's float32 gradients of Dirichlet draws carry its rounding, up to 6e-3: float64's are the measure."""
    rng = np.random.default_rng(0)
    shape = np.exp(rng.uniform(-6, 7, 2000)).astype(dtype)
    a, b = (np.exp(rng.uniform(-4, 6, 2000)).astype(dtype) for _ in range(2))
    share = rng.beta(a, b).astype(dtype).clip(1e-30, 1 - 1e-6).astype(dtype)
    for name, arguments in {
        "_standard_gamma_grad": (shape, (rng.gamma(shape) + 1e-30).astype(dtype)),
        "_dirichlet_grad": (share, a, a + b),
    }.items():
        ours = getattr(mica, name)(*map(mica.tensor, arguments))
        theirs = getattr(torch, name)(*(torch.tensor(v).double() for v in arguments))
        assert str(ours.dtype) == f"mica.{dtype}"
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=EXACT[dtype] * 10)


REFUSED = [
    "L.poisson(t([1.0, -1.0]))",
    "L.poisson(t([float('nan')]))",
    "L.poisson(L.ones(2, dtype=L.int64))",
    "L._standard_gamma(L.ones(2, dtype=L.int64))",
    "L._sample_dirichlet(L.ones(2, dtype=L.int64))",
    "L.binomial(L.ones(2, dtype=L.int64), t([0.5, 0.5]))",
    "L.binomial(t([1.0]), L.ones(1, dtype=L.complex64))",
    "L.binomial(t([1.0]), L.ones(1))",
    "L.binomial(t([1.0, 2.0]), t([0.5, 0.5, 0.5]))",
    "L.binomial(t(5.0).requires_grad_(), t(0.5)).backward()",
    "L._standard_gamma_grad(t(5.0).requires_grad_(), t(0.5)).backward()",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_torch_refuses_is_refused(text: str) -> None:
    kinds = []
    for L in (mica, torch):
        with pytest.raises(Exception) as e:
            eval(text, _scope(L, "float64"))
        kinds.append(e.type)
    assert issubclass(kinds[0], kinds[1]) or issubclass(kinds[1], kinds[0])


def test_parameters_that_are_no_numbers_come_back() -> None:
    """Where torch loops for ever or gives an integer's least value."""
    nan, inf = float("nan"), float("inf")
    assert mica.poisson(mica.tensor([inf])).tolist() == [inf]
    assert np.isnan(mica.binomial(mica.tensor([nan, 5.0]), mica.tensor([0.5, nan])).numpy()).all()
    assert mica.binomial(mica.tensor([inf]), mica.tensor([0.5])).tolist() == [inf]
    assert np.isnan(mica._standard_gamma(mica.tensor([nan])).numpy()).all()


def test_vmap_and_forward_mode() -> None:
    rates = mica.tensor([[0.5, 20.0], [3.0, 100.0], [0.0, 7.0]])
    for draw in (mica.poisson, mica._standard_gamma, mica._sample_dirichlet):
        whole = draw(rates.clone(), generator=mica.Generator().manual_seed(3))
        g = mica.Generator().manual_seed(3)
        rows = mica.vmap(lambda r: draw(r, generator=g), randomness="different")(rates)  # noqa: B023
        assert rows.tolist() == whole.tolist()
        with pytest.raises(RuntimeError, match="randomness"):
            mica.vmap(draw)(rates)
    shape = mica.tensor([0.5, 3.0], dtype=mica.float64)
    mica.manual_seed(0)
    drawn, tangent = mica.func.jvp(mica._standard_gamma, (shape,), (mica.ones_like(shape),))
    assert tangent.tolist() == mica._standard_gamma_grad(shape, drawn).tolist()
