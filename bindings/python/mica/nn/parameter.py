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
    """A tensor that a module learns: it registers itself when assigned to a module's attribute.

    It shares the memory of its data and is a leaf. What is computed from it is a plain Tensor. As
    `torch.nn.Parameter`.

    Args:
        data (Tensor, optional): The values. Of a subclass of Tensor the parameter has that class and counts
            as a Parameter for `isinstance`. Default: no elements.
        requires_grad (bool): Whether gradients are recorded. Default: True.

    Raises:
        TypeError: `data` is no Tensor.
        RuntimeError: `requires_grad` is True and the dtype neither floating nor complex.

    Example:
        >>> layer = mica.nn.Module()
        >>> layer.scale = mica.nn.Parameter(mica.ones(2))
        >>> list(layer.parameters())
        [Parameter containing:
        tensor([1., 1.], requires_grad=True)]
    """

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
    """A tensor that is a module's state and is not learned: it registers itself when assigned.

    It shares the memory of its data, has its data's class, and counts as a Buffer for `isinstance`. As
    `torch.nn.Buffer`.

    Args:
        data (Tensor, optional): The values. Default: no elements.
        persistent (bool): Whether the module's `state_dict()` holds it. Default: True.

    Raises:
        TypeError: `data` is no Tensor.

    Example:
        >>> layer = mica.nn.Module()
        >>> layer.steps = mica.nn.Buffer(mica.zeros(1))
        >>> list(layer.state_dict())
        ['steps']
    """

    __torch_function__ = _C._disabled_torch_function_impl
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        source = mica.empty(0) if data is None else data
        if not isinstance(source, Tensor):
            raise TypeError(f"A Buffer is made of a Tensor; this value is of type ({type(data).__name__}).")
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
    """What the parameters and buffers of lazy modules share: they have no shape yet, and little can be done.

    Any function but moves, conversions and copies of them raises ValueError. `UninitializedParameter` and
    `UninitializedBuffer` are made from it.

    Example:
        >>> isinstance(mica.nn.LazyLinear(3).weight, mica.nn.parameter.UninitializedTensorMixin)
        True
    """

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
        """Gives it a shape, with values undefined, and makes it a Parameter or Buffer.

        Args:
            shape (tuple of int): Sizes of the result.
            device (device, optional): Where it will live. Default: its own.
            dtype (dtype, optional): Of its elements. Default: its own.
        """
        own: Any = self
        own.data = mica.empty(shape, device=device or own.device, dtype=dtype or own.dtype)
        own.__class__ = self._real

    @property
    def shape(self) -> Any:
        """Raises RuntimeError: there is no shape yet."""
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
        """Makes another one as lazy, as conversions of its module do.

        Args:
            data (Tensor): What device and dtype it takes.

        Returns:
            UninitializedParameter or UninitializedBuffer: The new one.
        """
        return type(self)(*self._made_of(data))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.like(self)  # type: ignore[arg-type]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), self._made_of(self)

    def share_memory_(self) -> Any:
        """Raises RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "A lazy parameter has no memory to share yet: call the module once, or materialize(shape)."
        )


def check_materialized(module: Any, name: str, tensor: Any) -> None:
    """Refuses a lazy tensor of a module where its values are wanted.

    Args:
        module (Module): The module, for the message.
        name (str): The tensor's name, for the message.
        tensor (Tensor): The parameter or buffer.

    Raises:
        ValueError: The tensor has no shape yet.

    Example:
        >>> layer = mica.nn.LazyLinear(3)
        >>> mica.nn.parameter.check_materialized(layer, "weight", layer.weight)
        Traceback (most recent call last):
        ...
        ValueError: The parameter (weight) of LazyLinear has no shape yet, ...
    """
    if is_lazy(tensor):
        raise ValueError(
            f"The parameter ({name}) of {type(module).__name__} has no shape yet, so that its norm is not known; call "
            "the module once before."
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter whose shape the first call of its module finds out.

    As `torch.nn.UninitializedParameter`. In a class that derives from `LazyModuleMixin`, `initialize_parameters()`
    calls `materialize(shape, device=None, dtype=None)`: the object becomes a `Parameter` with undefined values, so
    fill it.

    Args:
        requires_grad (bool): Whether gradients will be recorded. Default: True.
        device (device, optional): Where it will live. Default: the default device.
        dtype (dtype, optional): Of its elements. Default: the default dtype.

    Raises:
        RuntimeError: Its `shape` is asked for before.
        ValueError: An operator takes it before.

    Example:
        >>> weight = mica.nn.UninitializedParameter()
        >>> weight
        <UninitializedParameter>
        >>> weight.materialize((2, 3))
        >>> type(weight).__name__, weight.shape
        ('Parameter', mica.Size([2, 3]))
    """

    _real = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        data = mica.empty(0, device=device, dtype=dtype)
        made: UninitializedParameter = Tensor._make_subclass(cls, data, requires_grad)
        return made


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape the first call of its module finds out.

    As `torch.nn.UninitializedBuffer`. In a class that derives from `LazyModuleMixin`, `initialize_parameters()`
    calls `materialize(shape, device=None, dtype=None)`: the object becomes a `Buffer` with undefined values, so
    fill it.

    Args:
        requires_grad (bool): Whether gradients will be recorded. Default: False.
        device (device, optional): Where it will live. Default: the default device.
        dtype (dtype, optional): Of its elements. Default: the default dtype.
        persistent (bool): Whether the module's `state_dict()` holds it. Default: True.

    Raises:
        RuntimeError: Its `shape` is asked for before.
        ValueError: An operator takes it before.

    Example:
        >>> mean = mica.nn.UninitializedBuffer()
        >>> mean.materialize((2,))
        >>> mean.shape
        mica.Size([2])
    """

    _real = Buffer

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        made: Any = Tensor._make_subclass(cls, mica.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        return made  # type: ignore[no-any-return]


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet.

    Args:
        param (Tensor): The parameter or buffer.

    Returns:
        bool: True for an UninitializedParameter or UninitializedBuffer.

    Example:
        >>> mica.nn.parameter.is_lazy(mica.nn.LazyLinear(3).weight)
        True
    """
    return isinstance(param, UninitializedTensorMixin)
