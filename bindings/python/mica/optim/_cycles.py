"""Learning-rate schedules that go up and down: cyclic (Smith, 2017), one cycle
(Smith and Topin, 2019), cosine with warm restarts (Loshchilov and Hutter, 2017).
The first two move the momentum the other way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mica.optim._optimizer import Optimizer
from mica.optim._schedules import LRScheduler


def _for_each_group(optimizer: Optimizer, name: str, value: Any) -> list[Any]:
    """One value a parameter group, from one for all or a list of them."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} has ({len(value)}) values; expected ({count}), one for each parameter group."
        )
    return list(value)


def _check_momentum(optimizer: Optimizer) -> None:
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            f"{type(optimizer).__name__} has neither momentum nor betas to cycle; say cycle_momentum=False."
        )


def _set_momentum(group: dict[str, Any], momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class CyclicLR(LRScheduler):
    """Between base_lr and max_lr in triangles, whose height a function of the cycle scales."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                f"The mode ({mode}) is unknown; expected 'triangular', 'triangular2' or 'exp_range'."
            )
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, _for_each_group(optimizer, "base_lr", base_lr)):
                group["lr"] = lr
        self.max_lrs = _for_each_group(optimizer, "max_lr", max_lr)
        step_size_down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + step_size_down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self._scale_fn = mode, gamma, scale_fn
        self.scale_mode = "iterations" if scale_fn is None and mode == "exp_range" else scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _check_momentum(optimizer)
            self.base_momentums = _for_each_group(optimizer, "base_momentum", base_momentum)
            self.max_momentums = _for_each_group(optimizer, "max_momentum", max_momentum)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = _for_each_group(optimizer, "base_lr", base_lr)

    def _scale(self, x: float) -> float:
        if self._scale_fn is not None:
            return self._scale_fn(x)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (x - 1)
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                _set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        return {k: v for k, v in super().state_dict().items() if k != "_scale_fn"}


class OneCycleLR(LRScheduler):
    """Up to max_lr and down again in total_steps, along half cosines or lines."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR needs total_steps, or epochs and steps_per_epoch.")
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"The anneal_strategy ({anneal_strategy}) is unknown; expected 'cos' or 'linear'."
            )
        self.total_steps, self._anneal_func_type, self.cycle_momentum = (
            total_steps,
            anneal_strategy,
            cycle_momentum,
        )
        top = float(pct_start * total_steps) - 1
        # Each phase: its last step, and between which values of the group it goes.
        self._schedule_phases: list[tuple[float, str, str, str, str]] = [
            (top, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
            (total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"),
        ]
        if three_phase:
            self._schedule_phases[1:] = [
                (
                    float(2 * pct_start * total_steps) - 2,
                    "max_lr",
                    "initial_lr",
                    "base_momentum",
                    "max_momentum",
                ),
                (total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, _for_each_group(optimizer, "max_lr", max_lr)):
                group["initial_lr"] = lr / div_factor
                group["max_lr"], group["min_lr"] = lr, group["initial_lr"] / final_div_factor
        if cycle_momentum:
            _check_momentum(optimizer)
            lows = _for_each_group(optimizer, "base_momentum", base_momentum)
            highs = _for_each_group(optimizer, "max_momentum", max_momentum)
            for group, low, high in zip(optimizer.param_groups, lows, highs):
                group["base_momentum"], group["max_momentum"] = low, high
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Step ({step}) lies beyond the total_steps ({self.total_steps}) of OneCycleLR.")
        begin = 0.0
        for phase in self._schedule_phases:
            if step <= phase[0] or phase is self._schedule_phases[-1]:
                break
            begin = phase[0]
        end, from_lr, to_lr, from_momentum, to_momentum = phase
        share = (step - begin) / (end - begin)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                _set_momentum(group, self._anneal(group[from_momentum], group[to_momentum], share))
        return [self._anneal(group[from_lr], group[to_lr], share) for group in self.optimizer.param_groups]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines down to eta_min, the first of T_0 epochs, each T_mult times the one before."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"T_0 ({T_0}) must be a positive integer.")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"T_mult ({T_mult}) must be an integer of at least 1.")
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min, self.T_cur = T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        phase = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * phase for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes to the next epoch, or to `epoch`, which may be a fraction."""
        epoch = self.last_epoch + 1 if epoch is None else epoch
        if epoch < 0:
            raise ValueError(f"The epoch ({epoch}) is negative.")
        begin, length = 0, self.T_0
        if self.T_mult == 1:
            begin = int(epoch // self.T_0) * self.T_0
        else:
            while epoch >= begin + length:
                begin, length = begin + length, length * self.T_mult
        self.T_cur, self.T_i = epoch - begin, length
        super().step(math.floor(epoch))
