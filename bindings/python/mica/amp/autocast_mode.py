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
    """Returns whether autocast works for a type of device: whether a plugin provides it.

    As `torch.amp.is_autocast_available`.

    Args:
        device_type (str): Type of device, such as "cpu" or "cuda".

    Returns:
        bool: True if it is there.

    Example:
        >>> mica.amp.is_autocast_available("cpu")
        True
    """
    return _C._device_count(device_type) > 0


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Returns whether autocast is on in this thread.

    As `torch.is_autocast_enabled`.

    Args:
        device_type (str, optional): Type of device. Default: any of them.

    Returns:
        bool: True if it is on.

    Example:
        >>> with mica.autocast("cpu"):
        ...     mica.is_autocast_enabled("cpu")
        True
    """
    if device_type is not None and _absent(device_type):
        return False
    return bool(_C._autocast_enabled(device_type))


def get_autocast_dtype(device_type: str) -> mica.dtype:
    """Returns the lower dtype that autocast uses on a type of device.

    As `torch.get_autocast_dtype`: bfloat16 on the CPU, float16 on CUDA, unless set otherwise.

    Args:
        device_type (str): Type of device, such as "cpu" or "cuda".

    Returns:
        dtype: The dtype.

    Example:
        >>> mica.get_autocast_dtype("cpu")
        mica.bfloat16
    """
    if _absent(device_type):
        return getattr(mica, _NAMED[device_type])  # type: ignore[no-any-return]
    return _C._autocast_dtype(device_type)  # type: ignore[no-any-return]


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Switches autocast on or off for the rest of this thread; prefer `autocast`, which switches it back.

    As `torch.set_autocast_enabled`.

    Args:
        device_type (str): Type of device, such as "cpu".
        enabled (bool): Whether it is on.

    Example:
        >>> mica.set_autocast_enabled("cpu", True)
        >>> (mica.ones(2, 2) @ mica.ones(2, 2)).dtype
        mica.bfloat16
        >>> mica.set_autocast_enabled("cpu", False)
    """
    _C._set_autocast(device_type, enabled, get_autocast_dtype(device_type))


def set_autocast_dtype(device_type: str, dtype: mica.dtype) -> None:
    """Sets the lower dtype that autocast uses in this thread where it is not told another.

    As `torch.set_autocast_dtype`.

    Args:
        device_type (str): Type of device, such as "cpu".
        dtype (dtype): float16 or bfloat16.

    Raises:
        ValueError: Another dtype.

    Example:
        >>> mica.set_autocast_dtype("cpu", mica.float16)
        >>> mica.get_autocast_dtype("cpu")
        mica.float16
        >>> mica.set_autocast_dtype("cpu", mica.bfloat16)
    """
    _C._set_autocast(device_type, is_autocast_enabled(device_type), dtype)


class autocast(_Mode):
    """Runs each operator inside in the dtype that suits it: matrix products and convolutions in a lower one.

    As `torch.autocast`, a context manager or a decorator. Operators that need range or precision run in
    float32: losses everywhere, on accelerators also `exp`, `sum`, `softmax` and norms. Others run in
    the dtype of their inputs, and float64 stays. Use it for the forward pass and the loss, not for
    `backward()`: gradients come in the dtype of each input.

    Args:
        device_type (str): Type of device whose operators are meant, such as "cpu" or "cuda".
        dtype (dtype, optional): The lower dtype, float16 or bfloat16; with another one autocast warns
            and is off. Default: `get_autocast_dtype(device_type)`.
        enabled (bool): False switches autocast off inside an outer block. Default: True.
        cache_enabled (bool, optional): Keep a parameter's cast for later uses, until the outermost
            block ends. Default: as it is around the block, True at first.

    Raises:
        ValueError: `device_type` is no type of device. Where a known one ("cuda") is absent, it warns
            and is off.

    Example:
        >>> x = mica.ones(2, 2)
        >>> with mica.autocast("cpu"):
        ...     y = x @ x
        ...     print(y.dtype, mica.nn.functional.mse_loss(y, y).dtype, (x + x).dtype)
        mica.bfloat16 mica.float32 mica.float32
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
        outer = (_C._autocast_enabled(self.device), _C._autocast_dtype(self.device))
        self._outer.append((*outer, _C.is_autocast_cache_enabled()))
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
    """Decorates the `forward` of an `autograd.Function`, so that autocast treats it in a chosen way.

    As `torch.amp.custom_fwd`. Inside autocast, with `cast_inputs`, the floating-point Tensors among the
    arguments come in that dtype and `forward` runs without autocast; without it, `forward` runs under
    autocast as it is. Outside of autocast nothing changes. The `backward` takes `custom_bwd`.

    Args:
        fwd (callable, optional): The static method; left out where the decorator has options.
        device_type (str): Type of device, such as "cpu" or "cuda".
        cast_inputs (dtype, optional): What inputs are cast to.

    Returns:
        callable: The method, or a decorator for it.

    Example:
        >>> class Square(mica.autograd.Function):
        ...     @staticmethod
        ...     @mica.amp.custom_fwd(device_type="cpu", cast_inputs=mica.float32)
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @mica.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return 2 * grad * ctx.saved_tensors[0]
        >>> with mica.autocast("cpu"):
        ...     Square.apply(mica.ones(2, dtype=mica.bfloat16)).dtype
        mica.float32
    """
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
    """Decorates the `backward` of an `autograd.Function` so that it runs with autocast as `forward` did.

    As `torch.amp.custom_bwd`. The `forward` has `custom_fwd`, which shows an example of both.

    Args:
        bwd (callable, optional): The static method; left out where the decorator has options.
        device_type (str): Type of device, as in `custom_fwd`.

    Returns:
        callable: The method, or a decorator for it.

    Example:
        >>> class Double(mica.autograd.Function):
        ...     @staticmethod
        ...     @mica.amp.custom_fwd(device_type="cpu")
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @mica.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return 2 * grad
        >>> x = mica.ones(2, requires_grad=True)
        >>> Double.apply(x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward
