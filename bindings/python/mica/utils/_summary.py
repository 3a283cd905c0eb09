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
    """One module: where it is, what it gave, and its own parameters (not those of modules below it)."""

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
    """The layers in order, the first being the model; text() and str() give the table."""

    layers: list[Layer]
    total_parameters: int
    trainable_parameters: int
    parameter_bytes: int
    buffer_bytes: int
    output_bytes: int  # of all layers without layers below them, at each call

    def text(self, depth: int | None = None) -> str:
        """The table, down to a depth."""
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
    """What the layers of `model` give for these inputs; print it for the table.

    A forward that reads values (`if x.sum() > 0`) cannot run on `meta`: pass device=None for a run with
    the inputs as they are.
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
