"""The checks of operators: each runs sample calls on the device and where it is compared.

`CHECKS` lists them. A check says which cases an operator has in a dtype, and how one is
run on a device; `check_operator` runs both sides and gives rows. `show` runs one case
again and prints what it finds: every failure of a report carries such a line.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import mica
from mica.conformance.operators import DTYPES, ENTRIES, LAYOUTS, Entry, arguments, attempt, make, operator
from mica.conformance.reference import (
    baseline,
    difference,
    dtype_name,
    magnitudes,
    moved,
    spacing,
    to_numpy,
    widened,
)
from mica.conformance.results import Row
from mica.conformance.samples import CANCELS, CONDITIONED, ERRORS, Call, T
from mica.conformance.samples_linalg import NEEDS_RANK

# One dtype of each kind goes through all layouts, the others through the first.
_LAYOUT_DTYPES = ("float32", "int64", "complex64", "bool")
# Operators whose results' strides are part of their meaning.
_STRIDED = ("pointwise", "view")
# Of equal elements any index is right: only the values are compared.
_ANY_INDEX = ("median.dim", "kthvalue", "topk", "sort")
_ONLY_INDEX = ("argsort",)


@dataclass(frozen=True)
class Case:
    """One call of one operator, as data."""

    check: str
    entry: Entry
    call: Call
    dtype: str
    layout: str = "contiguous"
    how: str = ""

    def line(self, device: str) -> str:
        """The Python line that shows it again."""
        parts = [*map(repr, self.call.args), *(f"{k}={v!r}" for k, v in self.call.kwargs.items())]
        options = f"check={self.check!r}, dtype={self.dtype!r}, layout={self.layout!r}, how={self.how!r}"
        return f"show({device!r}, {self.entry.overload!r}, args({', '.join(parts)}), {options})"


# Maps each tensor and dtype of a call before it runs, or leaves them.
Change = Callable[[Any], Any] | None


def _changed(value: Any, change: Change) -> Any:
    if change is None:
        return value
    if isinstance(value, list):
        return [_changed(v, change) for v in value]
    return change(value) if isinstance(value, (mica.Tensor, mica.dtype)) else value


def made(case: Case, device: str, change: Change, grad: bool = False) -> tuple[list[Any], dict[str, Any]]:
    positional, keyword, _ = arguments(mica, case.call, case.dtype, case.layout, grad=grad, device=device)
    return [_changed(a, change) for a in positional], {k: _changed(v, change) for k, v in keyword.items()}


def _on(device: str, case: Case, keyword: dict[str, Any]) -> dict[str, Any]:
    """Factories have no tensor that says the device."""
    names = [name for kind, name, _ in case.entry.arguments if kind.startswith("Device")]
    is_factory = names and not described([*case.call.args, *case.call.kwargs.values()])
    return {**keyword, names[0]: mica.device(device)} if is_factory else keyword


def _run_value(case: Case, device: str, change: Change) -> Any:
    positional, keyword = made(case, device, change)
    return operator(case.entry)(*positional, **_on(device, case, keyword))


def _run_inplace(case: Case, device: str, change: Change) -> Any:
    positional, keyword = made(case, device, change)
    result = operator(case.entry.inplace())(*positional, **keyword)
    if result is not positional[0]:
        raise AssertionError("The result is not the tensor that was written.")
    return result


def _run_out(case: Case, device: str, change: Change) -> Any:
    positional, keyword = made(case, device, change)
    keyword = _on(device, case, keyword)
    plain = operator(case.entry)(*positional, **keyword)
    found = mica._C._find_operator(case.entry.out)
    schema = found._schema_info()[0]
    keyword = {k: v for k, v in keyword.items() if any(k == name for name, *_ in schema)}
    names = [name for name, _, _, written in schema if written]
    outs = []
    for like in plain if isinstance(plain, (tuple, list)) else [plain]:
        options = {"dtype": like.dtype, "device": like.device}
        if case.how == "resized":
            outs.append(mica.empty([0], **options))
        else:
            outs.append(mica.zeros([*like.shape, 2], **options)[..., 1])
    result = found(*positional, **keyword, **dict(zip(names, outs)))
    given = result if isinstance(result, (tuple, list)) else [result]
    if any(g is not o for g, o in zip(given, outs)):
        raise AssertionError("The result is not `out`.")
    return outs if len(outs) > 1 else outs[0]


def _run_gradient(case: Case, device: str, change: Change) -> Any:
    positional, keyword = made(case, device, change)
    tensors = flat([*positional, *keyword.values()])
    samples = described([*case.call.args, *case.call.kwargs.values()])
    leaves = [x for x, d in zip(tensors, samples) if d.grad and x.dtype.is_floating_point]
    for leaf in leaves:
        leaf.requires_grad_()
    result = operator(case.entry)(*positional, **keyword)
    results = [r for r in flat(result) if r.requires_grad]
    cotangents = []
    for k, r in enumerate(results):
        like = T(tuple(r.shape), 0.5, 1.5)
        seed = zlib.crc32(repr((k, like.shape)).encode())
        cotangents.append(make(mica, like, case.dtype, "contiguous", seed, device=device).to(r.dtype))
    if not results:
        return []
    grads = mica._C._gradients(results, leaves, cotangents, False, False, True, False)
    return [g for g in grads if g is not None]


def flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in flat(v)]
    return [value] if isinstance(value, mica.Tensor) else []


def described(value: Any) -> list[T]:
    if isinstance(value, list):
        return [x for v in value for x in described(v)]
    return [value] if isinstance(value, T) else []


def _value_cases(entry: Entry, dtype: str) -> Iterator[Case]:
    for call in entry.calls():
        if not described([*call.args, *call.kwargs.values()]) and dtype != "float32":
            continue  # a factory: its dtype stands in the call
        for layout in LAYOUTS if dtype in _LAYOUT_DTYPES else LAYOUTS[:1]:
            if layout == "expanded" and entry.overload in NEEDS_RANK:
                continue  # equal rows: rounding decides the answer
            yield Case("value", entry, call, dtype, layout)


def _inplace_cases(entry: Entry, dtype: str) -> Iterator[Case]:
    if "inplace" in entry.forms:
        for call in entry.calls():
            for layout in ("contiguous", "sliced") if dtype in _LAYOUT_DTYPES else ("contiguous",):
                yield Case("inplace", entry, call, dtype, layout)


def _out_cases(entry: Entry, dtype: str) -> Iterator[Case]:
    if "out" in entry.forms and dtype in _LAYOUT_DTYPES:
        for call in entry.calls():
            for how in ("resized", "strided"):
                yield Case("out", entry, call, dtype, how=how)


def _gradient_cases(entry: Entry, dtype: str) -> Iterator[Case]:
    if entry.differentiable and dtype == "float32":
        for call in entry.calls()[:2]:
            yield Case("gradient", entry, call, dtype)


def _error_cases(entry: Entry, dtype: str) -> Iterator[Case]:
    if dtype == "float32":
        for call in ERRORS.get(entry.overload, []):
            yield Case("error", entry, call, dtype)


@dataclass(frozen=True)
class Check:
    """How the cases of one check are found and run; `about` is for the report."""

    about: str
    cases: Callable[[Entry, str], Iterator[Case]]
    run: Callable[[Case, str, Change], Any]
    compared: bool = True  # False: a run compares for itself, and raises


# transform_checks.py adds to it.
CHECKS = {
    "value": Check("values, shapes, dtypes and strides of results", _value_cases, _run_value),
    "inplace": Check("the in-place form writes its tensor", _inplace_cases, _run_inplace),
    "out": Check("out= of another size, and with strides of its own", _out_cases, _run_out),
    "gradient": Check("gradients for fixed cotangents", _gradient_cases, _run_gradient),
    "error": Check("calls that must be refused, with the same kind of exception", _error_cases, _run_value),
}


@dataclass
class Expected:
    """What a case gives where it is compared."""

    result: Any
    error: Exception | None
    wide: Any = None
    magnitude: Any = None
    meta: Any = None


def _largest(*tensors: Any) -> float:
    return max((float(np.abs(to_numpy(x)).max()) for x in tensors if x.numel()), default=0.0)


def _filled(like: Any, value: float) -> Any:
    return mica.full(list(like.shape), value, dtype=widened(like).dtype)


def _condition(case: Case, wide: Any) -> Any:
    """The scale of each result: how many roundings it moves when each input moves by one in each step
    of an elimination, of which there are as many as rows; or its largest element."""
    results = flat(wide)
    steps = max((n for x in flat(made(case, "cpu", None)[0]) for n in x.shape), default=1)
    scales = [_largest(r) for r in results]
    for run in (1, 2, 3):
        other, _ = attempt(CHECKS[case.check].run, case, "cpu", lambda x, run=run: moved(x, case.dtype, run))
        for k, (a, b) in enumerate(zip(results, flat(other))):
            if a.numel():
                apart = np.nan_to_num(np.abs(to_numpy(a) - to_numpy(b)), posinf=0).max()
                scales[k] = max(scales[k], steps * float(apart) / spacing(case.dtype))
    filled = [_filled(r, scale) for r, scale in zip(results, scales)]
    return filled[0] if isinstance(wide, mica.Tensor) else filled


def _expect(case: Case) -> Expected:
    run = CHECKS[case.check].run
    if not CHECKS[case.check].compared:
        _, error = attempt(run, case, "cpu", None)
        return Expected([], error if isinstance(error, NotImplementedError) else None)
    result, error = attempt(run, case, "cpu", None)
    expected = Expected(result, error)
    if error is None and ("float" in case.dtype or "complex" in case.dtype):
        expected.wide, _ = attempt(run, case, "cpu", widened)
        if case.entry.overload in CONDITIONED:
            expected.magnitude = _condition(case, expected.wide)
        elif case.check == "gradient":  # sums over paths, at the scale of the gradient and the cotangents
            expected.magnitude = [_filled(g, max(_largest(g), 1)) for g in flat(expected.wide)]
        elif case.entry.op_class != "pointwise":
            expected.magnitude, _ = attempt(run, case, "cpu", magnitudes)
    if error is None and case.entry.overload in CANCELS and case.check != "gradient":
        expected.magnitude = _filled(result, _largest(*flat(made(case, "cpu", None)[0])))
    if error is None and case.check == "value":
        expected.meta, _ = attempt(run, case, "meta", None)
    return expected


def kind(error: BaseException) -> str:
    """The exception's kind, as Python code would catch it."""
    for base in (NotImplementedError, IndexError, TypeError, ValueError, OverflowError, ZeroDivisionError):
        if isinstance(error, base):
            return base.__name__
    return "RuntimeError" if isinstance(error, RuntimeError) else type(error).__name__


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def _run(case: Case, device: str) -> Any:
    """What the check gives, once the device is done: its errors may come late."""
    got = CHECKS[case.check].run(case, device, None)
    if mica.device(device).type != "cpu":
        mica.synchronize(device)
    return got


def _judge(case: Case, device: str, expected: Expected, row: Row) -> None:
    got, error = attempt(_run, case, device)
    if isinstance(error, NotImplementedError):
        if expected.error is None:
            row.say_unsupported(_first_line(error))
        return
    if expected.error is not None:
        if isinstance(expected.error, (NotImplementedError, AssertionError)):
            return
        if error is None:
            row.fail(
                f"accepted; expected {kind(expected.error)} ({_first_line(expected.error)})",
                case.line(device),
            )
        elif kind(error) != kind(expected.error):
            detail = f"{kind(error)} ({_first_line(error)}); expected {kind(expected.error)} ({_first_line(expected.error)})"
            row.fail(detail, case.line(device))
        elif case.check == "error":
            row.passed += 1
        return
    if error is not None:
        row.fail(f"{type(error).__name__}: {_first_line(error)}", case.line(device))
        return
    if found := _wrong(case, device, got, expected):
        row.fail(found, case.line(device))
    else:
        row.passed += 1


def _wrong(case: Case, device: str, got: Any, expected: Expected) -> str:
    base, wide, magnitude = expected.result, expected.wide, expected.magnitude
    name = case.entry.overload
    if case.check in ("value", "vmap"):
        if name in _ANY_INDEX:
            got, base, wide, magnitude = got[0], base[0], None, None
        elif name in _ONLY_INDEX:
            got, base, wide, magnitude = got.sort(-1)[0], base.sort(-1)[0], None, None
    if case.check == "value" and (found := _form_wrong(got, expected.meta, case.entry.op_class in _STRIDED)):
        return found
    return difference(
        got,
        base,
        wide=wide,
        magnitude=magnitude,
        op_class="" if case.check == "gradient" else case.entry.op_class,
        strides=case.check in ("inplace", "out") or case.entry.op_class in _STRIDED,
        device=device,
    )


def _form_wrong(got: Any, meta: Any, strides: bool) -> str:
    """Whether the meta function promised another shape or dtype, or other strides if they are asked for."""
    for g, m in zip(flat(got), flat(meta)):
        forms = {"shape": (g.shape, m.shape), "dtype": (g.dtype, m.dtype)}
        if strides and g.numel():
            forms["stride"] = (g.stride(), m.stride())
        for what, (given, promised) in forms.items():
            if given != promised:
                return f"the {what} is {given}; the meta function promises {promised}"
    return ""


def check_operator(
    entry: Entry,
    device: str,
    dtypes: list[str],
    checks: list[str],
    watch: Callable[[str], None] = lambda line: None,
) -> list[Row]:
    """The rows of one operator; rows without a case are left out. `watch` is told each case before it runs."""
    cases = [case for c in checks for dtype in dtypes for case in CHECKS[c].cases(entry, dtype)]
    with baseline(device):
        expected = [_expect(case) for case in cases]
    rows: dict[tuple[str, str], Row] = {}
    for case, e in zip(cases, expected):
        row = rows.setdefault((case.check, case.dtype), Row(case.check, entry.overload, case.dtype))
        watch(case.line(device))
        start = time.perf_counter()
        _judge(case, device, e, row)
        row.seconds += time.perf_counter() - start
    return [row for row in rows.values() if row.cases]


def chosen(words: list[str]) -> list[Entry]:
    """The entries of these names ("add" or "add.Tensor"); all that have samples if none is given."""
    known = {name for e in ENTRIES.values() for name in (e.base, e.overload)}
    for word in words:
        if word not in known:
            raise ValueError(f"No operator is named ({word}).")
    return [e for e in ENTRIES.values() if e.calls() and (not words or {e.base, e.overload} & set(words))]


def show(
    device: str,
    overload: str,
    call: Call,
    *,
    check: str = "value",
    dtype: str = "float32",
    layout: str = "contiguous",
    how: str = "",
) -> None:
    """Runs one case on the device and where it is compared, and prints both and the verdict."""
    case = Case(check, ENTRIES[overload], call, dtype, layout, how)
    with baseline(device):
        expected = _expect(case)
    row = Row(check, overload, dtype)
    print("expected:", expected.result if expected.error is None else repr(expected.error))
    got, error = attempt(_run, case, device)
    print("given:", got if error is None else repr(error))
    _judge(case, device, expected, row)
    print("verdict:", row.verdict, *(f.detail for f in row.failures), row.reason)


ALL_DTYPES = DTYPES
__all__ = ["ALL_DTYPES", "CHECKS", "check_operator", "chosen", "dtype_name", "show"]
