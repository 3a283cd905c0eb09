"""Where storages lie in files and in memory, and what a program registers for devices of its own."""

from __future__ import annotations

from typing import Any

packages: list[tuple[int, Any, Any]] = []


def register_package(priority: int, tagger: Any, deserializer: Any) -> None:
    """Registers how storages of a device are named in checkpoints and put in place again.

    As `torch.serialization.register_package`. Mica's own devices need no such thing.

    Args:
        priority (int): The lowest is asked first.
        tagger (callable): `tagger(storage)` returns the name of the storage's place, or None for a
            storage that is not its own.
        deserializer (callable): `deserializer(storage, location)` returns the storage at the place of
            that name, or None for a name that is not its own.

    Example:
        >>> def tag(storage):
        ...     return None
        >>> def place(storage, location):
        ...     return storage if location == "old.npu" else None
        >>> mica.serialization.register_package(50, tag, place)
    """
    packages.append((priority, tagger, deserializer))
    packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """Names the place where a storage is, as checkpoints do.

    As `torch.serialization.location_tag`.

    Args:
        storage (UntypedStorage): The storage whose place is named.

    Returns:
        str: "cpu", "cuda:0", or what a registered package says.

    Example:
        >>> mica.serialization.location_tag(mica.ones(2).untyped_storage())
        'cpu'
    """
    for _, tagger, _ in packages:
        location = tagger(storage)
        if location is not None:
            return str(location)
    return str(storage.device)


def default_restore_location(storage: Any, location: Any) -> Any:
    """Puts a storage where a checkpoint says it was.

    As `torch.serialization.default_restore_location`.

    Args:
        storage (UntypedStorage): The storage, on the CPU.
        location (str): The name of the place.

    Returns:
        UntypedStorage: The storage there; itself if it is there already.

    Raises:
        RuntimeError: No plugin provides the device.

    Example:
        >>> storage = mica.ones(2).untyped_storage()
        >>> mica.serialization.default_restore_location(storage, "cpu") is storage
        True
    """
    for _, _, deserializer in packages:
        placed = deserializer(storage, location)
        if placed is not None:
            return placed
    return storage.to(device=location)
