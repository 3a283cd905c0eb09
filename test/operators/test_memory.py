"""What operators allocate: nothing where the result is given, and no copy of an input otherwise.

The allocator counts. Calls are the conformance samples. For the forms that write a given tensor
the number of allocations must be 0, tensor objects included. For the functional form every
dimension is made larger, until a copy of the largest input shows beside the results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from every_operator import each, judge

import mica
from mica.conformance.batches import tensors_of
from mica.conformance.operators import ENTRIES, Entry, arguments, attempt, operator
from mica.conformance.samples import Call, T

LAYOUTS = ("contiguous", "transposed", "expanded", "offset")
DTYPES = ("float32", "int64", "bool", "complex64")
ELEMENTS = 1 << 16  # of the largest tensor of a call, at least
LARGEST = 80  # times a dimension
SLACK = 100_000  # bytes that the allocator takes for small blocks at once
COMPOSED = "decompose"  # such an operator holds what its parts give each other, and no result twice

# Whose results are the product of their inputs' sizes, too large here.
HUGE = {"kron", "diagflat"}


def _times(value: Any, factor: int) -> Any:
    if isinstance(value, T):
        return dataclasses.replace(value, shape=tuple(n * factor if n > 1 else n for n in value.shape))
    return [_times(v, factor) for v in value] if isinstance(value, list) else value


def _shapes(value: Any) -> Iterator[tuple[int, ...]]:
    if isinstance(value, T):
        yield value.shape
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _shapes(v)


def larger(call: Call) -> Call | None:
    """The call with larger tensors; None where none can grow."""

    def count(shape: tuple[int, ...], factor: int) -> int:
        product = 1
        for n in shape:
            product *= n * factor if n > 1 else n
        return product

    shapes = list(_shapes([*call.args, *call.kwargs.values()]))
    factor = 1
    while shapes and max(count(s, factor) for s in shapes) < ELEMENTS:
        factor += 1
        if factor > LARGEST:
            return None
    return Call(
        tuple(_times(a, factor) for a in call.args), {k: _times(v, factor) for k, v in call.kwargs.items()}
    )


Made = tuple[str, list[Any], dict[str, Any], Any]


def calls(entry: Entry, layouts: tuple[str, ...], change: Callable[[Call], Call | None]) -> Iterator[Made]:
    """(layout, arguments, keywords, result) in the first dtype that the operator takes."""
    for dtype in DTYPES:
        found = False
        for call in entry.calls()[:2]:
            changed = change(call)
            for layout in layouts if changed else ():
                made, _ = attempt(arguments, mica, changed, dtype, layout)
                if made is None:
                    continue
                result, error = attempt(operator(entry), *made[0], **made[1])
                if error is None and tensors_of(result):
                    found = True
                    yield layout, made[0], made[1], result
        if found:
            return


def allocations(run: Callable[[], Any]) -> int:
    """How often a call asks for memory."""
    run()  # what is made once is made
    before = mica.memory_stats("cpu")["allocations"]
    run()
    return mica.memory_stats("cpu")["allocations"] - before


def peaks(run: Callable[[], Any]) -> tuple[int, int]:
    """Bytes in use at the peak of a call, beyond what was in use before it; and beside its results."""
    run()
    mica.reset_peak_memory_stats("cpu")
    before = mica.memory_stats("cpu")["bytes_in_use"]
    result = run()
    after = mica.memory_stats("cpu")
    del result
    return after["peak_bytes_in_use"] - before, after["peak_bytes_in_use"] - after["bytes_in_use"]


def peak(run: Callable[[], Any]) -> int:
    return peaks(run)[0]


def _outs(entry: Entry, keyword: dict[str, Any], result: Any) -> tuple[Any, dict[str, Any]] | None:
    """The out= form and its keywords, with tensors that fit."""
    found = mica._C._find_operator(entry.out) if entry.out else None
    if found is None:
        return None
    schema = found._schema_info()[0]
    names = [name for name, _, _, written in schema if written]
    fitting = [mica.empty_like(r) for r in tensors_of(result)]
    if len(names) != len(fitting):
        return None
    kept = {k: v for k, v in keyword.items() if any(k == name for name, *_ in schema)}
    return found, {**kept, **dict(zip(names, fitting))}


def writing(entry: Entry) -> set[str]:
    """The forms and layouts in which a given tensor is written and memory is asked for."""
    found = set()
    for layout, positional, keyword, result in calls(entry, LAYOUTS, lambda call: call):
        out = _outs(entry, keyword, result)
        if out and attempt(out[0], *positional, **out[1])[1] is None:
            found |= (
                {f"out= {layout}"} if allocations(lambda p=positional, o=out: o[0](*p, **o[1])) else set()
            )
        inplace = operator(entry.inplace()) if "inplace" in entry.forms else None
        if inplace and attempt(inplace, *positional, **keyword)[1] is None:
            asked = allocations(lambda f=inplace, p=positional, k=keyword: f(*p, **k))
            found |= {f"in place {layout}"} if asked else set()
    return found


def copying(entry: Entry) -> set[str]:
    """The layouts in which as much memory as an input is asked for beside the results."""
    found = set()
    for layout, positional, keyword, _ in calls(entry, LAYOUTS[:3], larger):
        inputs = [x.numel() * x.itemsize for x in tensors_of([*positional, *keyword.values()])]
        if max(inputs, default=0) < 2 * SLACK:
            continue
        extra = peaks(lambda p=positional, k=keyword: operator(entry)(*p, **k))[1]
        if extra > max(max(inputs) / 2, SLACK):
            found.add(layout)
    return found


def holding(entry: Entry) -> set[str]:
    """The forms that hold more than what the functional form does beside its results."""
    found = set()
    for _, positional, keyword, result in calls(entry, LAYOUTS[:1], larger):
        sizes = [x.numel() * x.itemsize for x in tensors_of(result)]
        if max(sizes) < 2 * SLACK:
            continue
        needed = peak(lambda p=positional, k=keyword: operator(entry)(*p, **k))
        beside = max(needed - sum(sizes), 0)
        limit = beside + max(sizes) // 2
        out = _outs(entry, keyword, result)
        if out and attempt(out[0], *positional, **out[1])[1] is None:
            held = peak(lambda p=positional, o=out: o[0](*p, **o[1]))
            found |= {f"out= holds {held} bytes, the functional form {beside}"} if held > limit else set()
        inplace = operator(entry.inplace()) if "inplace" in entry.forms else None
        if inplace and attempt(inplace, *positional, **keyword)[1] is None:
            held = peak(lambda f=inplace, p=positional, k=keyword: f(*p, **k))
            found |= {f"in place {held} bytes, the functional form {beside}"} if held > limit else set()
    return found


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads have scratch of their own."""
    before = mica.get_num_threads()
    mica.set_num_threads(1)
    yield
    mica.set_num_threads(before)


# What the classes describe; the composed ones hold what their parts give each other.
MADE = [name for name, e in ENTRIES.items() if e.calls() and e.op_class != COMPOSED]
assert set(ENTRIES) >= HUGE
PARTED = [name for name, e in ENTRIES.items() if e.calls() and e.op_class == COMPOSED and name not in HUGE]


@each("memory of given results", MADE)
def test_given_results_need_no_memory(name: str) -> None:
    judge("memory of given results", name, sorted(writing(ENTRIES[name])))


# The class with the most operators takes as long as all others together.
@each("copies of inputs", MADE, slow=[name for name in MADE if ENTRIES[name].op_class == "pointwise"])
def test_inputs_are_read_in_place(name: str) -> None:
    judge("copies of inputs", name, sorted(copying(ENTRIES[name])))


@pytest.mark.slow
@each("results held twice", PARTED)
def test_composed_operators_hold_no_result_twice(name: str) -> None:
    judge("results held twice", name, sorted(holding(ENTRIES[name])))


def test_a_composed_operator_of_one_call_hands_out_on() -> None:
    x, out, wide = mica.rand(64, 64), mica.empty(64, 64), mica.ones(64, 64, dtype=mica.float64)
    whole = mica.arange(64)
    for run in (
        lambda: mica.clamp(x, 0.2, 0.8, out=out),
        lambda: mica.div(x, x, rounding_mode="floor", out=out),
        lambda: mica.ldexp(x, x, out=out),
        lambda: mica.ldexp(x, whole, out=out),
        lambda: out.ldexp_(x),
        lambda: mica.mvlgamma(x, 3, out=out),
        lambda: mica.float_power(x, 3, out=wide),
        lambda: mica.float_power(x, x, out=wide),
        lambda: mica.float_power(3, x, out=wide),
        lambda: wide.float_power_(x),
        lambda: mica.angle(x, out=out),
    ):
        assert allocations(run) == 0
    assert mica.equal(out, mica.angle(x))


def test_composed_operators_write_where_their_last_part_does() -> None:
    x = mica.rand(256, 256)
    for run in (
        lambda: x.clamp_(0.2, 0.8),
        lambda: x.nan_to_num_(0.5),
        lambda: mica.t_copy(x[:128, :128], out=x[128:, :128]),
    ):
        assert peak(run) < SLACK


def test_composed_operators_of_one_program_make_their_result_alone() -> None:
    x = mica.rand(256, 256) + 3
    result = allocations(lambda: mica.add(x, x))
    for run in (
        lambda: mica.ldexp(x, x),
        lambda: mica.mvlgamma(x, 3),
        lambda: mica.float_power(x, x),
        lambda: mica.float_power(x, 2),
        lambda: mica.float_power(2, x),
    ):
        assert allocations(run) == result


@pytest.mark.parametrize("name", ["unbind_copy", "split_copy", "split_with_sizes_copy"])
def test_lists_of_results_are_written_where_given(name: str) -> None:
    x = mica.rand(3, 256, 256)
    run, how = (
        getattr(mica, name),
        {"unbind_copy": (), "split_copy": (1,), "split_with_sizes_copy": ([1, 2],)},
    )
    wanted = run(x, *how[name])
    out = [mica.empty(0), *(mica.empty_like(w) for w in wanted[1:])]
    assert run(x, *how[name], out=out) is None
    assert all(mica.equal(a, b) for a, b in zip(out, wanted))
    assert peak(lambda: run(x, *how[name], out=out)) < SLACK
    with pytest.raises(RuntimeError, match=r"number \(1\) of tensors in `out`"):
        run(x, *how[name], out=out[:1])
    with pytest.raises(RuntimeError, match=r"float32\), which cannot be cast to the dtype \(mica.int64"):
        run(x, *how[name], out=[mica.empty(0, dtype=mica.int64), *out[1:]])


def test_a_copy_would_be_seen() -> None:
    x = mica.zeros(256, 256)
    assert allocations(lambda: mica.add(x, x, out=x)) == 0
    assert allocations(lambda: mica.add(x, x.clone(), out=x)) > 0
    assert peak(lambda: x.sum()) < SLACK
    assert peak(lambda: x.t().contiguous().sum()) > 2 * SLACK


PARTS: dict[str, Callable[[Any], list[Any]]] = {
    "select": lambda x: [x[k] for k in range(len(x))],
    "unbind": lambda x: list(x.unbind()),
    "narrow": lambda x: [x.narrow(0, k, 1) for k in range(len(x))],
    "split": lambda x: list(x.split(1)),
    "slice": lambda x: [x[k : k + 1] for k in range(len(x))],
    "diagonal": lambda x: [x.diagonal(k) for k in range(len(x))],
}


@pytest.mark.parametrize("how", PARTS)
def test_gradients_of_parts_are_added_in_place(how: str) -> None:
    """A loop over parts holds one gradient of full size, and fills no other for each part."""
    x = mica.ones(24, 4096, requires_grad=True)
    total = sum((part.sum() for part in PARTS[how](x)), mica.zeros(()))
    mica.reset_peak_memory_stats("cpu")
    before = mica.memory_stats("cpu")["bytes_in_use"]
    total.backward()
    found = mica.memory_stats("cpu")["peak_bytes_in_use"] - before
    assert found < 1.5 * x.numel() * 4 + SLACK
    assert x.grad is not None
    elements = sum(part.numel() for part in PARTS[how](x))
    assert x.grad.sum().item() == elements and x.grad.max().item() == 1
