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
    """Registers a formula for operators (packets); with `get_raw` it gets tensors, not shapes."""

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
    """The operations of one call of an operator that gave `result`; 0 where no formula says."""
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
    """`with FlopCounterMode() as counter` counts; counter.get_total_flops() tells how many,
    counter.get_flop_counts() by module ("Net.conv1") and operator. A table is printed at the
    end unless `display` is False; `depth` limits the modules in it."""

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
        """All that were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, then by operator."""
        return {path: dict(counts) for path, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A table of the modules down to `depth`, and of their operators."""
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
