"""Meshes of four processes, with Mica and with torch's gloo: the same places, groups, parts and errors."""

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
        from mica.distributed.device_mesh import DeviceMesh, init_device_mesh
    else:
        import torch as m, torch.distributed as dist
        from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    found = []

    def note(name, f):
        try:
            found.append((name, f()))
        except Exception as error:
            found.append((name, [k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins"]))

    def told(name, mesh):
        note(f"{name} tensor", lambda: [mesh.mesh.tolist(), str(mesh.mesh.dtype).split(".")[-1]])
        note(f"{name} shape", lambda: [mesh.shape, mesh.ndim, mesh.size(), [mesh.size(d) for d in range(mesh.ndim)]])
        note(f"{name} names", lambda: [mesh.mesh_dim_names, mesh.device_type, repr(mesh)])
        note(f"{name} place", lambda: [mesh.get_rank(), mesh.get_coordinate()])
        for d in range(mesh.ndim):
            note(f"{name} group {d}", lambda: dist.get_process_group_ranks(mesh.get_group(d)))
            note(f"{name} local rank {d}", lambda: mesh.get_local_rank(d))
        note(f"{name} groups", lambda: len(mesh.get_all_groups()))
        note(f"{name} only group", lambda: mesh.get_group().size())
        note(f"{name} only local rank", lambda: mesh.get_local_rank())

    def summed(group):
        x = m.tensor([2.0 ** dist.get_rank()])
        dist.all_reduce(x, group=group)
        return x.item()

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))  # makes the default group
    r = dist.get_rank()
    told("2-D", mesh)
    note("sums", lambda: [summed(mesh.get_group("dp")), summed(mesh.get_group(1))])
    for name in ("dp", "tp"):
        told(name, mesh[name])
        note(f"{name} sums", lambda: summed(mesh[name].get_group()))
        note(f"{name} equal", lambda: [mesh[name] == mesh[name], mesh[name] == mesh, len({mesh[name], mesh[name]})])
    note("whole part", lambda: mesh["dp", "tp"] is mesh)
    flat = mesh["dp", "tp"]._flatten("all")
    told("flat", flat)
    note("flat again", lambda: [mesh._flatten("all") is flat, mesh["all"] == flat, mesh.get_group("all").size()])
    note("flat of one", lambda: mesh["tp"]._flatten().mesh_dim_names)
    note("flat of a name", lambda: mesh._flatten("dp"))
    note("flat of others", lambda: mesh["tp"]._flatten("all"))
    note("overlap", lambda: mesh["all", "tp"])
    told("other order", DeviceMesh("cpu", [[3, 1], [2, 0]], mesh_dim_names=("a", "b")))
    told("line", init_device_mesh("cpu", (4,)))
    note("default", lambda: init_device_mesh("cpu", (4,)).get_group() is dist.GroupMember.WORLD)
    some = DeviceMesh("cpu", m.tensor([1, 2]))
    if r in (1, 2):
        told("some", some)
    note("some places", lambda: [some.get_coordinate(), some.mesh.tolist()])
    three = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("x", "y", "z"))
    told("xz", three["x", "z"])
    told("yz flat", three["y", "z"]._flatten())
    told("xz flat", three["x", "z"]._flatten("both"))
    thin = init_device_mesh("cpu", (2, 2, 1), mesh_dim_names=("dp", "cp", "tp"))
    for names in (("tp", "cp"), ("tp", "dp"), ("cp", "tp"), ("cp", "dp")):
        note(f"thin {names}", lambda: [thin[names].mesh.tolist(), thin[names].shape])
    told("thin flat", thin["dp", "tp"]._flatten())
    told("thin whole flat", thin._flatten("all"))
    note("thin flat, tp", lambda: thin["dp_tp", "tp"].mesh.tolist())
    note("local rank by a flat name", lambda: [mesh.get_local_rank("all"), mesh["dp"].get_local_rank("all")])
    import copy
    note("copied", lambda: copy.deepcopy(mesh) == mesh)
    pair = dist.new_group([0, 2]) if r in (0, 2) else None
    if pair is None:
        dist.new_group([0, 2])
    else:
        told("of group", DeviceMesh.from_group(pair, "cpu"))
        note("of group and mesh", lambda: DeviceMesh.from_group(pair, "cpu", mesh=[0, 1]))
    told("of groups", DeviceMesh.from_group(mesh.get_all_groups(), "cpu", [[0, 1], [2, 3]], mesh_dim_names=("p", "q")))
    note("of groups alone", lambda: DeviceMesh.from_group(mesh.get_all_groups(), "cpu"))
    note("of no group", lambda: DeviceMesh.from_group([], "cpu"))
    note("equal", lambda: [DeviceMesh("cpu", [0, 1, 2, 3]) == init_device_mesh("cpu", (4,)), mesh == three, mesh == 1])
    for name, wrong in {
        "too big": lambda: init_device_mesh("cpu", (2, 4)),
        "same names": lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "a")),
        "few names": lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a",)),
        "number": lambda: init_device_mesh("cpu:0", (4,)),
        "no name": lambda: mesh["cp"],
        "order": lambda: mesh["tp", "dp"],
        "nameless": lambda: init_device_mesh("cpu", (4,))["dp"],
        "nameless flat": lambda: init_device_mesh("cpu", (2, 2))._flatten(),
        "no such name": lambda: mesh.get_group("cp"),
    }.items():
        note(name, wrong)
    dist.barrier()
    dist.destroy_process_group()
    print(found)
"""


def test_four_processes_find_what_torchs_find() -> None:
    ours, theirs = (printed(4, PROGRAM, library) for library in ("mica", "torch"))
    for rank, (here, there) in enumerate(zip(ours, theirs)):
        got, expected = ast.literal_eval(here), ast.literal_eval(there.splitlines()[-1])
        for (name, mine), (_, their) in zip(got, expected):
            assert mine == their, (rank, name)
        assert len(got) == len(expected) > 110
