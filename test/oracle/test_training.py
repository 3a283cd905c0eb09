"""The same program trained in torch and in Mica from one seed: same weights at the
start, losses that agree step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mica


def make_model(library: Any) -> Any:
    nn = library.nn
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False),  # a bias before a norm has no gradient but noise
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 16),
        nn.GELU(),
        nn.LayerNorm(16),
        nn.Linear(16, 10),
    )


OPTIMISERS: dict[str, Any] = {
    "sgd": lambda o, p: o.SGD(p, lr=0.1),
    "momentum": lambda o, p: o.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "nesterov": lambda o, p: o.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda o, p: o.Adam(p, lr=1e-2, weight_decay=1e-2),
    "amsgrad": lambda o, p: o.Adam(p, amsgrad=True),
    "rmsprop": lambda o, p: o.RMSprop(p, lr=1e-3),
    "rmsprop centered": lambda o, p: o.RMSprop(p, lr=1e-3, momentum=0.9, centered=True, weight_decay=1e-2),
    "adamw": lambda o, p: o.AdamW(p, lr=1e-2),
}


def train(library: Any, optimiser: str) -> tuple[list[float], Any]:
    library.manual_seed(7)
    model = make_model(library)
    optim = OPTIMISERS[optimiser](library.optim, model.parameters())
    draw = np.random.default_rng(3)
    x = library.from_numpy(draw.standard_normal((12, 1, 8, 8)).astype(np.float32))
    y = library.from_numpy(draw.integers(0, 10, 12))
    loss_function = library.nn.CrossEntropyLoss()
    losses = []
    for _ in range(8):
        optim.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optim.step()
        losses.append(loss.item())
    return losses, model


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_losses_agree(optimiser: str) -> None:
    ours, model = train(mica, optimiser)
    theirs, reference = train(torch, optimiser)
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-4)
    assert list(model.state_dict()) == list(reference.state_dict())
    for (name, a), b in zip(model.state_dict().items(), reference.state_dict().values()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=5e-2, atol=5e-3, err_msg=name)


def test_state_dict_moves_between_the_libraries() -> None:
    torch.manual_seed(1)
    reference = make_model(torch).eval()
    model = make_model(mica).eval()
    model.load_state_dict({k: mica.from_numpy(v.numpy().copy()) for k, v in reference.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((3, 1, 8, 8)).astype(np.float32)
    with torch.no_grad():
        expected = reference(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(model(mica.from_numpy(x)).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


LOSSES = [
    ("MSELoss", "float"), ("L1Loss", "float"), ("SmoothL1Loss", "float"), ("HuberLoss", "float"),
    ("BCEWithLogitsLoss", "unit"), ("CrossEntropyLoss", "class"), ("NLLLoss", "class"),
]  # fmt: skip


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name,target", LOSSES)
def test_loss(name: str, target: str, reduction: str) -> None:
    draw = np.random.default_rng(0)
    x = draw.standard_normal((4, 5)).astype(np.float32)
    y = {"float": x[::-1].copy(), "unit": draw.random((4, 5), np.float32), "class": draw.integers(0, 5, 4)}[
        target
    ]
    results = []
    for library in (mica, torch):
        inputs = library.from_numpy(x.copy()).requires_grad_()
        loss = getattr(library.nn, name)(reduction=reduction)(inputs, library.from_numpy(y))
        loss.sum().backward()
        results.append((loss.detach().numpy(), inputs.grad.numpy()))
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_schedulers_agree() -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("StepLR", {"step_size": 3}),
        ("ExponentialLR", {"gamma": 0.9}),
        ("CosineAnnealingLR", {"T_max": 10}),
        ("MultiStepLR", {"milestones": [2, 5]}),
        ("LinearLR", {"start_factor": 0.2, "total_iters": 4}),
        ("OneCycleLR", {"max_lr": 0.1, "total_steps": 12}),
    ]
    for name, options in cases:
        rates = []
        for library in (mica, torch):
            optim = library.optim.SGD([library.nn.Parameter(library.ones(1))], lr=0.5)
            scheduler = getattr(library.optim.lr_scheduler, name)(optim, **options)
            seen = []
            for _ in range(10):
                optim.step()
                scheduler.step()
                seen.append(optim.param_groups[0]["lr"])
            rates.append(seen)
        np.testing.assert_allclose(rates[0], rates[1], rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_plateaus_agree(mode: str, threshold_mode: str) -> None:
    measures = [1.0, 0.9, 0.95, 0.95, 0.9501, 1.2, 1.3, 0.1, 0.1, 0.1, 0.1, 0.1]
    rates = []
    for library in (mica, torch):
        optim = library.optim.SGD([library.nn.Parameter(library.ones(1))], lr=0.5)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(
            optim, mode, patience=1, cooldown=1, threshold=1e-2, threshold_mode=threshold_mode, min_lr=1e-3
        )
        seen = []
        for measure in measures:
            scheduler.step(measure)
            seen += scheduler.get_last_lr()
        rates.append(seen)
    np.testing.assert_allclose(rates[0], rates[1])
