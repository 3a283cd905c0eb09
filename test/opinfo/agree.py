"""When a result of Mica agrees with torch's: the rules of the comparison, and nothing else.

Equal: structure, dtype, shape, integers, bool, and where NaN and infinities stand. Floats:
|mica - reference| <= max(4 x torch's error, 2 eps x scale), where the reference is torch's
result in float64 from the same inputs. `scale` is |reference|, and for operators that add
terms the sum of their magnitudes (the operator on absolute values). Torch's error is that
of the same element for a pointwise operator, else the largest in the result. For float64
there is no better reference than torch, whose error is then unseen: it is taken to be its
float32 error times the ratio of the two spacings, and is allowed once more, as the reference's.
What is not pointwise may also be off by four times what the result moves by when each input moves by
one eps, which no algorithm in that precision can tell apart: the rule must not depend on the order in
which an instruction set adds. Where a rule says how many terms there are, their root counts too, of eps and,
where a result is next to nothing, of the smallest number. What overflows, if only on the way, is of finite inputs
infinite or, where two infinities met, NaN: which of them follows from that order as well. And where the
result moves as far as it is large, or an integer changes, no digit is determined. A pointwise operator is
held to the stricter rule on torch's own samples; on grown ones, which reach all over its domain, an element
may be off by four times what it moves by itself.
Of the functions in truth.py mpmath's values are the reference where torch's float64 fails the rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import torch
from translate import device, to_torch

import mica

_EPS_RATIO = torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps
_EXACT_AT_MOST = 100  # elements of one result, the worst, whose exact values are computed
_WIDEST = (torch.float64, torch.complex128)


@dataclass(frozen=True)
class Rules:
    """What an operator's results must share with torch's."""

    pointwise: bool = False  # torch's error is judged element by element
    strides: bool = False  # strides must be equal
    values: bool = True  # False for `empty` and its kind
    terms: int = 0  # as many as were added in some order: rounding grows as their root
    precision: torch.dtype | None = None  # of the result, where it is cast to another dtype
    # What to compare instead of the values, where those have a freedom; from float64 results.
    derive: Callable[[list[torch.Tensor], Any], list[torch.Tensor]] | None = None


@dataclass
class References:
    """What torch gives otherwise, made when first asked for: flat lists of tensors, or None."""

    wide: Callable[[], Any]  # in float64
    scale: Callable[[], Any]  # in float64, of the inputs' absolute values; real
    low: Callable[[], Any]  # in float32, for results in float64
    call: Any = ((), {})  # the arguments, for what is derived from results and them
    memory: frozenset[int] = frozenset()  # of torch's inputs: a result in it is a view
    moved: Callable[[], list[Any]] = list  # in float64, of inputs that moved by one eps: several draws
    finite: Callable[[], bool] = bool  # whether all inputs are
    exact: Callable[[list[int]], Any] | None = None  # the element's value of mpmath (truth.py)


def flatten(value: Any) -> list[Any]:
    """The leaves of nested results, in order."""
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return [leaf for v in value for leaf in flatten(v)]
    return [value]


def _word(dtype: Any) -> str:
    return str(dtype).split(".")[-1]


def differs(got: Any, expected: Any, rules: Rules, references: References) -> tuple[str, bool]:
    """What differs, or "", and whether strides do that need not agree."""
    if isinstance(expected, (tuple, list)) and not isinstance(expected, torch.Size):
        if not isinstance(got, (tuple, list)):
            return f"one result ({type(got).__name__}), torch {len(expected)}", False
        gave, wanted = flatten(got), flatten(expected)
        if len(gave) != len(wanted):
            return f"{len(gave)} results, torch {len(wanted)}", False
    else:
        gave, wanted = [got], [expected]
    loose = False
    for k, (g, e) in enumerate(zip(gave, wanted)):
        found, strided = _leaf(g, e, k, rules, references)
        loose |= strided
        if found:
            return (f"result {k}: " if len(wanted) > 1 else "") + found, loose
    return _derived(gave, wanted, rules, references) if rules.derive else "", loose


def _leaf(got: Any, expected: Any, index: int, rules: Rules, references: References) -> tuple[str, bool]:
    if not isinstance(expected, torch.Tensor):
        return _plain(got, expected), False
    if expected.dtype == torch.complex32:
        return "", False  # out of scope
    if not isinstance(got, mica.Tensor):
        return f"a {type(got).__name__}, torch a tensor", False
    if _word(got.dtype) != _word(expected.dtype):
        return f"dtype {_word(got.dtype)}, torch {_word(expected.dtype)}", False
    if tuple(got.shape) != tuple(expected.shape):
        return f"shape {tuple(got.shape)}, torch {tuple(expected.shape)}", False
    if got.device.type != (device() if expected.device.type == "cpu" else expected.device.type):
        return f"on {got.device}, torch on {expected.device}", False
    loose = expected.numel() > 0 and _strides(got) != _strides(expected)
    if loose and (rules.strides or expected.untyped_storage().data_ptr() in references.memory):
        return f"strides {tuple(got.stride())}, torch {tuple(expected.stride())}", False
    if not rules.values or rules.derive or expected.numel() == 0:
        return "", loose
    return values(to_torch(got), expected.detach(), index, rules, references), loose


def _strides(x: Any) -> list[int]:
    """Those that can matter: of dimensions with more than one element."""
    return [stride for size, stride in zip(x.shape, x.stride()) if size > 1]


def _plain(got: Any, expected: Any) -> str:
    """Numbers, dtypes, sizes, None."""
    if isinstance(expected, torch.dtype):
        return "" if _word(got) == _word(expected) else f"{got}, torch {expected}"
    if isinstance(expected, torch.Size):
        return "" if tuple(got) == tuple(expected) else f"{tuple(got)}, torch {tuple(expected)}"
    same = type(got) is type(expected) and (got == expected or (got != got and expected != expected))
    return "" if same else f"{got!r:.60}, torch {expected!r:.60}"


def _parts(x: torch.Tensor) -> torch.Tensor:
    """In float64; real and imaginary parts apart."""
    if x.is_complex():
        return torch.view_as_real(x.resolve_conj().resolve_neg().to(torch.complex128))
    return x.to(torch.float64)


def _show(x: torch.Tensor, at: list[int]) -> str:
    return f"{x[tuple(at)].item():.8g}" if at else f"{x.item():.8g}"


def values(
    got: torch.Tensor,
    expected: torch.Tensor,
    index: int,
    rules: Rules,
    references: References,
    precision: torch.dtype | None = None,
) -> str:
    """Compares two tensors of torch element by element, to the precision of their dtype or another."""
    if not (expected.is_floating_point() or expected.is_complex()):
        if torch.equal(got, expected):
            return ""
        wrong = got != expected
        if not rules.pointwise and bool((~wrong | _changed(references, index, expected)).all()):
            return ""
        at = wrong.nonzero()[0].tolist()
        return f"value at {at} is {_plain_item(got, at)}, torch {_plain_item(expected, at)}"
    dtype = precision or rules.precision or expected.dtype
    g, e = _parts(got), _parts(expected)
    finite = e.isfinite()
    same = (g == e) | (g.isnan() & e.isnan())
    if bool(same.all()):
        return ""
    wrong = ~(same | (finite & g.isfinite()))
    if bool(wrong.any()) and not rules.pointwise and references.finite():
        wide = _pick(references.wide(), index, e)
        reference = e if wide is None else wide
        wrong &= ~_overflows(reference, g, dtype, rules)
        largest = torch.where(reference.isfinite(), reference, 0).abs().max()
        wrong &= not 4 * _motion(references, index, reference).max() >= largest > 0
    if bool(wrong.any()):
        at = wrong.nonzero()[0].tolist()
        return f"value at {at} is {_show(g, at)}, torch {_show(e, at)}"
    return _beyond(g, e, finite & g.isfinite(), dtype, expected.is_complex(), index, rules, references)


def _widest(results: list[Any]) -> list[torch.Tensor]:
    """In float64; integers, which may be indices, as they are."""

    def widen(r: torch.Tensor) -> torch.Tensor:
        if r.is_complex():
            return r.to(torch.complex128)
        return r.to(torch.float64) if r.is_floating_point() else r

    return [widen(r.detach()) for r in results]


def _derived(got: list[Any], expected: list[Any], rules: Rules, references: References) -> str:
    """Compares what the rules derive from the results, to the precision of the results' dtype."""
    assert rules.derive is not None
    derive, dtype = rules.derive, rules.precision or expected[0].dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = None

    def derived(results: Any) -> Any:
        whole = results and all(isinstance(r, torch.Tensor) for r in results)
        return derive(_widest(results), references.call) if whole else None

    def largest() -> list[torch.Tensor]:
        """The scale of a product's elements: its terms are as large as its largest element."""
        return [e.abs().max().expand(e.shape) if e.numel() else e for e in derived(expected)]

    better = References(
        lambda: derived(references.wide()),
        largest,
        lambda: derived(references.low()),
        moved=lambda: [derived(results) for results in references.moved()],
    )
    mine, theirs = derived([to_torch(g) for g in got]), derived(expected)
    # What is derived are sums along a dimension: products that are zeros and ones but for rounding.
    longest = max((n for e in expected for n in e.shape), default=0)
    rules = replace(rules, terms=max(rules.terms, 4 * longest))
    for k, (g, e) in enumerate(zip(mine, theirs)):
        if g.shape != e.shape:
            return f"derived {k}: shape {tuple(g.shape)}, torch {tuple(e.shape)}"
        found = values(g, e, k, rules, better, dtype)
        if found:
            return f"derived {k}: {found}"
    return ""


def _plain_item(x: torch.Tensor, at: list[int]) -> Any:
    return x[tuple(at)].item() if at else x.item()


def _pick(results: Any, index: int, like: torch.Tensor) -> torch.Tensor | None:
    """The result at `index` of a reference, if it is of this shape."""
    leaves = flatten(results) if results is not None else []
    if index >= len(leaves) or not isinstance(leaves[index], torch.Tensor):
        return None
    found = _parts(leaves[index].detach())
    return found if found.shape == like.shape else None


def _magnitude(x: torch.Tensor, is_complex: bool) -> torch.Tensor:
    """Of a complex number its modulus counts, for both parts."""
    return x.norm(dim=-1, keepdim=True).expand_as(x) if is_complex else x.abs()


def _largest(error: torch.Tensor, pointwise: bool) -> torch.Tensor:
    return error if pointwise else error.max().expand_as(error)


def _right(
    g: torch.Tensor,
    e: torch.Tensor,
    doubted: torch.Tensor,
    info: Any,
    is_complex: bool,
    references: References,
) -> bool:
    """Whether the doubted elements keep the rule measured from the exact values."""
    assert references.exact is not None
    for at in doubted.nonzero().tolist():
        exact = references.exact(at[:-1] if is_complex else at)
        if exact is None:
            return False
        part = (mpmath.re, mpmath.im)[at[-1]](exact) if is_complex else mpmath.mpf(exact)
        mine, theirs = abs(g[tuple(at)].item() - part), abs(e[tuple(at)].item() - part)
        if mine > max(4 * theirs, 2 * info.eps * abs(exact) + info.eps * info.tiny):
            return False
    return True


def _overflows(reference: torch.Tensor, got: torch.Tensor, dtype: torch.dtype, rules: Rules) -> torch.Tensor:
    """Where an element of the matrix passes the largest number, or is so near that a sum of its terms may.

    Of a dtype narrower than the reference a NaN of the reference is one only where the result is no number
    either: where infinities met, and which of the two follows depends on the order."""
    largest = torch.finfo(dtype).max
    size = reference.abs()
    narrow = dtype not in _WIDEST
    if narrow:
        size = size.nan_to_num(nan=0.0, posinf=math.inf)
    dims = list(range(reference.ndim))[-3:]  # of a matrix, and of the parts of its numbers
    near = ~(size.amax(dims, keepdim=True) <= largest / max(4.0, rules.terms**0.5))
    if narrow:
        near = near | (reference.isnan() & ~got.isfinite())
    return near & ~(got.isfinite() & (size > 4 * largest))


def _changed(references: References, index: int, expected: torch.Tensor) -> torch.Tensor:
    """Where integers change when the inputs move by one eps."""
    found = torch.zeros_like(expected, dtype=torch.bool)
    for results in references.moved():
        leaves = flatten(results) if results is not None else []
        one = leaves[index] if index < len(leaves) else None
        if isinstance(one, torch.Tensor) and one.shape == expected.shape:
            found |= one.to(expected.dtype) != expected
    return found


def _motion(references: References, index: int, reference: torch.Tensor) -> torch.Tensor:
    """How far the result moves when its inputs move by one eps: the largest of the draws."""
    found = torch.zeros_like(reference)
    for results in references.moved():
        one = _pick(results, index, reference)
        if one is not None and reference.numel():
            apart = (one - reference).abs()
            found = torch.maximum(found, torch.where(apart.isfinite(), apart, 0))
    return found


def _beyond(
    g: torch.Tensor,
    e: torch.Tensor,
    finite: torch.Tensor,
    dtype: torch.dtype,
    is_complex: bool,
    index: int,
    rules: Rules,
    references: References,
) -> str:
    """The float rule, where both are finite."""
    info = torch.finfo(dtype)
    wide = None if dtype in _WIDEST else _pick(references.wide(), index, e)
    reference = e if wide is None else torch.where(wide.isfinite(), wide, e)
    off = torch.where(finite, (g - reference).abs(), 0)
    theirs = _largest(torch.where(finite, (e - reference).abs(), 0), rules.pointwise)
    if is_complex and rules.pointwise:  # an error of either part is one of the number
        theirs = theirs.amax(dim=-1, keepdim=True).expand_as(theirs)
    scale = _magnitude(reference, is_complex)
    smallest = info.eps * info.tiny
    bound = torch.maximum(4 * theirs, 2 * info.eps * scale + smallest)
    if bool(((off <= bound) | ~finite).all()):
        return ""
    slack = torch.zeros_like(off)
    if wide is None:
        low = _pick(references.low(), index, e)
        if low is not None:
            error = torch.where(low.isfinite() & finite, (low - e).abs(), 0)
            slack = _largest(error, rules.pointwise) * _EPS_RATIO
            theirs = slack
    terms = (references.scale() or [])[index:]
    terms = terms[0].to(torch.float64) if terms and terms[0] is not None else None
    if terms is not None and is_complex:
        terms = terms.unsqueeze(-1).expand(*terms.shape, 2)
    if terms is not None and terms.shape == scale.shape:
        scale = torch.where(terms.isfinite(), torch.maximum(scale, terms), scale)
    bound = torch.maximum(4 * theirs, 2 * info.eps * scale + smallest) + slack
    if bool(((off <= bound) | ~finite).all()):
        return ""
    if not rules.pointwise:
        bound = (
            bound
            + 4 * _motion(references, index, reference).max()  # over all elements: one draw may spare one
            + rules.terms**0.5 * (info.eps * scale + smallest)
        )
        if bool(((off <= bound) | ~finite).all()):
            return ""
    elif rules.terms:
        bound = bound + 4 * _motion(references, index, reference)
        if bool(((off <= bound) | ~finite).all()):
            return ""
    beyond = torch.where(finite, off / bound, 0)
    beyond[beyond < beyond.flatten().topk(min(_EXACT_AT_MOST, beyond.numel()))[0][-1]] = 0
    if references.exact is not None and _right(g, e, beyond > 1, info, is_complex, references):
        return ""
    at = torch.where(finite, off - bound, -1).argmax()
    at = [int(k) for k in torch.unravel_index(at, off.shape)]
    return (
        f"value at {at} is {_show(g, at)}, torch {_show(e, at)}, reference {_show(reference, at)}; "
        f"off by {_show(off, at)}, allowed {_show(bound, at)}"
    )
