"""mica.library: operators and kernels from Python, as torch.library has them."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mica
from mica import _C
from mica._C import Tensor, dtype
from mica._devices.python_backend import (
    Device as Device,
    register_device as register_device,
)
from mica._runtime.layer_rules import autocast_kernel, checked_device_type, checked_policy, vmap_kernel
from mica.ops import OpOverload
from mica.utils._pytree import tree_flatten

# torch's names of dispatch keys, for programs that come from there.
_KEYS = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "Autograd": "Autograd",
    "AutogradCPU": "Autograd",
    "CompositeImplicitAutograd": "Composite",
    "CompositeExplicitAutograd": "Composite",
    "": "Composite",
}


def _key(name: str) -> str:
    return _KEYS.get(name, name)


def _caller() -> tuple[str, int]:
    frame = sys._getframe(2)
    return frame.f_code.co_filename, frame.f_lineno


def _refuse_keyset(with_keyset: bool) -> None:
    if with_keyset:
        raise NotImplementedError(
            "Library.impl and fallback give kernels no set of keys (with_keyset=True); a kernel that passes the "
            "call on does so through mica.ops, or is a layer of its own (docs/guides/write-a-layer.md)."
        )


class Library:
    """Registrations under one namespace; they go with the object, or earlier by
    _destroy()."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"The kind ({kind}) is unknown; expected DEF, IMPL or FRAGMENT.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._scopes: list[Any] = []
        self._autocast: dict[str, dict[str, dtype | str]] = {}  # by operator and device type

    def _scope(self) -> Any:
        scope = _C._Scope(f"python library {self.ns}")
        self._scopes.append(scope)
        return scope

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Defines an operator; returns its name."""
        if self.kind == "IMPL":
            raise ValueError("A library of kind IMPL defines no operators; use DEF or FRAGMENT.")
        scope = self._scope()
        scope.define(f"{self.ns}::{schema}", *_caller())
        scope.commit()
        return schema.split("(")[0].strip()

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False
    ) -> None:
        """Registers a kernel for a backend ("cpu"), a layer ("Autograd") or, without a
        key, a decomposition for all."""
        _refuse_keyset(with_keyset)
        name = op_name.name() if isinstance(op_name, OpOverload) else op_name
        if not callable(fn):
            raise TypeError(
                f"A kernel must be callable; the one for ({name}) is of type ({type(fn).__name__})."
            )
        if "::" not in name:
            name = f"{self.ns}::{name}"
        scope = self._scope()
        scope.add_kernel(name, _key(dispatch_key or self.dispatch_key), fn, *_caller())
        scope.commit()

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Registers a kernel for all operators that have none at the key."""
        _refuse_keyset(with_keyset)
        scope = self._scope()
        scope.add_fallback(_key(dispatch_key or self.dispatch_key), fn, *_caller())
        scope.commit()

    def _destroy(self) -> None:
        for scope in self._scopes:
            scope.disable()
        self._scopes.clear()
        self._autocast.clear()


_libraries: dict[str, Library] = {}


def _library(ns: str) -> Library:
    return _libraries.setdefault(ns, Library(ns, "FRAGMENT"))


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Defines "ns::name" with a schema such as "(Tensor x) -> Tensor"."""
    ns, name = _split(qualname)
    (lib or _library(ns)).define(name + schema)


def impl(
    qualname: str | Library,
    types: str | Sequence[str],
    func: Callable[..., Any] | str | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers a kernel for device types ("cpu", "default" for all).

    impl(library, name, key) decorates a kernel of an open library for a dispatch key.
    """
    if isinstance(qualname, Library):
        library, key = qualname, func if isinstance(func, str) else ""

        def register_in(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(types, function, key)
            return function

        return register_in
    if isinstance(func, str):
        raise TypeError(f"The kernel of ({qualname}) must be callable; it is the str ({func!r}).")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for kind in [types] if isinstance(types, str) else types:
            ns, _ = _split(qualname)
            (lib or _library(ns)).impl(qualname, function, "" if kind == "default" else kind)
        return function

    return register if func is None else register(func)


def register_kernel(
    op: Any, device_types: str | Sequence[str] | None, func: Any = None, *, lib: Library | None = None
) -> Any:
    """Registers a kernel of a custom operator for device types; None for all."""
    return impl(_name(op), "default" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Registers the function that computes shapes and dtypes, on meta tensors."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = _name(op)
        (lib or _library(_split(name)[0])).impl(name, function, "meta")
        return function

    return register if func is None else register(func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Library | None = None
) -> None:
    """Gives an operator a gradient: backward(ctx, *grads), and
    setup_context(ctx, inputs, output) that saves what it needs."""
    name = _name(op)
    overload = _overload(name)

    class Generated(mica.autograd.Function):
        @staticmethod
        def forward(*args: Any) -> Any:
            return overload.redispatch_below("Autograd", *args)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            if setup_context is not None:
                setup_context(ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return backward(ctx, *grads)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> Any:  # by the operator's own rule
            return mica.func.vmap(overload, in_dims, randomness=info.randomness)(*args), 0

    Generated.__name__ = name.split("::")[-1].replace(".", "_")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        tensors = [a for a in args if isinstance(a, Tensor)]
        if kwargs or not mica.is_grad_enabled() or not any(t.requires_grad for t in tensors):
            return overload.redispatch_below("Autograd", *args, **kwargs)
        return Generated.apply(*args)

    (lib or _library(_split(name)[0])).impl(name, kernel, "Autograd")


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Gives an operator a batch rule: func(info, in_dims, *args) returns (output, out_dims).

    `info` has batch_size and randomness; `in_dims` the dimension of the batch in each argument, 0
    or None, and a list of them for a list. `args` are the values of all examples. Without a rule
    the operator runs once for each example."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = _name(op)
        _C._vmap_rule(name)  # opens the layer
        (lib or _library(_split(name)[0])).impl(name, vmap_kernel(_overload(name), function), "vmap")
        return function

    return register if func is None else register(func)


def register_autocast(
    op: Any, device_type: str, cast_inputs: dtype | str, /, *, lib: Library | None = None
) -> None:
    """Says what autocast does with an operator on a device: casts its floating tensors to the
    dtype `cast_inputs`, or by a policy: "lower", "float32" or "promote". float64 stays. The
    operator itself runs without autocast."""
    name = _name(op)
    owner = lib or _library(_split(name)[0])
    policies = owner._autocast.get(name)
    if policies is None:
        policies = owner._autocast[name] = {}
        owner.impl(name, autocast_kernel(_overload(name), policies), "Autocast")
    policies[checked_device_type(device_type)] = checked_policy(cast_inputs)


def _memory(x: Tensor) -> Any:
    """What stands for the memory of a tensor: equal where it is shared. None where it has none of its own."""
    return None if _C._frame_kind() is not None else x._storage_ptr() or None


def _returning_new(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of a custom operator, refused where it returns memory of an input or twice the same."""

    @functools.wraps(function)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, Tensor)]
        taken = {id(t) for t in tensors} | {m for m in map(_memory, tensors) if m is not None}
        for i, t in enumerate(t for t in tree_flatten(result)[0] if isinstance(t, Tensor)):
            marks = {id(t), _memory(t)} - {None}
            if taken & marks:
                raise RuntimeError(
                    f"{name} (with implementation in {function.__module__}): The output of this custom operator "
                    "(1) must not also be an input to this custom operator and (2) may not alias any inputs to this "
                    f"custom operator or other returns. Output ({i}) does; return a clone of it (x.clone())."
                )
            taken |= marks
        return result

    return kernel


class CustomOpDef:
    """What custom_op returns: the operator, callable, with its registrations."""

    def __init__(self, name: str, function: Callable[..., Any], schema: str, library: Library) -> None:
        self._qualname = name
        self._function = function
        self._library = library
        library.define(name.split("::")[1] + schema)
        self._opoverload = _overload(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            register_kernel(
                self._qualname, device_types, _returning_new(self._qualname, function), lib=self._library
            )
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        return register_fake(self._qualname, fn, lib=self._library)

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        register_autograd(self._qualname, backward, setup_context=setup_context, lib=self._library)

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        return register_vmap(self._qualname, func, lib=self._library)

    def register_autocast(self, device_type: str, cast_inputs: dtype | str) -> None:
        register_autocast(self._qualname, device_type, cast_inputs, lib=self._library)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any = (),
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes an operator of a Python function; its schema comes from its annotations."""

    def make(function: Callable[..., Any]) -> CustomOpDef:
        ns, _ = _split(name)
        if schema is not None:
            _check_mutations(schema, mutates_args)
        definition = CustomOpDef(
            name, function, schema or infer_schema(function, mutates_args=mutates_args), _library(ns)
        )
        definition.register_kernel(device_types, function)
        return definition

    return make if fn is None else make(fn)


def _check_mutations(schema: str, mutates_args: Any) -> None:
    written = set(re.findall(r"Tensor\([^()]*!\)[^ ,]* (\w+)", schema.rpartition("->")[0]))
    if written != set(mutates_args):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}`: the schema "
            f"says that it writes {sorted(written)}. Make the two agree."
        )


_SCALARS = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", complex: "Scalar"}


def _type_text(annotation: Any) -> str:
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if annotation is mica.dtype:
        return "ScalarType"
    if annotation is mica.device:
        return "Device"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if arguments and type(None) in arguments:
        (inner,) = [a for a in arguments if a is not type(None)]
        return _type_text(inner) + "?"
    if origin is typing.Union or (origin is not None and getattr(origin, "__name__", "") == "UnionType"):
        return "Scalar"
    if origin in (list, Sequence) or getattr(origin, "__name__", "") in ("Sequence", "list"):
        return _type_text(arguments[0]) + "[]"
    raise ValueError(f"The annotation ({annotation}) has no schema type; give `schema=` instead.")


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: Any = (),
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema that a function's annotations say. mutates_args: the names of the parameters that it
    writes, or "unknown", which says that it may write each tensor."""
    hints = typing.get_type_hints(prototype_function)
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or the string "
            f"'unknown'; it is ({mutates_args!r})."
        )
    unknown = set() if mutates_args == "unknown" else set(mutates_args) - set(hints)
    if unknown:
        raise ValueError(
            f"infer_schema(func): {unknown} in mutates_args were not found in the custom op's signature."
        )
    parts: list[str] = []
    keyword_only = False
    letter = iter("abcdefghijklmnopqrstuvwxyz")
    for parameter in inspect.signature(prototype_function).parameters.values():
        if parameter.name not in hints:
            raise ValueError(f"The parameter ({parameter.name}) has no annotation.")
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        text = _type_text(hints[parameter.name])
        if text.startswith("Tensor") and (mutates_args == "unknown" or parameter.name in mutates_args):
            text = f"Tensor({next(letter)}!)" + text.removeprefix("Tensor")
        elif mutates_args != "unknown" and parameter.name in mutates_args:
            raise ValueError(
                f"infer_schema(func): Parameter {parameter.name} is in mutable_args but only Tensors or collections of "
                f"Tensors can be mutated, and its type is ({text})."
            )
        text += f" {parameter.name}"
        if parameter.default is not inspect.Parameter.empty:
            default = parameter.default
            text += "=" + (f'"{default}"' if isinstance(default, str) else str(default))
        parts.append(text)
    result = hints.get("return", type(None))
    if result is type(None):
        returns = "()"
    elif typing.get_origin(result) is tuple:
        returns = "(" + ", ".join(_type_text(a) for a in typing.get_args(result)) + ")"
    else:
        returns = _type_text(result)
    return f"{op_name or ''}({', '.join(parts)}) -> {returns}"


def _split(qualname: str) -> tuple[str, str]:
    ns, separator, name = qualname.partition("::")
    if not separator or not ns or not name:
        raise ValueError(f"An operator's name is namespace::name; this one is ({qualname}).")
    return ns, name


def _name(op: Any) -> str:
    if isinstance(op, CustomOpDef):
        return op._qualname
    return op.name() if isinstance(op, OpOverload) else str(op)


def _overload(name: str) -> OpOverload:
    operator = _C._find_operator(name)
    if operator is None:
        raise RuntimeError(f"No operator is named {name}; define it first.")
    return OpOverload(operator)


@contextmanager
def layer(name: str) -> Iterator[None]:
    """This thread's calls pass the kernels of a plugin's layer: `with mica.library.layer("acme.count"):`.

    The plugin that provides the layer is loaded if need be. Layers of Mica's own are turned on by
    functions of their own.
    """
    before = _C._include(name)
    try:
        yield
    finally:
        _C._restore_include(name, before)


@contextmanager
def frame(kind: str) -> Iterator[None]:
    """One level of a plugin's transform: within, operators run by the kernels of its frame kind.

    The plugin makes the transform's tensors and reads them, by operators of its own; a function
    such as mica.func.vmap is written over this.
    """
    entered = _C._frame_enter(kind)
    try:
        yield
    finally:
        _C._frame_exit(entered)


def set_check_writes(on: bool) -> bool:
    """Holds kernels to their schemas from now on (or no longer), and returns what was before.

    While on, a CPU kernel (of a plugin, of Python or of Mica) that writes an argument which
    its schema does not declare as written, or returns memory of one, raises RuntimeError with
    the operator and the argument. Every call then copies its arguments. The environment
    variable MICA_CHECK_WRITES=1 turns it on from the start.
    """
    return _C._set_check_writes(on)
