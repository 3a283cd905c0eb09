"""Every operator on a wrapper subclass, from the data of mica.conformance: where the subclass
computes with what it wraps, the values of plain tensors; where its dispatch is switched off, an
error. A wrapper has no memory, so that whatever reads some is a crash here."""

from __future__ import annotations

from typing import Any

import pytest
from compare import unlike
from every_operator import each, judge

import mica
from mica.conformance.operators import ENTRIES, Entry, arguments, attempt, operator
from mica.utils._pytree import tree_map
from mica.utils.python_dispatch import no_dispatch, return_and_correct_aliasing

pytestmark = pytest.mark.slow
NAMES = sorted(n for n, e in ENTRIES.items() if e.calls())


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


@each("wrappers", NAMES)
def test_operator(name: str) -> None:
    found = []
    for f, call in cases(ENTRIES[name]):
        plain, refused = run(f, call, lambda x: x)
        wrapped, error = run(f, call, wrap)
        if isinstance(error, NotImplementedError) and "wrapper subclass" in str(error):
            continue  # it reads values by itself, and says so
        if refused is not None or error is not None:
            wrong = "" if type(refused) is type(error) else f"{error!r} instead of {refused!r}"
        else:
            wrong = unlike(tree_map(unwrap, wrapped), plain, 1e-9)
        if wrong:
            found.append(f"{call}: {wrong}")
    judge("wrappers", name, found)


@pytest.mark.parametrize("name", NAMES)
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
