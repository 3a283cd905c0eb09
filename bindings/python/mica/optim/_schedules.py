"""Learning-rate schedules that multiply the rate they find, so that several of them
may drive one optimiser."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from mica.optim._optimizer import Optimizer


class LRScheduler:
    """The base: keeps each group's initial rate and sets get_lr() at every step().

    get_lr() gives the rates of `last_epoch` from those of the epoch before, which
    the groups hold; _closed_form(), where a schedule has one, from the initial rates."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"A schedule takes an Optimizer; this value is of type ({type(optimizer).__name__})."
            )
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"Group ({i}) of the optimiser has no 'initial_lr', which going on from last_epoch ({last_epoch}) needs; "
                    "load the optimiser's state first."
                )
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self.step()

    def get_lr(self) -> list[float]:
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr().")

    def _closed_form(self) -> list[float]:
        return self.get_lr()

    def _rates(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next epoch, or to `epoch`, and sets the rates."""
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        rates = self.get_lr() if epoch is None else self._closed_form()
        for group, lr in zip(self.optimizer.param_groups, rates):
            group["lr"] = lr
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update(state_dict)


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
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state without functions, which no file can hold."""
        state = {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}
        return {**state, "lr_lambdas": [None] * len(self.lr_lambdas)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})


class LambdaLR(_LambdaScheduler):
    """The initial rate times a function of the epoch."""

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_LambdaScheduler):
    """The last rate times a function of the epoch."""

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
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

    def get_lr(self) -> list[float]:
        factor = self._factor()
        return [rate * factor for rate in self._rates()]

    def _closed_form(self) -> list[float]:
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
        return self.gamma if self.last_epoch else 1.0

    def _total(self) -> float:
        return self.gamma**self.last_epoch


class ConstantLR(_FactorScheduler):
    """Times `factor` until total_iters epochs are over."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"The factor ({factor}) must be in [0, 1].")
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
        if self.last_epoch > self.total_iters:
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
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
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

    def get_lr(self) -> list[float]:
        epoch, low = self.last_epoch, self.eta_min
        if epoch == 0:
            return self._rates()
        if self._step_count == 1:
            return self._closed_form()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # from the lowest point up
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - low) * rise for rate, base in zip(self._rates(), self.base_lrs)]
        factor = 1 + math.cos(math.pi * epoch / self.T_max)
        factor /= 1 + math.cos(math.pi * (epoch - 1) / self.T_max)
        return [factor * (rate - low) + low for rate in self._rates()]

    def _closed_form(self) -> list[float]:
        phase = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * phase for base in self.base_lrs]
