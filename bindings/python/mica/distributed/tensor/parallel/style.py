"""How a layer lies on a mesh of one dimension, and what it takes and gives."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any

from mica import nn
from mica._C import Tensor
from mica.distributed.device_mesh import DeviceMesh
from mica.distributed.tensor._api import DTensor, distribute_module, distribute_tensor
from mica.distributed.tensor.placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]


class ParallelStyle(abc.ABC):
    """How a module is laid out; a base of styles.

    As `torch.distributed.tensor.parallel.ParallelStyle`. A subclass defines `_apply(module, device_mesh)`, which changes
    the module and returns it.

    Example:
        >>> isinstance(mica.distributed.tensor.parallel.ColwiseParallel(), mica.distributed.tensor.parallel.ParallelStyle)
        True
    """

    src_data_rank: int | None = 0

    @abc.abstractmethod
    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module: ...


def _brought(x: Any, mesh: DeviceMesh, given: Placement | None, wanted: Placement | None) -> Any:
    """A tensor that lies as `given` says, if it is plain, as a DTensor that lies as `wanted` says."""
    if not isinstance(x, Tensor) or given is None:
        return x
    if not isinstance(x, DTensor):
        x = DTensor.from_local(x, mesh, [given])
    return x if wanted is None else _laid(x, mesh, wanted)


def _laid(x: DTensor, mesh: DeviceMesh, wanted: Placement) -> DTensor:
    shown = Shard(wanted.dim % x.ndim) if isinstance(wanted, Shard) else wanted
    return x if x.placements == (shown,) else x.redistribute(mesh, [shown])


class _Layer(ParallelStyle):
    """A layer with one tensor in and one out."""

    input_layouts: tuple[Placement, ...]
    output_layouts: tuple[Placement, ...]
    use_local_output: bool

    def _parameters(self, module: nn.Module) -> dict[str, Placement]:
        """The placement of each parameter that is not replicated.

        Raises:
            NotImplementedError: The style knows no layers of this kind.
        """
        raise NotImplementedError

    def _wanted(self, module: nn.Module) -> Placement:
        """How the layer takes its input."""
        raise NotImplementedError

    def _partition(self, name: str, module: nn.Module, mesh: DeviceMesh) -> None:
        placements = self._parameters(module)
        for key, p in list(module._parameters.items()):
            if p is not None:
                laid = distribute_tensor(
                    p.data, mesh, [placements.get(key, Replicate())], src_data_rank=self.src_data_rank
                )
                module.register_parameter(key, nn.Parameter(laid, p.requires_grad))

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def enter(mod: nn.Module, inputs: Any, mesh: DeviceMesh) -> Any:
            if not inputs:
                raise TypeError(
                    f"{type(self).__name__} lays out the first input of a {type(mod).__name__} by its place, and the call gives "
                    "none by place: call it as module(x), without the name."
                )
            return (_brought(inputs[0], mesh, self.input_layouts[0], self._wanted(mod)), *inputs[1:])

        def leave(mod: nn.Module, output: Any, mesh: DeviceMesh) -> Any:
            laid = _laid(output, mesh, self.output_layouts[0])
            return laid.to_local() if self.use_local_output else laid

        return distribute_module(module, device_mesh, self._partition, enter, leave)

    def _refuse(self, module: nn.Module, known: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} currently only support {known}; the module is a {type(module).__name__}."
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_Layer):
    """Cuts a Linear's outputs, or an Embedding's columns, among the ranks.

    As `torch.distributed.tensor.parallel.ColwiseParallel`.

    Args:
        input_layouts (Placement, optional): How a plain input lies. Default: None, replicated.
        output_layouts (Placement, optional): How the output lies. Default: None, cut along the last dimension.
        use_local_output (bool): Gives a plain tensor, this rank's part. Default: True.

    Example:
        >>> mica.distributed.tensor.parallel.ColwiseParallel(use_local_output=False)
        ColwiseParallel(input_layouts=(Replicate(),), output_layouts=(Shard(dim=-1),), use_local_output=False)
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.use_local_output = use_local_output

    def _parameters(self, module: nn.Module) -> dict[str, Placement]:
        if isinstance(module, nn.Linear):
            return {"weight": Shard(0), "bias": Shard(0)}
        if isinstance(module, nn.Embedding):
            return {"weight": Shard(1)}
        raise self._refuse(module, "nn.Linear and nn.Embedding")

    def _wanted(self, module: nn.Module) -> Placement:
        return Replicate()


class RowwiseParallel(_Layer):
    """Cuts a Linear's inputs, or an Embedding's rows, among the ranks; what they give is summed.

    As `torch.distributed.tensor.parallel.RowwiseParallel`.

    Args:
        input_layouts (Placement, optional): How a plain input lies. Default: None, cut along the last dimension.
        output_layouts (Placement, optional): How the output lies. Default: None, replicated.
        use_local_output (bool): Gives a plain tensor. Default: True.

    Example:
        >>> mica.distributed.tensor.parallel.RowwiseParallel(use_local_output=False)
        RowwiseParallel(input_layouts=(Shard(dim=-1),), output_layouts=(Replicate(),), use_local_output=False)
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.use_local_output = use_local_output

    def _parameters(self, module: nn.Module) -> dict[str, Placement]:
        if isinstance(module, nn.Linear):
            return {"weight": Shard(1)}
        if isinstance(module, nn.Embedding):
            return {"weight": Shard(0)}
        raise self._refuse(module, "nn.Linear and nn.Embedding")

    def _wanted(self, module: nn.Module) -> Placement:
        return Shard(-1) if isinstance(module, nn.Linear) else Replicate()


class SequenceParallel(_Layer):
    """Cuts the sequence among the ranks, of layers that compute each place apart: LayerNorm, RMSNorm, Dropout.

    As `torch.distributed.tensor.parallel.SequenceParallel`. Parameters are replicated.

    Args:
        sequence_dim (int): The sequence's dimension. Default: 1.
        use_local_output (bool): Gives a plain tensor, this rank's part. Default: False.

    Example:
        >>> mica.distributed.tensor.parallel.SequenceParallel()
        SequenceParallel(sequence_dim=1, use_local_output=False)
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.input_layouts = self.output_layouts = self.sequence_sharding
        self.use_local_output = use_local_output

    def _parameters(self, module: nn.Module) -> dict[str, Placement]:
        return {}

    def _wanted(self, module: nn.Module) -> Placement:
        return self.sequence_sharding[0]

    def __repr__(self) -> str:
        return f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, use_local_output={self.use_local_output})"


_Layouts = Placement | Sequence[Placement | None] | None


def _several(layouts: _Layouts) -> tuple[Placement | None, ...] | None:
    return (layouts,) if isinstance(layouts, Placement) else None if layouts is None else tuple(layouts)


def _pair(
    given: _Layouts, wanted: _Layouts, what: str
) -> list[tuple[Placement | None, Placement | None]] | None:
    """For each tensor how it lies and how it shall; None where nothing is said."""
    before, after = _several(given), _several(wanted)
    if before is None:
        return None
    if after is None:
        raise AssertionError(f"desired module {what}s should not be None!")
    if len(before) != len(after):
        raise AssertionError(
            f"{what}_layouts and desired_{what}_layouts should have same length! They have ({len(before)}) and ({len(after)})."
        )
    return list(zip(before, after))


class PrepareModuleInput(ParallelStyle):
    """Makes a module's inputs DTensors that lie as the module wants them.

    As `torch.distributed.tensor.parallel.PrepareModuleInput`.

    Args:
        input_layouts (Placement or sequence, optional): How plain inputs lie; None for one that is left. Default: None.
        desired_input_layouts (Placement or sequence, optional): How they shall lie. Default: None.
        input_kwarg_layouts (mapping, optional): The same of inputs by name. Default: None.
        desired_input_kwarg_layouts (mapping, optional): The same of inputs by name. Default: None.
        use_local_output (bool): Gives the module plain tensors, this rank's parts. Default: False.

    Raises:
        AssertionError: There are not as many layouts as desired ones.

    Example:
        >>> from mica.distributed.tensor import Replicate, Shard
        >>> style = mica.distributed.tensor.parallel.PrepareModuleInput(
        ...     input_layouts=(Shard(0), None), desired_input_layouts=(Replicate(), None)
        ... )
        >>> style.desired_input_layouts
        (Replicate(), None)
    """

    def __init__(
        self,
        *,
        input_layouts: _Layouts = None,
        desired_input_layouts: _Layouts = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _several(input_layouts)
        self.desired_input_layouts = _several(desired_input_layouts)
        self.use_local_output = use_local_output
        self._places = _pair(input_layouts, desired_input_layouts, "input")
        self.input_kwarg_layouts = dict(input_kwarg_layouts or {})
        self.desired_input_kwarg_layouts = dict(desired_input_kwarg_layouts or {})
        if self.input_kwarg_layouts.keys() != self.desired_input_kwarg_layouts.keys():
            raise AssertionError(
                "input_kwarg_layouts and desired_input_kwarg_layouts should have same keys! They are "
                f"{sorted(self.input_kwarg_layouts)} and {sorted(self.desired_input_kwarg_layouts)}."
            )

    def _one(self, x: Any, mesh: DeviceMesh, given: Placement | None, wanted: Placement | None) -> Any:
        laid = _brought(x, mesh, given, wanted)
        return laid.to_local() if self.use_local_output and isinstance(laid, DTensor) else laid

    def _prepared(self, inputs: Any, mesh: DeviceMesh) -> Any:
        if self._places is None:
            return inputs
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(inputs) != len(self._places):
            raise ValueError(
                f"module inputs and input_layouts should have same length! They have ({len(inputs)}) and ({len(self._places)})."
            )
        return tuple(self._one(x, mesh, *places) for x, places in zip(inputs, self._places))

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def enter(mod: nn.Module, inputs: Any, named: dict[str, Any]) -> Any:
            laid = {
                name: self._one(
                    x,
                    device_mesh,
                    self.input_kwarg_layouts.get(name),
                    self.desired_input_kwarg_layouts.get(name),
                )
                for name, x in named.items()
            }
            return self._prepared(inputs, device_mesh), laid

        module.register_forward_pre_hook(enter, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Makes a module's outputs lie as the program wants them.

    As `torch.distributed.tensor.parallel.PrepareModuleOutput`.

    Args:
        output_layouts (Placement or sequence): How plain outputs lie; None for one that is left.
        desired_output_layouts (Placement or sequence): How they shall lie.
        use_local_output (bool): Gives plain tensors, this rank's parts. Default: True.

    Raises:
        AssertionError: There are not as many layouts as desired ones.

    Example:
        >>> from mica.distributed.tensor import Replicate, Shard
        >>> style = mica.distributed.tensor.parallel.PrepareModuleOutput(
        ...     output_layouts=Replicate(), desired_output_layouts=Shard(0)
        ... )
        >>> style.output_layouts
        (Replicate(),)
    """

    def __init__(
        self, *, output_layouts: _Layouts, desired_output_layouts: _Layouts, use_local_output: bool = True
    ) -> None:
        self.output_layouts = _several(output_layouts)
        self.desired_output_layouts = _several(desired_output_layouts)
        self.use_local_output = use_local_output
        self._places = _pair(output_layouts, desired_output_layouts, "output") or []

    def _prepared(self, outputs: Any, mesh: DeviceMesh) -> Any:
        several = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(several) != len(self._places):
            raise ValueError(
                f"module outputs and output_layouts should have same length! They have ({len(several)}) and ({len(self._places)})."
            )
        laid = []
        for x, places in zip(several, self._places):
            y = _brought(x, mesh, *places)
            laid.append(y.to_local() if self.use_local_output and isinstance(y, DTensor) else y)
        return tuple(laid) if isinstance(outputs, tuple) else laid[0]

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        module.register_forward_hook(lambda mod, inputs, outputs: self._prepared(outputs, device_mesh))
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """Both of `PrepareModuleInput` and `PrepareModuleOutput`.

    As `torch.distributed.tensor.parallel.PrepareModuleInputOutput`.

    Args:
        input_layouts (Placement or sequence, optional): As of PrepareModuleInput. Default: None.
        desired_input_layouts (Placement or sequence, optional): As of PrepareModuleInput. Default: None.
        input_kwarg_layouts (mapping, optional): As of PrepareModuleInput. Default: None.
        desired_input_kwarg_layouts (mapping, optional): As of PrepareModuleInput. Default: None.
        use_local_input (bool): Gives the module plain tensors. Default: False.
        output_layouts (Placement or sequence): As of PrepareModuleOutput.
        desired_output_layouts (Placement or sequence): As of PrepareModuleOutput.
        use_local_output (bool): Gives plain tensors. Default: True.

    Raises:
        AssertionError: There are not as many layouts as desired ones.

    Example:
        >>> from mica.distributed.tensor import Replicate, Shard
        >>> style = mica.distributed.tensor.parallel.PrepareModuleInputOutput(
        ...     input_layouts=Shard(0), desired_input_layouts=Replicate(),
        ...     output_layouts=Replicate(), desired_output_layouts=Shard(0),
        ... )
        >>> style.prepare_module_output.desired_output_layouts
        (Shard(dim=0),)
    """

    def __init__(
        self,
        *,
        input_layouts: _Layouts = None,
        desired_input_layouts: _Layouts = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: _Layouts,
        desired_output_layouts: _Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        return self.prepare_module_output._apply(
            self.prepare_module_input._apply(module, device_mesh), device_mesh
        )
