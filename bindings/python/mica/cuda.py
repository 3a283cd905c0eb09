"""mica.cuda: the devices of the backend "cuda". Programs ask before they use one."""

from __future__ import annotations

from mica import _C
from mica._devices import backend_module as _backend_functions


class CUDAGraph:
    """Stands for recorded work of a stream, which no device records yet: making one raises.

    As `torch.cuda.CUDAGraph` by name only, so that programs can ask; run the work each time instead.

    Args:
        keep_graph (bool): Ignored. Default: False.

    Raises:
        NotImplementedError: Always.

    Example:
        >>> try:
        ...     graph = mica.cuda.CUDAGraph()
        ... except NotImplementedError:
        ...     graph = None
    """

    def __init__(self, keep_graph: bool = False) -> None:
        raise NotImplementedError(
            "Work of a stream cannot be recorded: the host does not drive `capture_begin` of the device "
            "table, which is reserved; run the work each time, as without a graph."
        )


_backend_functions.install(globals(), "cuda")
OutOfMemoryError = _C.OutOfMemoryError
default_generators: tuple[object, ...] = ()
