"""Signatures of operators as Python's `inspect` has them, and calls whose arguments are written in one way.

Transformations of graphs read them: a node may hold `add(x, y, alpha=2)` or `add(input=x, other=y, alpha=2)`.
"""

from __future__ import annotations

import ast
import inspect
import keyword
from collections.abc import Callable
from typing import Any, NamedTuple

import mica
from mica import ops
from mica.nn import Module

_KINDS = {
    "Tensor": mica.Tensor, "int": int, "SymInt": int, "float": float, "bool": bool, "str": str, "Scalar": complex,
    "ScalarType": mica.dtype, "Device": mica.device, "Generator": mica.Generator,
}  # fmt: skip


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call.

    Args:
        args (tuple): Those given by place.
        kwargs (dict): Those given by name.

    Example:
        >>> mica.fx.operator_schemas.ArgsKwargsPair((1,), {"dim": 0})
        ArgsKwargsPair(args=(1,), kwargs={'dim': 0})
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _packet(op: Any) -> ops.OpPacket | ops.OpOverload | None:
    """The operator behind a function of Mica, or None for any other callable."""
    if isinstance(op, ops.OpPacket | ops.OpOverload):
        return op
    name, module = getattr(op, "__name__", ""), getattr(op, "__module__", None) or ""
    if not inspect.isbuiltin(op) or module.partition(".")[0] != "mica" or module.startswith("mica._C"):
        return None
    for candidate in (name, f"special_{name}"):
        found = getattr(ops.mica, candidate, None) if candidate else None
        if isinstance(found, ops.OpPacket):
            return found
    return None


def _overloads(op: ops.OpPacket | ops.OpOverload) -> list[ops.OpOverload]:
    return [op] if isinstance(op, ops.OpOverload) else [getattr(op, name) for name in op.overloads()]


def _pieces(text: str) -> list[str]:
    """What stands between the commas of a schema's list of arguments, those inside of brackets aside."""
    pieces, depth, quoted, begin = [], 0, False, 0
    for i, c in enumerate(text):
        quoted ^= c in "'\""
        depth += 0 if quoted else (c in "([") - (c in ")]")
        if c == "," and depth == 0 and not quoted:
            pieces.append(text[begin:i].strip())
            begin = i + 1
    return [*pieces, text[begin:].strip()]


def _default(text: str) -> Any:
    """A default as the schema's text spells it: a Python literal, or the name of a dtype or memory format."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return float(text) if text in ("inf", "nan", "-inf") else getattr(mica, text, text)


def _defaults(schema: ops.FunctionSchema) -> dict[str, Any]:
    text = str(schema)
    inside = text[text.index("(") + 1 : text.rindex(") ->")]
    found = {}
    for piece in _pieces(inside):
        named, equals, value = piece.partition("=")
        if equals:
            found[named.split()[-1]] = _default(value.strip())
    return found


def _annotation(kind: str) -> Any:
    """The Python type of a schema's type; Any where there is no single one."""
    if kind.endswith("?"):
        inner = _annotation(kind[:-1])
        return inner if inner is Any else inner | None
    if kind.endswith("]"):
        inner = _annotation(kind[: kind.rindex("[")])
        return list if inner is Any else list[inner]
    return _KINDS.get(kind.partition("(")[0], Any)


def _signature(overload: ops.OpOverload) -> inspect.Signature:
    schema, parameters = overload._schema, list[inspect.Parameter]()
    defaults = _defaults(schema)
    for argument in schema.arguments:
        name = "input" if argument.name == "self" else argument.name
        kind = (
            inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        default = defaults.get(argument.name, inspect.Parameter.empty)
        if keyword.iskeyword(name):  # `from` of random_: it and those before it are given by place alone
            kind = inspect.Parameter.POSITIONAL_ONLY
            parameters = [p.replace(kind=kind) for p in parameters]
        annotation = _annotation(argument.type)
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    returned = mica.Tensor if len(schema.returns) == 1 else tuple if schema.returns else None
    return inspect.Signature(parameters, return_annotation=returned)


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of an operator's overloads, by which calls can be bound.

    The first argument of methods, which schemas call `self`, is `input`, as in the functions.

    Args:
        op (Callable): A function of Mica (`mica.add`), an operator or an overload of `mica.ops`.
        return_schemas (bool): Whether their schemas are returned, too.

    Returns:
        list of inspect.Signature or None: One for each overload; None where `op` is no operator of Mica. With
        `return_schemas` a pair of it and the list of schemas, or (None, None).

    Example:
        >>> [str(s) for s in mica.fx.operator_schemas.get_signature_for_torch_op(mica.relu)]
        ['(input: mica.Tensor) -> mica.Tensor', '(input: mica.Tensor, *, out: mica.Tensor) -> mica.Tensor']
    """
    packet = _packet(op)
    if packet is None:
        return (None, None) if return_schemas else None
    overloads = _overloads(packet)
    signatures = [_signature(overload) for overload in overloads]
    return (signatures, [overload._schema for overload in overloads]) if return_schemas else signatures


def _bound(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], by_name: bool) -> Any:
    """The call by this signature, defaults filled in; None where it does not fit."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    if not by_name:
        return ArgsKwargsPair(bound.args, bound.kwargs)
    kinds = {p.kind for p in signature.parameters.values()}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY}:
        return None
    return ArgsKwargsPair((), dict(bound.arguments))


def _fits(value: Any, annotation: Any) -> bool:
    """Whether a type or a value can be an argument of a parameter that is annotated so."""
    kind = value if isinstance(value, type) else type(value)
    if annotation in (Any, inspect.Parameter.empty):
        return True
    kinds = (
        getattr(annotation, "__args__", None) if type(annotation).__name__ == "UnionType" else (annotation,)
    )
    for one in kinds or ():
        origin = getattr(one, "__origin__", one)
        if origin is list and issubclass(kind, list | tuple | mica.Size):
            return True
        numbers = {complex: (int, float, complex), float: (int, float)}.get(origin, (origin,))
        if isinstance(origin, type) and issubclass(kind, numbers):
            return True
    return False


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call in the order of its signature, defaults filled in.

    Args:
        target (Callable): An operator, a function of Mica or a Python function.
        args (tuple): Given by place; nodes of a graph stand for their values.
        kwargs (dict, optional): Given by name.
        arg_types (tuple, optional): The types of `args`, where several overloads take as many arguments.
        kwarg_types (dict, optional): Those of `kwargs`.
        normalize_to_only_use_kwargs (bool): Whether all are given by name in the result.

    Returns:
        ArgsKwargsPair or None: None where no signature fits, or more than one and the types do not tell which.

    Example:
        >>> mica.fx.operator_schemas.normalize_function(mica.add, (1, 2), normalize_to_only_use_kwargs=True,
        ...     arg_types=(mica.Tensor, mica.Tensor))
        ArgsKwargsPair(args=(), kwargs={'input': 1, 'other': 2, 'alpha': 1})
    """
    kwargs = kwargs or {}
    signatures = get_signature_for_torch_op(target)
    if signatures is None:
        if inspect.isbuiltin(target) or not callable(target):
            return None
        signatures = [inspect.signature(inspect.unwrap(target))]
    fitting = [s for s in signatures if _bound(s, args, kwargs, False) is not None]
    if len(fitting) > 1 and (arg_types is not None or kwarg_types is not None):
        fitting = [s for s in fitting if _types_fit(s, arg_types or (), kwarg_types or {})][:1]
    if len(fitting) != 1:
        return None
    found: ArgsKwargsPair | None = _bound(fitting[0], args, kwargs, normalize_to_only_use_kwargs)
    return found


def _types_fit(signature: inspect.Signature, arg_types: tuple[Any, ...], kwarg_types: dict[str, Any]) -> bool:
    try:
        bound = signature.bind(*arg_types, **kwarg_types)
    except TypeError:
        return False
    return all(_fits(kind, signature.parameters[name].annotation) for name, kind in bound.arguments.items())


def normalize_module(
    root: Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a submodule in the order of its forward(), defaults filled in.

    Args:
        root (Module): The module that holds it.
        target (str): Its name in `root`, "encoder.0".
        args (tuple): Given by place.
        kwargs (dict, optional): Given by name.
        normalize_to_only_use_kwargs (bool): Whether all are given by name in the result.

    Returns:
        ArgsKwargsPair or None: None where forward() does not take them so.

    Raises:
        AttributeError: `root` has no such submodule.

    Example:
        >>> net = mica.nn.Sequential(mica.nn.Linear(2, 3))
        >>> mica.fx.operator_schemas.normalize_module(net, "0", (7,), normalize_to_only_use_kwargs=True)
        ArgsKwargsPair(args=(), kwargs={'input': 7})
    """
    signature = inspect.signature(root.get_submodule(target).forward)
    found: ArgsKwargsPair | None = _bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
    return found
