"""Meshes of ranks that are threads or processes: groups that compute, and what is refused."""

from __future__ import annotations

import pytest
from ranks import on_all, on_ranks

import mica
import mica.distributed as dist
from mica.distributed.device_mesh import DeviceMesh, init_device_mesh


def summed(group: object) -> int:
    x = mica.tensor([1 << dist.get_rank()])
    dist.all_reduce(x, group=group)
    return int(x.item())


def test_the_groups_of_eight_ranks_are_those_that_differ_in_one_coordinate() -> None:
    def f(r: int) -> None:
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
        for d, name in enumerate(("pp", "dp", "tp")):
            bit = 1 << (2 - d)
            assert summed(mesh.get_group(name)) == (1 << (r & ~bit)) + (1 << (r | bit))
            assert mesh.get_local_rank(d) == mesh.get_coordinate()[d] == bool(r & bit)
        flat = mesh["pp", "tp"]._flatten()
        assert flat.mesh_dim_names == ("pp_tp",) and mesh["pp_tp"] == flat
        assert summed(flat.get_group()) == sum(1 << s for s in range(8) if s & 2 == r & 2)
        assert mesh["dp"].mesh.tolist() == [r & ~2, r | 2]

    on_all(8, f)


def test_ranks_outside_of_a_mesh_have_no_groups_of_it() -> None:
    def f(r: int) -> None:
        mesh = DeviceMesh("cpu", [[0, 2]], mesh_dim_names=("dp", "tp"))
        if r == 1:
            assert mesh.get_coordinate() is None and mesh.mesh.tolist() == [[0, 2]]
            for call in (
                lambda: mesh.get_group("tp"),
                lambda: mesh.get_local_rank(1),
                lambda: mesh["tp"].mesh,
            ):
                with pytest.raises(RuntimeError, match=r"Rank \(1\) is not in the mesh"):
                    call()
        else:
            assert summed(mesh.get_group("tp")) == 5 and mesh.get_coordinate() == (0, r // 2)

    on_all(3, f)


def test_what_makes_no_mesh_is_refused_with_a_sentence() -> None:
    def f(r: int) -> None:
        for call, error, says in (
            (lambda: init_device_mesh("cuda", (1,)), NotImplementedError, "device type (cuda)"),
            (
                lambda: init_device_mesh("cpu", (1,), backend_override={0: "x"}),
                NotImplementedError,
                "leave it out",
            ),
            (lambda: init_device_mesh("cpu", (0, 1)), ValueError, "of shape (0, 1) has no ranks"),
            (lambda: DeviceMesh("cpu", [1]), ValueError, "is not of different ones"),
            (
                lambda: DeviceMesh("cpu", [0], mesh_dim_names=("a", "b")),
                RuntimeError,
                "(2) names of (1) dimensions",
            ),
            (lambda: init_device_mesh("cpu", (1, 1)).get_group(), RuntimeError, "needs `mesh_dim`"),
            (
                lambda: init_device_mesh("cpu", (1, 1)).get_group(2),
                IndexError,
                "get_group(2) is beyond the (2)",
            ),
        ):
            with pytest.raises(error) as raised:
                call()
            assert says in str(raised.value), raised.value

    on_all(1, f)
    [error, _] = on_ranks(2, lambda r: DeviceMesh("cpu", [0, 0]))
    assert isinstance(error, ValueError)
