"""mica.distributed as programs use it: groups, async work, messages, and what goes wrong among ranks."""

from __future__ import annotations

import datetime

import pytest
from ranks import on_all, on_ranks

import mica
import mica.distributed as dist
from mica.distributed._init import group_of


def test_in_place_collectives_and_async_work() -> None:
    def f(r: int) -> list[object]:
        x = mica.full((3,), float(r + 1))
        dist.all_reduce(x)
        y = [mica.tensor([r]), mica.tensor([-r])]
        works = [dist.all_reduce(t, dist.ReduceOp.MAX, async_op=True) for t in y]
        assert all(w.wait() and w.is_completed() for w in works)
        parts = [mica.empty(2) for _ in range(4)]
        dist.all_gather(parts, mica.full((2,), float(r)))
        b = mica.tensor([r])
        dist.broadcast(b, src=2)
        out = mica.empty(4, dtype=mica.int64)
        dist.all_to_all_single(out, mica.arange(4) + 10 * r)
        part = mica.empty(1)
        dist.reduce_scatter_tensor(part, mica.arange(4.0))
        dist.barrier()
        return [
            x.tolist(),
            y[0].item(),
            y[1].item(),
            [p[0].item() for p in parts],
            b.item(),
            out.tolist(),
            part.item(),
        ]

    for r, found in enumerate(on_all(4, f)):
        assert found == [[10.0] * 3, 3, 0, [0, 1, 2, 3], 2, [r, r + 10, r + 20, r + 30], 4.0 * r]


def test_messages_match_by_rank_and_tag() -> None:
    def f(r: int) -> list[int] | None:
        if r == 0:
            works = [dist.isend(mica.tensor([10 + tag]), 1, tag=tag) for tag in (1, 2)]
            dist.send(mica.tensor([7]), 1)
            return [w.wait() for w in works] and None
        found = [mica.zeros(1, dtype=mica.int64) for _ in range(3)]
        assert dist.recv(found[0], src=0) == 0
        dist.recv(found[2], src=0, tag=2)
        dist.recv(found[1], src=0, tag=1)
        return [t.item() for t in found]

    assert on_all(2, f)[1] == [7, 11, 12]


def test_subgroups_number_their_own_ranks() -> None:
    def f(r: int) -> object:
        odd, even = dist.new_group([3, 1]), dist.new_group([2, 0])
        x = mica.tensor([r])
        if r in (1, 3):
            dist.all_reduce(x, group=odd)
            outside = dist.GroupMember.NON_GROUP_MEMBER
            assert (even, dist.get_rank(odd), dist.get_world_size(odd)) == (outside, r // 2, 2)
            assert (dist.get_rank(even), dist.get_world_size(even)) == (-1, -1)
            dist.destroy_process_group(even)
        else:
            assert dist.get_rank(even) == r // 2
            dist.broadcast(x, src=0, group=even)
        return x.item()

    assert on_all(4, f) == [0, 4, 0, 4]


def test_small_calls_do_not_hold_the_interpreter() -> None:
    """A rank that waits would stop the others' threads, were the interpreter's lock not given up."""
    assert on_all(2, lambda r: dist.barrier() or r) == [0, 1]


def test_a_rank_that_does_not_come_is_named_with_the_collective_and_its_number() -> None:
    def f(r: int) -> None:
        dist.barrier()
        if r != 1:
            dist.all_reduce(mica.ones(1))
        else:
            import time

            time.sleep(1.5)

    found = on_ranks(3, f, timeout=0.5)
    assert found[1] is None
    for r in (0, 2):
        assert isinstance(found[r], RuntimeError), found
        assert "has waited for ranks (1) in all_reduce number (1) for longer than the timeout" in str(
            found[r]
        )


def test_a_rank_that_fails_ends_the_others_at_once() -> None:
    def f(r: int) -> None:
        if r == 1:
            raise KeyError("a bug")
        dist.all_reduce(mica.ones(1))

    found = on_ranks(3, f, timeout=60)
    assert isinstance(found[1], KeyError)
    for r in (0, 2):
        assert (
            isinstance(found[r], RuntimeError)
            and "ank (1)" in str(found[r])
            and "left the group" in str(found[r])
        )


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        (lambda r: dist.all_reduce(mica.ones(r + 1)), "number of elements"),
        (lambda r: dist.all_reduce(mica.ones(1, dtype=(mica.float32, mica.int32)[r])), "dtype"),
        (lambda r: dist.all_reduce(mica.ones(1), (dist.ReduceOp.SUM, dist.ReduceOp.MAX)[r]), "reduction"),
        (lambda r: dist.broadcast(mica.ones(1), r), "root"),
        (
            lambda r: dist.barrier() if r else dist.all_reduce(mica.ones(1)),
            "same collectives in the same order",
        ),
        (
            lambda r: dist.send(mica.ones(2), 1) if r == 0 else dist.recv(mica.ones(3), 0),
            "number of elements",
        ),
    ],
)
def test_ranks_that_disagree_are_told_what_on(calls: object, says: str) -> None:
    for error in on_ranks(2, calls):
        assert isinstance(error, ValueError) and says in str(error), error


def test_bad_calls_say_what_is_wrong() -> None:
    def f(r: int) -> None:
        for call, kind, text in (
            (lambda: dist.all_reduce(mica.ones(2, 3).t()), ValueError, "is not contiguous"),
            (lambda: dist.all_reduce(mica.ones(1), "sum"), TypeError, "ReduceOp"),
            (lambda: dist.broadcast(mica.ones(1), 5), ValueError, "is not in the group"),
            (lambda: dist.send(mica.ones(1), 0), ValueError, "itself"),
            (lambda: dist.recv(mica.ones(1)), NotImplementedError, "from any rank"),
            (lambda: dist.all_gather([], mica.ones(1)), ValueError, "each of (1) ranks"),
            (
                lambda: dist.all_to_all_single(mica.ones(2), mica.ones(2), [1], [2]),
                ValueError,
                "expected (1) sizes",
            ),
            (lambda: dist.new_group([0, 0]), ValueError, "are not different ones"),
            (lambda: dist.init_process_group("threads", rank=0, world_size=1), ValueError, "already"),
        ):
            with pytest.raises(kind, match=".") as error:
                call()
            assert text in str(error.value), error.value

    on_all(1, f)
    assert not dist.is_initialized()
    with pytest.raises(ValueError, match="init_process_group first"):
        dist.get_rank()
    for backend in ("nccl", "mpi"):
        with pytest.raises(NotImplementedError, match="Use `gloo`"):
            dist.init_process_group(backend, rank=0, world_size=1)
    with pytest.raises(NotImplementedError, match="threads of one process"):
        dist.init_process_group("threads", init_method="env://")


def test_a_group_that_was_left_refuses() -> None:
    def f(r: int) -> None:
        group = group_of(None)
        dist.barrier()
        dist.destroy_process_group()
        with pytest.raises(RuntimeError, match="has left the group"):
            group.start("barrier", None, None)

    on_all(2, f)


def test_wait_with_a_timeout_of_its_own() -> None:
    def f(r: int) -> None:
        if r == 0:
            work = dist.irecv(x := mica.zeros(1), 1)
            assert not work.is_completed()
            with pytest.raises(RuntimeError, match=r"within \(0.05\) s"):
                work.wait(datetime.timedelta(seconds=0.05))
            dist.barrier()
            work.wait()
            assert x.item() == 1
        else:
            dist.barrier()
            dist.send(mica.ones(1), 0)

    on_all(2, f)


def test_ranks_leave_and_enter_again_under_the_same_name() -> None:
    def f(r: int) -> list[float]:
        dist.destroy_process_group()
        found = []
        for round in range(5):
            dist.init_process_group("threads", rank=r, world_size=2, group_name="again")
            x = mica.full((2,), float(r + round))
            found.append(dist.all_reduce(x, async_op=True))  # whose end outlives the group
            dist.barrier()
            dist.destroy_process_group()
        return [work.is_completed() for work in found]

    assert on_all(2, f) == [[True] * 5] * 2


@pytest.mark.parametrize("kind", ["conjugated", "elsewhere"])
def test_a_tensor_that_the_operator_would_copy_is_refused(kind: str) -> None:
    def f(r: int) -> None:
        x = mica.tensor([1 + 2j]).conj() if kind == "conjugated" else mica.empty(2, device="meta")
        with pytest.raises(NotImplementedError, match="all_reduce gets a tensor on"):
            dist.all_reduce(x)

    on_all(1, f)


def test_an_operator_whose_memory_does_not_fit_is_refused() -> None:
    def f(r: int) -> None:
        handle = group_of(None).handle
        start = mica.ops.collectives.start
        x = mica.zeros(1 << 20)
        for name, given, result in (
            ("all_reduce", None, x),
            ("gather", x, None),
            ("all_gather", x, mica.zeros(2)),
            ("reduce_scatter", mica.zeros(2), x),
        ):
            with pytest.raises(ValueError, match=name):
                start(name, given, result, handle, "sum", 0, 0, [], [])

    on_all(1, f)
