"""Plugins that installed Python packages bring: entry points of the group `mica.plugins`.

The value of an entry point is a path, a list of paths, or a function without
arguments that returns either. Imported when nothing in the folders provides what is
needed, or when all plugins are listed; never by `import mica`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import metadata

GROUP = "mica.plugins"


def _paths(value: object) -> list[str]:
    """The paths that an entry point's object stands for."""
    if callable(value):
        value = value()
    items: Iterable[object]
    if isinstance(value, (str, os.PathLike)):
        items = [value]
    elif isinstance(value, Iterable):
        items = value
    else:
        raise TypeError(f"it gives ({value!r}), which is neither a path nor a list of paths")
    return [os.path.abspath(os.fsdecode(os.fspath(item))) for item in items]  # type: ignore[call-overload]


def find() -> list[tuple[str, str, str]]:
    """(path, how it was found, what went wrong) of every plugin that a package brings."""
    found: list[tuple[str, str, str]] = []
    for point in metadata.entry_points(group=GROUP):
        package = point.dist.name if point.dist else "an unnamed package"
        where = f"entry point {point.name} = {point.value} of {package}"
        try:
            found += [(path, where, "") for path in _paths(point.load())]
        except Exception as error:  # whatever a stranger's module does when it is imported
            sentence = f"The {where} fails: {type(error).__name__}: {error}."
            found.append((point.value, where, sentence))
    return found
