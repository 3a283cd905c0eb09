"""mica.ops.<namespace>.<name>[.<overload>]: any registered operator, called through
its schema. A packet (without overload) tries its overloads in order.

Packets and overloads are single objects: `func is mica.ops.mica.mm.default` decides in a
dispatch mode. `mica.ops.aten` is another name of `mica.ops.mica`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, NamedTuple

from mica import _C


class AliasInfo(NamedTuple):
    """That a result or an argument shares memory with, or is, an argument of the call.

    Args:
        argument (int): Which of the schema's arguments, by number.
        is_write (bool): Whether the call writes that argument.

    Example:
        >>> mica.ops.mica.add_.Tensor._schema.returns[0].alias_info
        AliasInfo(argument=0, is_write=True)
    """

    argument: int  # of the schema's arguments, by number
    is_write: bool


class Argument(NamedTuple):
    """One argument of a schema.

    Args:
        name (str): Name of the argument.
        type (str): Its type, as the schema spells it: "Tensor", "int[]", "Scalar".
        kwarg_only (bool): Whether it is given by name alone.
        alias_info (AliasInfo or None): Itself, if the call writes it.

    Example:
        >>> mica.ops.mica.add.Tensor._schema.arguments[2]
        Argument(name='alpha', type='Scalar', kwarg_only=True, alias_info=None)
    """

    name: str
    type: str
    kwarg_only: bool
    alias_info: AliasInfo | None


class Return(NamedTuple):
    """One result of a schema.

    Args:
        alias_info (AliasInfo or None): The argument that it is, or whose memory it shares.

    Example:
        >>> mica.ops.mica.transpose.int._schema.returns[0]
        Return(alias_info=AliasInfo(argument=0, is_write=False))
    """

    alias_info: AliasInfo | None


class FunctionSchema:
    """What an operator takes and gives, as data; `str()` gives the text.

    Args:
        operator (Any): The operator of `OpOverload`, which makes this as its `_schema`.

    Attributes:
        name (str): Namespace and name, "mica::add".
        overload_name (str): "Tensor"; "" for the default.
        is_mutable (bool): Whether a call writes an argument.
        arguments (list of Argument): In order.
        returns (list of Return): In order.

    Example:
        >>> schema = mica.ops.mica.mm.default._schema
        >>> schema
        mica::mm(Tensor self, Tensor mat2) -> Tensor
        >>> [argument.name for argument in schema.arguments]
        ['self', 'mat2']
    """

    def __init__(self, operator: Any) -> None:
        self._text: str = operator.schema
        full, _, self.overload_name = operator.name.partition(".")
        self.name: str = full
        arguments, count, self.is_mutable = operator._schema_info()
        self.arguments = [
            Argument(name, kind, keyword, AliasInfo(i, True) if written else None)
            for i, (name, kind, keyword, written) in enumerate(arguments)
        ]
        aliases = operator._return_aliases()
        self.returns = [Return(None if aliases[i] is None else AliasInfo(*aliases[i])) for i in range(count)]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text


class Program(NamedTuple):
    """What an operator's entry computes, as steps over registers, for backends that make kernels of it.

    A step is `(opcode, register written, registers read, aux)`; aux is a place in `inputs` (of LOAD), `scalars`
    (of SCALAR) or `constants` (of CONST).

    Args:
        source (str): The formula of the entry.
        codes (dict): The steps: "main"; "combine" and "finish" of reductions.
        constants (list of float): The numbers of the formula.
        inputs (list of int): The tensors that are read, by number of argument.
        scalars (list of int): The scalars that are read, by number of argument.

    Example:
        >>> program = mica.ops.mica.neg.default.program
        >>> program.source
        '-self'
        >>> program.codes["main"]
        [('LOAD', 0, [], 0), ('NEG', 1, [0], 0), ('STORE', 255, [1], 0)]
    """

    source: str
    codes: dict[str, list[tuple[str, int, list[int], int]]]  # "main", "combine", "finish"
    constants: list[float]
    inputs: list[int]
    scalars: list[int]


def _overriding(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments, also in lists, that are no tensors and override functions: what a tracer passes for values."""
    values = [*args, *kwargs.values()]
    for value in [v for v in values if type(v) in (list, tuple)]:
        values += value
    return [v for v in values if not isinstance(v, _C.Tensor) and _C._has_function((v,))]


class OpOverload:
    """One overload of an operator: `mica.ops.mica.add.Tensor`. It is called with the schema's arguments.

    As `torch._ops.OpOverload`, of which programs that trace or transform operators read much. Each is a
    single object: compare with `is`.

    Args:
        operator (Any): The operator in the dispatcher; use `mica.ops` to get overloads.

    Attributes:
        namespace (str): Name of the namespace, such as "mica".
        python_path (str): Where it is found, "mica.ops.mica.add.Tensor".

    Example:
        >>> add = mica.ops.mica.add.Tensor
        >>> add(mica.ones(2), mica.ones(2), alpha=3)
        tensor([4., 4.])
        >>> add.name(), add.op_class
        ('mica::add.Tensor', 'pointwise')
    """

    def __init__(self, operator: Any) -> None:
        self._operator = operator
        self._name: str = operator.name
        self.__doc__ = operator.__doc__
        self.namespace, _, rest = self._name.partition("::")
        self.packet_name, _, overload = rest.partition(".")
        self._opname, self._overloadname = self.packet_name, overload or "default"
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__qualname__ = self.__name__
        self.__module__ = f"mica.ops.{self.namespace}"
        # Where the operator is found: "mica.ops.mica.add.Tensor".
        self.python_path = f"{self.__module__}.{self.__name__}"
        self._schema_object: FunctionSchema | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._operator(*args, **kwargs)
        except TypeError:
            others = _overriding(args, kwargs)
            if not others:
                raise
        return _C._handle_function(self, others, args, kwargs)

    def name(self) -> str:
        """The full name, "mica::add.Tensor"."""
        return self._name

    def _takes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the arguments are of the schema's types, so that a TypeError of the call is its kernel's."""
        try:
            self._operator._bind(args, kwargs)
        except TypeError:
            return False
        return True

    @property
    def schema(self) -> str:
        """The schema's text."""
        return self._operator.schema

    @property
    def _schema(self) -> FunctionSchema:
        if self._schema_object is None:
            self._schema_object = FunctionSchema(self._operator)
        return self._schema_object

    @property
    def overloadpacket(self) -> OpPacket:
        """All overloads of its name."""
        return getattr(getattr(sys.modules[__name__], self.namespace), self._opname)

    @property
    def op_class(self) -> str:
        """The class of its entry: "pointwise", "view", "contraction", ..."""
        return self._operator.op_class

    @property
    def is_view(self) -> bool:
        """Whether results share memory with arguments that it does not write."""
        returns = self._schema.returns
        return any(r.alias_info is not None and not r.alias_info.is_write for r in returns)

    @property
    def tags(self) -> list[str]:
        """What is known of it beside the schema: its class, and "inplace" or "out" of a form."""
        written = [a.kwarg_only for a in self._schema.arguments if a.alias_info]
        form = [] if not written else ["out"] if all(written) else ["inplace"]
        return [self.op_class, *form]

    @property
    def equation(self) -> str:
        """What a contraction multiplies and sums, over its last tensors: "ij,jk->ik"; "" for others."""
        return self._operator.equation

    @property
    def program(self) -> Program | None:
        """The program of its entry for floating dtypes, or None if it has none.

        The class does not run from data, or in more parts than a Program has (rows, gathers).
        """
        program = self._operator.program
        return None if program is None else Program(*program)

    def bind(self, *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
        """Completes the arguments of a call with the schema's defaults.

        Args:
            *args (Any): Positional arguments of the call.
            **kwargs (Any): Keyword arguments of the call.

        Returns:
            tuple of list and dict: The arguments by place, and those that are given by name alone.

        Raises:
            TypeError: The arguments do not fit the schema.
        """
        return self._operator._bind(args, kwargs)

    def redispatch_below(self, layer: str, *args: Any, **kwargs: Any) -> Any:
        """Calls the operator with a layer and all above it left out, as kernels at that layer do.

        Args:
            layer (str): The layer, "Autograd".
            *args (Any): The operator's arguments.
            **kwargs (Any): The operator's arguments by name.

        Returns:
            Any: The operator's result.
        """
        return _C._redispatch_below(self._operator, layer, args, kwargs)

    def has_effect(self) -> bool:
        """Whether a call does more than return its result.

        It writes an argument, draws random numbers, or returns nothing.
        """
        _, results, writes = self._operator._schema_info()
        return bool(writes or not results or self._operator.op_class == "random")

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the operator's decomposition into other operators.

        Args:
            *args (Any): The operator's arguments.
            **kwargs (Any): The operator's arguments by name.

        Returns:
            Any: The operator's result, or NotImplemented if it has no decomposition.
        """
        return self._operator._decompose(args, kwargs)

    def __reduce__(self) -> Any:
        return (overload, (self._name,))

    def __copy__(self) -> OpOverload:
        return self

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload {self._name}>"


_overloads: dict[str, OpOverload] = {}


def overload(name: str, operator: Any = None) -> OpOverload:
    """Finds an overload by its full name.

    Args:
        name (str): The schema's name, "mica::add.Tensor"; the overload `default` is named without it,
            "mica::relu" (`mica.ops.mica.relu.default`).
        operator (Any, optional): Used by Mica itself; leave it out. Default: None.

    Returns:
        OpOverload: Callable with the schema's arguments; the same object at each call.

    Raises:
        AttributeError: No overload has this name, as "mica::add", which has no default one, or
            "mica::relu.default".

    Example:
        >>> mica.ops.overload("mica::add.Tensor") is mica.ops.mica.add.Tensor
        True
    """
    operator = operator or _C._find_operator(name)
    if operator is None:
        raise AttributeError(f"No operator is named {name}.")
    known = _overloads.get(name)
    if known is None or known._operator != operator:
        known = _overloads[name] = OpOverload(operator)
    return known


class OpPacket:
    """All overloads of one operator's name: `mica.ops.mica.add`. A call takes the first that fits.

    As `torch._ops.OpOverloadPacket`.

    Args:
        namespace (str): Name of the namespace, such as "mica".
        name (str): Name of the operator, such as "add".

    Attributes:
        python_path (str): Where it is found, "mica.ops.mica.add".

    Raises:
        TypeError: When called: no overload takes the arguments.
        AttributeError: It is asked for an overload that it has not.

    Example:
        >>> mica.ops.mica.add.overloads()
        ['Tensor', 'out', 'Scalar', 'Scalar_out']
        >>> mica.ops.mica.add(mica.ones(2), 1)
        tensor([2., 2.])
    """

    def __init__(self, namespace: str, name: str) -> None:
        self._qualified = f"{namespace}::{name}"
        self.python_path = f"mica.ops.{namespace}.{name}"
        self.__name__ = name
        self._kept: list[OpOverload] = []  # the overloads, as of some time

    def overloads(self) -> list[str]:
        """The names of the overloads; "default" is the one without a name."""
        names = _C._overload_names(self._qualified)
        return [n[len(self._qualified) + 1 :] or "default" for n in names]

    def _standing(self) -> list[OpOverload]:
        """The overloads: those kept where all of them stand, since a look over all names takes time."""
        if not self._kept or any(_C._find_operator(o._name) != o._operator for o in self._kept):
            self._kept = [self._get(which) for which in self.overloads()]
        return self._kept

    def _get(self, which: str) -> OpOverload:
        full = self._qualified if which == "default" else f"{self._qualified}.{which}"
        operator = _C._find_operator(full)
        if operator is None:
            raise AttributeError(
                f"Operator {self._qualified} has no overload ({which}); it has {', '.join(self.overloads())}."
            )
        return overload(full, operator)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._get(name)
        setattr(self, name, found)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        overloads = self._standing()
        if not overloads:
            raise NotImplementedError(
                f"Operator {self._qualified} is gone: the plugin or library that defined it is disabled "
                "(mica.plugins() says which are)."
            )
        failures: dict[OpOverload, str] = {}
        while overloads:
            for operator in overloads:
                try:
                    return operator._operator(*args, **kwargs)
                except TypeError as error:
                    if operator._takes(args, kwargs):
                        raise  # by the kernel
                    if others := _overriding(args, kwargs):
                        return _C._handle_function(self, others, args, kwargs)
                    failures[operator] = f"{operator.schema}: {error}"
            self._kept = []
            overloads = [o for o in self._standing() if o not in failures]  # what came since
        raise TypeError(
            f"No overload of {self._qualified} takes these arguments:\n  " + "\n  ".join(failures.values())
        )

    def __repr__(self) -> str:
        return f"<OpPacket {self._qualified}>"


class _OfLists:
    """A `_foreach_` function under an operator's name: its overloads are told apart by the arguments."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.__name__ = function.__name__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._function

    def overloads(self) -> list[str]:
        """The names under which the one function is found."""
        return ["List", "Scalar", "ScalarList"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def _inert(space: str, name: str) -> Any:
    """What torch's name of an operator that Mica lacks is, where its table has a line for it."""
    if _C._library_name() == "torch" and space == "mica":
        from mica._torch_names import table

        path = f"torch.ops.aten.{name}"
        if table.known(path):
            return table.resolve(path)
    raise AttributeError(f"No operator is named {space}::{name}.")


class OpNamespace:
    """All operators of one namespace: `mica.ops.mica`, or that of a plugin or library.

    Args:
        name (str): Name of the namespace, such as "mica".

    Raises:
        AttributeError: It is asked for an operator that it has not.

    Example:
        >>> "add" in dir(mica.ops.mica)
        True
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> OpPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._name == "mica" and name.startswith("_foreach_"):
            import mica

            found = _OfLists(getattr(mica, name))
            setattr(self, name, found)
            return found
        packet = OpPacket(self._name, name)
        if not packet.overloads():
            _C._find_operator(f"{self._name}::{name}")  # opens the plugin that provides the namespace
        if not packet.overloads():
            return _inert(self._name, name)
        setattr(self, name, packet)
        return packet

    def __dir__(self) -> list[str]:
        prefix = self._name + "::"
        return sorted({n[len(prefix) :].split(".")[0] for n in _C._operator_names() if n.startswith(prefix)})


class _Ops(ModuleType):
    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        space = self.mica if name == "aten" else OpNamespace(name)
        setattr(self, name, space)
        return space

    @staticmethod
    def load_library(path: str) -> None:
        """Opens a plugin."""
        _C.load_plugin(path)


sys.modules[__name__].__class__ = _Ops
