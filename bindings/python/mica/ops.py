"""mica.ops.<namespace>.<name>[.<overload>]: any registered operator, called through
its schema. A packet (without overload) tries its overloads in order."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from mica import _C


class OpOverload:
    """One overload of an operator."""

    def __init__(self, operator: Any) -> None:
        self._operator = operator
        self._name: str = operator.name
        self.__doc__ = operator.__doc__
        namespace, _, rest = self._name.partition("::")
        self.packet_name, _, self._overload_name = rest.partition(".")
        self.__name__ = f"{self.packet_name}.{self._overload_name or 'default'}"
        # Where the operator is found: "mica.ops.mica.add.Tensor".
        self.python_path = f"mica.ops.{namespace}.{self.__name__}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._operator(*args, **kwargs)

    def name(self) -> str:
        """The full name, "mica::add.Tensor"."""
        return self._name

    @property
    def schema(self) -> str:
        """The schema's text."""
        return self._operator.schema

    def redispatch_below(self, layer: str, *args: Any, **kwargs: Any) -> Any:
        """Calls the operator with the layer and all above it left out."""
        return _C._redispatch_below(self._operator, layer, args, kwargs)

    def has_effect(self) -> bool:
        """Whether a call does more than return its result: it writes an argument, draws random
        numbers, or returns nothing."""
        _, results, writes = self._operator._schema_info()
        return bool(writes or not results or self._operator.op_class == "random")

    def __reduce__(self) -> Any:
        return overload, (self._name,)

    def __repr__(self) -> str:
        return f"<OpOverload {self._name}>"


class OpPacket:
    """All overloads of one name."""

    def __init__(self, namespace: str, name: str) -> None:
        self._qualified = f"{namespace}::{name}"
        self.__name__ = name

    def overloads(self) -> list[str]:
        """The names of the overloads; "default" is the one without a name."""
        names = [
            n for n in _C._operator_names() if n == self._qualified or n.startswith(self._qualified + ".")
        ]
        return [n[len(self._qualified) + 1 :] or "default" for n in names]

    def _get(self, overload: str) -> OpOverload:
        full = self._qualified if overload == "default" else f"{self._qualified}.{overload}"
        operator = _C._find_operator(full)
        if operator is None:
            raise AttributeError(
                f"Operator {self._qualified} has no overload ({overload}); it has {', '.join(self.overloads())}."
            )
        return OpOverload(operator)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._get(name)
        setattr(self, name, found)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        failures: list[str] = []
        overloads = self.overloads()
        if not overloads:
            raise NotImplementedError(
                f"Operator {self._qualified} is gone: the plugin or library that defined it is disabled "
                "(mica.plugins() says which are)."
            )
        for overload in overloads:
            try:
                return self._get(overload)(*args, **kwargs)
            except TypeError as error:
                failures.append(f"{self._get(overload).schema}: {error}")
        raise TypeError(
            f"No overload of {self._qualified} takes these arguments:\n  " + "\n  ".join(failures)
        )

    def __repr__(self) -> str:
        return f"<OpPacket {self._qualified}>"


class OpNamespace:
    """All operators of one namespace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> OpPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        packet = OpPacket(self._name, name)
        if not packet.overloads():
            _C._find_operator(f"{self._name}::{name}")  # opens the plugin that provides the namespace
        if not packet.overloads():
            raise AttributeError(f"No operator is named {self._name}::{name}.")
        setattr(self, name, packet)
        return packet

    def __dir__(self) -> list[str]:
        prefix = self._name + "::"
        return sorted({n[len(prefix) :].split(".")[0] for n in _C._operator_names() if n.startswith(prefix)})


_overloads: dict[str, OpOverload] = {}


def overload(name: str) -> OpOverload:
    """The overload of a full name, "mica::add.Tensor": the same object that its path leads to."""
    found = _overloads.get(name)
    if found is None:
        namespace, _, rest = name.partition("::")
        packet, _, which = rest.partition(".")
        space = getattr(sys.modules[__name__], namespace)
        found = _overloads[name] = getattr(getattr(space, packet), which or "default")
    return found


class _Ops(ModuleType):
    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        space = OpNamespace(name)
        setattr(self, name, space)
        return space

    @staticmethod
    def load_library(path: str) -> None:
        """Opens a plugin."""
        _C.load_plugin(path)


sys.modules[__name__].__class__ = _Ops
