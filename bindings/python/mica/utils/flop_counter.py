"""FlopCounterMode: counts the floating-point operations of a program, backward included.

What an operator costs comes from its class: a contraction costs two operations for each
product that it adds up, which its shapes tell. Convolutions and fused attention, which no
class describes, have a formula here, over the names in their schemas; everything else
counts 0, as in torch. `custom_mapping` and register_flop_formula() add formulas in torch's
form: function(*shapes, out_shape=..., **kwargs) -> int.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from math import isqrt, prod
from typing import Any

from mica import _C
from mica._C import Tensor
from mica.utils._pytree import tree_map
from mica.utils.module_tracker import ModuleTracker
from mica.utils.python_dispatch import DispatchMode

__all__ = ["FlopCounterMode", "flop_registry", "operations", "register_flop_formula"]

Formula = Callable[..., int]


def _shape(value: Any) -> Any:
    return tuple(value.shape) if isinstance(value, Tensor) else value


def _contraction(given: dict[str, Any], out: tuple[int, ...]) -> int:
    """Two operations for each combination of indices. An index that is contracted stands in
    two of (a, b, out), one that is not likewise, one of the batch in all three: so the
    combinations are the root of the three sizes' product over the batch."""
    a, b = [shape for shape in given.values() if type(shape) is tuple][-2:]
    batch = prod(out[:-2])
    return 2 * isqrt(prod(a) * prod(b) * prod(out) // max(batch, 1))


def _convolution(given: dict[str, Any], out: tuple[int, ...]) -> int:
    """A product for each weight at each place of the smaller side, forward or for a gradient."""
    output = given.get("grad_output", out)
    input = given.get("input") or given["input_sizes"]
    weight = given.get("weight") or given["weight_sizes"]
    places = (input if given["transposed"] else output)[2:]
    return 2 * input[0] * prod(places) * prod(weight)


def _attention(given: dict[str, Any], out: Any, products: int = 2) -> int:
    """Queries by keys, and weights by values; the gradient makes five such products."""
    *batch, places, width = given["query"]
    return prod(batch) * places * given["key"][-2] * (width + given["value"][-1]) * products


# Where the class says nothing, by the operator's name.
_NAMED: dict[str, Callable[[dict[str, Any], Any], int]] = {
    "convolution": _convolution,
    "_convolution_backward_input": _convolution,
    "_convolution_backward_weight": _convolution,
    "_flash_attention": _attention,
    "_flash_attention_backward": lambda given, out: _attention(given, out, products=5),
}

# torch's registry: packet -> formula; register_flop_formula() fills it.
flop_registry: dict[Any, Formula] = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """Registers a formula that tells `FlopCounterMode` what an operator costs; a decorator.

    As `torch.utils.flop_counter.register_flop_formula`.

    Args:
        targets (operator or list of operators): Operators of `mica.ops`, without an overload.
        get_raw (bool): Give the formula the arguments, and the result as `out_val`, instead of shapes.
            Default: False.

    Returns:
        callable: The decorator for `formula(*shapes, out_shape=..., **kwargs)`, which returns the
        operations as an int.

    Example:
        >>> from mica.utils.flop_counter import FlopCounterMode, register_flop_formula
        >>> @register_flop_formula(mica.ops.mica.erf)
        ... def erf_flops(shape, *, out_shape=None, **kwargs):
        ...     return 10 * shape[0]
        >>> with FlopCounterMode(display=False) as counter:
        ...     y = mica.ones(5).erf()
        >>> counter.get_total_flops()
        50
        >>> del mica.utils.flop_counter.flop_registry[mica.ops.mica.erf]
    """

    def register(formula: Formula) -> Formula:
        formula._raw = get_raw  # type: ignore[attr-defined]
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[target] = formula
        return formula

    return register


def _has_formula(func: Any, formulas: dict[Any, Formula]) -> bool:
    return func.overloadpacket in formulas or func._opname in _NAMED or func.op_class == "contraction"


def operations(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, formulas: dict[Any, Formula]
) -> int:
    """Computes the floating-point operations of one call of an operator, from shapes.

    Args:
        func (OpOverload): The operator that is called.
        args (tuple): Positional arguments of the call.
        kwargs (dict): Keyword arguments of the call.
        result (object): What it returned.
        formulas (dict): Formulas by operator, which come before the built-in ones.

    Returns:
        int: The operations; 0 where no formula says.

    Example:
        >>> a, b = mica.ones(2, 3), mica.ones(3, 4)
        >>> mica.utils.flop_counter.operations(mica.ops.mica.mm.default, (a, b), {}, a @ b, {})
        48
    """
    formula = formulas.get(func.overloadpacket)
    out = tree_map(_shape, result)
    if formula is None:
        by_class = _NAMED.get(func._opname)
        if by_class is None and func.op_class == "contraction":
            by_class = _contraction
        if by_class is None:
            return 0
        names = (a.name for a in func._schema.arguments)
        return by_class({**dict(zip(names, tree_map(_shape, args))), **tree_map(_shape, kwargs)}, out)
    if getattr(formula, "_raw", False):
        return formula(*args, **kwargs, out_val=result)
    return formula(*tree_map(_shape, args), **tree_map(_shape, kwargs), out_shape=out)


class FlopCounterMode(DispatchMode):
    """Counts floating-point operations inside a `with` block, by module and operator, backward included.

    As `torch.utils.flop_counter.FlopCounterMode`. Matrix products, convolutions and attention count, a
    multiplication and an addition as two; other operators count 0. A table is printed at the end.

    Args:
        mods (object, optional): No effect: every module is counted. Default: None.
        depth (int): Levels of modules that the table shows. Default: 2.
        display (bool): Print the table. Default: True.
        custom_mapping (dict, optional): Formulas by operator, as `register_flop_formula` takes them.

    Example:
        >>> with mica.utils.flop_counter.FlopCounterMode(display=False) as counter:
        ...     y = mica.ones(2, 3) @ mica.ones(3, 4)
        >>> counter.get_total_flops()
        48
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Formula] | None = None,
    ) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._formulas = {**flop_registry, **(custom_mapping or {})}
        self._modules = ModuleTracker()  # every module is told: `mods`, of older programs, says nothing

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._modules.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._modules.__exit__(*exc)
        if self.display and not any(exc):
            print(self.get_table(self.depth))

    def __mica_dispatch__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if not _has_formula(func, self._formulas):
            return self._inside(func, args, kwargs)
        result = func(*args, **kwargs)
        flops = operations(func, args, kwargs, result, self._formulas)
        for path in self._modules.parents:
            self.flop_counts[path][func.overloadpacket] += flops
        return result

    def _inside(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An operator without a formula costs what the operators of its decomposition do."""
        with self._again():
            opened = func.decompose(*args, **kwargs)
        return func(*args, **kwargs) if opened is NotImplemented else opened

    @contextlib.contextmanager
    def _again(self) -> Iterator[None]:
        _C._push_dispatch_mode(self)
        try:
            yield
        finally:
            _C._pop_dispatch_mode()

    def get_total_flops(self) -> int:
        """Returns the number of operations that were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Returns the operations by module ("Net.conv1", "Global" for all), then by operator."""
        return {path: dict(counts) for path, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Returns a table of the modules and their operators.

        Args:
            depth (int, optional): Levels of modules to show. Default: that of the constructor.

        Returns:
            str: The table.
        """
        depth = self.depth if depth is None else depth
        total = max(self.get_total_flops(), 1)
        lines = [f"{'Module':<40} {'FLOP':>16} {'% Total':>8}"]
        for path, counts in sorted(self.flop_counts.items(), key=lambda item: (item[0] != "Global", item[0])):
            level = 0 if path == "Global" else path.count(".") + 1
            if level > depth:
                continue
            rows = [(path, sum(counts.values())), *((f" - {p._qualified}", n) for p, n in counts.items())]
            for name, flops in rows:
                lines.append(f"{'  ' * level + name:<40} {flops:>16,} {flops / total:>8.2%}")
        return "\n".join(lines)
