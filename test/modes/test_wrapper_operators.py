"""Every operator on a wrapper subclass, from the data of mica.conformance: where the subclass
computes with what it wraps, the values of plain tensors; where its dispatch is switched off, an
error. A wrapper has no memory, so that whatever reads some is a crash here."""

from __future__ import annotations

from typing import Any

import pytest

import mica
from mica.conformance.operators import ENTRIES, Entry, arguments, attempt, operator
from mica.utils._pytree import tree_map
from mica.utils.python_dispatch import no_dispatch, return_and_correct_aliasing

pytestmark = pytest.mark.slow
# Memory that nobody wrote yet differs from run to run.
UNWRITTEN = ("empty", "new_empty", "_empty")


class Wrapped(mica.Tensor):
    inner: mica.Tensor

    @staticmethod
    def __new__(cls: Any, inner: mica.Tensor) -> Any:
        self = mica.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
        )
        self.inner = inner
        return self

    @classmethod
    def __mica_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = tree_map(wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {})))
        return return_and_correct_aliasing(func, args, kwargs or {}, out)


def wrap(x: Any) -> Any:
    return Wrapped(x) if type(x) is mica.Tensor else x


def unwrap(x: Any) -> Any:
    return x.inner if type(x) is Wrapped else x


def same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if not isinstance(a, mica.Tensor):
        return bool(a == b) or (a != a and b != b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.dtype.is_floating_point and not a.dtype.is_complex:
        return bool((a == b).all())
    a, b = (mica.view_as_real(t.resolve_conj()) if t.dtype.is_complex else t for t in (a, b))
    return bool(mica.isclose(a.double(), b.double(), rtol=1e-9, atol=1e-9, equal_nan=True).all())


def cases(entry: Entry) -> Any:
    forms = [operator(entry)]
    if "inplace" in entry.forms:
        forms.append(operator(entry.inplace()))
    for call in entry.calls():
        for f in forms:
            yield f, call


def run(f: Any, call: Any, change: Any) -> tuple[Any, Exception | None]:
    positional, keyword, _ = arguments(mica, call, "float64", "contiguous")
    mica.manual_seed(0)
    return attempt(f, *tree_map(change, positional), **tree_map(change, keyword))


@pytest.mark.parametrize("name", sorted(n for n, e in ENTRIES.items() if e.calls()))
def test_operator(name: str) -> None:
    entry = ENTRIES[name]
    for f, call in cases(entry):
        plain, refused = run(f, call, lambda x: x)
        wrapped, error = run(f, call, wrap)
        if isinstance(error, NotImplementedError) and "wrapper subclass" in str(error):
            continue  # it reads values by itself, and says so
        if refused is not None or error is not None:
            assert type(refused) is type(error), f"{call}: {refused!r} and {error!r}"
        elif not name.startswith(UNWRITTEN):
            assert same(plain, tree_map(unwrap, wrapped)), f"{call}: {plain} and {wrapped}"


@pytest.mark.parametrize("name", sorted(n for n, e in ENTRIES.items() if e.calls()))
def test_operator_without_dispatch(name: str) -> None:
    for f, call in cases(ENTRIES[name]):
        with no_dispatch():
            result, error = run(f, call, wrap)
        if error is None:  # it needs no memory: a question of shape, or no tensor given
            assert type(result) is not Wrapped or result.inner is not None


def test_views_without_dispatch_have_no_memory_either() -> None:
    x = Wrapped(mica.arange(6.0).view(2, 3))
    plain = mica.ones(2)
    with no_dispatch():
        column = x.t()[1]
        plain.set_(column)
        for view in (column, plain):
            assert (view.shape, view.stride(), view.storage_offset()) == ((2,), (3,), 1)
            with pytest.raises(RuntimeError, match="no memory of its own"):
                view + 1
    for view in (column, plain):
        with pytest.raises(NotImplementedError, match="no memory of its own"):
            view.tolist()
