"""mica.testing.assert_close: whether two values are the same within tolerances, and what differs.

Mappings and sequences are compared item by item, tensors (and what becomes one, as arrays do),
numbers, booleans and None by value. Kinds that do not belong together raise TypeError; what
differs, or cannot be compared for its shape, dtype or place, raises AssertionError.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import mica
from mica._C import Tensor

# dtype: (rtol, atol), as torch.testing has them; whole numbers compare exactly.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
    **{name: (mica.finfo(getattr(mica, name)).eps, 1e-3) for name in dir(mica) if name.startswith("float8")},
}


class _Rules(NamedTuple):
    """The arguments of assert_close()."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *names: str) -> tuple[float, float]:
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        pairs = [_TOLERANCES.get(n, (0.0, 0.0)) for n in names]
        return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_number(value: Any) -> bool:
    numbers = (int, float, complex)
    return isinstance(value, numbers) or (
        type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0
    )


def _first_difference(actual: Any, expected: Any, rules: _Rules, path: str) -> tuple[str, str] | None:
    """What differs first, and where; None if nothing does."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            only = [
                sorted(map(repr, a.keys() - b.keys())) for a, b in ((actual, expected), (expected, actual))
            ]
            return f"The keys differ: {only[0]} are in `actual` alone, {only[1]} in `expected` alone.", path
        parts = [(actual[k], expected[k], f"[{k!r}]") for k in actual]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The sequences have {len(actual)} and {len(expected)} elements.", path
        parts = [(a, e, f"[{i}]") for i, (a, e) in enumerate(zip(actual, expected))]
    else:
        found = _leaf(actual, expected, rules)
        return (found, path) if found else None
    return next(filter(None, (_first_difference(a, e, rules, path + at) for a, e, at in parts)), None)


def _leaf(actual: Any, expected: Any, rules: _Rules) -> str:
    if actual is None or expected is None:
        return (
            "" if actual is expected else f"None is compared with ({expected if actual is None else actual})."
        )
    if isinstance(actual, bool) and isinstance(expected, bool):
        return "" if actual is expected else f"({actual}) where ({expected}) is expected."
    if _is_number(actual) and _is_number(expected):
        return _numbers(actual, expected, rules)
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if related and (rules.allow_subclasses or type(actual) is type(expected)):
        try:
            a, e = (v if isinstance(v, Tensor) else mica.as_tensor(v) for v in (actual, expected))
        except Exception:
            related = False
        else:
            return _tensors(a.detach(), e.detach(), rules)
    raise TypeError(
        f"Values of the types ({type(actual).__name__}) and ({type(expected).__name__}) cannot be compared."
    )


def _numbers(actual: Any, expected: Any, rules: _Rules) -> str:
    a, e = (v.item() if hasattr(v, "item") else v for v in (actual, expected))
    if rules.check_dtype and type(a) is not type(e):
        return f"The types ({type(a).__name__}) and ({type(e).__name__}) of the numbers differ."
    names = {float: "float64", complex: "complex128"}
    rtol, atol = rules.tolerances(*(names.get(type(v), "") for v in (a, e)))
    if a == e or (rules.equal_nan and a != a and e != e) or abs(a - e) <= atol + rtol * abs(e):
        return ""
    relative = abs(a - e) / abs(e) if e else math.inf
    return (
        f"({a}) where ({e}) is expected; the absolute difference is {abs(a - e)} (at most {atol} is allowed), "
        f"the relative one {relative} (at most {rtol})."
    )


def _tensors(a: Tensor, e: Tensor, rules: _Rules) -> str:
    if a.shape != e.shape:
        return f"The shapes {tuple(a.shape)} and {tuple(e.shape)} differ."
    if rules.check_device and a.device != e.device:
        return f"The devices ({a.device}) and ({e.device}) differ."
    if rules.check_dtype and a.dtype != e.dtype:
        return f"The dtypes ({a.dtype}) and ({e.dtype}) differ."
    if rules.check_stride and a.stride() != e.stride():
        return f"The strides {a.stride()} and {e.stride()} differ."
    if a.device.type == "meta" or e.device.type == "meta":
        return ""
    rtol, atol = rules.tolerances(*(repr(t.dtype).rpartition(".")[2] for t in (a, e)))
    common = mica.promote_types(a.dtype, e.dtype)
    if common == mica.bool:
        common = mica.int64
    wide = mica.float64 if common.is_floating_point else common
    x, y = a.cpu().to(wide), e.cpu().to(wide)
    close = mica.isclose(x, y, rtol=rtol, atol=atol, equal_nan=rules.equal_nan)
    return "" if bool(close.all()) else _describe(x, y, close, rtol, atol)


def _describe(x: Tensor, y: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    bad = (~close).reshape(-1)
    count, total = int(bad.sum()), bad.numel()
    absolute = (x - y).abs().reshape(-1).double()
    relative = absolute / y.abs().reshape(-1).double()

    def largest(values: Tensor) -> str:
        at = int(mica.where(bad, values, -1.0).argmax())
        place = tuple(int(i[0]) for i in mica.unravel_index(mica.tensor([at]), x.shape)) if x.ndim else ()
        return f"{values[at].item()} at {place}"

    return (
        f"{count} of {total} elements differ ({count / total:.1%}). The largest absolute difference is "
        f"{largest(absolute)} (at most {atol} is allowed), the largest relative one {largest(relative)} "
        f"(at most {rtol})."
    )


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raises AssertionError unless two values are equal within tolerances.

    As `torch.testing.assert_close`: `abs(actual - expected) <= atol + rtol * abs(expected)`. Mappings
    and sequences are compared item by item; Tensors and what becomes one (arrays), numbers, booleans
    and None by value.

    Args:
        actual (object): The value that a program computed.
        expected (object): The value that is right.
        allow_subclasses (bool): Compare values of a class and of a subclass. Default: True.
        rtol (float, optional): Relative tolerance; given with `atol` or not at all. Default: by the
            dtype, such as 1.3e-6 for float32, 1e-7 for float64, 1e-3 for float16, 1.6e-2 for bfloat16,
            0 for integers.
        atol (float, optional): Absolute tolerance. Default: 1e-5; 1e-7 for float64, 0 for integers.
        equal_nan (bool): Take NaN as equal to NaN. Default: False.
        check_device (bool): Devices must be equal. Default: True.
        check_dtype (bool): Dtypes, and types of numbers, must be equal. Default: True.
        check_layout (bool): No effect: all Tensors are strided. Default: True.
        check_stride (bool): Strides must be equal. Default: False.
        msg (str or callable, optional): Message of the error, or a function that makes it of the usual
            one.

    Raises:
        AssertionError: The values differ; the message says how many elements, and by how much.
        TypeError: The two kinds of values cannot be compared.
        ValueError: Only one of `rtol` and `atol` is given.

    Example:
        >>> mica.testing.assert_close(mica.tensor([1.0, 2.0]), mica.tensor([1.0, 2.0 + 1e-6]))
        >>> mica.testing.assert_close(mica.ones(2), mica.zeros(2))
        Traceback (most recent call last):
            ...
        AssertionError: 2 of 2 elements differ (100.0%). The largest absolute difference is 1.0 at (0,)...
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"`rtol` ({rtol}) and `atol` ({atol}) are given both, or none for those of the dtype."
        )
    rules = _Rules(
        allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride
    )
    found = _first_difference(actual, expected, rules, "")
    if found is not None:
        text = found[0] + (f" This is the item {found[1]}." if found[1] else "")
        raise AssertionError(msg(text) if callable(msg) else msg or text)
