"""gradcheck and gradgradcheck of every differentiable operator, from the data of mica.conformance.

Each overload runs on all its samples in float64 (two layouts) and complex128, its
in-place form too. An overload whose floating results of floating inputs never require grad must say
`differentiable: false` or be excepted; one that says so and is differentiable fails (results may
require grad where backward refuses).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from every_operator import INPLACE, SAMPLED, each, judge

import mica
from mica.autograd import gradcheck, gradgradcheck
from mica.conformance.batches import Sample, tensors_of
from mica.conformance.operators import ENTRIES, Entry, attempt

VARIANTS = [("float64", "contiguous"), ("float64", "transposed"), ("complex128", "contiguous")]
# Up to this many numbers, every entry of the Jacobian is compared; random directions beyond.
SMALL = 40

# Fills, whose samples would be random: their history is cut (test_random_fills).
FILLS: dict[str, Any] = {
    "uniform_": lambda x: x.uniform_(),
    "normal_": lambda x: x.normal_(),
    "bernoulli_.float": lambda x: x.bernoulli_(0.5),
    "bernoulli_.Tensor": lambda x: x.bernoulli_(mica.full((3,), 0.5, dtype=mica.float64)),
    "random_.from": lambda x: x.random_(0, 5),
    "random_.to": lambda x: x.random_(5),
    "random_": lambda x: x.random_(),
    "exponential": lambda x: x.exponential_(),
    "cauchy": lambda x: x.cauchy_(),
    "log_normal": lambda x: x.log_normal_(),
    "geometric": lambda x: x.geometric_(0.5),
}

# Formulas that no sample of this test runs, and the tests that do.
MET_ELSEWHERE: dict[str, str] = {
    "native_dropout": "test/gpu/test_simt_dropout.py, on the CPU too: its samples would be random",
    "_recurrent_layer": "test/nn/test_nn_torch.py: through LSTM, GRU and RNN",
    "_ctc_loss": "test/nn/test_nn_torch.py: through ctc_loss, whose arguments must be logarithms of shares",
}
# Draws, whose samples would be random, and their gradients: test/random/test_random_streams_torch.py.
DRAWN = [
    "poisson",
    "normal.Tensor_float",
    "normal.float_Tensor",
    "normal.Tensor_Tensor",
    "binomial",
    "_standard_gamma",
    "_standard_gamma_grad",
    "_sample_dirichlet",
    "_dirichlet_grad",
]


def _run(sample: Sample) -> Any:
    """The results, or the exception. Inputs of a gradient check are moved between runs, in place."""
    result, error = attempt(sample, *sample.inputs) if sample.positional else ((), None)
    return error or tensors_of(result)


def _refuses(inputs: list[Any], outputs: list[Any]) -> bool:
    """Whether backward says that there is no gradient."""
    _, error = attempt(
        mica.autograd.grad, outputs, inputs, list(map(mica.ones_like, outputs)), allow_unused=True
    )
    return isinstance(error, NotImplementedError) and "derivative for" in str(error)


def _check(run: Any, inputs: list[Any]) -> str:
    """What is wrong with the first or the second gradients, or ""."""
    fast = sum(t.numel() * (2 if t.is_complex() else 1) for t in inputs) > SMALL
    for check in (gradcheck, gradgradcheck):
        _, error = attempt(check, run, inputs, fast_mode=fast)
        if error is not None:
            return f"{check.__name__}: {type(error).__name__}: {str(error).splitlines()[0]:.300}"
    return ""


def _run_all(entry: Entry, inplace: bool) -> list[str]:
    """What is wrong of an overload that is differentiable, or that says it is not and is."""
    found, possible, checked = [], 0, 0
    for number, call in enumerate(entry.calls()):
        errors = []
        for dtype, layout in VARIANTS:
            sample = Sample(entry, call, dtype, layout, inplace=inplace, grad=True)
            result = _run(sample)
            where = f"{dtype} {layout} call {number}"
            if isinstance(result, Exception):
                errors.append(f"{where}: {type(result).__name__}: {str(result).splitlines()[0]:.200}")
                continue
            floating = any(t.is_floating_point() or t.is_complex() for t in result)
            possible += bool(sample.inputs) and floating
            outputs = [t for t in result if t.requires_grad]
            if sample.inputs and outputs and (entry.differentiable or not _refuses(sample.inputs, outputs)):
                checked += 1
                if not entry.differentiable and not inplace:
                    found.append(f"{where}: it is differentiable, and native_functions.yaml says it is not")
                elif wrong := _check(lambda *x: tuple(tensors_of(sample(*x))), sample.inputs):  # noqa: B023
                    found.append(f"{where}: {wrong}")
        if len(errors) == len(VARIANTS) and not inplace and entry.differentiable:
            found += errors
    if possible and not checked and not inplace and entry.differentiable:
        found.append("no result requires grad")
    return found


@each("gradients", SAMPLED)
def test_gradients(name: str) -> None:
    judge("gradients", name, _run_all(ENTRIES[name], inplace=False))


@each("gradients in place", INPLACE)
def test_inplace_gradients(name: str) -> None:
    judge("gradients in place", name, _run_all(ENTRIES[name], inplace=True))


def _formulas() -> list[tuple[str, str]]:
    """The overloads that derivatives.yaml gives a formula, with what their grad_fn is called."""
    with open(Path(__file__).resolve().parents[2] / "derivatives.yaml") as file:
        derivatives = yaml.safe_load(file)["derivatives"]
    counts: Counter[str] = Counter()
    formulas = []
    for d in derivatives:
        stem = "".join(word.title() for word in d["op"].split(".")[0].split("_")) + "Backward"
        formulas.append((d["op"], d.get("node", f"{stem}{counts[stem]}")))
        counts[stem] += "node" not in d
    return formulas


def _names(outputs: Iterable[Any]) -> set[str]:
    """The nodes of the graphs that these tensors end."""
    seen: set[Any] = set()
    waiting = [t.grad_fn for t in outputs if t is not None and t.grad_fn is not None]
    names = set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            names.add(node.name())
            waiting.extend(n for n, _ in node.next_functions if n is not None)
    return names


def _met(entry: Entry, inplace: bool) -> set[str]:
    """The nodes of an overload's samples and of their gradients."""
    names = set()
    for call in entry.calls():
        for dtype in ("float64", "complex128"):
            sample = Sample(entry, call, dtype, inplace=inplace, grad=True)
            result = _run(sample)
            if isinstance(result, Exception):
                continue
            outputs = [t for t in result if t.requires_grad]
            if sample.inputs and not entry.differentiable:
                names |= _names(outputs)
            elif sample.inputs and outputs:
                seeds = [mica.ones_like(t).requires_grad_() for t in outputs]
                grads = mica.autograd.grad(
                    outputs, sample.inputs, seeds, create_graph=True, allow_unused=True
                )
                names |= _names([*outputs, *grads])
    return names


def test_every_formula_is_met() -> None:
    """Each formula of derivatives.yaml is run by a sample or by the gradient of one."""
    met: set[str] = set()
    for name in SAMPLED:
        met |= _met(ENTRIES[name], inplace=False)
    for name in INPLACE:
        met |= _met(ENTRIES[name], inplace=True)
    assert [overload for overload, node in _formulas() if node not in met] == [*MET_ELSEWHERE, *FILLS, *DRAWN]


@pytest.mark.parametrize("include_self", [True, False])
def test_products_beside_zeros(include_self: bool) -> None:
    """Both gradients of scatter_reduce where the factors of a result hold none, one or two zeros."""
    index = mica.tensor([0, 0, 1, 1, 1, 2, 2, 3])
    src = mica.tensor([1.5, 0.0, 0.0, 2.0, 0.0, 0.5, 3.0, 0.0], dtype=mica.float64, requires_grad=True)
    start = mica.tensor([2.0, 0.7, 0.0, 0.0, 0.0], dtype=mica.float64, requires_grad=True)

    def product(start: Any, src: Any) -> Any:
        return start.scatter_reduce(0, index, src, "prod", include_self=include_self)

    assert gradcheck(product, (start, src)) and gradgradcheck(product, (start, src))


@pytest.mark.parametrize("name", FILLS)
def test_random_fills(name: str) -> None:
    """What was there before a fill gets the gradient zero."""
    x = mica.ones(3, dtype=mica.float64, requires_grad=True)
    filled = FILLS[name](x * 2)
    assert filled.requires_grad
    (filled * 5).sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
