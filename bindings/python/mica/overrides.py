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
    """`with` makes it see the calls of functions, methods and attributes on this thread,
    through its method __mica_function__(func, types, args=(), kwargs=None), which returns
    the result. It is off while its own method runs: func(*args, **kwargs) goes on to the
    next mode and to the subclasses among the arguments."""

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
    """Lets every call go on."""

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
    """Asks the innermost mode and the relevant arguments for the result of a call."""
    return _C._handle_function(public_api, relevant_args, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Any], Any]:
    """Makes a function ask first; dispatcher(*args, **kwargs) tells its relevant arguments."""

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
    """Whether it is a Tensor, or an object that takes part as one."""
    cls = type(inp)
    return isinstance(inp, Tensor) or hasattr(cls, "__torch_function__") or hasattr(cls, "__mica_function__")


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The functions whose tensors the default implementation leaves as they are."""
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
    """Inside the block, in a subclass's __mica_dispatch__, Autograd sees operators again."""
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
    """The functions that can be intercepted, by the module or class where they stand."""
    return {_shown(space): list(functions) for space, functions in _overridable()[0].items()}


def _shown(space: Any) -> Any:
    """The module as the program knows it: torch's while `import torch` gives Mica."""
    if _C._library_name() != "torch" or isinstance(space, type):
        return space
    return table.module(space.__name__.replace("mica", "torch", 1))


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be intercepted a stand-in that takes anything and gives -1."""
    return {function: lambda *args, **kwargs: -1 for function in _overridable()[1]}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that nobody intercepts: what makes no tensor and takes none."""
    found = {getattr(mica, name, None) or getattr(Tensor, name, None) for name in _IGNORED}
    return {function for function in found if function is not None}


def resolve_name(f: Any) -> str | None:
    """The name by which a program finds an intercepted function, "mica.Tensor.add"; None if unknown."""
    from mica.ops import OpOverload, OpPacket

    if isinstance(f, OpOverload):
        return str(f)
    if isinstance(f, OpPacket):
        return f._qualified
    name = _overridable()[1].get(f)
    return name if name is None else f"{_C._library_name()}{name.removeprefix('mica')}"


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether it is a method of Tensor or a property's `__get__`."""
    return func in _overridable()[0].get(Tensor, ()) or getattr(func, "__name__", "") in (
        "__get__",
        "__set__",
    )


has_mica_function = has_torch_function
has_mica_function_unary = has_torch_function_unary
has_mica_function_variadic = has_torch_function_variadic
handle_mica_function = handle_torch_function
wrap_mica_function = wrap_torch_function
