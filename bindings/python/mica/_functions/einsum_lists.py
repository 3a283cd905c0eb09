"""einsum's other spelling: lists of numbers instead of letters.

`einsum(a, [0, 1], b, [1, 2], [0, 2])` is `einsum("AB,BC->AC", a, b)`: numbers from 0 to 51 name the
dimensions, `...` stands for those without a name, and the last list, which may lack, is the result's.
"""

from __future__ import annotations

from mica._C import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any


def of_lists(args: tuple[Any, ...]) -> tuple[str, list[Tensor]]:
    """The equation and the operands of such a call."""
    lists = args[1::2]
    equation = ",".join(map(_letters, lists))
    if len(args) % 2:
        equation += f"->{_letters(args[-1])}"
    return equation, list(args[::2][: len(lists)])


def _letters(names: Any) -> str:
    found = ""
    for name in names:
        if name is not ... and not 0 <= name < 52:
            raise ValueError(f"The name ({name}) of a dimension of einsum is not in [0, 52).")
        found += "..." if name is ... else chr(ord("A" if name < 26 else "a") + name % 26)
    return found
