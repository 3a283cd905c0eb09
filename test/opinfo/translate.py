"""Turns torch's functions and arguments into Mica's, so that one OpInfo runs in both.

A torch function becomes what stands under the same name in `mica`. A lambda or helper of
the database is the same code with its globals looked up in Mica: `torch` is `mica` there.
Tensors keep storage, strides, offset and shared memory.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import types
from typing import Any

import numpy as np
import torch

import mica

_HOMES = ("", "nn.functional", "linalg", "fft", "special", "masked", "signal.windows", "Tensor", "functional")


class AbsentError(Exception):
    """Mica has nothing under this name."""


_device = ["cpu"]  # where Mica computes what torch computes on the CPU


def device() -> str:
    """The backend that Mica's side runs on."""
    return _device[0]


def run_on(name: str) -> None:
    """Lets Mica's side run on a backend: its tensors are there, and what is made without a device is made there."""
    _device[0] = name
    mica.set_default_device(name)


def _walk(root: Any, path: str) -> Any:
    found = root
    for part in filter(None, path.split(".")):
        if isinstance(found, types.ModuleType) and not hasattr(found, part):
            with contextlib.suppress(ImportError):
                importlib.import_module(f"{found.__name__}.{part}")
        if not hasattr(found, part):
            raise AbsentError(f"{root.__name__}.{path}")
        found = getattr(found, part)
    return found


@functools.cache
def _places() -> dict[int, str]:
    """The path of each public function of torch, by identity."""
    found: dict[int, str] = {}
    for home in _HOMES:
        holder = _walk(torch, home)
        for name in dir(holder):
            value = getattr(holder, name, None)
            if callable(value) and not isinstance(value, type):
                found.setdefault(id(value), f"{home}.{name}".lstrip(".").removeprefix("functional."))
    return found


def _place(function: Any, name: str) -> str | None:
    """Where the function stands in torch; `name` where several names hold it."""
    with contextlib.suppress(AbsentError):
        if _walk(torch, name) is function:
            return name
    return _places().get(id(function))


@contextlib.contextmanager
def _no_change(*_: Any) -> Any:
    yield


# Helpers of the database that Mica needs no counterpart of: every call is seeded anyway.
_HELPERS = {"freeze_rng_state": _no_change}


_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    functools.partial,
)


def _names(code: types.CodeType) -> set[str]:
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _rebound(function: types.FunctionType) -> types.FunctionType:
    """The same code over Mica."""
    scope = {k: v for k, v in function.__globals__.items() if k in _names(function.__code__)}
    scope = {k: _HELPERS.get(k) or _of_global(v) for k, v in scope.items()}
    scope["__builtins__"] = __builtins__
    cells = tuple(types.CellType(_of_global(c.cell_contents)) for c in function.__closure__ or ())
    defaults = tuple(map(to_mica, function.__defaults__ or ()))
    result = types.FunctionType(function.__code__, scope, function.__name__, defaults, cells)
    result.__kwdefaults__ = to_mica(function.__kwdefaults__)
    return result


def _in_torch(helper: Any) -> Any:
    """A private helper of torch.masked, which the database's checks call, run in torch."""

    def call(operator: Any, *args: Any, **kwargs: Any) -> Any:
        plain = {k: to_torch(v) for k, v in kwargs.items()}
        name = getattr(operator, "__name__", None)
        first = to_torch(operator) if name is None else getattr(torch.masked, name)
        return to_mica(helper(first, *map(to_torch, args), **plain))

    return call


class _MaskedInMica:
    def __getattr__(self, name: str) -> Any:
        found = getattr(_walk(mica, "masked"), name, None)
        return _in_torch(getattr(torch.masked, name)) if found is None else found


class _TorchInMica:
    """What `torch` means in the database's code when that runs in Mica."""

    masked = _MaskedInMica()

    def __getattr__(self, name: str) -> Any:
        return getattr(mica, name)


def _of_global(value: Any) -> Any:
    """What a global of the database's code means in Mica; absent names raise when called."""
    if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] == "torch":
        if value is torch:
            return _TorchInMica()
        try:
            return _walk(mica, value.__name__.removeprefix("torch."))
        except AbsentError:
            return value
    if isinstance(value, type) and value.__module__.split(".")[0] == "torch":
        return getattr(mica, value.__name__, value)
    if isinstance(value, _FUNCTIONS):
        try:
            return function(value)
        except AbsentError as error:
            missing = error  # the name is unbound when the block ends

            def absent(*_: Any, **__: Any) -> Any:
                raise missing

            return absent
    return to_mica(value)


def function(value: Any, name: str = "") -> Any:
    """Mica's counterpart of a function of torch; AbsentError where there is none."""
    if value is torch.ops.aten.slice.Tensor:
        return mica._C._find_operator("mica::slice.Tensor")
    if isinstance(value, functools.partial):
        return functools.partial(function(value.func), *value.args, **value.keywords)
    place = _place(value, name)
    if place is not None:
        return _walk(mica, place)
    if isinstance(value, types.FunctionType) and value.__module__.split(".")[0] in ("torch", "__main__"):
        return _rebound(value)
    if str(getattr(value, "__module__", "")).split(".")[0] == "torch":
        raise AbsentError(str(value))
    return value


_FROM_STORAGE = {torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2}


def _tensor(x: torch.Tensor, memo: dict[Any, Any]) -> mica.Tensor:
    """The tensor in Mica: a copy of its storage, once, and its view of that."""
    x = x.resolve_conj().resolve_neg() if x.is_conj() or x.is_neg() else x
    dtype = getattr(mica, str(x.dtype).removeprefix("torch."))
    where = device() if x.device.type == "cpu" else x.device.type
    storage = x.untyped_storage()
    if x.device.type != "cpu" or storage.nbytes() == 0 or x.is_sparse:
        return mica.empty_strided(list(x.shape), list(x.stride()), dtype=dtype, device=where)
    place = ("storage", storage.data_ptr())
    if place not in memo:
        bits = np.array(torch.empty(0, dtype=torch.uint8).set_(storage).numpy())
        memo[place] = (
            storage,
            mica.from_numpy(bits).to(where),
        )  # kept, so that no later storage has its address
    flat = memo[place][1]
    usable = flat.numel() // dtype.itemsize * dtype.itemsize
    flat = flat[:usable].view(dtype)
    return flat.as_strided(list(x.shape), list(x.stride()), x.storage_offset()).detach()


def to_mica(value: Any, memo: dict[Any, Any] | None = None) -> Any:
    """The same value for Mica. `memo` keeps what is shared within one call."""
    memo = {} if memo is None else memo
    if isinstance(value, torch.Tensor):
        if id(value) not in memo:
            made = _tensor(value.detach(), memo)
            memo[id(value)] = made.requires_grad_() if value.requires_grad else made
        return memo[id(value)]
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        word = str(value).removeprefix("torch.")
        if not hasattr(mica, word):
            raise AbsentError(f"mica.{word}")
        return getattr(mica, word)
    if isinstance(value, torch.device):
        return mica.device(device() if value.type == "cpu" else str(value))
    if isinstance(value, str) and value == "cpu":
        return device()
    if isinstance(value, torch.Size):
        return mica.Size(value)
    if isinstance(value, torch.Generator):
        return mica.Generator(device()).manual_seed(value.initial_seed())
    if isinstance(value, tuple) and type(value) is not tuple:
        return tuple(to_mica(v, memo) for v in value)
    if isinstance(value, (tuple, list)):
        return type(value)(to_mica(v, memo) for v in value)
    if isinstance(value, dict):
        return {k: to_mica(v, memo) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(to_mica(v, memo) for v in (value.start, value.stop, value.step)))
    if isinstance(value, torch.nn.Module):
        settings = {k: v for k, v in vars(value).items() if not k.startswith("_") and k != "training"}
        renamed = {{"norm": "p"}.get(k, k): v for k, v in settings.items()}
        return _walk(mica, f"nn.{type(value).__name__}")(**renamed)
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
        return function(value)
    return value


def to_torch(value: Any) -> Any:
    """A result of Mica as tensors of torch, without copying but for lazy conjugates; float8 and bfloat16 by their bits."""
    if isinstance(value, mica.Tensor):
        value = value.detach().cpu().resolve_conj().resolve_neg()
        dtype = getattr(torch, str(value.dtype).split(".")[-1])
        if dtype in _FROM_STORAGE:
            bits = mica.int16 if dtype == torch.bfloat16 else mica.uint8
            return torch.from_numpy(value.view(bits).numpy()).view(dtype)
        array = value.numpy()
        if any(s < 0 for s in array.strides) or not array.flags.writeable:
            array = array.copy()
        return torch.from_numpy(array)
    if isinstance(value, (tuple, list)):
        return [to_torch(v) for v in value]
    if isinstance(value, mica.dtype):
        return getattr(torch, str(value).split(".")[-1])
    return value


def is_mica_absence(error: BaseException) -> bool:
    """Whether an exception says that Mica has no such name."""
    if isinstance(error, AbsentError):
        return True
    return isinstance(error, AttributeError) and "has no attribute" in str(error) and "mica" in str(error)
