"""Ranks laid out as an array, with a group for each of its dimensions.

    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("data", "model"))
    mica.distributed.all_reduce(gradient, group=mesh.get_group("data"))

The ranks that differ in one coordinate alone are a group of that dimension.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed._group import ProcessGroup
from mica.distributed._init import GroupMember, group_of, init_process_group, is_initialized, new_group
from mica.distributed._places import get_process_group_ranks, get_rank

__all__ = ["DeviceMesh", "init_device_mesh"]


def _check_device(device_type: str) -> str:
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}; give the name of the device alone."
        )
    if device_type != "cpu":
        raise NotImplementedError(
            f"A DeviceMesh of device type ({device_type}) is not there: collectives take tensors on the CPU alone so "
            "far; give `cpu`."
        )
    return device_type


def _ranks_of(mesh: Any) -> Tensor:
    ranks: Tensor = mica.as_tensor(mesh, device="cpu").detach().to(mica.int32).contiguous()
    return ranks


class _Dimension:
    """A dimension of a mesh: dimensions of the root that are counted through as one, and its group on this rank."""

    def __init__(self, of_root: tuple[int, ...], group: ProcessGroup | None) -> None:
        self.of_root, self.group = of_root, group


class DeviceMesh:
    """Ranks as an array of any number of dimensions.

    As `torch.distributed.device_mesh.DeviceMesh`. All ranks of the default group make it, also those outside of it.

    Args:
        device_type (str): "cpu".
        mesh (Tensor or nested sequence of int): Ranks, numbered in the default group.
        mesh_dim_names (sequence of str, optional): A name for each dimension. Default: None.

    Raises:
        NotImplementedError: The device is not the CPU.
        RuntimeError: There are more ranks in it than in the default group, or names do not fit.
        ValueError: There is no rank, a rank is there twice, or is none of the default group's.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mica.distributed.device_mesh.DeviceMesh("cpu", [[0]], mesh_dim_names=("data", "model"))
        DeviceMesh((data=1, model=1), 'cpu', stride=(1, 1))
        >>> mica.distributed.destroy_process_group()
    """

    _ranks: Tensor  # of the root, by its dimensions
    _names: tuple[str, ...] | None
    _dimensions: list[_Dimension]
    _root: DeviceMesh
    _flattened: dict[str, DeviceMesh]  # of a root: what _flatten has made, by name
    _here: tuple[int, ...] | None  # this rank's coordinates in the root

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None) -> None:
        _check_device(device_type)
        if not is_initialized():
            init_process_group()
        ranks = _ranks_of(mesh)
        self._begin(ranks, mesh_dim_names, None)
        self._dimensions = [_Dimension((d,), self._make_group((d,))) for d in range(ranks.ndim)]

    def _begin(self, ranks: Tensor, names: Sequence[str] | None, root: DeviceMesh | None) -> None:
        self._ranks, self._root, self._flattened = ranks, self if root is None else root, {}
        self._names = tuple(names) if names else None
        if root is not None:
            self._here = root._here
            return
        world = group_of(None).size()
        if not ranks.numel():
            raise ValueError(
                f"A DeviceMesh of shape {tuple(ranks.shape)} has no ranks; every size is at least 1."
            )
        if ranks.numel() > world:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {world}, but found {ranks.numel()} ranks!"
            )
        if self._names is not None and len(self._names) != ranks.ndim:
            raise RuntimeError(
                f"mesh_dim_names {self._names} are ({len(self._names)}) names of ({ranks.ndim}) dimensions."
            )
        listed = ranks.flatten().tolist()
        if len(set(listed)) < len(listed) or not all(0 <= r < world for r in listed):
            raise ValueError(
                f"A DeviceMesh of ranks {ranks.tolist()} is not of different ones of ({world}) ranks."
            )
        found = (ranks == get_rank()).nonzero().tolist()
        self._here = tuple(found[0]) if found else None

    def _rows(self, of_root: tuple[int, ...]) -> list[list[int]]:
        """The ranks of each group that differs in those dimensions of the root alone."""
        others = [d for d in range(self._ranks.ndim) if d not in of_root]
        size = math.prod(self._ranks.shape[d] for d in of_root)
        rows: list[list[int]] = self._ranks.permute(*others, *of_root).reshape(-1, size).tolist()
        return rows

    def _make_group(self, of_root: tuple[int, ...]) -> ProcessGroup | None:
        world, mine = group_of(None), None
        for row in self._rows(of_root):
            group = (
                world if len(row) == world.size() else new_group(row)
            )  # which numbers ranks as the world does
            if group is not GroupMember.NON_GROUP_MEMBER:
                mine = group
        return mine

    def _part(self, dimensions: list[_Dimension], names: tuple[str, ...]) -> DeviceMesh:
        part = DeviceMesh.__new__(DeviceMesh)
        part._begin(self._ranks, names, self._root)
        part._dimensions = dimensions
        return part

    @property
    def device_type(self) -> str:
        """The name of the device."""
        return "cpu"

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of the dimensions, or None."""
        return self._names

    @property
    def mesh(self) -> Tensor:
        """The ranks, int32: of a part of a mesh those that share this rank's other coordinates.

        Raises:
            RuntimeError: A part of a mesh that this rank is not in.
        """
        chosen = list(dict.fromkeys(d for dimension in self._dimensions for d in dimension.of_root))
        others = [d for d in range(self._ranks.ndim) if d not in chosen]
        if others and self._here is None:
            raise RuntimeError(
                f"Rank ({get_rank()}) is not in the mesh {self._ranks.tolist()}, so a part of it names no ranks here."
            )
        ranks = self._ranks.permute(*others, *chosen)
        for d in others:
            assert self._here is not None
            ranks = ranks[self._here[d]]
        return ranks.reshape(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of ranks along each dimension."""
        return tuple(
            math.prod(self._ranks.shape[d] for d in dimension.of_root) for dimension in self._dimensions
        )

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._dimensions)

    def size(self, mesh_dim: int | None = None) -> int:
        """Counts ranks.

        Args:
            mesh_dim (int, optional): Along which dimension. Default: None, all of them.

        Returns:
            int: Their number.
        """
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """Gives this rank's number in the default group.

        Returns:
            int: From 0.
        """
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Gives the place of this rank.

        Returns:
            tuple of int: By dimension; None where the rank is not in the mesh.
        """
        return self._coordinate

    @functools.cached_property
    def _coordinate(self) -> tuple[int, ...] | None:
        if self._here is None:
            return None
        place = (self.mesh == get_rank()).nonzero().tolist()
        return tuple(place[0])

    def _number(self, mesh_dim: int | str | None, call: str) -> int:
        """The number of a dimension that is given by number or name."""
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"{call} of a DeviceMesh of ({self.ndim}) dimensions needs `mesh_dim` to say which one."
                )
            return 0
        if isinstance(mesh_dim, str):
            if self._names is None or mesh_dim not in self._names:
                raise KeyError(f"Mesh dimension '{mesh_dim}' does not exist; there are {self._names}.")
            return self._names.index(mesh_dim)
        if not -self.ndim <= mesh_dim < self.ndim:
            raise IndexError(f"{call}({mesh_dim}) is beyond the ({self.ndim}) dimensions of the DeviceMesh.")
        return mesh_dim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Gives this rank's group of a dimension: the ranks that differ in that coordinate alone.

        Args:
            mesh_dim (int or str, optional): Number or name. Default: None, the only one.

        Returns:
            ProcessGroup: It lives as long as the default group.

        Raises:
            KeyError: There is no such name.
            RuntimeError: It is None and there are several, or this rank is not in the mesh.
        """
        flat = self._root._flattened.get(mesh_dim) if isinstance(mesh_dim, str) else None
        if flat is not None:
            return flat.get_group()
        group = self._dimensions[self._number(mesh_dim, "get_group")].group
        if group is None:
            raise RuntimeError(
                f"Rank ({get_rank()}) is not in the mesh {self._ranks.tolist()}; it has no group of it."
            )
        return group

    def get_all_groups(self) -> list[ProcessGroup]:
        """Gives this rank's groups.

        Returns:
            list of ProcessGroup: One for each dimension.
        """
        return [self.get_group(d) for d in range(self.ndim)]

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Gives this rank's number in its group of a dimension, which counts ranks as the default group does.

        Args:
            mesh_dim (int or str, optional): Number or name. Default: None, the only one.

        Returns:
            int: From 0.
        """
        return self.get_group(mesh_dim).rank()

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh with these dimensions alone, and this rank's other coordinates."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if self._names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        if names == self._names:
            return self
        known = dict(zip(self._names, self._dimensions))
        if self._root is self:
            known |= {name: flat._dimensions[0] for name, flat in self._flattened.items()}
        if not names or not all(name in known for name in names):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {list(known)}."
            )
        chosen = [known[name] for name in names]
        # Of one rank alone a dimension stands anywhere.
        of_root = [d for dimension in chosen for d in dimension.of_root if self._ranks.shape[d] > 1]
        if len(set(of_root)) < len(of_root):
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        if of_root != sorted(of_root):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order."
            )
        return self._part(chosen, names)

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """The mesh of one dimension with the same ranks; all ranks of the default group call it."""
        if self._names is None:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._names)
        if self.ndim == 1 and name in self._names:
            return self
        root = self._root
        if root._names is not None and name in root._names:
            raise ValueError(
                f"{name} already exists: the mesh has the dimensions {root._names}; give another name."
            )
        of_root = tuple(d for dimension in self._dimensions for d in dimension.of_root)
        made = root._flattened.get(name)
        if made is None:
            made = root._part([_Dimension(of_root, root._make_group(of_root))], (name,))
            root._flattened[name] = made
        elif made._dimensions[0].of_root != of_root:
            raise ValueError(
                f"Flatten mesh with mesh_dim_name {name} has been created before of other dimensions."
            )
        return made

    @staticmethod
    def from_group(
        group: ProcessGroup | Sequence[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:
        """Makes a mesh of groups that are there.

        As `torch.distributed.device_mesh.DeviceMesh.from_group`.

        Args:
            group (ProcessGroup or sequence of ProcessGroup): This rank's, one for each dimension.
            device_type (str): "cpu".
            mesh (Tensor or nested sequence of int, optional): Ranks, numbered in the default group. Default: None, those
                of the group, which must be one.
            mesh_dim_names (sequence of str, optional): A name for each dimension. Default: None.

        Returns:
            DeviceMesh: With these groups.

        Raises:
            ValueError: Groups, mesh and names do not fit.
        """
        _check_device(device_type)
        one = isinstance(group, ProcessGroup)
        groups: list[ProcessGroup] = [group] if isinstance(group, ProcessGroup) else list(group)
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        own = get_process_group_ranks(groups[0])
        given = None if mesh is None else _ranks_of(mesh)
        if one and given is not None and given.tolist() != own:
            raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {own}")
        if not one and (given is None or mesh_dim_names is None):
            raise ValueError("A DeviceMesh of several ProcessGroups needs `mesh` and `mesh_dim_names`.")
        if given is not None and given.ndim != len(groups):
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {given.tolist()} and "
                f"{len(groups)} ProcessGroups"
            )
        made = DeviceMesh.__new__(DeviceMesh)
        made._begin(mica.tensor(own, dtype=mica.int32) if given is None else given, mesh_dim_names, None)
        made._dimensions = [_Dimension((d,), one_group) for d, one_group in enumerate(groups)]
        return made

    def _strides(self) -> list[Any]:
        """How far apart neighbours of each dimension stand in the root, as torch prints it."""
        strides = []
        for dimension in self._dimensions:
            steps: list[tuple[int, int]] = []  # (size, stride), neighbours that count through joined
            for d in dimension.of_root:
                size, stride = self._ranks.shape[d], self._ranks.stride(d)
                if size == 1 and len(dimension.of_root) > 1:
                    continue
                if steps and steps[-1][1] == size * stride:
                    steps[-1] = (steps[-1][0] * size, stride)
                else:
                    steps.append((size, stride))
            strides.append(
                tuple(stride for _, stride in steps) if len(steps) > 1 else steps[0][1] if steps else 1
            )
        return strides

    def __repr__(self) -> str:
        named = [f"{n}={size}" for n, size in zip(self._names, self.shape)] if self._names else None
        shape = f"({', '.join(named)})" if named else f"{self.shape}"
        return f"DeviceMesh({shape}, '{self.device_type}', stride={tuple(self._strides())})"

    @functools.cached_property
    def _key(self) -> tuple[Any, ...]:
        return tuple(self._ranks.flatten().tolist()), self.shape, tuple(self._strides()), self._names

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __deepcopy__(self, memo: Any) -> DeviceMesh:
        return self  # it is as it was made, and its groups are this rank's


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """Makes a mesh of the first ranks of the default group, in their order.

    As `torch.distributed.device_mesh.init_device_mesh`. All ranks of the default group call it; where there is no
    default group yet, it is made as `init_process_group()` does.

    Args:
        device_type (str): "cpu".
        mesh_shape (sequence of int): The number of ranks along each dimension.
        mesh_dim_names (sequence of str, optional): A name for each dimension. Default: None.
        backend_override (dict, optional): Not there. Default: None.

    Returns:
        DeviceMesh: With a group for each dimension.

    Raises:
        NotImplementedError: The device is not the CPU, or `backend_override` is given.
        RuntimeError: Names do not fit, or there are not so many ranks.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mesh = mica.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
        >>> mesh["model"].get_group().size()
        1
        >>> mica.distributed.destroy_process_group()
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names "
                f"{tuple(mesh_dim_names)}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
                f"{len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if backend_override:
        raise NotImplementedError(
            f"init_device_mesh(backend_override={backend_override!r}) is not there: every group takes the default "
            "group's engine; leave it out."
        )
    _check_device(device_type)
    ranks = mica.arange(math.prod(mesh_shape), dtype=mica.int32, device="cpu").view(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
