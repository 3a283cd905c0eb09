"""torch._utils: flat views of many tensors, and devices by number."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor


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


def get_device_module(device: Any = None) -> Any:
    """The module of a device's backend, torch.cpu without an accelerator."""
    from mica.torch._modules import module

    if device is None:
        accelerator = mica.accelerator.current_accelerator(check_available=True)
        kind = accelerator.type if accelerator is not None else "cpu"
    else:
        kind = str(device).partition(":")[0]
    try:
        return module(f"torch.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(f"The backend ({kind}) has no module of functions; torch.cpu is one.") from None
