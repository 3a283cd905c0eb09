"""Objects whose state a checkpoint holds."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """An object with a state: `save` asks for its `state_dict()`, `load` gives it to its `load_state_dict()`.

    As `torch.distributed.checkpoint.stateful.Stateful`.

    Example:
        >>> from mica.distributed.checkpoint.stateful import Stateful
        >>> isinstance(mica.nn.Linear(1, 1), Stateful), isinstance({}, Stateful)
        (True, False)
    """

    def state_dict(self) -> dict[str, Any]:
        """Gives the state; `load` calls it too, and reads into its tensors."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state over.

        Args:
            state_dict (dict): What `state_dict()` gave, with the checkpoint's values.
        """


StatefulT = TypeVar("StatefulT", bound=Stateful)
