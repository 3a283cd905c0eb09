"""Tensors that have shape, strides, dtype and device and no memory: to run a program for what it makes.

Inside a FakeTensorMode new tensors are fake, and so are the results of operators on fake ones, which
are computed on the device meta. What needs values raises: DataDependentOutputException where a number
is asked for, DynamicOutputShapeException where a shape depends on values. Names and meanings are
torch's; of views, fakes of two real tensors over one storage do not share one.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.ops import OpOverload
from mica.overrides import FunctionMode
from mica.utils._pytree import tree_leaves, tree_map
from mica.utils.python_dispatch import (
    DispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode_stack,
    return_and_correct_aliasing,
)

_MAKERS = {mica.tensor, mica.as_tensor, mica.asarray, mica.from_numpy, mica.frombuffer, mica.scalar_tensor}
_VALUES = {"item", "_local_scalar_dense", "equal", "is_nonzero", "tolist"}


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor of which no fake can be made."""


class UnsupportedOperatorException(RuntimeError):
    """An operator that computes nothing without memory."""


class DataDependentOutputException(RuntimeError):
    """An operator gives a number that depends on values."""


class DynamicOutputShapeException(RuntimeError):
    """An operator gives a shape that depends on values."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """Fake tensors of two devices meet in an operator."""


class FakeTensor(Tensor):
    """A tensor without memory that shows a device."""

    fake_device: Any
    fake_mode: FakeTensorMode
    _without_memory: Tensor
    constant: Tensor | None  # the number that mica.tensor() made it of, until it is written otherwise

    @staticmethod
    def __new__(cls: Any, fake_mode: FakeTensorMode, elem: Tensor, device: Any) -> Any:
        if elem.device.type != "meta":
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}.")
        made = Tensor._make_wrapper_subclass(
            cls,
            elem.shape,
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            device=device,
            requires_grad=elem.requires_grad,
        )
        return _marked(made, fake_mode, mica.device(device), elem)

    @classmethod
    def __mica_dispatch__(
        cls, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = next(t for t in tree_leaves((args, kwargs)) if isinstance(t, FakeTensor))
        return found.fake_mode.dispatch(func, args, kwargs or {})

    def tolist(self) -> Any:
        """Refused: there are no values."""
        if self.ndim == 0:
            return self.item()
        return [row.tolist() for row in self]

    def numpy(self, *, force: bool = False) -> Any:
        """Refused: there is no memory."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        parts = ["...", f"size={tuple(self.shape)}"]
        if self.device.type != "cpu":
            parts.insert(1, f"device='{self.device}'")
        if self.dtype is not mica.get_default_dtype():
            parts.append(f"dtype={self.dtype}")
        if self.grad_fn is not None:
            parts.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        text = f"FakeTensor({', '.join(parts)})"
        return f"Parameter({text})" if isinstance(self, mica.nn.Parameter) else text

    __str__ = __repr__

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self.fake_mode._copied(self)
        return memo[id(self)]


def _marked(made: Any, mode: FakeTensorMode, device: Any, elem: Tensor) -> Any:
    made.fake_mode, made.fake_device, made._without_memory, made.constant = mode, device, elem, None
    return made


class _Makers(FunctionMode):
    """Makes fake what functions make of values that are no tensors."""

    def __init__(self, mode: FakeTensorMode) -> None:
        super().__init__()
        self.mode = mode

    def __mica_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in _MAKERS:
            return func(*args, **(kwargs or {}))
        with _disable_current_modes():
            made = func(*args, **(kwargs or {}))
            if isinstance(made, FakeTensor):
                return made
            fake: Any = self.mode.from_tensor(made)
            if made.numel() == 1 and made.device.type == "cpu":
                fake.constant = made.detach().clone()
        return fake


class FakeTensorMode(DispatchMode):
    """`with` makes all new tensors fake. allow_non_fake_inputs: operators take real tensors, too."""

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        if shape_env is not None:
            raise NotImplementedError(
                "FakeTensorMode has no symbolic sizes (shape_env); trace with mica.fx's make_fx and "
                "tracing_mode='symbolic' for them."
            )
        self.allow_fallback_kernels, self.allow_non_fake_inputs = (
            allow_fallback_kernels,
            allow_non_fake_inputs,
        )
        self.shape_env, self.static_shapes, self.export = None, True, export
        self._made: dict[int, tuple[weakref.ref[Tensor], Tensor]] = {}
        self._makers: list[_Makers] = []

    def __enter__(self) -> FakeTensorMode:
        self._makers.append(_Makers(self))
        self._makers[-1].__enter__()
        return super().__enter__()  # type: ignore[no-any-return]

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._makers.pop().__exit__(*exc)

    def __mica_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return self.dispatch(func, args, kwargs or {})

    def from_tensor(self, tensor: Tensor, *, static_shapes: bool | None = None, **options: Any) -> Tensor:
        """The fake of a tensor, one for each; a parameter's is one."""
        if isinstance(tensor, FakeTensor) and tensor.fake_mode is self:
            return tensor
        known = self._made.get(id(tensor))
        if known is not None and known[0]() is tensor:
            return known[1]
        with _disable_current_modes():
            elem = _without_memory(tensor)
            fake: Any = FakeTensor(self, elem, tensor.device)
            if isinstance(tensor, mica.nn.Parameter):
                fake = _marked(mica.nn.Parameter(fake, tensor.requires_grad), self, tensor.device, elem)
            elif tensor.requires_grad:
                fake.requires_grad_()
        key = id(tensor)
        self._made[key] = weakref.ref(tensor, lambda _: self._made.pop(key, None)), fake
        return fake  # type: ignore[no-any-return]

    def _copied(self, tensor: FakeTensor) -> Any:
        with _disable_current_modes():
            fake: Any = FakeTensor(self, _without_memory(tensor._without_memory), tensor.fake_device)
            if isinstance(tensor, mica.nn.Parameter):
                made = mica.nn.Parameter(fake, tensor.requires_grad)
                return _marked(made, self, tensor.fake_device, fake._without_memory)
            fake.constant = tensor.constant
        return fake.requires_grad_(tensor.requires_grad)

    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The operator without memory; its results are fake."""
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        constant = _constant(func, args, kwargs, tensors)
        if func._opname in _VALUES:
            if constant is None:
                raise DataDependentOutputException(func)
            return constant
        device = self._device(func, tensors)
        shown, bound = _on_meta(func, args, kwargs)
        device = mica.device(shown) if shown is not None else device
        if device is None:
            device = mica.device(_C._default_device())

        def lower(value: Any) -> Any:
            if isinstance(value, FakeTensor):
                return value._without_memory
            if not isinstance(value, Tensor):
                return value
            if not self.allow_non_fake_inputs and not (
                func._opname == "detach" or value.device.type == "meta"
            ):
                raise AssertionError(
                    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
                    f"'allow_non_fake_inputs'. Found in {func}."
                )
            return self.from_tensor(value)._without_memory

        inner_args, inner_kwargs = tree_map(lower, bound)
        try:
            out = func(*inner_args, **inner_kwargs)
        except NotImplementedError as error:
            raise DynamicOutputShapeException(func) from error
        wrapped = tree_map(lambda t: FakeTensor(self, t, device) if isinstance(t, Tensor) else t, out)
        found: Any = return_and_correct_aliasing(func, args, kwargs, wrapped)
        if func._schema.is_mutable:
            for value, argument in zip(args, func._schema.arguments):
                if (
                    isinstance(value, FakeTensor)
                    and argument.alias_info is not None
                    and argument.alias_info.is_write
                ):
                    value.constant = constant
        elif isinstance(found, FakeTensor):
            found.constant = constant
        return found

    def _device(self, func: OpOverload, tensors: list[Tensor]) -> Any:
        """The one device of the arguments; numbers of the CPU go along with any."""
        found: Any = None
        for t in sorted(tensors, key=lambda t: t.ndim == 0 and t.device.type == "cpu"):
            if found is None or (found == t.device) or (t.ndim == 0 and t.device.type == "cpu"):
                found = t.device if found is None else found
            elif func._opname not in ("copy_", "_to_copy"):
                raise FakeTensorDeviceMismatchError(
                    f"Unhandled FakeTensor Device Propagation for {func}, found two different devices {found}, {t.device}"
                )
        return found


def _constant(func: OpOverload, args: Any, kwargs: Any, tensors: list[Tensor]) -> Any:
    """What the operator gives where all its tensors are known numbers; None elsewhere."""
    values = [t.constant if isinstance(t, FakeTensor) else None for t in tensors]
    if not values or any(v is None for v in values):
        return None
    try:
        found = func(*tree_map(_number, args), **tree_map(_number, kwargs))
    except (RuntimeError, TypeError):
        return None
    return found if not isinstance(found, Tensor) or found.numel() == 1 else None


def _number(value: Any) -> Any:
    return value.constant if isinstance(value, FakeTensor) else value


class FakeCopyMode(FunctionMode):
    """`with` makes copies of tensors, deep ones of modules too, fakes of a mode."""

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        super().__init__()
        self.fake_mode = fake_mode

    def __mica_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.clone:
            return func(self.fake_mode.from_tensor(args[0]), *args[1:], **(kwargs or {}))
        if getattr(func, "__name__", "") == "__deepcopy__":
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self.fake_mode.from_tensor(tensor)
            return memo[id(tensor)]
        return func(*args, **(kwargs or {}))


def _without_memory(tensor: Tensor) -> Tensor:
    """A tensor of the device meta that is like it."""
    return mica.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _on_meta(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The device that the call asks for, or None, and its arguments with meta in its place."""
    places = [i for i, a in enumerate(func._schema.arguments) if a.type.rstrip("?") == "Device"]
    schema = func._schema.arguments
    fresh = bool(places) and not any(a.type.startswith("Tensor") for a in schema)
    shown, given, named = None, list(args), dict(kwargs)
    for i in places:
        if i < len(given):
            shown, given[i] = given[i], given[i] if given[i] is None and not fresh else "meta"
        elif named.get(schema[i].name) is not None or fresh:
            shown, named[schema[i].name] = named.get(schema[i].name), "meta"
    return shown, (tuple(given), named)


def is_fake(x: object) -> bool:
    """Whether a tensor is fake."""
    return isinstance(x, FakeTensor)


def maybe_get_fake_mode(t: object) -> FakeTensorMode | None:
    """The mode of a fake tensor."""
    return t.fake_mode if isinstance(t, FakeTensor) else None


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost mode that is on."""
    modes = [m for m in _get_current_dispatch_mode_stack() if isinstance(m, FakeTensorMode)]
    return modes[-1] if modes else None


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """No mode is on inside of it."""
    mode = active_fake_mode()
    with _disable_current_modes():
        yield mode
