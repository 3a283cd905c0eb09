"""How a call reaches __torch_function__: with the arguments as torch hands them over.

Of a function that torch has in Python, that is what the function needs by position and all the rest
by name, defaults too, as `softmax(x, -1)` arrives with dim=-1, _stacklevel=3 and dtype=None; of others it is
what the caller wrote. override.cc asks here when the first call of a process is handed over.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import mica
from mica.nn import functional

Speller = Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]
_METHODS = ("backward", "istft", "lu", "norm", "split", "stft", "unique", "unique_consecutive")
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _speller(function: Any, hidden: str) -> Speller | None:
    try:
        form = signature(function)
    except (TypeError, ValueError):
        return None
    needed = [
        p.name for p in form.parameters.values() if p.kind in _POSITIONAL and p.default is Parameter.empty
    ]
    many = next((p.name for p in form.parameters.values() if p.kind is Parameter.VAR_POSITIONAL), "")
    rest = next((p.name for p in form.parameters.values() if p.kind is Parameter.VAR_KEYWORD), "")

    def spell(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        try:
            bound = form.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}") from None
        bound.apply_defaults()
        named = bound.arguments
        if named.get(hidden, function) is None:
            del named[hidden]
        first = tuple(named.pop(name) for name in needed)
        return first + tuple(named.pop(many, ())), {**named, **named.pop(rest, {})}

    return spell


def fill(table: dict[Any, Speller]) -> None:
    """Puts the functions that torch has in Python into the table."""
    from mica._torch_names import homes

    found = [(functional, name) for name in homes.names("torch.nn.functional")]
    found += [(mica, name) for name in homes.names("torch.functional")]
    found += [(mica.Tensor, name) for name in _METHODS]
    for space, name in found:
        function = getattr(space, name, None)
        # Mica's methods take an `out` that torch's have not.
        speller = function and _speller(function, "out" if space is mica.Tensor else "")
        if speller:
            table[function] = speller
