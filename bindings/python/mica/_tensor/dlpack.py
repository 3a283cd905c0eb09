"""Tensors to and from other libraries by DLPack, on any device, with the streams of both sides put in order."""

from __future__ import annotations

from mica import _C, _devices
from mica._C import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

_CPU, _CUDA, _ROCM = 1, 2, 10  # of DLPack's numbers of devices, those with rules of their own
_HOST = (_CPU, 3, 11)  # the CPU's memory, and what CUDA and ROCm have pinned of it


def _handle(kind: int, stream: int | None) -> int:
    """The handle of the stream that a consumer names, as the array API standard numbers them."""
    if stream is None:
        return 0
    if type(stream) is not int:
        raise TypeError(
            f"__dlpack__: `stream` must be an int or None, not a value of type ({type(stream).__name__})."
        )
    refused = {_CUDA: (0,), _ROCM: (1, 2)}.get(kind, ())
    if stream < 0 or stream in refused:
        raise ValueError(
            f"__dlpack__: the stream ({stream}) is none of a device of DLPack type ({kind}); expected -1 (nothing is "
            "waited for), None (the default stream) or a handle. Of CUDA 1 is the default stream and 0 is not "
            "allowed; of ROCm 0 is it, and neither 1 nor 2 is allowed."
        )
    return 0 if kind == _CUDA and stream == 1 else stream


def _put_in_order(tensor: Tensor, stream: int | None) -> None:
    """Makes the consumer's stream wait for what computes the tensor."""
    if stream == -1:
        return
    wanted = _handle(_C._dlpack_device(tensor)[0], stream)
    current = _devices.current_stream(tensor.device)
    if wanted != current.handle:
        _devices.Stream._of(tensor.device, wanted).wait_stream(current)


def __dlpack__(
    self: Tensor,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule that shares this tensor's memory."""
    if stream is not None and stream != -1 and self.device.type == "cpu":
        raise ValueError(f"A tensor on cpu has no streams; stream is ({stream}) where None is expected.")
    elsewhere = dl_device is not None and tuple(dl_device) != _C._dlpack_device(self)
    if elsewhere and (tuple(dl_device) != (_CPU, 0) or copy is False):  # type: ignore[arg-type]
        why = "copy=False forbids a copy" if copy is False else "a copy is made to the CPU, (1, 0), alone"
        raise BufferError(f"The tensor is on {self.device}, not on the DLPack device ({dl_device}); {why}.")
    copied = elsewhere or bool(copy)
    tensor = self.cpu() if elsewhere else self.clone() if copied else self
    if tensor.device.type not in ("cpu", "meta"):
        _put_in_order(tensor, stream)
    return _C._to_dlpack(tensor, max_version is not None and max_version[0] >= 1, copied)


def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    return _C._dlpack_device(self)


def from_object(source: Any, backend: str | None, copy: bool | None) -> Tensor:
    """A tensor over the memory of an object with `__dlpack__`, ready for the current stream of its device."""
    kwargs: dict[str, Any] = {"max_version": (1, 0)}
    if copy is not None:
        kwargs["copy"] = copy
    if hasattr(source, "__dlpack_device__"):
        kind, number = source.__dlpack_device__()
        if kind not in _HOST:
            mine = isinstance(source, Tensor)  # the type alone may be that of several backends
            place = source.device if mine else _C._dlpack_place(int(kind), int(number), backend)
            handle = _devices.current_stream(place).handle
            kwargs["stream"] = 1 if kind == _CUDA and handle == 0 else handle
    try:
        capsule = source.__dlpack__(**kwargs)
    except TypeError:  # of an older standard, which knows no copies
        capsule = source.__dlpack__(**{k: v for k, v in kwargs.items() if k == "stream"})
        made = _C._from_dlpack(capsule, backend)
        return made.clone() if copy else made
    return _C._from_dlpack(capsule, backend)
