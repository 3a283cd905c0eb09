"""Collectives that give new tensors and have gradients: uneven parts, and what is refused."""

from __future__ import annotations

import pytest
from ranks import on_all

import mica
import mica.distributed as dist
import mica.distributed.nn.functional as functional


def test_all_to_all_of_different_shapes_has_gradients() -> None:
    def f(r: int) -> None:
        sent = [mica.full((r + 1, s + 1), float(r + 10 * s), requires_grad=True) for s in range(3)]
        room = [mica.zeros(s + 1, r + 1) for s in range(3)]
        got = functional.all_to_all(room, sent)
        for s, (part, written) in enumerate(zip(got, room)):
            assert part.tolist() == written.tolist() == [[float(s + 10 * r)] * (r + 1)] * (s + 1)
        sum((part * (r + 1)).sum() for part in got).backward()
        for s, t in enumerate(sent):
            assert t.grad.tolist() == [[s + 1.0] * (s + 1)] * (r + 1)

    on_all(3, f)


def test_lists_of_another_length_are_refused() -> None:
    def f(r: int) -> None:
        x = mica.ones(2)
        for call in (
            lambda: functional.scatter([x]),
            lambda: functional.reduce_scatter(x, [x]),
            lambda: functional.all_to_all([x], [x, x]),
            lambda: functional.all_to_all([x, x], [x]),
        ):
            with pytest.raises(ValueError, match=r"got \(1\).* expected one for each of \(2\) ranks"):
                call()

    on_all(2, f)


def test_the_default_group_by_its_other_name() -> None:
    def f(r: int) -> None:
        assert dist.group.WORLD is dist.GroupMember.WORLD and dist.group.WORLD.size() == 1

    on_all(1, f)
