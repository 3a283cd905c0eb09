"""A backend in Python, for tests and simulators: memory on the host, kernels as functions
over NumPy arrays. What has no kernel runs on the CPU, as for every backend."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import mica
from mica import _C
from mica._C import Tensor


def _to_array(value: Any) -> Any:
    """A tensor of the device as a NumPy array over its memory; other values as they are."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return [_to_array(v) for v in value]
    if not isinstance(value, Tensor):
        return value
    try:
        return _C._as_host(value.detach()).numpy()
    except TypeError as error:  # a dtype that NumPy lacks
        raise NotImplementedError(str(error)) from error


def _check_parameters(operator: str, function: Callable[..., Any]) -> None:
    """Whether the function can be called as a kernel of the operator is."""
    schema = _C._find_operator(operator)
    arguments = schema._schema_info()[0]
    positional = [name for name, _, keyword, _ in arguments if not keyword]
    keywords = {name: None for name, _, keyword, _ in arguments if keyword}
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function without one, of C
        return
    try:
        signature.bind(*positional, **keywords)
    except TypeError as error:
        raise TypeError(
            f"The kernel {getattr(function, '__name__', function)}{signature} does not fit its operator, "
            f"{schema.schema}: {error}; expected a function of {len(positional)} positional arguments and "
            f"the keywords ({', '.join(keywords)})."
        ) from None


# Those that are registered. A program need not keep what register_device gives.
_registered: dict[str, Device] = {}


class Device:
    """A backend in Python, for tests and simulators: memory on the host, kernels over NumPy arrays.

    An operator without a kernel of the backend runs on the CPU. `docs/guides/write-a-backend.md` tells
    how a backend for hardware is made.

    Args:
        name (str): The device type, such as "toy.npu" for `device="toy.npu:0"`.
        count (int): How many devices it has. Default: 1.

    Attributes:
        name (str): The device type.

    Raises:
        RuntimeError: A backend of this name is registered.

    Example:
        >>> import numpy as np
        >>> npu = mica.library.Device("toy.npu")
        >>> @npu.kernel("mul.out")
        ... def mul(self, other, *, out):
        ...     np.multiply(self, other, out=out)
        >>> mica.ones(2, device="toy.npu") * 3
        tensor([3., 3.], device='toy.npu:0')
        >>> npu.disable()
    """

    def __init__(self, name: str, count: int = 1) -> None:
        if name in _registered:
            raise RuntimeError(
                f"A backend of the name ({name}) is registered already; disable that one first, with its "
                "method disable(), or choose another name."
            )
        self.name = name
        self._scopes: list[Any] = [_C._Scope(f"python device {name}")]
        self._scopes[0].add_device(name, count)
        self._scopes[0].commit()
        _registered[name] = self

    def kernel(self, operator: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Registers the decorated function as the backend's kernel of an operator, best of an out form ("add.out").

        Tensor arguments come as NumPy arrays; of an out form the outputs too, which the function writes. An
        operator whose result's size depends on data returns its results. A kernel that raises
        NotImplementedError sends the call to the CPU.

        Args:
            operator (str): The operator, with its overload: "mul.out", or "acme::blur" of another namespace.

        Returns:
            callable: The decorator; it returns the function as it is.

        Raises:
            TypeError: When it decorates: the function cannot be called with the operator's arguments.
        """
        place = sys._getframe(1)

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            _check_parameters(operator, function)

            def call(*args: Any, **kwargs: Any) -> Any:
                device = next((a.device for a in args if isinstance(a, Tensor)), self.name)
                result = function(*map(_to_array, args), **{k: _to_array(v) for k, v in kwargs.items()})
                return self._to_result(result, device)

            scope = _C._Scope(f"python device {self.name}")
            scope.add_leaf(operator, self.name, call, place.f_code.co_filename, place.f_lineno)
            scope.commit()
            self._scopes.append(scope)
            return function

        return register

    def disable(self) -> None:
        """Takes the device out of the dispatcher. Its name may be registered again."""
        for scope in reversed(self._scopes):
            scope.disable()
        _registered.pop(self.name, None)

    def _to_result(self, value: Any, device: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(self._to_result(v, device) for v in value)
        if type(value).__module__ == "numpy" and hasattr(value, "dtype"):
            return mica.as_tensor(value).to(device)
        return value


def register_device(name: str, count: int = 1) -> Device:
    """Registers a backend in Python; `Device.kernel` adds its kernels.

    Args:
        name (str): The device type, such as "sim.npu" for `device="sim.npu:0"`.
        count (int): How many devices it has. Default: 1.

    Returns:
        Device: The backend.

    Raises:
        RuntimeError: A backend of this name is registered.

    Example:
        >>> npu = mica.library.register_device("sim.npu", count=2)
        >>> mica.device_count("sim.npu")
        2
        >>> (mica.ones(2, device="sim.npu:1") + 1).device  # no kernel: the CPU computes
        device(type='sim.npu', index=1)
        >>> npu.disable()
    """
    return Device(name, count)
