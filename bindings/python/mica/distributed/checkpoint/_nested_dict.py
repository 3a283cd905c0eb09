"""State dicts of dicts and lists as one flat dict, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mica._C import Tensor
from mica.distributed._checkpointable import _Checkpointable
from mica.distributed.checkpoint.metadata import STATE_DICT_TYPE

Path = tuple[str | int, ...]
FLATTEN_MAPPING = dict[str, Path]
_GAP = 1000  # places of a list that may have no value of their own, as empty dicts have none


def holds_tensor(value: Any) -> bool:
    """Whether a value is a tensor, or a piece of one."""
    return isinstance(value, (Tensor, _Checkpointable))


def _is_leaf(value: Any) -> bool:
    """Whether a value is one of the flat dict: a list is, that has neither tensors nor dicts in it."""
    if isinstance(value, Mapping):
        return False
    if not isinstance(value, list):
        return True
    return not any(holds_tensor(v) or (isinstance(v, (Mapping, list)) and not _is_leaf(v)) for v in value)


def _visit(path: Path, value: Any, visitor: Callable[[Path, Any], None]) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _visit((*path, str(key)), inner, visitor)
    elif _is_leaf(value):
        visitor(path, value)
    else:
        for i, inner in enumerate(value):
            _visit((*path, i), inner, visitor)


def flatten_state_dict(state_dict: STATE_DICT_TYPE) -> tuple[STATE_DICT_TYPE, FLATTEN_MAPPING]:
    """The flat dict, whose keys are the paths joined by dots, and the path of each key."""
    flat: STATE_DICT_TYPE = {}
    paths: FLATTEN_MAPPING = {}

    def put(path: Path, value: Any) -> None:
        key = ".".join(map(str, path))
        if key in flat:
            raise ValueError(
                f"Two values of the state dict have the key ({key}) when their paths are joined by dots; rename one."
            )
        flat[key], paths[key] = value, path

    for key, value in state_dict.items():
        _visit((str(key),), value, put)
    return flat, paths


def unflatten_state_dict(state_dict: STATE_DICT_TYPE, mapping: FLATTEN_MAPPING) -> STATE_DICT_TYPE:
    """The nested dict of a flat one."""
    nested: STATE_DICT_TYPE = {}
    for key, value in state_dict.items():
        set_element(nested, mapping[key], value)
    return nested


def set_element(root: STATE_DICT_TYPE, path: Path, value: Any) -> None:
    """Puts a value at a path; dicts and lists on the way are made."""
    container: Any = root
    for part, following in zip(path, path[1:]):
        key = _key(container, part)
        _check(container, part, path)
        is_new = key >= len(container) if isinstance(container, list) else key not in container
        if is_new or container[key] is None:
            _put(container, key, {} if isinstance(following, str) else [])
        container = container[key]
    _check(container, path[-1], path)
    _put(container, _key(container, path[-1]), value)


def _key(container: Any, part: str | int) -> Any:
    """The key that a part of a path stands for: one that is no text, such as an optimizer's numbers, is there as text."""
    if not isinstance(container, Mapping) or part in container:
        return part
    return next((key for key in container if str(key) == part), part)


def _check(container: Any, key: str | int, path: Path) -> None:
    """Refuses a path that goes on below what is neither dict nor list, or skips many places of a list."""
    fits = isinstance(container, Mapping) if isinstance(key, str) else isinstance(container, list)
    if not fits or (isinstance(container, list) and isinstance(key, int) and key > len(container) + _GAP):
        raise ValueError(
            f"The path {list(path)!r:.120} leads through a {type(container).__name__} by ({key!r:.40}), which it cannot have."
        )


def _put(container: Any, key: Any, value: Any) -> None:
    if isinstance(container, list):
        container.extend([None] * (key + 1 - len(container)))
    container[key] = value
