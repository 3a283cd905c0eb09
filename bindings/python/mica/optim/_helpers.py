"""What optimizers written elsewhere import from torch.optim.optimizer, by torch's names.

Mica's own need none of it: they are operators over lists (_steps.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.optim._steps import check_fused as _device_dtype_check_for_fused, step_dtype

__all__ = ["_device_dtype_check_for_fused"]


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step with gradients recorded where the optimizer is differentiable, and not elsewhere."""

    @functools.wraps(step)
    def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
        with mica.set_grad_enabled(self.defaults["differentiable"]):
            return step(self, *args, **kwargs)

    return stepped


def _get_value(x: Any) -> Any:
    """The number of a tensor, other values as they are."""
    return x.item() if isinstance(x, Tensor) else x


def _dispatch_sqrt(x: Any) -> Any:
    """The square root of a number or of a tensor."""
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _stack_if_compiling(x: Any) -> Any:
    """Its argument, since nothing compiles."""
    return x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without dimensions, other values as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Puts complex parameters of a list, and what goes with them, as pairs of numbers in their place."""
    for i, p in enumerate(params):
        for column in (params, *state_and_grads) if p.is_complex() else ():
            column[i] = mica.view_as_real(column[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> mica.dtype:
    """The dtype of counts of steps."""
    return mica.float32 if is_fused else step_dtype()


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Types of devices that capture graphs of steps."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Types of devices whose lists of tensors are worth an operator."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Types of devices whose steps are one operator."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _default_to_fused_or_foreach(
    params: list[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Which of the two ways an optimizer takes that has both and was told neither."""
    given = [p for p in params if p is not None]

    def on(devices: list[str]) -> bool:
        return all(p.device.type in devices for p in given)

    if differentiable:
        return False, False
    floating = all(p.is_floating_point() for p in given)
    fused = use_fused and floating and on(_get_fused_kernels_supported_devices())
    return fused, not fused and on(_get_foreach_kernels_supported_devices())


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """A decorator that changes nothing, since nothing compiles."""
    return lambda function: function
