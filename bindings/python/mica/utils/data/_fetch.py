"""How a loader gets one batch of a dataset: by indices, or as the next samples of a stream."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import mica
from mica.utils.data import _workers
from mica.utils.data._collate import default_collate
from mica.utils.data._dataset import TensorDataset


class MapFetcher:
    """Batches of a dataset that is indexed."""

    def __init__(
        self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> None:
        self.dataset, self.batched, self.collate_fn = dataset, batched, collate_fn
        # One gather instead of many rows.
        self._gathers = batched and collate_fn is default_collate and type(dataset) is TensorDataset

    def fetch(self, places: Any) -> Any:
        """The sample or the samples at these indices, joined."""
        if not self.batched:
            return self.collate_fn(self.dataset[places])
        if self._gathers and not any(t.requires_grad for t in self.dataset.tensors):
            index = mica.tensor(places, dtype=mica.int64)
            return [self._gathered(t, index) for t in self.dataset.tensors]
        if getattr(self.dataset, "__getitems__", None):
            return self.collate_fn(self.dataset.__getitems__(places))
        return self.collate_fn([self.dataset[place] for place in places])

    def _gathered(self, t: Any, index: Any) -> Any:
        if _workers.get_worker_info() is None or t.device.type != "cpu":
            return t.index_select(0, index)
        from mica._memory import shared as _shared_memory

        out = _shared_memory.empty((len(index), *t.shape[1:]), t.dtype)
        return mica.index_select(t, 0, index, out=out)


class IterableFetcher:
    """Batches of a dataset that is iterated over; StopIteration after the last."""

    def __init__(
        self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> None:
        self.batched, self.collate_fn, self.drop_last = batched, collate_fn, drop_last
        self.samples, self.ended = iter(dataset), False

    def fetch(self, places: Any) -> Any:
        """As many of the next samples as there are places, joined."""
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate_fn(next(self.samples))
        batch = list(islice(self.samples, len(places)))
        self.ended = len(batch) < len(places)
        if not batch or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(batch)


class _DatasetKind:
    """Which of the two a loader's dataset needs, by torch's numbers; a look-alike of DataLoader says it too."""

    Map, Iterable = 0, 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> MapFetcher | IterableFetcher:
        """What gets the batches of a dataset of this kind."""
        chosen = MapFetcher if kind == _DatasetKind.Map else IterableFetcher
        return chosen(dataset, auto_collation, collate_fn, drop_last)
