"""Operators that say `hot: true` against torch: special values, lengths around a vector's,
half types, layouts, and the result in the input's place; the steps of optimizers, which have
several results.

`x`, `y` and `z` hold every pair of SPECIAL numbers; a row of HOT is what is computed of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from both import to_numpy

import mica
from mica.optim import _steps

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.3, 2.9, -3.0, 3.0, 7.5, -7.5, float("inf"), -float("inf"), float("nan")]

HOT = """
F.hardswish(x)
F.hardsigmoid(x)
F.leaky_relu(x, 0.2)
F.threshold(x, 0.5, 20.0)
F.hardtanh(x, -2.0, 0.5)
F.relu6(x)
F.prelu(x, y[:1, :1].reshape(1) + 0.25)
F.huber_loss(x, y, reduction='none', delta=0.7)
F.smooth_l1_loss(x, y, reduction='none', beta=0.7)
x.clamp(-1, 2)
x.nan_to_num()
x.nan_to_num(1.0, 2.0, -3.0)
F.hardshrink(x, 0.4)
x.lerp(y, 0.3)
x.lerp(y, 0.8)
x.lerp(y, z)
M.addcmul(x, y, z, value=0.5)
M.addcdiv(x, y, z, value=2)
x.nan_to_num_()
x.lerp_(y, 0.75)
x.clamp_(-2, 1)
x.addcmul_(x, y)
""".strip().splitlines()

# How one library holds the numbers of `a`; the last repeats a column.
LAYOUTS = {
    "dense": lambda M, a: M.tensor(a),
    "short": lambda M, a: M.tensor(a[:1, :5]),
    "transposed": lambda M, a: M.tensor(a.T.copy()).t(),
    "strided": lambda M, a: M.tensor(np.repeat(a, 2, 1))[:, ::2],
}


def _operands(M: Any, layout: str, dtype: str) -> dict[str, Any]:
    pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL] * 9, dtype=np.float32)
    x, y = pairs[:, 0].reshape(39, 39), pairs[:, 1].reshape(39, 39)
    z = np.linspace(0.1, 1.9, x.size, dtype=np.float32).reshape(x.shape)
    to = getattr(M, dtype)
    return {name: LAYOUTS[layout](M, a).to(to) for name, a in (("x", x), ("y", y), ("z", z))}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_hot(layout: str, dtype: str) -> None:
    wrong = []
    for text in HOT:
        ours, theirs = (
            to_numpy(M, eval(text, {"M": M, "F": M.nn.functional, **_operands(M, layout, dtype)}))
            for M in (mica, torch)
        )
        few = 8 * float(torch.finfo(getattr(torch, dtype)).eps)
        with np.errstate(invalid="ignore", over="ignore"):
            if not np.allclose(ours, theirs, rtol=few, atol=few, equal_nan=True):
                wrong.append(text)
    assert not wrong


def test_one_number_for_a_row() -> None:
    """Inputs that broadcast: an element a row, a row for all, one number."""
    rng = np.random.default_rng(0)
    a, rows, row, one = (rng.standard_normal(s).astype(np.float32) for s in ((70, 90), (70, 1), (90,), ()))
    for w in (rows, row, one):
        ours = mica.lerp(mica.tensor(a), mica.tensor(w), mica.tensor(row))
        theirs = torch.lerp(torch.tensor(a), torch.tensor(w), torch.tensor(row))
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-6)


STEPS = """
_sgd_step
_sgd_nesterov_step
_adam_step
_amsgrad_step
_moments_step
_nadam_step
_adamax_step
_adagrad_step
_adadelta_step
_rmsprop_scale
_rmsprop_scale_centered
_asgd_step
""".strip().splitlines()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_hot_steps(layout: str, dtype: str) -> None:
    """Several results, apart from the inputs and in their place, against the program by operators."""
    few = 8 * float(torch.finfo(getattr(torch, dtype)).eps)
    for name in STEPS:
        _, codes, _, inputs, scalars = _steps._operator(name).program
        results = 1 + max(aux for opcode, _, _, aux in codes["main"] if opcode == "STORE")
        rng = np.random.default_rng(3)
        numbers = [float(n) for n in rng.uniform(0.3, 0.9, len(scalars))]
        arrays = [rng.uniform(0.5, 2.0, (39, 39)).astype(np.float32) for _ in inputs]
        if name == "_rmsprop_scale_centered":
            arrays[1] += 9  # of a variance
        tensors = [LAYOUTS[layout](mica, a).to(getattr(mica, dtype)) for a in arrays]
        places = [tensors[0], *tensors[len(tensors) - results + 1 :]]
        wanted = _steps.interpret(name, [t.double() for t in tensors] + numbers)
        for outputs in ([mica.zeros_like(t) for t in places], places):
            _steps.apply(name, [[t] for t in tensors], [[t] for t in outputs], numbers, False)
            for ours, exact in zip(outputs, wanted):
                np.testing.assert_allclose(ours.double().numpy(), exact.numpy(), few, few, err_msg=name)
