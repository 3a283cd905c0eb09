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
    "adam decoupled": lambda o, p: o.Adam(p, lr=1e-2, weight_decay=0.1, decoupled_weight_decay=True),
    "adagrad": lambda o, p: o.Adagrad(p, lr=0.05, lr_decay=0.1, weight_decay=1e-2),
    "adadelta": lambda o, p: o.Adadelta(p, lr=0.5, weight_decay=1e-2),
    "adamax": lambda o, p: o.Adamax(p, weight_decay=1e-2, foreach=False),
    "nadam": lambda o, p: o.NAdam(p, weight_decay=1e-2),
    "nadam decoupled": lambda o, p: o.NAdam(p, weight_decay=1e-2, decoupled_weight_decay=True),
    "radam": lambda o, p: o.RAdam(p, lr=1e-2, betas=(0.8, 0.7), weight_decay=1e-2),
    "radam decoupled": lambda o, p: o.RAdam(p, lr=1e-2, weight_decay=1e-2, decoupled_weight_decay=True),
    "asgd": lambda o, p: o.ASGD(p, lr=0.05, t0=3, weight_decay=1e-2),
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


def noisy_bowl(library: Any, optimiser: str) -> tuple[Any, Any, Any]:
    """Steps of an optimiser down a bowl whose gradients turn, in float64; the optimiser and its parameters."""
    draw = np.random.default_rng(5)
    p = library.nn.Parameter(library.from_numpy(draw.standard_normal(6)))
    q = library.nn.Parameter(library.from_numpy(draw.standard_normal((2, 3))))
    unused = library.nn.Parameter(library.ones(2))
    optim = BOWL[optimiser](library.optim, [p, q, unused])
    for _ in range(20):
        noise = library.from_numpy(draw.standard_normal(6))
        optim.zero_grad()
        ((p - noise).square().sum() + (q * noise.view(2, 3)).sum()).backward()
        optim.step()
    return optim, p, q


BOWL: dict[str, Any] = {
    **OPTIMISERS,
    "rprop": lambda o, p: o.Rprop(p, lr=0.1),
    "maximize": lambda o, p: o.Adamax(p, maximize=True),
}


@pytest.mark.parametrize("optimiser", BOWL)
def test_steps_agree(optimiser: str) -> None:
    ours, *values = noisy_bowl(mica, optimiser)
    theirs, *expected = noisy_bowl(torch, optimiser)
    for a, b in zip(values, expected):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6)
    assert repr(ours) == repr(theirs)
    own, given = ours.state_dict(), theirs.state_dict()
    assert own["param_groups"] == given["param_groups"]
    assert {k: set(s) for k, s in own["state"].items()} == {k: set(s) for k, s in given["state"].items()}
    taken = {  # the state moves over
        k: {n: mica.from_numpy(np.array(v)) if torch.is_tensor(v) else v for n, v in s.items()}
        for k, s in given["state"].items()
    }
    ours.load_state_dict({"state": taken, "param_groups": given["param_groups"]})
    ours.step()
    theirs.step()
    for a, b in zip(values, expected):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5)


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


SCHEDULES: dict[str, Any] = {
    "lambda": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9),
    "step": lambda s, o: s.StepLR(o, 3),
    "multistep": lambda s, o: s.MultiStepLR(o, [2, 5, 5]),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "constant": lambda s, o: s.ConstantLR(o, 0.5, 4),
    "linear": lambda s, o: s.LinearLR(o, 0.2, total_iters=4),
    "polynomial": lambda s, o: s.PolynomialLR(o, 7, 1.5),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 4, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3),
    "growing restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 3, 0.01),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.1, 0.7, 3, 4),
    "cyclic halved": lambda s, o: s.CyclicLR(o, [0.1, 0.2], 0.7, 3, mode="triangular2", cycle_momentum=False),
    "cyclic range": lambda s, o: s.CyclicLR(o, 0.1, 0.7, 3, mode="exp_range", gamma=0.9),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.7, 13),
    "one linear cycle": lambda s, o: s.OneCycleLR(
        o, [0.7, 0.2], epochs=5, steps_per_epoch=3, anneal_strategy="linear"
    ),
    "three phases": lambda s, o: s.OneCycleLR(o, 0.7, 14, three_phase=True, pct_start=0.4),
    "sequence": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=3), s.ExponentialLR(o, 0.8), s.CosineAnnealingLR(o, 5)], [3, 7]
    ),
    "chain": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9)], o),
}


@pytest.mark.parametrize("optimiser", ["SGD", "Adam"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_agree(schedule: str, optimiser: str) -> None:
    seen: list[list[Any]] = []
    for library in (mica, torch):
        parameters = [library.nn.Parameter(library.ones(1)) for _ in range(2)]
        groups = [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.3}]
        extra = {"momentum": 0.5} if optimiser == "SGD" else {}
        optim = getattr(library.optim, optimiser)(groups, lr=0.5, **extra)
        scheduler = SCHEDULES[schedule](library.optim.lr_scheduler, optim)
        rates = []
        for epoch in range(13):
            rates.append([(g["lr"], g.get("momentum"), g.get("betas")) for g in optim.param_groups])
            assert [g["lr"] for g in optim.param_groups] == scheduler.get_last_lr()
            optim.step()
            scheduler.step()
            if epoch == 6:  # through a state_dict and on
                state, rate = scheduler.state_dict(), [g["lr"] for g in optim.param_groups]
                again = SCHEDULES[schedule](library.optim.lr_scheduler, optim)
                again.load_state_dict(state)
                for group, lr in zip(optim.param_groups, rate):
                    group["lr"] = lr
                scheduler = again
        seen.append(rates)
    for ours, theirs in zip(*seen):
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a[0], b[0], rtol=1e-9)
            assert (a[1] is None) == (b[1] is None) and (a[1] is None or abs(a[1] - b[1]) < 1e-12)
            assert a[2] is None or np.allclose(a[2], b[2])


def test_two_schedules_drive_one_optimiser() -> None:
    rates = []
    for library in (mica, torch):
        optim = library.optim.SGD([library.nn.Parameter(library.ones(1))], lr=0.5)
        schedules = [
            library.optim.lr_scheduler.ExponentialLR(optim, 0.9),
            library.optim.lr_scheduler.MultiStepLR(optim, [3, 6]),
        ]
        for _ in range(8):
            optim.step()
            for schedule in schedules:
                schedule.step()
        rates.append(optim.param_groups[0]["lr"])
    assert abs(rates[0] - rates[1]) < 1e-12


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
