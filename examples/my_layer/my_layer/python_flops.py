"""The layer in Python only: a dispatch mode, below Autograd, that counts by class as flops.cc does."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

from mica import Tensor
from mica.utils._pytree import tree_leaves
from mica.utils.python_dispatch import DispatchMode


def elements(values: Any) -> int:
    return sum(t.numel() for t in tree_leaves(values) if isinstance(t, Tensor))


def products(equation: str, operands: list[Tensor]) -> int:
    """The product of the sizes of the equation's letters."""
    terms = equation.partition("->")[0].split(",")
    sizes = {}
    for term, tensor in zip(terms, operands[-len(terms) :], strict=True):
        sizes.update(zip(term, tensor.shape, strict=True))
    return prod(sizes.values())


class PythonFlopCounter(DispatchMode):
    """`with PythonFlopCounter() as counter:`; `counter.count("contraction")`, or of one operator."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, of: str = "all") -> int:
        return self.counts[of]

    def cost(self, func: Any, args: Any, result: Any) -> int:
        if func.op_class == "contraction":
            return 2 * products(func.equation, [a for a in args if isinstance(a, Tensor)])
        if func.op_class == "pointwise" and func.program is not None:
            computes = {step[0] for step in func.program.codes["main"]} - {"LOAD", "SCALAR", "CONST", "STORE"}
            return elements(result) if computes else 0
        if func._opname == "convolution":
            images, weight = args[0] if args[6] else result, args[1]
            return 2 * images.numel() * (weight.numel() // weight.shape[0])
        return elements(args) if func.op_class in ("reduction", "scan", "row") else 0

    # snippet: mode
    def __mica_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.op_class == "decompose":
            with self:  # its parts come here
                parts = func.decompose(*args, **(kwargs or {}))
            if parts is not NotImplemented:
                return parts
        result = func(*args, **(kwargs or {}))
        for name in ("all", func.op_class, func.name()):
            self.counts[name] += self.cost(func, args, result)
        return result

    # end snippet
