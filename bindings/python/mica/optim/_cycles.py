"""Learning-rate schedules that go up and down: cyclic (Smith, 2017), one cycle
(Smith and Topin, 2019), cosine with warm restarts (Loshchilov and Hutter, 2017).
The first two move the momentum the other way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mica.optim._optimizer import Optimizer
from mica.optim._schedules import (
    LRScheduler,
    check_optimizer,
    for_each_group,
    set_value,
    state_of,
)


class _MomentumScheduler(LRScheduler):
    """Those that move the momentum, or the first of the betas, against the rate."""

    def _begin_momentum(
        self, optimizer: Optimizer, base_momentum: Any, max_momentum: Any, fresh: bool
    ) -> tuple[list[Any], list[Any]]:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                f"{type(optimizer).__name__} has neither momentum nor betas to cycle; say cycle_momentum=False."
            )
        self.use_beta1 = "betas" in optimizer.defaults
        lows = for_each_group(optimizer, "base_momentum", base_momentum)
        highs = for_each_group(optimizer, "max_momentum", max_momentum)
        for group, low, high in zip(optimizer.param_groups if fresh else (), lows, highs):
            self._set_momentum(group, high)
            group["max_momentum"], group["base_momentum"] = high, low
        return lows, highs

    def _set_momentum(self, group: dict[str, Any], momentum: Any) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_MomentumScheduler):
    """Moves the learning rate up and down between two bounds, in triangles over steps, not epochs.

    As `torch.optim.lr_scheduler.CyclicLR`; call `step()` after each batch. The rate is
    `base_lr + (max_lr - base_lr) * height * scale`, with `height` going from 0 to 1 in `step_size_up`
    steps and back in `step_size_down`. Momentum goes the other way.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        base_lr (float or list of float): Lower bound, for all groups or one for each; also the first
            rate.
        max_lr (float or list of float): Largest learning rate of a cycle, for all groups or one each.
        step_size_up (int): Steps of the rise. Default: 2000.
        step_size_down (int, optional): Steps of the fall. Default: `step_size_up`.
        mode (str): `scale` is 1 ("triangular"), halves with each cycle ("triangular2"), or is
            `gamma**step` ("exp_range"). Default: "triangular".
        gamma (float): Base of "exp_range". Default: 1.0.
        scale_fn (callable, optional): Computes `scale` instead of `mode`, from what `scale_mode` says.
        scale_mode (str): What `scale_fn` takes: the number of the "cycle", from 1, or of the step, from
            0 ("iterations"). Default: "cycle".
        cycle_momentum (bool): Cycle `momentum`, or the first of `betas`, against the rate.
            Default: True.
        base_momentum (float or list of float): Momentum at the highest rate. Default: 0.8.
        max_momentum (float or list of float): Momentum at the lowest rate. Default: 0.9.
        last_epoch (int): Number of the last step of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        ValueError: An unknown mode, a list of wrong length, or an optimizer without momentum and betas.
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
        >>> schedule = mica.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2)
        >>> rates = schedule.get_last_lr()
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates += schedule.get_last_lr()
        >>> rates
        [0.0, 0.5, 1.0, 0.5, 0.0]
    """

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
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_each_group(optimizer, "base_lr", base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                set_value(group, "lr", lr)
        self.max_lrs = for_each_group(optimizer, "max_lr", max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                f"The mode ({mode}) is unknown; expected 'triangular', 'triangular2' or 'exp_range'."
            )
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        own = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = own if scale_fn is None else scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._begin_momentum(
                optimizer, base_momentum, max_momentum, last_epoch == -1
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Computes what the height of the triangle is multiplied by.

        Args:
            x (float): Number of the cycle, from 1, or of the step, from 0, as `scale_mode` says.

        Returns:
            float: The scale.
        """
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (x - 1)
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        self._within_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                self._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state; of a `scale_fn` that is an object its attributes, of a plain function nothing."""
        return {**super().state_dict(), "_scale_fn_custom": state_of(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        held = state_dict["_scale_fn_custom"]
        if held is not None:
            self._scale_fn_custom.__dict__.update(held)


class OneCycleLR(_MomentumScheduler):
    """Raises the learning rate to `max_lr` and lowers it far below its start, once in a whole training.

    As `torch.optim.lr_scheduler.OneCycleLR`; call `step()` after each batch. The rate goes from
    `max_lr / div_factor` up to `max_lr` and down to `max_lr / (div_factor * final_div_factor)`, the
    momentum from `max_momentum` to `base_momentum` and back. The rates that the optimizer has are
    ignored.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        max_lr (float or list of float): Highest rate, for all groups or one for each.
        total_steps (int, optional): Steps of the cycle. Default: `epochs * steps_per_epoch`.
        epochs (int, optional): Epochs of the training, where `total_steps` is not given.
        steps_per_epoch (int, optional): Batches of an epoch, where `total_steps` is not given.
        pct_start (float): Share of the steps in which the rate rises, in [0, 1]. Default: 0.3.
        anneal_strategy (str): "cos" for half cosines, "linear" for lines. Default: "cos".
        cycle_momentum (bool): Cycle `momentum`, or the first of `betas`, against the rate.
            Default: True.
        base_momentum (float or list of float): Momentum at the highest rate. Default: 0.85.
        max_momentum (float or list of float): Momentum at the lowest rates. Default: 0.95.
        div_factor (float): `max_lr` over the first rate. Default: 25.0.
        final_div_factor (float): The first rate over the last. Default: 1e4.
        three_phase (bool): Fall to the first rate as fast as it rose, and only then to the last.
            Default: False.
        last_epoch (int): Number of the last step of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        ValueError: The number of steps is missing or no positive int, `pct_start` is no float of [0,
            1], an unknown strategy, or an optimizer without momentum and betas; from `step()`: beyond
            `total_steps`.
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
        >>> schedule = mica.optim.lr_scheduler.OneCycleLR(
        ...     optimizer, max_lr=1.0, total_steps=5, pct_start=0.4, anneal_strategy="linear", div_factor=2
        ... )
        >>> rates = schedule.get_last_lr()
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates += schedule.get_last_lr()
        >>> print([round(rate, 3) for rate in rates])
        [0.5, 1.0, 0.667, 0.333, 0.0]
    """

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
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _count_of_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start ({pct_start}) must be a float between 0 and 1.")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"The anneal_strategy ({anneal_strategy}) is unknown; expected 'cos' or 'linear'."
            )
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, for_each_group(optimizer, "max_lr", max_lr)):
                group["initial_lr"] = lr / div_factor
                group["max_lr"], group["min_lr"] = lr, group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def _anneal_func(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[Any]:
        self._within_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Step ({step}) lies beyond the total_steps ({self.total_steps}) of OneCycleLR.")
        begin = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        share = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal_func(*ends, share))
            rates.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], share))
        return rates


def _count_of_steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    given = {"total_steps": total_steps}
    if total_steps is None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        if None in given.values():
            raise ValueError("OneCycleLR needs total_steps, or epochs and steps_per_epoch.")
    for name, value in given.items():
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"The option {name} ({value}) of OneCycleLR must be a positive integer.")
    return math.prod(given.values())


def _phases(steps: int, share: float, three: bool) -> list[dict[str, Any]]:
    """Of each phase its last step, and between which values of a group it goes."""
    rows: list[tuple[Any, ...]] = [
        (share * steps - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    ]
    if three:
        rows.append((2 * share * steps - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
        rows.append((steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
    else:
        rows.append((steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    return [dict(zip(names, row)) for row in rows]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lowers the learning rate along half cosines, each of which starts at the initial rate.

    As `torch.optim.lr_scheduler.CosineAnnealingWarmRestarts`. At epoch `t` of a run of `T` epochs
    `lr(t) = eta_min + (base - eta_min) * (1 + cos(pi * t / T)) / 2`.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        T_0 (int): Epochs of the first run.
        T_mult (int): What the length of a run is multiplied by for the next. Default: 1.
        eta_min (float): The smallest learning rate. Default: 0.0.
        last_epoch (int): Number of the last epoch of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        ValueError: `T_0` is no positive int, `T_mult` no int of at least 1, or `eta_min` no number.
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> rates = schedule.get_last_lr()
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates += schedule.get_last_lr()
        >>> print([round(rate, 3) for rate in rates])
        [1.0, 0.5, 1.0, 0.5, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"T_0 ({T_0}) must be a positive integer.")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"T_mult ({T_mult}) must be an integer of at least 1.")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"eta_min is a number; this value is of type ({type(eta_min).__name__}).")
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min = T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._within_step()
        phase = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * phase for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes to the next epoch, or to any one, and sets the rates of all groups.

        Args:
            epoch (float, optional): The epoch to go to, from 0; a fraction is a place within it, so that
                the rate may move with each batch. Default: the next one.

        Raises:
            ValueError: `epoch` is negative.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"The epoch ({epoch}) is negative.")
            self._restart_before(epoch)
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr)

    def _restart_before(self, epoch: float) -> None:
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0 if epoch >= self.T_0 else epoch
            return
        begin, length = 0, self.T_0
        while epoch >= begin + length:
            begin, length = begin + length, length * self.T_mult
        self.T_cur, self.T_i = epoch - begin, length
