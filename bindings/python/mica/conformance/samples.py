"""Sample inputs of the operators, as data: what every test of all operators runs.

`SAMPLES` maps an overload of native_functions.yaml ("sum.dim_IntList") to calls.
A call is `args(...)` whose tensors are described, not made: `T` is a tensor of the
dtype and layout of the run, `I` one of int64 and `B` one of bool. `pointwise`
makes the calls of pointwise operators from their schema; `DOMAIN` keeps their
numbers where the operator is defined and smooth. An overload that has no samples
stands in `UNSAMPLED` with the reason.
"""

from __future__ import annotations

from typing import Any

from mica.conformance import samples_linalg, samples_nn
from mica.conformance.sample_calls import CUBE, NONE, S0, Call as Call, T as T, V, X, args, b, i, pos, t
from mica.conformance.samples_numeric import (
    COPIED,
    INPLACE_ONLY,
    INTERNAL,
    SPECIAL_DOMAIN,
    STATISTICS,
    copies,
)

# Where pointwise operators are defined: bounds of each tensor argument.
DOMAIN: dict[str, tuple[float, float]] = {
    "log": (0.2, 3),
    "log2": (0.2, 3),
    "log10": (0.2, 3),
    "log1p": (-0.8, 3),
    "sqrt": (0.2, 3),
    "rsqrt": (0.2, 3),
    "asin": (-0.9, 0.9),
    "acos": (-0.9, 0.9),
    "atanh": (-0.9, 0.9),
    "acosh": (1.2, 3),
    "erfinv": (-0.9, 0.9),
    "lgamma": (0.3, 4),
    "digamma": (0.3, 4),
    "reciprocal": (0.3, 3),
    "logit": (0.1, 0.9),
    "xlogy": (0.3, 3),
    "bitwise_left_shift": (0, 3),
    "bitwise_right_shift": (0, 3),
    "pow": (0.3, 2.4),
    "float_power": (0.3, 2),
    "div": (0.3, 3),
    "addcdiv": (0.5, 3),
    "floor_divide": (1.1, 5),
    "remainder": (1.1, 5),
    "fmod": (1.1, 5),
    "hypot": (0.3, 2),
    "atan2": (0.3, 2),
    "gcd": (-12, 12),
    "lcm": (-12, 12),
    "tan": (-1, 1),
    "hardshrink": (-2, 2),
    "logaddexp": (-3, 3),
    **dict.fromkeys(  # whose running means of squares are no less than zero
        ("_adam_step", "_amsgrad_step", "_nadam_step", "_adamax_step", "_adagrad_step", "_adadelta_step"),
        (0.1, 2),
    ),
    **dict.fromkeys(("_rmsprop_scale", "_rmsprop_scale_centered"), (0.1, 2)),
    "nextafter": (-2, 2),
}
# Scalars of pointwise operators, by argument name; 2 otherwise.
SCALARS: dict[str, Any] = {
    "alpha": 2,
    "value": 3,
    "weight": 0.25,
    "min": -1,
    "max": 1,
    "min_val": -1,
    "max_val": 1,
    "negative_slope": 0.1,
    "lambd": 0.5,
    "threshold": 0,
    "scale": 1,
    "input_scale": 1,
    "is_result": False,
    "self_is_result": False,
    "beta": 1,
    "eps": 1e-6,
    "exponent": 2,
    "lr": -0.5,  # uphill, so that the steps of optimizers subtract nothing near
    "grad_lr": -0.5,
    "rate1": 0.25,
    "mu": 0.5,
}

SHAPES = [
    ((3, 4), (3, 4), (3, 4), (3, 4)),
    ((2, 3, 4), (3, 1), (4,), (3, 4)),
    ((), (3,), (3,), ()),
    ((0, 3), (1, 3), (0, 3), (1, 1)),
    ((), (), (), ()),
]


def pointwise(base: str, schema_args: list[tuple[str, str, bool]]) -> list[Call]:
    """Calls of a pointwise operator from (type, name, keyword-only) of its arguments."""
    low, high = DOMAIN.get(base, (-2, 2))
    calls = []
    for shapes in SHAPES:
        positional: list[Any] = []
        keyword: dict[str, Any] = {}
        tensors = 0
        for kind, name, keyword_only in schema_args:
            if kind == "Tensor":
                shape = shapes[min(tensors, len(shapes) - 1)]
                value: Any = b(*shape) if name in ("condition", "mask") else T(shape, low, high)
                tensors += 1
            elif kind.rstrip("?") in ("Scalar", "float", "int", "bool"):
                value = SCALARS.get(name, True if kind == "bool" else 2)
            else:
                return []
            if keyword_only:
                keyword[name] = value
            else:
                positional.append(value)
        calls.append(Call(tuple(positional), keyword))
    return calls


def _reduction(*extra: Call, keep: bool = True) -> list[Call]:
    calls = [args(X, 1), args(CUBE, -2), args(t(3, 1), 0), args(t(5), 0)]
    if keep:
        calls.append(args(CUBE, 1, True))
    return calls + list(extra)


_FULL = [args(X), args(CUBE), args(S0), args(t(1, 1))]
_DIMS = [
    args(CUBE, [0, 2]),
    args(CUBE, [1], True),
    args(X, []),
    args(CUBE, None),
    args(S0, [0]),
    args(t(0, 3), [0]),
]
_SCAN = [args(X, 0), args(CUBE, 1), args(S0, 0), args(NONE, 0), args(t(300), 0)]
_NORM_X = t(2, 3, 4)

SAMPLES: dict[str, list[Call]] = {
    # pointwise with special arguments, and composites of them
    "add.Tensor": [
        args(X, X),
        args(X, V, alpha=2),
        args(CUBE, t(3, 1)),
        args(X, S0),
        args(NONE, t(1, 3)),
        args(X, t(3, 4, dtype="float32")),
    ],
    "add.Scalar": [args(X, 2), args(X, 2.5), args(X, True), args(S0, 1)],
    "div.Tensor_mode": [args(X, pos(3, 4), rounding_mode=m) for m in (None, "trunc", "floor")],
    "div.Scalar_mode": [args(X, 2, rounding_mode=m) for m in (None, "trunc", "floor")],
    "positive": [args(X)],
    "remainder.Scalar_Tensor": [args(7, t(3, 4, low=1.2, high=5))],
    "pow.Scalar": [args(2, X), args(2.5, pos(4)), args(1, X)],
    "pow.Tensor_Scalar": [args(pos(3, 4), p) for p in (2, 3, 0.5, -1, 0, 2.5, -2)],
    "clamp": [args(X, -1, 1), args(X, None, 0.5), args(X, min=0), args(NONE, 0, 1)],
    "clamp.Tensor": [args(X, t(4, low=-1, high=0), t(3, 4, low=0.1, high=1)), args(X, None, t(4))],
    "ldexp.Tensor": [args(X, t(3, 4, low=-3, high=3))],
    "isclose": [args(X, X), args(X, V), args(X, X, 0.1, 0.5, True)],
    "allclose": [args(X, X), args(X, V)],
    "round.decimals": [args(t(3, 4, low=-99, high=99), decimals=d) for d in (1, -1, 0)],
    "nan_to_num": [args(X), args(X, 1.0, 2.0, -2.0)],
    "logit": [args(t(3, 4, low=0.1, high=0.9)), args(t(3, 4, low=-0.2, high=1.2), 0.2)],
    "conj": [args(X)],
    "conj_physical": [args(X), args(S0)],
    "angle": [args(X), args(S0)],
    "real": [args(X)],
    "imag": [args(t(3, 4, dtype="complex64"))],
    "complex": [args(X, X), args(X, V)],
    "polar": [args(pos(3, 4), X)],
    "where.self": [args(b(3, 4), X, X), args(b(4), X, V), args(b(3, 1), S0, X), args(b(0, 3), NONE, NONE)],
    "where.ScalarSelf": [args(b(3, 4), 1.5, X), args(b(4), 2, X)],
    "where.ScalarOther": [args(b(3, 4), X, 1.5), args(b(4), X, 2)],
    "where.Scalar": [args(b(3, 4), 1.5, 2), args(b(4), 2, 3), args(b(4), True, False)],
    "where": [args(b(3, 4)), args(t(3, 4, low=0))],
    "masked_fill.Scalar": [args(X, b(3, 4), 2), args(CUBE, b(4), -1.5), args(S0, b(2), 1)],
    "masked_fill.Tensor": [args(X, b(3, 4), S0)],
    "fill.Scalar": [args(X, 3), args(S0, 2.5)],
    "fill.Tensor": [args(X, S0)],
    "zero": [args(X)],
    # reductions
    "sum": [*_FULL, args(NONE), args(X, dtype="float64")],
    "sum.dim_IntList": [*_DIMS, args(X, [-1], dtype="float64"), args(t(40, 50), [0]), args(t(40, 50), [1])],
    "mean": [*_FULL, args(X, dtype="float64")],
    "mean.dim": [args(CUBE, [0, 2]), args(CUBE, [1], True), args(CUBE, None), args(t(40, 50), [0])],
    "prod": [*_FULL, args(NONE), args(t(3, 4, low=0))],
    "prod.dim_int": [*_reduction(), args(NONE, 0)],
    "amax": [args(CUBE, [0, 2]), args(CUBE, [1], True), args(X, []), args(S0, [0])],
    "amin": [args(CUBE, [0, 2]), args(CUBE, [1], True), args(X, []), args(S0, [0])],
    "max": _FULL,
    "min": _FULL,
    "median": _FULL,
    "max.dim": _reduction(args(S0, 0)),
    "min.dim": _reduction(args(S0, 0)),
    "median.dim": _reduction(args(S0, 0)),
    "max.other": [args(X, X), args(X, V)],
    "min.other": [args(X, X), args(X, V)],
    "argmax": [args(X), args(X, 1), args(CUBE, -1, True), args(S0), args(S0, 0)],
    "argmin": [args(X), args(X, 1), args(CUBE, -1, True), args(S0), args(S0, 0)],
    "aminmax": [args(X), args(X, dim=1), args(CUBE, dim=0, keepdim=True)],
    "any": [*_FULL, args(NONE)],
    "all": [*_FULL, args(NONE)],
    "any.dim": _reduction(args(NONE, 0)),
    "all.dim": _reduction(args(NONE, 0)),
    "any.dims": [args(CUBE, [0, 1]), args(CUBE, None)],
    "all.dims": [args(CUBE, [0, 1]), args(CUBE, None)],
    "count_nonzero.dim_IntList": [args(t(3, 4, low=0), [0]), args(t(2, 3, 4, low=0), [0, 2])],
    "count_nonzero": [args(t(3, 4, low=0)), args(t(3, 4, low=0), 1)],
    "var": [args(X), args(X, False)],
    "std": [args(X), args(X, False)],
    "var.dim": [args(CUBE, [0, 2]), args(CUBE, [1], False, True)],
    "std.dim": [args(CUBE, [0, 2]), args(CUBE, [1], False, True)],
    "var.correction": [args(X), args(X, [1], correction=0), args(CUBE, [0], correction=1, keepdim=True)],
    "std.correction": [args(X), args(X, [1], correction=0), args(CUBE, [0], correction=1, keepdim=True)],
    "var_mean.correction": [args(X), args(X, [1], correction=0)],
    "std_mean.correction": [args(X), args(X, [1], correction=0)],
    "var_mean.dim": [args(CUBE, [1])],
    "std_mean.dim": [args(CUBE, [1])],
    "var_mean": [args(X)],
    "std_mean": [args(X)],
    "logsumexp": [args(X, [1]), args(CUBE, [0, 2], True), args(S0, [0])],
    "linalg_vector_norm": [
        args(X),
        args(X, 1),
        args(X, 3, [1]),
        args(CUBE, 2, [0], True),
        args(X, float("inf")),
        args(X, -float("inf"), [0]),
        args(X, 0),
    ],
    "norm.Scalar": [args(X), args(X, 1)],
    "norm.ScalarOpt_dim": [args(X, 2, [1]), args(X, None, [0], True)],
    "norm.ScalarOpt_dtype": [args(t(3, 4, dtype="float32"), 2, dtype="float64")],
    "norm.ScalarOpt_dim_dtype": [args(t(3, 4, dtype="float32"), 2, [1], False, dtype="float64")],
    "nansum": [args(X), args(X, [0])],
    "dist": [args(X, V), args(X, X, 1)],
    "cumsum": _SCAN,
    "cumprod": [args(X, 0), args(CUBE, 1), args(S0, 0), args(NONE, 0), args(t(3, 4, low=0), 1)],
    "cummax": _SCAN,
    "cummin": _SCAN,
    "logcumsumexp": _SCAN,
    "diff": [args(X), args(X, 2), args(X, 1, 0), args(V, 1, 0, t(1), t(2))],
    # rows
    "softmax.int": [
        args(X, 1),
        args(CUBE, 1),
        args(S0, 0),
        args(NONE, 1),
        args(t(3, 4, dtype="float32"), 0, "float64"),
    ],
    "log_softmax.int": [
        args(X, 1),
        args(CUBE, 1),
        args(S0, 0),
        args(NONE, 1),
        args(t(3, 4, dtype="float32"), 0, "float64"),
    ],
    "_softmax": [args(X, 1, False)],
    "_log_softmax": [args(X, 1, False)],
    "_softmax_backward_data": [args(X, X, 1, "float32")],
    "_log_softmax_backward_data": [args(X, X, 1, "float32")],
    # views and shapes
    "view": [args(X, [12]), args(X, [2, -1]), args(X, [1, 3, 4])],
    "view.dtype": [
        args(t(3, 4, dtype="float32"), "int32"),
        args(t(3, 4, dtype="float32"), "float64"),
        args(t(3, 4, dtype="float64"), "int16"),
    ],
    "reshape": [args(X, [12]), args(X, [2, -1]), args(S0, [1]), args(NONE, [3, 0])],
    "view_as": [args(X, t(12))],
    "reshape_as": [args(X, t(12))],
    "transpose.int": [args(X, 0, 1), args(CUBE, -1, 0), args(S0, 0, -1)],
    "t": [args(X), args(V), args(S0)],
    "swapaxes": [args(X, 0, 1)],
    "swapdims": [args(CUBE, 0, 2)],
    "permute": [args(CUBE, [2, 0, 1]), args(X, [-1, 0])],
    "movedim.intlist": [args(CUBE, [0, 1], [1, 2])],
    "movedim.int": [args(CUBE, 0, 2)],
    "moveaxis.int": [args(CUBE, 0, -1)],
    "moveaxis.intlist": [args(CUBE, [0, 1], [1, 2])],
    "adjoint": [args(X), args(CUBE)],
    "expand": [args(V, [3, 4]), args(t(3, 1), [2, 3, 4]), args(t(3, 1), [-1, 4]), args(S0, [2])],
    "expand_as": [args(V, X)],
    "broadcast_to": [args(V, [3, 4])],
    "broadcast_tensors": [args([X, V, S0])],
    "squeeze": [args(t(1, 3, 1)), args(X)],
    "squeeze.dim": [args(t(1, 3, 1), 0), args(X, 0), args(S0, 0)],
    "squeeze.dims": [args(t(1, 3, 1), [0, 2])],
    "unsqueeze": [args(X, 0), args(X, -1), args(S0, 0)],
    "select.int": [args(X, 0, 1), args(CUBE, -1, -2)],
    "slice.Tensor": [
        args(X, 0, 1, None),
        args(X, 1, 0, 4, 2),
        args(X, 1, -3, -1),
        args(X, 0, 5, 9),
        args(X, 0, 2, 1),
    ],
    "narrow": [args(X, 1, 1, 2)],
    "narrow.Tensor": [args(X, 1, i(low=1, high=2), 2)],
    "unfold": [args(t(7), 0, 3, 2), args(X, 1, 2, 1)],
    "diagonal": [args(X), args(CUBE, 1, 1, 2), args(X, -1), args(X, 9)],
    "diag": [args(X), args(V, 1)],
    "diag_embed": [args(V), args(X, 1), args(X, 0, 0, 2)],
    "as_strided": [args(t(12), [3, 2], [4, 1]), args(t(12), [3, 2], [1, 0], 1)],
    "split.Tensor": [args(X, 2, 1), args(X, 2, 0)],
    "split_with_sizes": [args(X, [1, 3], 1)],
    "split.sizes": [args(X, [1, 2], 0)],
    "chunk": [args(X, 2, 1), args(t(5), 3)],
    "tensor_split.sections": [args(t(5), 3)],
    "tensor_split.tensor_indices_or_sections": [
        args(t(5), i(low=3, high=4)),
        args(t(5), i(2, low=1, high=4)),
    ],
    "tensor_split.indices": [args(t(5), [1, 3]), args(CUBE, [-2, 1], 1), args(X, [], 1)],
    "unbind.int": [args(X), args(X, 1)],
    "view_as_real": [args(t(3, 4, dtype="complex64"))],
    "view_as_complex": [args(t(3, 2))],
    "_reshape_alias": [args(t(1), [1, 1], [1, 1])],
    "slice_backward": [args(t(2, 4), [3, 4], 0, 1, 3, 1), args(t(3, 2), [3, 4], 1, 0, 4, 2)],
    "alias": [args(X)],
    "detach": [args(X)],
    "flatten.using_ints": [args(CUBE), args(CUBE, 1), args(S0)],
    "unflatten.int": [args(X, 1, [2, -1])],
    "ravel": [args(X)],
    "atleast_1d": [args(S0), args(X)],
    # joining, moving, indexing
    "cat": [
        args([X, X]),
        args([X, t(3, 2), X], 1),
        args([NONE, t(2, 3)]),
        args([X, t(3, 4, dtype="float32")], -1),
    ],
    "concat": [args([X, X], 1)],
    "stack": [args([X, X]), args([X, X], -1), args([S0, S0])],
    "hstack": [args([X, X]), args([V, V])],
    "vstack": [args([X, V])],
    "block_diag": [args([X, V, S0])],
    "repeat": [args(X, [2, 1]), args(V, [2, 3, 1])],
    "tile": [args(X, [2])],
    "repeat_interleave.self_int": [args(X, 2), args(X, 2, 1)],
    "meshgrid": [args([V, t(3)])],
    "meshgrid.indexing": [args([V, t(3)], indexing="xy"), args([V, t(3)], indexing="ij")],
    "flip": [args(X, [0]), args(CUBE, [0, -1])],
    "fliplr": [args(X)],
    "flipud": [args(X)],
    "roll": [args(X, [1], [1]), args(CUBE, [1, -2], [0, 2]), args(X, [3])],
    "rot90": [args(X), args(X, 2), args(X, -1, [1, 0])],
    "tril": [args(X), args(CUBE, 1), args(X, -1)],
    "triu": [args(X), args(CUBE, 1), args(X, -1)],
    "constant_pad_nd": [args(X, [1, 2], 3), args(CUBE, [0, 1, -1, 2], 1.5), args(X, [-1, -1])],
    "_reflection_pad": [args(X, [1, 2]), args(CUBE, [1, 0, -1, 1])],
    "_replication_pad": [args(X, [1, 2]), args(CUBE, [3, 0, -1, 1])],
    "_circular_pad": [args(X, [1, 2]), args(CUBE, [2, 0, 1, 1])],
    "_pad_backward": [args(X, [1, 1], m) for m in (0, 1, 2)],
    "pad": [
        args(X, [1, 2]),
        args(CUBE, [1, 1], "reflect"),
        args(CUBE, [1, 1], "replicate"),
        args(CUBE, [1, 1], "circular"),
        args(X, [1, 2], "constant", 2.0),
    ],
    "gather": [args(X, 1, i(3, 2, high=4)), args(X, 0, i(2, 4, high=3)), args(S0, 0, i(high=1))],
    "index_select": [args(X, 0, i(5, high=3)), args(X, 1, i(2, high=4)), args(S0, 0, i(1, high=1))],
    "take_along_dim": [args(X, i(3, 1, high=4), 1), args(X, i(5, high=12))],
    "take": [args(X, i(2, 3, high=12))],
    "index.Tensor": [
        args(X, [i(5, high=3)]),
        args(X, [None, i(2, 2, high=4)]),
        args(CUBE, [i(3, high=2), None, i(3, high=4)]),
        args(X, [b(3, 4)]),
        args(CUBE, [i(2, 1, high=2), i(3, high=3)]),
    ],
    "scatter.src": [args(X, 1, i(3, 1, high=4), X)],
    "scatter.value": [args(X, 1, i(3, 1, high=4), 2)],
    "scatter.reduce": [args(X, 1, i(3, 4, high=4), X, reduce=r) for r in ("add", "multiply")],
    "scatter.value_reduce": [args(X, 1, i(3, 4, high=4), 2, reduce=r) for r in ("add", "multiply")],
    "scatter_add": [args(X, 1, i(3, 4, high=4), X), args(S0, 0, i(high=1), S0)],
    "scatter_reduce.two": [
        args(X, 1, i(3, 4, high=4), X, r, include_self=s)
        for r in ("sum", "prod", "mean", "amax", "amin")
        for s in (True, False)
    ],
    "index_add": [args(X, 0, i(2, high=3), t(2, 4)), args(X, 1, i(3, high=4), t(3, 3), alpha=2)],
    "index_copy": [args(X, 0, i(1, high=3), t(1, 4))],
    "index_fill.int_Scalar": [args(X, 1, i(2, high=4), 2)],
    "index_fill.int_Tensor": [args(X, 1, i(2, high=4), S0), args(S0, 0, i(high=1), S0)],
    "index_put": [
        args(X, [i(2, high=3)], V),
        args(X, [i(2, high=3), i(2, high=4)], S0, True),
        args(X, [b(3, 4)], S0),
    ],
    "masked_select": [args(X, b(3, 4)), args(X, b(4)), args(S0, b())],
    "masked_scatter": [args(X, b(3, 4), t(12))],
    "nonzero": [args(t(3, 4, low=0)), args(S0), args(NONE)],
    "argwhere": [args(t(3, 4, low=0))],
    "nonzero_numpy": [args(t(3, 4, low=0))],
    "sort.stable": [args(X, stable=True), args(CUBE, stable=True, dim=1, descending=True)],
    "sort": [args(X), args(X, 0, True), args(S0), args(NONE)],
    "argsort": [args(X), args(X, 0, True)],
    "argsort.stable": [args(X, stable=True)],
    "topk": [
        args(t(3, 40, low=-9, high=9, dtype="float32"), 3),
        args(t(7, 30, dtype="float64"), 2, 0, False),
    ],
    "kthvalue": [args(t(3, 9, dtype="float64"), 2), args(t(3, 9, dtype="float64"), 2, 0, True)],
    "searchsorted.Tensor": [
        args(t(6, low=1, high=1.5), X),
        args(t(6, low=1, high=1.5), X, right=True),
        args(t(6, low=1, high=1.5), X, out_int32=True, side="right"),
    ],
    "searchsorted.Scalar": [args(t(6, low=1, high=1.5), 1.25), args(t(6, low=1, high=1.5), 1.25, right=True)],
    "bincount": [args(i(9, high=5)), args(i(9, high=5), t(9), 8)],
    "_unique2": [args(t(20, low=0, high=5), True, True, True), args(X)],
    "isin.Tensor_Scalar": [args(t(3, 4, high=6, low=0), 2), args(X, 1, invert=True)],
    "isin.Scalar_Tensor": [args(2, t(3, 4, high=6, low=0)), args(1, X, invert=True)],
    "isin.Tensor_Tensor": [args(t(3, 4, high=6, low=0), t(3, low=0, high=6)), args(X, V, invert=True)],
    "one_hot": [args(i(2, 3, high=4)), args(i(5, high=3), 6)],
    # contractions
    "mm": [args(X, t(4, 5)), args(NONE, t(3, 2)), args(t(2, 0), t(0, 3)), args(t(33, 65), t(65, 17))],
    "bmm": [args(CUBE, t(2, 4, 5)), args(t(0, 2, 3), t(0, 3, 2))],
    "mv": [args(X, V)],
    "dot": [args(V, V), args(t(0), t(0))],
    "vdot": [args(V, V)],
    "addmm": [
        args(t(3, 5), X, t(4, 5)),
        args(t(5), X, t(4, 5), beta=2, alpha=3),
        args(t(5), X, t(4, 5), beta=0),
    ],
    "baddbmm": [args(t(2, 3, 5), CUBE, t(2, 4, 5)), args(t(5), CUBE, t(2, 4, 5), beta=2, alpha=3)],
    "addmv": [args(t(3), X, V, beta=2, alpha=3)],
    "addbmm": [args(t(3, 5), CUBE, t(2, 4, 5))],
    "addr": [args(X, t(3), V, beta=2, alpha=3)],
    "outer": [args(t(3), V)],
    "ger": [args(t(3), V)],
    "inner": [args(X, t(2, 4)), args(V, V)],
    "matmul": [
        args(X, t(4, 5)),
        args(V, t(4, 5)),
        args(X, V),
        args(V, V),
        args(CUBE, t(4, 5)),
        args(t(2, 1, 3, 4), t(5, 4, 2)),
        args(CUBE, V),
    ],
    "linear": [args(X, t(5, 4)), args(CUBE, t(5, 4), t(5)), args(V, t(5, 4))],
    "einsum": [
        args("ij,jk->ik", [X, t(4, 5)]),
        args("ij->j", [X]),
        args("bij,bjk->bik", [CUBE, t(2, 4, 5)]),
        args("ii", [t(3, 3)]),
        args("i,j->ij", [V, V]),
        args("...ij->...ji", [CUBE]),
    ],
    "tensordot": [args(CUBE, t(4, 3, 5), [2, 1], [0, 1])],
    "trace": [args(X)],
    "cross": [args(t(4, 3), t(4, 3))],
    "linalg_cross": [args(t(3, 4), t(3, 4), dim=0)],
    "kron": [args(X, t(2, 2))],
    "linalg_solve_triangular": [args(pos(3, 3), X, upper=u, left=True) for u in (True, False)]
    + [args(pos(4, 4), X, upper=True, left=False), args(pos(3, 3), X, upper=True, unitriangular=True)],
    # convolution and pooling
    "convolution": [
        args(t(2, 4, 7), t(6, 2, 3), t(6), [2], [1], [1], False, [0], 2),
        args(t(1, 2, 5, 6), t(3, 2, 2, 3), None, [1, 2], [1, 0], [2, 1], False, [0, 0], 1),
        args(t(2, 4, 5), t(4, 3, 3), t(6), [2], [1], [1], True, [1], 2),
        args(t(1, 2, 3, 3), t(2, 2, 2, 2), None, [2, 2], [0, 0], [1, 1], True, [0, 1], 1),
        args(t(1, 2, 3, 4, 4), t(2, 2, 2, 2, 2), t(2), [1, 1, 1], [0, 1, 0], [1, 1, 1], False, [0, 0, 0], 1),
    ],
    "conv_tbc": [args(t(7, 2, 4), t(3, 4, 6), t(6), 1), args(t(5, 1, 2), t(2, 2, 3), t(3))],
    "conv1d": [args(t(2, 4, 7), t(6, 2, 3), t(6), [2], [1], [1], 2), args(t(4, 7), t(6, 4, 3))],
    "conv1d.padding": [args(t(2, 4, 7), t(6, 4, 3), None, [1], p) for p in ("same", "valid")],
    "conv2d": [args(t(2, 4, 7, 7), t(6, 2, 3, 3), t(6), [2], [1], [1], 2), args(t(4, 7, 6), t(6, 4, 3, 2))],
    "conv2d.padding": [args(t(2, 4, 7, 7), t(6, 4, 3, 2), None, [1], p) for p in ("same", "valid")],
    "conv3d": [args(t(2, 2, 4, 4, 4), t(3, 2, 2, 2, 2), t(3))],
    "conv3d.padding": [args(t(1, 2, 4, 4, 4), t(3, 2, 3, 3, 3), None, [1], "same")],
    "conv_transpose1d": [args(t(2, 4, 5), t(4, 3, 3), t(3), [2], [1], [1])],
    "conv_transpose2d.input": [args(t(2, 4, 5, 5), t(4, 3, 3, 2), t(6), [2, 1], [1], [1, 0], 2)],
    "conv_transpose3d.input": [args(t(1, 2, 3, 3, 3), t(2, 3, 2, 2, 2))],
    "max_pool2d_with_indices": [
        args(t(2, 3, 6, 7), [2, 3]),
        args(t(3, 6, 7), [3, 3], [2, 2], [1, 1], [1, 1], True),
        args(t(1, 2, 7, 7), [2, 2], [1, 1], [0, 0], [2, 2]),
    ],
    "max_pool2d": [args(t(2, 3, 6, 7), [2, 3])],
    "max_pool1d_with_indices": [args(t(2, 3, 7), [2])],
    "max_pool1d": [args(t(2, 3, 7), [2]), args(t(3, 7), [3], [1], [1])],
    "avg_pool2d": [
        args(t(2, 3, 6, 7), [2, 3]),
        args(t(3, 6, 7), [3, 3], [2, 2], [1, 1], True, False),
        args(t(1, 2, 7, 7), [2, 2], [1, 1], [1, 1], True, True, 3),
    ],
    "avg_pool1d": [args(t(2, 3, 7), [2]), args(t(3, 7), [3], [2], [1], True, False)],
    "_adaptive_avg_pool2d": [args(t(2, 3, 5, 7), [2, 3])],
    "adaptive_avg_pool2d": [args(t(2, 3, 5, 7), [2, 3]), args(t(3, 5, 7), [1, 1])],
    "adaptive_avg_pool1d": [args(t(2, 3, 7), [3])],
    "adaptive_max_pool2d": [args(t(2, 3, 5, 7), [2, 3])],
    "im2col": [args(t(2, 3, 5, 6), [2, 3], [1, 1], [1, 0], [2, 1])],
    "col2im": [args(t(2, 12, 30), [6, 7], [2, 2], [1, 1], [0, 0], [1, 1])],
    "pixel_shuffle": [args(t(2, 8, 3, 3), 2)],
    # activations, normalisation, losses
    "relu": [args(X), args(S0)],
    "relu6": [args(t(3, 4, low=-3, high=9))],
    "gelu": [args(X), args(X, approximate="tanh")],
    "gelu_backward": [args(X, X), args(X, X, approximate="tanh")],
    "selu": [args(X)],
    "celu": [args(X), args(X, 0.5)],
    "softmin": [args(X, 1)],
    "softsign": [args(X)],
    "tanhshrink": [args(X)],
    "glu": [args(X), args(t(4, 3), 0)],
    "softplus": [args(X), args(X, 2, 1)],
    "softplus_backward": [args(X, X, 2, 1)],
    "prelu": [args(X, t(1)), args(CUBE, t(3))],
    "native_layer_norm": [args(_NORM_X, [4], t(4), t(4), 1e-5), args(_NORM_X, [3, 4], None, None, 1e-5)],
    "layer_norm": [args(_NORM_X, [4], t(4), t(4)), args(_NORM_X, [3, 4])],
    "native_batch_norm": [
        args(_NORM_X, t(3), t(3), t(3, grad=False), t(3, low=0.5, grad=False), m, 0.1, 1e-5)
        for m in (False, True)
    ],
    "batch_norm": [
        args(_NORM_X, t(3), t(3), t(3, grad=False), t(3, low=0.5, grad=False), m, 0.1, 1e-5, False)
        for m in (False, True)
    ],
    "instance_norm": [args(_NORM_X, t(3), t(3), None, None, True, 0.1, 1e-5, False)],
    "group_norm": [args(t(2, 4, 3), 2, t(4), t(4)), args(t(2, 4, 3, 2), 4)],
    "rms_norm": [args(_NORM_X, [4], t(4)), args(_NORM_X, [4], None, 1e-3)],
    "embedding": [args(t(5, 3), i(2, 4, high=5)), args(t(5, 3), i(4, high=5), 1)],
    "_bag_rows": [args(t(5, 3), i(4, high=5))],
    "embedding_dense_backward": [
        args(t(2, 4, 3), i(2, 4, high=5), 5, -1, False),
        args(t(4, 3), i(4, high=5), 5, 2, True),
    ],
    "cosine_similarity": [args(X, X), args(CUBE, CUBE, 2)],
    "pairwise_distance": [args(X, X), args(X, X, 1.0, 1e-6, True)],
    "scaled_dot_product_attention": [
        args(t(2, 2, 5, 4), t(2, 2, 6, 4), t(2, 2, 6, 3)),
        args(t(1, 2, 5, 4), t(1, 2, 5, 4), t(1, 2, 5, 4), None, 0.0, True),
        args(t(1, 2, 5, 4), t(1, 2, 6, 4), t(1, 2, 6, 4), b(5, 6)),
        args(t(1, 2, 5, 4), t(1, 2, 6, 4), t(1, 2, 6, 4), t(5, 6), scale=0.3),
    ],
    **{
        name: [args(X, X, r) for r in (0, 1, 2)]
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
    },
    "binary_cross_entropy": [
        args(t(3, 4, low=0.1, high=0.9), t(3, 4, low=0.1, high=0.9, grad=False), None, r) for r in (0, 1, 2)
    ],
    "binary_cross_entropy_with_logits": [
        args(X, t(3, 4, low=0.1, high=0.9), None, None, r) for r in (0, 1, 2)
    ]
    + [args(X, t(3, 4, low=0.1, high=0.9), t(4, low=0.1, grad=False), t(4, low=0.1, grad=False))],
    "kl_div": [args(X, pos(3, 4), r) for r in (0, 1, 2)] + [args(X, X, 1, log_target=True)],
    "nll_loss_forward": [args(X, i(3, high=4), None, r, -100) for r in (0, 1, 2)]
    + [args(X, i(3, high=4), t(4, low=0.1, grad=False), 1, 1), args(V, i(high=4), None, 1, -100)],
    "nll_loss": [args(X, i(3, high=4)), args(X, i(3, high=4), t(4, low=0.1, grad=False), 2, 1)],
    "nll_loss_nd": [
        args(t(2, 3, 4), i(2, 4, high=3)),
        args(t(2, 3, 4, 2), i(2, 4, 2, high=3), t(3, low=0.1, grad=False), 0, 1),
    ],
    "cross_entropy_loss": [
        args(X, i(3, high=4)),
        args(X, X, None, 1),
        args(t(2, 3, 4), i(2, 4, high=3), t(3, low=0.1, grad=False), 0, 1, 0.0),
        args(X, i(3, high=4), None, 1, -100, 0.1),
    ],
    # factories, copies, questions
    "zeros_like": [args(X), args(X, dtype="int32")],
    "ones_like": [args(X)],
    "full_like": [args(X, 3), args(X, 2.5, dtype="float64")],
    "zeros": [args([2, 3]), args([0], dtype="int8")],
    "ones": [args([2, 3]), args([], dtype="bool")],
    "full": [args([2], 3), args([2], 2.5), args([2], True), args([2], 3, dtype="float64")],
    "new_zeros": [args(X, [2])],
    "new_ones": [args(X, [2], dtype="int64")],
    "new_full": [args(X, [2], 3)],
    "scalar_tensor": [args(3), args(2.5, dtype="float64")],
    "arange": [args(5), args(2.5), args(5, dtype="float64")],
    "arange.start": [args(2, 5), args(0.5, 3)],
    "arange.start_step": [args(0, 5, 2), args(5, 0, -2), args(0, 1, 0.1), args(1, 1, 1)],
    "linspace": [
        args(0, 1, 5),
        args(-2, 3, 1),
        args(0, 1, 0),
        args(0, 10, 7, dtype="float64"),
        args(0, 10, 4, dtype="int64"),
    ],
    "logspace": [args(0, 2, 5), args(0, 3, 4, 2.0)],
    "eye.m": [args(2, 3)],
    "eye": [args(3), args(0, dtype="int64")],
    "tril_indices": [args(3, 4), args(3, 4, 1)],
    "triu_indices": [args(3, 4), args(3, 4, -1)],
    "to.dtype": [args(X, d) for d in ("float64", "int32", "bool", "float16")],
    "to.other": [args(X, t(1, dtype="float64"))],
    "type_as": [args(X, t(1, dtype="float64"))],
    "clone": [args(X)],
    "contiguous": [args(X)],
    "item": [args(S0), args(t(1, 1))],
    "is_nonzero": [args(S0)],
    "equal": [args(X, X), args(X, V)],
    "is_same_size": [args(X, X), args(X, V)],
    "sum_to_size": [args(X, [1, 4]), args(CUBE, [3, 1])],
    "result_type.Tensor": [args(X, t(1, dtype="float32"))],
    "can_cast": [args("float64", "int32"), args("int32", "float32")],
    "promote_types": [args("uint8", "int8"), args("int64", "float16")],
    "is_complex": [args(X)],
    "is_floating_point": [args(X)],
    "numel": [args(X), args(NONE)],
    # Far enough from 0 and 1 that their difference from 1 is exact enough in every dtype.
    "_logit_clamped": [args(X, 0.2), args(T((3, 4), 0, 1), 0.1), args(NONE, 0.2)],
}

# Operators that subtract terms which nearly cancel: a result is as exact as its largest
# input allows, not as its own size does. The reason stands beside each.
CANCELS: dict[str, str] = {
    "addcmul": "a product is rounded before it is added",
    "addcdiv": "a quotient is rounded before it is added",
    "_addr": "a product is rounded before it is added",
    "lerp.Scalar": "a product is rounded before it is added",
    "lerp.Tensor": "a product is rounded before it is added",
    "tanhshrink": "x - tanh(x), both near x",
    "sinc": "pi x is rounded before its sine is taken",
    "affine_grid_generator": "coordinates are sums of products of either sign",
    "cdist": "the square of a small distance is a difference of large squares",
    "gru_cell": "a gate adds products of either sign",
    "polygamma": "a logarithm and a series cancel near digamma's root",
}

# Operators over matrices, which magnify what is rounded by the matrix's condition. How much is
# measured: their scale is how far the result moves when each input moves by one rounding.
CONDITIONED = frozenset(
    [
        "linalg_solve_triangular",
        "triangular_solve",
        "cholesky_solve",
        "cholesky_inverse",
        "linalg_inv_ex",
        "linalg_inv",
        "inverse",
        "linalg_solve_ex",
        "linalg_solve",
        "linalg_tensorinv",
        "linalg_tensorsolve",
        "linalg_matrix_power",
        "linalg_matrix_exp",
        "matrix_exp",
        "linalg_lu_factor_ex",
        "linalg_lu_factor",
        "linalg_pinv",
        "linalg_lstsq",
        "lu_solve",
        "linalg_lu_solve",
        "linalg_ldl_solve",
        "linalg_multi_dot",
    ]
)

# Calls that are refused, each with the same kind of exception on every device.
ERRORS: dict[str, list[Call]] = {
    "add.Tensor": [args(t(3), t(4)), args(t(2, 3), t(3, 2))],
    "sum.dim_IntList": [args(t(3, 4), [2]), args(t(3, 4), [0, 0])],
    "max.dim": [args(t(3, 4), 5), args(t(0, 3), 0)],
    "amax": [args(t(0, 3), [0])],
    "argmax": [args(t(0)), args(t(3), 4)],
    "max": [args(t(0))],
    "softmax.int": [args(t(3, 4), 3)],
    "cumsum": [args(t(3), 2)],
    "view": [args(t(3, 4), [5]), args(t(3, 4), [-1, -1]), args(t(3, 4), [-1, 5])],
    "reshape": [args(t(3, 4), [5])],
    "expand": [args(t(3, 4), [2, 4]), args(t(3, 4), [4])],
    "transpose.int": [args(t(3, 4), 0, 2)],
    "permute": [args(t(3, 4), [0]), args(t(3, 4), [0, 0])],
    "t": [args(t(2, 3, 4))],
    "squeeze.dim": [args(t(3, 4), 4)],
    "unsqueeze": [args(t(3), 3)],
    "select.int": [args(t(3, 4), 0, 3), args(t(), 0, 0)],
    "slice.Tensor": [args(t(3), 0, 0, 3, 0), args(t(3), 0, 0, 3, -1), args(t(), 0)],
    "narrow": [args(t(3), 0, 2, 2)],
    "unfold": [args(t(3), 0, 4, 1)],
    "diagonal": [args(t(3, 3), 0, 0, 0)],
    "split.Tensor": [args(t(4), -1)],
    "split_with_sizes": [args(t(4), [1, 2])],
    "as_strided": [args(t(3), [4], [1])],
    "cat": [args([t(2, 3), t(2, 4)]), args([]), args([t(2), t(2, 2)])],
    "stack": [args([t(2), t(3)]), args([])],
    "gather": [
        args(t(3, 4), 1, i(3, 2, high=9, low=8)),
        args(t(3, 4), 2, i(3, 2, high=1)),
        args(t(3, 4), 1, i(3, high=1)),
    ],
    "index_select": [args(t(3), 0, i(2, low=5, high=6)), args(t(3), 0, i(2, 2, high=1))],
    "index.Tensor": [
        args(t(3), [i(2, low=5, high=6)]),
        args(t(3), [b(4)]),
        args(t(3), [i(2, high=1), i(2, high=1)]),
    ],
    "scatter.src": [args(t(3, 4), 1, i(3, 1, low=9, high=10), t(3, 4))],
    "index_add": [args(t(3), 0, i(2, high=2), t(3))],
    "masked_fill.Scalar": [args(t(3), b(4), 1)],
    "masked_select": [args(t(3), b(4))],
    "mm": [args(t(3, 4), t(3, 4)), args(t(3), t(3))],
    "bmm": [args(t(2, 3, 4), t(3, 4, 5))],
    "mv": [args(t(3, 4), t(3))],
    "dot": [args(t(3), t(4))],
    "matmul": [args(t(3, 4), t(3, 4)), args(t(), t(3))],
    "linear": [args(t(3, 4), t(5, 3))],
    "addmm": [args(t(2), t(3, 4), t(4, 5))],
    "trace": [args(t(3))],
    "topk": [args(t(3), 4), args(t(3), 1, 2)],
    "sort": [args(t(3), 2)],
    "kthvalue": [args(t(3), 4)],
    "convolution": [
        args(t(1, 2, 5), t(3, 3, 2), None, [1], [0], [1], False, [0], 1),
        args(t(1, 2, 2), t(3, 2, 5), None, [1], [0], [1], False, [0], 1),
    ],
    "max_pool2d_with_indices": [args(t(2, 3), [2, 2]), args(t(1, 3, 3), [2, 2], [1, 1], [2, 2])],
    "avg_pool2d": [args(t(1, 3, 3), [5, 5])],
    "embedding": [args(t(5, 3), i(2, low=7, high=8))],
    "nll_loss_forward": [args(t(3, 4), i(3, low=5, high=6), None, 1, -100)],
    "repeat": [args(t(3, 4), [2])],
    "flip": [args(t(3), [1]), args(t(3, 4), [0, 0])],
    "roll": [args(t(3), [1, 2], [0])],
    "one_hot": [args(i(3, low=4, high=5), 3)],
    "einsum": [args("ij,jk->ik", [t(3, 4), t(3, 4)]), args("ij", [t(3)])],
    "arange.start_step": [args(0, 5, -1), args(0, 5, 0)],
    "linspace": [args(0, 1, -1)],
    "eye.m": [args(-1, 2)],
    "full": [args([-1], 2)],
    "layer_norm": [args(t(3, 4), [5])],
    "glu": [args(t(3, 3))],
    "pixel_shuffle": [args(t(1, 3, 2, 2), 2)],
}

# What draws random numbers.
RANDOM = [
    "rand",
    "rand.generator",
    "rand_like",
    "randn",
    "randn.generator",
    "randn_like",
    "randint",
    "randint.low",
    "randint.generator",
    "randint.low_generator",
    "randint_like",
    "randint_like.low_dtype",
    "randperm",
    "randperm.generator",
    "bernoulli",
    "bernoulli.p",
    "multinomial",
    "uniform_",
    "normal_",
    "bernoulli_.float",
    "bernoulli_.Tensor",
    "random_.from",
    "random_.to",
    "random_",
    "exponential",
    "cauchy",
    "log_normal",
    "geometric",
    "poisson",
    "binomial",
    "_standard_gamma",
    "_sample_dirichlet",
    "dropout",
    "native_dropout",
    "feature_dropout",
    "normal.float_float",
    "normal.Tensor_float",
    "normal.float_Tensor",
    "normal.Tensor_Tensor",
]
# What gives memory that nobody wrote.
UNINITIALISED = [
    "empty.memory_format",
    "empty_strided",
    "empty_permuted",
    "empty_like",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
]
_GRADIENT = "part of a gradient: compared through the gradients of its operator"
_INTERNAL = "internal: compared through the operator it serves"
UNSAMPLED: dict[str, str] = {
    **dict.fromkeys(UNINITIALISED, "uninitialised memory: shapes are compared in test_factories.py"),
    **dict.fromkeys(RANDOM, "random: streams are compared with torch's in test/oracle/test_random*.py"),
    **dict.fromkeys(
        [
            "select_backward",
            "diagonal_backward",
            "unfold_backward",
            "index_select_backward",
            "convolution_backward",
            "max_pool2d_with_indices_backward",
            "max_pool3d_with_indices_backward",
            "avg_pool3d_backward",
            "avg_pool2d_backward",
            "native_layer_norm_backward",
            "native_batch_norm_backward",
            "nll_loss_backward",
            "value_selecting_reduction_backward",
            "elu_backward",
            "_standard_gamma_grad",
            "_dirichlet_grad",
        ],
        _GRADIENT,
    ),
    **dict.fromkeys(
        [
            "as_strided_",
            "unsqueeze_",
            "squeeze_",
            "squeeze_.dim",
            "squeeze_.dims",
            "transpose_",
            "swapaxes_",
            "swapdims_",
            "t_",
        ],
        "another shape in place: compared in test/opinfo and test_autograd_programs.py",
    ),
    "copy_": "in place only: see test_copy",
    **dict.fromkeys(
        [
            "t_",
            "transpose_",
            "swapaxes_",
            "swapdims_",
            "squeeze_",
            "squeeze_.dim",
            "squeeze_.dims",
            "unsqueeze_",
            "as_strided_",
            "_become_view_",
        ],
        "in place only: see the programs of test_autograd_programs.py",
    ),
    "index_put_": "in place only: see index_put",
    "to.device": "one device: see to.dtype",
    "to.dtype_layout": "see to.dtype",
    **dict.fromkeys(
        [
            f"{name}.{kind}"
            for name in ("linspace", "logspace")
            for kind in ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
        ],
        "numbers in tensors: see linspace and test/oracle/test_error_kinds.py",
    ),
    "_conj_physical": _INTERNAL,
    "_logit": _INTERNAL,
    "_logit_clamped": _INTERNAL,
    "_clamp_tensor": _INTERNAL,
    "_round_scaled": _INTERNAL,
    "_addr": _INTERNAL,
    "_norm1": _INTERNAL,
    "normalize": "no operator in torch: see nn.functional",
}

DOMAIN |= SPECIAL_DOMAIN
SAMPLES |= samples_linalg.SAMPLES | samples_nn.NN_SAMPLES | STATISTICS
SAMPLES |= copies(SAMPLES, COPIED)
ERRORS |= samples_linalg.ERRORS
CANCELS |= samples_nn.NN_CANCELS
UNSAMPLED |= samples_nn.NN_UNSAMPLED | dict.fromkeys(INTERNAL, _INTERNAL) | INPLACE_ONLY
