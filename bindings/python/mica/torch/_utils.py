"""torch._utils: flat views of many tensors, and devices by number."""

from __future__ import annotations

import sys
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica._devices import modules as _modules
from mica._devices.numbered import python_name


def _flatten_dense_tensors(tensors: Any) -> Tensor:
    """All elements of the tensors, one after the other."""
    return mica.cat([t.reshape(-1) for t in tensors]) if tensors else mica.empty(0)


def _unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """Views of `flat` shaped as the tensors that it was made of."""
    parts, start = [], 0
    for t in tensors:
        parts.append(flat.narrow(0, start, t.numel()).view_as(t))
        start += t.numel()
    return tuple(parts)


def _element_size(dtype: Any) -> int:
    """The bytes of an element."""
    return mica.empty(0, dtype=dtype).element_size()


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device given as a number, a string or a device."""
    if isinstance(device, int):
        return device
    if device is None:
        return 0
    index = mica.device(device).index
    return -1 if mica.device(device).type == "cpu" else index if index is not None else 0


def _get_available_device_type() -> str | None:
    """The accelerator's type, or None."""
    found = mica.accelerator.current_accelerator(check_available=True)
    return found.type if found is not None else None


def is_privateuse1_backend_available() -> bool:
    """Whether the program's own backend has a module of functions that says that a device is there."""
    found = _modules.find(python_name(_C._private_backend()))
    return found is not None and hasattr(found, "is_available") and bool(found.is_available())


def get_device_module(device: Any = None) -> Any:
    """The module of a device's backend; without a device the accelerator's, torch.cpu where there is none."""
    from mica.torch._modules import module

    kind = mica.device(device).type if device is not None else _get_available_device_type() or "cpu"
    try:
        return getattr(module("torch"), python_name(kind))
    except AttributeError:
        raise RuntimeError(f"The backend ({kind}) has no module of functions; torch.cpu is one.") from None


def register_device_module(device_type: str, device_module: Any) -> None:
    """Gives a backend a module of the program's own; see mica._devices.modules.register."""
    from mica.torch._modules import module

    _modules.register(device_type, device_module)
    name = python_name(mica.device(device_type).type)
    setattr(module("torch"), name, device_module)
    sys.modules[f"torch.{name}"] = device_module
