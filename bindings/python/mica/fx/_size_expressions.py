"""Finds how the integers of a trace depend on its sizes, from several runs.

A number that differs between runs with different sizes is one of the sizes, or computed of
them by C++ code (a gradient formula, a batch rule) that the trace does not see. `fit` looks
for a polynomial with rational coefficients, in one monomial or linear in all symbols, that
agrees with all runs; there are at least two runs more than it has coefficients."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from mica.fx._symint import Computed, Expression, Size

_SPARE = 2  # runs beyond those that determine the coefficients


def evaluate(e: Expression, sizes: dict[Size, int]) -> Any:
    """The expression's value for these sizes."""
    if isinstance(e, Size):
        return sizes[e]
    return e.function(*(evaluate(a, sizes) for a in e.args)) if isinstance(e, Computed) else e


def _product(symbols: Sequence[Size]) -> Expression:
    result: Expression = None
    for s in symbols:
        result = s if result is None else Computed(operator.mul, (result, s))
    return result


def _sum(terms: Sequence[tuple[Expression, int]], constant: int) -> Expression:
    result: Expression = None
    for e, factor in terms:
        if factor == 0:
            continue
        term = e if factor == 1 else Computed(operator.mul, (e, factor))
        result = term if result is None else Computed(operator.add, (result, term))
    if result is None:
        return constant
    return Computed(operator.add, (result, constant)) if constant else result


def _monomials(symbols: Sequence[Size]) -> list[tuple[Size, ...]]:
    most = 4 if len(symbols) <= 2 else 3 if len(symbols) <= 4 else 2
    return [
        c for degree in range(1, most + 1) for c in itertools.combinations_with_replacement(symbols, degree)
    ]


def _solve(rows: list[list[int]], values: list[int]) -> list[Fraction] | None:
    """The one solution of an overdetermined linear system; None where there is none, or many."""
    m = [[Fraction(x) for x in row] + [Fraction(v)] for row, v in zip(rows, values)]
    unknowns = len(rows[0])
    for column in range(unknowns):
        pivot = next((r for r in range(column, len(m)) if m[r][column]), None)
        if pivot is None:
            return None
        m[column], m[pivot] = m[pivot], m[column]
        m[column] = [x / m[column][column] for x in m[column]]
        for r in range(len(m)):
            if r != column and m[r][column]:
                m[r] = [x - m[r][column] * y for x, y in zip(m[r], m[column])]
    if any(row[-1] for row in m[unknowns:]):
        return None
    return [m[i][-1] for i in range(unknowns)]


def _integer(basis: list[Expression], values: Sequence[int], runs: Sequence[dict[Size, int]]) -> Expression:
    if len(values) < len(basis) + 1 + _SPARE:
        return None
    rows = [[*(evaluate(b, run) for b in basis), 1] for run in runs]
    found = _solve(rows, list(values))
    if found is None:
        return None
    denominator = math.lcm(*(f.denominator for f in found))
    *factors, constant = (int(f * denominator) for f in found)
    total = _sum(list(zip(basis, factors)), constant)
    return total if denominator == 1 else Computed(operator.floordiv, (total, denominator))


def _float(values: Sequence[float], symbols: Sequence[Size], runs: Sequence[dict[Size, int]]) -> Expression:
    """c*m, c/m, c*sqrt(m) or c/sqrt(m)."""
    if len(values) < 1 + _SPARE:
        return None
    for monomial in _monomials(symbols):
        product = _product(monomial)
        root = Computed(math.sqrt, (product,))
        for e in (product, root):
            sizes = [evaluate(e, run) for run in runs]
            for function, factors in (
                (operator.mul, [v / s for v, s in zip(values, sizes)]),
                (operator.truediv, [v * s for v, s in zip(values, sizes)]),
            ):
                if all(math.isclose(f, factors[0], rel_tol=1e-13) for f in factors):
                    near = round(factors[0])
                    c = float(near) if math.isclose(near, factors[0], rel_tol=1e-13) else factors[0]
                    return Computed(function, (c, e))
    return None


def _quotient(values: Sequence[int], symbols: Sequence[Size], runs: Sequence[dict[Size, int]]) -> Expression:
    """(s + c) // k, as windows with a stride make it, where the runs leave one such c and k."""
    for s in symbols:
        found = []
        for k in range(2, 9):
            least = [v * k - run[s] for v, run in zip(values, runs)]
            if max(least) <= min(least) + k - 1:
                found += [(c, k) for c in range(max(least), min(least) + k)]
        if len(found) == 1:
            (c, k) = found[0]
            return Computed(operator.floordiv, (Computed(operator.add, (s, c)) if c else s, k))
    return None


def fit(values: Sequence[Any], symbols: Sequence[Size], runs: Sequence[dict[Size, int]]) -> Expression:
    """The function of the symbols that gave these values in these runs; None: none was found."""
    if all(v == values[0] for v in values):
        return values[0]
    if any(isinstance(v, float) for v in values):
        return _float(values, symbols, runs)
    for s in symbols:
        if all(run[s] == v for run, v in zip(runs, values)):
            return s
    for monomial in _monomials(symbols):
        found = _integer([_product(monomial)], values, runs)
        if found is not None:
            return found
    found = _integer(list(symbols), values, runs) if len(symbols) > 1 else None
    return _quotient(values, symbols, runs) if found is None else found
