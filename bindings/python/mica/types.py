"""mica.types: names for annotations, as torch.types has them.

Attributes:
    Device: What names a device: a device, "cpu", a number or None.
    FileLike: What save() and load() take: a path, or a file of bytes.
    Number: An int, a float or a bool.
    Storage: TypedStorage.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, Union

from mica._C import Size, Tensor, device, dtype
from mica.storage import TypedStorage as Storage

_TensorOrTensors = Tensor | Sequence[Tensor]
_dtype = dtype
_device = device
_qscheme = Any
_layout = Any
_size = Size | list[builtins.int] | tuple[builtins.int, ...]
_symsize = Size | Sequence[builtins.int]
_dispatchkey = builtins.str | Any
_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_complex = builtins.complex
Number = builtins.int | builtins.float | builtins.bool
Device = device | builtins.str | builtins.int | None
FileLike = Union[builtins.str, os.PathLike[builtins.str], IO[bytes]]  # noqa: UP007 - shown as torch's
IntLikeType = builtins.int
FloatLikeType = builtins.float
BoolLikeType = builtins.bool
py_sym_types: tuple[Any, ...] = ()
PySymType = Any

__all__ = ["Device", "FileLike", "Number", "Storage"]
