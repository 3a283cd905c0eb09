"""torch.utils._ordered_set: a set that keeps the order of insertion, over a dict's keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Reversible
from typing import Any


class OrderedSet(MutableSet[Any], Reversible[Any]):
    """A set in the order of insertion. Operators with other sets keep the left one's order."""

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[Any] | None = None) -> None:
        self._dict = dict.fromkeys(iterable if iterable is not None else ())

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> OrderedSet:
        return cls(it)

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dict)

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self)})"

    def add(self, elem: Any) -> None:
        """Puts an element at the end, if it is new."""
        self._dict[elem] = None

    def discard(self, elem: Any) -> None:
        """Takes an element out, if it is there."""
        self._dict.pop(elem, None)

    def pop(self) -> Any:
        """Takes the last element out and gives it."""
        if not self._dict:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def update(self, *others: Iterable[Any]) -> None:
        """Adds the elements of others."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def copy(self) -> OrderedSet:
        """A set of the same elements."""
        return OrderedSet(self)

    def union(self, *others: Iterable[Any]) -> OrderedSet:
        """The elements of this set and of others."""
        found = self.copy()
        found.update(*others)
        return found

    def intersection(self, *others: Iterable[Any]) -> OrderedSet:
        """The elements that all have."""
        sets = [set(other) for other in others]
        return OrderedSet(e for e in self if all(e in s for s in sets))

    def difference(self, *others: Iterable[Any]) -> OrderedSet:
        """The elements that no other has."""
        return OrderedSet(e for e in self if not any(e in set(other) for other in others))

    def difference_update(self, *others: Iterable[Any]) -> None:
        """Takes out what others have."""
        for other in others:
            for elem in other:
                self.discard(elem)

    def intersection_update(self, *others: Iterable[Any]) -> None:
        """Keeps what all have."""
        self._dict = self.intersection(*others)._dict

    def symmetric_difference(self, other: Iterable[Any]) -> OrderedSet:
        """The elements that one of the two has."""
        return self ^ OrderedSet(other)

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether the other has all elements."""
        return self <= OrderedSet(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether this set has all elements of the other."""
        return self >= OrderedSet(other)

    def __getstate__(self) -> list[Any]:
        return list(self._dict)

    def __setstate__(self, state: list[Any]) -> None:
        self._dict = dict.fromkeys(state)
