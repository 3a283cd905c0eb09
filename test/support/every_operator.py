"""What the tests of every operator share: the operators with samples, and the calls left out of a check."""

from __future__ import annotations

from mica.conformance.operators import ENTRIES
from mica.conformance.samples import UNSAMPLED

SAMPLED = [name for name, e in ENTRIES.items() if e.calls() and name not in UNSAMPLED]
# Calls whose gradient is, by definition, not the slope: (overload, number of the call).
DEVIATIONS: dict[tuple[str, int], str] = {
    ("embedding", 1): "the row of padding_idx gets no gradient, so that training leaves it alone",
    ("to.dtype", 3): "the steps of finite differences are below those of float16",
    **{
        ("_keep_history", call): "it gives the values of one tensor the history of another"
        for call in (0, 1, 2, 4)
    },
}
