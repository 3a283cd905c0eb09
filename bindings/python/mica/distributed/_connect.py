"""How the ranks of a group are connected through a store, and what they tell each other when one of them fails."""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Sequence
from typing import Any

import mica
from mica.distributed._errors import DistError, DistNetworkError, DistStoreError
from mica.distributed._store import PrefixStore, Store, until

__all__ = ["Reports", "connected"]

_MEETING = 10.0  # seconds that a rank which has connected waits for the others to
_GRACE = 2.0  # seconds in which the other ranks, which fail at the same time, come to report


def connected(
    backend: str, name: str, ranks: Sequence[int], rank: int, seconds: float, store: Store | None
) -> Any:
    """This rank's end of a group of that name: what mica.ops.collectives takes. `rank` is its place in `ranks`."""
    collectives = mica.ops.collectives
    handle = collectives.open(backend, name, rank, len(ranks), seconds)
    address = collectives.address(handle)
    if len(ranks) == 1 or not address:
        return handle
    if store is None:
        collectives.close(handle)
        raise ValueError(
            f"The engine ({backend}) connects ranks by their addresses, for which they need a store; give "
            "init_process_group an `init_method` (env://, tcp://host:port or file:///path) or a `store`."
        )
    every = _told_by_all(store, name, "address", address, ranks, rank, seconds)
    collectives.connect(handle, ",".join(text.decode() for text in every))
    # A rank that is done early and ends must not break one that still connects. What keeps a rank from telling that
    # it has, the first collective says; so it does where the store is gone.
    with contextlib.suppress(DistNetworkError, DistStoreError):
        _told_by_all(store, name, "connected", "", ranks, rank, min(seconds, _MEETING))
    return handle


def _told_by_all(
    store: Store, name: str, what: str, text: str, ranks: Sequence[int], rank: int, seconds: float
) -> list[bytes]:
    """Tells the other ranks a text, and waits for theirs."""
    told = PrefixStore(f"{name}/{what}", store)
    told.set_timeout(datetime.timedelta(seconds=seconds))
    told.set(str(rank), text)
    try:
        return told.multi_get([str(r) for r in range(len(ranks))])
    except DistStoreError as error:
        late = [r for r in range(len(ranks)) if not told.check([str(r)])]
        _linger(told, store, len(ranks) - len(late))
        raise DistStoreError(
            f"Rank ({ranks[rank]}) has waited ({seconds}) s for ranks {[ranks[r] for r in late]} to make the group "
            f"({name}) of ranks {list(ranks)}; see whether they started, and whether all give the same world_size."
        ) from error


def _linger(told: Store, store: Store, ranks: int, seconds: float = _GRACE) -> None:
    """Counts the ranks that have read what the others told; the one that serves the store waits for all of them."""
    told.add("read", 1)
    if store.serves:
        until(lambda: told.add("read", 0) >= ranks, seconds)


class Reports:
    """What ranks write into their store when a collective of a group has failed, so that each can say more.

    A rank that is stuck or dead writes nothing, which tells it from those that waited for it.
    """

    def __init__(self, name: str, ranks: Sequence[int], rank: int, store: Store, timeout: float) -> None:
        self._store, self._table = PrefixStore(f"{name}/failed", store), store
        self._ranks, self._rank = list(ranks), rank
        self._grace = min(_GRACE, timeout)

    def _see(self) -> None:
        """Raises DistNetworkError within some seconds where the store does not answer: a request waits far longer."""
        self._store._wait([], 0.0)

    def leave(self) -> None:
        """Says that this rank has left the group by its own will."""
        with contextlib.suppress(DistError):
            self._see()
            self._store.compare_set(str(self._rank), "", "left the group")

    def explain(self, error: str, tensors: str) -> str:
        """What the other ranks were doing when this one failed with an error."""
        found = re.search(r"(\w+ number \(\d+\)|send to rank \(\d+\)|recv from rank \(\d+\))", error)
        doing = f"failed in {found.group() if found else 'a collective'} {tensors}"
        try:
            self._see()
            self._store.compare_set(str(self._rank), "", doing)
            others = [str(r) for r in range(len(self._ranks)) if r != self._rank]
            with contextlib.suppress(DistStoreError):
                self._store.wait(others, datetime.timedelta(seconds=self._grace))
            told = {r: self._store.get(r).decode() for r in others if self._store.check([r])}
            failed = sum(what.startswith("failed") for what in told.values())
            _linger(self._store, self._table, 1 + failed, self._grace)
        except DistNetworkError:
            return "The store is gone as well; the rank that served it has ended or hangs."
        silent = [self._ranks[int(r)] for r in others if r not in told]
        says = [f"rank ({self._ranks[int(r)]}) {what}" for r, what in told.items()]
        if silent:
            which = ", ".join(f"({r})" for r in silent)
            says.append(
                f"rank{'s' * (len(silent) > 1)} {which} said nothing, having ended or being busy elsewhere"
            )
        return f"This rank, ({self._ranks[self._rank]}), {doing}; " + "; ".join(says) + "."
