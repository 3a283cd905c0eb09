"""Collectives with gradients among two processes, with Mica and with torch's gloo: the same values and gradients."""

from __future__ import annotations

import ast

import pytest
from processes import printed

import mica.distributed as dist

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="the library Gloo is not here")

PROGRAM = """
    import sys, warnings
    warnings.simplefilter("ignore")
    if sys.argv[1] == "mica":
        import mica as m, mica.distributed as dist
        import mica.distributed.nn.functional as F
    else:
        import torch as m, torch.distributed as dist
        import torch.distributed.nn.functional as F
    dist.init_process_group("gloo")
    r, found = dist.get_rank(), []

    def leaf(*shape):
        n = m.ones(shape).numel()
        return (m.arange(n, dtype=m.float32).reshape(shape) + 10 * r + 1).requires_grad_()

    def note(name, leaves, f):
        outs = f()
        outs = outs if isinstance(outs, tuple) else (outs,)
        loss = sum((o * o * (i + 1 + r)).sum() for i, o in enumerate(outs))
        loss.backward()
        found.append((name, [o.tolist() for o in outs], [x.grad.tolist() for x in leaves]))

    x = leaf(2, 3)
    note("all_reduce", [x], lambda: F.all_reduce(x.t() * 2))
    y = leaf()
    note("all_gather", [y], lambda: F.all_gather(y * 3))
    y = leaf(3)
    note("all_gather of rows", [y], lambda: F.all_gather(y * 3, group=dist.group.WORLD))
    z = leaf(2, 2)
    note("broadcast", [z], lambda: F.broadcast(z * z, 1))
    a = leaf(2)
    note("gather", [a], lambda: F.gather(a + 1, 1))
    b, c = leaf(2), leaf(2)
    note("scatter", [b, c] if r == 0 else [], lambda: F.scatter([b * 2, c * 3], 0))
    d = leaf(3)
    def reduced():
        out = F.reduce(d * 2, 1)
        return out if r == 1 else out * 0
    note("reduce", [d], reduced)
    e, f = leaf(2), leaf(2)
    note("reduce_scatter", [e, f], lambda: F.reduce_scatter(m.zeros(2), [e * 2, f]))
    g = leaf(3, 2)
    note("all_to_all_single", [g], lambda: F.all_to_all_single(m.zeros(2 * r + 2, 2), g * g, [r + 1] * 2, [1, 2]))
    h, i = leaf(2), leaf(2)
    outs = [m.zeros(2), m.zeros(2)]
    note("all_to_all", [h, i], lambda: F.all_to_all(outs, [h * 2, i * i]))
    out = m.zeros(2)
    F.reduce_scatter(out, [m.ones(2), m.ones(2)])
    found.append(("written", out.tolist(), [o.tolist() for o in outs]))
    dist.barrier()
    dist.destroy_process_group()
    print(found)
"""


def test_two_processes_find_the_gradients_that_torchs_find() -> None:
    ours, theirs = (printed(2, PROGRAM, library) for library in ("mica", "torch"))
    for rank, (here, there) in enumerate(zip(ours, theirs)):
        got, expected = ast.literal_eval(here), ast.literal_eval(there.splitlines()[-1])
        for mine, their in zip(got, expected):
            assert mine == their, rank
        assert len(got) == len(expected) == 11
