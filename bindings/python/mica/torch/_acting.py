"""Functions that torch has and that mean something only under its name: queries, marks, helpers of
torch._utils, and what opens libraries."""

from __future__ import annotations

import collections
import contextlib
import os
import warnings
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica._functions import grouped_mm as _grouped_mm

counters: dict[str, Any] = collections.defaultdict(collections.Counter)

DeviceLike = str | mica.device | int
Stride = list[int] | tuple[int, ...]


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value: torch.jit.annotate names a type for the compiler alone."""
    return the_value


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t` where `b` holds, else `f`."""
    return t if b else f


def sym_int(a: Any) -> Any:
    """The whole part of a number; a traced one stays."""
    from mica.fx._symint import SymInt

    return a if isinstance(a, SymInt) else int(a)


def sym_float(a: Any) -> Any:
    """A number as a float."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """The greater of two numbers, a float where one is."""
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The lesser of two numbers, a float where one is."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    """The operator: `reduction` is 0 (none), 1 (mean over all elements) or 2 (sum)."""
    return mica.ops.mica.kl_div(input, target, reduction, log_target=log_target)


def grouped_mm(
    self: Tensor, mat2: Tensor, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Tensor:
    """torch._grouped_mm: nn.functional.grouped_mm by position."""
    return _grouped_mm.grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def assert_async(condition: Any, message: str = "") -> None:
    """Raises RuntimeError with the message where the condition is false."""
    if not condition:
        raise RuntimeError(message or "_assert_async() is given a value that is zero.")


def coo_to_csr(indices: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """torch._convert_indices_from_coo_to_csr: where each of `size` rows begins in sorted row numbers."""
    rows = mica.arange(size + 1, dtype=indices.dtype, device=indices.device)
    return mica.searchsorted(indices, rows, out_int32=out_int32)


def csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """torch._convert_indices_from_csr_to_coo: the rows and columns of each element, or the other way round."""
    dtype = mica.int32 if out_int32 else crow_indices.dtype
    numbers = mica.arange(crow_indices.shape[-1] - 1, dtype=dtype, device=crow_indices.device)
    rows = mica.repeat_interleave(numbers, crow_indices.diff())
    pair = [rows, col_indices.to(dtype)]
    return mica.stack(pair[::-1] if transpose else pair)


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


class cuda_autocast(mica.amp.autocast):
    """torch.cuda.amp.autocast: mica.amp.autocast("cuda")."""

    def __init__(self, enabled: bool = True, dtype: Any = mica.float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class cpu_autocast(mica.amp.autocast):
    """torch.cpu.amp.autocast: mica.amp.autocast("cpu")."""

    def __init__(self, enabled: bool = True, dtype: Any = mica.bfloat16, cache_enabled: bool = True) -> None:
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def _scaler_of(device: str) -> Any:
    class GradScaler(mica.amp.GradScaler):
        """The old spelling of mica.amp.GradScaler(device)."""

        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            warnings.warn(
                f"`torch.{device}.amp.GradScaler(args...)` is deprecated. Please use "
                f"`torch.amp.GradScaler('{device}', args...)` instead.",
                FutureWarning,
                stacklevel=2,
            )
            super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    return GradScaler


cpu_grad_scaler, cuda_grad_scaler = _scaler_of("cpu"), _scaler_of("cuda")


def get_autocast_gpu_dtype() -> Any:
    """The dtype that autocast takes on "cuda"."""
    return mica.get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> Any:
    """The dtype that autocast takes on the CPU."""
    return mica.get_autocast_dtype("cpu")


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU."""
    return mica.is_autocast_enabled("cpu")


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


def _are_functorch_transforms_active() -> bool:
    """Whether vmap, grad or another transform runs on this thread."""
    return _C._frame_depth() > 0


def load_library(path: Any) -> None:
    """Opens a plugin of Mica; a library that is built against torch raises OSError, as one that is missing.

    The library of a package whose operators a plugin provides (torchvision) is not opened: the plugin
    stands in for it.
    """
    from mica.torch import _library

    if _library.stands_in(os.path.basename(os.path.dirname(str(path)))):
        return
    try:
        mica.ops.load_library(str(path))
    except RuntimeError as error:
        raise OSError(str(error)) from error


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


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Sets the dtype that autocast takes on "cuda"."""
    mica.set_autocast_dtype("cuda", dtype)


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Sets the dtype that autocast takes on the CPU."""
    mica.set_autocast_dtype("cpu", dtype)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switches autocast on the CPU on or off."""
    mica.set_autocast_enabled("cpu", enabled)


def softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of softmax from its output, in the input's dtype."""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


def int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two int8 matrices, in int32."""
    for name, matrix in (("self", self), ("mat2", mat2)):
        if matrix.dim() != 2 or matrix.dtype != mica.int8:
            raise RuntimeError(
                f"`{name}` must be a matrix of int8; it is of {matrix.dim()} dimensions and {matrix.dtype}."
            )
    return self.to(mica.int32) @ mat2.to(mica.int32)


def shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes, as an int64 tensor."""
    return mica.tensor(list(x.shape), dtype=mica.int64)


def _said_by(message: Any, otherwise: str) -> str:
    return otherwise if message is None else str(message())


def check_with(error_type: type[Exception], cond: Any, message: Any = None) -> None:
    """Raises error_type, with what message() gives, unless cond holds."""
    if not isinstance(cond, bool):
        raise TypeError(f"The condition must be a bool; it is of type ({type(cond).__name__}).")
    if not cond:
        raise error_type(_said_by(message, "A condition that must hold does not."))


def check_is_size(i: int, message: Any = None, *, max: int | None = None) -> None:
    """Raises unless 0 <= i <= max."""
    check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)


def check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Any = None) -> None:
    """Raises error_type, with what message() gives, unless all elements hold."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"The condition must be a Tensor; it is of type ({type(cond).__name__}).")
    if cond.dtype != mica.bool:
        raise TypeError(f"The condition must be of bool; its dtype is ({cond.dtype}).")
    check_with(error_type, bool(cond.all()), message)


def check_tensor_all(cond: Tensor, message: Any = None) -> None:
    """Raises RuntimeError unless all elements hold."""
    check_tensor_all_with(RuntimeError, cond, message)


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


def set_default_tensor_type(t: Any) -> None:
    """The dtype of an old tensor type ("torch.DoubleTensor", torch.DoubleTensor) becomes the default."""
    found = getattr(mica, t.rpartition(".")[2], None) if isinstance(t, str) else t
    dtype = getattr(found, "_dtype", None)
    if dtype is None:
        raise TypeError(f"A tensor type or its name is expected; this is ({t!r}).")
    mica.set_default_dtype(dtype)


def clone_inputs(example_inputs: Any) -> Any:
    """Copies of the tensors among a list's items or a dict's values, with their strides and requires_grad."""
    if isinstance(example_inputs, dict):
        return {k: clone_inputs(v) if isinstance(v, tuple) else _copied(v) for k, v in example_inputs.items()}
    return [_copied(v) if isinstance(v, Tensor) else v for v in example_inputs]


def _copied(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def reset_rng_state(use_xla: bool = False) -> None:
    """Seeds the generators of mica, random and NumPy, all by 1337."""
    import random

    import numpy as np

    mica.manual_seed(1337)
    random.seed(1337)
    np.random.seed(1337)


def reduce_to_scalar_loss(out: Any) -> Any:
    """The mean of all elements; of a list, tuple or dict the mean of its items' means."""
    if isinstance(out, Tensor):
        return out.sum() / out.numel()
    items = list(out.values()) if isinstance(out, dict) else out
    if not isinstance(items, (list, tuple)):
        raise NotImplementedError(f"An output of type ({type(out).__name__}) cannot be reduced to a loss.")
    return sum(reduce_to_scalar_loss(item) for item in items) / len(items)


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms() by a word or number: "default", "warn" or "error"; 0, 1 or 2."""
    mode = _DEBUG_MODES.index(debug_mode) if debug_mode in _DEBUG_MODES else debug_mode
    if mode not in (0, 1, 2):
        raise (RuntimeError if isinstance(mode, (int, str)) else TypeError)(
            f"The mode ({debug_mode!r}) is unknown; expected 'default', 'warn' or 'error', or 0, 1 or 2."
        )
    mica.use_deterministic_algorithms(mode != 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: what nondeterministic operators do is nothing, a warning or an error."""
    if not mica.are_deterministic_algorithms_enabled():
        return 0
    return 1 if mica.is_deterministic_algorithms_warn_only_enabled() else 2


def assert_allclose(
    actual: Any, expected: Any, rtol: Any = None, atol: Any = None, equal_nan: bool = True, msg: str = ""
) -> None:
    """torch.testing's older comparison: it does not ask for equal dtypes, and a nan equals a nan."""
    mica.testing.assert_close(
        mica.as_tensor(actual),
        mica.as_tensor(expected),
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )


class check_sparse_tensor_invariants(contextlib.ContextDecorator):
    """torch.sparse's switch of checks; Mica has no sparse tensors, so that it is remembered alone."""

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._enable = enable
        self._before: list[bool] = []

    @classmethod
    def is_enabled(cls) -> bool:
        """What enable() and disable() said last, False before."""
        return cls._enabled

    @classmethod
    def enable(cls) -> None:
        """Remembered."""
        cls._enabled = True

    @classmethod
    def disable(cls) -> None:
        """Remembered."""
        cls._enabled = False

    def __enter__(self) -> None:
        kind = type(self)
        self._before.append(kind._enabled)
        kind._enabled = self._enable

    def __exit__(self, *exc: object) -> None:
        type(self)._enabled = self._before.pop()


def all_same_mode(modes: Any) -> bool:
    """Whether all are the same mode."""
    return all(mode == modes[0] for mode in modes)
