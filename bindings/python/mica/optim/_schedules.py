"""Learning-rate schedules that multiply the rate they find, so that several of them
may drive one optimiser."""

from __future__ import annotations

import functools
import math
import types
import warnings
import weakref
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from mica._C import Tensor
from mica.optim._optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "An epoch given to a schedule's step() is deprecated: call step() once an epoch. With an epoch the closed "
    "form of the schedule is taken, where it has one."
)
_ORDER = (
    "The schedule's step() is called before the optimizer's: call `optimizer.step()` before "
    "`lr_scheduler.step()`, or the first rate of the schedule is skipped."
)
_REPLACED = (
    "`optimizer.step()` has been overridden after the schedule was made, which cannot see any more whether it "
    "is called first: call `optimizer.step()` before `lr_scheduler.step()`."
)


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """An option of each parameter group; tensors as copies."""
    values = [group[key] for group in optimizer.param_groups]
    return [value.clone() if isinstance(value, Tensor) else value for value in values]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Writes an option; one that is a tensor keeps being the same tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def for_each_group(optimizer: Optimizer, name: str, value: Any) -> list[Any]:
    """One value a parameter group, from one for all or a list of them."""
    count = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)) and len(value) != count:
        raise ValueError(
            f"{name} has ({len(value)}) values; expected ({count}), one for each parameter group."
        )
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    return [v.clone() if isinstance(v, Tensor) else v for v in values]


def check_optimizer(optimizer: Any) -> None:
    """A schedule drives an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"A schedule takes an Optimizer; this value is of type ({type(optimizer).__name__}).")


def _watch_steps(optimizer: Any) -> None:
    """Lets the optimizer note that step() was called, for the warning of a wrong order."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    reference, function = weakref.ref(optimizer), optimizer.step.__func__

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        owner: Any = reference()
        owner._opt_called = True
        return function(owner, *args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step


class LRScheduler:
    """Base of the schedules that set an optimizer's learning rates once an epoch.

    As `torch.optim.lr_scheduler.LRScheduler`. Call `step()` after the optimizer's. A subclass defines
    `get_lr()`, from `last_epoch`, `base_lrs` and the rates that the optimizer's groups hold. A schedule
    multiplies the rate it finds, so that several may drive one optimizer. The constructor takes the
    first step and thereby sets the rates of epoch 0.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        last_epoch (int): Number of the last epoch of a run that goes on, whose optimizer state is
            loaded before; -1 starts. Default: -1.

    Attributes:
        optimizer (Optimizer): As given.
        base_lrs (list of float): Each group's rate at the start, its option "initial_lr".
        last_epoch (int): The present epoch, from 0.

    Raises:
        TypeError: `optimizer` is no Optimizer.
        KeyError: `last_epoch` is given and a group has no "initial_lr".

    Example:
        >>> class InverseRoot(mica.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [lr / (1 + self.last_epoch) ** 0.5 for lr in self.base_lrs]
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = InverseRoot(optimizer)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False  # during the step that the constructor takes

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"Group ({i}) of the optimiser has no 'initial_lr', which going on from last_epoch ({last_epoch}) needs; "
                    "load the optimiser's state first."
                )
        self.base_lrs: list[Any] = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[Any]:
        """Computes the rates of epoch `last_epoch`; `step()` calls it, users call `get_last_lr()`.

        Returns:
            list of float: One for each parameter group.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr().")

    def _within_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "get_lr() is for step(), which is not running; get_last_lr() gives the last rates.",
                stacklevel=3,
            )

    def _rates(self) -> list[Any]:
        return values_of(self.optimizer, "lr")

    def get_last_lr(self) -> list[Any]:
        """Returns the rates that the last step set, one for each parameter group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next epoch and sets the rates of all groups.

        Args:
            epoch (int, optional): The epoch to go to instead; deprecated, warns. Default: the next one.
        """
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(_REPLACED, stacklevel=2)
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(_ORDER, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
        self._set(self.get_lr if epoch is None else closed_form)

    def _set(self, rates: Callable[[], list[Any]]) -> None:
        self._get_lr_called_within_step = True
        try:
            values = rates()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values):
            set_value(group, "lr", lr)
        self._last_lr: list[Any] = self._rates()

    def state_dict(self) -> dict[str, Any]:
        """Returns what a file must hold for the schedule to go on: all attributes but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict()` gave; load the optimizer's own state too.

        Args:
            state_dict (dict): Result of `state_dict()`.
        """
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The name that LRScheduler had."""


def state_of(function: Any) -> dict[str, Any] | None:
    """What of a callable a file can hold: the attributes of an object, nothing of a function."""
    if function is None or isinstance(function, types.FunctionType):
        return None
    return dict(function.__dict__)


class _LambdaScheduler(LRScheduler):
    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ValueError(
                f"The number of functions ({len(self.lr_lambdas)}) differs from the number of parameter groups ({count})."
            )
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function; this one is of type ({type(function).__name__})."
                )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state without plain functions, which no file can hold; of callable objects their attributes."""
        state = {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}
        return {**state, "lr_lambdas": [state_of(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for own, held in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if held is not None:
                own.__dict__.update(held)


class LambdaLR(_LambdaScheduler):
    """Multiplies the initial learning rate by a function of the epoch: `lr(t) = base * f(t)`.

    As `torch.optim.lr_scheduler.LambdaLR`. The rate is `base * f(0)` from construction on.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        lr_lambda (callable or list of callable): `f(epoch)`, with the epoch from 0; one for all groups
            or one for each.
        last_epoch (int): Number of the last epoch of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        ValueError: The list has another length than the optimizer has groups.
        TypeError: `lr_lambda` is not callable.
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.125]
    """

    def get_lr(self) -> list[Any]:
        self._within_step()
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_LambdaScheduler):
    """Multiplies the last learning rate by a function of the epoch: `lr(t) = lr(t - 1) * f(t)`.

    As `torch.optim.lr_scheduler.MultiplicativeLR`.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        lr_lambda (callable or list of callable): `f(epoch)`, asked from epoch 1 on; one for all groups
            or one for each.
        last_epoch (int): Number of the last epoch of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        ValueError: The list has another length than the optimizer has groups.
        TypeError: `lr_lambda` is not callable.
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.125]
    """

    def get_lr(self) -> list[Any]:
        self._within_step()
        if self._is_initial:
            return self._rates()
        return [rate * f(self.last_epoch) for rate, f in zip(self._rates(), self.lr_lambdas)]


class _FactorScheduler(LRScheduler):
    """One factor for all groups, each epoch."""

    def _factor(self) -> float:
        """By what the last epoch's rate is multiplied."""
        raise NotImplementedError

    def _total(self) -> float:
        """By what the initial rate is multiplied."""
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        self._within_step()
        factor = self._factor()
        return [rate * factor for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        total = self._total()
        return [base * total for base in self.base_lrs]


class StepLR(_FactorScheduler):
    """Multiplies the learning rate by `gamma` every `step_size` epochs.

    As `torch.optim.lr_scheduler.StepLR`: `lr(t) = base * gamma**(t // step_size)`.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        step_size (int): Epochs between two changes.
        gamma (float): What the rate is multiplied by. Default: 0.1.
        last_epoch (int): Number of the last epoch of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> for _ in range(5):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1.0

    def _total(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_FactorScheduler):
    """Multiplies the learning rate by `gamma` at each of the given epochs.

    As `torch.optim.lr_scheduler.MultiStepLR`.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        milestones (iterable of int): The epochs; one that stands twice counts twice.
        gamma (float): What the rate is multiplied by. Default: 0.1.
        last_epoch (int): Number of the last epoch of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma ** self.milestones[self.last_epoch] if self.last_epoch in self.milestones else 1.0

    def _total(self) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ExponentialLR(_FactorScheduler):
    """Multiplies the learning rate by `gamma` every epoch: `lr(t) = base * gamma**t`.

    As `torch.optim.lr_scheduler.ExponentialLR`.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        gamma (float): What the rate is multiplied by.
        last_epoch (int): Number of the last epoch of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _total(self) -> float:
        return self.gamma**self.last_epoch


class ConstantLR(_FactorScheduler):
    """Multiplies the learning rate by `factor` during the first `total_iters` epochs.

    As `torch.optim.lr_scheduler.ConstantLR`. At epoch `total_iters` the rate is divided by `factor`.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        factor (float): What the rate is multiplied by, in [0, 1]. Default: 1/3.
        total_iters (int): Epochs until the rate is the initial one again. Default: 5.
        last_epoch (int): Number of the last epoch of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        ValueError: `factor` is not in [0, 1].
        ZeroDivisionError: `factor` is 0 and epoch `total_iters` is reached (from `step()`).
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> rates = schedule.get_last_lr()
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates += schedule.get_last_lr()
        >>> rates
        [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"The factor ({factor}) must be in [0, 1], between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1.0

    def _total(self) -> float:
        return 1.0 if self.last_epoch >= self.total_iters else self.factor


class LinearLR(_FactorScheduler):
    """Moves the learning rate along a line between two multiples of it, for a warm-up say.

    As `torch.optim.lr_scheduler.LinearLR`:
    `lr(t) = base * (start_factor + (end_factor - start_factor) * min(t, total_iters) / total_iters)`.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        start_factor (float): Multiple of the rate at epoch 0, in (0, 1]. Default: 1/3.
        end_factor (float): Multiple of the rate from epoch `total_iters` on, in [0, 1]. Default: 1.0.
        total_iters (int): Epochs of the line. Default: 5.
        last_epoch (int): Number of the last epoch of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        ValueError: A factor is out of its range.
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> rates = schedule.get_last_lr()
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates += schedule.get_last_lr()
        >>> rates
        [0.5, 0.75, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(
                f"The factors ({start_factor}, {end_factor}) must be in [0, 1], the first above 0."
            )
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _total(self) -> float:
        share = min(self.last_epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share


class PolynomialLR(_FactorScheduler):
    """Lowers the learning rate to 0 within `total_iters` epochs, along a power of the share that is left.

    As `torch.optim.lr_scheduler.PolynomialLR`: `lr(t) = base * (1 - min(t, total_iters) /
    total_iters)**power`.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        total_iters (int): Epochs until the rate is 0. Default: 5.
        power (float): Exponent; 1 gives a line. Default: 1.0.
        last_epoch (int): Number of the last epoch of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=2)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        left, before = self.total_iters - self.last_epoch, self.total_iters - self.last_epoch + 1
        return (left / before) ** self.power

    def _total(self) -> float:
        return (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Lowers the learning rate along half a cosine to `eta_min`, and raises it again after `T_max` epochs.

    As `torch.optim.lr_scheduler.CosineAnnealingLR`:
    `lr(t) = eta_min + (base - eta_min) * (1 + cos(pi * t / T_max)) / 2`.

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        T_max (int): Epochs until `eta_min`, half a period.
        eta_min (float): The smallest learning rate. Default: 0.0.
        last_epoch (int): Number of the last epoch of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        >>> print(f"{schedule.get_last_lr()[0]:.3f}")
        0.500
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._within_step()
        epoch, low = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._rates()
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # from the lowest point up
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - low) * rise for rate, base in zip(self._rates(), self.base_lrs)]
        factor = 1 + math.cos(math.pi * epoch / self.T_max)
        factor /= 1 + math.cos(math.pi * (epoch - 1) / self.T_max)
        return [factor * (rate - low) + low for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        phase = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * phase for base in self.base_lrs]
