"""mica.autograd.graph.draw: the backward graph as an SVG picture.

Leaves stand above, what was computed from them below; arrows follow the forward, and
gradients flow against them. Nothing beyond Python is needed to draw."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from mica import _C
from mica._C import Node, Tensor
from mica.autograd._graph_layout import Layout

_BOX_HEIGHT = 38
_LAYER_HEIGHT = 74
_MARGIN = 16
_GAP = 18
_STYLE = """\
  text { font: 12px sans-serif; text-anchor: middle; fill: #1f2933; }
  text.look { font-size: 10px; fill: #52606d; }
  rect { stroke: #7b8794; fill: #f5f7fa; }
  g.leaf rect { stroke: #2f6db3; fill: #dbeafe; }
  g.output rect { stroke: #2e7d4f; fill: #d9f2e3; }
  path { fill: none; stroke: #9aa5b1; stroke-width: 1.2; }
"""


class Drawing(str):
    """The text of an SVG picture, which notebooks show as a picture.

    Example:
        >>> mica.autograd.graph.Drawing("<svg></svg>")
        '<svg></svg>'
    """

    def _repr_svg_(self) -> str:
        return str(self)


def draw(
    outputs: Tensor | Sequence[Tensor],
    path: str | os.PathLike[str] | None = None,
    params: Any = None,
) -> Drawing:
    """Draws the backward graph behind some Tensors as an SVG picture.

    Leaves stand above and what was computed from them below; arrows follow the forward pass. A box
    shows an operator and the shape of its result; pointing at it shows what it keeps for backward.

    Args:
        outputs (Tensor or sequence of Tensor): What the graph computes.
        path (str or path, optional): File to write. Default: none.
        params (Module or dict of str to Tensor, optional): Names of leaves. Default: leaves have none.

    Returns:
        Drawing: The SVG text.

    Raises:
        RuntimeError: An output does not require grad.

    Example:
        >>> layer = mica.nn.Linear(2, 1)
        >>> picture = mica.autograd.graph.draw(layer(mica.ones(1, 2)), params=layer)
        >>> picture.startswith("<svg"), "weight" in picture
        (True, True)
    """
    roots = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    for i, tensor in enumerate(roots):
        if not tensor.requires_grad:
            raise RuntimeError(f"draw: output ({i}) does not require grad, so that no graph is behind it.")
    nodes, edges = _collect([_C._gradient_edge(t)[0] for t in roots])
    boxes = [_Box(node, _names(params)) for node in nodes]
    for tensor in roots:
        if tensor.grad_fn is not None:
            boxes[nodes[tensor.grad_fn]].kind = "output"
    layout = Layout([box.width for box in boxes], edges, _GAP)
    drawing = Drawing(_svg(boxes, edges, layout))
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(drawing)
    return drawing


def _names(params: Any) -> dict[Node, str]:
    """From the nodes that add to the named leaves to the names."""
    if params is None:
        return {}
    named = params.items() if isinstance(params, Mapping) else params.named_parameters()
    return {_C._gradient_edge(t)[0]: name for name, t in named if t.requires_grad and t.is_leaf}


def _collect(roots: list[Node]) -> tuple[dict[Node, int], list[tuple[int, int]]]:
    """All nodes, numbered as they are met, and the edges from producers to users."""
    nodes: dict[Node, int] = {}
    for root in roots:
        nodes.setdefault(root, len(nodes))
    edges = []
    waiting = list(nodes)
    for node in waiting:  # grows
        for source, _ in node.next_functions:
            if source is None:
                continue
            if source not in nodes:
                nodes[source] = len(nodes)
                waiting.append(source)
            edges.append((nodes[source], nodes[node]))
    return nodes, edges


class _Box:
    """One node's texts."""

    def __init__(self, node: Node, names: dict[Node, str]) -> None:
        leaf = node.name() == "AccumulateGrad"
        self.kind = "leaf" if leaf else "node"
        name = node.name().rstrip("0123456789")
        self.title = names.get(node, "leaf") if leaf else name.removesuffix("Backward") or name
        self.look = ", ".join(_look(result) for result in node._input_metadata if result is not None)
        self.tip = (
            "\n".join([f"{node.name()} (number {node._sequence_nr()})", *_kept(node)]) if not leaf else ""
        )
        self.width = max(7.2 * len(self.title), 5.8 * len(self.look)) + 18


def _look(result: Any) -> str:
    dtype = str(result.dtype).rpartition(".")[2]
    place = "" if result.device.type == "cpu" else f" {result.device}"
    return f"{dtype}{list(result.shape)}{place}"


def _kept(node: Node) -> list[str]:
    lines = []
    for name in node._saved_names():
        try:
            value = getattr(node, f"_saved_{name}")
        except RuntimeError:
            lines.append(f"{name}: freed, or written since")
            continue
        if isinstance(value, Tensor):
            lines.append(f"{name}: {_look(value)}")
        elif value is not None:
            lines.append(
                f"{name} = {value!r}" if not isinstance(value, (list, tuple)) else f"{name}: {len(value)}"
            )
    return lines


def _svg(boxes: list[_Box], edges: list[tuple[int, int]], layout: Layout) -> str:
    left = min((layout.x[i] - box.width / 2 for i, box in enumerate(boxes)), default=0) - _MARGIN
    right = max((layout.x[i] + box.width / 2 for i, box in enumerate(boxes)), default=0) + _MARGIN
    for route in layout.routes:
        left = min([left, *(x - _MARGIN for x, _ in route)])
        right = max([right, *(x + _MARGIN for x, _ in route)])
    width = right - left
    height = max(layout.layer, default=0) * _LAYER_HEIGHT + _BOX_HEIGHT + 2 * _MARGIN

    def middle(layer: int) -> float:
        return _MARGIN + _BOX_HEIGHT / 2 + layer * _LAYER_HEIGHT

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}">',
        f"<style>\n{_STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" style="fill: #9aa5b1; stroke: none"/></marker></defs>',
        '<rect width="100%" height="100%" style="fill: white; stroke: none"/>',
    ]
    for (a, b), route in zip(edges, layout.routes):
        start = (layout.x[a] - left, middle(layout.layer[a]) + _BOX_HEIGHT / 2)
        end = (layout.x[b] - left, middle(layout.layer[b]) - _BOX_HEIGHT / 2)
        lines.append(_arrow([start, *((x - left, middle(layer)) for x, layer in route), end]))
    for i, box in enumerate(boxes):
        x, y = layout.x[i] - left, middle(layout.layer[i])
        lines += [
            f'<g class="{box.kind}"><title>{escape(box.tip)}</title>'
            f'<rect x="{x - box.width / 2:.1f}" y="{y - _BOX_HEIGHT / 2:.1f}" width="{box.width:.1f}" '
            f'height="{_BOX_HEIGHT}" rx="5"/>',
            f'<text x="{x:.1f}" y="{y - 3:.1f}">{escape(box.title)}</text>'
            f'<text class="look" x="{x:.1f}" y="{y + 12:.1f}">{escape(box.look)}</text></g>',
        ]
    return "\n".join([*lines, "</svg>\n"])


def _arrow(points: list[tuple[float, float]]) -> str:
    """A curve through the points, vertical at each."""
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        bend = (y1 - y0) / 2
        text += f"C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"
    return f'<path d="{text}" marker-end="url(#head)"/>'
