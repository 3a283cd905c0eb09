"""Counts what CPython does to put keys into a dictionary or a set, so that a pickle pays for it.

A dictionary looks for a key slot by slot, from where its hash says. Nobody can choose the hash of a text,
but a file can choose numbers (and tuples of them) whose searches lead through the same slots: n of them
cost n * n steps. Here the slots are filled as CPython fills them (dictobject.c, find_empty_slot();
setobject.c, set_add_entry()), before it does, and each slot that is visited is counted. The search is the
same in all versions from 3.7 on; test_hostile_files.py compares the sizes with the real ones.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

TEXTS = (str, bytes)  # their hashes are drawn anew in each process
SLOT = 2  # steps for a slot that is visited, and for those right behind it in a set
_LINEAR = 9  # slots behind one that a set looks at before it jumps
_MANY = 50000  # members from which a set grows by less


def table_of(count: int, is_set: bool) -> tuple[int, int]:
    """How many slots CPython has after `count` keys were put in one by one, and the keys it has room for."""
    size = 8
    while True:
        room = -(-3 * (size - 1) // 5) - 1 if is_set else 2 * size // 3
        if count <= room:
            return size, room
        wanted = (room + 1) * (2 if room + 1 > _MANY else 4) if is_set else 2 * size - 1
        while size <= wanted:
            size *= 2


class Slots:
    """The slots of one container, as far as its keys are no texts."""

    def __init__(self, owner: Any, spend: Callable[[int], None]) -> None:
        self._owner, self._spend = owner, spend
        self._hashes = array("q", (hash(key) for key in owner if type(key) not in TEXTS))
        self._is_set = isinstance(owner, set)
        self._taken, self._room = bytearray(1), -1

    def put(self, key: Any, cost: int) -> None:
        """Pays for a key, which is about to be put in; one comparison of it takes `cost` steps."""
        is_new = key not in self._owner
        if len(self._owner) + is_new > self._room:
            self._lay_out(len(self._owner) + is_new)
        slot, visited = self._free(hash(key))
        self._spend(SLOT * visited * cost)
        if is_new:
            self._taken[slot] = 1
            self._hashes.append(hash(key))

    def _lay_out(self, count: int) -> None:
        size, self._room = table_of(count, self._is_set)
        self._taken = bytearray(size)
        for number in self._hashes:
            slot, visited = self._free(number)
            self._spend(SLOT * visited)
            self._taken[slot] = 1

    def _free(self, number: int) -> tuple[int, int]:
        """The slot where the search for a hash ends, and how many it jumps to before."""
        taken, mask, near = self._taken, len(self._taken) - 1, _LINEAR if self._is_set else 0
        rest, place, visited = number & (1 << 64) - 1, number & mask, 0
        while taken[place]:
            if near and place + near <= mask:
                slot = taken.find(0, place, place + near + 1)
                if slot >= 0:
                    return slot, visited
            visited += 1
            rest >>= 5
            place = (5 * place + rest + 1) & mask
        return place, visited
