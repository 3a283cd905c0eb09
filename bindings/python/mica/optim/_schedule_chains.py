"""Schedules made of schedules, and the one that follows a measure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from mica.optim._cycles import _for_each_group
from mica.optim._optimizer import Optimizer
from mica.optim._schedules import LRScheduler


class _Chain(LRScheduler):
    _schedulers: list[Any]

    def _check(self, schedulers: Sequence[Any], optimizer: Optimizer) -> None:
        if not schedulers:
            raise ValueError(f"{type(self).__name__} needs at least one schedule; the list is empty.")
        for i, scheduler in enumerate(schedulers):
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"Schedule ({i}) of {type(self).__name__} drives another optimiser.")
        self.optimizer, self._schedulers = optimizer, list(schedulers)

    def state_dict(self) -> dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        return {**state, "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)


class SequentialLR(_Chain):
    """One schedule after another, each from its epoch of `milestones` on."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"{len(schedulers)} schedules need {len(schedulers) - 1} milestones; {len(milestones)} are given."
            )
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:  # each of the schedules has taken its first step
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0]._initial_step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        scheduler.step(*((0,) if place > 0 and self._milestones[place - 1] == self.last_epoch else ()))
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Chain):
    """Several schedules that multiply the rate at every step."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._check(
            schedulers, optimizer if optimizer is not None or not schedulers else schedulers[0].optimizer
        )
        self._last_lr = self._rates()

    def step(self, epoch: int | None = None) -> None:
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a measure has not improved for more than `patience` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"The factor ({factor}) must be below 1.")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"The mode ({mode}) or threshold mode ({threshold_mode}) is unknown.")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lrs = _for_each_group(optimizer, "min_lr", min_lr)
        self.eps = eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def is_better(self, value: float, best: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "abs" or math.isinf(best):
            return sign * value > sign * best + (self.threshold if self.threshold_mode == "abs" else 0.0)
        return sign * value > sign * best * (1 + sign * self.threshold)

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes the measure of an epoch and lowers the rates if it is time."""
        value = float(metrics)
        self.last_epoch += 1
        if self.is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs):
                lower = max(group["lr"] * self.factor, least)
                if group["lr"] - lower > self.eps:
                    group["lr"] = lower
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]
