"""Where storages lie in files and in memory, and what a program registers for devices of its own."""

from __future__ import annotations

from typing import Any

packages: list[tuple[int, Any, Any]] = []


def register_package(priority: int, tagger: Any, deserializer: Any) -> None:
    """Lets tagger(storage) name the place of storages in files, and deserializer(storage, location) put
    them there again; either gives None for what is not its own. The lowest priority is asked first."""
    packages.append((priority, tagger, deserializer))
    packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """The name of the place where a storage is, as files have it."""
    for _, tagger, _ in packages:
        location = tagger(storage)
        if location is not None:
            return str(location)
    return str(storage.device)


def default_restore_location(storage: Any, location: Any) -> Any:
    """The storage at its place."""
    for _, _, deserializer in packages:
        placed = deserializer(storage, location)
        if placed is not None:
            return placed
    return storage.to(device=location)
