"""Parameter and Buffer: tensors that modules register when they are assigned."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor


class Parameter(Tensor):
    """A tensor that a module optimises: requires grad unless told otherwise."""

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = mica.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"A Parameter is made of a Tensor; this value is of type ({type(data).__name__})."
            )
        parameter: Parameter = Tensor._make_subclass(cls, data, requires_grad)
        return parameter

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that belongs to a module's state and needs no gradient."""

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        buffer: Any = Tensor._make_subclass(cls, mica.empty(0) if data is None else data)
        buffer.persistent = persistent
        return buffer
