"""Operators as the targets of nodes: by name, and what a graph must know of them."""

from __future__ import annotations

import functools
from typing import Any

from mica import ops
from mica.ops import OpOverload


def overload(name: str) -> OpOverload:
    """The overload of a full name, "mica::add.Tensor": the object that its path leads to."""
    namespace, _, rest = name.partition("::")
    packet, _, which = rest.partition(".")
    return getattr(getattr(getattr(ops, namespace), packet), which or "default")


@functools.cache
def has_effect(target: OpOverload) -> bool:
    """Whether a call does more than return its result: it writes an argument, draws random
    numbers, or returns nothing."""
    operator: Any = target._operator
    _, results, writes = operator._schema_info()
    return bool(writes or not results or operator.op_class == "random")


def path_of(target: OpOverload) -> str:
    """Where the operator is found: "mica.ops.mica.add.Tensor"."""
    namespace, _, rest = target.name().partition("::")
    packet, _, which = rest.partition(".")
    return f"mica.ops.{namespace}.{packet}.{which or 'default'}"


def name_of(target: OpOverload) -> str:
    """The operator's name without namespace and overload: "add"."""
    return target.name().partition("::")[2].partition(".")[0]
