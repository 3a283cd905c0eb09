"""Tensors that begin their life on a mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed.device_mesh import DeviceMesh
from mica.distributed.tensor._api import DTensor
from mica.distributed.tensor._call import Kind
from mica.distributed.tensor._dispatch import agreed
from mica.distributed.tensor._layout import contiguous_strides, local_box
from mica.distributed.tensor._moves import redistributed
from mica.distributed.tensor.placement_types import Placement, Replicate, checked_mesh, normalized

__all__ = ["empty", "full", "ones", "rand", "randn", "zeros"]


def _size_of(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else tuple(size)


def _made(
    name: str,
    make: Callable[[Sequence[int]], Tensor],
    size: tuple[int, ...],
    requires_grad: bool,
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
    drawn: bool = False,
) -> DTensor:
    """What `make` gives of the local sizes; of the whole, where numbers are drawn."""
    device_mesh = checked_mesh(device_mesh, name)
    layout = normalized(placements, device_mesh, len(size), name)
    if any(p.is_partial() for p in layout):
        raise ValueError(f"{name}: the placements {layout} are partial, of which one tensor has no parts.")
    here = device_mesh.get_coordinate()
    if here is None:
        raise RuntimeError(f"{name}: this rank is not in `device_mesh` {device_mesh}, so it has no part.")
    with mica.no_grad():
        if drawn:
            whole = agreed(make(size), device_mesh)
            replicated = (Replicate(),) * device_mesh.ndim
            local = redistributed(whole, device_mesh, size, replicated, layout)
        else:
            local = make(local_box(size, device_mesh.shape, here, layout)[0])
        made = DTensor._of_kind(local, device_mesh, layout, Kind(size, contiguous_strides(size), local.dtype))
    return made.requires_grad_(requires_grad)  # type: ignore[return-value]


_OPTIONS = """
    Args:
        *size (int): The sizes of the whole, apart or as one sequence.
{extra}        dtype (dtype, optional): Default: None, the default dtype.
        layout (layout, optional): As of `mica.{name}`. Default: None.
        requires_grad (bool): Default: False.
        device_mesh (DeviceMesh): The ranks.
        placements (sequence of Placement, optional): One for each dimension of the mesh. Default: None, replicated.

    Returns:
        DTensor: Of shape `size`.

    Raises:
        ValueError: There is no mesh, or placements do not fit it or the shape.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mesh = mica.distributed.init_device_mesh("cpu", (1,))
        >>> mica.distributed.tensor.{name}({example}, device_mesh=mesh).shape
        mica.Size([2, 3])
        >>> mica.distributed.destroy_process_group()
"""


def _documented(first: str, extra: str = "", example: str = "2, 3") -> Callable[[Any], Any]:
    def document(function: Any) -> Any:
        function.__doc__ = first + _OPTIONS.format(extra=extra, name=function.__name__, example=example)
        return function

    return document


_DRAWN = """

    They are the numbers that the first rank draws for the whole tensor, so that they do not depend on the placements.
"""


@_documented("Makes a DTensor of zeros, as `torch.distributed.tensor.zeros`.\n")
def zeros(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    def make(sizes: Sequence[int]) -> Tensor:
        return mica.zeros(sizes, dtype=dtype, layout=layout)

    return _made("zeros", make, _size_of(size), requires_grad, device_mesh, placements)


@_documented("Makes a DTensor of ones, as `torch.distributed.tensor.ones`.\n")
def ones(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    def make(sizes: Sequence[int]) -> Tensor:
        return mica.ones(sizes, dtype=dtype, layout=layout)

    return _made("ones", make, _size_of(size), requires_grad, device_mesh, placements)


@_documented("Makes a DTensor whose elements hold anything, as `torch.distributed.tensor.empty`.\n")
def empty(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    def make(sizes: Sequence[int]) -> Tensor:
        return mica.empty(sizes, dtype=dtype, layout=layout)

    return _made("empty", make, _size_of(size), requires_grad, device_mesh, placements)


@_documented(
    "Makes a DTensor of one number, as `torch.distributed.tensor.full`.\n",
    "        fill_value (number): What each element is.\n",
    "(2, 3), 1.5",
)
def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    def make(sizes: Sequence[int]) -> Tensor:
        return mica.full(sizes, fill_value, dtype=dtype, layout=layout)

    if not isinstance(size, (list, tuple)):
        raise TypeError(
            f"full: `size` is {size!r} of type ({type(size).__name__}); give a sequence of int, as (3,)."
        )
    return _made("full", make, tuple(size), requires_grad, device_mesh, placements)


@_documented("Makes a DTensor of uniform numbers in [0, 1), as `torch.distributed.tensor.rand`." + _DRAWN)
def rand(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    def make(sizes: Sequence[int]) -> Tensor:
        return mica.rand(sizes, dtype=dtype, layout=layout)

    return _made("rand", make, _size_of(size), requires_grad, device_mesh, placements, drawn=True)


@_documented("Makes a DTensor of normal numbers, as `torch.distributed.tensor.randn`." + _DRAWN)
def randn(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    def make(sizes: Sequence[int]) -> Tensor:
        return mica.randn(sizes, dtype=dtype, layout=layout)

    return _made("randn", make, _size_of(size), requires_grad, device_mesh, placements, drawn=True)
