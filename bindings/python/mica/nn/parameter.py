"""Parameter and Buffer: tensors that modules register when they are assigned."""

from __future__ import annotations

from typing import Any

import mica
from mica import _C
from mica._C import Tensor


def _of_subclass(data: Tensor, requires_grad: bool, mark: str) -> Any:
    """An object of a subclass as a parameter or buffer: itself, detached and marked."""
    result: Any = data.detach().requires_grad_(requires_grad)
    if type(result) is not type(data):
        raise RuntimeError(
            f"A ({type(data).__name__}) becomes a parameter or buffer by detach(), which returned a "
            f"({type(result).__name__}); its __mica_dispatch__ or __mica_function__ must return its own class."
        )
    setattr(result, mark, True)
    return result


class _ParameterMeta(_C.TensorMeta):  # type: ignore[misc]
    """isinstance(x, Parameter) also of marked objects of other subclasses."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class _BufferMeta(_C.TensorMeta):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a module optimises: requires grad unless told otherwise."""

    __torch_function__ = _C._disabled_torch_function_impl  # results are plain tensors

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = mica.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"A Parameter is made of a Tensor; this value is of type ({type(data).__name__})."
            )
        if type(data) not in (Tensor, cls) and not issubclass(cls, type(data)):
            return _of_subclass(data, requires_grad, "_is_param")
        parameter: Parameter = Tensor._make_subclass(cls, data, requires_grad)
        return parameter

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that belongs to a module's state: of the data's own class, and marked."""

    __torch_function__ = _C._disabled_torch_function_impl
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        source = mica.empty(0) if data is None else data
        buffer: Any = _of_subclass(source, source.requires_grad, "_is_buffer")
        buffer.persistent = persistent
        return buffer  # type: ignore[no-any-return]


# What may be done with a tensor that has no shape yet.
_WITHOUT_VALUES = frozenset(
    [
        "__hash__",
        "size",
        "copy_",
        "is_complex",
        "is_floating_point",
        "half",
        "float",
        "double",
        "char",
        "short",
        "int",
        "long",
        "cuda",
        "cpu",
        "to",
        "get_device",
        "detach",
        "requires_grad_",
        "__deepcopy__",
        "__repr__",
        "__reduce_ex__",
        "_has_compatible_shallow_copy_type",
    ]
)


class UninitializedTensorMixin:
    """A parameter or buffer whose shape is not known yet; materialize(shape) makes it real."""

    _real: Any

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _WITHOUT_VALUES or name in ("__get__", "__set__"):
            return _C._disabled_torch_function_impl(func, types, args, kwargs or {})
        raise ValueError(
            f"{name}() was called with a lazy parameter, which has no shape or values yet: call its module once, or "
            "materialize(shape)."
        )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives it a shape, with values undefined, and its real class."""
        own: Any = self
        own.data = mica.empty(shape, device=device or own.device, dtype=dtype or own.dtype)
        own.__class__ = self._real

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "The shape of a lazy parameter is not known yet: call the module once, or materialize(shape)."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _made_of(self, data: Any) -> tuple[Any, ...]:
        own: Any = self
        persistent = () if isinstance(own, Parameter) else (own.persistent,)
        return (own.requires_grad, data.device, data.dtype, *persistent)

    def like(self, data: Tensor) -> Any:
        """One as lazy, of the device and dtype of `data`."""
        return type(self)(*self._made_of(data))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.like(self)  # type: ignore[arg-type]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), self._made_of(self)

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "A lazy parameter has no memory to share yet: call the module once, or materialize(shape)."
        )


def check_materialized(module: Any, name: str, tensor: Any) -> None:
    """Refuses a lazy tensor of a module where its values are wanted."""
    if is_lazy(tensor):
        raise ValueError(
            f"The parameter ({name}) of {type(module).__name__} has no shape yet, so that its norm is not known; call "
            "the module once before."
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter whose shape the first call of its module fixes."""

    _real = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        data = mica.empty(0, device=device, dtype=dtype)
        made: UninitializedParameter = Tensor._make_subclass(cls, data, requires_grad)
        return made


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape the first call of its module fixes."""

    _real = Buffer

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        made: Any = Tensor._make_subclass(cls, mica.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        return made  # type: ignore[no-any-return]


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
