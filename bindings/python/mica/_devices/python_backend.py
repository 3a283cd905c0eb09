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
    """The backend `name` with `count` devices, until it is disabled.

    >>> npu = mica.library.register_device("toy.npu")
    >>> @npu.kernel("mul.out")
    ... def mul(self, other, *, out):
    ...     np.multiply(self, other, out=out)
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
        """Registers a function as the backend's kernel of `operator`, best an out form ("add.out").

        Tensor arguments come as NumPy arrays, outputs of an out form ready to be written among
        them. The function of an operator whose result's size depends on data returns its results.
        NotImplementedError sends the call to the CPU.
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
    """A new backend in Python; its kernels are registered with Device.kernel."""
    return Device(name, count)
