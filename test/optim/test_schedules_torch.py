"""Learning-rate schedules beside torch's: states that move both ways, resuming, rates that are
tensors, epochs given by number, warnings of a wrong order, bad input; averages of weights."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from typing import Any

import pytest
import torch
from test_optimizers_torch import close, first_step, leaf
from test_training_torch import SCHEDULES

import mica

MORE: dict[str, Any] = {
    **SCHEDULES,
    "scaled by a function": lambda s, o: s.CyclicLR(
        o, 0.1, 0.7, 2, scale_fn=lambda x: 1 / x, scale_mode="cycle"
    ),
    "scaled by an object": lambda s, o: s.CyclicLR(
        o, 0.1, 0.7, 2, scale_fn=Power(), scale_mode="iterations", cycle_momentum=False
    ),
    "lambda of objects": lambda s, o: s.LambdaLR(o, [Power(), Power(0.5)]),
    "half a factor": lambda s, o: s.ConstantLR(o, 0.25, 2),
    "down to zero": lambda s, o: s.LinearLR(o, 0.5, 0.0, total_iters=3),
    "sequence from the second": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 2), s.StepLR(o, 2)], milestones=[0]
    ),
    "sequence of chains": lambda s, o: s.SequentialLR(
        o,
        [s.ChainedScheduler([s.LinearLR(o, 0.5), s.StepLR(o, 2)]), s.CosineAnnealingWarmRestarts(o, 2, 2)],
        [4],
    ),
    "swa": lambda s, o: swa(o).SWALR(o, [0.05, 0.1], anneal_epochs=4),
    "linear swa": lambda s, o: swa(o).SWALR(o, 0.05, anneal_epochs=0, anneal_strategy="linear"),
}


class Power:
    """A callable whose state goes into the schedule's."""

    def __init__(self, base: float = 0.8) -> None:
        self.base = base

    def __call__(self, x: float) -> float:
        return float(self.base**x)


def swa(optimizer: Any) -> Any:
    return (torch if isinstance(optimizer, torch.optim.Optimizer) else mica).optim.swa_utils


def optimizer_of(L: Any, tensor: bool = False) -> Any:
    rate = L.tensor(0.5) if tensor else 0.5
    groups = [{"params": [leaf(L)]}, {"params": [leaf(L)], "lr": L.tensor(0.3) if tensor else 0.3}]
    return L.optim.SGD(groups, lr=rate, momentum=0.5)


def rates(optimizer: Any) -> list[Any]:
    return [(float(g["lr"]), g["momentum"]) for g in optimizer.param_groups]


def run(L: Any, name: str, count: int, tensor: bool = False) -> tuple[Any, Any, list[Any]]:
    optimizer = optimizer_of(L, tensor)
    schedule = MORE[name](L.optim.lr_scheduler, optimizer)
    seen = [rates(optimizer)]
    for _ in range(count):
        first_step(optimizer)
        schedule.step()
        seen.append(rates(optimizer))
    return optimizer, schedule, seen


@pytest.mark.parametrize("name", MORE)
def test_rates_and_states(name: str) -> None:
    (_, ours, seen), (_, theirs, expected) = run(mica, name, 9), run(torch, name, 9)
    close(seen, expected, 1e-12, name)
    if name not in ("swa", "linear swa"):  # tensors stay the tensors that they are
        close(run(mica, name, 9, tensor=True)[2], run(torch, name, 9, tensor=True)[2], 1e-6, name)
    own, given = ours.state_dict(), theirs.state_dict()
    assert set(own) == set(given) - {"_scale_fn_ref"}, name
    pickle.dumps({k: v for k, v in own.items() if "lambda" not in k})
    for source, target, state in ((torch, mica, given), (mica, torch, own)):
        optimizer, again, _ = run(target, name, 0)
        other, first, _ = run(source, name, 9)
        again.load_state_dict(copy.deepcopy(state))
        first.load_state_dict(copy.deepcopy(first.state_dict()))
        for group, model in zip(optimizer.param_groups, other.param_groups):
            group.update({k: v for k, v in model.items() if k not in ("params", "fused", "foreach")})
        for _ in range(3):
            again.step()
            first.step()
            close(rates(optimizer), rates(other), 1e-12, name)


RESUMED = [
    "step",
    "multistep",
    "exponential",
    "constant",
    "linear",
    "polynomial",
    "cosine",
    "lambda",
    "multiplicative",
]


@pytest.mark.parametrize("name", RESUMED)
def test_resuming_and_epochs_by_number(name: str) -> None:
    makers = {
        "step": lambda s, o, e: s.StepLR(o, 3, last_epoch=e),
        "multistep": lambda s, o, e: s.MultiStepLR(o, [2, 5, 6], last_epoch=e),
        "exponential": lambda s, o, e: s.ExponentialLR(o, 0.9, last_epoch=e),
        "constant": lambda s, o, e: s.ConstantLR(o, 0.5, 7, last_epoch=e),
        "linear": lambda s, o, e: s.LinearLR(o, 0.2, total_iters=8, last_epoch=e),
        "polynomial": lambda s, o, e: s.PolynomialLR(o, 9, 1.5, last_epoch=e),
        "cosine": lambda s, o, e: s.CosineAnnealingLR(o, 4, 0.01, last_epoch=e),
        "lambda": lambda s, o, e: s.LambdaLR(o, lambda k: 0.9**k, last_epoch=e),
        "multiplicative": lambda s, o, e: s.MultiplicativeLR(o, lambda k: 0.9, last_epoch=e),
    }
    found = []
    for L in (mica, torch):
        s, seen = L.optim.lr_scheduler, []
        optimizer = optimizer_of(L)
        for group in optimizer.param_groups:
            group["initial_lr"] = 1.0
        schedule = makers[name](s, optimizer, 4)
        for _ in range(4):
            seen.append(rates(optimizer))
            first_step(optimizer)
            schedule.step()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            schedule.step(3)
        seen.append([rates(optimizer), schedule.last_epoch, [w.category for w in caught]])
        found.append(seen)
    close(found[0], found[1], 1e-12, name)


def too_early(L: Any) -> None:
    schedule = L.optim.lr_scheduler.StepLR(optimizer_of(L), 2)
    schedule.step()


def in_order(L: Any) -> None:
    optimizer = optimizer_of(L)
    schedule = L.optim.lr_scheduler.StepLR(optimizer, 2)
    first_step(optimizer)
    schedule.step()
    schedule.step()


def overridden(L: Any) -> None:
    optimizer = optimizer_of(L)
    schedule = L.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step = lambda *args: None
    schedule.step()


def outside_of_a_step(L: Any) -> None:
    optimizer = optimizer_of(L)
    L.optim.lr_scheduler.ExponentialLR(optimizer, 0.5).get_lr()


def plateau_with_epoch(L: Any) -> None:
    L.optim.lr_scheduler.ReduceLROnPlateau(optimizer_of(L)).step(1.0, 3)


def of_a_program(L: Any) -> None:
    """A schedule of its own, driven in order, on an optimizer copied after its making."""

    class Halved(L.optim.lr_scheduler.LRScheduler):  # type: ignore[misc, name-defined]
        def get_lr(self) -> Any:
            return [base / 2**self.last_epoch for base in self.base_lrs]

    optimizer = optimizer_of(L)
    schedule = Halved(optimizer)
    first_step(optimizer)
    schedule.step()
    other = copy.deepcopy(optimizer)
    first_step(other)
    assert [g["lr"] for g in optimizer.param_groups] == [0.25, 0.15] == schedule.get_last_lr()


@pytest.mark.parametrize(
    "program",
    [too_early, in_order, overridden, outside_of_a_step, plateau_with_epoch, of_a_program],
    ids=lambda p: p.__name__,
)
def test_warnings(program: Any) -> None:
    counts = []
    for L in (mica, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            program(L)
        counts.append([w.category for w in caught])
    assert counts[0] == counts[1]


BAD: dict[str, Any] = {
    "no optimizer": lambda s, o: s.StepLR(3, 1),
    "plateau without one": lambda s, o: s.ReduceLROnPlateau(3),
    "resuming a fresh one": lambda s, o: s.StepLR(o, 2, last_epoch=3),
    "functions of another number": lambda s, o: s.LambdaLR(o, [abs]),
    "no function": lambda s, o: s.MultiplicativeLR(o, 0.5),
    "constant above 1": lambda s, o: s.ConstantLR(o, 1.5),
    "start 0": lambda s, o: s.LinearLR(o, 0.0),
    "end above 1": lambda s, o: s.LinearLR(o, 0.5, 2.0),
    "no schedules": lambda s, o: s.SequentialLR(o, [], []),
    "no chain": lambda s, o: s.ChainedScheduler([]),
    "of no schedule": lambda s, o: s.ChainedScheduler([3], o),
    "milestones": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]),
    "plateau in a chain": lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
    "plateau in a sequence": lambda s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
    "another optimizer": lambda s, o: s.ChainedScheduler([s.StepLR(copy.deepcopy(o), 1)], o),
    "factor 1": lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
    "mode": lambda s, o: s.ReduceLROnPlateau(o, mode="middle"),
    "threshold mode": lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="other"),
    "least rates": lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]),
    "cyclic mode": lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="square"),
    "cyclic rates": lambda s, o: s.CyclicLR(o, [0.1], 0.2),
    "no momentum": lambda s, o: s.CyclicLR(type(o).__mro__[1](o.param_groups[0]["params"], {"lr": 1.0}), 0.1, 0.2),
    "no length": lambda s, o: s.OneCycleLR(o, 0.1),
    "length 0": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=0),
    "epochs below 0": lambda s, o: s.OneCycleLR(o, 0.1, epochs=-1, steps_per_epoch=2),
    "share": lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=2.0),
    "strategy": lambda s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="square"),
    "too many steps": lambda s, o: [c.step() for c in [s.OneCycleLR(o, 0.1, 3)] for _ in range(5)],
    "T_0": lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "T_mult": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 0),
    "eta_min": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, eta_min="0"),
    "negative epoch": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1),
    "group added": lambda s, o: group_added(s, o),
    "swa strategy": lambda s, o: swa(o).SWALR(o, 0.1, anneal_strategy="square"),
    "swa epochs": lambda s, o: swa(o).SWALR(o, 0.1, anneal_epochs=-1),
    "swa rates": lambda s, o: swa(o).SWALR(o, [0.1]),
    "decay": lambda s, o: swa(o).get_ema_avg_fn(1.5),
    "both averages": lambda s, o: swa(o).AveragedModel(
        (torch if isinstance(o, torch.optim.Optimizer) else mica).nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max
    ),
}  # fmt: skip


def group_added(s: Any, o: Any) -> None:
    schedule = s.ReduceLROnPlateau(o, min_lr=[0.1, 0.1], patience=0)
    o.add_param_group({"params": [o.param_groups[0]["params"][0].detach().clone()]})
    for _ in range(3):
        schedule.step(math.inf)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", BAD)
def test_bad_input(row: str) -> None:
    with pytest.raises(Exception) as theirs:
        BAD[row](torch.optim.lr_scheduler, optimizer_of(torch))
    with pytest.raises(type(theirs.value)) as ours:
        BAD[row](mica.optim.lr_scheduler, optimizer_of(mica))
    text = str(ours.value)
    assert " " in text and len(text) > 15, text


def test_a_plateau_is_open_to_its_programs() -> None:
    """What programs reach into: they replace _reduce_lr, and read in_cooldown and the rest."""
    found = []
    for L in (mica, torch):
        schedule = L.optim.lr_scheduler.ReduceLROnPlateau(optimizer_of(L), patience=0, cooldown=2)
        seen: list[Any] = []
        schedule._reduce_lr = lambda epoch, seen=seen: seen.append(epoch)
        for measure in (1.0, 2.0, 3.0, 4.0, math.nan):
            schedule.step(measure)
            seen.append(
                (schedule.in_cooldown, schedule.num_bad_epochs, schedule.best, schedule.default_min_lr)
            )
        schedule._reset()
        found.append(
            [
                seen,
                schedule.best,
                schedule.mode_worse,
                sorted(k for k in schedule.state_dict() if k != "_reduce_lr"),
            ]
        )
    assert found[0] == found[1]
