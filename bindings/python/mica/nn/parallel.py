"""DataParallel over the devices of one process, and the steps that it is made of.

A batch is cut along a dimension, each device gets a part and a replica of the module, and the
results are put together on one device. The parts are computed one after another. Devices are
given as numbers of the accelerator, or as anything that `mica.device` takes. With no
accelerator, as on a CPU, DataParallel calls its module.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.nn.modules.module import Module


def _device(given: Any) -> Any:
    if not isinstance(given, int):
        return mica.device(given)
    accelerator = mica.accelerator.current_accelerator(check_available=True)
    if accelerator is None:
        raise RuntimeError(f"The device ({given}) is given as a number, but there is no accelerator.")
    return mica.device(accelerator.type, given)


def _of_parts(parts: list[Any], like: Any) -> Any:
    """A container like `like` of the values."""
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*parts)
    return type(like)(parts)


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Tensors, in containers too, cut along `dim`: one value a device. What is no tensor goes to each."""
    devices = [_device(given) for given in target_gpus]

    def cut(value: Any) -> list[Any]:
        if isinstance(value, Tensor):
            return [part.to(device) for part, device in zip(value.chunk(len(devices), dim), devices)]
        if isinstance(value, dict) and value:
            return [_of_parts(list(part), value) for part in zip(*map(cut, value.items()))]
        if isinstance(value, (list, tuple)) and value:
            return [_of_parts(list(part), value) for part in zip(*map(cut, value))]
        return [value for _ in devices]

    return cut(inputs)


def scatter_kwargs(inputs: Any, kwargs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """The arguments of each device by position and by name, two tuples of one length."""
    cut = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(cut), len(named))
    return (
        (*cut, *(() for _ in range(count - len(cut)))),
        (*named, *({} for _ in range(count - len(named)))),
    )


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Results of several devices, in containers too, put together along `dim` on one."""
    first, device = outputs[0], _device(target_device)
    if isinstance(first, Tensor):
        if all(x.ndim == 0 for x in outputs) and dim == 0:
            warnings.warn("Results of 0 dimensions are gathered as a vector.", stacklevel=2)
            outputs = [x.reshape(1) for x in outputs]
        return mica.cat([x.to(device) for x in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(x) != len(first) for x in outputs):
            raise ValueError("Results to gather are dicts of different lengths.")
        return type(first)((key, gather([x[key] for x in outputs], device, dim)) for key in first)
    return _of_parts([gather(list(parts), device, dim) for parts in zip(*outputs)], first)


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """A module for each device whose parameters are copies; gradients reach the first, unless `detach`."""

    def moved(tensor: Tensor | None, device: Any) -> Tensor | None:
        return None if tensor is None else (tensor.detach() if detach else tensor).to(device)

    replicas = []
    for given in devices:
        device = _device(given)
        made = {id(m): copy.copy(m) for m in network.modules()}
        for module in network.modules():
            held = made[id(module)].__dict__
            held["_modules"] = {name: made.get(id(child)) for name, child in module._modules.items()}
            held["_buffers"] = {name: moved(buffer, device) for name, buffer in module._buffers.items()}
            held["_parameters"] = {name: None for name, p in module._parameters.items() if p is None}
            held.update({name: moved(p, device) for name, p in module._parameters.items() if p is not None})
        replicas.append(made[id(network)])
    return replicas


def parallel_apply(
    modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Any = None, devices: Any = None
) -> list[Any]:
    """What each module gives for its arguments; `devices`, where the modules are, may stay out."""
    named = kwargs_tup if kwargs_tup is not None else ({},) * len(modules)
    if not len(modules) == len(inputs) == len(named):
        raise AssertionError(
            f"Numbers of modules ({len(modules)}), inputs ({len(inputs)}) and keyword arguments ({len(named)}) differ."
        )
    given = [x if isinstance(x, (list, tuple)) else (x,) for x in inputs]
    return [module(*args, **kwargs) for module, args, kwargs in zip(modules, given, named)]


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """The module over the devices, without an object that keeps them."""
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    ids = list(range(mica.accelerator.device_count())) if device_ids is None else list(device_ids)
    if not ids:
        return module(*inputs, **(module_kwargs or {}))
    args, named = scatter_kwargs(inputs, module_kwargs, ids, dim)
    if not args and not named:
        args, named = ((),), ({},)
    if len(ids) == 1:
        return module(*args[0], **named[0])
    found = parallel_apply(replicate(module, ids[: len(args)], not mica.is_grad_enabled()), args, named)
    return gather(found, ids[0] if output_device is None else output_device, dim)


class DataParallel(Module):
    """A module as `.module`, over several devices at a time."""

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []
        if mica.accelerator.current_accelerator(check_available=True) is None:
            return
        ids = list(range(mica.accelerator.device_count())) if device_ids is None else list(device_ids)
        self.device_ids, self.dim = ids, dim
        self.output_device = ids[0] if output_device is None else output_device
        self.src_device_obj = _device(ids[0])
        if len(ids) == 1:
            module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        return data_parallel(self.module, inputs, self.device_ids, self.output_device, self.dim, kwargs)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Any]:
        """A replica on each device."""
        return replicate(module, device_ids, not mica.is_grad_enabled())

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Sequence[Any]) -> Any:
        """The arguments of each device."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Any], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """What each replica gives."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The results on one device."""
        return gather(outputs, output_device, dim=self.dim)
