"""Sharding rules of operators, from the classes of their entries.

A rule makes the equation of a call (_equations.py) from the operator's class, the arguments of the class, its program,
and the shapes. Operators of one class differ in that data alone; what a class does not say, the entry's `batch_rule:`
does (_named_rules.py). Composites have no rules: their parts do.

    class          indices
    pointwise      aligned behind each other, as broadcasting does
    reduction      those that are kept; sums, products, extremes and means of the others are partial
    scan, row      all but the dimension of the class
    contraction    those of its equation; what is contracted is a partial sum
    view           by where the strides of the result lie in those of a tensor in order
    gather, scatter  all but the dimension that is indexed; the index brings its own
    core(n)        the leading ones
    window         images and channels
    fold           all but the dimension that joins
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mica
from mica.distributed.tensor._call import Call, run, with_tensors
from mica.distributed.tensor._class_data import (
    class_arguments,
    functional,
    is_linear,
    is_mean,
    program_of,
    reduction_of,
)
from mica.distributed.tensor._equations import Equation, Index, Join
from mica.distributed.tensor._layout import contiguous_strides
from mica.distributed.tensor.placement_types import REDUCTIONS, Shard, _StridedShard

Rule = Callable[[Call], "Equation | None"]


def numbered(ndim: int, locked: Sequence[int] = ()) -> list[Index]:
    """The dimensions' own numbers as indices; None for those that are locked."""
    return [None if d in locked else d for d in range(ndim)]


def broadcast(shape: Sequence[int], to: Sequence[int], indices: Sequence[Index]) -> list[Index]:
    """The indices of a tensor that broadcasts to a shape of these indices."""
    skipped = len(to) - len(shape)
    return [i if size == whole else None for size, whole, i in zip(shape, to[skipped:], indices[skipped:])]


def floating(call: Call, slots: Sequence[int]) -> bool:
    """Whether these tensors and the results are of dtypes whose sums are exact up to rounding."""
    assert call.results is not None
    kinds = [call.kinds[i] for i in slots] + call.results
    return all(k.dtype.is_floating_point or k.dtype.is_complex for k in kinds)


def linear_sets(call: Call) -> list[frozenset[int]]:
    """The sets of tensors in which the operator's program is linear: all of them, and each alone."""
    program = program_of(call.func)
    if program is None:
        return []
    inputs = [
        i for i, place in enumerate(call.places) if place.item is None and place.argument in program.inputs
    ]
    if len(call.places) != len(inputs) + len(_outs(call)):
        return []
    candidates = [frozenset(inputs), *(frozenset([i]) for i in inputs if len(inputs) > 1)]
    found = []
    for chosen in candidates:
        arguments = frozenset(call.places[i].argument for i in chosen)
        if chosen and floating(call, sorted(chosen)) and is_linear(functional(call.func), arguments):
            found.append(chosen | _outs(call))
    return found


def _outs(call: Call) -> frozenset[int]:
    """The tensors of an out form that are written and not read."""
    inputs = functional(call.func)._schema.arguments
    return frozenset(i for i, place in enumerate(call.places) if place.argument >= len(inputs))


def pointwise(call: Call) -> Equation:
    """Element by element, as shapes broadcast."""
    to = call.made[0] if call.made else ()
    indices = numbered(len(to))
    return Equation(
        [broadcast(shape, to, indices) for shape in call.shapes],
        [indices for _ in call.made],
        linear=linear_sets(call),
    )


def _kept(ndim: int, reduced: Sequence[int], keepdim: bool) -> list[Index]:
    return [None if d in reduced else d for d in range(ndim) if keepdim or d not in reduced]


def reduction(call: Call) -> Equation:
    """Of the dimensions that the class names, or of all."""
    about = class_arguments(call.func)
    ndim = len(call.shapes[0])
    dims = call.dims(about["dims"], ndim) if "dims" in about else list(range(ndim))
    if dims is None or (not dims and about.get("none") == "all"):
        dims = list(range(ndim))
    keepdim = bool(call.value(about["keepdim"])) if "keepdim" in about else False
    rows = [_kept(ndim, dims, keepdim) for _ in call.made]
    equation = Equation([numbered(ndim), *(rows[0] for _ in call.shapes[1:])], rows)
    if is_mean(call.func):
        equation.sums = dict.fromkeys(dims, "avg")
        equation.even = set(dims)
        equation.filled = set(dims)
    bits = call.results is not None and call.results[0].dtype == mica.bool
    by = reduction_of(call.func, bits)
    if by is not None and len(call.made) == 1:
        equation.sums = dict.fromkeys(dims, by)
        equation.filled = set(dims) if by in ("max", "min") else set()
        if call.results is not None and call.kinds[0].dtype == call.results[0].dtype and not bits:
            equation.passing[0] = (by,)
    equation.linear = linear_sets(call)
    return equation


def along(call: Call) -> Equation | None:
    """All dimensions but those that the class, or the arguments `dim`, name."""
    about = class_arguments(call.func)
    name = about.get("dims") or about.get("dim") or "dim"
    to = call.made[0]
    dims = call.dims(name, len(to))
    if dims is None or (not dims and about.get("none") == "flat"):
        dims = list(range(len(to)))
    if any(len(shape) != len(to) for shape in [*call.shapes, *call.made]):
        return None
    row = numbered(len(to), dims)
    of_shape = [[i if s == t else None for s, t, i in zip(shape, to, row)] for shape in call.shapes]
    return Equation(of_shape, [row for _ in call.made], linear=linear_sets(call))


def contraction(call: Call) -> Equation:
    """The class's equation over the last tensors; what stands before them is added to the result."""
    text = call.func.equation
    sides, result = text.split("->")
    operands = [list(side) for side in sides.split(",")]
    given = len(call.places) - len(_outs(call))
    first = given - len(operands)
    rows: list[list[Index]] = []
    for number, shape in enumerate(call.shapes):
        if number < first or number >= given:
            rows.append(broadcast(shape, call.made[0], list(result)))
        else:
            rows.append(list(operands[number - first]))
    contracted = {i for row in operands for i in row if i not in result}
    added = set(range(first)) | _outs(call)
    # Linear in each operand, with all that is added; and in what is added, with an operand.
    linear = [frozenset({i} | added) for i in range(first, given)] if floating(call, range(given)) else []
    return Equation(rows, [list(result)], sums=dict.fromkeys(contracted, "sum"), added=added, linear=linear)


# ---- views


def _in_bytes(shape: Sequence[int], strides: Sequence[int], dtype: Any) -> list[tuple[int, int]]:
    return [(size, stride * dtype.itemsize) for size, stride in zip(shape, strides)]


def _seen(call: Call) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bool]:
    """Sizes and strides of the first tensor in order, and of what the view makes of it; whether it shows other elements."""
    kind = call.kinds[0]
    ordered = mica.empty(kind.shape, dtype=kind.dtype, device="meta")
    view = run(call.func, with_tensors(call.values, call.places[:1], [ordered]))
    before = _in_bytes(kind.shape, contiguous_strides(kind.shape), kind.dtype)
    return before, _in_bytes(view.shape, view.stride(), view.dtype), view.is_conj() or view.is_neg()


def view(call: Call) -> Equation | None:
    """The dimensions that the view leaves whole, and the outermost of those that it joins or splits."""
    if "stride" in call.names or len(call.made) != 1:
        return None
    sizes = next((n for n in ("size", "shape") if n in call.names and "dimension" not in call.names), None)
    if 0 in call.shapes[0]:
        return Equation([[None] * len(call.shapes[0])], [[None] * len(call.made[0])], sizes=sizes)
    before, after, flipped = _seen(call)
    kept = math.prod(call.shapes[0]) == math.prod(call.made[0])
    equation = Equation([[None] * len(before)], [[None] * len(after)], sizes=sizes)
    taken: set[int] = set()
    for place, (size, stride) in enumerate(after):
        for d, (whole, step) in enumerate(before):
            same = size == whole and stride == step
            outermost = kept and size * stride == whole * step
            if d in taken or 1 in (size, whole) or stride == 0 or not (same or outermost):
                continue
            taken.add(d)
            equation.inputs[0][d] = equation.outputs[0][place] = d
            if not same:
                equation.even.add(d)
            break
    same_dtype = call.results is not None and call.results[0].dtype == call.kinds[0].dtype
    if same_dtype:
        equation.passing[0] = REDUCTIONS
        if kept:
            equation.joins = [*_inner(before, after, False), *_inner(after, before, True)]
    cut = [i for i in equation.outputs[0] if isinstance(i, int)]
    in_order = kept and cut == sorted(cut) and 0 not in [stride for size, stride in after if size > 1]
    equation.as_view = in_order and same_dtype and not flipped
    return equation


def _inner(apart: list[tuple[int, int]], joined: list[tuple[int, int]], splits: bool) -> list[Join]:
    """Dimensions (size, stride) that are inner ones of a joined dimension, which counts through them.

    `splits`: the view takes the joined one apart.
    """
    found = []
    for d, (size, stride) in enumerate(apart):
        for place, (whole, step) in enumerate(joined):
            inside = stride and step and step <= stride and size * stride < whole * step
            if inside and size > 1 and (whole * step) % (size * stride) == 0 and (size * stride) % step == 0:
                outer = whole * step // (size * stride)
                cut, strided = Shard(d), _StridedShard(dim=place, split_factor=outer)
                # Elements inside of the dimension go along with it, where parts are equal.
                equal = size if stride > step else 0
                found.append(Join(equal, strided, cut) if splits else Join(equal, cut, strided))
    return found


# ---- indexing


def gather(call: Call) -> Equation | None:
    """Elements at other places: `dims` that move, or the dimension `dim` at which an index says what is read."""
    about = class_arguments(call.func)
    if "dim" in about:
        return _indexed(call, about)
    equation = along(call) if "dims" in about else _trailing(call, _moved(call))
    if equation is not None:
        equation.linear = (
            [frozenset(range(len(call.places)))] if floating(call, [0]) and _is_zero_filled(call) else []
        )
    return equation


def _is_zero_filled(call: Call) -> bool:
    return call.value("value") in (None, 0)


def _moved(call: Call) -> int:
    """How many of the last dimensions a gather without a `dim` reads elsewhere: those of `pad`, or a matrix's."""
    pad = call.value("pad")
    return 2 if pad is None else len(pad) // 2


def _trailing(call: Call, count: int) -> Equation | None:
    """All but the last dimensions, of tensors of one rank."""
    ndim = len(call.made[0])
    if any(len(shape) != ndim for shape in [*call.shapes, *call.made]):
        return None
    row = numbered(ndim, range(max(ndim - count, 0), ndim))
    return Equation([list(row) for _ in call.shapes], [list(row) for _ in call.made])


def _dim_of(call: Call, name: str, ndim: int) -> int:
    """The dimension that the class gives by the argument's name, or by its number."""
    if name.lstrip("-").isdigit():
        return int(name)
    found = call.dims(name, ndim)
    assert found is not None
    return found[0]


def _indexed(call: Call, about: dict[str, str]) -> Equation | None:
    """index: positions of the result's shape; replace: the index's dimensions stand in the place of `dim`."""
    data = 0
    ndim = len(call.shapes[data])
    if ndim == 0:
        return None
    dim = _dim_of(call, about["dim"], ndim)
    index = call.slot(about.get("index") or about["replace"])
    assert index is not None
    row = numbered(ndim, [dim])
    if "replace" in about:
        own: list[Index] = [("index", d) for d in range(len(call.shapes[index]))]
        if len(call.made[0]) == ndim and not own:
            own_out: list[Index] = [None]  # a 0-d index leaves a dimension of size 1
        else:
            own_out = own
        out = [*row[:dim], *own_out, *row[dim + 1 :]]
        rows = {data: row, index: own}
    else:
        shape = call.shapes[index]
        shared = [
            d if size == whole and d != dim else None
            for d, (size, whole) in enumerate(zip(shape, call.shapes[data]))
        ]
        positions: list[Index] = [("index", d) if d == dim else i for d, i in enumerate(shared)]
        out = positions
        rows = {data: list(shared), index: positions}
    linear = [frozenset([data])] if floating(call, [data]) else []
    return Equation([rows.get(i, out) for i in range(len(call.places))], [list(out)], linear=linear)


def scatter(call: Call) -> Equation | None:
    """The dimensions that an index does not reach; what is added up at an index is a partial sum."""
    about = class_arguments(call.func)
    if "dim" not in about:
        about = {"dim": "dim", "index": "index", "source": "src"}
    ndim = len(call.shapes[0])
    index = call.slot(about.get("index") or about.get("replace", "index"))
    if ndim == 0 or index is None or "dim" not in call.names:
        return None
    dim = _dim_of(call, about["dim"], ndim)
    source = call.slot(about.get("source", ""))
    out = numbered(ndim, [dim])
    adds = _adds(call)
    rows: dict[int, list[Index]] = {0: out, index: [("index", d) for d in range(len(call.shapes[index]))]}
    if "replace" in about:
        if source is not None:
            if len(call.shapes[source]) != ndim or len(call.shapes[index]) != 1:
                return None
            rows[source] = [("index", 0) if d == dim else i for d, i in enumerate(out)]
    else:
        others = [index] if source is None else [index, source]
        shapes = [call.shapes[i] for i in others]
        if any(len(shape) != ndim for shape in shapes):
            return None
        shared = [
            i if all(shape[d] == call.shapes[0][d] for shape in shapes) else None for d, i in enumerate(out)
        ]
        same = len({shape[dim] for shape in shapes}) == 1
        positions = [("index", d) if d == dim and same else i for d, i in enumerate(shared)]
        for i in others:
            rows[i] = positions
        out = rows[0] = list(shared)
    equation = Equation([rows.get(i, out) for i in range(len(call.places))], [list(out)])
    if adds and source is not None and floating(call, [0, source]):
        equation.sums = {i: "sum" for i in rows[source] if isinstance(i, tuple)}
        equation.added = {0} | _outs(call)
        equation.linear = [frozenset({0, source}) | _outs(call)]
    return equation


def _adds(call: Call) -> bool:
    """Whether what is written is added to what is there."""
    program = program_of(call.func)
    if program is None:
        return False
    steps = [step[0] for step in program.codes["combine"]]
    return steps == ["STATE", "STATE", "ADD", "STORE_STATE"]


# ---- the rest


def core(call: Call) -> Equation | None:
    """The leading dimensions of vectors and matrices; those of a class with the argument `dim`, all but them."""
    if "dim" in call.names:
        return along(call)
    count = int(class_arguments(call.func).get("", "2"))
    ndims = [len(shape) - count for shape in call.shapes]
    leading = max(ndims)
    if leading <= 0:
        return Equation([[None] * len(s) for s in call.shapes], [[None] * len(s) for s in call.made])
    batch = tuple(mica.broadcast_shapes(*(shape[: max(n, 0)] for shape, n in zip(call.shapes, ndims))))
    rows: list[list[Index]] = []
    for shape, n in zip(call.shapes, ndims):
        if n == leading or shape[:leading] != batch:
            skipped = leading - n
            own = [d + skipped if shape[d] == batch[d + skipped] else None for d in range(max(n, 0))]
            rows.append([*own, *[None] * (len(shape) - len(own))])
        else:  # of fewer core dimensions, with the whole batch
            rows.append([*range(leading), *[None] * (len(shape) - leading)])
    outputs: list[list[Index]] = []
    for shape in call.made:
        if shape[:leading] == batch:
            outputs.append([*range(leading), *[None] * (len(shape) - leading)])
        elif 0 in shape:  # what was not asked for
            outputs.append([None] * len(shape))
        else:
            return None
    return Equation(rows, outputs, empty={i for i, shape in enumerate(call.made) if 0 in shape})


def window(call: Call) -> Equation | None:
    """Images and channels; not the dimensions that windows slide along, of which the operator's name says how many."""
    name = call.func._opname
    spatial = next(
        (int(name[i]) for i in range(len(name) - 1) if name[i].isdigit() and name[i + 1] == "d"), None
    )
    equation = None if spatial is None else _trailing(call, spatial)
    if equation is not None:
        equation.filled = set(equation.inputs[0]) - {None}  # kernels refuse images without channels
    return equation


def fold(call: Call) -> Equation | None:
    """All dimensions but the one along which the tensors are joined."""
    how = class_arguments(call.func).get("join")
    if how == "diagonal" or not call.made[0]:
        return None
    ndim = len(call.made[0])
    dim = call.dims("dim", ndim)
    assert dim is not None
    row = numbered(ndim, dim)
    own = [i for d, i in enumerate(row) if d != dim[0]] if how == "new" else row
    outs = _outs(call)
    rows = [row if i in outs else own for i in range(len(call.places))]
    if any(len(shape) != len(indices) for shape, indices in zip(call.shapes, rows)):
        return None  # of no elements, which any shape goes with
    every = frozenset(range(len(call.places)))
    linear = [every] if floating(call, range(len(call.places))) else []
    return Equation(rows, [row], linear=linear, passing={0: REDUCTIONS} if len(every) == 1 else {})


BY_CLASS: dict[str, Rule] = {
    "pointwise": pointwise,
    "reduction": reduction,
    "scan": along,
    "row": along,
    "contraction": contraction,
    "view": view,
    "gather": gather,
    "scatter": scatter,
    "core": core,
    "window": window,
    "fold": fold,
}
