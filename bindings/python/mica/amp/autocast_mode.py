"""autocast: operators run in the dtype that their entry asks for (`autocast:` in
native_functions.yaml), with torch.amp's names and meanings."""

from __future__ import annotations

import functools

import mica
from mica import _C
from mica._functions.grad_mode import _Mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


# Accelerators that programs of torch name without asking whether there is one.
_NAMED = {"cuda": "float16", "xpu": "bfloat16", "mps": "float16", "mtia": "bfloat16", "hpu": "bfloat16"}


def _absent(device_type: str | None) -> bool:
    """Whether it is one of those, and no plugin provides it."""
    return device_type in _NAMED and _C._device_count(device_type) == 0


def is_autocast_available(device_type: str) -> bool:
    """Whether a plugin provides the device type: every device has autocast."""
    return _C._device_count(device_type) > 0


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is on in this thread for `device_type`; without it, for any device."""
    if device_type is None:
        return bool(_C._is_any_autocast_enabled())
    if _absent(device_type):
        return False
    return bool(_C._get_autocast(device_type)[0])


def get_autocast_dtype(device_type: str) -> mica.dtype:
    """The lower dtype that autocast uses on `device_type`."""
    if _absent(device_type):
        return getattr(mica, _NAMED[device_type])  # type: ignore[no-any-return]
    return _C._get_autocast(device_type)[1]  # type: ignore[no-any-return]


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Switches autocast of this thread on or off."""
    _C._set_autocast(device_type, enabled, get_autocast_dtype(device_type))


def set_autocast_dtype(device_type: str, dtype: mica.dtype) -> None:
    """Sets the lower dtype, float16 or bfloat16, of `device_type`."""
    _C._set_autocast(device_type, is_autocast_enabled(device_type), dtype)


class autocast(_Mode):
    """Inside, operators run in the dtype that suits each: products and convolutions in `dtype`,
    operators that need range or precision in float32, others as they are.

    device_type: "cpu" or another device's. dtype: float16 or bfloat16; by default the thread's
    (bfloat16 on the CPU, float16 elsewhere). enabled=False switches it off inside an outer
    one; on "cuda" and its like without a plugin it is off, with a warning. cache_enabled: whether a parameter's cast is kept until the outermost context ends.
    Use it for the forward pass and the loss; gradients come in each input's own dtype. Also a
    decorator. As torch.autocast.

    ValueError: an unknown device type, or a dtype that is no lower one.
    """

    def __init__(
        self,
        device_type: str,
        dtype: mica.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(
                f"The device type ({device_type!r}) of autocast is no string; expected 'cpu', 'cuda', …"
            )
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = bool(enabled)
        self._absent = _absent(device_type)
        why = ""
        if self._absent:
            why = f"User provided device_type of '{device_type}', but no plugin provides it."
        elif self.fast_dtype not in (mica.float16, mica.bfloat16):
            why = f"Autocast casts to mica.float16 or mica.bfloat16, and the dtype is ({self.fast_dtype})."
            self._enabled, self.fast_dtype = False, get_autocast_dtype(device_type)
        if why and enabled:
            import warnings

            warnings.warn(f"{why} Disabling autocast.", UserWarning, stacklevel=2)
        self._cache_enabled = cache_enabled
        self._outer: list[tuple[bool, mica.dtype, bool]] = []

    def _fresh(self) -> autocast:
        return autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled)

    def __enter__(self) -> autocast:
        if self._absent:
            return self
        self._outer.append((*_C._get_autocast(self.device), _C.is_autocast_cache_enabled()))
        _C._set_autocast(self.device, self._enabled, self.fast_dtype)
        if self._cache_enabled is not None:
            _C.set_autocast_cache_enabled(self._cache_enabled)
        _C._enter_autocast()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._absent:
            return
        enabled, dtype, cache = self._outer.pop()
        _C._leave_autocast()
        _C._set_autocast(self.device, enabled, dtype)
        _C.set_autocast_cache_enabled(cache)


def _cast(value: Any, device_type: str, dtype: mica.dtype) -> Any:
    """`value` with its floating tensors on the device in `dtype`; float64 stays."""
    if isinstance(value, mica.Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type
        return value.to(dtype) if eligible and value.dtype != mica.float64 else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        made = [_cast(v, device_type, dtype) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: mica.dtype | None = None
) -> Any:
    """Decorates the forward of an autograd.Function: with `cast_inputs`, inside autocast, its
    tensors come in that dtype and autocast is off; without, it runs under autocast as it is."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        on = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorates the backward of an autograd.Function whose forward has custom_fwd: it runs with
    autocast as the forward did."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward
