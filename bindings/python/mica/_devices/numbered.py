"""What the functions of a backend's module ask first: its name, is there a device, and which one is meant."""

from __future__ import annotations

from mica import _C

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any


class NoDeviceError(AssertionError, RuntimeError):
    """A backend is named that no plugin provides; both of the kinds that torch raises then."""


class WrongDeviceError(RuntimeError, ValueError):
    """A function of one backend gets the device of another; of the kinds that torch's functions raise then."""


def python_name(backend: str) -> str:
    """How Python spells a backend's name: "acme_npu" of "acme.npu".

    Args:
        backend (str): The name.

    Returns:
        str: A name of Python's.

    Example:
        >>> mica.library.python_name("acme.npu")
        'acme_npu'
    """
    return backend.replace(".", "_").replace("-", "_")


def present(backend: str) -> bool:
    """Whether the backend has a device; its plugin is opened."""
    return _C._device_count(backend) > 0


def needed(backend: str) -> None:
    """Raises NoDeviceError where the backend has no device."""
    if not present(backend):
        raise NoDeviceError(
            f"No plugin provides a device of the backend '{backend}'; mica.plugins() lists what is loaded."
        )


def numbered(backend: str, device: Any) -> Any:
    """The backend's device of a number, a name or a device; the current one where no number is given."""
    if device is None:
        device = _C._current_device_number(backend)
    if isinstance(device, int):
        return _C.device(f"{backend}:{device}")
    named = device if isinstance(device, _C.device) else _C.device(device)
    if named.type != backend:
        raise WrongDeviceError(
            f"Invalid device, must be {backend} device: the device ({named}) is of another backend; x.to('{named}') "
            "moves a tensor there."
        )
    return numbered(backend, None) if named.index is None else named
