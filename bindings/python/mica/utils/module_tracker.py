"""ModuleTracker: which modules the running operators belong to, in forward and backward."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from mica._C import Tensor
from mica.nn.modules.module import Module, exchange_call
from mica.utils._pytree import tree_flatten

__all__ = ["ModuleTracker"]

_call = Module.__call__
_trackers: list[ModuleTracker] = []  # innermost last


def _tracked_call(module: Module, *args: Any, **kwargs: Any) -> Any:
    """Module.__call__ while trackers are active."""
    here = [t for t in _trackers if t._thread == threading.get_ident()]
    names = [t._enter(module, args) for t in here]
    try:
        result = _call(module, *args, **kwargs)
    finally:
        for tracker, name in zip(here, names):
            tracker.parents.discard(name)
    for tracker, name in zip(here, names):
        tracker._watch(result, name, tracker.parents.add)
    return result


class ModuleTracker:
    """Knows at each moment which modules are running, in forward and in backward, inside a `with` block.

    As `torch.utils.module_tracker.ModuleTracker`. In backward a module runs from the gradient of its
    results to those of its inputs.

    Attributes:
        parents (set of str): Names of the running modules, such as "Net.conv1" for an attribute of the
            outermost one; "Global" always.

    Example:
        >>> class Shout(mica.nn.Module):
        ...     def forward(self, x):
        ...         print(sorted(tracker.parents))
        ...         return x
        >>> with mica.utils.module_tracker.ModuleTracker() as tracker:
        ...     _ = mica.nn.Sequential(Shout())(mica.ones(1))
        ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self.is_bw = False
        self._names: WeakKeyDictionary[Module, str] = WeakKeyDictionary()
        self._hooks: list[Any] = []

    def __enter__(self) -> ModuleTracker:
        self._thread = threading.get_ident()
        self.parents = {"Global"}
        _trackers.append(self)
        exchange_call(_tracked_call)
        return self

    def __exit__(self, *exc: object) -> None:
        _trackers.remove(self)
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        if not _trackers:
            exchange_call(_call)

    def _enter(self, module: Module, args: Any) -> str:
        name = self._names.setdefault(module, type(module).__name__)
        for child, value in module.named_children():
            self._names.setdefault(value, f"{name}.{child}")
        self._watch(args, name, self.parents.discard)
        self.parents.add(name)
        return name

    def _watch(self, tree: Any, name: str, change: Callable[[str], None]) -> None:
        """Calls change(name) when a gradient of one of the tensors arrives."""
        for tensor in tree_flatten(tree)[0]:
            if isinstance(tensor, Tensor) and tensor.requires_grad:
                self._hooks.append(tensor.register_hook(lambda grad: change(name)))
