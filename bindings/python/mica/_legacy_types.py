"""mica.FloatTensor, LongTensor, ...: torch's old types, one for each dtype. They
make tensors and answer isinstance by dtype; no tensor has one as its class."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

_DTYPES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}


class _LegacyType(type):
    _dtype: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls._dtype

    def __call__(cls, *args: Any) -> Tensor:
        """Uninitialised of the given sizes, or a copy of data."""
        if all(isinstance(a, int) for a in args) and args:
            return _C._functions[""]["empty"](args, dtype=cls._dtype)
        return _C.tensor(args[0] if args else [], dtype=cls._dtype)


def install(namespace: dict[str, Any]) -> None:
    for name, dtype in _DTYPES.items():
        namespace[name] = _LegacyType(name, (), {"_dtype": getattr(_C, dtype), "__module__": "mica"})
