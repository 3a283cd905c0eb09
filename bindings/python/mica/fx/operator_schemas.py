"""Signatures of operators as Python's `inspect` has them, and calls whose arguments are written in one way.

Transformations of graphs read them: a node may hold `add(x, y, alpha=2)` or `add(input=x, other=y, alpha=2)`.
"""

from __future__ import annotations

import inspect
import keyword
import types
from collections.abc import Callable
from typing import Any, NamedTuple, get_args, get_origin

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


def overloads_of(op: Any) -> list[ops.OpOverload]:
    """The overloads of an operator of Mica.

    Args:
        op (Any): A function of Mica (`mica.add`), an operator or an overload of `mica.ops`, or anything else.

    Returns:
        list of OpOverload: All of the operator, or the one that is given; none where `op` is no operator.

    Example:
        >>> mica.fx.operator_schemas.overloads_of(mica.relu)
        [<OpOverload mica::relu>, <OpOverload mica::relu.out>]
    """
    if isinstance(op, ops.OpOverload):
        return [op]
    module = getattr(op, "__module__", None) or ""
    if inspect.isbuiltin(op) and module.partition(".")[0] == "mica" and not module.startswith("mica._C"):
        op = getattr(ops.mica, op.__name__, None)
    return [getattr(op, name) for name in op.overloads()] if isinstance(op, ops.OpPacket) else []


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
    defaults = overload._operator._defaults()
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
    overloads = overloads_of(op)
    if not overloads:
        return (None, None) if return_schemas else None
    signatures = [_signature(overload) for overload in overloads]
    return (signatures, [overload._schema for overload in overloads]) if return_schemas else signatures


def _bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], by_name: bool
) -> ArgsKwargsPair | None:
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


_NUMBERS: dict[Any, tuple[type, ...]] = {complex: (int, float, complex), float: (int, float)}


def _fits(kind: type, annotation: Any) -> bool:
    """Whether an argument of a type can be given for a parameter that is annotated so."""
    if annotation in (Any, inspect.Parameter.empty):
        return True
    if isinstance(annotation, types.UnionType):
        return any(_fits(kind, one) for one in get_args(annotation))
    wanted = get_origin(annotation) or annotation
    return issubclass(kind, (list, tuple) if wanted is list else _NUMBERS.get(wanted, (wanted,)))


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
    return _bound(fitting[0], args, kwargs, normalize_to_only_use_kwargs)


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
    return _bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
