"""Plugins and explanations: what is loaded and where a call goes."""

from __future__ import annotations

from mica import _C

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any


class Explanation(str):
    """A text that an interactive session shows as it prints."""

    def __repr__(self) -> str:
        return str(self)


def explain(operator: str, *arguments: Any) -> Explanation:
    """Which layers a call of `operator` with these tensors would pass, and why.

    `operator` is a name such as "add.Tensor". The text is for people.
    """
    return Explanation(_C._explain(operator, *arguments))


def plugins() -> list[dict[str, Any]]:
    """Every plugin that was found: name, state, what it provides, path, reason, and more.

    `python -m mica doctor` shows the same for people.
    """
    plugins: list[dict[str, Any]] = _C._plugins()
    return plugins


def disable_plugin(name: str) -> None:
    """Takes a plugin's kernels out of the dispatcher."""
    _C._enable_plugin(name, False)


def enable_plugin(name: str) -> None:
    """Puts a disabled plugin's kernels back; `name` may be its path."""
    _C._enable_plugin(name, True)
