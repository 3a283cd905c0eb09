"""Lists of tensors, objects, messages and the monitored barrier, with each engine."""

from __future__ import annotations

import datetime
import os
import pickle
import time

import pytest
import ranks
from ranks import on_all, on_ranks

import mica
import mica.distributed as dist
from mica.distributed import _objects

WORLD = 3


@pytest.fixture(params=ranks.ENGINES, autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(ranks, "engine", request.param)
    return str(request.param)


def of(r: int, *shape: int) -> mica.Tensor:
    return mica.full(shape, float(r + 1))


def test_lists_of_tensors() -> None:
    def f(r: int) -> None:
        gathered = [mica.empty(2, 2) for _ in range(WORLD)]
        dist.gather(of(r, 2, 2), gathered if r == 1 else None, dst=1)
        if r == 1:
            assert [t.sum().item() for t in gathered] == [4.0, 8.0, 12.0]
        part = mica.empty(2)
        dist.scatter(part, [of(i, 2) for i in range(WORLD)] if r == 2 else None, src=2)
        assert part.tolist() == [r + 1.0] * 2
        kept = of(r, 2)
        dist.reduce(kept, dst=0, op=dist.ReduceOp.MAX)
        assert kept.tolist() == ([3.0] * 2 if r == 0 else [r + 1.0] * 2)
        part = mica.empty(2)
        dist.reduce_scatter(part, [of(i, 2) for i in range(WORLD)])
        assert part.tolist() == [3.0 * (r + 1)] * 2

    on_all(WORLD, f)


def test_tensors_of_uneven_shapes() -> None:
    """Rank r has r rows; of rank 0 nothing comes."""

    def f(r: int) -> None:
        for async_op in (False, True):
            every = [mica.zeros(i, 2) for i in range(WORLD)]
            work = dist.all_gather(every, of(r, r, 2), async_op=async_op)
            assert (work is not None) == async_op
            if work:
                assert work.wait() and work.is_completed()
            assert [t.unique().tolist() for t in every] == [[], [2.0], [3.0]]
            swapped = [mica.zeros(2 * r + i) for i in range(WORLD)]
            work = dist.all_to_all(swapped, [of(r, r + 2 * i) for i in range(WORLD)], async_op=async_op)
            if work:
                work.wait()
            assert [t.unique().tolist() for t in swapped] == [
                [i + 1.0] * (2 * r + i > 0) for i in range(WORLD)
            ]

    on_all(WORLD, f)


def test_lists_may_be_strided_and_need_gradients() -> None:
    def f(r: int) -> None:
        whole = mica.zeros(4, WORLD)
        dist.all_gather([whole[:, i] for i in range(WORLD)], of(r, 4).requires_grad_())
        assert whole.tolist() == [[1.0, 2.0, 3.0]] * 4

    on_all(WORLD, f)


def test_objects() -> None:
    def f(r: int) -> None:
        mine = {"rank": r, "text": "x" * (100 * r)}
        every: list[object] = [None] * WORLD
        dist.all_gather_object(every, mine)
        assert every == [{"rank": i, "text": "x" * (100 * i)} for i in range(WORLD)]
        into: list[object] | None = [None] * WORLD if r == 2 else None
        dist.gather_object(r * 1000, into, dst=2)
        assert into is None or into == [0, 1000, 2000]
        some = [mine, None, (1, "a")] if r == 1 else [0, 0, 0]
        dist.broadcast_object_list(some, src=1)
        assert some == [{"rank": 1, "text": "x" * 100}, None, (1, "a")]
        out: list[object] = [None]
        dist.scatter_object_list(out, [[i] * i for i in range(WORLD)] if r == 0 else None, src=0)
        assert out == [[r] * r]
        pair = dist.new_group([2, 1])
        if r:
            sent = [r]
            dist.broadcast_object_list(sent, group_src=1, group=pair)
            assert sent == [2]
        if r == 0:
            dist.send_object_list(["a", {1: 2}], dst=2)
        if r == 2:
            got: list[object] = [None, None]
            assert dist.recv_object_list(got, src=0) == 0 and got == ["a", {1: 2}]

    on_all(WORLD, f)


def test_objects_beyond_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_objects, "_LIMIT", 100)
    for found in on_ranks(2, lambda r: dist.all_gather_object([None] * 2, "x" * 200)):
        assert isinstance(found, ValueError) and "at most (100)" in str(found)

    def f(r: int) -> None:
        if r:
            dist.recv_object_list([None], src=0)
        else:
            dist.send(mica.tensor([1 << 40]), dst=1)

    assert "(1099511627776)" in str(on_ranks(2, f)[1]).replace("[", "(").replace("]", ")")
    assert len(pickle.dumps("")) < 100


def test_batches_of_messages_start_in_any_order() -> None:
    def f(r: int) -> None:
        right, left = (r + 1) % WORLD, (r - 1) % WORLD
        got = [mica.zeros(2), mica.zeros(3)]
        receives = [dist.P2POp(dist.irecv, t, left, tag=i) for i, t in enumerate(got)]
        sends = [dist.P2POp(dist.isend, of(r, 2 + i), right, tag=i) for i in range(2)]
        for work in dist.batch_isend_irecv([sends[1], *receives, sends[0]] if r else [*receives, *sends]):
            work.wait()
        assert [t.tolist() for t in got] == [[left + 1.0] * 2, [left + 1.0] * 3]

    on_all(WORLD, f)


def test_futures_of_works_come_when_waited_for() -> None:
    def f(r: int) -> None:
        work = dist.all_reduce(of(r, 2), async_op=True)
        half = work.get_future().then(lambda done: done.value()[0] / 2)
        assert half.wait().tolist() == [1.5, 1.5] and half.done()
        failing = work.get_future().then(lambda done: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            failing.wait()
        third = dist.all_reduce(of(r, 1), async_op=True).get_future().then(lambda done: done.value()[0] / 3)
        end = time.monotonic() + 20
        while not third.done() and time.monotonic() < end:  # nobody waits for it
            time.sleep(0.001)
        assert third.done() and third.value().item() == 1.0

    on_all(2, f)


@pytest.mark.parametrize("every", [False, True])
def test_the_monitored_barrier_names_who_did_not_come(every: bool) -> None:
    def f(r: int) -> None:
        dist.monitored_barrier()
        if r % 2:
            time.sleep(1)
        else:
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=0.3), wait_all_ranks=every)

    found = on_ranks(4, f)
    assert "Ranks (1), (3) failed" in str(found[0]) if every else "Rank (1) failed" in str(found[0])
    assert isinstance(found[0], dist.DistBackendError) and "monitored_barrier within (0.3) s" in str(found[0])
    assert "Rank (2) got no answer from rank (0)" in str(found[2])


def test_ranks_know_their_places() -> None:
    def f(r: int) -> None:
        pair = dist.new_group([2, 0])
        if r != 1:
            assert dist.get_process_group_ranks(pair) == [0, 2]
            assert (dist.get_global_rank(pair, 1), dist.get_group_rank(pair, 2)) == (2, 1)
            with pytest.raises(ValueError, match=r"Rank \(2\) is none"):
                dist.get_global_rank(pair, 2)
        else:
            with pytest.warns(UserWarning, match="Running barrier on global rank 1 which does not belong"):
                assert dist.barrier(pair) is None
        dist.barrier()

    on_all(WORLD, f)
    assert dist.get_node_local_rank(3) == int(os.environ.get("LOCAL_RANK", 3))
    with pytest.raises(RuntimeError, match="fallback_rank"):
        dist.get_node_local_rank()


def test_bad_calls_say_what_is_wrong() -> None:
    def f(r: int) -> None:
        x = mica.ones(2)
        for call, error, says in (
            (lambda: dist.all_gather([x, x], x), ValueError, "each of (1) ranks"),
            (lambda: dist.all_gather([mica.ones(3)], x), ValueError, "has one of shape (3,)"),
            (lambda: dist.gather(x), ValueError, "`gather_list` must be specified"),
            (lambda: dist.scatter(x), ValueError, "`scatter_list` must be specified"),
            (lambda: dist.gather(x, [mica.ones(3)]), ValueError, "of shape (2,)"),
            (lambda: dist.broadcast(x), ValueError, "Must specify one of"),
            (lambda: dist.broadcast(x, 0, group_src=0), ValueError, "Must specify one of"),
            (lambda: dist.broadcast(x, group_src=7), ValueError, "(7) is none"),
            (lambda: dist.P2POp(dist.all_reduce, x, 0), ValueError, "isend or irecv"),
            (lambda: dist.batch_isend_irecv([]), ValueError, "at least one P2POp"),
            (lambda: dist.all_gather_object([], 1), ValueError, "(0) places"),
            (lambda: dist.gather_object(1), ValueError, "must be specified"),
            (lambda: dist.scatter_object_list([]), ValueError, "size at least 1"),
            (lambda: dist.recv_object_list([None]), NotImplementedError, "from any rank"),
            (lambda: dist.get_default_backend_for_device("meta"), ValueError, "(meta)"),
        ):
            with pytest.raises(error) as raised:
                call()
            assert says in str(raised.value), raised.value

    on_all(1, f)


def test_the_size_of_every_ranks_object_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_objects, "_LIMIT", 400)
    sizes = mica.tensor([300, 500])

    def told(into: mica.Tensor, *rest: object) -> None:
        into.copy_(sizes)

    monkeypatch.setattr(_objects, "all_gather_into_tensor", told)

    def f(r: int) -> None:
        dist.all_gather_object([None] * 2, r)

    for error in on_ranks(2, f):
        assert isinstance(error, ValueError) and "An object collective gets objects of [300, 500]" in str(
            error
        )


@pytest.mark.parametrize("world", [1, 2])
def test_an_all_to_all_whose_own_part_differs_is_refused(world: int) -> None:
    def f(r: int) -> None:
        dist.all_to_all_single(mica.zeros(world * 1000000), mica.ones(world))

    for error in on_ranks(world, f):
        assert isinstance(error, ValueError) and "sends (1) elements to itself" in str(error), error
        assert "takes (1000000)" in str(error)
