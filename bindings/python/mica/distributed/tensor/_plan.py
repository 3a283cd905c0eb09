"""How a call is computed: where each tensor has to lie, and where results lie.

For each dimension of the mesh the strategy is chosen that moves the least; the choice is kept by operator, shapes,
placements and arguments, so that it is made once.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import mica
from mica.distributed.tensor._call import Call, Kind, signature
from mica.distributed.tensor._class_data import named_rule
from mica.distributed.tensor._equations import Equation, Strategy
from mica.distributed.tensor._layout import local_box
from mica.distributed.tensor._named_rules import BY_NAME, WHOLE_COMPOSITES, class_is_silent
from mica.distributed.tensor._rules import BY_CLASS
from mica.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, _StridedShard
from mica.ops import OpOverload

Layout = tuple[Placement, ...]


class Plan(NamedTuple):
    """What a call is computed by.

    `whole`: on every rank the whole call, for what is written where no rule serves.
    """

    inputs: list[Layout]
    outputs: list[Layout] | None  # None: all replicated, shapes as they come
    results: list[Kind] | None  # None: not known
    local_results: list[list[int]] | None
    sizes: tuple[int, list[int]] | None  # another argument than the one given: its place, and local sizes
    as_view: bool
    moved: bool  # a tensor has to be redistributed
    whole: bool


def rule_of(func: OpOverload) -> Any:
    """The rule of an operator, by its entry's word or class; None where it has none."""
    by_class = BY_CLASS.get(func.op_class)
    if by_class is not None and not class_is_silent(func):
        return by_class
    if func.op_class == "decompose":
        return WHOLE_COMPOSITES.get(func.name())
    return BY_NAME.get(named_rule(func) or "") or by_class


def source_of(func: OpOverload) -> str:
    """Where an operator's rule comes from: "class", "decomposition", "by hand" or "none"; of draws "random"."""
    rule = rule_of(func)
    if rule is not None:
        return "class" if rule is BY_CLASS.get(func.op_class) else "by hand"
    return {"decompose": "decomposition", "random": "random"}.get(func.op_class, "none")


def equation_of(call: Call) -> Equation | None:
    """The equation of a call; None where no rule serves."""
    rule = rule_of(call.func)
    if rule is None or call.results is None or not call.kinds:
        return None
    equation: Equation | None = rule(call)
    if equation is None:
        return None
    fits = [len(row) == len(shape) for row, shape in zip(equation.inputs, call.shapes)]
    fits += [len(row) == len(shape) for row, shape in zip(equation.outputs, call.made)]
    sound = all(fits) and len(equation.inputs) == len(call.kinds) and len(equation.outputs) == len(call.made)
    assert sound, f"The sharding rule of {call.func.name()} does not fit its call: {equation}, {call.shapes}."
    return equation


# What it costs to bring a tensor from one placement to another, in elements: a collective costs some, whatever the
# size. As in torch, turning a cut costs more than joining it (so that a dimension that must be whole is replicated),
# and what is partial is rather replicated than cut, unless another tensor of the call is cut so.
_COLLECTIVE = 16_000.0


def _cost(old: Placement, new: Placement, size: int) -> float:
    if old == new:
        return 0.0
    if isinstance(old, Replicate):
        return 2.0 if isinstance(new, Partial) else 1.0  # no communication
    if isinstance(old, Shard):
        return (_COLLECTIVE + size) * {Replicate: 1.0, Shard: 1.1, _StridedShard: 1.1, Partial: 4.0}[
            type(new)
        ]
    return (_COLLECTIVE + size) * {Replicate: 1.9, Shard: 2.0, _StridedShard: 2.2, Partial: 4.0}[type(new)]


def _chosen(
    strategies: Sequence[Strategy], now: Sequence[Placement], sizes: Sequence[int], fixed: set[int]
) -> Strategy | None:
    """The cheapest strategy; tensors of `fixed` stay where they are."""
    best, least = None, math.inf
    for strategy in strategies:
        if any(strategy.inputs[i] != now[i] for i in fixed):
            continue
        cost = sum(_cost(old, new, size) for old, new, size in zip(now, strategy.inputs, sizes))
        if cost < least:
            best, least = strategy, cost
    return best


def _written_places(call: Call, strategy: Strategy) -> bool:
    """Whether results that are written arguments lie as those do."""
    about = signature(call.func)
    return all(
        argument is None or strategy.outputs[r] == strategy.inputs[_slot_of(call, argument)]
        for r, argument in enumerate(about.of_argument)
        if r < len(strategy.outputs)
    )


def _slot_of(call: Call, argument: int) -> int:
    return next(i for i, place in enumerate(call.places) if place.argument == argument)


def plan(call: Call, mesh: Any, layouts: Sequence[Layout]) -> Plan:
    """The plan of a call with tensors that lie so.

    Raises:
        NotImplementedError: The operator has no rule, and a tensor is not replicated.
    """
    written = {i for i, place in enumerate(call.places) if place.argument in signature(call.func).written}
    equation = equation_of(call)
    replicated = (Replicate(),) * mesh.ndim
    if equation is None:
        if all(layout == replicated for layout in layouts):
            return Plan(list(layouts), None, call.results, None, None, False, False, False)
        raise NotImplementedError(_refusal(call, layouts))
    splits = sorted({p.split_factor for row in layouts for p in row if isinstance(p, _StridedShard)})
    if mesh.ndim > 1:
        equation.joins = []
    strategies = [
        s
        for s in equation.strategies(call.shapes, call.made, mesh.size(), splits)
        if _written_places(call, s)
    ]
    sizes = [math.prod(shape) for shape in call.shapes]
    chosen: list[Strategy] = []
    for dim in range(mesh.ndim):
        found = _chosen(strategies, [layout[dim] for layout in layouts], sizes, written)
        if found is None:
            return Plan([replicated] * len(layouts), None, call.results, None, None, False, True, True)
        chosen.append(found)
    inputs = [tuple(s.inputs[i] for s in chosen) for i in range(len(layouts))]
    outputs = [tuple(s.outputs[i] for s in chosen) for i in range(len(call.made))]
    here = mesh.get_coordinate()
    local = [local_box(shape, mesh.shape, here, layout)[0] for shape, layout in zip(call.made, outputs)]
    return Plan(
        inputs,
        outputs,
        call.results,
        local,
        None if equation.sizes is None else (call.names.index(equation.sizes), local[0]),
        equation.as_view,
        inputs != list(layouts),
        False,
    )


def _refusal(call: Call, layouts: Sequence[Layout]) -> str:
    shown = ", ".join(f"({', '.join(map(str, layout))})" for layout in layouts)
    return (
        f"{call.func.name()} (class {call.func.op_class}) has no sharding rule for a call with tensors of shapes "
        f"{[list(s) for s in call.shapes]} and placements {shown}: DTensor computes operators by rules, which "
        "follow from their class. Call it on replicated tensors: x.redistribute(placements=[Replicate()]), or on "
        "the local ones, x.to_local()."
    )


# ---- plans that were made

_plans: dict[Hashable, Plan] = {}
_MOST = 20_000
_lock = threading.Lock()
_count = itertools.count(1)


def numbered(known: dict[Any, int], key: Any) -> int:
    """The number of a key, given to no other one, also by other dicts or after this one is cleared."""
    with _lock:
        if key not in known:
            if len(known) >= _MOST:
                known.clear()
            known[key] = next(_count)
        return known[key]


def number_of(mesh: Any) -> int:
    """A number that no other mesh has: what is kept by it does not keep the mesh."""
    found: int | None = vars(mesh).get("_plans_number")
    if found is None:
        with _lock:
            found = vars(mesh).setdefault("_plans_number", next(_count))
    return found


def _hashable(value: Any) -> Hashable:
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(v) for v in value)
    return (type(value), value)


def planned(
    func: OpOverload, values: list[Any], mesh: Any, places: Any, kinds: list[Kind], layouts: list[Layout]
) -> Plan:
    """The plan of a call, made once for calls that are alike."""
    others = [None if isinstance(v, mica.Tensor) else v for v in values]
    for place in places:
        if place.item is not None:
            others[place.argument] = len(values[place.argument])
    for i in signature(func).numbers:
        others[i] = type(others[i])
    key = (
        func,
        number_of(mesh),
        tuple(kinds),
        tuple(layouts),
        tuple(places),
        _hashable(others),
        mica.get_default_dtype(),
    )
    found = _plans.get(key)
    if found is None:
        if len(_plans) >= _MOST:
            _plans.clear()
        found = _plans[key] = plan(Call(func, values, kinds, places), mesh, layouts)
    return found
