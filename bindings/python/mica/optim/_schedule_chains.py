"""Schedules made of schedules, and the one that follows a measure."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from mica.optim._optimizer import Optimizer
from mica.optim._schedules import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    check_optimizer,
    set_value,
    values_of,
)


class _Chain(LRScheduler):
    _schedulers: Sequence[Any]

    def _check(self, schedulers: Sequence[Any], optimizer: Optimizer | None) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} needs at least one schedule; the list is empty.")
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"Schedule ({i}) of {name}, of type ({type(scheduler).__name__}), has no attribute `optimizer`."
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"Schedule ({i}) of {name} is a ReduceLROnPlateau, whose step() takes a measure."
                )
            optimizer = scheduler.optimizer if optimizer is None else optimizer
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"Schedule ({i}) of {name} drives another optimiser.")
        self._schedulers = schedulers
        assert optimizer is not None
        self.optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of all schedules."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        return {**state, "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)


class SequentialLR(_Chain):
    """Runs one schedule after another, each from its epoch on.

    As `torch.optim.lr_scheduler.SequentialLR`. A schedule begins at its own epoch 0.

    Args:
        optimizer (Optimizer): The optimizer of all schedules.
        schedulers (list of LRScheduler): The schedules, in order.
        milestones (list of int): Epochs at which the second, third, ... begin; one fewer than
            schedules.
        last_epoch (int): Number of the last epoch of a run that goes on; -1 starts. Default: -1.

    Raises:
        ValueError: There are no schedules, the number of milestones is wrong, a schedule drives another
            optimizer or is a ReduceLROnPlateau.
        TypeError: Something in the list is no schedule.

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> warmup = mica.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=10)
        >>> decay = mica.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> schedule = mica.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[2])
        >>> rates = schedule.get_last_lr()
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates += schedule.get_last_lr()
        >>> rates
        [0.1, 0.1, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"{len(schedulers)} schedules need {len(schedulers) - 1} milestones; {len(milestones)} are given."
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:  # each of the schedules has taken its first step
            set_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Takes back the first step that each schedule took when it was made.

        Args:
            sched (LRScheduler, optional): Where to begin. Default: this schedule.
        """
        scheduler = self if sched is None else sched
        if hasattr(scheduler, "_schedulers"):
            for part in scheduler._schedulers:
                self.recursive_undo(part)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Goes to the next epoch and sets the rates by the schedule whose turn it is."""
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place > 0 and self._milestones[place - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Chain):
    """Steps several schedules together, whose factors multiply.

    As `torch.optim.lr_scheduler.ChainedScheduler`.

    Args:
        schedulers (list of LRScheduler): The schedules, in the order of their steps.
        optimizer (Optimizer, optional): The optimizer of all of them. Default: that of the first.

    Raises:
        ValueError: There are no schedules, or one drives another optimizer or is a ReduceLROnPlateau.
        TypeError: Something in the list is no schedule.

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> warmup = mica.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> decay = mica.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> schedule = mica.optim.lr_scheduler.ChainedScheduler([warmup, decay])
        >>> rates = schedule.get_last_lr()
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates += schedule.get_last_lr()
        >>> rates
        [0.5, 0.25, 0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._check(schedulers, optimizer)
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """Steps every schedule, in order."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rate by `factor` when a measure has stopped improving.

    As `torch.optim.lr_scheduler.ReduceLROnPlateau`. Call `step(measure)` once an epoch.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        mode (str): Whether the measure should become smaller ("min") or larger ("max"). Default: "min".
        factor (float): What the rate is multiplied by, below 1. Default: 0.1.
        patience (int): Epochs without improvement that are borne; the next one lowers the rate.
            Default: 10.
        threshold (float): Improvement that counts, a share of the best measure or absolute.
            Default: 1e-4.
        threshold_mode (str): "rel" for a share, "abs" for a difference. Default: "rel".
        cooldown (int): Epochs after a change that do not count. Default: 0.
        min_lr (float or list of float): Least rate, for all groups or one for each. Default: 0.
        eps (float): A change of the rate by no more than this is left out. Default: 1e-8.

    Attributes:
        best (float): Best measure so far.
        num_bad_epochs (int): Epochs without improvement in a row; 0 after a change of the rate and during the
            cooldown.

    Raises:
        ValueError: `factor` is not below 1, a mode is unknown, or `min_lr` has a wrong length.
        TypeError: `optimizer` is no Optimizer.

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     optimizer.step()
        ...     schedule.step(loss)
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"The factor ({factor}) must be below 1.")
        self.factor = factor
        check_optimizer(optimizer)
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        self.default_min_lr: float | None = None
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != count:
                raise ValueError(
                    f"min_lr has ({len(min_lr)}) values; expected ({count}), one for each group."
                )
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr, self.min_lrs = min_lr, [min_lr] * count
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch = 0
        self._last_lr = values_of(optimizer, "lr")
        self._init_is_better(mode=mode, threshold=threshold, threshold_mode=threshold_mode)
        self._reset()

    def _reset(self) -> None:
        """Forgets the measures so far."""
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"The mode ({mode}) or threshold mode ({threshold_mode}) is unknown.")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode

    def _is_better(self, a: float, best: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            return sign * a > sign * (best * (1.0 + sign * self.threshold))
        return sign * a > sign * (best + sign * self.threshold)

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs do not count yet."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes the measure of an epoch, and lowers the rates if it is time.

        Args:
            metrics (float or Tensor): The measure, a loss for instance.
            epoch (int, optional): Number of the epoch; deprecated, warns. Default: the next one.
        """
        value = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The optimiser has ({len(groups)}) parameter groups, `min_lrs` ({len(self.min_lrs)}) values: "
                    "a group was added since; add its least rate to `min_lrs`."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            rate = float(group["lr"])
            lower = max(rate * self.factor, least)
            if rate - lower > self.eps:
                set_value(group, "lr", lower)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
