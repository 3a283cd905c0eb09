"""mica.cuda: the devices of the backend "cuda". Programs ask before they use one."""

from __future__ import annotations

from mica import _C
from mica._devices import backend_module as _backend_functions


class CUDAGraph:
    """Recorded work of a stream. No device records yet, and making one says so."""

    def __init__(self, keep_graph: bool = False) -> None:
        raise NotImplementedError(
            "Work of a stream cannot be recorded: the host does not drive `capture_begin` of the device "
            "table, which is reserved; run the work each time, as without a graph."
        )


_backend_functions.install(globals(), "cuda")
OutOfMemoryError = _C.OutOfMemoryError
default_generators: tuple[object, ...] = ()
