"""The ranks that save or load together, and their steps: when one rank fails, all of them raise what it met."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from mica.distributed._group import ProcessGroup
from mica.distributed._init import group_of, is_initialized
from mica.distributed._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    scatter_object_list,
)
from mica.distributed.checkpoint.api import CheckpointException, Failure, failed, wrapped

T = TypeVar("T")
R = TypeVar("R")


class _Failed:
    """What travels in the place of a rank's result."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


def _tried(f: Callable[[], T]) -> T | _Failed:
    try:
        return f()
    except BaseException as error:  # noqa: BLE001 - the other ranks wait for what this one says
        return _Failed(wrapped(error))


def _failures(results: list[Any]) -> dict[int, Failure]:
    return {rank: r.failure for rank, r in enumerate(results) if isinstance(r, _Failed)}


class Ranks:
    """The ranks of a group, or this one alone."""

    def __init__(self, group: ProcessGroup | None, no_dist: bool, coordinator: int = 0) -> None:
        self.group = None if no_dist or not (group or is_initialized()) else group_of(group)
        self.rank, self.coordinator = (self.group.rank(), coordinator) if self.group else (0, 0)

    @property
    def is_coordinator(self) -> bool:
        """Whether this rank plans for all and publishes."""
        return self.rank == self.coordinator

    def _packed(self, value: Any) -> Any:
        """A value as it travels; packed within a step, so that the ranks hear of one that cannot."""
        return value if self.group is None else pickle.dumps(value)

    def _unpacked(self, value: Any) -> Any:
        return value if self.group is None else pickle.loads(value)

    def _gathered(self, local: Callable[[], Any]) -> list[Any]:
        """On the coordinator the results of all ranks, packed, else nothing."""
        result = _tried(lambda: self._packed(local()))
        if self.group is None:
            return [result]
        every = [None] * self.group.size() if self.is_coordinator else None
        gather_object(result, every, group=self.group, group_dst=self.coordinator)
        return every or []

    def _reduced(self, step: str, results: list[Any], f: Callable[[list[Any]], R]) -> R | CheckpointException:
        failures = _failures(results)
        if not failures:
            reduced = _tried(lambda: f([self._unpacked(result) for result in results]))
            if not isinstance(reduced, _Failed):
                return reduced
            return failed(f"finish {step}", {self.rank: reduced.failure})
        return failed(step, failures)

    def reduce_scatter(self, step: str, local: Callable[[], T], plan: Callable[[list[T]], list[R]]) -> R:
        """What the coordinator's `plan` of all ranks' `local()` gives to this one."""

        def packed_plans(found: list[T]) -> list[Any]:
            plans = plan(found)
            if len(plans) != len(found):
                raise ValueError(
                    f"The planner and the storage give ({len(plans)}) plans for ({len(found)}) ranks."
                )
            return [self._packed(one) for one in plans]

        every = self._gathered(local)
        mine: list[Any] = [None]
        if self.is_coordinator:
            planned: Any = self._reduced(step, every, packed_plans)
            given = [planned] * len(every) if isinstance(planned, CheckpointException) else planned
        if self.group is None:
            mine = given
        else:
            scatter_object_list(
                mine, given if self.is_coordinator else None, group=self.group, group_src=self.coordinator
            )
        planned_for_me: R = self._unpacked(_or_raise(mine[0]))
        return planned_for_me

    def all_reduce(self, step: str, local: Callable[[], T], finish: Callable[[list[T]], R]) -> R:
        """What the coordinator's `finish` of all ranks' `local()` gives, on all ranks."""
        every = self._gathered(local)
        found: list[Any] = [None]
        if self.is_coordinator:
            found = [self._reduced(step, every, lambda results: self._packed(finish(results)))]
        if self.group is not None:
            broadcast_object_list(found, group=self.group, group_src=self.coordinator)
        finished: R = self._unpacked(_or_raise(found[0]))
        return finished

    def all_done(self, step: str, local: Callable[[], Any]) -> None:
        """Runs `local()` on all ranks and waits for them."""
        result = _tried(local)
        every: list[Any] = [None] * self.group.size() if self.group else [None]
        done = result if isinstance(result, _Failed) else None
        if self.group is None:
            every = [done]
        else:
            all_gather_object(every, done, group=self.group)
        if failures := _failures(every):
            raise failed(step, failures)


def _or_raise(result: T | CheckpointException) -> T:
    if isinstance(result, CheckpointException):
        raise result
    return result
