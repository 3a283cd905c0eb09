"""mica.mps: the devices of the backend "mps". Programs ask before they use one."""

from mica import _C
from mica._devices import backend_module as _backend_functions

_backend_functions.install(globals(), "mps")


def empty_cache() -> None:
    """Gives cached memory back to the device."""
    _backend_functions._needed("mps")
    _C._empty_cache("mps")


def current_allocated_memory() -> int:
    """Bytes in use by tensors of the device."""
    _backend_functions._needed("mps")
    return int(globals()["memory_allocated"]())


def driver_allocated_memory() -> int:
    """Bytes taken from the device, idle ones included."""
    _backend_functions._needed("mps")
    return int(globals()["memory_reserved"]())


def recommended_max_memory() -> int:
    """The bytes that a program may take of the device."""
    return int(globals()["mem_get_info"]()[1])
