"""Names of torch.Tensor that Mica's lacks: the error says so, and names the page of what is there."""

from __future__ import annotations

import pytest
import torch

import mica
from mica._tensor.absent import _LACKING

LISTED = sorted(name for names in _LACKING.values() for name in names.split())


def test_the_list_is_what_is_lacking() -> None:
    lacking = [n for n in dir(torch.Tensor) if not n.startswith("_") and not hasattr(mica.Tensor, n)]
    assert sorted(lacking) == LISTED


@pytest.mark.parametrize("name", LISTED)
def test_asking_for_it_names_it_and_the_page(name: str) -> None:
    x = mica.ones(2)
    assert not hasattr(x, name) and getattr(x, name, 3) == 3
    with pytest.raises(
        AttributeError, match=rf"'Tensor' object has no attribute '{name}'.*torch_coverage"
    ) as e:
        getattr(x, name)
    assert e.value.name == name and e.value.obj is x


def test_others_may_have_something_of_the_name() -> None:
    class Sparse(mica.Tensor):
        def values(self) -> int:
            return 1

    assert mica.ones(2).as_subclass(Sparse).values() == 1
    x = mica.ones(2)
    x.indices = 7  # type: ignore[attr-defined]
    assert x.indices == 7  # type: ignore[attr-defined]
    assert not hasattr(mica.ones(2), "indices") and not hasattr(mica.ones(2), "nowhere")


def test_dir_leaves_them_out() -> None:
    class Sparse(mica.Tensor):
        def values(self) -> int:
            return 1

    x = mica.ones(2, 2).as_subclass(Sparse)
    x.indices = 7  # type: ignore[attr-defined]
    assert {"values", "indices", "shape", "add", "__add__"} <= set(dir(x)) and "to_sparse" not in dir(x)
    for library in (mica, torch):
        x = library.ones(2, 2)
        assert [name for name in dir(x) if name != "imag" and not hasattr(x, name)] == []
