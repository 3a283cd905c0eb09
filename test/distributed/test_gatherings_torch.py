"""One program of collectives among two processes, with Mica and with torch's gloo: the same values and errors."""

from __future__ import annotations

import ast

import pytest
from processes import printed

import mica.distributed as dist

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="the library Gloo is not here")

PROGRAM = """
    import datetime, sys
    if sys.argv[1] == "mica":
        import mica as m, mica.distributed as dist
    else:
        import torch as m, torch.distributed as dist
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=30))
    r, found = dist.get_rank(), []

    def note(name, f):
        try:
            found.append((name, f()))
        except Exception as error:
            found.append((name, [k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins"]))

    def x(*shape, dtype=m.float32):
        n = m.ones(shape).numel()
        return (m.arange(n).reshape(shape) + 3 * r - 1).to(dtype)

    def into(f, *outputs):
        f(*outputs)
        return [o.to(m.float64).tolist() for o in outputs]

    for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "int8"):
        for op in ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"):
            if op[0] != "B" or "int" in dtype:
                note(f"all_reduce {dtype} {op}",
                     lambda: into(lambda t: dist.all_reduce(t, getattr(dist.ReduceOp, op)), x(5, dtype=getattr(m, dtype))))
    note("broadcast", lambda: into(lambda t: dist.broadcast(t, 1), x(2, 3)))
    note("all_gather", lambda: into(lambda *t: dist.all_gather(list(t), x(3)), m.zeros(3), m.zeros(3)))
    note("gather", lambda: into(lambda *t: dist.gather(x(3), list(t) if r == 0 else None, dst=0), m.zeros(3), m.zeros(3)))
    note("scatter", lambda: into(lambda t: dist.scatter(t, [x(2), x(2) * 2] if r == 1 else None, src=1), m.zeros(2)))
    note("reduce_scatter", lambda: into(lambda t: dist.reduce_scatter(t, [x(2), x(2) * 2]), m.zeros(2)))
    note("reduce", lambda: into(lambda t: dist.reduce(t, 0), x(2)) if r == 0 else dist.reduce(x(2), 0))
    note("all_gather_into_tensor", lambda: into(lambda t: dist.all_gather_into_tensor(t, x(3)), m.zeros(6)))
    note("reduce_scatter_tensor", lambda: into(lambda t: dist.reduce_scatter_tensor(t, x(4)), m.zeros(2)))
    note("all_to_all_single", lambda: into(lambda t: dist.all_to_all_single(t, x(3), [r + 1] * 2, [1, 2]), m.zeros(2 * r + 2)))
    note("send", lambda: dist.send(x(2), 1) if r == 0 else into(lambda t: dist.recv(t, 0), m.zeros(2)))
    objects = [None, None]
    note("all_gather_object", lambda: dist.all_gather_object(objects, {"rank": r, "long": "x" * r}) or objects)
    some = [r, {"a": r}]
    note("broadcast_object_list", lambda: dist.broadcast_object_list(some, src=1) or some)
    note("scatter_object_list", lambda: dist.scatter_object_list(some, ["a", "b"] if r == 0 else None, src=0) or some)
    note("gather_object", lambda: dist.gather_object(r, objects if r == 0 else None, dst=0) or (objects if r == 0 else 0))
    note("monitored_barrier", lambda: dist.monitored_barrier())
    note("ranks", lambda: [dist.get_global_rank(dist.group.WORLD if hasattr(dist, "group") else dist.GroupMember.WORLD, 1),
                           dist.get_world_size(), dist.get_backend(), dist.is_initialized()])
    one = dist.new_group([1])
    note("outside", lambda: dist.get_rank(one) if r == 1 else one == dist.GroupMember.NON_GROUP_MEMBER)
    for name, call in {
        "all_reduce": lambda: dist.all_reduce(x(1), group=one),
        "barrier": lambda: dist.barrier(one),
        "all_gather": lambda: dist.all_gather([], x(1), group=one),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(output_tensor=x(1), input_tensor=x(1), group=one),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(x(1), input=x(1), group=one),
        "isend": lambda: dist.isend(x(1), 1, group=one),
        "recv": lambda: dist.recv(x(1), 1, group=one),
        "broadcast": lambda: dist.broadcast(x(1), 1, group=one),
        "reduce": lambda: dist.reduce(x(1), 1, group=one),
        "gather": lambda: dist.gather(x(1), None, 1, group=one),
        "scatter": lambda: dist.scatter(x(1), None, 1, group=one),
        "all_gather_object": lambda: dist.all_gather_object([], 1, group=one),
        "monitored_barrier": lambda: dist.monitored_barrier(one),
        "broadcast_object_list": lambda: dist.broadcast_object_list([None], 1, group=one),
    }.items():
        note(f"{name} outside", call if r == 0 else int)
    unsorted = dist.new_group([1, 0], sort_ranks=False)
    note("unsorted", lambda: [dist.get_rank(unsorted), dist.get_process_group_ranks(unsorted)])
    note("barrier", lambda: dist.barrier(timeout=datetime.timedelta(seconds=20)))
    note("no root", lambda: dist.broadcast(x(1)))
    note("no list", lambda: dist.gather(x(1)) if r == 0 else [r])
    note("no op", lambda: dist.P2POp(dist.all_reduce, x(1), 0))
    note("twice", lambda: dist.init_process_group("gloo"))
    dist.barrier()
    dist.destroy_process_group()
    note("none", lambda: dist.get_rank())
    note("missing", lambda: dist.init_process_group("gloo", init_method="tcp://localhost:1"))
    note("scheme", lambda: dist.init_process_group("gloo", init_method="nothing://a", rank=0, world_size=1))
    print(found)
"""


def test_two_processes_find_what_torchs_find() -> None:
    ours, theirs = (printed(2, PROGRAM, library) for library in ("mica", "torch"))
    for rank, (here, there) in enumerate(zip(ours, theirs)):
        got, expected = ast.literal_eval(here), ast.literal_eval(there.splitlines()[-1])
        for (name, mine), (_, their) in zip(got, expected):
            assert mine == their, (rank, name)
        # One list of 5 values or more a call: a program that stopped early would agree on nothing.
        assert len(got) == len(expected) > 60


def test_collectives_take_torchs_names() -> None:
    import inspect

    import torch.distributed

    left_out = {
        "init_process_group": {"_ranks"},
        "recv_object_list": {"use_batch"},
        "send_object_list": {"use_batch"},
    }
    compared = 0
    for name in dist.__all__:
        theirs = getattr(torch.distributed, name, None)
        if not inspect.isfunction(theirs) or name == "rendezvous":  # whose last is **kwargs there
            continue
        wanted = [p for p in inspect.signature(theirs).parameters if p not in left_out.get(name, ())]
        assert list(inspect.signature(getattr(dist, name)).parameters) == wanted, name
        compared += 1
    assert compared > 30
