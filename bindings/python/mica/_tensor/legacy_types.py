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
    is_cuda = is_sparse = False
    layout = _C.strided

    @property
    def dtype(cls) -> Any:
        """The dtype of the tensors."""
        return cls._dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls._dtype

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        """Uninitialised of the given sizes, a copy of data, the memory of a storage, or a tensor of this dtype itself."""
        if args and all(isinstance(a, int) for a in args):
            return _C._functions[""]["empty"](args, dtype=cls._dtype, device=device)
        data = args[0] if args else []
        if isinstance(data, _C.Size):
            return _C._functions[""]["empty"](tuple(data), dtype=cls._dtype, device=device)
        if isinstance(data, Tensor):
            if data.dtype != cls._dtype:
                raise TypeError(
                    f"{cls.__name__}() takes a tensor of its own dtype ({cls._dtype}); this one's is ({data.dtype}). "
                    f"Use x.to({cls._dtype})."
                )
            return data.detach()
        from mica._tensor.set_storage import tensor_of
        from mica.storage import _Memory

        if len(args) == 1 and isinstance(data, _Memory):
            return tensor_of(data, cls._dtype)
        if len(args) > 1 or isinstance(data, (str, float)):
            raise TypeError(f"{cls.__name__}() takes sizes or one object with data; it was given {args}.")
        return _C.tensor(data, dtype=cls._dtype, device=device)


def install(namespace: dict[str, Any]) -> None:
    for name, dtype in _DTYPES.items():
        text = f"The old name of {dtype} tensors: makes them of sizes or data, and answers isinstance()."
        attributes = {"_dtype": getattr(_C, dtype), "__doc__": text, "__module__": "mica"}
        namespace[name] = _LegacyType(name, (), attributes)
