"""multiprocessing.reductions.StorageWeakRef: a storage by itself, and whether it is still there."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
import torch.multiprocessing.reductions

import mica
import mica.multiprocessing


@pytest.mark.parametrize("library", [mica, torch], ids=["mica", "torch"])
def test_storages_are_known_again_and_not_kept(library: Any) -> None:
    kind = library.multiprocessing.reductions.StorageWeakRef
    x = library.ones(4)
    view, other = x[1:].view(3), library.ones(4)
    first, second, third = (kind(t.untyped_storage()) for t in (x, view, other))
    assert first == second and first != third and hash(first) == hash(second)
    assert len({first, second, third}) == 2
    del x
    gc.collect()
    assert not first.expired()
    del view
    gc.collect()
    assert first.expired() and second.expired() and not third.expired()
    assert first == second and kind(library.ones(4).untyped_storage()) != first


@pytest.mark.parametrize("library", [mica, torch], ids=["mica", "torch"])
def test_large_storages_too(library: Any) -> None:
    kind = library.multiprocessing.reductions.StorageWeakRef
    x = library.ones(1 << 20)
    reference = kind(x.untyped_storage())
    assert not reference.expired()
    del x
    gc.collect()
    assert reference.expired()
