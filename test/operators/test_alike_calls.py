"""The usual call of a pointwise operator gives what any other call gives.

Dense tensors of one shape and dtype go a way of their own (dispatcher/calls/alike.h, and the CPU engine's
for one block). Every pointwise operator runs on such tensors and on copies of them that are not dense, in
every form and dtype: values, dtypes, shapes and strides of the results must be equal, and so must versions,
what inference mode marks, and errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compare import unlike
from every_operator import each, judge

import mica
from mica.conformance.batches import tensors_of
from mica.conformance.operators import DTYPES, ENTRIES, Entry, T, arguments, attempt, operator

# 1, 5 and 6 dimensions, as many as a tensor holds within itself and more; one and two blocks of the engine.
SHAPES = ((5,), (2, 3), (2, 1, 3, 1, 2), (1, 2, 1, 2, 1, 3), (1100,))
POINTWISE = [name for name, e in ENTRIES.items() if e.op_class == "pointwise" and e.calls()]


def apart(x: Any) -> Any:
    """The same elements, each beside one of no meaning."""
    if not isinstance(x, mica.Tensor):
        return x
    wide = mica.ones((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype)
    return wide[..., ::2].copy_(x)


def calls(entry: Entry, shape: tuple[int, ...]) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """The sample calls in every dtype, all their tensors of the shape."""

    def shaped(value: Any) -> Any:
        return replace(value, shape=shape) if isinstance(value, T) else value

    for dtype in DTYPES:
        seen = set()
        for call in entry.calls():
            args, kwargs = tuple(map(shaped, call.args)), {k: shaped(v) for k, v in call.kwargs.items()}
            if repr((args, kwargs)) in seen:
                continue
            seen.add(repr((args, kwargs)))
            made, _ = attempt(arguments, mica, type(call)(args, kwargs), dtype, "contiguous")
            if made is not None:
                yield dtype, made[0], made[1]


def shown(x: mica.Tensor) -> np.ndarray:
    x = x.detach().resolve_conj()
    return (x.float() if x.dtype == mica.bfloat16 else x).numpy()


def unequal(got: mica.Tensor, expected: mica.Tensor, strides: bool = True) -> str:
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{tuple(got.shape)} instead of {expected.dtype}{tuple(expected.shape)}"
    if strides and got.stride() != expected.stride():
        return f"strides {got.stride()} instead of {expected.stride()}"
    if got.is_inference() != expected.is_inference():
        return "another mark of inference mode"
    a, b = shown(got), shown(expected)
    return "" if np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") else f"{a.ravel()[:4]}, {b.ravel()[:4]}"


def sentence(error: Exception | None) -> str:
    return "" if error is None else f"{type(error).__name__}: {str(error).splitlines()[0]}"


def outcome(run: Any, run_apart: Any, strides: bool = True) -> str:
    """What differs between the results, lists of tensors, or between the errors."""
    (got, error), (expected, other) = attempt(run), attempt(run_apart)
    if sentence(error) != sentence(other):
        return f"{sentence(error) or 'no error'} instead of {sentence(other) or 'none'}"
    if error is not None:
        return ""
    return next(filter(None, (unequal(g, e, strides) for g, e in zip(got, expected))), "")


def written(given: mica.Tensor, write: Any) -> list[mica.Tensor]:
    """The tensor that `write` writes, and by how much its version grows."""
    before = given._version
    write()
    return [given, mica.tensor(given._version - before)]


def forms(entry: Entry, args: list[Any], kwargs: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(form, what differs) of one call."""
    functional, inplace = operator(entry), operator(entry.inplace()) if "inplace" in entry.forms else None
    far, kept = [apart(x) for x in args], {k: apart(v) for k, v in kwargs.items()}

    def run(values: list[Any], named: dict[str, Any]) -> list[Any]:
        return tensors_of(functional(*values, **named))

    yield "functional", outcome(lambda: run(args, kwargs), lambda: run(far, kept))
    with mica.inference_mode():
        yield "inference mode", outcome(lambda: run(args, kwargs), lambda: run(far, kept))
    if inplace is not None and isinstance(args[0], mica.Tensor):

        def write(self: Any, values: list[Any], named: dict[str, Any]) -> list[Any]:
            return written(self, lambda: inplace(self, *values[1:], **named))

        yield (
            "in place",
            outcome(
                lambda: write(args[0].clone(), args, kwargs), lambda: write(apart(args[0]), far, kept), False
            ),
        )
    out = mica._C._find_operator(entry.out) if entry.out else None
    result, error = attempt(run, args, kwargs)
    if out is None or error is not None or len(result) != 1:
        return
    (name,) = [name for name, _, _, written in out._schema_info()[0] if written]

    def into(given: Any, values: list[Any], named: dict[str, Any]) -> list[Any]:
        return written(given, lambda: out(*values, **named, **{name: given}))

    for dtype in {result[0].dtype, mica.float64}:
        given = result[0].to(dtype, copy=True)
        yield (
            f"out= {dtype}",
            outcome(lambda g=given: into(g, args, kwargs), lambda g=given: into(apart(g), far, kept), False),
        )
    if isinstance(args[0], mica.Tensor):
        twin, far_twin = args[0].clone(), apart(args[0])
        yield (
            "out= an input",
            outcome(
                lambda: into(twin, [twin, *args[1:]], kwargs),
                lambda: into(far_twin, [far_twin, *far[1:]], kept),
                False,
            ),
        )


def wrong(entry: Entry) -> set[str]:
    return {
        f"{form} {dtype}{list(shape)}: {difference}"
        for shape in SHAPES
        for dtype, args, kwargs in calls(entry, shape)
        for form, difference in forms(entry, args, kwargs)
        if difference
    }


@each("alike calls", POINTWISE)
def test_dense_tensors_give_what_others_give(name: str) -> None:
    judge("alike calls", name, sorted(wrong(ENTRIES[name])))


@each("alike calls of one element", POINTWISE)
def test_single_elements_give_what_rows_give(name: str) -> None:
    """A tensor of one element is dense however it lies: it must give what it gives as an expanded row."""
    entry, found = ENTRIES[name], []
    for shape in ((), (1,)):
        for dtype, args, kwargs in calls(entry, shape):
            row = [x.expand(5) if isinstance(x, mica.Tensor) else x for x in args]
            named = {k: v.expand(5) if isinstance(v, mica.Tensor) else v for k, v in kwargs.items()}
            (got, error), (expected, other) = (
                attempt(operator(entry), *args, **kwargs),
                attempt(operator(entry), *row, **named),
            )
            if error is not None or other is not None:
                continue  # some take values of no dimension alone
            for g, e in zip(tensors_of(got), tensors_of(expected)):
                if difference := unlike(g, e[0].reshape(shape)):
                    found.append(f"{dtype}{list(shape)}: {difference}")
    judge("alike calls of one element", name, found)


@each("alike calls of nothing", POINTWISE)
def test_empty_tensors_give_empty_ones(name: str) -> None:
    entry, found = ENTRIES[name], []
    some, none = list(calls(entry, (2, 3))), list(calls(entry, (0, 3)))
    for (dtype, args, kwargs), (_, no_args, no_kwargs) in zip(some, none):
        expected, error = attempt(operator(entry), *args, **kwargs)
        got, other = attempt(operator(entry), *no_args, **no_kwargs)
        if error is not None or other is not None:
            continue  # divisions by zero need an element
        for g, e in zip(tensors_of(got), tensors_of(expected)):
            if (g.dtype, tuple(g.shape), g.stride()) != (e.dtype, (0, 3), (3, 1)):
                found.append(f"{dtype}: {g.dtype}{tuple(g.shape)}, strides {g.stride()}")
    judge("alike calls of nothing", name, found)


def test_an_output_that_shares_a_part_of_an_input_is_refused() -> None:
    memory = mica.arange(9.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        mica.mul(memory[:8], memory[:8], out=memory[1:])
    with pytest.raises(RuntimeError, match="single memory location"):
        memory[1:].mul_(memory[:8])


def test_an_output_may_be_an_input_of_another_dtype() -> None:
    x = mica.tensor([0, 1, 2, 3], dtype=mica.uint8)
    assert mica.logical_not(x, out=x.view(mica.bool)).tolist() == [True, False, False, False]
    y = mica.arange(4, dtype=mica.int32)
    assert mica.add(y, 1.5, out=y.view(mica.float32)).tolist() == [1.5, 2.5, 3.5, 4.5]


def test_wrapped_numbers_promote_nothing() -> None:
    x = mica.ones(4, dtype=mica.float16)
    number = mica.tensor(2.0, dtype=mica.float64)
    assert (x * number).dtype == mica.float16 and (x * 2.5).dtype == mica.float16
    assert (number * number).dtype == mica.float64
    assert (mica.ones(4, dtype=mica.int64) * 2.5).dtype == mica.get_default_dtype()


def test_inference_tensors_are_not_written_outside() -> None:
    with mica.inference_mode():
        x = mica.ones(4)
        x.mul_(x)
    with pytest.raises(RuntimeError, match="inference"):
        x.mul_(x)
    with pytest.raises(RuntimeError, match="inference"):
        mica.mul(mica.ones(4), mica.ones(4), out=x)


@pytest.mark.parametrize("name", ["add", "sub"])
@pytest.mark.parametrize("make", [lambda x: x, apart], ids=["dense", "not dense"])
def test_a_truth_value_is_no_factor_of_numbers(name: str, make: Any) -> None:
    x = make(mica.ones(2, 3))
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
        getattr(mica, name)(x, x, alpha=True)
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
        getattr(x, name + "_")(x, alpha=True)
