"""Modules that are wrapped so that they save less for backward; their parameters and states keep their names.

block = checkpoint_wrapper(block)  # computes its forward anew in backward
apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, Block))
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator
from typing import Any

from mica import nn
from mica.autograd.graph import save_on_cpu
from mica.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_PREFIX = "_checkpoint_wrapped_module."


class CheckpointImpl(enum.Enum):
    """How a forward is computed anew: by another backward within the first one, or without.

    As `torch.distributed.algorithms._checkpoint.checkpoint_wrapper.CheckpointImpl`.

    Example:
        >>> from mica.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper
        >>> block = checkpoint_wrapper(mica.nn.Linear(2, 3), CheckpointImpl.REENTRANT)
        >>> block.checkpoint_impl.name
        'REENTRANT'
    """

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


def _rename(state: dict[str, Any], old: str, new: str) -> None:
    for key in [key for key in state if key.startswith(old)]:
        state[new + key[len(old) :]] = state.pop(key)


class ActivationWrapper(nn.Module):
    """A module in the place of another, whose attributes, items, parameters' names and states it has.

    As `torch.distributed.algorithms._checkpoint.checkpoint_wrapper.ActivationWrapper`.

    Args:
        mod (Module): The other one.

    Example:
        >>> from mica.distributed.algorithms._checkpoint.checkpoint_wrapper import ActivationWrapper
        >>> block = ActivationWrapper(mica.nn.Linear(2, 3))
        >>> block.in_features
        2
        >>> sorted(block.state_dict())
        ['bias', 'weight']
    """

    def __init__(self, mod: nn.Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._drop_prefix)
        self.register_load_state_dict_pre_hook(self._add_prefix)

    @staticmethod
    def _drop_prefix(module: nn.Module, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        _rename(state_dict, prefix + _PREFIX, prefix)

    @staticmethod
    def _add_prefix(module: nn.Module, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        _rename(state_dict, prefix, prefix + _PREFIX)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_checkpoint_wrapped_module"), name)

    def __getitem__(self, key: Any) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Gives the parameters by the names that they have without the wrapper.

        Args:
            args (Any): Those of `Module.named_parameters`.
            kwargs (Any): Those of `Module.named_parameters`.

        Returns:
            iterator: Of (name, Parameter).
        """
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter


class OffloadWrapper(ActivationWrapper):
    """A module that keeps what it saves for backward on the CPU.

    As `torch.distributed.algorithms._checkpoint.checkpoint_wrapper.OffloadWrapper`.

    Args:
        mod (Module): The module.

    Example:
        >>> from mica.distributed.algorithms._checkpoint.checkpoint_wrapper import OffloadWrapper
        >>> block = OffloadWrapper(mica.nn.Tanh())
        >>> x = mica.zeros(2, requires_grad=True)
        >>> block(x).sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module.

        Args:
            args (Any): The module's.
            kwargs (Any): The module's.

        Returns:
            object: What the module gives.
        """
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module that computes its forward anew in backward.

    As `torch.distributed.algorithms._checkpoint.checkpoint_wrapper.CheckpointWrapper`.

    Args:
        mod (Module): The module.
        checkpoint_impl (CheckpointImpl): How. Default: CheckpointImpl.NO_REENTRANT.
        checkpoint_fn (callable, optional): Called as `checkpoint_fn(mod, *args, **kwargs)` in the place of
            `mica.utils.checkpoint.checkpoint`. Default: None.
        checkpoint_fn_kwargs (Any): Further arguments of each of these calls.

    Example:
        >>> from mica.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper
        >>> block = CheckpointWrapper(mica.nn.Sequential(mica.nn.Linear(2, 3), mica.nn.ReLU()))
        >>> x = mica.ones(1, 2, requires_grad=True)
        >>> block(x).sum().backward()
        >>> x.grad.shape
        mica.Size([1, 2])
    """

    def __init__(
        self,
        mod: nn.Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = functools.partial(
                checkpoint, use_reentrant=checkpoint_impl is CheckpointImpl.REENTRANT
            )
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module, and keeps its inputs alone for backward.

        Args:
            args (Any): The module's.
            kwargs (Any): The module's.

        Returns:
            object: What the module gives.
        """
        if self.checkpoint_impl is CheckpointImpl.REENTRANT and kwargs:
            names = list(kwargs)

            def call(*flat: Any) -> Any:
                split = len(flat) - len(names)
                return self._checkpoint_wrapped_module(*flat[:split], **dict(zip(names, flat[split:])))

            return self.checkpoint_fn(call, *args, *kwargs.values())
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


def offload_wrapper(module: nn.Module) -> nn.Module:
    """Wraps a module so that it keeps what it saves for backward on the CPU.

    As `torch.distributed.algorithms._checkpoint.checkpoint_wrapper.offload_wrapper`.

    Args:
        module (Module): The module.

    Returns:
        Module: The wrapper.

    Example:
        >>> from mica.distributed.algorithms._checkpoint.checkpoint_wrapper import offload_wrapper
        >>> block = offload_wrapper(mica.nn.Linear(2, 3))
        >>> type(block).__name__
        'OffloadWrapper'
    """
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: nn.Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> nn.Module:
    """Wraps a module so that it computes its forward anew in backward.

    As `torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper`.

    Args:
        module (Module): The module.
        checkpoint_impl (CheckpointImpl): How. Default: CheckpointImpl.NO_REENTRANT.
        checkpoint_fn (callable, optional): Called in the place of `mica.utils.checkpoint.checkpoint`. Default: None.
        checkpoint_fn_kwargs (Any): Further arguments of each of these calls.

    Returns:
        Module: The wrapper.

    Example:
        >>> from mica.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
        >>> block = checkpoint_wrapper(mica.nn.Linear(2, 3))
        >>> sorted(block.state_dict())
        ['bias', 'weight']
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: nn.Module,
    checkpoint_wrapper_fn: Callable[[nn.Module], nn.Module] = checkpoint_wrapper,
    check_fn: Callable[[nn.Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:
    """Wraps modules within a model, the innermost first, and not the model itself.

    As `torch.distributed.algorithms._checkpoint.checkpoint_wrapper.apply_activation_checkpointing`.

    Args:
        model (Module): Changed in place.
        checkpoint_wrapper_fn (callable): Gives the wrapper of a module. Default: checkpoint_wrapper.
        check_fn (callable): Whether a module is to be wrapped. Default: all are.
        auto_wrap_policy (callable, optional): Policies of FSDP are not there. Default: None.

    Raises:
        NotImplementedError: A policy is given.

    Example:
        >>> from mica.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
        >>> model = mica.nn.Sequential(mica.nn.Linear(2, 3), mica.nn.ReLU())
        >>> apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, mica.nn.Linear))
        >>> [type(m).__name__ for m in model]
        ['CheckpointWrapper', 'ReLU']
    """
    if auto_wrap_policy is not None:
        raise NotImplementedError(
            "apply_activation_checkpointing(auto_wrap_policy=...) is not there, as FSDP is not; say by `check_fn` which "
            "modules are to be wrapped."
        )
    for name, child in list(model.named_children()):
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn)
        if check_fn(child):
            setattr(model, name, checkpoint_wrapper_fn(child))
