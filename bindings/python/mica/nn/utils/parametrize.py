"""Parametrisations: a parameter computed from others by modules, whenever it is read.

register_parametrization() moves the parameter to module.parametrizations.<name>.original
and gives the module a class of its own, in which <name> is a property. A
parametrisation with right_inverse() may be assigned to, and start from several tensors,
original0, original1, ..."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mica
from mica._C import Tensor
from mica.nn.modules.container import ModuleDict, ModuleList
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter

_cache: dict[tuple[int, str], Any] | None = None


@contextmanager
def cached() -> Iterator[None]:
    """A block within which every parametrised tensor is computed once, however often it is read.

    As `torch.nn.utils.parametrize.cached`. For layers that read a weight many times, as a loop over steps
    does. What the tensors are computed of must not change within.

    Yields:
        None: Nothing.

    Example:
        >>> from mica.nn.utils import parametrize
        >>> layer = mica.nn.utils.parametrizations.weight_norm(mica.nn.Linear(2, 3))
        >>> with parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    global _cache
    outer, _cache = _cache, {} if _cache is None else _cache
    try:
        yield
    finally:
        _cache = outer


def _describe(value: Any) -> str:
    """A value as an error names it."""
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, in order, with the tensors that they start from.

    As `torch.nn.utils.parametrize.ParametrizationList`. `register_parametrization` makes it and puts it at
    `module.parametrizations.<name>`; calling it computes the tensor.

    Args:
        modules (sequence of Module): The parametrisations, the first of which is called first.
        original (Tensor): The tensor as it was.
        unsafe (bool): Do not check that shape and dtype stay as they were. Default: False.

    Attributes:
        original (Parameter or Tensor): What the first is called with; `original0`, `original1`, ... where its
            `right_inverse` gave several tensors.

    Raises:
        ValueError: The result has another shape or dtype than `original` (unless `unsafe`), or a
            `right_inverse` gives anything else than tensors.

    Example:
        >>> layer = mica.nn.utils.parametrizations.weight_norm(mica.nn.Linear(2, 3))
        >>> type(layer.parametrizations.weight).__name__
        'ParametrizationList'
        >>> layer.parametrizations.weight().equal(layer.weight)
        True
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        start: Any = original
        with mica.no_grad(), contextlib.suppress(NotImplementedError):  # which says: start from the original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    start = module.right_inverse(start)
        self.is_tensor = isinstance(start, Tensor)
        if not self.is_tensor and not isinstance(start, Sequence):
            raise ValueError(
                f"right_inverse() returns a Tensor or a sequence of Tensors, not a ({type(start).__name__})."
            )
        for i, part in enumerate(() if self.is_tensor else start):
            if not isinstance(part, Tensor):
                raise ValueError(
                    f"right_inverse() returned a sequence whose element ({i}) is a ({type(part).__name__}); "
                    "expected Tensors."
                )
        if self.is_tensor and start.dtype != original.dtype:
            raise ValueError(
                f"right_inverse() made a tensor {start.dtype} of one {original.dtype}; a parametrisation from one "
                "tensor keeps the dtype."
            )
        self.ntensors = 1 if self.is_tensor else len(start)
        for name, value in zip(self._names(), [start] if self.is_tensor else start):
            if self.is_tensor:
                if value is not original:
                    original.data = (
                        value.detach()
                    )  # the same object: an optimizer that has it goes on with it
                register = (
                    self.register_parameter if isinstance(original, Parameter) else self.register_buffer
                )
                register(name, original)
            elif isinstance(original, Parameter):
                self.register_parameter(
                    name, Parameter(value.detach().clone(), requires_grad=original.requires_grad)
                )
            else:
                self.register_buffer(name, value)
        if not unsafe:
            self._check(original, self())

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    def _check(self, original: Tensor, value: Any) -> None:
        if not isinstance(value, Tensor) or value.shape != original.shape or value.dtype != original.dtype:
            raise ValueError(
                f"A parametrisation gives ({_describe(value)}) for ({_describe(original)}); say unsafe=True if that is meant."
            )

    def _append(self, parametrization: Module, value: Tensor, unsafe: bool) -> None:
        """One more after the others, whose tensor is `value`; what does not fit changes nothing."""
        if not unsafe:
            made = parametrization(value)
            self._check(value, made)
            if hasattr(parametrization, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    self._check(value, parametrization.right_inverse(made))
        self.append(parametrization)
        self.unsafe |= unsafe

    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that the tensor is `value`, as an assignment to it does.

        Args:
            value (Tensor): Of the shape and dtype of the tensor.

        Raises:
            RuntimeError: A parametrisation has no `right_inverse`.
        """
        with mica.no_grad():
            start: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"The parametrisation {type(module).__name__} has no right_inverse(), so that its tensor cannot be "
                        "assigned to."
                    )
                start = module.right_inverse(start)
            for name, part in zip(self._names(), [start] if self.is_tensor else start):
                getattr(self, name).data = part.detach().clone()

    def forward(self) -> Tensor:  # type: ignore[override]
        modules = iter(self)
        value = next(modules)(*(getattr(self, name) for name in self._names()))
        for module in modules:
            value = module(value)
        return value


def _property(name: str) -> property:
    def get(self: Any) -> Tensor:
        parametrization = self.parametrizations[name]
        if _cache is None:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def put(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def _give_class(module: Module) -> None:
    """A class of the module's own, which properties can be put on."""
    base = type(module)

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        import copy

        twin = self.__new__(self.__class__)
        memo[id(self)] = twin
        twin.__dict__ = copy.deepcopy(self.__dict__, memo)
        return twin

    def __getstate__(self: Any) -> Any:
        raise RuntimeError(
            "A parametrised module cannot be pickled, since its class is made at run time; save its state_dict()."
        )

    module.__class__ = type(
        f"Parametrized{base.__name__}", (base,), {"__deepcopy__": __deepcopy__, "__getstate__": __getstate__}
    )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes a tensor of a module the result of a function of itself, computed whenever it is read.

    As `torch.nn.utils.parametrize.register_parametrization`. The optimizer trains the original,
    `module.parametrizations.<name>.original`, and the layer sees, say, a symmetric matrix. A second
    parametrisation is called with the result of the first. If the parametrisation has a method
    `right_inverse`, the original starts from it, so that the tensor keeps its value, and may be assigned to;
    it may give several tensors, which the parametrisation is then called with. The module gets a class of its
    own, a subclass, and is saved by its state dict, not by pickling.

    Args:
        module (Module): Changed in place.
        tensor_name (str): Of a parameter or buffer.
        parametrization (Module): Called with the original; gives the tensor.
        unsafe (bool): Do not check that shape and dtype stay as they were. Default: False.

    Returns:
        Module: `module`.

    Raises:
        ValueError: The module has no such tensor, or the parametrisation gives another shape or dtype (unless
            `unsafe`).

    Example:
        >>> from mica.nn.utils import parametrize
        >>> class Symmetric(mica.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = parametrize.register_parametrization(mica.nn.Linear(3, 3), "weight", Symmetric())
        >>> layer.weight.equal(layer.weight.T)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        added: ParametrizationList = module.parametrizations[tensor_name]
        added._append(parametrization, getattr(module, tensor_name), unsafe)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module {type(module).__name__} has no parameter, buffer or parametrised tensor ({tensor_name})."
        )
    original = getattr(module, tensor_name)
    parametrizations = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _give_class(module)
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = parametrizations
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module, or one tensor of it, is parametrised. Modules below it do not count.

    As `torch.nn.utils.parametrize.is_parametrized`.

    Args:
        module (Module): The module that is looked at.
        tensor_name (str, optional): Of one tensor. Default: None, which asks for any.

    Returns:
        bool: The answer.

    Example:
        >>> from mica.nn.utils import parametrize
        >>> layer = mica.nn.utils.parametrizations.weight_norm(mica.nn.Linear(2, 3))
        >>> parametrize.is_parametrized(layer), parametrize.is_parametrized(layer, "bias")
        (True, False)
    """
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Takes all parametrisations from a tensor, which is a plain one again.

    As `torch.nn.utils.parametrize.remove_parametrizations`. Once no tensor of it is parametrised, the module
    has its old class.

    Args:
        module (Module): Changed in place.
        tensor_name (str): Of the tensor.
        leave_parametrized (bool): The tensor keeps the value that it was last computed to; else it is the
            original. Default: True.

    Returns:
        Module: `module`.

    Raises:
        ValueError: The tensor is not parametrised, or `leave_parametrized` is False and it has several
            originals.

    Example:
        >>> from mica.nn.utils import parametrize
        >>> layer = mica.nn.utils.parametrizations.weight_norm(mica.nn.Linear(2, 3))
        >>> [name for name, _ in parametrize.remove_parametrizations(layer, "weight").named_parameters()]
        ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {type(module).__name__} has no parametrisation on ({tensor_name}).")
    parametrizations: ParametrizationList = module.parametrizations[tensor_name]
    if not leave_parametrized and not parametrizations.is_tensor:
        raise ValueError(
            f"The tensor ({tensor_name}) is made of {parametrizations.ntensors} tensors; it has no one original to leave."
        )
    first = getattr(parametrizations, parametrizations._names()[0])
    tensor: Tensor = first
    if leave_parametrized:
        with mica.no_grad():
            value = getattr(module, tensor_name).detach().clone()
        if parametrizations.is_tensor and value.dtype == first.dtype:
            first.data = value  # the same object: an optimizer that has it goes on with it
        else:
            tensor = Parameter(value, first.requires_grad) if isinstance(first, Parameter) else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if len(module.parametrizations) == 0:
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    if isinstance(tensor, Parameter):
        module.register_parameter(tensor_name, tensor)
    else:
        module.register_buffer(tensor_name, tensor)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before it was parametrised; else its class.

    As `torch.nn.utils.parametrize.type_before_parametrizations`.

    Args:
        module (Module): The module that is looked at.

    Returns:
        type: The class.

    Example:
        >>> from mica.nn.utils import parametrize
        >>> layer = mica.nn.utils.parametrizations.weight_norm(mica.nn.Linear(2, 3))
        >>> type(layer).__name__, parametrize.type_before_parametrizations(layer).__name__
        ('ParametrizedLinear', 'Linear')
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives one module the parametrisations of another, and the tensors that they start from.

    As `torch.nn.utils.parametrize.transfer_parametrizations_and_params`. Both hold the same parametrisations
    and tensors afterwards.

    Args:
        from_module (Module): Stays as it is. If it is not parametrised, nothing happens.
        to_module (Module): Changed in place; a tensor that it lacks is added.
        tensor_name (str, optional): Of one tensor. Default: None, which transfers all that are parametrised.

    Returns:
        Module: `to_module`.

    Raises:
        KeyError: The tensor is not parametrised.

    Example:
        >>> from mica.nn.utils import parametrize
        >>> old = mica.nn.utils.parametrizations.orthogonal(mica.nn.Linear(3, 3))
        >>> new = parametrize.transfer_parametrizations_and_params(old, mica.nn.Linear(3, 3))
        >>> new.weight.equal(old.weight)
        True
    """
    if not is_parametrized(from_module):
        return to_module
    names = [tensor_name] if tensor_name is not None else list(from_module.parametrizations)
    for name in names:
        given: ParametrizationList = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in given:
            register_parametrization(to_module, name, parametrization)
        for original in given._names():
            setattr(to_module.parametrizations[name], original, getattr(given, original))
    return to_module
