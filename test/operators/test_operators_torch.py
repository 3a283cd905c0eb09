"""Every operator against torch 2.13: values, shapes, dtypes, strides, forms, errors, gradients.

The data are mica.conformance.samples; a new operator needs samples there and nothing
here. Each test runs all dtypes and layouts of one overload and fails with a list of
what differs. Where torch does not support a dtype Mica may support it; the other way round is a failure.
"""

from __future__ import annotations

from typing import Any

import both
import pytest
import torch
from both import difference, function, kind
from every_operator import each, judge

import mica
from mica.conformance.operators import (
    DTYPES,
    ENTRIES,
    LAYOUTS,
    Entry,
    arguments,
    attempt,
    make,
    reason_unsampled,
    settled,
)
from mica.conformance.samples import ERRORS, Call, T, t
from mica.conformance.samples_linalg import NEEDS_RANK

SAMPLED = both.sampled()
# Overloads whose results have torch's strides whatever the inputs' layout.
_STRIDED = ("pointwise", "view")

# Of equal elements torch gives the index of any.
_ANY_INDEX = ("median.dim", "kthvalue", "topk")
# The in-place forms that torch calls otherwise.
_TORCH_INPLACE = {"pow.Tensor_Tensor": "Tensor", "pow.Tensor_Scalar": "Scalar", "floor_divide": "Tensor"}


def _where(dtype: str, layout: str, number: int) -> str:
    return f"{dtype} {layout} call {number}"


def _compare(entry: Entry, ours: Any, theirs: Any, call: Call, dtype: str, layout: str) -> str:
    """Runs one call in both libraries; what differs, or ""."""
    if entry.overload == "median.dim" and layout == "expanded":
        return ""  # torch 2.13 reads memory it never wrote
    positional, keyword, _ = arguments(torch, call, dtype, layout)
    expected, expected_error = attempt(theirs, *positional, **keyword)
    positional, keyword, _ = arguments(mica, call, dtype, layout)
    got, error = attempt(ours, *positional, **keyword)
    if expected_error is not None:
        if error is not None and kind(error) != kind(expected_error):
            return f"{kind(error)} ({error!s:.80}), torch {kind(expected_error)} ({expected_error!s:.80})"
        return ""
    if error is not None:
        complex_half = (
            isinstance(expected, torch.Tensor) and expected.dtype == torch.complex32
        )  # Mica has no such dtype
        return "" if complex_half else f"{type(error).__name__}: {str(error).splitlines()[0]:.160}"
    if entry.overload in _ANY_INDEX:
        got, expected = got[0], expected[0]
    got, expected = settled(entry.overload, got), settled(entry.overload, expected)
    return difference(got, expected, strides=entry.op_class in _STRIDED)


def test_every_operator_has_samples() -> None:
    missing = [name for name in ENTRIES if name not in SAMPLED and not reason_unsampled(name)]
    assert not missing


@each("torch forward", SAMPLED)
def test_forward(name: str) -> None:
    entry = ENTRIES[name]
    ours, theirs = function(mica, entry), function(torch, entry)
    assert ours is not None, f"mica.ops.mica has no {name}"
    found = []
    for number, call in enumerate(entry.calls()):
        for dtype in DTYPES:
            for layout in LAYOUTS if dtype in ("float32", "int64", "complex128", "bool") else LAYOUTS[:1]:
                if layout == "expanded" and name in NEEDS_RANK:
                    continue
                if d := _compare(entry, ours, theirs, call, dtype, layout):
                    found.append(f"{_where(dtype, layout, number)}: {d}")
    judge("torch forward", name, found)


def _writable(library: Any, x: Any) -> Any:
    return x.clone() if isinstance(x, library.Tensor) else x


@each("torch in place", [n for n in SAMPLED if "inplace" in ENTRIES[n].forms])
def test_inplace(name: str) -> None:
    entry, found = ENTRIES[name], []
    twin = entry.inplace()
    ours = function(mica, twin)
    assert ours is not None, f"mica.ops.mica has no {twin.base}.{twin.variant}"
    twin.variant = _TORCH_INPLACE.get(name, entry.variant)
    theirs = function(torch, twin)
    if theirs is None:
        pytest.skip("torch has no such form")

    def run(library: Any, f: Any, call: Call, dtype: str) -> tuple[Any, Exception | None]:
        positional, keyword, _ = arguments(library, call, dtype, "transposed")
        target = _writable(library, positional[0])
        result, error = attempt(f, target, *positional[1:], **keyword)
        if error is None and result is not target:
            return None, AssertionError("the result is not the tensor that was written")
        return target, error

    for number, call in enumerate(entry.calls()):
        for dtype in DTYPES:
            expected, expected_error = run(torch, theirs, call, dtype)
            got, error = run(mica, ours, call, dtype)
            if (error is None) != (expected_error is None) or (
                error is not None and kind(error) != kind(expected_error)
            ):
                wider = (
                    expected_error is not None
                    and error is None
                    and "not implemented for" in str(expected_error)
                )
                if not wider:
                    found.append(
                        f"{_where(dtype, 'transposed', number)}: {error!r:.160}, torch {expected_error!r:.120}"
                    )
            elif error is None and (d := difference(got, expected, strides=True)):
                found.append(f"{_where(dtype, 'transposed', number)}: {d}")
    judge("torch in place", name, found)


@each("torch out", [n for n in SAMPLED if "out" in ENTRIES[n].forms])
def test_out(name: str) -> None:
    """out= that is resized, that has strides of its own, and of a wrong dtype."""
    entry, found = ENTRIES[name], []
    ours, theirs = getattr(mica, entry.base, None), getattr(torch, entry.base, None)
    if ours is None or theirs is None:
        pytest.skip("no function of this name in the main module")

    def run(library: Any, f: Any, call: Call, how: str) -> tuple[Any, Exception | None, Any]:
        positional, keyword, _ = arguments(library, call, "float32", "contiguous")
        plain, error = attempt(f, *positional, **keyword)
        if error is not None or not isinstance(plain, library.Tensor):
            return None, error, plain
        if how == "resized":
            out = library.empty([0], dtype=plain.dtype)
        elif how == "strided":
            out = library.zeros([*plain.shape, 2], dtype=plain.dtype)[..., 1]
        else:
            out = library.zeros(
                list(plain.shape), dtype=library.float64 if how == "float64" else library.int32
            )
        result, error = attempt(f, *positional, **keyword, out=out)
        if error is None and result is not out:
            return None, AssertionError("the result is not out"), plain
        return out if error is None else None, error, plain

    for number, call in enumerate(entry.calls()):
        for how in ("resized", "strided", "float64", "int32"):
            expected, expected_error, _ = run(torch, theirs, call, how)
            got, error, plain = run(mica, ours, call, how)
            if isinstance(expected_error, TypeError):
                break  # torch's function takes no out
            # Every result of Mica may be cast to an `out` that can hold it; some of torch may not.
            if how in ("float64", "int32") and error is None and expected_error is not None:
                if got is not None and not mica.allclose(
                    got, plain.to(got.dtype), 1e-5, 1e-5, equal_nan=True
                ):
                    found.append(f"{how} call {number}: {got} is not the cast of {plain}")
                continue
            if (error is None) != (expected_error is None) or (
                error is not None and kind(error) != kind(expected_error)
            ):
                found.append(f"{how} call {number}: {error!r:.160}, torch {expected_error!r:.120}")
            elif expected is not None and (
                d := difference(got, expected, strides=True, loosen=1e5 if how == "float64" else 10)
            ):
                found.append(f"{how} call {number}: {d}")
    judge("torch out", name, found)


def _is_float(library: Any, x: Any) -> bool:
    return isinstance(x, library.Tensor) and x.requires_grad


def _gradients(
    library: Any, entry: Entry, f: Any, call: Call, dtype: str, layout: str
) -> tuple[list[Any], list[Any], Exception | None]:
    """First gradients and gradients of those, for fixed cotangents."""
    positional, keyword, tensors = arguments(library, call, dtype, layout, grad=True)
    result, error = attempt(f, *positional, **keyword)
    if error is not None:
        return [], [], error
    result = settled(entry.overload, result)
    results = result if isinstance(result, (tuple, list)) else [result]
    results = [r for r in results if _is_float(library, r)]
    inputs = [x for x in tensors if x.requires_grad]
    if not results or not inputs:
        return [None] * len(inputs), [], None

    def weights(like: list[Any], seed: int) -> list[Any]:
        name = both.dtype_name(like[0].dtype)
        return [
            make(
                library,
                T(tuple(x.shape), 0.5, 1.5),
                both.dtype_name(x.dtype) or name,
                "contiguous",
                seed + k,
            )
            for k, x in enumerate(like)
        ]

    first, error = attempt(both.gradients, library, results, inputs, weights(results, 7), True)
    if error is not None:
        return [], [], error
    again = [g for g in first if _is_float(library, g)]
    if not again:
        return list(first), [], None
    second, error = attempt(both.gradients, library, again, inputs, weights(again, 70), False)
    return list(first), list(second or []), error


@each("torch gradients", SAMPLED)
def test_gradients(name: str) -> None:
    entry, found = ENTRIES[name], []
    ours, theirs = function(mica, entry), function(torch, entry)
    for number, call in enumerate(entry.calls()):
        for dtype, layout in (
            ("float64", "contiguous"),
            ("float64", "transposed"),
            ("complex128", "contiguous"),
        ):
            where = _where(dtype, layout, number)
            first, second, error = _gradients(torch, entry, theirs, call, dtype, layout)
            if not first and error is not None:
                continue
            got_first, got_second, got_error = _gradients(mica, entry, ours, call, dtype, layout)
            if got_error is not None and error is None:
                found.append(f"{where}: {type(got_error).__name__}: {str(got_error).splitlines()[0]:.160}")
                continue
            for order, got, expected in (("first", got_first, first), ("second", got_second, second)):
                if [x is None for x in got] != [x is None for x in expected]:
                    if order == "first" or any(x is not None and bool((x != 0).any()) for x in expected):
                        found.append(
                            f"{where}: {order} gradients exist for {[x is not None for x in got]}, torch {[x is not None for x in expected]}"
                        )
                    continue
                pairs = [(g, e) for g, e in zip(got, expected) if e is not None]
                if d := next(filter(None, (difference(g, e, loosen=100) for g, e in pairs)), ""):
                    found.append(f"{where}: {order} gradient: {d}")
    judge("torch gradients", name, found)


@each("torch errors", ERRORS)
def test_errors(name: str) -> None:
    """What torch refuses Mica refuses, with the same kind of exception."""
    entry, found = ENTRIES[name], []
    for number, call in enumerate(ERRORS[name]):
        positional, keyword, _ = arguments(torch, call, "float32", "contiguous")
        _, expected = attempt(function(torch, entry), *positional, **keyword)
        positional, keyword, _ = arguments(mica, call, "float32", "contiguous")
        _, error = attempt(function(mica, entry), *positional, **keyword)
        assert expected is not None, f"torch accepts call {number}"
        if error is None or kind(error) != kind(expected):
            found.append(f"call {number}: {error!r:.160}, torch {expected!r:.160}")
    judge("torch errors", name, found)


def test_copy() -> None:
    """copy_ converts between all dtypes."""
    found = []
    for source in DTYPES:
        for target in DTYPES:
            results = []
            for library in (mica, torch):
                x = make(library, t(3, 4, low=0, high=100), source, "transposed", 3)
                y = library.zeros([3, 4], dtype=getattr(library, target))
                results.append(y.copy_(x))
            if d := difference(*results, strides=True):
                found.append(f"{source} to {target}: {d}")
    assert not found
