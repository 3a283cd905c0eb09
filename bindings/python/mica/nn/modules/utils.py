"""Numbers as tuples, as layers take kernel sizes, and a helper for state dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """Each element n times, the last first: the order of functional.pad()."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size) :])]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes a prefix off all keys of a state dict that have it, in place.

    As `torch.nn.modules.utils.consume_prefix_in_state_dict_if_present`: for states that a wrapper, such as
    `mica.nn.DataParallel`, saved with its own `module.` before each name. Other keys stay; so do the values.

    Args:
        state_dict (dict of str to Tensor): Changed in place, with its `_metadata` where it has that.
        prefix (str): With its period, as `"module."`.

    Example:
        >>> from mica.nn.modules.utils import consume_prefix_in_state_dict_if_present
        >>> state = {"module.weight": mica.ones(1), "step": mica.ones(1)}
        >>> consume_prefix_in_state_dict_if_present(state, "module.")
        >>> sorted(state)
        ['step', 'weight']
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata):
            if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
                metadata[key[len(prefix) :]] = metadata.pop(key)
