"""How a tensor lies on the ranks of one dimension of a mesh: cut, whole on each, or to be reduced."""

from __future__ import annotations

import dataclasses
from typing import Any

from mica.distributed.device_mesh import DeviceMesh

__all__ = ["Partial", "Placement", "Replicate", "Shard"]

REDUCTIONS = ("sum", "avg", "product", "min", "max")


class Placement:
    """How a tensor lies on the ranks of one dimension of a mesh.

    As `torch.distributed.tensor.placement_types.Placement`; use `Shard`, `Replicate` and `Partial`.

    Example:
        >>> mica.distributed.tensor.Shard(0).is_shard()
        True
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Says whether the tensor is cut.

        Args:
            dim (int, optional): Along this dimension. Default: None, along any.

        Returns:
            bool: True of a Shard.
        """
        return False

    def is_replicate(self) -> bool:
        """Says whether each rank has the whole tensor.

        Returns:
            bool: True of a Replicate.
        """
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Says whether the tensor is what the ranks' tensors give when they are reduced.

        Args:
            reduce_op (str, optional): By this reduction. Default: None, by any.

        Returns:
            bool: True of a Partial.
        """
        return False


@dataclasses.dataclass(frozen=True)
class Shard(Placement):
    """The tensor is cut along a dimension, and each rank has one part.

    As `torch.distributed.tensor.Shard`. Of size S, n ranks have ceil(S / n) elements each, as far as they go: the last
    ones have fewer, or none.

    Args:
        dim (int): The dimension; negative ones count from the last.

    Example:
        >>> mica.distributed.tensor.Shard(1)
        Shard(dim=1)
    """

    dim: int

    def __post_init__(self) -> None:
        if type(self.dim) is not int:
            raise TypeError(
                f"Shard's `dim` is {self.dim!r} of type ({type(self.dim).__name__}); give an int."
            )

    def is_shard(self, dim: int | None = None) -> bool:  # noqa: D102
        return dim is None or self.dim == dim

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclasses.dataclass(frozen=True, kw_only=True)
class _StridedShard(Shard):
    """The dimension counts through two, of which the inner one is cut: what a view makes that joins them.

    As `torch.distributed.tensor.placement_types._StridedShard`. It comes of views alone, on meshes of one dimension.

    Args:
        dim (int): The dimension.
        split_factor (int): The size of the outer one.
    """

    split_factor: int

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclasses.dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole tensor.

    As `torch.distributed.tensor.Replicate`.

    Example:
        >>> mica.distributed.tensor.Replicate()
        Replicate()
    """

    def is_replicate(self) -> bool:  # noqa: D102
        return True

    def __str__(self) -> str:
        return "R"


@dataclasses.dataclass(frozen=True)
class Partial(Placement):
    """The tensor is what the ranks' tensors give when they are reduced element by element.

    As `torch.distributed.tensor.Partial`.

    Args:
        reduce_op (str): "sum", "avg", "product", "min" or "max". Default: "sum".

    Raises:
        ValueError: There is no such reduction.

    Example:
        >>> mica.distributed.tensor.Partial()
        Partial(sum)
    """

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op not in REDUCTIONS:
            raise ValueError(
                f"Partial's `reduce_op` ({self.reduce_op!r}) is none of {', '.join(REDUCTIONS)}."
            )

    def is_partial(self, reduce_op: str | None = None) -> bool:  # noqa: D102
        return reduce_op is None or self.reduce_op == reduce_op

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


def normalized(placements: Any, mesh: Any, ndim: int | None, call: str) -> tuple[Placement, ...]:
    """One placement for each dimension of the mesh, with dimensions from 0; None: replicated.

    `ndim` is of the tensor that they are for, None where it is not known.
    """
    if placements is None:
        return (Replicate(),) * mesh.ndim
    given = (placements,) if isinstance(placements, Placement) else tuple(placements)
    if len(given) != mesh.ndim:
        raise ValueError(
            f"{call}: `placements` are ({len(given)}), and `device_mesh` has ({mesh.ndim}) dimensions; give one for each."
        )
    made: list[Placement] = []
    for placement in given:
        if not isinstance(placement, Placement):
            raise TypeError(
                f"{call}: the placement ({placement!r}) is no Placement; give Shard(dim), Replicate() or Partial()."
            )
        if isinstance(placement, Shard) and ndim is not None and not isinstance(placement, _StridedShard):
            if not -ndim <= placement.dim < ndim:
                least = f"the ({ndim}) dimensions of the tensor; expected -{ndim} to {ndim - 1}."
                raise IndexError(
                    f"{call}: {placement!r} is beyond {least if ndim else 'the tensor, which has no dimensions to cut.'}"
                )
            placement = Shard(placement.dim % ndim)
        made.append(placement)
    _check_reductions(made, call)
    return tuple(made)


def _check_reductions(layout: list[Placement], call: str) -> None:
    """Refuses terms whose value depends on which dimension of the mesh is reduced first."""
    unlike = {p.reduce_op for p in layout if isinstance(p, Partial)}
    if len(unlike) > 1 and unlike != {"sum", "avg"}:
        raise ValueError(
            f"{call}: the placements {tuple(layout)} reduce by {' and '.join(sorted(unlike))}, of which the order would "
            "decide what the tensor is; give one reduction for all dimensions of the mesh."
        )


def checked_mesh(mesh: Any, call: str) -> DeviceMesh:
    """What a call is given as `device_mesh`.

    Raises:
        TypeError: It is no DeviceMesh.
        ValueError: It is None.
    """
    if mesh is None:
        raise ValueError(f"{call}: `device_mesh` is None, and there is no current mesh; give one.")
    if not isinstance(mesh, DeviceMesh):
        raise TypeError(
            f"{call}: `device_mesh` is {mesh!r} of type ({type(mesh).__name__}); give a DeviceMesh, as of init_device_mesh()."
        )
    return mesh
