"""Averages of a model's weights over training: AveragedModel, its averaging functions, SWALR."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import mica
from mica._C import Tensor
from mica.nn import Module
from mica.optim._schedules import LRScheduler, for_each_group

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _decay_in_range(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Makes the update of an exponential moving average: `decay * average + (1 - decay) * current`.

    As `torch.optim.swa_utils.get_ema_avg_fn`; for `AveragedModel(avg_fn=...)`.

    Args:
        decay (float): Share of the average that stays, in [0, 1]. Default: 0.999.

    Returns:
        callable: `f(average, current, count)`, which returns the new average of one Tensor.

    Raises:
        ValueError: `decay` is not in [0, 1].

    Example:
        >>> update = mica.optim.swa_utils.get_ema_avg_fn(0.9)
        >>> update(mica.ones(2), mica.zeros(2), 1)
        tensor([0.9000, 0.9000])
    """
    _decay_in_range(decay)

    def update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with mica.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return update


def get_swa_avg_fn() -> Callable[..., Any]:
    """Makes the update of an equal average: `average + (current - average) / (count + 1)`.

    As `torch.optim.swa_utils.get_swa_avg_fn`; for `AveragedModel(avg_fn=...)`.

    Returns:
        callable: `f(average, current, count)`, which returns the new average of one Tensor; `count` is
        how many values `average` holds.

    Example:
        >>> update = mica.optim.swa_utils.get_swa_avg_fn()
        >>> update(mica.ones(2), mica.zeros(2), 3)
        tensor([0.7500, 0.7500])
    """

    def update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with mica.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return update


def _blend(averaged: list[Tensor], current: list[Tensor], weight: Any) -> None:
    """averaged += weight * (current - averaged), in the dtype of each."""
    with mica.no_grad():
        smooth = [a.is_floating_point() or a.is_complex() for a in averaged]
        if True in smooth:
            pairs = [(a, c) for a, c, s in zip(averaged, current, smooth) if s]
            mica._foreach_lerp_([a for a, _ in pairs], [c for _, c in pairs], float(weight))
        for a, c, s in zip(averaged, current, smooth):
            if not s:
                a.copy_(a + (c - a) * float(weight))


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Makes the update of exponential moving averages of many Tensors, in place and in one call.

    As `torch.optim.swa_utils.get_ema_multi_avg_fn`; for `AveragedModel(multi_avg_fn=...)`.

    Args:
        decay (float): Share of an average that stays, in [0, 1]. Default: 0.999.

    Returns:
        callable: `f(averages, currents, count)` over lists of Tensors, which writes `averages`.

    Raises:
        ValueError: `decay` is not in [0, 1].

    Example:
        >>> averages = [mica.ones(2)]
        >>> mica.optim.swa_utils.get_ema_multi_avg_fn(0.9)(averages, [mica.zeros(2)], 1)
        >>> averages
        [tensor([0.9000, 0.9000])]
    """
    _decay_in_range(decay)
    return lambda averaged, current, num_averaged: _blend(averaged, current, 1 - decay)


def get_swa_multi_avg_fn() -> Callable[..., Any]:
    """Makes the update of equal averages of many Tensors, in place and in one call.

    As `torch.optim.swa_utils.get_swa_multi_avg_fn`; for `AveragedModel(multi_avg_fn=...)`.

    Returns:
        callable: `f(averages, currents, count)` over lists of Tensors, which writes `averages`.

    Example:
        >>> averages = [mica.ones(2)]
        >>> mica.optim.swa_utils.get_swa_multi_avg_fn()(averages, [mica.zeros(2)], 3)
        >>> averages
        [tensor([0.7500, 0.7500])]
    """
    return lambda averaged, current, num_averaged: _blend(averaged, current, 1 / (int(num_averaged) + 1))


class AveragedModel(Module):
    """A copy of a model whose parameters are the average of the model's over training.

    As `torch.optim.swa_utils.AveragedModel`. Call `update_parameters(model)` after each step or epoch,
    and `update_bn` before use where the model has batch norms and `use_buffers` is False.

    Args:
        model (Module): The model that is trained; it is copied.
        device (device, optional): Where the copy lives. Default: the model's device.
        avg_fn (callable, optional): `f(average, current, count)` returns the new average of one Tensor.
            Default: the equal average.
        multi_avg_fn (callable, optional): `f(averages, currents, count)` updates lists in place;
            excludes `avg_fn`.
        use_buffers (bool): Average buffers too; else they are copied as they are. Default: False.

    Attributes:
        module (Module): The averaged copy.
        n_averaged (Tensor): How many updates there were; int64, shape `()`.

    Shape:
        - Input and output: those of `model`.

    Raises:
        AssertionError: Both `avg_fn` and `multi_avg_fn` are given.

    Example:
        >>> model = mica.nn.Linear(1, 1, bias=False)
        >>> averaged = mica.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 2.0, 6.0):
        ...     _ = mica.nn.init.constant_(model.weight, value)
        ...     averaged.update_parameters(model)
        >>> averaged.module.weight
        Parameter containing:
        tensor([[3.]], requires_grad=True)
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., Any] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", mica.tensor(0, dtype=mica.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes a model's present parameters into the average; the first call copies them.

        Args:
            model (Module): The model that is trained, of the same structure.
        """
        own: Iterable[Tensor] = self.module.parameters()
        theirs: Iterable[Tensor] = model.parameters()
        if self.use_buffers:
            own, theirs = (
                itertools.chain(own, self.module.buffers()),
                itertools.chain(theirs, model.buffers()),
            )
        averaged = [a.detach() for a in own]
        current = [c.detach().to(a.device) for a, c in zip(averaged, theirs)]
        if int(self.n_averaged) == 0:
            for a, c in zip(averaged, current):
                a.copy_(c)
        elif self.avg_fn is None:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averaged, current, self.n_averaged)
        else:
            for a, c in zip(averaged, current):
                a.copy_(self.avg_fn(a, c, self.n_averaged))
        if not self.use_buffers:
            for b, c in zip(self.module.buffers(), model.buffers()):
                b.detach().copy_(c.detach().to(b.device))
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of a model's batch norms anew, over all batches of a loader.

    As `torch.optim.swa_utils.update_bn`. The model runs in training mode without gradients; its mode
    is the same afterwards. A model without batch norms is left as it is.

    Args:
        loader (iterable): Batches: a Tensor, or a list or tuple whose first element is the model's
            input.
        model (Module): The model whose batch norms are set anew, in place.
        device (device, optional): Where each input is moved first. Default: it stays.

    Example:
        >>> model = mica.nn.BatchNorm1d(1)
        >>> mica.optim.swa_utils.update_bn([mica.tensor([[1.0], [3.0]])], model)
        >>> model.running_mean
        tensor([2.])
    """
    from mica.nn.modules.batchnorm import _BatchNorm

    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    training = model.training
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    model.train()
    with mica.no_grad():
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
    for m, momentum in zip(norms, momenta):
        m.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Anneals each group's learning rate to a constant within some epochs, and keeps it there.

    As `torch.optim.swa_utils.SWALR`. After `t` steps the rate is `swa_lr * a + lr * (1 - a)`, with
    `x = min(1, t / anneal_epochs)` and `a = x` ("linear") or `(1 - cos(pi * x)) / 2` ("cos").

    Args:
        optimizer (Optimizer): The optimizer whose rates it sets.
        swa_lr (float or list of float): The rate at the end, for all groups or one for each.
        anneal_epochs (int): Steps of the schedule until it is reached, at least 0. Default: 10.
        anneal_strategy (str): "cos" or "linear". Default: "cos".
        last_epoch (int): Number of the last epoch of a run that goes on, -1 for a new one; load the optimizer's
            state first, since its groups need "initial_lr". Default: -1.

    Raises:
        ValueError: An unknown strategy, `anneal_epochs` is negative or no int, or a list of wrong
            length.
        KeyError: `last_epoch` is not -1 and a group has no "initial_lr".

    Example:
        >>> optimizer = mica.optim.SGD([mica.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = mica.optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
        >>> rates = schedule.get_last_lr()
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates += schedule.get_last_lr()
        >>> rates
        [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Any,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(for_each_group(optimizer, "swa_lr", swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        """Computes the rates of the next step from those of the last; `step()` calls it.

        Returns:
            list of float: One for each parameter group.
        """
        self._within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self._share(max(0, min(1, (step - 1) / max(1, self.anneal_epochs))))
        now = self._share(max(0, min(1, step / max(1, self.anneal_epochs))))
        rates = []
        for group in self.optimizer.param_groups:
            start = (
                group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            )
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
