"""An optimizer whose state is cut among two processes: the parameters and states of the plain one, and torch's."""

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
        from mica.distributed.optim import ZeroRedundancyOptimizer
    else:
        import torch as m, torch.distributed as dist
        from torch.distributed.optim import ZeroRedundancyOptimizer
    dist.init_process_group("gloo")
    r, found = dist.get_rank(), []
    SHAPES = [(3, 2), (5,), (), (2, 2)]

    def leaves():
        return [(m.arange(max(m.ones(s).numel(), 1), dtype=m.float32).reshape(s) / 7 + i).requires_grad_()
                for i, s in enumerate(SHAPES)]

    def rounded(x):
        if isinstance(x, m.Tensor):
            return rounded(x.tolist())
        if isinstance(x, dict):
            return {k: rounded(v) for k, v in sorted(x.items(), key=str) if k not in ("params", "param_names")}
        if isinstance(x, (list, tuple)):
            return [rounded(v) for v in x]
        return round(x, 4) if isinstance(x, float) else x

    def gradients(params, step):
        for i, p in enumerate(params):
            p.grad = (p.detach() + i - step) / 3

    CLASSES = [
        (m.optim.SGD, dict(lr=0.1, momentum=0.9)), (m.optim.AdamW, dict(lr=0.05)),
        (m.optim.Adagrad, dict(lr=0.2)), (m.optim.RMSprop, dict(lr=0.01, centered=True)),
    ]
    for kind, options in CLASSES:
        plain_params, params = leaves(), leaves()
        plain = kind([{"params": plain_params[:2]}, {"params": plain_params[2:], "lr": 0.02}], **options)
        zero = ZeroRedundancyOptimizer(
            [{"params": params[:2]}, {"params": params[2:], "lr": 0.02}], kind, **options
        )
        schedule = m.optim.lr_scheduler.StepLR(zero, 2, 0.5), m.optim.lr_scheduler.StepLR(plain, 2, 0.5)
        for step in range(4):
            gradients(params, step), gradients(plain_params, step)
            zero.step(), plain.step()
            [s.step() for s in schedule]
        same = all(m.equal(a.detach(), b.detach()) for a, b in zip(params, plain_params))
        own = sum(bool(zero.optim.state[p]) for p in params if p in zero.optim.state)
        try:
            zero.state_dict()
        except RuntimeError as error:
            refused = str(error)
        zero.consolidate_state_dict(to=1)
        state = zero.state_dict() if r == 1 else None
        all_same = r == 0 or rounded(state["state"]) == rounded(plain.state_dict()["state"])
        found.append((kind.__name__, same, own, refused, all_same, rounded([p for p in params]), rounded(state)))
        box = [state]
        dist.broadcast_object_list(box, src=1)
        again = ZeroRedundancyOptimizer(
            [{"params": params[:2]}, {"params": params[2:]}], kind, **options
        )
        again.load_state_dict(box[0])
        gradients(params, 9), gradients(plain_params, 9)
        again.step(), plain.step()
        found.append((
            all(m.equal(a.detach(), b.detach()) for a, b in zip(params, plain_params)),
            [g["lr"] for g in again.param_groups], [g["lr"] for g in again.optim.param_groups],
        ))
    # Groups that are added, a closure, a group of ranks, and a rank without parameters.
    params = leaves()
    zero = ZeroRedundancyOptimizer(params[:1], m.optim.SGD, lr=0.1)
    gradients(params, 1)
    zero.step()
    zero.add_param_group({"params": params[1:], "lr": 0.3})
    gradients(params, 2)
    loss = zero.step(lambda: 4.0)
    zero.zero_grad()
    found.append((loss, rounded(params), [p.grad is None for p in params], [g["lr"] for g in zero.param_groups]))
    dist.barrier()
    dist.destroy_process_group()
    print(found)
"""


def test_two_processes_step_as_torchs_do() -> None:
    ours, theirs = (printed(2, PROGRAM, library) for library in ("mica", "torch"))
    for rank, (here, there) in enumerate(zip(ours, theirs)):
        got, expected = ast.literal_eval(here), ast.literal_eval(there.splitlines()[-1])
        for mine, their in zip(got, expected):
            assert mine == their, rank
        assert len(got) == len(expected) == 9
        assert all(kind[1] and kind[4] and again[0] for kind, again in zip(got[:8:2], got[1:8:2]))
        assert all(0 < kind[2] < 4 for kind in got[:8:2])  # each rank has the state of its own part alone
