"""Calls a function with the local tensors of DTensors, and makes DTensors of what it gives."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mica._C import Tensor
from mica.distributed.device_mesh import DeviceMesh
from mica.distributed.tensor._api import DTensor
from mica.distributed.tensor.placement_types import Placement
from mica.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["implicit_replication", "local_map"]

_Placements = Sequence[Placement] | None


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """A block in which plain tensors beside DTensors count as replicated.

    As `torch.distributed.tensor.experimental.implicit_replication`. In Mica they count so outside of it too, but for
    plain tensors that require grad, which are refused in the block as well.

    Returns:
        context manager: Changes nothing.

    Example:
        >>> with mica.distributed.tensor.experimental.implicit_replication():
        ...     pass
    """
    yield


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Any = None,
    in_placements: Sequence[_Placements] | None = None,
    in_grad_placements: Sequence[_Placements] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable[..., Any]:
    """Makes a function of local tensors one of DTensors.

    As `torch.distributed.tensor.experimental.local_map`.

    Args:
        func (callable, optional): Gets the local tensors in the places of DTensors. Default: None, which makes a
            decorator.
        out_placements (sequence of Placement, or tuple of them): Of each result; None for one that is no tensor.
        in_placements (sequence, optional): Of each argument; None for one that is no DTensor. Default: None, as they lie.
        in_grad_placements (sequence, optional): Of the gradients of each argument. Default: None, as the arguments.
        device_mesh (DeviceMesh, optional): Default: None, that of the first DTensor.
        redistribute_inputs (bool): Brings arguments to `in_placements`. Default: False, others are refused.

    Returns:
        callable: Takes and gives DTensors; with plain tensors alone it is `func`.

    Raises:
        AssertionError: When called: there are not as many placements as arguments or results.
        ValueError: When called: an argument lies otherwise.

    Example:
        >>> from mica.distributed.tensor import Shard, ones
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mesh = mica.distributed.init_device_mesh("cpu", (1,))
        >>> double = mica.distributed.tensor.experimental.local_map(lambda x: 2 * x, [Shard(0)])
        >>> double(ones(2, device_mesh=mesh, placements=[Shard(0)])).to_local()
        tensor([2., 2.])
        >>> mica.distributed.destroy_process_group()
    """
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )

    def local(i: int, x: Any, mesh: DeviceMesh) -> Any:
        if not isinstance(x, DTensor):
            return x
        wanted = None if in_placements is None else in_placements[i]
        if wanted is not None and tuple(wanted) != x.placements:
            if not redistribute_inputs:
                raise ValueError(
                    f"local_map: argument ({i}) has the placements {x.placements}, where in_placements has {tuple(wanted)}; "
                    "redistribute it, or set redistribute_inputs=True."
                )
            x = x.redistribute(mesh, wanted)
        return x.to_local(grad_placements=None if in_grad_placements is None else in_grad_placements[i])

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        flat, spec = tree_flatten(args)
        meshes = [x.device_mesh for x in flat if isinstance(x, DTensor)]
        if not meshes:
            return func(*args, **kwargs)
        mesh = device_mesh or meshes[0]
        for name, given in (("in_placements", in_placements), ("in_grad_placements", in_grad_placements)):
            if given is not None and len(given) != len(flat):
                raise AssertionError(
                    f"local_map: `{name}` has ({len(given)}) items, and the function got ({len(flat)}) arguments."
                )
        made = func(*tree_unflatten([local(i, x, mesh) for i, x in enumerate(flat)], spec), **kwargs)
        results, out_spec = tree_flatten(made)
        several = isinstance(out_placements, tuple)
        placements = list(out_placements) if several else [out_placements] * len(results)
        if len(placements) != len(results):
            raise AssertionError(
                f"local_map: `out_placements` has ({len(placements)}) items, and the function gave ({len(results)}) results."
            )
        laid = [
            DTensor.from_local(x, mesh, p) if isinstance(x, Tensor) and p is not None else x
            for x, p in zip(results, placements)
        ]
        return tree_unflatten(laid, out_spec)

    return mapped
