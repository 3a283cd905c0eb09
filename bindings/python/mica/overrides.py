"""Interception of functions: modes that see every call of the package on this thread, and
what a library needs to take part in __mica_function__ (torch's __torch_function__).

torch's names stand beside Mica's own, and mean the same.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica._interception.function_modes import (
    DisableFunction as DisableFunction,
    DisableFunctionSubclass as DisableFunctionSubclass,
)
from mica._torch_names import table

has_torch_function = _C._has_function
has_torch_function_variadic = _C._has_function_variadic
has_torch_function_unary = _C._has_function_variadic


class FunctionMode:
    """Sees every call of a function, method or attribute of the package on this thread, inside a `with` block.

    As `torch.overrides.TorchFunctionMode`, whose name it has too. A subclass defines
    `__mica_function__(func, types, args=(), kwargs=None)` (or `__torch_function__`), which returns the
    call's result. The mode is off while that runs, so `func(*args, **kwargs)` goes on: to the mode
    around this one, and to the subclasses among the arguments.

    Example:
        >>> class Names(mica.overrides.FunctionMode):
        ...     def __mica_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with Names():
        ...     x = mica.ones(2).exp()
        ones
        exp
    """

    def __mica_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        raise NotImplementedError(
            f"The function mode ({type(self).__name__}) defines no __mica_function__(func, types, args, kwargs)."
        )

    def __enter__(self) -> Any:
        _C._push_function_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _C._pop_function_mode()


class BaseMode(FunctionMode):
    """A function mode that lets every call go on; a base for modes that look at some calls only.

    As `torch.overrides.BaseTorchFunctionMode`, whose name it has too.

    Example:
        >>> with mica.overrides.BaseMode():
        ...     print(mica.ones(2) + 1)
        tensor([2., 2.])
    """

    def __mica_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


MicaFunctionMode = TorchFunctionMode = FunctionMode
BaseTorchFunctionMode = BaseMode


DisableTorchFunctionSubclass = DisableFunctionSubclass
DisableTorchFunction = DisableFunction


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Lets the function mode and the arguments that override functions compute a call.

    As `torch.overrides.handle_torch_function`; also named `handle_mica_function`. A library calls it at
    the beginning of a function of its own, where `has_torch_function(relevant_args)` is True.

    Args:
        public_api (callable): The function that was called.
        relevant_args (iterable): The arguments that may override it.
        *args: Positional arguments of the call.
        **kwargs: Keyword arguments of the call.

    Returns:
        What the first of them returns that does not return `NotImplemented`.

    Raises:
        TypeError: All of them return `NotImplemented`.

    Example:
        >>> class Celsius:
        ...     @classmethod
        ...     def __mica_function__(cls, func, types, args=(), kwargs=None):
        ...         return "warmer"
        >>> def heat(x):
        ...     if mica.overrides.has_torch_function((x,)):
        ...         return mica.overrides.handle_torch_function(heat, (x,), x)
        ...     return x + 1
        >>> heat(Celsius())
        'warmer'
    """
    return _C._handle_function(public_api, relevant_args, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Any], Any]:
    """Decorates a function so that modes and its arguments may override it.

    As `torch.overrides.wrap_torch_function`; also named `wrap_mica_function`.

    Args:
        dispatcher (callable): Takes the function's arguments and returns those that may override it.

    Returns:
        callable: The decorator.

    Example:
        >>> class Celsius:
        ...     @classmethod
        ...     def __mica_function__(cls, func, types, args=(), kwargs=None):
        ...         return "warmer"
        >>> @mica.overrides.wrap_torch_function(lambda x: (x,))
        ... def heat(x):
        ...     return x + 1
        >>> heat(1), heat(Celsius())
        (2, 'warmer')
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return _C._handle_function(wrapped, relevant, args, kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def _get_overloaded_args(
    relevant_args: Iterable[Any], get_type_fn: Callable[[Any], type] | None = None
) -> list[Any]:
    """Those that want the call, one of each type, in the order in which they are asked."""
    return _C._overloaded(relevant_args)


def is_tensor_like(inp: Any) -> bool:
    """Returns whether an object is a Tensor, or of a class that overrides functions as one.

    As `torch.overrides.is_tensor_like`.

    Args:
        inp (object): The object.

    Returns:
        bool: True for Tensors and for classes with `__mica_function__` or `__torch_function__`.

    Example:
        >>> mica.overrides.is_tensor_like(mica.ones(2)), mica.overrides.is_tensor_like([1.0])
        (True, False)
    """
    cls = type(inp)
    return isinstance(inp, Tensor) or hasattr(cls, "__torch_function__") or hasattr(cls, "__mica_function__")


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Returns the functions whose Tensors a subclass's default override leaves as they are.

    As `torch.overrides.get_default_nowrap_functions`. Results of other functions become of the
    subclass.

    Returns:
        set: Functions, such as the reading of `grad`.

    Example:
        >>> mica.Tensor.grad.__get__ in mica.overrides.get_default_nowrap_functions()
        True
    """
    return set(_C._not_converted)


# ---- the modes of this thread


def _get_current_function_mode_stack() -> list[FunctionMode]:
    return _C._function_modes()


def _get_current_function_mode() -> FunctionMode | None:
    stack = _C._function_modes()
    return stack[-1] if stack else None


def _is_torch_function_mode_enabled() -> bool:
    return bool(_C._has_function(()))


def _push_mode(mode: FunctionMode) -> None:
    _C._push_function_mode(mode)


def _pop_mode() -> FunctionMode:
    return _C._pop_function_mode()


def _len_function_stack() -> int:
    return len(_C._function_modes())


def _function_mode_at(place: int) -> FunctionMode:
    """A mode by its place, the outermost first."""
    return _C._function_modes()[place]


class _DisabledImplementation:
    """What a class puts at __torch_function__ to keep its tensors from being asked."""

    def __call__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with DisableFunctionSubclass():
            return func(*args, **(kwargs or {}))


_disabled_function_implementation = _DisabledImplementation()


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[FunctionMode]:
    mode = _C._pop_function_mode()
    try:
        yield mode
    finally:
        _C._push_function_mode(mode)


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Lets Autograd see the operators that a subclass's `__mica_dispatch__` calls, inside a `with` block.

    As `torch.overrides.enable_reentrant_dispatch`. `__mica_dispatch__` runs below Autograd, so what it
    calls is not recorded otherwise.

    Yields:
        None

    Example:
        >>> class Look(mica.utils.python_dispatch.DispatchMode):
        ...     def __mica_dispatch__(self, func, types, args=(), kwargs=None):
        ...         x = mica.ones(1, requires_grad=True)
        ...         with mica.overrides.enable_reentrant_dispatch():
        ...             inside = x * 2
        ...         print(inside.requires_grad, (x * 2).requires_grad)
        ...         return func(*args, **(kwargs or {}))
        >>> z = mica.zeros(1)
        >>> with Look():
        ...     y = z.exp()
        True False
    """
    exclude = _C._exclude_no_more("Autograd")
    try:
        yield
    finally:
        _C._restore_exclude(exclude)


# ---- what there is to intercept

_BUILTIN = type(Tensor.add)


def _spaces() -> list[tuple[str, Any, list[str]]]:
    modules = {
        "mica": mica,
        "mica.nn.functional": mica.nn.functional,
        "mica.nn.init": mica.nn.init,
        "mica.linalg": mica.linalg,
        "mica.fft": mica.fft,
        "mica.special": mica.special,
    }
    spaces = [(name, module, sorted(vars(module))) for name, module in modules.items()]
    return [*spaces, ("mica.Tensor", Tensor, dir(Tensor))]


_KINDS = (type(_C._Overridable(len)), type(len), _BUILTIN, type(lambda: None), type(Tensor.__add__))


@functools.lru_cache(None)
def _overridable() -> tuple[dict[Any, list[Callable[..., Any]]], dict[Callable[..., Any], str]]:
    functions: dict[Any, list[Callable[..., Any]]] = {}
    names: dict[Callable[..., Any], str] = {}

    def add(space: Any, function: Callable[..., Any], name: str) -> None:
        functions.setdefault(space, []).append(function)
        names.setdefault(function, name)

    for space_name, space, members in _spaces():
        for member in members:
            hidden = member.startswith("_") and not (space is Tensor and member.startswith("__"))
            value = None if hidden or hasattr(object, member) else getattr(space, member, None)
            if value is None or member in _IGNORED:
                continue
            if space is Tensor and type(value) is type(Tensor.shape):
                add(space, value.__get__, f"{space_name}.{member}.__get__")
            elif type(value) in _KINDS and (space is Tensor or type(value) is not _KINDS[3]):
                add(space, value, f"{space_name}.{member}")
    return functions, names


# Factories, which have no tensor to ask (modes see them), and what asks of any object.
_IGNORED = frozenset(
    [
        "arange",
        "as_tensor",
        "bartlett_window",
        "blackman_window",
        "empty",
        "empty_strided",
        "eye",
        "from_file",
        "full",
        "hamming_window",
        "hann_window",
        "is_storage",
        "is_tensor",
        "kaiser_window",
        "linspace",
        "logspace",
        "normal",
        "rand",
        "randint",
        "randn",
        "randperm",
        "range",
        "scalar_tensor",
        "tensor",
        "tril_indices",
        "triu_indices",
        "typename",
        "zeros",
        "ones",
        "vander",
        "frombuffer",
        "asarray",
        "are_deterministic_algorithms_enabled",
        "broadcast_shapes",
        "initial_seed",
        "manual_seed",
        "seed",
        "compile",
    ]
) | frozenset(
    (
        "as_subclass",
        "can_cast",
        "from_numpy",
        "get_default_dtype",
        "get_num_threads",
        "load_plugin",
        "promote_types",
        "result_type",
        "set_default_dtype",
        "set_num_threads",
        "__delitem__",
        "__mica_function__",
        "__torch_function__",
    )
)


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Returns the functions that modes and subclasses can override, by the module or class that has them.

    As `torch.overrides.get_overridable_functions`.

    Returns:
        dict: Modules, and `Tensor`, with lists of functions.

    Example:
        >>> mica.add in mica.overrides.get_overridable_functions()[mica]
        True
    """
    return {_shown(space): list(functions) for space, functions in _overridable()[0].items()}


def _shown(space: Any) -> Any:
    """The module as the program knows it: torch's while `import torch` gives Mica."""
    if _C._library_name() != "torch" or isinstance(space, type):
        return space
    return table.module(space.__name__.replace("mica", "torch", 1))


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Returns, for each function that can be overridden, a stand-in that takes anything and returns -1.

    As `torch.overrides.get_testing_overrides`, but that a stand-in has no signature of its own.

    Returns:
        dict: From functions to functions.

    Example:
        >>> mica.overrides.get_testing_overrides()[mica.add](1, 2)
        -1
    """
    return {function: lambda *args, **kwargs: -1 for function in _overridable()[1]}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Returns the public functions that arguments cannot override: factories and functions without Tensors.

    As `torch.overrides.get_ignored_functions`. Modes see factories nevertheless.

    Returns:
        set: Functions.

    Example:
        >>> mica.zeros in mica.overrides.get_ignored_functions()
        True
    """
    found = {getattr(mica, name, None) or getattr(Tensor, name, None) for name in _IGNORED}
    return {function for function in found if function is not None}


def resolve_name(f: Any) -> str | None:
    """Returns the full name of a function that can be overridden.

    As `torch.overrides.resolve_name`.

    Args:
        f (callable): A function, a method, or an operator of `mica.ops`.

    Returns:
        str or None: The name; None where it is unknown.

    Example:
        >>> mica.overrides.resolve_name(mica.Tensor.add)
        'mica.Tensor.add'
    """
    from mica.ops import OpOverload, OpPacket

    if isinstance(f, OpOverload):
        return str(f)
    if isinstance(f, OpPacket):
        return f._qualified
    name = _overridable()[1].get(f)
    return name if name is None else f"{_C._library_name()}{name.removeprefix('mica')}"


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Returns whether a function is a method of Tensor, or reads or writes a property of it.

    As `torch.overrides.is_tensor_method_or_property`.

    Args:
        func (callable): What an override was given as `func`.

    Returns:
        bool: False for functions of modules.

    Example:
        >>> mica.overrides.is_tensor_method_or_property(mica.Tensor.add)
        True
        >>> mica.overrides.is_tensor_method_or_property(mica.add)
        False
    """
    return func in _overridable()[0].get(Tensor, ()) or getattr(func, "__name__", "") in (
        "__get__",
        "__set__",
    )


has_mica_function = has_torch_function
has_mica_function_unary = has_torch_function_unary
has_mica_function_variadic = has_torch_function_variadic
handle_mica_function = handle_torch_function
wrap_mica_function = wrap_torch_function
