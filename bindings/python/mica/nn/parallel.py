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
from mica.nn._distributed import DistributedDataParallel as DistributedDataParallel
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
    """Cuts tensors along a dimension, one part for each device.

    As `torch.nn.parallel.scatter`.

    Args:
        inputs (any): A Tensor, or a list, tuple or dict of values, cut as far down as it goes. What is no
            tensor goes to each device.
        target_gpus (sequence of device or int): The devices; an int is a number of the accelerator.
        dim (int): The dimension along which tensors are cut, into parts of nearly equal size. Default: 0.

    Returns:
        list: One value like `inputs` for each device; fewer where there are fewer entries than devices.

    Raises:
        RuntimeError: A device is given as a number, and there is no accelerator.

    Example:
        >>> from mica.nn.parallel import scatter
        >>> scatter({"x": mica.arange(4), "factor": 2}, ["cpu", "cpu"])
        [{'x': tensor([0, 1]), 'factor': 2}, {'x': tensor([2, 3]), 'factor': 2}]
    """
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
    """Cuts the arguments of a call along a dimension, by position and by name.

    As `torch.nn.parallel.scatter_gather.scatter_kwargs`.

    Args:
        inputs (tuple): Arguments by position.
        kwargs (dict or None): Arguments by name.
        target_gpus (sequence of device or int): The devices; an int is a number of the accelerator.
        dim (int): The dimension along which tensors are cut. Default: 0.

    Returns:
        tuple of 2 tuple: For each device the arguments by position, and those by name; of one length.

    Raises:
        RuntimeError: A device is given as a number, and there is no accelerator.

    Example:
        >>> from mica.nn.parallel import scatter_kwargs
        >>> scatter_kwargs((mica.arange(4),), {"factor": 2}, ["cpu", "cpu"])
        (((tensor([0, 1]),), (tensor([2, 3]),)), ({'factor': 2}, {'factor': 2}))
    """
    cut = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(cut), len(named))
    return (
        (*cut, *(() for _ in range(count - len(cut)))),
        (*named, *({} for _ in range(count - len(named)))),
    )


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Puts the results of several devices together along a dimension, on one device.

    As `torch.nn.parallel.gather`; gradients go back to the parts.

    Args:
        outputs (sequence): Results of one kind: Tensors, or lists, tuples or dicts of them.
        target_device (device or int): Where; an int is a number of the accelerator.
        dim (int): The dimension along which tensors are joined. Default: 0.

    Returns:
        any: Like each of the results.

    Raises:
        RuntimeError: The device is given as a number, and there is no accelerator.
        ValueError: The results are dicts of different lengths.

    Warns:
        UserWarning: Tensors without dimensions are joined to a vector.

    Example:
        >>> from mica.nn.parallel import gather
        >>> gather([mica.ones(2), mica.zeros(1)], "cpu")
        tensor([1., 1., 0.])
    """
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
    """Copies a module to several devices.

    As `torch.nn.parallel.replicate`.

    Args:
        network (Module): Stays as it is.
        devices (sequence of device or int): One for each replica; an int is a number of the accelerator.
        detach (bool): The replicas' parameters record no gradient; else gradients reach those of `network`.
            Default: False.

    Returns:
        list of Module: The replicas. Their parameters are plain tensors, so that `parameters()` of them is
        empty.

    Raises:
        RuntimeError: A device is given as a number, and there is no accelerator.

    Example:
        >>> from mica.nn.parallel import replicate
        >>> layer = mica.nn.Linear(2, 1)
        >>> first, second = replicate(layer, ["cpu", "cpu"])
        >>> (first(mica.ones(2)) + second(mica.ones(2))).backward()
        >>> layer.weight.grad
        tensor([[2., 2.]])
    """

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
    """Calls each of several modules with arguments of its own, one after another.

    As `torch.nn.parallel.parallel_apply`, which calls them in threads.

    Args:
        modules (sequence of Module): The modules that are called, one a device.
        inputs (sequence): For each module its arguments: a tuple or list of them, or the only one.
        kwargs_tup (sequence of dict, optional): For each module its arguments by name. Default: None, none.
        devices (sequence, optional): Without effect: each module runs where its parameters are.

    Returns:
        list: What each module gave.

    Raises:
        AssertionError: The sequences differ in length.

    Example:
        >>> from mica.nn.parallel import parallel_apply
        >>> parallel_apply([mica.nn.ReLU(), mica.nn.Tanh()], [mica.tensor([-1.0]), mica.tensor([0.0])])
        [tensor([0.]), tensor([0.])]
    """
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
    """Calls a module with a batch that is cut among devices, and puts the results together.

    As `torch.nn.parallel.data_parallel`. `DataParallel` is this as a module. Tensors in `inputs` and
    `module_kwargs`, also inside tuples, lists and dicts, are cut along `dim`; other values go to every device. The
    results are joined along `dim`, so that a module that reduces over the batch gives one number for each device
    (scalars become a vector, with a warning): reduce outside.

    Args:
        module (Module): Called, or replicated where there is more than one device.
        inputs (tuple or any): Its arguments; what is no tuple is the only one.
        device_ids (sequence of device or int, optional): The devices. Default: None, all of the accelerator;
            without an accelerator the module is just called.
        output_device (device or int, optional): Where the result is. Default: the first device.
        dim (int): The dimension of the batch. Default: 0.
        module_kwargs (dict, optional): Its arguments by name.

    Returns:
        any: The parts' results, joined; tensors, or tuples, lists and dicts of them.

    Raises:
        RuntimeError: A device is given as a number, and there is no accelerator.

    Example:
        >>> from mica.nn.parallel import data_parallel
        >>> data_parallel(mica.nn.Linear(2, 1), mica.ones(4, 2), ["cpu", "cpu"]).shape
        mica.Size([4, 1])
    """
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
    """A module that cuts each batch among the devices of this process, and puts the results together.

    As `torch.nn.DataParallel`, except that the devices compute one after another. Without an accelerator it
    calls its module. Its state dict has `module.` before each name.

    Args:
        module (Module): Its parameters are on the first device.
        device_ids (sequence of device or int, optional): The devices; an int is a number of the accelerator.
            Default: None, all of the accelerator.
        output_device (device or int, optional): Where the result is. Default: the first device.
        dim (int): The dimension of the batch. Default: 0.

    Attributes:
        module (Module): The module that is called.

    Shape:
        - Input and output: as of the module; tensors are cut along `dim`.

    Example:
        >>> model = mica.nn.DataParallel(mica.nn.Linear(2, 1))
        >>> model(mica.ones(4, 2)).shape
        mica.Size([4, 1])
        >>> list(model.state_dict())
        ['module.weight', 'module.bias']
    """

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
        """Copies the module to several devices.

        Args:
            module (Module): Stays as it is.
            device_ids (sequence of device or int): One for each replica.

        Returns:
            list of Module: The replicas.
        """
        return replicate(module, device_ids, not mica.is_grad_enabled())

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Sequence[Any]) -> Any:
        """Cuts the arguments of a call among devices.

        Args:
            inputs (tuple): Arguments by position.
            kwargs (dict or None): Arguments by name.
            device_ids (sequence of device or int): The devices.

        Returns:
            tuple of 2 tuple: For each device the arguments by position, and those by name.
        """
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Any], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """Calls each replica with arguments of its own.

        Args:
            replicas (sequence of Module): Copies of the module, one a device.
            inputs (sequence of tuple): For each replica its arguments.
            kwargs (sequence of dict): For each replica its arguments by name.

        Returns:
            list: What each gave.
        """
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Puts the results together on one device.

        Args:
            outputs (sequence): What the replicas gave.
            output_device (device or int): The device on which the results are joined.

        Returns:
            any: Like each of the results.
        """
        return gather(outputs, output_device, dim=self.dim)
