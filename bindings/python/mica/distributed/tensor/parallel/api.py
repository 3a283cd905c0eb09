"""Applies parallel styles to the submodules that a plan names."""

from __future__ import annotations

import fnmatch
import warnings
from collections.abc import Mapping

from mica import nn
from mica.distributed.device_mesh import DeviceMesh
from mica.distributed.tensor.parallel.style import ParallelStyle
from mica.distributed.tensor.placement_types import checked_mesh

__all__ = ["parallelize_module"]


def parallelize_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | Mapping[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> nn.Module:
    """Lays a module's parameters out on a mesh and changes its inputs and outputs, as a plan says, in place.

    As `torch.distributed.tensor.parallel.parallelize_module`.

    Args:
        module (Module): What is changed.
        device_mesh (DeviceMesh): Of one dimension.
        parallelize_plan (ParallelStyle or mapping): The module's style, or those of submodules by their path, in which
            each name may be a pattern (`layers.*.fc1`). Default: None, which changes nothing and warns.
        src_data_rank (int, optional): Whose parameters all ranks get; None: each keeps its own. Default: 0.

    Returns:
        Module: The same.

    Raises:
        TypeError: The plan is neither a style nor a mapping to styles, or `device_mesh` is no DeviceMesh.
        ValueError: There is no mesh, or it has several dimensions, or a path is empty.

    Example:
        >>> from mica.distributed.tensor.parallel import ColwiseParallel, parallelize_module
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mesh = mica.distributed.init_device_mesh("cpu", (1,))
        >>> net = parallelize_module(mica.nn.Linear(2, 3), mesh, ColwiseParallel())
        >>> net.weight.placements
        (Shard(dim=0),)
        >>> mica.distributed.destroy_process_group()
    """
    device_mesh = checked_mesh(device_mesh, "parallelize_module")
    if device_mesh.ndim != 1:
        raise ValueError(
            f"parallelize_module: `device_mesh` has ({device_mesh.ndim}) dimensions; give the one of tensor parallelism, "
            'as mesh["tp"].'
        )
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this "
            "parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, device_mesh)
    if not isinstance(parallelize_plan, Mapping):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if not path:
            raise ValueError("Expect module path to be non-empty, but got empty string!")
        names = path.split(".")
        found = _matching(module, names)
        if not found:
            known = next(n for n in reversed(range(len(names))) if _matching(module, names[:n]))
            within = f"'{'.'.join(names[:known])}' of module {module}" if known else f"module {module}"
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token "
                f"'{names[known]}' in {within}, skipping this plan entry.",
                stacklevel=2,
            )
        for part in found:
            parallelize_module(part, device_mesh, style, src_data_rank=src_data_rank)
    return module


def _matching(module: nn.Module, names: list[str]) -> list[nn.Module]:
    """The submodules at a path of patterns."""
    if not names:
        return [module]
    return [
        found
        for name, child in module.named_children()
        if fnmatch.fnmatch(name, names[0])
        for found in _matching(child, names[1:])
    ]
