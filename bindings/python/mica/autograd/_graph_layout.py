"""Where the boxes of a layered graph stand: longest-path layers, dummies on long edges, a few
sweeps that order each layer by its neighbours' means and then pull boxes towards them.

The method is Sugiyama's (Sugiyama, Tagawa, Toda 1981) without its optimal parts. Used by
_graph_draw alone; knows nothing of autograd."""

from __future__ import annotations

from collections.abc import Sequence

_SWEEPS = 12


class Layout:
    """Places for vertices 0 ... n-1 of widths `widths`, whose edges (a, b) lead downwards.

    `x` and `layer` of each vertex; `routes[k]`, the points (x, layer) that edge k passes
    between its ends. Sources stand right above the first vertex that they lead to."""

    def __init__(self, widths: Sequence[float], edges: Sequence[tuple[int, int]], gap: float) -> None:
        self._widths = list(widths)
        self._gap = gap
        self.layer = _layers(len(widths), edges)
        self._up: list[list[int]] = [[] for _ in widths]
        self._down: list[list[int]] = [[] for _ in widths]
        passed = [self._chain(a, b) for a, b in edges]
        self._rows: list[list[int]] = [[] for _ in range(max(self.layer, default=0) + 1)]
        for vertex, layer in enumerate(self.layer):
            self._rows[layer].append(vertex)
        self.x = [0.0] * len(self._widths)
        self._order()
        self._place()
        self.routes = [[(self.x[v], self.layer[v]) for v in chain] for chain in passed]

    def _chain(self, a: int, b: int) -> list[int]:
        """Dummies of no width in the layers between the ends, linked."""
        chain = []
        above = a
        for layer in range(self.layer[a] + 1, self.layer[b]):
            chain.append(len(self._widths))
            self._widths.append(0.0)
            self.layer.append(layer)
            self._up.append([])
            self._down.append([])
            self._link(above, chain[-1])
            above = chain[-1]
        self._link(above, b)
        return chain

    def _link(self, a: int, b: int) -> None:
        self._down[a].append(b)
        self._up[b].append(a)

    def _order(self) -> None:
        place = {v: float(i) for row in self._rows for i, v in enumerate(row)}
        for sweep in range(_SWEEPS):
            downwards = sweep % 2 == 0
            neighbours = self._up if downwards else self._down
            for row in self._rows if downwards else reversed(self._rows):
                means = {v: _mean([place[n] for n in neighbours[v]], place[v]) for v in row}
                row.sort(key=lambda v: means[v])  # noqa: B023 - used at once
                place.update((v, float(i)) for i, v in enumerate(row))

    def _place(self) -> None:
        for row in self._rows:
            self._spread(row, [0.0] * len(row))
        for sweep in range(_SWEEPS):
            downwards = sweep % 2 == 0
            neighbours = self._up if downwards else self._down
            for row in self._rows if downwards else reversed(self._rows):
                self._spread(row, [_mean([self.x[n] for n in neighbours[v]], self.x[v]) for v in row])

    def _spread(self, row: list[int], wanted: list[float]) -> None:
        """The row's boxes near the wanted places, in order and apart."""
        right = None
        for i, v in enumerate(row):
            half = self._widths[v] / 2
            least = wanted[i] if right is None else right + self._gap + half
            self.x[v] = max(wanted[i], least)
            right = self.x[v] + half
        shift = _mean([w - self.x[v] for v, w in zip(row, wanted)], 0.0)
        for v in row:
            self.x[v] += shift


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    down: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for a, b in edges:
        down[a].append(b)
        waiting[b] += 1
    sources = [v for v in range(count) if waiting[v] == 0]
    layer = [0] * count
    ready = list(sources)
    for v in ready:  # grows
        for b in down[v]:
            layer[b] = max(layer[b], layer[v] + 1)
            waiting[b] -= 1
            if waiting[b] == 0:
                ready.append(b)
    for v in sources:
        if down[v]:
            layer[v] = min(layer[b] for b in down[v]) - 1
    return layer


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
