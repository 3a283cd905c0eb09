"""Things that are there because programs import them, and do nothing.

What only asks or marks (is_scripting, ignore, a context of the compiler's) answers as torch
does with that service absent. What would have to act raises NotImplementedError naming itself,
and so does making an instance of an inert class; isinstance() with one is False.
"""

from __future__ import annotations

import ast
import builtins
import enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def _refusal(path: str) -> NotImplementedError:
    return NotImplementedError(
        f"{path} is there so that programs can import it, and does nothing on Mica; calling it is not possible. "
        "docs/reference/torch_coverage.md lists which names are inert and which work."
    )


def _function(path: str, detail: str) -> Any:
    def inert(*args: Any, **kwargs: Any) -> Any:
        raise _refusal(path)

    return inert


def _operator(path: str, detail: str) -> Any:
    class Inert:
        """An operator with any overloads, as keys of tables; calling one raises."""

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return self

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            raise _refusal(path)

    return Inert()


def _gives(path: str, detail: str) -> Any:
    literal = ast.literal_eval(detail)

    def inert(*args: Any, **kwargs: Any) -> Any:
        return literal

    return inert


def _decorator(path: str, detail: str) -> Any:
    def inert(*args: Any, **kwargs: Any) -> Any:
        """Gives back what it decorates, used as @mark or as @mark(...)."""
        if args and callable(args[0]):
            return args[0]
        return lambda function: function

    return inert


def _context(path: str, detail: str) -> Any:
    class Inert:
        """A context manager and decorator that changes nothing."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.arguments = (args, kwargs)

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *exc: Any) -> None:
            return None

        def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
            return function

        def step(self) -> None:
            """Profilers are stepped."""

    return Inert


def _type(path: str, detail: str) -> Any:
    class Inert:
        """An inert class: for annotations and isinstance()."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            raise _refusal(path)

        def __class_getitem__(cls, item: Any) -> Any:
            return cls

    return Inert


def _exception(path: str, detail: str) -> Any:
    return type(path.rpartition(".")[2], (getattr(builtins, detail or "RuntimeError"),), {})


def _enum(path: str, detail: str) -> Any:
    return enum.Enum(path.rpartition(".")[2], detail.split())


_MAKERS = {
    "function": _function,
    "operator": _operator,
    "gives": _gives,
    "decorator": _decorator,
    "context": _context,
    "type": _type,
    "exception": _exception,
    "enum": _enum,
}
_made: dict[str, Any] = {}


def make(path: str, kind: str, detail: str) -> Any:
    """The inert thing of this name; the same each time."""
    if kind == "is":
        return ast.literal_eval(detail)
    if path not in _made:
        made = _MAKERS[kind](path, detail)
        made.__module__, _, made.__name__ = path.rpartition(".")
        made.__qualname__ = made.__name__
        _made[path] = made
    return _made[path]
