"""out= and in-place forms write the elements of the given tensor and nothing beside them.

Every operator with such a form runs on its samples, into views within larger memory whose other
bytes are known: a block with a border, every other element, transposed, and one row of many. The
values must be the functional form's, and every byte outside of the view what it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compare import same
from every_operator import each, judge

import mica
from mica.conformance.batches import tensors_of
from mica.conformance.operators import ENTRIES, Entry, arguments, attempt, operator

DTYPES = ("float32", "float64", "int64", "uint8", "bool", "bfloat16", "complex64")
POISON = 0xA5
# Random operators draw again; what empty ones give is undefined.


def _border(buffer: Callable[..., Any], shape: tuple[int, ...]) -> Any:
    view = buffer(tuple(n + 3 for n in shape) or (5,))
    return view[tuple(slice(1, 1 + n) for n in shape)] if shape else view[2]


def _every_other(buffer: Callable[..., Any], shape: tuple[int, ...]) -> Any:
    view = buffer((*shape[:-1], 2 * shape[-1] + 3) if shape else (3,))
    return view[..., 1 : 1 + 2 * shape[-1] : 2] if shape else view[1]


def _transposed(buffer: Callable[..., Any], shape: tuple[int, ...]) -> Any:
    return _border(buffer, shape[::-1]).permute(*range(len(shape))[::-1]) if shape else buffer((2,))[1]


def _row(buffer: Callable[..., Any], shape: tuple[int, ...]) -> Any:
    return buffer((3, *shape))[1]


PLACES = {"border": _border, "every other": _every_other, "transposed": _transposed, "row": _row}


class Poisoned:
    """A view within poisoned memory that knows what else was there."""

    def __init__(self, like: Any, place: str) -> None:
        shape, dtype = tuple(like.shape), like.dtype
        self.bytes = None

        def buffer(sizes: tuple[int, ...]) -> Any:
            count = 1
            for n in sizes:
                count *= n
            self.bytes = mica.full((count * dtype.itemsize,), POISON, dtype=mica.uint8)
            return self.bytes.view(dtype).view(sizes)

        self.view = PLACES[place](buffer, shape)
        marks = mica.zeros(self.bytes.numel() // dtype.itemsize, dtype=mica.bool)
        marks.as_strided(shape, self.view.stride(), self.view.storage_offset()).fill_(True)
        self.outside = mica.logical_not(marks).repeat_interleave(dtype.itemsize)

    def spoiled(self) -> bool:
        """Whether a byte outside of the view is another than before."""
        return bool((self.bytes[self.outside] != POISON).any())


def calls(entry: Entry) -> Iterator[tuple[str, list[Any], dict[str, Any], list[Any]]]:
    for dtype in DTYPES:
        for call in entry.calls()[:4]:
            made, _ = attempt(arguments, mica, call, dtype, "contiguous")
            if made is None:
                continue
            result, error = attempt(operator(entry), *made[0], **made[1])
            if error is None and tensors_of(result):
                yield dtype, made[0], made[1], tensors_of(result)


def out_form(entry: Entry, count: int) -> tuple[Any, list[str], set[str]] | None:
    found = mica._C._find_operator(entry.out) if entry.out else None
    if found is None:
        return None
    schema = found._schema_info()[0]
    names = [name for name, _, _, written in schema if written]
    return (found, names, {name for name, *_ in schema}) if len(names) == count else None


def wrong_outs(entry: Entry) -> set[str]:
    wrong = set()
    for (dtype, positional, keyword, results), place in itertools.product(calls(entry), PLACES):
        form = out_form(entry, len(results))
        if form is None:
            continue
        given = [Poisoned(r, place) for r in results]
        outs = {name: g.view for name, g in zip(form[1], given)}
        kept = {k: v for k, v in keyword.items() if k in form[2]}
        if attempt(form[0], *positional, **kept, **outs)[1] is not None:
            continue
        if any(g.spoiled() for g in given):
            wrong.add(f"out= {place} {dtype}: bytes outside of the view are written")
        elif not all(same(g.view, r) for g, r in zip(given, results)):
            wrong.add(f"out= {place} {dtype}: the values are others")
    return wrong


def wrong_writes(entry: Entry) -> set[str]:
    inplace = operator(entry.inplace()) if "inplace" in entry.forms else None
    wrong: set[str] = set()
    for (dtype, positional, keyword, _), place in itertools.product(calls(entry), PLACES):
        if inplace is None or not positional or not isinstance(positional[0], mica.Tensor):
            continue
        given = Poisoned(positional[0], place)
        given.view.copy_(positional[0])
        if attempt(inplace, given.view, *positional[1:], **keyword)[1] is not None:
            continue
        if given.view.shape != positional[0].shape:
            continue
        if given.spoiled():
            wrong.add(f"in place {place} {dtype}: bytes outside of the view are written")
    return wrong


@each("writes within views", [name for name, e in ENTRIES.items() if e.calls()])
def test_nothing_beside_the_given_tensor_is_written(name: str) -> None:
    judge("writes within views", name, sorted(wrong_outs(ENTRIES[name]) | wrong_writes(ENTRIES[name])))


# Factories have few samples or none of their own.
FACTORIES: dict[str, Callable[..., Any]] = {
    "arange": lambda **o: mica.arange(6, **o),
    "arange from": lambda **o: mica.arange(1, 13, 2, **o),
    "linspace": lambda **o: mica.linspace(0, 5, 6, **o),
    "logspace": lambda **o: mica.logspace(0, 1, 6, **o),
    "randperm": lambda **o: mica.randperm(6, **o),
    "zeros": lambda **o: mica.zeros(6, **o),
    "ones": lambda **o: mica.ones(6, **o),
    "full": lambda **o: mica.full((6,), 3, **o),
}


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "float16"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FACTORIES)
def test_factories_keep_within_a_view(name: str, place: str, dtype: str) -> None:
    given = Poisoned(mica.empty(6, dtype=getattr(mica, dtype)), place)
    FACTORIES[name](out=given.view)
    assert given.view.shape == (6,) and not given.spoiled()
    if name == "randperm":
        assert sorted(given.view.tolist()) == list(range(6))
    else:
        assert same(given.view, FACTORIES[name](dtype=given.view.dtype))


@pytest.mark.parametrize("name", ["arange", "linspace", "logspace"])
def test_a_range_fills_an_out_of_as_many_elements(name: str) -> None:
    """In its own shape, as in torch."""
    out = mica.zeros(2, 3)
    FACTORIES[name](out=out)
    assert out.shape == (2, 3) and same(out.view(6), FACTORIES[name](dtype=mica.float32))


def test_results_in_out_are_named() -> None:
    x = mica.tensor([[1.0, 3.0], [2.0, 0.0]])
    values, indices = mica.empty(2), mica.empty(2, dtype=mica.int64)
    found = mica.max(x, 1, out=(values, indices))
    assert type(found) is mica.return_types.max_out
    assert found.values is values and found.indices is indices
    factors = [mica.empty(0) for _ in range(3)]
    assert mica.linalg.svd(x, out=factors).S is factors[1]
    assert isinstance(mica.var_mean(x), tuple)
