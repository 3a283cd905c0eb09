"""Which composites draw random numbers: those whose parts do.

The entry of a composite does not say it, so it is decomposed once, on fake tensors like those
of the node that asks, and its parts are looked at."""

from __future__ import annotations

from typing import Any

from mica.fx._node import Node, TensorMetadata, map_arg
from mica.ops import OpOverload

_known: dict[OpOverload, bool] = {}


def draws(node: Node) -> bool:
    """Whether the operator of a node draws random numbers; True where that cannot be found out."""
    target = node.target
    if target not in _known:
        _known[target] = False  # while its parts are looked at
        _known[target] = target.op_class == "random" or _parts_draw(node)
    return _known[target]


def _parts_draw(node: Node) -> bool:
    from mica.fx._recording import record, to_graph

    if node.target.op_class != "decompose":
        return False
    inputs = node.all_input_nodes
    metas = [n.meta.get("tensor_meta") for n in inputs]
    if not all(isinstance(m, TensorMetadata) for m in metas):
        return True

    def run(*values: Any) -> None:
        given = dict(zip(inputs, values))
        args, kwargs = map_arg((node.args, node.kwargs), lambda n: given[n])
        node.target.decompose(*args, **kwargs)

    try:
        graph, _ = to_graph(record(run, tuple(m.like() for m in metas), fake=True))
    except Exception:  # noqa: BLE001 - what cannot be decomposed stays
        return True
    parts = [n for n in graph.nodes if isinstance(n.target, OpOverload)]
    return any(
        draws(n) for n in parts if n.target.op_class in ("random", "decompose") or n.target.has_effect()
    )
