"""What the comparison must know about operators: data, each with its sentence.

Nothing here widens a tolerance. An operator adds terms, has a freedom (a sign, a phase,
the order of equal elements), draws random numbers, or leaves values unspecified.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
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

# Random numbers follow torch's stream where docs/design.md promises it; a float64 run would draw
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

# LAPACK's: their results are exact of matrices that are some eps of the norm away.
_FACTORS = words(
    "linalg.cholesky* linalg.cond linalg.det linalg.eig* linalg.householder_product linalg.inv* linalg.ldl* "
    "linalg.lstsq* linalg.lu* linalg.matrix_norm linalg.norm linalg.matrix_rank linalg.pinv linalg.qr "
    "linalg.slogdet linalg.solve* linalg.svd* linalg.tensorinv linalg.tensorsolve cholesky* lu* qr svd* pinverse "
    "geqrf ormqr logdet det triangular_solve pca_lowrank norm"
)

# They add, scan or normalise along dimensions, besides the reductions.
_ALONG = words(
    "cum* logcumsumexp logsumexp masked.* *norm *norm_* *softmax *softmin *_loss nn.functional.cross_entropy "
    "nn.functional.conv* nn.functional.linear nn.functional.*_pool* trace trapezoid median sort topk bincount"
)

# Not grown: torch's own kernels die of what their samples become.
UNGROWN = {
    "lu_unpack": "torch asks neither how many pivots there are nor where they point, and writes there",
}

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


def _cholesky_ex(r: list[torch.Tensor], call: Any) -> list[torch.Tensor]:
    factor, info = r
    found = torch.where(info > 0, info - 1, factor.shape[-1])[..., None, None]
    k = torch.arange(factor.shape[-1])
    return [info, torch.where((k < found) & (k.unsqueeze(-1) < found), factor, 0)]


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
    "linalg.cholesky_ex": (
        "of a matrix that is not positive definite LAPACK leaves what it did not reach",
        _cholesky_ex,
    ),
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


def transforms(op: Any) -> bool:
    """Whether every number of its result is a sum over a whole row: a Fourier transform."""
    return _named(op.name, ("fft.*fft*", "stft", "istft"))


def goes_along(op: Any) -> bool:
    """Whether it adds, scans or normalises along dimensions: the kernels that have sizes of their own."""
    return isinstance(op, ReductionOpInfo) or _named(op.name, _ALONG)


def factors(op: Any) -> bool:
    """Whether it factors matrices, by LAPACK."""
    return _named(op.name, _FACTORS)


def needs_rank(op: Any) -> bool:
    """Whether a matrix with equal rows has no answer to compare."""
    return _named(op.name, _NEEDS_RANK)
