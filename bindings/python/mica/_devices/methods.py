"""Methods that are called as a backend: x.acme(), x.is_acme, module.acme(), for every backend that is known.

A class follows the backends' names: it gets the methods of those that are known, and of each that becomes known
later, when its plugin is found (the first call of an operator looks), loaded or named. What a class has of such a
name stays.
"""

from __future__ import annotations

import sys

from mica import _C
from mica._devices.numbered import needed, numbered, python_name

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mica._C import Tensor

    Maker = Callable[[str], dict[str, Any]]

_following: list[tuple[type, Maker]] = []


def follow(of: type, make: Maker, always: tuple[str, ...] = ()) -> None:
    """Gives a class what `make` makes of each backend's name, now and later; of `always` also without a plugin."""
    _following.append((of, make))
    for backend in (*always, *_known()):
        _add(of, make(backend))


def note() -> None:
    """Called when there may be more backends."""
    for backend in _known():
        for of, make in _following:
            _add(of, make(backend))
    table = sys.modules.get("mica._torch_names.table")
    if table is not None:  # which may have been asked for one of their modules, in vain
        table.real_modules.cache_clear()


def _known() -> list[str]:
    """The backends that are known without looking for more, which would open those of MICA_PLUGINS."""
    names: list[str] = _C._known_backends(None)
    return names[2:]


def _add(of: type, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        if not hasattr(of, name):
            setattr(of, name, value)


def _named(function: Any, backend: str) -> Any:
    name = python_name(backend)
    function.__name__ = name
    function.__qualname__ = function.__qualname__.partition(".")[0] + "." + name
    function.__doc__ = (function.__doc__ or "").replace("BACKEND", backend).replace("NAME", name)
    return function


def to_backend(backend: str) -> Any:
    """Tensor.NAME."""

    def move(
        self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
    ) -> Tensor:
        """Returns the tensor on a device of the backend "BACKEND".

        As `torch.Tensor.NAME`.

        Args:
            device (int, str or device, optional): The device. Default: None, the current one.
            non_blocking (bool): Does not wait for a copy from pinned memory. Default: False.
            memory_format (memory_format, optional): The result's. Default: None, this tensor's.

        Returns:
            Tensor: The copy; the tensor itself if it is there.

        Raises:
            RuntimeError: There is no such device, or it is of another backend.

        Example:
            >>> x = mica.ones(2).NAME() if mica.device_count("BACKEND") else mica.ones(2)
        """
        needed(backend)
        options = {} if memory_format is None else {"memory_format": memory_format}
        return self.to(numbered(backend, device), non_blocking=non_blocking, **options)

    move.__module__ = "mica"  # where pickle finds Tensor.NAME
    return _named(move, backend)


def is_on(backend: str) -> property:
    """Tensor.is_NAME, and that of what has a `device`."""
    return property(lambda self: self.device.type == backend, doc=f"Whether it is on a {backend} device.")


def of_tensor(backend: str) -> dict[str, Any]:
    """What Tensor has of each backend."""
    name = python_name(backend)
    return {name: to_backend(backend), f"is_{name}": is_on(backend)}


class _ModuleMethod:
    """A method that gives way to a parameter, buffer or submodule of its name."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, module: Any, owner: Any = None) -> Any:
        if module is None:
            return self.function
        for held in ("_parameters", "_buffers", "_modules"):
            if self.function.__name__ in (found := module.__dict__.get(held) or {}):
                return found[self.function.__name__]
        return self.function.__get__(module, owner)


def of_module(backend: str) -> dict[str, Any]:
    """What nn.Module has of each backend."""
    to = to_backend(backend)

    def move(self: Any, device: Any = None) -> Any:
        """Moves the parameters and buffers, here and below, to a device of the backend "BACKEND".

        Args:
            device (int or device, optional): Which. Default: the current one.

        Returns:
            Module: This module.

        Raises:
            RuntimeError: There is no such device.
        """
        return self._apply(lambda t: to(t, device))

    return {python_name(backend): _ModuleMethod(_named(move, backend))}


def of_packed(backend: str) -> dict[str, Any]:
    """What nn.utils.rnn.PackedSequence has of each backend."""

    def move(self: Any, *args: Any, **kwargs: Any) -> Any:
        """The same on a device of the backend "BACKEND".

        Args:
            *args: As `Tensor.to` takes them after a device.
            **kwargs: As `Tensor.to` takes them.

        Returns:
            PackedSequence: Itself where it is there already.
        """
        return self.to(backend, *args, **kwargs)

    on = property(
        lambda self: self.data.device.type == backend, doc=f"Whether the data is on a {backend} device."
    )
    return {python_name(backend): _named(move, backend), f"is_{python_name(backend)}": on}


def of_storage(backend: str) -> dict[str, Any]:
    """What storages have of each backend."""

    def move(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        """Copies the storage to a device of the backend "BACKEND".

        Args:
            device (int or device, optional): Which. Default: the current one.
            non_blocking (bool): Ignored. Default: False.

        Returns:
            TypedStorage or UntypedStorage: The copy; itself if it is there.

        Raises:
            RuntimeError: There is no such device.
        """
        needed(backend)
        return self.to(device=numbered(backend, device))

    return {python_name(backend): _named(move, backend), f"is_{python_name(backend)}": is_on(backend)}
