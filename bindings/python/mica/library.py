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
from mica._C import Object as Object, Tensor, dtype
from mica._devices.numbered import python_name
from mica._devices.python_backend import (
    Device as Device,
    register_device as register_device,
)
from mica._runtime import layer_rules as _rules
from mica.ops import OpOverload
from mica.utils import _pytree

# torch's names of dispatch keys that name no backend, for programs that come from there.
_KEYS = {
    "Autograd": "Autograd",
    "CompositeImplicitAutograd": "Composite",
    "CompositeExplicitAutograd": "Composite",
    "": "Composite",
}


def _key(name: str) -> str:
    """The layer or backend that a key of torch's or Mica's names: "ACME" is the backend "acme", and so is
    "PrivateUse1" where the program calls its backend so. A backend's plugin need not be there yet."""
    if name in _KEYS:
        return _KEYS[name]
    plain = name.removeprefix("Autograd")
    backend = _C._private_backend() if plain == "PrivateUse1" else _backend_called(plain)
    if backend is None:
        return name
    if plain != name:
        return "Autograd"
    _C._register_backend_name(backend)
    return backend


def _backend_called(name: str) -> str | None:
    """The backend of this name in any case, "ACME_NPU" of "acme.npu"."""
    spelled = python_name(name).lower()
    known = ("cuda", "xpu", "mps", *_C._known_backends(False))
    return next((backend for backend in known if python_name(backend).lower() == spelled), None)


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
    """Definitions of operators and kernels under one namespace, which last as long as this object.

    As `torch.library.Library`.

    Args:
        ns (str): The namespace: "acme" of `mica.ops.acme`.
        kind (str): "DEF" or "FRAGMENT" for a library that defines operators, "IMPL" for one that only
            adds kernels to operators.
        dispatch_key (str): The key of `impl()` and `fallback()` that name none. Default: "".

    Raises:
        ValueError: The kind is none of the three.

    Example:
        >>> acme = mica.library.Library("acme", "DEF")
        >>> acme.define("twice(Tensor x) -> Tensor")
        'twice'
        >>> acme.impl("twice", lambda x: x + x, "cpu")
        >>> mica.ops.acme.twice(mica.ones(2))
        tensor([2., 2.])
    """

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
        """Defines an operator.

        Args:
            schema (str): Name, arguments and results: "scale(Tensor x, float by=2.0) -> Tensor".
            alias_analysis (str): Ignored; the schema says what shares memory. Default: "".
            tags (Any): Ignored. Default: ().

        Returns:
            str: The operator's name without the namespace.

        Raises:
            ValueError: The library is of kind "IMPL".
            RuntimeError: The schema cannot be read, or the operator is defined already.
        """
        if self.kind == "IMPL":
            raise ValueError("A library of kind IMPL defines no operators; use DEF or FRAGMENT.")
        scope = self._scope()
        scope.define(f"{self.ns}::{schema}", *_caller())
        scope.commit()
        return schema.split("(")[0].strip()

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False
    ) -> None:
        """Registers a kernel of an operator.

        Args:
            op_name (str or OpOverload): The operator, with or without the namespace.
            fn (callable): The kernel; called with the operator's arguments.
            dispatch_key (str): A backend ("cpu", "CPU", "acme", "ACME", or "PrivateUse1" for that of
                `mica.utils.rename_privateuse1_backend()`), "meta" for the function of shapes, or a layer
                ("Autograd"). Default: the library's; without that, `fn` is a decomposition for all backends.
            with_keyset (bool): Must be False: kernels are given no set of keys.

        Raises:
            TypeError: `fn` is not callable.
            RuntimeError: The key is neither a backend nor a layer.
            NotImplementedError: `with_keyset` is True.
        """
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
        """Registers a kernel for all operators that have none at a key.

        Args:
            fn (callable): Called with the operator's arguments; it is not told which operator it is, as
                torch's is.
            dispatch_key (str): A backend or a layer. Default: the library's.
            with_keyset (bool): Must be False: kernels are given no set of keys.

        Raises:
            RuntimeError: The key is neither a backend nor a layer.
            NotImplementedError: `with_keyset` is True.
        """
        _refuse_keyset(with_keyset)
        scope = self._scope()
        scope.add_fallback(_key(dispatch_key or self.dispatch_key), fn, *_caller())
        scope.commit()

    def _destroy(self) -> None:
        for scope in self._scopes:
            scope.disable()
        self._scopes.clear()
        self._autocast.clear()


@contextmanager
def _scoped_library(ns: str, kind: str, dispatch_key: str = "") -> Iterator[Library]:
    """A `Library` whose definitions end with the block."""
    library = Library(ns, kind, dispatch_key)
    try:
        yield library
    finally:
        library._destroy()


_libraries: dict[str, Library] = {}


def _library(ns: str) -> Library:
    return _libraries.setdefault(ns, Library(ns, "FRAGMENT"))


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Defines an operator, for the rest of the program.

    As `torch.library.define`.

    Args:
        qualname (str): Namespace and name, "shapes::area".
        schema (str): Arguments and results, "(Tensor x) -> Tensor".
        lib (Library, optional): Owns the definition. Default: one that lasts.
        tags (Any): Ignored. Default: ().

    Raises:
        ValueError: The name has no namespace.
        RuntimeError: The schema cannot be read, or the operator is defined already.

    Example:
        >>> mica.library.define("shapes::area", "(Tensor width, Tensor height) -> Tensor")
        >>> _ = mica.library.impl("shapes::area", "default", lambda width, height: width * height)
        >>> mica.ops.shapes.area(mica.tensor([2.0]), mica.tensor([3.0]))
        tensor([6.])
    """
    ns, name = _split(qualname)
    (lib or _library(ns)).define(name + schema)


def impl(
    qualname: str | Library,
    types: str | Sequence[str],
    func: Callable[..., Any] | str | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers a kernel of an operator, for the rest of the program.

    As `torch.library.impl`, in its three forms: `impl(name, types, kernel)`, the decorator
    `@impl(name, types)`, and the decorator `@impl(library, name, dispatch_key)`.

    Args:
        qualname (str or Library): Namespace and name, "shapes::area"; or an open library.
        types (str or sequence of str): Device types ("cpu"), or "default" for a decomposition for all.
            With a library: the operator's name.
        func (callable or str, optional): The kernel. With a library: its dispatch key. Default: None,
            the kernel is decorated.
        lib (Library, optional): Owns the registration. Default: one that lasts.

    Returns:
        callable: The kernel, or the decorator of it.

    Raises:
        TypeError: The kernel is not callable.
        RuntimeError: A device type is unknown.

    Example:
        >>> mica.library.define("shapes::half", "(Tensor x) -> Tensor")
        >>> @mica.library.impl("shapes::half", "cpu")
        ... def half(x):
        ...     return x / 2
        >>> mica.ops.shapes.half(mica.ones(2))
        tensor([0.5000, 0.5000])
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
    """Registers a kernel of a custom operator for device types.

    As `torch.library.register_kernel`.

    Args:
        op (str, OpOverload or CustomOpDef): The operator, as "namespace::name" or what `custom_op()` returned.
        device_types (str, sequence of str or None): Device types, "cpu"; None for all.
        func (callable, optional): The kernel. Default: None, it is decorated.
        lib (Library, optional): Owns the registration. Default: one that lasts.

    Returns:
        callable: The kernel, or the decorator of it.

    Raises:
        ValueError: The name has no namespace.
        RuntimeError: A device type is unknown.

    Example:
        >>> mica.library.define("shapes::thrice", "(Tensor x) -> Tensor")
        >>> @mica.library.register_kernel("shapes::thrice", "cpu")
        ... def thrice(x):
        ...     return 3 * x
        >>> mica.ops.shapes.thrice(mica.ones(2))
        tensor([3., 3.])
    """
    return impl(_name(op), "default" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Registers the function that says an operator's result by shape and dtype, without data.

    As `torch.library.register_fake`. It is called with tensors on the device meta, and returns such.

    Args:
        op (str, OpOverload or CustomOpDef): The operator, as "namespace::name" or what `custom_op()` returned.
        func (callable, optional): The function, of the operator's arguments. Default: None, it is decorated.
        lib (Library, optional): Owns the registration. Default: one that lasts.
        allow_override (bool): Ignored: a later registration replaces an earlier one. Default: True.

    Returns:
        callable: The function, or the decorator of it.

    Example:
        >>> mica.library.define("shapes::row_sums", "(Tensor x) -> Tensor")
        >>> @mica.library.register_fake("shapes::row_sums")
        ... def row_sums(x):
        ...     return x.new_empty(x.shape[:1])
        >>> mica.ops.shapes.row_sums(mica.empty(3, 4, device="meta")).shape
        mica.Size([3])
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = _name(op)
        (lib or _library(_split(name)[0])).impl(name, function, "meta")
        return function

    return register if func is None else register(func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Library | None = None
) -> None:
    """Gives an operator a gradient.

    As `torch.library.register_autograd`.

    Args:
        op (str, OpOverload or CustomOpDef): The operator, as "namespace::name" or what `custom_op()` returned.
        backward (callable): `backward(ctx, *grads)`: given the gradient of each output, returns one for
            each argument of the operator, None for those that have none.
        setup_context (callable, optional): `setup_context(ctx, inputs, output)`: saves in `ctx` what
            `backward` needs. Default: None, nothing is saved.
        lib (Library, optional): Owns the registration. Default: one that lasts.

    Raises:
        RuntimeError: The operator is not defined.

    Example:
        >>> mica.library.define("shapes::square", "(Tensor x) -> Tensor")
        >>> _ = mica.library.impl("shapes::square", "cpu", lambda x: x * x)
        >>> mica.library.register_autograd(
        ...     "shapes::square",
        ...     lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad,
        ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        ... )
        >>> x = mica.tensor(3.0, requires_grad=True)
        >>> mica.ops.shapes.square(x).backward()
        >>> x.grad
        tensor(6.)
    """
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
    """Gives an operator a batch rule, which `mica.func.vmap` runs in place of a loop over the examples.

    As `torch.library.register_vmap`.

    Args:
        op (str, OpOverload or CustomOpDef): The operator, as "namespace::name" or what `custom_op()` returned.
        func (callable, optional): `func(info, in_dims, *args)` returns `(output, out_dims)`. `info` has
            `batch_size` and `randomness`; `in_dims` says for each argument which dimension holds the
            batch, 0 or None (a list for a list); `args` are the values of all examples; `out_dims` says
            which dimension of the output holds the batch. Default: None, it is decorated.
        lib (Library, optional): Owns the registration. Default: one that lasts.

    Returns:
        callable: The rule, or the decorator of it.

    Raises:
        RuntimeError: The operator is not defined.

    Example:
        >>> mica.library.define("shapes::total", "(Tensor x) -> Tensor")
        >>> _ = mica.library.impl("shapes::total", "cpu", lambda x: x.sum())
        >>> @mica.library.register_vmap("shapes::total")
        ... def total(info, in_dims, x):
        ...     return x.flatten(1).sum(1), 0
        >>> mica.func.vmap(mica.ops.shapes.total)(mica.ones(2, 3))
        tensor([3., 3.])
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = _name(op)
        _C._vmap_rule(name)  # opens the layer
        (lib or _library(_split(name)[0])).impl(name, _rules.vmap_kernel(_overload(name), function), "vmap")
        return function

    return register if func is None else register(func)


def register_autocast(
    op: Any, device_type: str, cast_inputs: dtype | str, /, *, lib: Library | None = None
) -> None:
    """Registers what autocast does with an operator on a device type: it casts the floating tensors among its arguments.

    As `torch.library.register_autocast`, which takes dtypes alone. float64 is never cast. The operator
    itself runs without autocast.

    Args:
        op (str, OpOverload or CustomOpDef): The operator, as "namespace::name" or what `custom_op()` returned.
        device_type (str): Such as "cpu".
        cast_inputs (dtype or str): The dtype; or "lower" for autocast's own, "float32", or "promote" for
            float32 if one of the tensors has it, else autocast's own.
        lib (Library, optional): Owns the registration. Default: one that lasts.

    Raises:
        ValueError: `cast_inputs` is none of these, or `device_type` no string.
        RuntimeError: The operator is not defined, or no plugin provides the device type.

    Example:
        >>> mica.library.define("shapes::double", "(Tensor x) -> Tensor")
        >>> _ = mica.library.impl("shapes::double", "cpu", lambda x: x + x)
        >>> mica.library.register_autocast("shapes::double", "cpu", mica.bfloat16)
        >>> with mica.autocast("cpu"):
        ...     mica.ops.shapes.double(mica.ones(2))
        tensor([2., 2.], dtype=mica.bfloat16)
    """
    name = _name(op)
    owner = lib or _library(_split(name)[0])
    policies = owner._autocast.get(name)
    if policies is None:
        policies = owner._autocast[name] = {}
        owner.impl(name, _rules.autocast_kernel(_overload(name), policies), "Autocast")
    policies[_rules.checked_device_type(device_type)] = _rules.checked_policy(cast_inputs)


def _memory(x: Tensor) -> Any:
    """What stands for the memory of a tensor: equal where it is shared. None where it has none of its own."""
    return None if _C._frame_kind() is not None else x._storage_ptr() or None


def _returning_new(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of a custom operator, refused where it returns memory of an input or twice the same."""

    @functools.wraps(function)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        tensors = [t for t in _pytree.tree_flatten((args, kwargs))[0] if isinstance(t, Tensor)]
        taken = {id(t) for t in tensors} | {m for m in map(_memory, tensors) if m is not None}
        for i, t in enumerate(t for t in _pytree.tree_flatten(result)[0] if isinstance(t, Tensor)):
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
    """What `custom_op()` returns: the operator, which is called as a function, with its registrations.

    As `torch.library.CustomOpDef`. Programs do not make it themselves.

    Args:
        name (str): Namespace and name.
        function (callable): What the operator was made of.
        schema (str): Arguments and results, "(Tensor x) -> Tensor".
        library (Library): Owns the registrations.

    Example:
        >>> @mica.library.custom_op("text::count", mutates_args=())
        ... def count(x: mica.Tensor) -> int:
        ...     return x.numel()
        >>> count
        <CustomOpDef(text::count)>
        >>> count(mica.ones(2, 3))
        6
    """

    def __init__(self, name: str, function: Callable[..., Any], schema: str, library: Library) -> None:
        self._qualname = name
        self._function = function
        self._library = library
        library.define(name.split("::")[1] + schema)
        self._opoverload = _overload(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Registers a kernel of the operator for device types; see `mica.library.register_kernel`.

        Args:
            device_types (str, sequence of str or None): Device types, "cpu"; None for all.
            fn (callable, optional): The kernel, which returns no memory of its arguments. Default: None, it
                is decorated.

        Returns:
            callable: The kernel, or the decorator of it.
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            register_kernel(
                self._qualname, device_types, _returning_new(self._qualname, function), lib=self._library
            )
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Registers the function that says the result by shape and dtype; see `mica.library.register_fake`.

        Args:
            fn (callable): The function, of the operator's arguments.

        Returns:
            callable: The function.
        """
        return register_fake(self._qualname, fn, lib=self._library)

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """Gives the operator a gradient; see `mica.library.register_autograd`.

        Args:
            backward (callable): `backward(ctx, *grads)` returns a gradient for each argument.
            setup_context (callable, optional): `setup_context(ctx, inputs, output)` saves what `backward` needs.
        """
        register_autograd(self._qualname, backward, setup_context=setup_context, lib=self._library)

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        """Gives the operator a batch rule; see `mica.library.register_vmap`.

        Args:
            func (callable, optional): `func(info, in_dims, *args)` returns `(output, out_dims)`. Default:
                None, it is decorated.

        Returns:
            callable: The rule, or the decorator of it.
        """
        return register_vmap(self._qualname, func, lib=self._library)

    def register_autocast(self, device_type: str, cast_inputs: dtype | str) -> None:
        """Registers what autocast does with the operator; see `mica.library.register_autocast`.

        Args:
            device_type (str): Such as "cpu".
            cast_inputs (dtype or str): The dtype, "lower", "float32" or "promote".
        """
        register_autocast(self._qualname, device_type, cast_inputs, lib=self._library)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


_custom_ops: dict[str, CustomOpDef] = {}


def _defined(name: str, function: Callable[..., Any], schema: str, device_types: Any) -> CustomOpDef:
    """The operator with its first kernel, in a library of its own; where that fails nothing of it is left."""
    library = Library(_split(name)[0], "FRAGMENT")
    try:
        definition = CustomOpDef(name, function, schema, library)
        definition.register_kernel(device_types, function)
    except BaseException:
        library._destroy()
        raise
    return definition


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
    """Makes an operator of a Python function, which transforms and tracing then take as one call.

    As `torch.library.custom_op`. The schema comes from the function's annotations. Gradient, batch rule and
    shape function are added with the methods of what it returns. A name that custom_op() gave before becomes
    the new function's, with none of the old registrations: a notebook's cell can run again.

    Args:
        name (str): Namespace and name, "acme::scale"; also found as `mica.ops.acme.scale`.
        fn (callable, optional): The function; it must return no memory of its arguments. Default: None,
            it is decorated.
        mutates_args (sequence of str or "unknown"): The names of the arguments that it writes;
            "unknown" says that it may write every tensor. Default: none.
        device_types (str, sequence of str or None): What `fn` is a kernel for. Default: None, all.
        schema (str, optional): Arguments and results, "(Tensor x) -> Tensor", in place of the annotations.
        tags (Any, optional): Ignored.

    Returns:
        CustomOpDef: The operator, or the decorator that makes it.

    Raises:
        ValueError: The name has no namespace, an annotation is missing or has no schema type, or
            `mutates_args` and `schema` disagree.
        RuntimeError: When the operator is called: it returns memory of an argument.

    Example:
        >>> @mica.library.custom_op("text::scale", mutates_args=())
        ... def scale(x: mica.Tensor, by: float = 2.0) -> mica.Tensor:
        ...     return x * by
        >>> @scale.register_fake
        ... def scale_of_meta(x, by=2.0):
        ...     return mica.empty_like(x)
        >>> scale(mica.ones(2), 3.0)
        tensor([3., 3.])
        >>> scale(mica.empty(4, device="meta")).shape
        mica.Size([4])
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        _split(name)
        if schema is not None:
            _check_mutations(schema, mutates_args)
        text = schema or infer_schema(function, mutates_args=mutates_args)
        if name in _custom_ops:
            # The one that stands goes once a new one is known to be made without an error.
            _defined(f"{name}_tried", function, text, device_types)._library._destroy()
            _custom_ops.pop(name)._library._destroy()
        definition = _custom_ops[name] = _defined(name, function, text, device_types)
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
    if (name := _C._object_type_name(annotation)) is not None:
        return name
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
    """Writes the schema of an operator that a function's annotations describe.

    As `torch.library.infer_schema`.

    Args:
        prototype_function (callable): Annotated with `mica.Tensor`, int, float, bool, str, complex,
            `mica.dtype`, `mica.device`, lists and optionals of them, and with classes that
            `register_object_type()` knows.
        mutates_args (sequence of str or "unknown"): The names of the arguments that it writes;
            "unknown" says that it may write every tensor. Default: none.
        op_name (str, optional): Put before the arguments. Default: None.
        tags (Any): Ignored. Default: ().

    Returns:
        str: The schema.

    Raises:
        ValueError: An annotation is missing or has no schema type, or `mutates_args` names no tensor.

    Example:
        >>> def clip(x: mica.Tensor, low: float, high: float | None = None) -> mica.Tensor: ...
        >>> mica.library.infer_schema(clip, mutates_args=(), op_name="clip")
        'clip(Tensor x, float low, float? high=None) -> Tensor'
    """
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


def register_object_type(name: str, python_class: type | None = None) -> Any:
    """Lets instances of a class travel through operators: as arguments, as results, to kernels in Python.

    A schema names the type by a name with a dot in it: "acme::sum(Tensor x, acme.Group group) -> Tensor",
    "acme.Group?" for one that may be None. Kernels, modes, transforms and graphs get the object that was
    passed, itself. No gradient flows through it, and what is written of it nobody sees. The name is
    registered for the rest of the program.

    Args:
        name (str): The type's name, "acme.Group".
        python_class (type, optional): The class; instances of its subclasses are taken, too. Default: None,
            it is decorated.

    Returns:
        type: The class, or the decorator of it.

    Raises:
        TypeError: `name` is no string, or `python_class` no class.
        ValueError: The name has no dot in it.
        RuntimeError: Another class has the name.

    Example:
        >>> @mica.library.register_object_type("text.Scale")
        ... class Scale:
        ...     by = 3.0
        >>> @mica.library.custom_op("text::scaled", mutates_args=())
        ... def scaled(x: mica.Tensor, scale: Scale) -> mica.Tensor:
        ...     return x * scale.by
        >>> scaled(mica.ones(2), Scale())
        tensor([3., 3.])
        >>> mica.ops.text.scaled.default.schema
        'text::scaled(Tensor x, text.Scale scale) -> Tensor'
    """

    def register(decorated: type) -> type:
        _C._register_object_type(name, decorated)
        return decorated

    return register if python_class is None else register(python_class)


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
    """A block in which this thread's calls pass the kernels of a plugin's layer.

    The plugin that provides the layer is loaded if need be. Mica's own layers are turned on by functions
    of their own, autocast by `mica.autocast`. `docs/guides/write-a-layer.md` makes one.

    Args:
        name (str): The layer, "acme.count".

    Yields:
        None: The block runs.

    Raises:
        RuntimeError: No plugin provides the layer.

    Example:
        >>> try:
        ...     with mica.library.layer("acme.count"):
        ...         mica.ones(2) + 1
        ... except RuntimeError as error:
        ...     print(str(error)[:31])
        No layer is named (acme.count).
    """
    before = _C._include(name)
    try:
        yield
    finally:
        _C._restore_include(name, before)


@contextmanager
def frame(kind: str) -> Iterator[None]:
    """One level of a plugin's transform: in the block, operators run by the kernels of its kind.

    The plugin makes the transform's tensors and reads them, by operators of its own; a function such as
    `mica.func.vmap` is written over this.

    Args:
        kind (str): The name of the transform, "acme.trace".

    Yields:
        None: The block runs.

    Raises:
        RuntimeError: No plugin provides the transform.

    Example:
        >>> try:
        ...     with mica.library.frame("acme.trace"):
        ...         mica.ones(2) + 1
        ... except RuntimeError as error:
        ...     print(str(error)[:39])
        No transform has the name (acme.trace).
    """
    entered = _C._frame_enter(kind)
    try:
        yield
    finally:
        _C._frame_exit(entered)


def set_check_writes(on: bool) -> bool:
    """Holds kernels to their schemas from now on, or no longer: a tool for those who write kernels.

    While on, a CPU kernel (of a plugin, of Python or of Mica) that writes an argument which its schema does
    not declare as written, or returns memory of one, raises RuntimeError with the operator and the argument;
    so does a kernel of any device that resizes or releases an argument, or returns another shape, dtype or
    device than the operator's meta function gives. Every call then copies its arguments. The environment variable `MICA_CHECK_WRITES=1` turns it on from
    the start.

    Args:
        on (bool): Whether to check.

    Returns:
        bool: Whether it was on before.

    Example:
        >>> before = mica.library.set_check_writes(True)
        >>> mica.library.set_check_writes(before)
        True
    """
    return _C._set_check_writes(on)
