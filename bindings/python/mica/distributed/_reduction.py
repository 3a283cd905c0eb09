"""Names of reductions and of ranks' exchanges that programs compare with."""

from __future__ import annotations

import enum

__all__ = ["ReduceOp"]


class ReduceOp(enum.Enum):
    """How tensors of several ranks become one, element by element.

    As `torch.distributed.ReduceOp`. AVG is for floating and complex tensors, MIN and MAX for all but complex
    ones, and BAND, BOR and BXOR for integers and bool. PREMUL_SUM is not there.

    Example:
        >>> mica.distributed.ReduceOp.SUM.value
        'sum'
    """

    SUM = "sum"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"
    AVG = "avg"
