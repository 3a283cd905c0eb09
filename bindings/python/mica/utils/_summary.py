"""summary(model, *inputs): a table of a network's layers, their output shapes, parameters and bytes.

The model is called once on the device `meta`, where nothing is computed and no memory is taken:
its parameters and buffers are replaced by shapes for the call, and so are the inputs, so that
neither the model nor the random state changes. With device=None the model runs as it is.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import mica
from mica._C import Tensor
from mica.nn.modules.module import Module


@dataclass
class Layer:
    """A row of a `Summary`: one module of the network.

    Args:
        path (str): Where it is, "encoder.0" for instance; empty for the network itself.
        kind (str): Name of its class.
        depth (int): Levels below the network.
        outputs (list of tuple of int): Shapes of what its last call returned.
        output_bytes (int): Size of that, in bytes. Default: 0.
        calls (int): How often it was called. Default: 0.
        parameters (int): Elements of its own parameters, not of those of modules below it. Default: 0.
        trainable (int): Those that require grad. Default: 0.
        parameter_bytes (int): Size of its own parameters, in bytes. Default: 0.

    Example:
        >>> mica.utils.summary(mica.nn.Linear(2, 3), mica.ones(1, 2)).layers[0].outputs
        [(1, 3)]
    """

    path: str
    kind: str
    depth: int
    outputs: list[tuple[int, ...]] = field(default_factory=list)  # the shapes at its last call
    output_bytes: int = 0
    calls: int = 0
    parameters: int = 0
    trainable: int = 0
    parameter_bytes: int = 0


@dataclass
class Summary:
    """What `mica.utils.summary` found: the layers, and totals in elements and bytes; `print` shows a table.

    Args:
        layers (list of Layer): The layers in order, the network first.
        total_parameters (int): Elements of all parameters.
        trainable_parameters (int): Those that require grad.
        parameter_bytes (int): Size of all parameters, in bytes.
        buffer_bytes (int): Size of all buffers, in bytes.
        output_bytes (int): Size of what the innermost layers return, over all calls, in bytes.

    Example:
        >>> mica.utils.summary(mica.nn.Linear(2, 3), mica.ones(1, 2)).total_parameters
        9
    """

    layers: list[Layer]
    total_parameters: int
    trainable_parameters: int
    parameter_bytes: int
    buffer_bytes: int
    output_bytes: int  # of all layers without layers below them, at each call

    def text(self, depth: int | None = None) -> str:
        """Returns the table.

        Args:
            depth (int, optional): Levels below the network to show. Default: all.

        Returns:
            str: The table, a layer in each line.
        """
        head = ("layer", "output", "parameters", "bytes")
        rows = [
            (
                "  " * layer.depth + f"{layer.path.rpartition('.')[2]} ({layer.kind})".lstrip(),
                _shapes(layer) + (f" x {layer.calls}" if layer.calls > 1 else ""),
                f"{layer.parameters:,}" if layer.parameters else "",
                f"{layer.output_bytes:,}" if layer.calls else "",
            )
            for layer in self.layers
            if depth is None or layer.depth <= depth
        ]
        widths = [max(len(row[k]) for row in (head, *rows)) for k in range(4)]

        def line(row: tuple[str, ...]) -> str:
            cells = (row[0].ljust(widths[0]), row[1].ljust(widths[1]))
            return "  ".join((*cells, *(row[k].rjust(widths[k]) for k in (2, 3)))).rstrip()

        rule = "-" * (sum(widths) + 6)
        totals = (
            f"parameters: {self.total_parameters:,} ({self.trainable_parameters:,} trainable), "
            f"{self.parameter_bytes:,} bytes; buffers: {self.buffer_bytes:,} bytes; "
            f"outputs: {self.output_bytes:,} bytes"
        )
        return "\n".join([line(head), rule, *map(line, rows), rule, totals])

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def _shapes(layer: Layer) -> str:
    if not layer.calls:
        return "not called"
    return " ".join("x".join(map(str, shape)) or "scalar" for shape in layer.outputs) or "no tensor"


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for part in value for t in _tensors(part)]
    if hasattr(value, "__dict__"):  # the output classes of model libraries
        return _tensors(vars(value))
    return []


def _bytes(tensors: Any) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _replace(value: Any, device: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {k: _replace(v, device) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_replace(v, device) for v in value)
    return value


def summary(
    model: Module, *inputs: Any, device: Any = "meta", depth: int | None = None, **kwargs: Any
) -> Summary:
    """Lists a network's layers with the shapes of their outputs, their parameters and their sizes in bytes.

    The network is called once on the device "meta", where nothing is computed and no memory is taken;
    neither it nor the random state changes.

    Args:
        model (Module): The network.
        *inputs: Positional arguments of its `forward`; only shapes and dtypes of Tensors matter.
        device (device, optional): Where the call runs. None runs it as it is, for networks that read
            values of Tensors. Default: "meta".
        depth (int, optional): Levels below the network to list. Default: all.
        **kwargs: Keyword arguments of its `forward`.

    Returns:
        Summary: The layers and the totals; `print` shows a table.

    Raises:
        NotImplementedError: The network reads values of Tensors; pass `device=None`.

    Example:
        >>> model = mica.nn.Sequential(mica.nn.Linear(4, 8), mica.nn.ReLU())
        >>> print(mica.utils.summary(model, mica.ones(1, 4)))
        layer         output  parameters  bytes
        ---------------------------------------
        (Sequential)  1x8                    32
          0 (Linear)  1x8             40     32
          1 (ReLU)    1x8                    32
        ---------------------------------------
        parameters: 40 (40 trainable), 160 bytes; buffers: 0 bytes; outputs: 64 bytes
    """
    found: dict[Module, Layer] = {}
    seen: set[int] = set()
    for path, module in model.named_modules():
        layer = found[module] = Layer(path, type(module).__name__, path.count(".") + bool(path))
        for parameter in module._parameters.values():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                layer.parameters += parameter.numel()
                layer.trainable += parameter.numel() * parameter.requires_grad
                layer.parameter_bytes += _bytes([parameter])

    def note(module: Module, args: Any, output: Any) -> None:
        layer, tensors = found[module], _tensors(output)
        layer.calls += 1
        layer.outputs = [tuple(t.shape) for t in tensors]
        layer.output_bytes = _bytes(tensors)

    with ExitStack() as stack:
        for module in found:
            stack.enter_context(module.register_forward_hook(note))
        stack.enter_context(mica.no_grad())
        if device is not None:
            from mica.func._modules import _replaced

            inputs, kwargs = _replace(inputs, device), _replace(kwargs, device)
            held = {**dict(model.named_parameters()), **dict(model.named_buffers())}
            stack.enter_context(_replaced(model, _replace(held, device), True, False))
            stack.enter_context(mica.device(device))
        try:
            model(*inputs, **kwargs)
        except (NotImplementedError, RuntimeError) as error:
            if device is None or "meta" not in str(error):
                raise
            raise NotImplementedError(
                f"{type(model).__name__} reads values of tensors, so that it cannot be called on the device ({device}); "
                "pass device=None to summary() for a run with the inputs as they are."
            ) from error
    layers = list(found.values())
    leaves = [found[m] for m in found if not m._modules]
    return Summary(
        layers if depth is None else [layer for layer in layers if layer.depth <= depth],
        sum(layer.parameters for layer in layers),
        sum(layer.trainable for layer in layers),
        sum(layer.parameter_bytes for layer in layers),
        _bytes(model.buffers()),
        sum(layer.output_bytes * layer.calls for layer in leaves),
    )
