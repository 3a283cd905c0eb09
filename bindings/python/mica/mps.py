"""mica.mps: the devices of the backend "mps". Programs ask before they use one."""

from mica import _backend_functions
from mica._devices import Event as Event

_backend_functions.install(globals(), "mps")
current_allocated_memory = globals()["memory_allocated"]
driver_allocated_memory = globals()["memory_reserved"]


def recommended_max_memory() -> int:
    """The bytes that a program may take of the device; 0 without one."""
    return int(globals()["mem_get_info"]()[1]) if globals()["is_available"]() else 0
