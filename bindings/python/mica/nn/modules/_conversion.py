"""What Module inherits to move its parameters and buffers to other dtypes, devices and layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import mica
from mica import _C, __future__ as settings
from mica._C import Tensor
from mica.nn.parameter import Parameter, is_lazy

T = TypeVar("T", bound="Convertible")


def _device(backend: str, device: Any) -> Any:
    """The device that a method named after a backend means: its first, that of a number, or the one given."""
    return backend if device is None else f"{backend}:{device}" if isinstance(device, int) else device


def parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, non_blocking and memory format that the arguments of Module.to() name; None: not named."""
    memory_format = kwargs.pop("memory_format", None)
    non_blocking = bool(kwargs.get("non_blocking", False))
    probe = mica.empty(0).to(*args, **kwargs)
    named = [*args, *kwargs.values()]
    device = any(isinstance(a, (mica.device, str, Tensor)) for a in named)
    numbered = bool(args) and isinstance(args[0], int) and not isinstance(args[0], bool)
    dtype = any(isinstance(a, (mica.dtype, Tensor)) for a in named)
    flags = [a for a in args[1:] if isinstance(a, bool)]
    return (
        probe.device if device or numbered else None,
        probe.dtype if dtype else None,
        flags[0] if flags else non_blocking,
        memory_format,
    )


def _converted(parameter: Any, convert: Callable[[Tensor], Tensor]) -> Any:
    """The parameter with other data, or a new one where it cannot keep its object or shall not."""
    overwrites = settings.get_overwrite_module_params_on_conversion()
    with mica.no_grad():
        data = convert(parameter)
        if data is parameter and not overwrites:
            return parameter
        grad = None if parameter.grad is None else convert(parameter.grad)
    if is_lazy(parameter) and data.device != parameter.device:
        target = parameter.like(data)
    elif data.device == parameter.device and not overwrites:
        parameter.data = data
        target = parameter
    else:
        target = Parameter(data, parameter.requires_grad)
    if grad is not None:
        target.grad = grad
    return target


def _swap(parameter: Any, convert: Callable[[Tensor], Tensor], name: str) -> None:
    """Lets the parameter, and its gradient, become what they are converted to."""
    with mica.no_grad():
        grad, parameter.grad = parameter.grad, None  # which would be held twice
        try:
            _C._swap_tensors(parameter, Parameter(convert(parameter), parameter.requires_grad))
            if grad is not None:
                _C._swap_tensors(grad, convert(grad).detach().requires_grad_(grad.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {name}.") from error
        finally:
            parameter.grad = grad


class Convertible:
    """The methods to(), half(), cuda() and their like; all go through _apply()."""

    if TYPE_CHECKING:
        _parameters: dict[str, Any]
        _buffers: dict[str, Any]
        children: Callable[[], Any]

    def _apply(self: T, convert: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        for module in self.children() if recurse else ():
            module._apply(convert)
        swaps = settings.get_swap_module_params_on_conversion()
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            if swaps and not is_lazy(parameter):
                _swap(parameter, convert, f"{type(self).__name__}.{name}")
            else:
                self._parameters[name] = _converted(parameter, convert)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                data = convert(buffer)
                self._buffers[name] = buffer.like(data) if is_lazy(buffer) else data
        return self

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Moves or converts the parameters and buffers, here and below, in place.

        The forms are `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`, which takes device and
        dtype of the tensor, and `to(memory_format=...)`. Integral buffers keep their dtype.

        Args:
            *args (Any): A device, a dtype or both; or a tensor.
            **kwargs (Any): The same by name: `device`, `dtype`, `non_blocking` and `memory_format`, which
                parameters of 4 and 5 dimensions take.

        Returns:
            Module: This module.

        Raises:
            TypeError: The dtype is neither floating nor complex, or the arguments have none of the forms.
            RuntimeError: The device is unknown.

        Example:
            >>> mica.nn.Linear(2, 3).to(mica.float64).weight.dtype
            mica.float64
        """
        device, dtype, _, memory_format = parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"A module's parameters can be of floating or complex dtypes only; to() was given ({dtype})."
            )

        def convert(t: Tensor) -> Tensor:
            floating = t.is_floating_point() or t.is_complex()
            to_dtype = dtype if dtype is not None and floating else t.dtype
            to_device = t.device if device is None else device
            if memory_format is not None and t.ndim in (4, 5):
                return t.to(to_device, to_dtype, memory_format=memory_format)
            return t.to(to_device, to_dtype)

        return self._apply(convert)

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """Moves the parameters and buffers to a device without their values, which are then undefined.

        Args:
            device (device): Where to.
            recurse (bool): Whether those of submodules move, too. Default: True.

        Returns:
            Module: This module.
        """
        return self._apply(lambda t: mica.empty_like(t, device=device), recurse)

    def cuda(self: T, device: Any = None) -> T:
        """Moves the parameters and buffers, here and below, to a CUDA device.

        Args:
            device (int or device, optional): Which. Default: the current one.

        Returns:
            Module: This module.

        Raises:
            RuntimeError: There is no such device.
        """
        return self._apply(lambda t: t.cuda(device))

    def xpu(self: T, device: Any = None) -> T:
        """Moves the parameters and buffers, here and below, to a device of the backend "xpu".

        Args:
            device (int or device, optional): Which. Default: the current one.

        Returns:
            Module: This module.

        Raises:
            RuntimeError: There is no such device.
        """
        return self._apply(lambda t: t.xpu(device))

    def ipu(self: T, device: Any = None) -> T:
        """Moves the parameters and buffers, here and below, to a device of the backend "ipu".

        Args:
            device (int or device, optional): Which. Default: the first.

        Returns:
            Module: This module.

        Raises:
            RuntimeError: There is no such device.
        """
        return self._apply(lambda t: t.to(_device("ipu", device)))

    def mtia(self: T, device: Any = None) -> T:
        """Moves the parameters and buffers, here and below, to a device of the backend "mtia".

        Args:
            device (int or device, optional): Which. Default: the first.

        Returns:
            Module: This module.

        Raises:
            RuntimeError: There is no such device.
        """
        return self._apply(lambda t: t.to(_device("mtia", device)))

    def cpu(self: T) -> T:
        """Moves the parameters and buffers, here and below, to the CPU."""
        return self._apply(lambda t: t.cpu())

    def _cast(self: T, dtype: Any) -> T:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self: T) -> T:
        """Converts floating parameters and buffers, here and below, to float32."""
        return self._cast(mica.float32)

    def double(self: T) -> T:
        """Converts floating parameters and buffers, here and below, to float64."""
        return self._cast(mica.float64)

    def half(self: T) -> T:
        """Converts floating parameters and buffers, here and below, to float16."""
        return self._cast(mica.float16)

    def bfloat16(self: T) -> T:
        """Converts floating parameters and buffers, here and below, to bfloat16."""
        return self._cast(mica.bfloat16)

    def type(self: T, dst_type: Any) -> T:
        """Converts all parameters and buffers, here and below, integral ones too, to a dtype.

        Args:
            dst_type (dtype or str): The dtype, or the name of a tensor type.

        Returns:
            Module: This module.
        """
        return self._apply(lambda t: t.type(dst_type))
