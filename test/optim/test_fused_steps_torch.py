"""The fused steps by torch's names beside torch's, and the helpers that optimizers written
elsewhere import from torch.optim.optimizer."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import torch
from test_optimizers_torch import SHAPES, close, first_step, leaf, optimizer_module, tensor

import mica

FUSED_CALLS: dict[str, list[dict[str, Any]]] = {
    "_fused_adam_": [{"amsgrad": False}, {"amsgrad": True, "maximize": True, "weight_decay": 0.1}],
    "_fused_adamw_": [{"amsgrad": False, "weight_decay": 0.1}, {"amsgrad": True}],
    "_fused_sgd_": [
        {"momentum": 0.0, "weight_decay": 0.1},
        {"momentum": 0.9, "is_first_step": True},
        {"momentum": 0.9, "dampening": 0.2, "nesterov": False, "maximize": True},
        {"momentum": 0.9, "nesterov": True},
    ],
    "_fused_adagrad_": [{}, {"lr_decay": 0.3, "weight_decay": 0.1, "maximize": True}],
}
FUSED_DEFAULTS: dict[str, dict[str, Any]] = {
    "_fused_adam_": {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-8, "maximize": False},
    "_fused_sgd_": {
        "lr": 0.1, "momentum": 0.0, "weight_decay": 0.0, "dampening": 0.0, "nesterov": False, "maximize": False,
        "is_first_step": False,
    },
    "_fused_adagrad_": {"lr": 0.1, "lr_decay": 0.0, "weight_decay": 0.0, "eps": 1e-8, "maximize": False},
}  # fmt: skip
FUSED_DEFAULTS["_fused_adamw_"] = FUSED_DEFAULTS["_fused_adam_"]


@pytest.mark.parametrize("scale", [None, 1.0, 0.0])
@pytest.mark.parametrize("name", FUSED_CALLS)
def test_fused_functions(name: str, scale: float | None) -> None:
    """With the gradients' scale, and where an infinity was found (1.0)."""
    for options in FUSED_CALLS[name]:
        found = []
        for L in (mica, torch):
            rng = np.random.default_rng(4)
            columns = [[tensor(L, rng.random(s) + 0.5, "float32") for s in SHAPES] for _ in range(5)]
            count = {"_fused_sgd_": 3, "_fused_adagrad_": 3}.get(name, 5)
            lists = columns[:count]
            if name != "_fused_sgd_":
                lists.append([L.tensor(float(i + 2)) for i in range(len(SHAPES))])
            given = {**FUSED_DEFAULTS[name], **options}
            if given.get("momentum") == 0:
                lists[2] = []
            if given.get("amsgrad") is False:
                lists[4] = []
            if scale is not None:
                given |= {"grad_scale": L.tensor(4.0), "found_inf": L.tensor(scale)}
            getattr(L, name)(*lists, **given)
            found.append(columns)
        close(found[0], found[1], 1e-5, f"{name} {options}")


def of_a_program_elsewhere(L: Any) -> Any:
    """An optimizer as programs copy it from torch's, with torch's helpers."""
    h = optimizer_module(L)
    helpers = h if L is torch else importlib.import_module("mica.optim._helpers")

    class Copied(L.optim.Optimizer):  # type: ignore[misc, name-defined]
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.1, "differentiable": False})

        @helpers._use_grad_for_differentiable
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                grads = [p.grad for p in params]
                helpers._view_as_real(params, grads)
                for p, g in zip(params, grads):
                    p.add_(g, alpha=-helpers._get_value(helpers._to_scalar(L.tensor([0.5]))))

    z = L.nn.Parameter(L.tensor([1 + 2j]))
    optimizer = Copied([z, leaf(L)])
    first_step(optimizer)
    params = [leaf(L), None]
    return [
        z, helpers._default_to_fused_or_foreach(params, False, use_fused=True),
        helpers._default_to_fused_or_foreach(params, False), helpers._default_to_fused_or_foreach(params, True),
        str(helpers._get_scalar_dtype()).split(".")[1], helpers._get_capturable_supported_devices()[:3],
    ]  # fmt: skip


def test_helpers_of_optimizers_written_elsewhere() -> None:
    close(of_a_program_elsewhere(mica), of_a_program_elsewhere(torch), 1e-6)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_descent_adds_the_decay_within_its_step(decay, nesterov):
    made = []
    for module in (mica, torch):
        p = module.tensor([float("inf"), 1.0, -2.0], requires_grad=True)
        options = {"lr": 0.25, "momentum": 0.5, "weight_decay": decay, "nesterov": nesterov}
        optimizer = module.optim.SGD([p], **options)
        given = module.tensor([1.0, 2.0, 4.0])
        for _ in range(3):
            p.grad = given
            optimizer.step()
        assert given.tolist() == [1.0, 2.0, 4.0]
        made.append([p.tolist(), optimizer.state[p]["momentum_buffer"].tolist()])
    assert np.array_equal(made[0], made[1], equal_nan=True)
