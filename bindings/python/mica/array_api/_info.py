"""What the standard's inspection API says of Mica."""

from __future__ import annotations

import mica
from mica import _C, dtype
from mica.array_api._dtypes import isdtype

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

_DTYPES = [
    *["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
    *["float32", "float64", "complex64", "complex128"],
]


class Info:
    """What `__array_namespace_info__()` returns: the namespace's capabilities, devices and dtypes.

    Example:
        >>> mica.array_api.__array_namespace_info__().capabilities()["max dimensions"] is None
        True
    """

    def capabilities(self) -> dict[str, Any]:
        """What depends on data, and how many dimensions an array may have: any."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Any:
        """Where arrays are made when nothing else is said."""
        return mica.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, dtype]:
        """The dtypes of arrays that are made when nothing else is said.

        Args:
            device (device, optional): Ignored: all devices have the same. Default: None.

        Returns:
            dict of str to dtype: By "real floating", "complex floating", "integral" and "indexing".
        """
        real = mica.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": mica.int64,
            "indexing": mica.int64,
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, dtype]:
        """The standard's dtypes.

        Args:
            device (device, optional): Ignored: all devices have the same. Default: None.
            kind (str or tuple of str, optional): Those of a kind, or of several, as of `isdtype()`. Default: None, all.

        Returns:
            dict of str to dtype: By name.
        """
        found = {name: getattr(mica, name) for name in _DTYPES}
        return {name: d for name, d in found.items() if kind is None or isdtype(d, kind)}

    def devices(self) -> list[Any]:
        """All devices on which arrays may lie."""
        counts = {name: mica.device_count(name) for name in _C._backend_names() if name != "meta"}
        return [
            mica.device(name) if name == "cpu" else mica.device(name, i)
            for name, count in counts.items()
            for i in range(count)
        ]


def __array_namespace_info__() -> Info:
    """Answers questions about the namespace: its capabilities, devices and dtypes.

    As `__array_namespace_info__` of the Python array API standard.

    Returns:
        Info: With the methods `capabilities()`, `default_device()`, `default_dtypes()`, `dtypes()` and `devices()`.

    Example:
        >>> mica.array_api.__array_namespace_info__().default_device()
        device(type='cpu')
    """
    return Info()
