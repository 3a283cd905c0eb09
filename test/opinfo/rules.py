"""What the comparison must know about operators: data, each with its sentence.

Nothing here widens a tolerance. An operator adds terms, has a freedom (a sign, a phase,
the order of equal elements), draws random numbers, or leaves values unspecified.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from agree import Rules
from scope import words
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, ReductionOpInfo, UnaryUfuncInfo

# Element by element, though not of torch's classes for such.
_POINTWISE = words(
    "addcdiv addcmul clamp clamp_max clamp_min clone complex contiguous copysign fill float_power lerp "
    "masked_fill nan_to_num polar positive where zero_ to bool byte char short int long half float "
    "bfloat16 double cfloat cdouble *_like conj conj_physical heaviside xlogy nn.functional.threshold "
    "nn.functional.hardtanh nn.functional.hardsigmoid nn.functional.dropout ldexp"
)

# Results whose strides need not follow torch's though the operator is of a pointwise class.
_STRIDES_FREE: dict[str, str] = {}

# They add terms: the scale is the sum of the terms' magnitudes.
_SUMS = words(
    "add sub rsub __radd__ __rsub__ addbmm addcdiv addcmul addmm addmv addr baddbmm bmm cdist cov corrcoef "
    "cumsum cumulative_trapezoid diff dot einsum inner kron lerp linalg.multi_dot linalg.matrix_power "
    "linalg.vecdot linalg.vander linspace logspace matmul __rmatmul__ mm mv mean nanmean nansum outer sum std* "
    "var* tensordot trace trapezoid trapz vdot index_add scatter_add scatter_reduce index_put "
    "put linalg.cross cross nn.functional.conv* nn.functional.linear nn.functional.bilinear "
    "nn.functional.*avg_pool* nn.functional.interpolate nn.functional.upsample_* nn.functional.grid_sample "
    "nn.functional.embedding_bag nn.functional.*_norm nn.functional.*_loss sum_to_size gradient matrix_exp"
)

# They subtract what is as large as their input: torch's error is the largest in the result.
_CANCELS = ("nn.functional.tanhshrink",)

# What is in the result is whatever memory held.
_UNSPECIFIED = ("empty", "empty_*", "new_empty*", "empty_like", "resize_", "resize_as_")

# Random numbers follow torch's stream where DESIGN.md promises it; a float64 run would draw
# others, so torch's own result is the reference.
RANDOM = words(
    "bernoulli cauchy exponential geometric log_normal multinomial normal* rand* uniform "
    "nn.functional.*dropout* nn.functional.rrelu nn.functional.fractional_max_pool*"
)
# Attention is not among them: a dropout's mask does not depend on the dtype.

# torch writes beyond an `out` of these that is not contiguous, and dies.
OUT_CONTIGUOUS = ("lu_unpack", "linalg.lu")

# Random numbers that need not be torch's, and why.
_OTHER_STREAM: dict[str, str] = {}

# Equal rows in a matrix make it singular: such an `expanded` input has no answer to compare.
_NEEDS_RANK = (
    "linalg.*",
    "cholesky*",
    "lu*",
    "qr",
    "svd*",
    "pinverse",
    "geqrf",
    "ormqr",
    "logdet",
    "triangular_solve",
    "pca_lowrank",
)

Derive = Callable[[list[torch.Tensor], Any], list[torch.Tensor]]


def _named(name: str, patterns: Any) -> bool:
    return any(fnmatch.fnmatchcase(name, p) for p in patterns)


def _svd(r: list[torch.Tensor], call: Any) -> list[torch.Tensor]:
    u, s, vh = r
    k = s.shape[-1]
    if not u.numel() or not vh.numel():
        return [s]
    return [s, (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], u.mH @ u, vh @ vh.mH]


def _old_svd(r: list[torch.Tensor], call: Any) -> list[torch.Tensor]:
    return _svd([r[0], r[1], r[2].mH], call) if bool(r[0].any()) else [r[1]]


def _qr(r: list[torch.Tensor], call: Any) -> list[torch.Tensor]:
    q, upper = r
    return [q @ upper, q.mH @ q] if q.numel() else [upper.abs()]


def _eigh(r: list[torch.Tensor], call: Any) -> list[torch.Tensor]:
    w, v = r
    return [w, (v * w.unsqueeze(-2)) @ v.mH, v.mH @ v]


def _sorted_complex(w: torch.Tensor) -> torch.Tensor:
    """Eigenvalues in an order that rounding does not change much: by rounded parts."""
    places = (w.real * 1e4).round() * 1e6 + (w.imag * 1e4).round()
    return w.gather(-1, places.argsort(-1))


def _eig(r: list[torch.Tensor], call: Any) -> list[torch.Tensor]:
    w, v = r
    return [_sorted_complex(w), v @ torch.diag_embed(w) @ torch.linalg.pinv(v), v.norm(dim=-2)]


def _eigvals(r: list[torch.Tensor], call: Any) -> list[torch.Tensor]:
    return [_sorted_complex(r[0])]


def _picked(position: int, alone: bool = False) -> Derive:
    """Values, and the elements that the indices pick; `position` is that of `dim` after the input.

    `alone`: the indices are the only result. Of equal elements torch gives the index of any.
    """

    def derive(r: list[torch.Tensor], call: Any) -> list[torch.Tensor]:
        (x, *args), kwargs = call
        if x.ndim == 0 or (len(r) == 1 and not alone) or kwargs.get("stable"):
            return r
        dim = kwargs.get("dim", args[position] if len(args) > position else -1)
        dropped = r[-1].ndim < x.ndim
        picked = x.detach().gather(dim, r[-1].long().unsqueeze(dim) if dropped else r[-1].long())
        return r[:-1] + [picked.squeeze(dim) if dropped else picked]

    return derive


_ANY_INDEX = "of equal elements any has its index given: values, and the elements at the indices"

# Free signs, phases or orders: what is compared instead of the results themselves.
_DERIVED: dict[str, tuple[str, Derive]] = {
    "linalg.svd": ("singular vectors have a free phase: S, U S Vh, UhU and VVh", _svd),
    "svd": ("singular vectors have a free phase: S, U S Vh, UhU and VVh", _old_svd),
    "svd_lowrank": ("singular vectors have a free phase: S, U S Vh, UhU and VVh", _old_svd),
    "pca_lowrank": ("singular vectors have a free phase: S, U S Vh, UhU and VVh", _old_svd),
    "linalg.qr": ("the rows of R have a free phase: Q R and QhQ", _qr),
    "qr": ("the rows of R have a free phase: Q R and QhQ", _qr),
    "linalg.eigh": ("eigenvectors have a free phase: values, V W Vh and VhV", _eigh),
    "linalg.eig": ("order and phase are free: sorted values, V W / V, norms of V", _eig),
    "linalg.eigvals": ("the order is free: sorted values", _eigvals),
    "sort": (_ANY_INDEX, _picked(0)),
    "argsort": (_ANY_INDEX, _picked(0, alone=True)),
    "mode": (_ANY_INDEX, _picked(0)),
    "median": (_ANY_INDEX, _picked(0)),
    "nanmedian": (_ANY_INDEX, _picked(0)),
    "topk": (_ANY_INDEX, _picked(1)),
    "kthvalue": (_ANY_INDEX, _picked(1)),
}


@dataclass(frozen=True)
class Otherwise:
    """What Mica does otherwise, and why that is right: the differences that match `pattern`.

    Of values that differ, those excused lie within `most` of torch's, relatively.
    """

    operator: str
    check: str
    pattern: str
    why: str
    most: float = math.inf


OTHERWISE = (
    Otherwise("*polygamma*", "*", "is inf, torch 2.01", "at 0 the function is infinite"),
    Otherwise("matrix_exp", "*", "torch nan", "torch's exponential of half matrices overflows"),
    Otherwise(
        "as_strided_scatter",
        "gradients",
        "result 0",
        "torch gives `self` the gradient of the elements that `src` replaces",
    ),
    Otherwise(
        "nn.functional.hardsigmoid",
        "*",
        "value",
        "torch's float64 derivative has 1/6 rounded to float32",
        6e-8,
    ),
    Otherwise(
        "logcumsumexp",
        "tangents",
        "value|torch nan",
        "torch adds 1e-13 of the largest element to what it divides by; test_special_maths.py has mpmath's",
        5e-6,
    ),
    Otherwise(
        "cholesky_inverse",
        "tangents",
        "value",
        "differences of torch's own results agree with Mica's tangents, and not with torch's",
        1e-4,
    ),
    Otherwise(
        "cov",
        "tangents",
        "value",
        "samples in float64 have weights in float32, which torch and Mica add up in another order",
        1e-6,
    ),
    *(
        Otherwise(
            n, "layouts", "strides", "torch's conj is a view that conjugates when read; Mica's computes"
        )
        for n in ("conj", "mH")
    ),
    Otherwise(
        "ldexp",
        "layouts",
        "strides",
        "torch's power of a number is contiguous; Mica's keeps the order of dimensions, as pointwise ones do",
    ),
    Otherwise(
        "*embedding*",
        "layouts",
        "expanded: RuntimeError: The tensor `self` of shape .* share one place in memory",
        "`max_norm` writes to rows that share their memory; torch scales such a row once for each",
    ),
    Otherwise(
        "*median",
        "layouts",
        "empty: RuntimeError: `self` has no elements",
        "torch turns a NaN into an integer, which C leaves undefined",
    ),
    Otherwise(
        "median",
        "layouts",
        "expanded: derived 0",
        "torch gives values that the expanded input does not hold",
    ),
    Otherwise(
        "nansum",
        "out",
        "cast",
        "torch refuses an `out` of integers; Mica adds in the dtype of `out`, as sum does in both",
    ),
    Otherwise("addmv", "layouts", "empty: shape", "torch broadcasts `self` only where there are columns"),
    Otherwise(
        "nn.functional.scaled_dot_product_attention",
        "layouts",
        "empty: shape",
        "torch gives a result without elements the query's shape, and not the broadcast one",
    ),
    Otherwise(
        "nn.functional.adaptive_avg_pool1d",
        "layouts",
        "empty: RuntimeError: Dimension",
        "torch pools no elements into one window, and refuses to pool them into two",
    ),
    Otherwise(
        "nn.functional.linear",
        "out",
        "must match the size of tensor b",
        "torch's own out= needs a contiguous one here",
    ),
    Otherwise(
        "*matmul*", "out", "must match the size of tensor b", "torch's own out= needs a contiguous one here"
    ),
    Otherwise("__rdiv__", "errors", "AttributeError", "torch calls a method that a number lacks"),
    Otherwise("narrow_copy", "errors", "Expected dim <", "torch's error is an internal assertion"),
    Otherwise("cat", "errors", "foreign memory", "the test's `out` is NumPy's memory, which cannot grow"),
    Otherwise(
        "nn.functional.linear",
        "out",
        "doesn't match the broadcast shape",
        "torch's own out= needs a contiguous one here",
    ),
    Otherwise(
        "normal*",
        "out",
        "no error, torch RuntimeError: The size of tensor a",
        "torch's normal of two numbers does not resize its out=, which other operators do",
    ),
    Otherwise(
        "*",
        "layouts",
        r"empty: no error, torch (IndexError: select\(\)|ZeroDivisionError|RuntimeError: (cannot reshape|"
        r"step must be nonzero|Only zero batch|result type Float can't be cast))",
        "an operator inside torch's own refuses the empty input that the operator itself takes",
    ),
    Otherwise(
        "nn.functional.*norm*",
        "gradients",
        "torch (nan|-?inf)",
        "torch's half-precision gradient overflows inside, Mica's is computed in float32",
    ),
    Otherwise(
        "nn.functional.soft_margin_loss",
        "gradients",
        "torch (nan|-?inf)",
        "torch's half-precision gradient overflows inside, Mica's is computed in float32",
    ),
    Otherwise(
        "renorm",
        "gradients",
        "torch nan",
        "torch's gradient of the norm inf is NaN in complex64, and in complex128 what Mica's is in both",
    ),
    Otherwise(
        "masked.normalize",
        "gradients",
        "torch (nan|-?inf)",
        "torch's half-precision gradient overflows inside, Mica's is computed in float32",
    ),
    Otherwise(
        "masked.prod",
        "gradients",
        "value at .* is 65216, torch inf",
        "torch multiplies half-precision numbers beyond their range on the way to 65216",
    ),
    Otherwise(
        "take_along_dim",
        "layouts",
        "no error, torch RuntimeError: view size is not compatible",
        "an operator inside torch's own takes no expanded indices",
    ),
    Otherwise(
        "lu_*",
        "layouts",
        r"Pivot \(0\) is not between",
        "torch takes pivots that no matrix has, and reads there",
    ),
    Otherwise(
        "*stack",
        "out",
        "torch TypeError: torch.cat",
        "torch's cat says TypeError where all others say RuntimeError",
    ),
    Otherwise(
        "cat",
        "out",
        "torch TypeError: torch.cat",
        "torch's cat says TypeError where all others say RuntimeError",
    ),
    Otherwise(
        "addbmm",
        "inplace",
        "is written in place",
        "an in-place form keeps the shape of `self`; torch's addbmm_ resizes it",
    ),
)


# What has no answer without values, and why; `pattern` as above. On meta alone.
_VALUES = (
    ("*", "cannot take values from a tensor on the device \\(meta\\)", "a copy from meta has no values"),
    (
        "argwhere nonzero masked_select unique unique_consecutive bincount",
        "NotImplementedError: (The result of|unique_dim has results whose sizes follow from values)",
        "the values decide the shape of the result",
    ),
    ("nn.functional.one_hot", "num_classes", "the largest value decides the number of classes"),
    ("nn.functional.embedding*", "mica::nonzero", "the values say which rows `max_norm` makes smaller"),
    ("index_put __getitem__", "mica::nonzero", "a mask's values decide how many elements it selects"),
    ("repeat_interleave", "_local_scalar_dense", "the repeats' sum is the size of the result"),
    ("narrow tensor_split", "_local_scalar_dense", "`start` or the sections are the values of a tensor"),
    ("nn.functional.ctc_loss", "has no values", "the lengths are the values of a tensor"),
    ("l*space:tensor_overload", "no item", "numbers are read from 0-d tensors"),
    ("gather scatter scatter_add", "is out of bounds", "indices are values"),
    ("gather", "is a view of a larger tensor", "indices are values, and are wrong before the `out` is"),
    ("cov multinomial", "no error on meta", "weights are values"),
    ("uniform normal*", "no error on meta", "a random fill's numbers are checked where it draws"),
    ("cat", "foreign memory", "meta has no memory that could not grow"),
)
OTHERWISE += tuple(
    Otherwise(name, "meta", pattern, why) for names, pattern, why in _VALUES for name in names.split()
)


# What cannot be mapped over, and why.
_UNMAPPED = (
    ("*", "returned a (bool|int|float|complex|type|tuple|device|str|Size|NoneType)", "it returns no tensor"),
    (
        "argwhere nonzero masked_select unique unique_consecutive __getitem__ index_put where",
        "returns a shape that depends on the values",
        "the values decide the shape of the result",
    ),
    ("nn.functional.embedding*", "_unique2", "the values say which rows `max_norm` makes smaller"),
    ("item allclose equal is_nonzero bool", "no single value", "it returns the value of its tensor"),
    ("*space:tensor_overload", "no single value", "numbers are read from 0-d tensors"),
    ("nn.functional.gaussian_nll_loss istft", "no single value", "it reads its values to check them"),
    ("nn.functional.ctc_loss", "lengths has no single value", "the lengths are the values of a tensor"),
    (
        "nn.functional.instance_norm nn.functional.batch_norm",
        "captured from outside",
        "running statistics are shared",
    ),
    ("resize_ resize_as_", "another shape", "a tensor that stands for a batch keeps its shape"),
)
OTHERWISE += tuple(
    Otherwise(name, "vmap", pattern, why) for names, pattern, why in _UNMAPPED for name in names.split()
)


def _within(most: float, found: str) -> bool:
    """Whether the values that a difference tells of are as near as that; True of any other difference."""
    values = re.search(r", torch ([^\s,]+), .*off by ([^\s,]+)", found)
    if most == math.inf or values is None:
        return True
    return float(values[2]) <= most * abs(complex(values[1]))


def otherwise(key: str, check: str, found: str) -> Otherwise | None:
    """What excuses this difference."""
    for rule in OTHERWISE:
        if (
            fnmatch.fnmatchcase(key, rule.operator)
            and fnmatch.fnmatchcase(check, rule.check)
            and re.search(rule.pattern, found)
            and _within(rule.most, found)
        ):
            return rule
    return None


def rules(op: Any) -> Rules:
    """What the results of this operator must share with torch's."""
    elementwise = isinstance(op, (UnaryUfuncInfo, BinaryUfuncInfo)) or _named(op.name, _POINTWISE)
    derived = _DERIVED.get(op.name)
    return Rules(
        pointwise=elementwise and op.name not in _CANCELS,
        strides=elementwise and op.name not in _STRIDES_FREE,
        values=not _named(op.name, _UNSPECIFIED) and op.name not in _OTHER_STREAM,
        derive=derived[1] if derived else None,
    )


def adds_terms(op: Any) -> bool:
    """Whether the scale of its results is that of their terms."""
    return isinstance(op, ReductionOpInfo) or _named(op.name, _SUMS)


def is_random(op: Any) -> bool:
    """Whether it draws random numbers."""
    return _named(op.name, RANDOM)


def any_index(op: Any) -> bool:
    """Whether it may choose among equal elements, and so which of them gets the gradient."""
    return op.name == "msort" or _DERIVED.get(op.name, ("",))[0] == _ANY_INDEX


def needs_rank(op: Any) -> bool:
    """Whether a matrix with equal rows has no answer to compare."""
    return _named(op.name, _NEEDS_RANK)
