"""Lazy modules: layers whose sizes the first input fixes. After that call they are of the
plain class, with parameters drawn then."""

from __future__ import annotations

import inspect
import re
from typing import Any

from mica._C import Tensor
from mica.nn.modules import batchnorm, conv, instancenorm, linear
from mica.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy


class LazyModuleMixin:
    """A base, before `Module`, of classes whose parameters get their shapes from the first input.

    As `torch.nn.modules.lazy.LazyModuleMixin`. A subclass makes `mica.nn.UninitializedParameter`s and defines
    `initialize_parameters`, which is called once, with the first call's arguments. An attribute
    `cls_to_become` of the class, if it is not None, is the class that the module takes then.

    Args:
        *args, **kwargs: Those of the other bases.

    Raises:
        RuntimeError: At the first call, a parameter has no shape even after `initialize_parameters`.

    Example:
        >>> from mica.nn.modules._lazy import LazyModuleMixin
        >>> class Scale(LazyModuleMixin, mica.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.weight = mica.nn.UninitializedParameter()
        ...     def initialize_parameters(self, x):
        ...         self.weight.materialize(x.shape[-1:])
        ...         mica.nn.init.ones_(self.weight)
        ...     def forward(self, x):
        ...         return x * self.weight
        >>> scale = Scale()
        >>> scale.has_uninitialized_params()
        True
        >>> scale(mica.arange(3.)).detach()
        tensor([0., 1., 2.])
    """

    cls_to_become: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own: Any = self
        self._initialize_hook = own.register_forward_pre_hook(_infer, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives the lazy parameters their shapes and values: what a subclass defines.

        Args:
            *args, **kwargs: Those of the first call.

        Raises:
            NotImplementedError: The subclass does not define it.
        """
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        own: Any = self
        held = (*own._parameters.values(), *own._buffers.values())
        return any(is_lazy(p) for p in held)

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        _infer(module, args, kwargs or {})


def _infer(module: Any, args: Any, kwargs: Any) -> None:
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    module._initialize_hook.remove()
    del module.__dict__["_initialize_hook"]
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


class _Lazy(LazyModuleMixin):
    """What the layers below share: their plain class is made with 0 channels, whose lazy
    parameters get their shapes by asking the class again."""

    _size: str  # the attribute that the input fixes
    _errors: str  # when a class of _lazy_class raises ValueError

    def reset_parameters(self) -> None:
        own: Any = self
        if not self.has_uninitialized_params() and getattr(own, self._size) != 0:
            super().reset_parameters()  # type: ignore[misc]

    def _make_lazy(self, device: Any, dtype: Any, *names: str) -> None:
        own: Any = self
        for name in names:
            if own._parameters.get(name) is not None:
                own._parameters[name] = UninitializedParameter(device=device, dtype=dtype)
            elif own._buffers.get(name) is not None:
                own._buffers[name] = UninitializedBuffer(device=device, dtype=dtype)


class LazyLinear(_Lazy, linear.Linear):
    """`Linear` whose `in_features` the first input fixes.

    As `torch.nn.LazyLinear`. Before the first call its parameters have no shape (`UninitializedParameter`);
    that call draws them, and the module is of class `mica.nn.Linear` from then on, with its attributes and
    shapes. An optimizer may be made before.

    Args:
        out_features (int): Features of the output.
        bias (bool): Whether there is a bias. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Raises:
        IndexError: At the first call, the input has no dimension.

    Example:
        >>> layer = mica.nn.LazyLinear(3)
        >>> layer(mica.ones(2, 4)).shape
        mica.Size([2, 3])
        >>> layer
        Linear(in_features=4, out_features=3, bias=True)
    """

    cls_to_become = linear.Linear
    _size = "in_features"

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, bias, device, dtype)
        self.out_features = out_features
        self._make_lazy(device, dtype, "weight", "bias")

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))  # type: ignore[attr-defined]
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        self.in_features = self.in_features or input.shape[-1]  # 0 still where a state was loaded


class _LazyConvXdMixin(_Lazy):
    _size = "in_channels"
    _errors = "`groups` is not positive, or at the first call does not divide the input's channels"
    transposed: bool
    _dims: int

    def __init__(self, out_channels: int, kernel_size: Any, *args: Any, **kwargs: Any) -> None:
        given = inspect.signature(type(self)).bind(out_channels, kernel_size, *args, **kwargs).arguments
        if given.get("groups", 1) <= 0:
            raise ValueError(f"The number of groups ({given['groups']}) must be positive.")
        super().__init__(0, 0, kernel_size, *args, **kwargs)
        self.out_channels = out_channels
        self._make_lazy(given.get("device"), given.get("dtype"), "weight", "bias")

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        own: Any = self
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise RuntimeError(
                f"Expected {self._dims + 1}D (unbatched) or {self._dims + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {tuple(input.shape)}"
            )
        own.in_channels = input.shape[-self._dims - 1]
        if own.in_channels % own.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        sizes = (own.out_channels, own.in_channels // own.groups)
        if own.transposed:
            sizes = (own.in_channels, own.out_channels // own.groups)
        own.weight.materialize((*sizes, *own.kernel_size))
        if own.bias is not None:
            own.bias.materialize((own.out_channels,))
        self.reset_parameters()


def _without_first(plain: Any) -> inspect.Signature:
    """The signature of a class whose first argument the input fixes."""
    whole = inspect.signature(plain)
    return whole.replace(parameters=list(whole.parameters.values())[1:])


_TEXT = """`{plain}` whose `{what}` the first input fixes.

As `torch.nn.Lazy{plain}`. Before the first call its parameters have no shape (`UninitializedParameter`);
that call draws them, and the module is of class `mica.nn.{plain}` from then on, with its attributes and
shapes. An optimizer may be made before.

Args:
{args}

Raises:
    ValueError: {errors}.

Example:
    >>> layer = mica.nn.Lazy{plain}({given})
    >>> layer(mica.ones(2, 3, {sizes})).shape
    mica.Size([2, {result}])
    >>> type(layer).__name__, layer.{what}
    ('{plain}', 3)
"""


def _described_args(like: Any) -> str:
    """What the docstring of a class says of its arguments but the first."""
    text = (inspect.getdoc(like) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    return "\n".join(re.split(r"\n(?= {4}\S)", text)[1:])


def _lazy_class(base: Any, plain: Any, like: Any, dims: int, example: tuple[str, int, int]) -> Any:
    """The lazy class of a plain one, with the arguments of `like` but the first.

    `example` holds the arguments of the docstring's example, and the channels and size that come out.
    """
    given, channels, size = example
    doc = _TEXT.format(
        plain=plain.__name__,
        what=base._size,
        args=_described_args(like),
        errors=base._errors,
        given=given,
        sizes=", ".join(["5"] * dims),
        result=", ".join(map(str, [channels, *[size] * dims])),
    )
    names = {"cls_to_become": plain, "__doc__": doc, "__module__": __name__}
    made = type(f"Lazy{plain.__name__}", (base, plain), names)
    made.__signature__ = _without_first(like)  # type: ignore[attr-defined]
    return made


LazyConv1d, LazyConv2d, LazyConv3d, LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy_class(_LazyConvXdMixin, plain, plain, dims, ("8, kernel_size=3", 8, size))
    for kind, size in (("Conv", 3), ("ConvTranspose", 7))
    for dims, plain in ((dims, getattr(conv, f"{kind}{dims}d")) for dims in (1, 2, 3))
)


class _LazyNormBase(_Lazy):
    _size = "num_features"
    _errors = "At the first call, the input is no batch, or of other dimensions than the class takes"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(type(self)).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        super().__init__(0, **given)
        self._make_lazy(given["device"], given["dtype"], "weight", "bias", "running_mean", "running_var")

    def initialize_parameters(self, input: Tensor) -> None:
        if not self.has_uninitialized_params():
            return
        own: Any = self
        own.num_features = input.shape[1]
        for held in (*own._parameters.values(), *own._buffers.values()):
            if is_lazy(held):
                held.materialize((own.num_features,))
        self.reset_parameters()


LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _lazy_class(_LazyNormBase, plain, plain, dims, ("", 3, 5))
    for dims, plain in enumerate((batchnorm.BatchNorm1d, batchnorm.BatchNorm2d, batchnorm.BatchNorm3d), 1)
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (  # whose defaults are batch norm's, as in torch
    _lazy_class(_LazyNormBase, plain, batchnorm.BatchNorm1d, dims, ("", 3, 5))
    for dims, plain in enumerate(
        (instancenorm.InstanceNorm1d, instancenorm.InstanceNorm2d, instancenorm.InstanceNorm3d), 1
    )
)
