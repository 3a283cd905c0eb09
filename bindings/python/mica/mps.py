"""mica.mps: the devices of the backend "mps". Programs ask before they use one."""

from mica import _C
from mica._devices import modules as _modules
from mica._devices.numbered import needed as _needed

_modules.fill(__name__, "mps")


def empty_cache() -> None:
    """Gives idle memory that the caching allocator keeps back to the device.

    As `torch.mps.empty_cache`.

    Raises:
        RuntimeError: There is no device.

    Example:
        >>> if mica.mps.is_available():
        ...     mica.mps.empty_cache()
    """
    _needed("mps")
    _C._empty_cache("mps")


def current_allocated_memory() -> int:
    """Returns how many bytes the tensors of the device use.

    As `torch.mps.current_allocated_memory`.

    Returns:
        int: Bytes.

    Raises:
        RuntimeError: There is no device.

    Example:
        >>> in_use = mica.mps.current_allocated_memory() if mica.mps.is_available() else 0
    """
    _needed("mps")
    return int(globals()["memory_allocated"]())


def driver_allocated_memory() -> int:
    """Returns how many bytes the program has taken from the device, idle ones included.

    As `torch.mps.driver_allocated_memory`.

    Returns:
        int: Bytes.

    Raises:
        RuntimeError: There is no device.

    Example:
        >>> taken = mica.mps.driver_allocated_memory() if mica.mps.is_available() else 0
    """
    _needed("mps")
    return int(globals()["memory_reserved"]())


def recommended_max_memory() -> int:
    """Returns how many bytes a program may take of the device: all that it has.

    As `torch.mps.recommended_max_memory`.

    Returns:
        int: Bytes; -1 if the device does not know.

    Raises:
        RuntimeError: There is no device.

    Example:
        >>> limit = mica.mps.recommended_max_memory() if mica.mps.is_available() else 0
    """
    return int(globals()["mem_get_info"]()[1])
