"""What registering a hook returns: of a tensor, a node of the graph, a module or an optimizer."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away, once; so does the end of a `with` block.

    As `torch.utils.hooks.RemovableHandle`.

    Args:
        hooks_dict (dict or callable): The dictionary that holds the hook under the handle's `id`, or a
            function that takes the hook away.
        extra_dict (dict or list of dict, optional): Further dictionaries that hold something under it.

    Example:
        >>> x = mica.ones(2, requires_grad=True)
        >>> handle = x.register_hook(print)
        >>> handle.remove()
        >>> x.sum().backward()
    """

    next_id = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self._remove: Any = hooks_dict if callable(hooks_dict) else None
        self._tables = [] if callable(hooks_dict) else [hooks_dict, *_as_list(extra_dict)]

    def hooks_dict_ref(self) -> Any:
        """The dictionary that holds the hook; None for a hook that lies in none."""
        return self._tables[0] if self._tables else None

    def remove(self) -> None:
        """Takes the hook away; again does nothing."""
        if self._remove is not None:
            self._remove()
        for table in self._tables:
            table.pop(self.id, None)
        self._remove, self._tables = None, []

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def __reduce__(self) -> Any:
        if self._remove is not None:
            raise TypeError("The handle of a tensor's hook cannot be pickled: hooks are not.")
        return (RemovableHandle._again, (self.id, self._tables))

    @staticmethod
    def _again(number: int, tables: Any) -> RemovableHandle:
        handle = RemovableHandle(*tables[:1], extra_dict=tables[1:]) if tables else RemovableHandle({})
        handle.id = number
        RemovableHandle.next_id = max(RemovableHandle.next_id, number + 1)
        return handle


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]
