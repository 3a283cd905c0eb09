"""The checks of a graph that was traced with symbolic sizes, and the functions that stand in it."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.fx._graph import Graph
from mica.fx._interpreter import Interpreter
from mica.fx._node import Node
from mica.fx._recording import record
from mica.fx._size_expressions import evaluate
from mica.fx._symint import Expression, Guard, Size, SymNumber, describe
from mica.nn import Module


def sym_size(x: Tensor, dim: int) -> int:
    """Returns the size of a dimension; what a symbolic trace writes for `x.shape[dim]`.

    Args:
        x (Tensor): The Tensor.
        dim (int): The dimension.

    Returns:
        int: The size.

    Example:
        >>> mica.fx.sym_size(mica.ones(2, 3), 1)
        3
    """
    return x.shape[dim]


def check_guard(truth: bool, expected: bool, text: str) -> None:
    """Raises where an assumption of a symbolic trace does not hold; such traces call it.

    Args:
        truth (bool): Whether it holds in this call.
        expected (bool): Whether it held when the program was traced.
        text (str): The assumption, for the message.

    Raises:
        RuntimeError: The two differ.

    Example:
        >>> mica.fx.check_guard(3 > 4, True, "size 0 of x > 4")
        Traceback (most recent call last):
            ...
        RuntimeError: The graph was traced under the guard (size 0 of x > 4), which this call violates; trace it again.
    """
    if bool(truth) != expected:
        raise RuntimeError(
            f"The graph was traced under the guard ({text}), which this call violates; trace it again."
        )


sym_size.python_path = "mica.fx.sym_size"  # type: ignore[attr-defined]
check_guard.python_path = "mica.fx.check_guard"  # type: ignore[attr-defined]
check_guard._fx_impure = True  # type: ignore[attr-defined]


class _Shapes(Interpreter):
    """Runs a graph and compares the size of each value with what the trace found."""

    def __init__(
        self, module: Module, graph: Graph, expected: dict[str, list[Expression]], sizes: dict[Size, int]
    ) -> None:
        super().__init__(module, graph=graph)
        self._expected = expected
        self._sizes = sizes

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        expected = self._expected.get(n.name)
        if expected is not None and isinstance(value, Tensor):
            for dim, (e, found) in enumerate(zip(expected, value.shape)):
                wanted = evaluate(e, self._sizes) if e is not None else found
                if wanted != found:
                    raise RuntimeError(
                        f"The graph was traced for sizes where size {dim} of its value ({n.name}) is ({wanted}); for "
                        f"the sizes of this call it is ({found}). Trace it again for them."
                    )
        return value


class SizeGuards(Module):
    """What the sizes of a call must be for the graph to hold. The first call for each set of sizes
    also computes the shapes of all values of the graph, without memory, and compares them
    with what they were as functions of the sizes while it was traced."""

    def __init__(self, names: list[str], symbols: dict[Size, str]) -> None:
        super().__init__()
        self.names = names  # of the arguments
        self.symbols = symbols
        self.inputs: dict[int, int] = {}  # number of a value -> of the argument
        self.ranks: dict[int, tuple[int, Any]] = {}  # number of the argument -> dimensions, dtype
        self.constants: dict[int, Any] = {}  # number of the argument -> what is no tensor
        self.equal: list[tuple[Size, Expression, str]] = []  # a size, what it must be, why
        self.guards: list[Guard] = []
        self.expected: dict[str, list[Expression]] = {}
        self.shape_graph: Graph | None = None
        self.shape_attributes: dict[str, Any] = {}
        self._checked: set[Any] = set()

    def name_of(self, size: Size) -> str:
        """ "s0", or "size 1 of x_1"."""
        return self.symbols.get(size) or f"size {size.dim} of {self.names[self.inputs[size.number]]}"

    def describe(self) -> list[str]:
        """The guards as text."""
        lines = [
            f"{name} = size {size.dim} of {self.names[self.inputs[size.number]]}"
            for size, name in self.symbols.items()
        ]
        for size, value, why in self.equal:
            shown = self.name_of(value) if isinstance(value, Size) else value
            lines.append(f"{self.name_of(size)} == {shown}" + (f" ({why})" if why else ""))
        return lines + [describe(g, self.name_of) for g in self.guards]

    def extra_repr(self) -> str:
        return "\n".join(self.describe())

    def forward(self, *args: Any) -> None:
        shapes = [tuple(a.shape) if isinstance(a, Tensor) else None for a in args]
        symbolic = any(isinstance(s, SymNumber) for shape in shapes if shape for s in shape)
        if not symbolic:
            key = tuple(a if s is None else s for a, s in zip(args, shapes))
            if key in self._checked:
                return
        sizes: dict[Size, Any] = {}
        for number, place in self.inputs.items():
            self._check_rank(place, args[place])
            for dim, size in enumerate(shapes[place] or ()):
                sizes[Size(number, dim)] = size
        for place, value in self.constants.items():
            if type(args[place]) is not type(value) or args[place] != value:
                raise RuntimeError(
                    f"The graph was traced with the argument {self.names[place]} = {value!r}, but it is called with "
                    f"({args[place]!r}); trace it again."
                )
        self._check_sizes(sizes)
        if symbolic:
            return
        self._check_shapes(args, sizes)
        self._checked.add(key)

    def _check_rank(self, place: int, value: Any) -> None:
        rank, dtype = self.ranks[place]
        if not isinstance(value, Tensor) or value.dim() != rank or value.dtype != dtype:
            found = f"{value.dtype} of {value.dim()}" if isinstance(value, Tensor) else type(value).__name__
            raise RuntimeError(
                f"The graph was traced with the argument {self.names[place]} a tensor {dtype} of {rank} dimensions, "
                f"but it is called with {found}; trace it again."
            )

    def _check_sizes(self, sizes: dict[Size, Any]) -> None:
        for size, value, why in self.equal:
            wanted = evaluate(value, sizes)
            if sizes[size] != wanted:
                raise RuntimeError(
                    f"The graph was traced under the guard ({self.name_of(size)} == {wanted}), which this call "
                    f"violates: it is ({sizes[size]}).{' ' + why if why else ''} Trace it again for this size."
                )
        for guard in self.guards:
            truth = guard.function(*(evaluate(a, sizes) for a in guard.args))
            check_guard(truth, guard.truth, describe(guard, self.name_of))

    def _check_shapes(self, args: tuple[Any, ...], sizes: dict[Size, int]) -> None:
        if self.shape_graph is None:
            return
        root = _Attributes(self.shape_attributes)
        runner = _Shapes(root, self.shape_graph, self.expected, sizes)
        record(lambda *a: runner.run(*a, enable_io_processing=False), args, fake=True)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_checked": set()}


class _Attributes(Module):
    """Attributes by name, without being registered."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__()
        for name, value in values.items():
            object.__setattr__(self, name, value)
