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
    """The base: keeps each group's initial rate and sets get_lr() at every step().

    get_lr() gives the rates of `last_epoch` from those of the epoch before, which
    the groups hold; _get_closed_form_lr(), where a schedule has one, from the initial rates."""

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
        """The rates of the groups for `last_epoch`; step() asks for them."""
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
        """The rates that the last step set."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next epoch, or to `epoch`, and sets the rates."""
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
        """All but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict() gave."""
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
        """The state without functions, which no file can hold; of callable objects what they hold."""
        state = {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}
        return {**state, "lr_lambdas": [state_of(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for own, held in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if held is not None:
                own.__dict__.update(held)


class LambdaLR(_LambdaScheduler):
    """The initial rate times a function of the epoch."""

    def get_lr(self) -> list[Any]:
        self._within_step()
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_LambdaScheduler):
    """The last rate times a function of the epoch."""

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
    """Times gamma every step_size epochs."""

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
    """Times gamma at each epoch of `milestones`."""

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
    """Times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _total(self) -> float:
        return self.gamma**self.last_epoch


class ConstantLR(_FactorScheduler):
    """Times `factor` until total_iters epochs are over."""

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
    """A factor that goes from start_factor to end_factor in total_iters epochs."""

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
    """A power of the share of total_iters epochs that is left."""

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
    """Half a cosine from the initial rate to eta_min in T_max epochs, and back."""

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
