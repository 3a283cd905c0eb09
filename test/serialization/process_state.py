"""What a process has that every tensor and every program in it shares: the names of its classes and
modules, by the identity of what they stand for. A file that was loaded must not have changed any."""

from __future__ import annotations

import builtins
import collections
import sys
import types
from typing import Any

import mica

# What loading fills by design: caches, names of devices, and what was imported on the way.
_CHANGING = {"_reserved", "_loaded", "_pickled", "__warningregistry__", "__builtins__", "_moved"}
_SHARED = [
    mica.Tensor,
    mica.nn.Parameter,
    mica.nn.Buffer,
    mica.Size,
    mica.dtype,
    mica.device,
    mica.storage.TypedStorage,
    mica.storage.UntypedStorage,
    collections.Counter,
    collections.OrderedDict,
    collections.defaultdict,
    dict,
    list,
    set,
    bytearray,
    complex,
]


def _names(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, item in vars(value).items():
        if name not in _CHANGING and not isinstance(item, types.ModuleType):
            found[name] = (id(item), len(item)) if type(item) in (dict, list, set) else id(item)
    return found


def short_state() -> dict[str, Any]:
    """The names of the classes that files are built of, and of the built-in functions."""
    state = {cls.__qualname__: _names(cls) for cls in _SHARED}
    return {**state, "builtins": _names(builtins), "collections": _names(collections)}


def whole_state() -> dict[str, Any]:
    """The names of all of Mica's modules and their classes and functions, too."""
    state = short_state()
    for path, module in list(sys.modules.items()):
        if path.split(".")[0] not in ("mica", "copyreg", "pickle", "zipfile", "collections"):
            continue
        state[path] = _names(module)
        for name, item in list(vars(module).items()):
            if (
                isinstance(item, type)
                and item.__module__ == path
                or isinstance(item, types.FunctionType)
                and vars(item)
            ):
                state[f"{path}.{name}"] = _names(item)
    return state


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names that stand for something else now, were added or are gone; new modules are no change."""
    found = []
    for place, names in before.items():
        now = after.get(place, {})
        found += [f"{place}.{name}" for name in names.keys() | now.keys() if names.get(name) != now.get(name)]
    return found
