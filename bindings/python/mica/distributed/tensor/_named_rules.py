"""Rules of operators that their class does not say enough of, by the word of their entry's `batch_rule:`."""

from __future__ import annotations

from typing import Any

import mica
from mica.distributed.tensor._call import Call
from mica.distributed.tensor._class_data import named_rule
from mica.distributed.tensor._equations import Equation, Index
from mica.distributed.tensor._rules import Rule, along, broadcast, core, floating, numbered, pointwise, window
from mica.distributed.tensor._slices import strided
from mica.distributed.tensor.placement_types import REDUCTIONS
from mica.ops import OpOverload

_MEAN, _SUM = 1, 2  # of losses' `reduction`


def copied(call: Call) -> Equation:
    """clone, empty_like: where the tensor lies."""
    row = numbered(len(call.made[0]))
    equation = Equation([row], [row])
    if call.func._opname == "clone":
        equation.passing[0] = REDUCTIONS
    else:
        equation.shape_only = True
    return equation


def written_over(call: Call) -> Equation:
    """copy_: what is copied broadcasts, and may be partial as what is written."""
    equation = pointwise(call)
    if floating(call, [0, 1]):
        equation.linear = [frozenset({0, 1})]
    return equation


def embedding_backward(call: Call) -> Equation:
    """embedding_dense_backward: each looked-up row adds to the table; columns are apart."""
    own: list[Index] = [("index", d) for d in range(len(call.shapes[1]))]
    sums = {} if call.value("scale_grad_by_freq") else dict.fromkeys(own, "sum")
    return Equation([[*own, "column"], own], [[None, "column"]], sums=sums)


def convolution(call: Call) -> Equation:
    """Images, output channels, and input channels that are summed."""
    spatial = [None] * (len(call.shapes[0]) - 2)
    whole = call.value("groups") == 1
    one, two = ("c", "o") if call.value("transposed") else ("o", "c")
    rows: list[list[Index]] = [["n", "c", *spatial], [one, two, *spatial], ["o"]]
    return _channels(Equation(rows[: len(call.places)], [["n", "o", *spatial]], {"c": "sum"}, {2}), whole)


def convolution_input(call: Call) -> Equation:
    """_convolution_backward_input."""
    spatial = [None] * (len(call.shapes[0]) - 2)
    one, two = ("c", "o") if call.value("transposed") else ("o", "c")
    rows: list[list[Index]] = [["n", "o", *spatial], [one, two, *spatial]]
    equation = Equation(rows, [["n", "c", *spatial]], {"o": "sum"}, sizes="input_sizes")
    return _channels(equation, call.value("groups") == 1)


def convolution_weight(call: Call) -> Equation:
    """_convolution_backward_weight."""
    spatial = [None] * (len(call.shapes[0]) - 2)
    one, two = ("c", "o") if call.value("transposed") else ("o", "c")
    rows: list[list[Index]] = [["n", "o", *spatial], ["n", "c", *spatial]]
    equation = Equation(rows, [[one, two, *spatial]], {"n": "sum"}, sizes="weight_sizes")
    return _channels(equation, call.value("groups") == 1)


def _channels(equation: Equation, whole: bool) -> Equation:
    """Channels in groups are not cut; convolutions of no images, or no channels, are not either."""
    for rows in (equation.inputs, equation.outputs):
        for row in rows:
            row[:] = [i if whole or i not in ("c", "o") else None for i in row]
    equation.filled = {"n", "c", "o"}
    return equation


def _indexed_dims(call: Call) -> tuple[list[int], list[int]]:
    """The dimensions of `self` that have an index, and the broadcast shape of the indices."""
    indices = call.value("indices")
    dims = [d for d, index in enumerate(indices) if index is not None]
    shapes = [call.shapes[i] for i in call.slots("indices")]
    return dims, list(mica.broadcast_shapes(*shapes)) if shapes else []


def _index_rows(call: Call) -> tuple[list[list[Index]], list[Index], list[Index]] | None:
    """The indices of self, of the index tensors (all of one), and of what is read."""
    if any(call.kinds[i].dtype in (mica.bool, mica.uint8) for i in call.slots("indices")):
        return None
    dims, shape = _indexed_dims(call)
    ndim = len(call.shapes[0])
    own: list[Index] = [("index", d) for d in range(len(shape))]
    row = numbered(ndim, dims)
    adjacent = bool(dims) and dims == list(range(dims[0], dims[0] + len(dims)))
    rest = [i for d, i in enumerate(row) if d not in dims]
    at = dims[0] if adjacent else 0
    read = [*rest[:at], *own, *rest[at:]]
    rows = [broadcast(call.shapes[i], shape, own) for i in call.slots("indices")]
    return rows, row, read


def index(call: Call) -> Equation | None:
    """_index: dimensions without an index, and those of the indices."""
    found = _index_rows(call)
    if found is None:
        return None
    rows, row, read = found
    outs = len(call.places) - 1 - len(rows)
    linear = [frozenset({0})] if floating(call, [0]) and not outs else []
    return Equation([row, *rows, *[read] * outs], [read], linear=linear)


def index_put(call: Call) -> Equation | None:
    """_index_put: dimensions without an index; with `accumulate` also those of the indices, as sums."""
    found = _index_rows(call)
    values = call.slot("values")
    if found is None or values is None:
        return None
    rows, row, read = found
    at = call.slots("indices")
    dims, shape = _indexed_dims(call)
    sizes = iter(shape)
    to = [
        next(sizes) if isinstance(i, tuple) else call.shapes[0][i] if isinstance(i, int) else 1 for i in read
    ]
    given = call.shapes[values]
    if len(given) > len(to):
        return None
    by_slot: dict[int, list[Index]] = {0: row, values: broadcast(given, to, read), **dict(zip(at, rows))}
    equation = Equation([by_slot.get(i, row) for i in range(len(call.places))], [row])
    if call.value("accumulate") and floating(call, [0, values]) and len(given) == len(to):
        whole = all(size == t for size, t in zip(given, to))
        equation.sums = {i: "sum" for i in read if isinstance(i, tuple)} if whole else {}
        outs = {i for i in range(len(call.places)) if i not in by_slot}
        equation.added = {0} | outs
        equation.linear = [frozenset({0, values} | outs)]
    return equation


def attention(call: Call) -> Equation:
    """_flash_attention of [batch, heads, rows, width]: batches, heads, and rows of queries that see all keys."""
    query, key, mask = (call.slot(name) for name in ("query", "key", "mask"))
    assert query is not None and key is not None
    t = None if call.value("is_causal") else "t"
    rows: dict[str, list[Index]] = {"query": ["b", "h", t, None], "key": ["b", "h", None, None]}
    rows["value"] = rows["key"]
    if mask is not None:
        to = (*call.shapes[query][:3], call.shapes[key][2])
        rows["mask"] = broadcast(call.shapes[mask], to, ["b", "h", t, None])
    results: list[list[Index]] = [["b", t, "h", None], ["b", "h", t]]
    equation = Equation(_by_name(call, rows), results, filled={"b", "h", "t"})
    if call.shapes[query][1] != call.shapes[key][1]:  # heads of queries share those of keys
        equation.even = {"h"}
    return equation


def nll_loss(call: Call) -> Equation | None:
    """nll_loss_forward, its losses apart or summed; the mean is made of the sum (see decomposed)."""
    reduction = call.value("reduction")
    if reduction == _MEAN:
        return None
    rows = _loss_rows(call)
    if rows is None:
        return None
    sums = dict.fromkeys((i for i in rows["target"] if i is not None), "sum")
    losses = [] if reduction == _SUM else rows["target"]
    return Equation(_by_name(call, rows), [losses, []], sums)


def nll_loss_backward(call: Call) -> Equation | None:
    """nll_loss_backward."""
    rows = _loss_rows(call)
    if rows is None or call.value("reduction") == _MEAN:
        return None
    rows["grad_output"] = [] if call.value("reduction") == _SUM else rows["target"]
    return Equation(_by_name(call, rows), [rows["self"]])


def _loss_rows(call: Call) -> dict[str, list[Index]] | None:
    """Of (N, C, d1, ...) scores and (N, d1, ...) classes."""
    self_slot, target = call.slot("self"), call.slot("target")
    assert self_slot is not None and target is not None
    ndim = len(call.shapes[self_slot])
    if ndim < 2:
        return {
            "self": [None] * ndim,
            "target": [None] * len(call.shapes[target]),
            "weight": [None],
            "total_weight": [],
        }
    row = numbered(ndim, [1])
    return {"self": row, "target": [row[0], *row[2:]], "weight": [None], "total_weight": []}


def _by_name(call: Call, rows: dict[str, list[Index]]) -> list[list[Index]]:
    return [rows[call.names[place.argument]] for place in call.places]


def resampled(call: Call) -> Equation | None:
    """_resample: the dimensions in front of those that have indices."""
    if not isinstance(call.value("indices"), (list, tuple)):
        return None
    count = len(call.value("indices"))
    leading = len(call.made[0]) - count
    row = numbered(len(call.made[0]), range(leading, len(call.made[0])))
    rows: list[list[Index]] = [
        row if place.item is None else [None] * len(s) for place, s in zip(call.places, call.shapes)
    ]
    linear = [frozenset({0})] if floating(call, [0]) and len(call.places) == 1 + 2 * count else []
    return Equation(rows, [row], linear=linear, sizes="sizes" if "sizes" in call.names else None)


def unfolded(call: Call) -> Equation | None:
    """unfold_backward: all dimensions but the one that windows slide along."""
    ndim = len(call.made[0])
    dims = call.dims("dim", ndim)
    if not ndim or dims is None:
        return None
    row = numbered(ndim, dims)
    return Equation([[*row, None], *[row] * (len(call.places) - 1)], [row], sizes="input_sizes")


def searched(call: Call) -> Equation | None:
    """searchsorted: values are apart; with a row of edges for each, rows are."""
    edges, values = call.slot("sorted_sequence"), call.slot("self")
    if edges is None or values is None:
        return None
    ndim = len(call.shapes[values])
    row = numbered(ndim, [] if len(call.shapes[edges]) == 1 else [ndim - 1])
    rows = [
        row
        if i == values or place.argument > call.names.index("sorter")
        else row[:-1] + [None]
        if len(shape) > 1
        else [None]
        for i, (place, shape) in enumerate(zip(call.places, call.shapes))
    ]
    return Equation(rows, [row])


def images(call: Call) -> Equation | None:
    """Windows over images; images alone where channels are among the columns (col2im)."""
    ranks = {len(shape) for shape in [*call.shapes, *call.made]}
    if len(ranks) == 1:
        return window(call)
    if ranks != {3, 4}:
        return None
    return Equation(
        [["n", *[None] * (len(s) - 1)] for s in call.shapes], [["n", None, None, None] for _ in call.made]
    )


def rows(call: Call) -> Equation | None:
    """Of each row apart, of matrices."""
    if any(len(shape) != 2 for shape in call.shapes):
        return None
    return Equation(
        [["row", None] for _ in call.shapes], [["row", *[None] * (len(s) - 1)] for s in call.made]
    )


# Composites whose parts would not know where the result lies, or would join dimensions that are cut.
WHOLE_COMPOSITES: dict[str, Rule] = {
    "mica::clone": copied,
    "mica::empty_like": copied,
    "mica::_flash_attention": attention,
}
# Operators whose class says less than their word.
_SILENT = ("Index", "IndexPut", "EmbeddingBackward", "UnfoldBackward")


def class_is_silent(func: OpOverload) -> bool:
    """Whether the entry's word says more than its class."""
    return named_rule(func) in _SILENT


BY_NAME: dict[str, Rule] = {
    "Along": along,
    "Convolution": convolution,
    "ConvolutionBackwardInput": convolution_input,
    "ConvolutionBackwardWeight": convolution_weight,
    "EmbeddingBackward": embedding_backward,
    "Folded": resampled,
    "Images": images,
    "Index": index,
    "IndexPut": index_put,
    "LdlSolve": core,
    "NllLoss": nll_loss,
    "NllLossBackward": nll_loss_backward,
    "Pointwise": written_over,
    "Sorted": searched,
    "Trailing": rows,
    "UnfoldBackward": unfolded,
}


def decomposed(func: OpOverload, values: list[Any]) -> Any:
    """What other operators make of a call, where its own has no rule; NotImplemented of other calls.

    The mean of a loss is its sum divided by the total weight; as_strided are slices.
    """
    if func._opname == "as_strided":
        return strided(values[0], values[1], values[2], values[3])
    if func._opname == "_reshape_alias":
        return values[0].view(values[1])
    rule = named_rule(func)
    if rule == "NllLoss" and values[3] == _MEAN and func._operator.functional == func.name():
        summed, total = func(*values[:3], _SUM, *values[4:])
        return summed / total, total
    if rule == "NllLossBackward" and values[4] == _MEAN and func._operator.functional == func.name():
        grad, *rest = values
        return func(grad / values[6], *rest[:3], _SUM, *rest[4:])
    return NotImplemented
