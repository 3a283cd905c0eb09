"""Samples of special functions, statistics, searching and shape operators.

Part of samples.py, which merges STATISTICS, COPIES and the domains below into its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mica.conformance.sample_calls import CUBE, S0, Call, T, V, X, args, b, i, pos, t

if TYPE_CHECKING:
    from collections.abc import Mapping

# Bounds of the arguments of pointwise special functions.
SPECIAL_DOMAIN: dict[str, tuple[float, float]] = {
    "special_entr": (0.2, 3),
    "special_ndtri": (0.1, 0.9),
    "special_log_ndtr": (-4, 4),
    "special_xlog1py": (0.3, 3),
    "special_zeta": (1.2, 4),
    "igamma": (0.5, 4),
    "igammac": (0.5, 4),
    "special_bessel_y0": (0.3, 9),
    "special_bessel_y1": (0.3, 9),
    "special_modified_bessel_k0": (0.2, 5),
    "special_modified_bessel_k1": (0.2, 5),
    "special_scaled_modified_bessel_k0": (0.2, 5),
    "special_scaled_modified_bessel_k1": (0.2, 5),
    "_polygamma": (0.3, 4),
}

_N = t(3, 4, low=0, high=5, grad=False)
_POLYNOMIALS = [
    *(f"special_chebyshev_polynomial_{kind}" for kind in "tuvw"),
    *(f"special_shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
    "special_hermite_polynomial_h",
    "special_hermite_polynomial_he",
    "special_laguerre_polynomial_l",
    "special_legendre_polynomial_p",
]
_QUANTILE = [
    args(X, 0.3),
    args(X, 0.5, 1),
    args(CUBE, 0.25, -2, True),
    args(S0, 0.5),
    *(args(X, 0.4, 0, interpolation=m) for m in ("lower", "higher", "midpoint", "nearest")),
]
_QUANTILES = [
    args(X, t(3, low=0, high=1, grad=False), 1),
    args(CUBE, t(2, low=0, high=1, grad=False)),
    args(X, t(low=0, high=1, grad=False), 0, True),
]
_UNIQUE_X = t(12, low=0, high=3)

STATISTICS: dict[str, list[Call]] = {
    # special functions
    **dict.fromkeys(
        ["igamma", "igammac"],
        [
            args(t(3, 4, low=0.5, high=4, grad=False), pos(3, 4)),
            args(t(3, 4, low=0.5, high=4, grad=False), pos(4)),
            args(t(low=0.5, high=4, grad=False), pos(3)),
            args(t(0, 3, grad=False), t(1, 3)),
        ],
    ),
    "special_zeta": [
        args(t(3, 4, low=1.2, high=4, grad=False), pos(3, 4)),
        args(t(2, 1, low=1.2, high=4, grad=False), pos(3)),
        args(t(0, 3, grad=False), t(1, 3)),
    ],
    **{f"{name}.x_scalar": [args(0.5, _N), args(2, _N)] for name in _POLYNOMIALS},
    **{f"{name}.n_scalar": [args(X, 3), args(X, 0), args(t(5), 9)] for name in _POLYNOMIALS},
    "special_xlog1py.self_scalar": [args(2.5, pos(3, 4)), args(0, pos(4))],
    "special_xlog1py.other_scalar": [args(X, 2.5), args(pos(4), 1)],
    "special_zeta.self_scalar": [args(2.5, pos(3, 4)), args(3, pos(4))],
    "special_zeta.other_scalar": [args(t(3, 4, low=1.2, high=4, grad=False), 2.5)],
    "xlogy.Scalar_Self": [args(2.5, pos(3, 4)), args(0, pos(4))],
    "xlogy.Scalar_Other": [args(X, 2.5), args(pos(4), 2)],
    "polygamma": [args(n, pos(3, 4)) for n in (0, 1, 2, 4)],
    "mvlgamma": [args(t(3, 4, low=2, high=5), p) for p in (1, 2, 4)],
    "float_power.Tensor_Tensor": [args(pos(3, 4), X), args(pos(3, 4), V)],
    "float_power.Tensor_Scalar": [args(pos(3, 4), 2.5), args(X, 2)],
    "float_power.Scalar": [args(2.5, X), args(2, V)],
    "frexp.Tensor": [args(t(3, 4, low=0.3, high=9)), args(t(low=0.3, high=9))],
    "isreal": [args(X), args(S0)],
    "resolve_conj": [args(X)],
    "resolve_neg": [args(X)],
    # reductions
    "nanmean": [args(X), args(X, [0]), args(CUBE, [0, 2], True), args(X, dtype="float64")],
    "nanmedian": [args(X), args(CUBE), args(S0)],
    "nanmedian.dim": [args(X, 1), args(CUBE, -2, True), args(S0, 0)],
    "hash_tensor": [args(X), args(CUBE, [0, 2]), args(X, [1], keepdim=True)],
    "cov": [
        args(X),
        args(V),
        args(X, correction=0),
        args(X, fweights=i(4, low=1, high=4), aweights=T((4,), 0.2, 1, "float64", False)),
    ],
    "vander": [args(V), args(V, 3, True), args(V, 0), args(V, 6)],
    "corrcoef": [args(X), args(t(2, 6))],
    "renorm": [args(X, 2, 0, 1.5), args(CUBE, 1, -1, 2.0)],
    "cdist": [
        args(X, t(5, 4)),
        args(CUBE, t(1, 5, 4), 1.0),
        args(X, t(5, 4), 3.0),
        args(t(30, 3), t(2, 28, 3)),
        args(X, t(5, 4), float("inf")),
        args(X, t(5, 4), 2.0, 1),
        args(X, t(0, 4)),
    ],
    "trapezoid.x": [args(X, V), args(CUBE, t(3), dim=1), args(X, X), args(V, V)],
    "trapezoid.dx": [args(X), args(CUBE, dx=0.5, dim=0), args(V, dx=2)],
    "trapz.x": [args(X, V), args(X, X, dim=0)],
    "trapz.dx": [args(X), args(X, dx=0.5, dim=0)],
    "cumulative_trapezoid.x": [args(X, V), args(X, X, dim=0)],
    "cumulative_trapezoid.dx": [args(X), args(CUBE, dx=0.5, dim=1)],
    "segment_reduce": [
        args(t(5, 2), r, lengths=i(3, low=1, high=2), unsafe=True, **more)
        for r in ("sum", "mean", "max", "min", "prod")
        for more in ({}, {"initial": 1})
    ],
    # sorting and searching
    "mode": [args(t(12, low=0, high=3)), args(t(3, 8, low=0, high=3), 1, True), args(S0, 0)],
    "msort": [args(X), args(V)],
    "quantile.scalar": _QUANTILE,
    "nanquantile.scalar": _QUANTILE,
    "quantile": _QUANTILES,
    "nanquantile": _QUANTILES,
    "combinations": [args(V), args(V, 3), args(V, 2, True), args(V, 1), args(V, 0)],
    "searchsorted.Scalar": [args(t(6, low=1, high=1.5), 1.2), args(t(6, low=1, high=1.5), 1, right=True)],
    "bucketize.Tensor": [
        args(X, t(6, low=1, high=1.5)),
        args(X, t(6, low=1, high=1.5), right=True, out_int32=True),
    ],
    "bucketize.Scalar": [args(1.2, t(6, low=1, high=1.5)), args(1, t(6, low=1, high=1.5), right=True)],
    "unique_consecutive": [
        args(_UNIQUE_X),
        args(_UNIQUE_X, True, True),
        args(t(6, 2, low=0, high=2), True, True, 0),
        args(t(3, 4, low=0, high=2), True, True),
        args(t(0), True, True),
    ],
    "unique_dim": [args(t(8, 2, low=0, high=3), d, True, True, True) for d in (0, 1)],
    "nonzero_static": [args(t(3, 4, low=0), size=5), args(t(3, 4, low=0), size=20, fill_value=7)],
    "histc": [args(X, 5), args(X, 4, -1, 1), args(t(40), 10, 0, 0)],
    "histogram.bin_ct": [
        args(X, 5),
        args(X, 4, range=[-1.0, 1.0]),
        args(V, 3, weight=t(4), density=True),
    ],
    "histogram.bins_tensor": [args(X, t(5, low=-1, high=-0.9)), args(V, t(2, low=0, high=0.1), weight=t(4))],
    "index_reduce": [
        args(X, 0, i(2, high=3), t(2, 4), r, include_self=s)
        for r in ("prod", "mean", "amax", "amin")
        for s in (True, False)
    ],
    "put": [args(X, i(1, high=12), t(1)), args(X, i(2, 3, high=12), t(2, 3), True)],
    "_unsafe_masked_index": [args(X, b(3), [i(3, low=-9, high=9), i(3, low=-9, high=9)], 2)],
    "_unsafe_masked_index_put_accumulate": [
        args(X, b(3), [i(3, low=-9, high=9), i(3, low=-9, high=9)], t(3))
    ],
    "index_fill.int_Tensor": [args(X, 1, i(2, high=4), S0)],
    "repeat_interleave.Tensor": [args(i(4, high=3)), args(i(3, high=3), output_size=None)],
    "repeat_interleave.self_Tensor": [
        args(X, i(3, high=3), 0),
        args(X, i(12, high=2)),
        args(X, i(1, high=3), 1),
    ],
    # shapes
    "atleast_2d": [args(S0), args(V), args(X), args(CUBE)],
    "atleast_3d": [args(S0), args(V), args(X), args(CUBE)],
    "tensor_split.indices": [args(t(7), [2, 5]), args(X, [1, -1, 9], 1)],
    "hsplit.int": [args(X, 2), args(V, 4)],
    "hsplit.array": [args(X, [1, 3]), args(V, [1])],
    "vsplit.int": [args(X, 3)],
    "vsplit.array": [args(X, [1])],
    "dsplit.int": [args(CUBE, 2)],
    "dsplit.array": [args(CUBE, [1, 3])],
    "unsafe_split.Tensor": [args(X, 2, 1)],
    "unsafe_split_with_sizes": [args(X, [1, 3], 1)],
    "unsafe_chunk": [args(X, 2, 1)],
    "diagflat": [args(X), args(V, 1), args(S0)],
    "select_scatter": [args(X, V, 0, 1), args(CUBE, t(2, 3), -1, -2)],
    "slice_scatter": [args(X, t(1, 4), 0, 1, 2), args(X, t(3, 2), 1, 0, 4, 2)],
    "diagonal_scatter": [args(X, t(3)), args(CUBE, t(2, 3), 0, 1, 2)],
    "as_strided_scatter": [args(t(12), t(3, 2), [3, 2], [4, 1]), args(t(12), t(3), [3], [2], 1)],
    "column_stack": [args([X, t(3)]), args([V, V]), args([S0, S0])],
    "dstack": [args([X, X]), args([V, V]), args([CUBE, CUBE])],
    "_chunk_cat": [args([X, t(2, 4)], 0, 2), args([t(3, 5), t(3, 3)], 1, 2)],
}


def copies(samples: Mapping[str, list[Call]], overloads: list[str]) -> dict[str, list[Call]]:
    """The samples of `_copy` operators: those of their views."""
    found = {}
    for overload in overloads:
        name, dot, rest = overload.partition(".")
        found[f"{name}_copy{dot}{rest}"] = samples[overload]
    return found


COPIED = [
    "alias",
    "as_strided",
    "detach",
    "diagonal",
    "expand",
    "narrow",
    "permute",
    "_reshape_alias",
    "select.int",
    "slice.Tensor",
    "split.Tensor",
    "split_with_sizes",
    "squeeze",
    "squeeze.dim",
    "squeeze.dims",
    "t",
    "transpose.int",
    "unbind.int",
    "unfold",
    "unsqueeze",
    "view",
    "view.dtype",
    "view_as_complex",
    "view_as_real",
]

# What other operators are composed of; compared through those.
INTERNAL = [
    "_histogramdd_from_bin_tensors",
    "_histogramdd_bin_edges",
    "_no_derivative",
    "_polygamma",
    "_ldexp",
    "_pow_in.Tensor_Tensor",
    "_pow_in.Tensor_Scalar",
    "_pow_in.Scalar",
    "_frexp_mantissa",
    "_frexp_exponent",
    "_xor_sum",
    "_cdist",
    "_euclidean_dist",
    "_segment_reduce",
    "_sinc_slope",
]
# In place only.
INPLACE_ONLY = {
    "float_power_.Tensor": "in place only: see float_power",
    "float_power_.Scalar": "in place only: see float_power",
    "fill_diagonal_": "in place only: see test_masked_and_windows_torch.py",
}
