"""Names of torch._C that mean something only there: dispatch keys and queries."""

from __future__ import annotations

import contextlib
from typing import Any

import mica
from mica import _C


class _Unasked:
    """torch._C._disabled_torch_function_impl: as the `__torch_function__` of a class, calls see plain tensors."""

    def __call__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


disabled_function = _Unasked()


def default_device_type() -> str:
    """The type of the default device, as a string."""
    return str(mica.empty(0).device.type)


def accelerator_or_cpu() -> Any:
    """The accelerator's device, or the CPU's without one."""
    return mica.accelerator.current_accelerator() or mica.device("cpu")


def _are_functorch_transforms_active() -> bool:
    """Whether vmap, grad or another transform runs on this thread."""
    return _C._frame_depth() > 0


class DispatchKeySet(frozenset):  # type: ignore[type-arg]
    """A set of names of torch's dispatch keys, which Mica has no use for; for `|` and guards."""

    def __new__(cls, keys: Any = ()) -> DispatchKeySet:
        return super().__new__(cls, keys if isinstance(keys, (set, frozenset, tuple, list)) else (keys,))

    def __or__(self, other: Any) -> DispatchKeySet:
        return DispatchKeySet(super().__or__(other))


class IncludeDispatchKeyGuard(contextlib.AbstractContextManager[None]):
    """A context over a set of torch's dispatch keys. Mica's layers are others: no key is nothing to do,
    any other raises."""

    def __init__(self, keys: Any) -> None:
        named = [k for k in DispatchKeySet(keys) if getattr(k, "name", str(k)) != "Undefined"]
        if named:
            raise NotImplementedError(
                f"{type(self).__name__} is asked for torch's dispatch keys {named}, which Mica does not have; "
                "its layers are switched by no_grad(), autocast() and the modes of mica.utils._python_dispatch."
            )

    def __exit__(self, *error: object) -> None:
        return None


class ExcludeDispatchKeyGuard(IncludeDispatchKeyGuard):
    """The same for keys to leave out."""
