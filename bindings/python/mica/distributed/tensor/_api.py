"""DTensor: a tensor that lies on the ranks of a mesh, and computes as one tensor.

Its shape, strides and dtype are the whole tensor's; each rank holds a part of it. Gradients are recorded above the
mesh (the operators' gradients see whole shapes), and each operator that Autograd calls is computed by its sharding
rule (_dispatch.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mica
from mica import _C, nn
from mica._C import Tensor
from mica.autograd import Function
from mica.distributed.device_mesh import DeviceMesh
from mica.distributed.tensor._call import Kind, kind_of
from mica.distributed.tensor._dispatch import dispatch
from mica.distributed.tensor._layout import local_box, strides_like
from mica.distributed.tensor._moves import redistributed
from mica.distributed.tensor._plan import number_of, numbered
from mica.distributed.tensor._sources import Source, is_stale, local_of
from mica.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    checked_mesh,
    normalized,
)

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]

Layout = tuple[Placement, ...]
_identities: dict[Any, int] = {}


def _of_gradient(placements: Layout) -> Layout:
    """Where the gradient lies of what lies so: whole where that is partial."""
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)


class DTensor(Tensor):
    """A tensor that lies on the ranks of a mesh, and computes as one tensor.

    As `torch.distributed.tensor.DTensor`. Make it with `distribute_tensor`, `DTensor.from_local` or the functions of
    `mica.distributed.tensor` (`zeros`, `randn`, ...). All ranks of the mesh call the same operators in the same order.

    Example:
        >>> from mica.distributed.tensor import Shard, distribute_tensor
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mesh = mica.distributed.init_device_mesh("cpu", (1,))
        >>> x = distribute_tensor(mica.ones(2, 3), mesh, [Shard(0)])
        >>> (x @ x.T).full_tensor()
        tensor([[3., 3.],
                [3., 3.]])
        >>> mica.distributed.destroy_process_group()
    """

    _local_tensor: Tensor  # as it was; local_of() gives what it is now
    _mesh: DeviceMesh
    _placements: Layout
    _source: Source | None = None  # of a view of what was brought here
    _key: int = 0  # see _identified()

    __torch_function__ = _C._disabled_torch_function_impl  # operators see it, functions do not

    @classmethod
    def _of_kind(cls, local: Tensor, mesh: DeviceMesh, placements: Layout, kind: Kind) -> DTensor:
        """A DTensor of a known whole, over what this rank has of it."""
        made: DTensor = Tensor._make_wrapper_subclass(
            DTensor, kind.shape, strides=kind.stride, dtype=kind.dtype, device=local.device
        )
        made._local_tensor, made._mesh, made._placements = local, mesh, placements
        return made

    @classmethod
    def _view_of(
        cls, base: DTensor, local: Tensor, placements: Layout, kind: Kind, detached: bool = False
    ) -> DTensor:
        """The same as a view of another one; `detached`: not for Autograd."""
        offset = base.storage_offset() * base.element_size() // kind.dtype.itemsize + kind.offset
        made: DTensor = Tensor._make_wrapper_subclass(
            DTensor,
            kind.shape,
            strides=kind.stride,
            storage_offset=offset,
            dtype=kind.dtype,
            device=local.device,
            view_of=base,
            detached=detached,
        )
        made._local_tensor, made._mesh, made._placements = local, base._mesh, placements
        return made

    @classmethod
    def _of_local(cls, local: Tensor, mesh: DeviceMesh, placements: Layout) -> DTensor:
        """A DTensor of a whole that each rank has, or has a term of."""
        return cls._of_kind(local, mesh, placements, kind_of(local))

    def _identified(self) -> int:
        """A number that tensors of this layout, place, shape, strides and dtype have, and no others; 0 for views of copies."""
        if self._source is not None:
            return 0
        about = (number_of(self._mesh), self._placements, kind_of(self))
        self._key = _identities.get(about) or numbered(_identities, about)
        return self._key

    __mica_dispatch__ = classmethod(dispatch)

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> DTensor:
        """Makes a DTensor of what each rank has of it.

        As `torch.distributed.tensor.DTensor.from_local`. Gradients flow to `local_tensor`.

        Args:
            local_tensor (Tensor): This rank's part.
            device_mesh (DeviceMesh): The ranks.
            placements (sequence of Placement, optional): How the parts are put together, one for each dimension of the
                mesh. Default: None, each rank has the whole.
            run_check (bool): Brings the first rank's tensor to those that replicate it. Default: False.
            shape (sequence of int, optional): Of the whole; give it where parts are not equal. Default: None, that of
                equal parts.
            stride (sequence of int, optional): Of the whole. Default: None, as the part lies.

        Returns:
            DTensor: Its shape is `shape`.

        Raises:
            TypeError: `local_tensor` is a DTensor or no tensor, or `device_mesh` no DeviceMesh.
            ValueError: `device_mesh` is None, placements reduce unlike, this rank's part does not fit `shape`, or placements do not fit the mesh.
        """
        if not isinstance(local_tensor, Tensor) or isinstance(local_tensor, DTensor):
            raise TypeError(
                f"DTensor.from_local: `local_tensor` is a {type(local_tensor).__name__}; give a plain Tensor, of a DTensor its to_local()."
            )
        device_mesh = checked_mesh(device_mesh, "DTensor.from_local")
        layout = normalized(placements, device_mesh, local_tensor.ndim, "DTensor.from_local")
        sizes = list(local_tensor.shape)
        for dim, placement in enumerate(layout):
            if isinstance(placement, Shard):
                sizes[placement.dim] *= device_mesh.size(dim)
        whole = tuple(sizes if shape is None else shape)
        if shape is not None:
            _check_part(local_tensor, whole, device_mesh, layout)
        strides = strides_like(local_tensor.stride(), whole) if stride is None else tuple(stride)
        made: DTensor = _FromLocal.apply(local_tensor, device_mesh, layout, whole, strides, run_check)
        return made

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Gives this rank's part.

        As `torch.distributed.tensor.DTensor.to_local`.

        Args:
            grad_placements (sequence of Placement, optional): How the gradients of the parts are put together. Default:
                None, as the parts; whole where those are partial.

        Returns:
            Tensor: Its memory is the DTensor's.
        """
        grads = (
            None
            if grad_placements is None
            else normalized(grad_placements, self._mesh, self.ndim, "to_local")
        )
        if not mica.is_grad_enabled():
            return local_of(self)
        local: Tensor = _ToLocal.apply(self, grads)
        return local

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """Gives the same tensor in another layout.

        As `torch.distributed.tensor.DTensor.redistribute`. Gradients come back in this one's layout.

        Args:
            device_mesh (DeviceMesh, optional): The tensor's own. Default: None.
            placements (sequence of Placement): One for each dimension of the mesh.
            async_op (bool): Takes part in nothing; the call waits. Default: False.
            forward_dtype (dtype, optional): What it is cast to first. Default: None.
            backward_dtype (dtype, optional): What gradients are cast to first. Default: None.

        Returns:
            DTensor: Of this layout.

        Raises:
            NotImplementedError: `device_mesh` is another one.
            RuntimeError: No placements are given, or Partial ones of a tensor that is not partial.
        """
        if placements is None:
            raise RuntimeError("DTensor.redistribute: `placements` is needed for redistribute!")
        if device_mesh is not None and device_mesh != self._mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        layout = normalized(placements, self._mesh, self.ndim, "DTensor.redistribute")
        for old, new in zip(self._placements, layout):
            if isinstance(new, Partial) and old != new:
                raise RuntimeError(
                    f"Can not redistribute from {old!r} to {new!r}, redistributing to Partial is for internal use only!"
                )
        made: DTensor = _Redistribute.apply(self, layout, forward_dtype, backward_dtype)
        return made

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Gives the whole tensor, on every rank.

        As `torch.distributed.tensor.DTensor.full_tensor`.

        Args:
            grad_placements (sequence of Placement, optional): How the ranks' gradients are put together. Default: None,
                each rank has the whole.

        Returns:
            Tensor: Of the DTensor's shape.
        """
        whole = self.redistribute(placements=[Replicate()] * self._mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks that it lies on."""
        return self._mesh

    @property
    def placements(self) -> Layout:
        """How it lies on them: a Placement for each dimension of the mesh."""
        return self._placements

    @property
    def data(self) -> DTensor:
        """The same tensor without history; what is assigned takes this one's place, layout and local tensor too."""
        made: DTensor = super().data  # type: ignore[assignment]
        return made

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, DTensor):
            raise TypeError(
                f"DTensor.data is set to a {type(value).__name__} of shape {list(getattr(value, 'shape', ()))}, which lies on no mesh; "
                "give a DTensor, as of distribute_tensor(), or copy_() into this one."
            )
        local = local_of(value)
        Tensor.data.__set__(self, value)  # type: ignore[attr-defined]
        self._local_tensor, self._mesh, self._placements = local, value._mesh, value._placements
        self._source, self._key = value._source, 0

    def set_(self, *args: Any, **kwargs: Any) -> Any:
        """Is not there: a DTensor has no memory of its own.

        Args:
            *args (Any): As of `Tensor.set_`.
            **kwargs (Any): As of `Tensor.set_`.

        Returns:
            DTensor: Nothing is ever returned.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            f"set_() of a DTensor of shape {list(self.shape)} is not there: it has no memory of its own. Assign another "
            "DTensor to its `data`, or copy_() into it."
        )

    @property
    def _spec(self) -> Any:
        """Mesh and placements, as torch's programs read them."""
        from mica.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta

        return DTensorSpec(
            self._mesh, self._placements, TensorMeta(self.shape, tuple(self.stride()), self.dtype)
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        local = (
            "<stale: written elsewhere since, the next operator renews it>"
            if is_stale(self)
            else self._local_tensor
        )
        return f"DTensor(local_tensor={local}, device_mesh={self._mesh}, placements={self._placements})"

    def __format__(self, spec: str) -> str:
        if spec and not self.ndim:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __copy__(self) -> DTensor:
        return self._with_local(local_of(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise NotImplementedError(
            f"A DTensor of shape {list(self.shape)} and placements {self._placements} cannot be pickled, as mica.save() and "
            "pickle do: its mesh is of this process. Save with mica.distributed.checkpoint, by its parts, or its full_tensor()."
        )

    def __deepcopy__(self, memo: Any) -> DTensor:
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
            )
        with mica.no_grad():
            local = local_of(self).clone()
        memo[id(self)] = made = self._with_local(local)
        return made

    def _with_local(self, local: Tensor) -> DTensor:
        """A leaf that lies as this one, and is a Parameter if it is."""
        made = DTensor._of_kind(local, self._mesh, self._placements, kind_of(self))
        if isinstance(self, nn.Parameter):
            return nn.Parameter(made, self.requires_grad)  # type: ignore[return-value]
        return made.requires_grad_(self.requires_grad)  # type: ignore[return-value]

    def __create_write_items__(self, fqn: str, object: Any) -> list[Any]:  # noqa: D105
        from mica.distributed.tensor._checkpoint import write_items

        return write_items(fqn, self)

    def __create_chunk_list__(self) -> list[Any]:  # noqa: D105
        from mica.distributed.tensor._checkpoint import chunks

        return chunks(self)

    def __get_tensor_shard__(self, index: Any) -> Tensor:  # noqa: D105
        from mica.distributed.tensor._checkpoint import shard

        return shard(self, index)


def _check_part(local: Tensor, whole: Sequence[int], mesh: DeviceMesh, layout: Layout) -> None:
    here = mesh.get_coordinate()
    if here is None:
        return
    sizes, _ = local_box(whole, mesh.shape, here, layout)
    if sizes != list(local.shape):
        raise ValueError(
            f"DTensor.from_local: `local_tensor` of shape {list(local.shape)} is not this rank's part {sizes} of `shape` {list(whole)} with placements {layout}."
        )


class _FromLocal(Function):
    @staticmethod
    def forward(
        ctx: Any, local: Tensor, mesh: DeviceMesh, layout: Layout, shape: Any, strides: Any, check: bool
    ) -> Any:
        ctx.layout = layout
        mine = local.detach()
        if check:
            for dim, placement in enumerate(layout):
                if isinstance(placement, Replicate):
                    group = mesh.get_group(dim).handle
                    mine = mica.ops.collectives.broadcast(mine.contiguous(), group, 0)
        return DTensor._of_kind(mine, mesh, layout, Kind(tuple(shape), tuple(strides), local.dtype))

    @staticmethod
    def backward(ctx: Any, grad: DTensor) -> Any:
        laid = grad.redistribute(placements=_of_gradient(ctx.layout))
        return laid.to_local(), None, None, None, None, None


class _ToLocal(Function):
    @staticmethod
    def forward(ctx: Any, x: DTensor, grads: Layout | None) -> Any:
        ctx.layout = _of_gradient(x._placements) if grads is None else grads
        ctx.mesh, ctx.shape = x._mesh, tuple(x.shape)
        local = local_of(x)
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        strides = strides_like(grad.stride(), ctx.shape)
        return _FromLocal.apply(grad, ctx.mesh, ctx.layout, ctx.shape, strides, False), None


class _Redistribute(Function):
    @staticmethod
    def forward(ctx: Any, x: DTensor, layout: Layout, forward_dtype: Any, backward_dtype: Any) -> Any:
        ctx.layout, ctx.dtype, ctx.backward_dtype = _of_gradient(x._placements), x.dtype, backward_dtype
        return _moved(x if forward_dtype is None else x.to(forward_dtype), layout)

    @staticmethod
    def backward(ctx: Any, grad: DTensor) -> Any:
        if ctx.backward_dtype is not None:
            grad = grad.to(ctx.backward_dtype)
        return grad.redistribute(placements=ctx.layout).to(ctx.dtype), None, None, None


def _moved(x: DTensor, layout: Layout) -> DTensor:
    """The same tensor in another layout, without history."""
    mine = local_of(x)
    local = redistributed(mine, x._mesh, x.shape, x._placements, layout)
    strides = tuple(x.stride()) if local is mine else strides_like(local.stride(), x.shape)
    return DTensor._of_kind(local.view_as(local), x._mesh, layout, Kind(tuple(x.shape), strides, x.dtype))


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Lays a tensor that all ranks have out on a mesh.

    As `torch.distributed.tensor.distribute_tensor`. The result is a leaf, as `tensor` must be.

    Args:
        tensor (Tensor): The whole.
        device_mesh (DeviceMesh): The ranks.
        placements (sequence of Placement, optional): One for each dimension of the mesh. Default: None, replicated.
        src_data_rank (int, optional): Whose tensor it is, numbered in each dimension of the mesh; None: each rank takes
            its part of its own tensor, without communication. Default: 0.

    Returns:
        DTensor: Of the tensor's shape.

    Raises:
        RuntimeError: `tensor` is no leaf, or this rank is not in the mesh.
        TypeError: `tensor` is no Tensor, or `device_mesh` no DeviceMesh.
        ValueError: `placements` do not fit the mesh or the tensor, or one is Partial.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mesh = mica.distributed.init_device_mesh("cpu", (1,))
        >>> mica.distributed.tensor.distribute_tensor(mica.zeros(2), mesh).placements
        (Replicate(),)
        >>> mica.distributed.destroy_process_group()
    """
    device_mesh = checked_mesh(device_mesh, "distribute_tensor")
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"distribute_tensor: `tensor` is {tensor!r} of type ({type(tensor).__name__}); give a Tensor, as of mica.tensor()."
        )
    if device_mesh.get_coordinate() is None:
        raise RuntimeError(
            f"distribute_tensor: this rank is not in `device_mesh` {device_mesh}, so it has no part."
        )
    layout = normalized(placements, device_mesh, tensor.ndim, "distribute_tensor")
    if isinstance(tensor, DTensor):
        if tensor._mesh != device_mesh or tensor._placements != layout:
            raise ValueError(
                f"distribute_tensor: `tensor` is a DTensor with placements {tensor._placements} on {tensor._mesh}; call its redistribute()."
            )
        return tensor
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!"
        )
    if any(isinstance(p, Partial) for p in layout):
        raise ValueError(
            f"distribute_tensor: the placements {layout} are partial, of which one tensor has no parts; use DTensor.from_local."
        )
    with mica.no_grad():
        whole = tensor.detach()
        if src_data_rank is not None:
            for dim in range(device_mesh.ndim):
                group = device_mesh.get_group(dim).handle
                whole = mica.ops.collectives.broadcast(whole.contiguous(), group, src_data_rank)
        replicated: Layout = (Replicate(),) * device_mesh.ndim
        local = redistributed(whole, device_mesh, whole.shape, replicated, layout)
        if local is tensor or local.data_ptr() == tensor.data_ptr():
            local = local.clone()
        kind = Kind(tuple(tensor.shape), strides_like(local.stride(), tensor.shape), tensor.dtype)
        made = DTensor._of_kind(local, device_mesh, layout, kind)
    return made.requires_grad_(tensor.requires_grad)  # type: ignore[return-value]


def distribute_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, nn.Module, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> nn.Module:
    """Makes a module's parameters and buffers DTensors, in place.

    As `torch.distributed.tensor.distribute_module`.

    Args:
        module (Module): What is changed.
        device_mesh (DeviceMesh): The ranks.
        partition_fn (callable, optional): `partition_fn(name, submodule, mesh)` lays out what it wants of each
            submodule; the rest is replicated. Default: None.
        input_fn (callable, optional): `input_fn(module, inputs, mesh)` gives other inputs. Default: None.
        output_fn (callable, optional): `output_fn(module, outputs, mesh)` gives another output. Default: None.

    Returns:
        Module: The same.

    Raises:
        ValueError: There is no mesh.
        RuntimeError: The module was distributed before.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> mesh = mica.distributed.init_device_mesh("cpu", (1,))
        >>> net = mica.distributed.tensor.distribute_module(mica.nn.Linear(2, 3), mesh)
        >>> net.bias.placements
        (Replicate(),)
        >>> mica.distributed.destroy_process_group()
    """
    device_mesh = checked_mesh(device_mesh, "distribute_module")
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been called on this module!"
        )
    mesh = device_mesh
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        _replicate(part, mesh)
    if input_fn is not None:
        change_inputs = input_fn
        module.register_forward_pre_hook(lambda mod, inputs: change_inputs(mod, inputs, mesh))
    if output_fn is not None:
        change_output = output_fn
        module.register_forward_hook(lambda mod, inputs, outputs: change_output(mod, outputs, mesh))
    module._distribute_module_applied = True  # type: ignore[assignment]
    return module


def _replicate(module: nn.Module, mesh: DeviceMesh) -> None:
    """A module's own parameters and buffers that are plain."""
    for name, p in list(module._parameters.items()):
        if p is not None and not isinstance(p, DTensor):
            module.register_parameter(name, nn.Parameter(distribute_tensor(p.data, mesh), p.requires_grad))
    for name, b in list(module._buffers.items()):
        if b is not None and not isinstance(b, DTensor):
            module._buffers[name] = distribute_tensor(b, mesh)
