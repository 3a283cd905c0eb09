"""Checkpoints against torch's: the same calls give the same states and kinds of errors, and torch's files are read."""

from __future__ import annotations

import json
import os
import pickle
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pieces import bytes_of, cut
from process import printed as printed_alone
from processes import printed
from ranks import on_all

import mica
import mica.distributed as dist
from mica.distributed import checkpoint
from mica.distributed.checkpoint import CheckpointException
from mica.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys

needs_gloo = pytest.mark.skipif(not dist.is_gloo_available(), reason="the library Gloo is not here")
START = """
    import json, os, sys, tempfile, warnings
    warnings.simplefilter("ignore")
    if sys.argv[1] == "mica":
        import mica as m, mica.distributed as dist, mica.distributed.checkpoint as dcp
        from mica.distributed.checkpoint.state_dict import *
        from mica.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys
    else:
        import torch as m, torch.distributed as dist, torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import *
        from torch.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys
    nn, found = m.nn, []

    def rounded(x):
        if isinstance(x, m.Tensor):
            return [str(x.dtype).rpartition(".")[2], list(x.shape), rounded(x.tolist())]
        if isinstance(x, dict):
            return {str(k): rounded(v) for k, v in x.items() if k != "decoupled_weight_decay"}
        if isinstance(x, (list, tuple)):
            return [rounded(v) for v in x]
        return round(x, 4) if isinstance(x, float) else x

    def filled(model):
        for i, p in enumerate(model.parameters()):
            p.data = m.arange(float(p.numel())).reshape(p.shape) / 10 + i
        return model

    def trained(model, optimizer, steps=2):
        for step in range(steps):
            for i, p in enumerate(model.parameters()):
                if p.requires_grad:
                    p.grad = (p.detach() + i - step) / 3
            optimizer.step()
        optimizer.zero_grad()

    def raised(f):
        try:
            f()
        except BaseException as error:
            inner = getattr(error, "failures", None)
            return type(error).__name__, {rank: type(one[0]).__name__ for rank, one in (inner or {}).items()}
        return "nothing"
"""

ALONE = """
    net = lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2, bias=False))
    adam = lambda net: m.optim.AdamW([{"params": net[0].parameters()}, {"params": net[1:].parameters(), "lr": 0.5}], lr=0.1)
    folder = tempfile.mkdtemp()
    model = filled(net())
    optimizer = adam(model)
    trained(model, optimizer)
    of_model, of_optimizer = get_state_dict(model, optimizer)
    found += [rounded(of_model), rounded(of_optimizer)]
    dcp.save({"model": of_model, "optimizer": of_optimizer, "epoch": 3, "pair": (1, "x")}, checkpoint_id=folder)
    found.append(sorted(dcp.FileSystemReader(folder).read_metadata().state_dict_metadata))
    found.append({k: list(v) for k, v in dcp.FileSystemReader(folder).read_metadata().planner_data.items()})

    model = filled(net())
    optimizer = adam(model)
    of_model, of_optimizer = get_state_dict(model, optimizer)
    state = {"model": of_model, "optimizer": of_optimizer, "epoch": 0, "pair": None}
    dcp.load(state, checkpoint_id=folder)
    found += [state["epoch"], list(state["pair"])]
    missing = set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    found.append([list(missing.missing_keys), list(missing.unexpected_keys)])
    trained(model, optimizer, 1)
    found += [rounded(model.state_dict()), rounded(optimizer.state_dict())]
    found.append(rounded(_load_state_dict_from_keys("model", checkpoint_id=folder)))
    found.append(rounded(_load_state_dict_from_keys({"epoch", "model.0.weight"}, checkpoint_id=folder)))

    # Flat states, and what options leave out.
    flat = StateDictOptions(flatten_optimizer_state_dict=True)
    of_optimizer = get_optimizer_state_dict(model, optimizer, options=flat)
    found.append(rounded(of_optimizer))
    other = adam(filled(net()))
    other_model = filled(net())
    other = adam(other_model)
    set_optimizer_state_dict(other_model, other, of_optimizer, options=flat)
    found.append(rounded(other.state_dict()))
    model[0].bias.requires_grad_(False)
    found.append(list(get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True))))
    found.append(list(get_model_state_dict(model, submodules={model[1]})))
    plain = StateDictOptions(keep_submodule_prefixes=False)
    found.append(list(get_model_state_dict(model, submodules={model[1]}, options=plain)))
    two = [m.optim.SGD(model[0].parameters(), lr=0.1, momentum=0.9), m.optim.Adagrad(model[2].parameters())]
    found.append(rounded(get_optimizer_state_dict(model, two)))
    lr = m.optim.Adam(model.parameters(), lr=m.tensor(0.3))
    found.append(rounded(get_optimizer_state_dict(model, lr)))
    shared = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    shared[1].weight = shared[0].weight
    filled(shared)
    of_shared = get_optimizer_state_dict(shared, m.optim.AdamW(shared.parameters()))
    found.append(rounded(of_shared))
    fresh = m.optim.AdamW(shared.parameters())
    set_optimizer_state_dict(shared, fresh, of_shared)
    found.append(rounded(fresh.state_dict()))

    class Nested(m.optim.SGD):
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                self.state[p] = {"a": {"b": {"c": m.ones(2) * self.param_groups[0]["lr"]}, "d": 3}, "count": 1}
    nested = Nested(model.parameters(), lr=0.5)
    nested.step()
    of_nested = get_optimizer_state_dict(model, nested, options=flat)
    found.append(rounded(of_nested))
    fresh = Nested(model.parameters(), lr=0.25)
    set_optimizer_state_dict(model, fresh, of_nested, options=flat)
    found.append([rounded(v) for v in fresh.state_dict()["state"].values()])

    # Errors.
    good = {"model": get_model_state_dict(model)}
    found.append(raised(lambda: dcp.load({**good, "nope": m.ones(1)}, checkpoint_id=folder)))
    found.append(raised(lambda: dcp.load({"model": {"0.weight": m.ones(7)}}, checkpoint_id=folder)))
    found.append(raised(lambda: dcp.load({"model": {"0.weight": "text"}}, checkpoint_id=folder)))
    found.append(raised(lambda: dcp.save({"a.b": 1, "a": {"b": 2}}, checkpoint_id=folder)))
    for call in (dcp.save, dcp.load):  # here a CheckpointException too, which the other ranks would hear of
        try:
            call({}, no_dist=True)
        except RuntimeError as error:
            found.append("`checkpoint_id` must be specified if storage_" in str(error))
    found.append(raised(lambda: dcp.save({}, storage_writer=dcp.FileSystemWriter(folder, overwrite=False))))
    found.append(raised(lambda: set_model_state_dict(model, {"0.weight": m.ones(4, 3)})))
    found.append(raised(lambda: get_model_state_dict(model, options=StateDictOptions(broadcast_from_rank0=True))))
    found.append(raised(lambda: get_optimizer_state_dict(model, [])))
    lacks = {"state": {"0.weight": {"step": m.tensor(1.0)}}, "param_groups": [{"params": ["0.weight", "0.bias"]}]}
    found.append(raised(lambda: set_optimizer_state_dict(model, m.optim.Adam(model.parameters()), lacks)))
    future = dcp.async_save({"x": m.ones(2)}, checkpoint_id=folder)
    found.append(sorted(future.result().state_dict_metadata))
    print(json.dumps(found))
"""


def _program(text: str) -> str:
    return textwrap.dedent(START) + textwrap.dedent(text)


def _same(here: str, there: str, count: int) -> None:
    got, expected = (json.loads(out.splitlines()[-1]) for out in (here, there))
    assert len(got) == len(expected) == count
    for place, (mine, their) in enumerate(zip(got, expected)):
        assert mine == their, place


def test_one_process_does_as_torch() -> None:
    here, there = (printed_alone(_program(ALONE), library) for library in ("mica", "torch"))
    _same(here, there, 34)


RANKS = """
    dist.init_process_group("gloo")
    r = dist.get_rank()
    folder = sys.argv[2]
    model = filled(nn.Linear(3, 2))
    wrapped = nn.parallel.DistributedDataParallel(model)
    optimizer = m.optim.AdamW(wrapped.parameters(), lr=0.1)
    trained(model, optimizer)
    of_model, of_optimizer = get_state_dict(wrapped, optimizer)
    found += [rounded(of_model), rounded(of_optimizer)]
    dcp.save({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=folder)
    full = StateDictOptions(full_state_dict=True)
    found.append(rounded(get_model_state_dict(wrapped, options=full)))
    offloaded = StateDictOptions(full_state_dict=True, cpu_offload=True)
    found.append(list(get_model_state_dict(wrapped, options=offloaded)) if r == 0 else [])

    other = nn.parallel.DistributedDataParallel(filled(nn.Linear(3, 2)))
    fresh = m.optim.AdamW(other.parameters(), lr=0.9)
    state = dict(zip(("model", "optimizer"), get_state_dict(other, fresh)))
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(other, fresh, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    found += [rounded(other.state_dict()), rounded(fresh.state_dict())]

    sent = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    last = filled(nn.Linear(3, 2))
    newest = m.optim.AdamW(last.parameters(), lr=0.7)
    set_model_state_dict(last, of_model if r == 0 else {}, options=sent)
    set_optimizer_state_dict(last, newest, of_optimizer if r == 0 else {}, options=sent)
    found += [rounded(last.state_dict()), rounded(newest.state_dict())]

    def load_other(): dcp.load({"model": {"weight": m.ones(2, 3 + r)}}, checkpoint_id=folder)
    found.append(raised(load_other))
    dist.barrier()
    dist.destroy_process_group()
    print(json.dumps(found))
"""


@needs_gloo
def test_two_processes_do_as_torchs(tmp_path: Path) -> None:
    ours, theirs = (
        printed(2, _program(RANKS), library, str(tmp_path / library)) for library in ("mica", "torch")
    )
    for here, there in zip(ours, theirs):
        _same(here, there, 9)


# ---- torch's files


OF_TORCH = """
    from torch.distributed.tensor import DeviceMesh, Replicate, Shard, distribute_tensor
    dist.init_process_group("gloo")
    folder, whole = sys.argv[2], m.arange(70.0).reshape(10, 7)
    mesh = DeviceMesh("cpu", list(range(2)))
    state = {
        "deep": [{"rows": distribute_tensor(whole, mesh, [Shard(0)])}, {"n": 3}],
        "columns": distribute_tensor(whole.bfloat16(), mesh, [Shard(1)]),
        "same": distribute_tensor(whole.long(), mesh, [Replicate()]),
        "plain": whole.bool(), "scalar": m.tensor(2.5), "pair": (1, "x"), "none": m.empty(0, 3),
    }
    dcp.save(state, checkpoint_id=folder)
    dist.barrier()
    dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def of_torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("of torch")
    printed(2, _program(OF_TORCH), "torch", str(folder))
    return folder


def test_torchs_checkpoints_are_read(of_torch: Path) -> None:
    whole = mica.arange(70.0).reshape(10, 7)
    found = _load_state_dict_from_keys(checkpoint_id=of_torch)
    assert mica.equal(found["deep"][0]["rows"], whole) and found["deep"][1] == {"n": 3}
    assert bytes_of(found["columns"]) == bytes_of(whole.bfloat16())
    assert mica.equal(found["same"], whole.long()) and mica.equal(found["plain"], whole.bool())
    assert found["scalar"].item() == 2.5 and found["pair"] == (1, "x") and found["none"].shape == (0, 3)

    def load(r: int) -> None:
        wanted = {"columns": cut(whole.bfloat16(), 0, 3, r), "same": cut(whole.long(), 1, 3, r)}
        expected = [bytes_of(piece.boxes[0][1]) for piece in wanted.values()]
        for piece in wanted.values():
            piece.boxes[0][1].zero_()
        checkpoint.load(wanted, checkpoint_id=of_torch)
        assert [bytes_of(piece.boxes[0][1]) for piece in wanted.values()] == expected

    on_all(3, load)


def _refused(folder: Path) -> BaseException:
    with pytest.raises(CheckpointException) as caught:
        _load_state_dict_from_keys(checkpoint_id=folder)
    ((error, _),) = caught.value.failures.values()
    return error


class Evil:
    """Runs a command when Python's own unpickler reads it."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return (os.system, (self.command,))


def test_torchs_metadata_runs_nothing(of_torch: Path, tmp_path: Path) -> None:
    marker, metadata = tmp_path / "ran", tmp_path / ".metadata"
    metadata.write_bytes(pickle.dumps(Evil(f"touch {marker}")))
    error = _refused(tmp_path)
    assert isinstance(error, pickle.UnpicklingError) and "posix.system" in str(error) and not marker.exists()
    metadata.write_bytes(pickle.dumps({"x": 1}))
    assert "a pickle of type (dict), and no checkpoint's metadata" in str(_refused(tmp_path))
    text = (of_torch / ".metadata").read_bytes()
    seen = set()
    for at in range(0, len(text), 3):
        metadata.write_bytes(text[:at] + bytes([text[at] ^ 4]) + text[at + 1 :])
        error = _refused(tmp_path)  # none of the files is there
        assert isinstance(error, (pickle.UnpicklingError, ValueError, OSError)), (at, error)
        assert len(str(error)) < 2000
        seen.add(type(error).__name__)
    assert seen >= {"FileNotFoundError", "Refused"}
    metadata.write_bytes(text)
    (tmp_path / "__0_0.distcp").write_bytes(b"x")
    assert "it was cut short" in str(_refused(tmp_path))
