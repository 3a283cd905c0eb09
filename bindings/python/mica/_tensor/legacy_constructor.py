"""Tensor(...): the constructor that torch keeps for old programs."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor


def new(cls: type[Tensor], *args: Any, device: Any = None) -> Tensor:
    """An uninitialised tensor of the given sizes, the memory of a storage, a view of a tensor, or a copy of data in the
    default dtype."""
    from mica._tensor.set_storage import tensor_of
    from mica.storage import _Memory

    dtype = mica.get_default_dtype()
    if len(args) == 0:
        result = mica.empty(0, dtype=dtype, device=device)
    elif all(isinstance(a, int) for a in args):
        result = mica.empty(*args, dtype=dtype, device=device)
    elif len(args) == 1 and isinstance(args[0], mica.Size):
        result = mica.empty(args[0], dtype=dtype, device=device)
    elif len(args) == 1 and isinstance(args[0], Tensor):
        result = args[0][...] if cls is Tensor else args[0].detach()
    elif len(args) == 1 and isinstance(args[0], _Memory):
        result = tensor_of(args[0], dtype)
    elif len(args) == 1:
        result = mica.tensor(args[0], dtype=dtype, device=device)
    else:
        raise TypeError(f"Tensor() takes sizes or one object with data; it was given {len(args)} arguments.")
    return result if cls is Tensor else Tensor._make_subclass(cls, result)
