"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import mica
from mica._C import Tensor

State = Mapping[str, Tensor]


Places = dict[str, tuple[dict[str, Any], str]]


def _places(module: Any, prefix: str, places: Places) -> Places:
    """For each parameter and buffer, by full name: the dictionary that holds it, and its key
    there. A tensor that stands at several places has all of their names."""
    for held in (module._parameters, module._buffers):
        for key, value in held.items():
            if value is not None:
                places[prefix + key] = (held, key)
    for name, part in module._modules.items():
        if part is not None:
            _places(part, f"{prefix}{name}.", places)
    return places


def _ties(places: Places) -> dict[str, list[str]]:
    """For each name of a tensor that has several all of them."""
    by_tensor: dict[int, list[str]] = {}
    for name, (held, key) in places.items():
        by_tensor.setdefault(id(held[key]), []).append(name)
    if len(by_tensor) == len(places):
        return {}
    return {name: names for names in by_tensor.values() if len(names) > 1 for name in names}


def _check_complete(module: Any, state: State, places: Places, ties: dict[str, list[str]]) -> None:
    unknown = [name for name in state if name not in places]
    missing = [name for name in places if not any(tied in state for tied in ties.get(name, (name,)))]
    if unknown:
        raise RuntimeError(
            f"functional_call: the module {type(module).__name__} has no parameter or buffer named "
            f"({', '.join(unknown)})."
        )
    if missing:
        raise RuntimeError(
            f"functional_call: with strict=True all tensors of the module must be given, and ({', '.join(missing)}) "
            "are missing."
        )


_ABSENT: Any = object()


class _Attributes:
    """A module's attributes as a table, for tensors that are neither parameters nor buffers."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def get(self, key: str, default: Any) -> Any:
        return getattr(self._module, key, default)

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self._module, key, value)

    def __delitem__(self, key: str) -> None:
        delattr(self._module, key)


def _place(module: Any, name: str) -> tuple[Any, str]:
    """The table and the key of a name that is not among _places: nothing stands there, or an attribute."""
    path, _, key = name.rpartition(".")
    if not key:
        raise KeyError(f"functional_call: ({name!r}) is no name of a parameter or a buffer.")
    owner = module.get_submodule(path)
    return next((t for t in (owner._parameters, owner._buffers) if key in t), _Attributes(owner)), key


def _check(name: str, what: str, value: Any) -> None:
    if value is not _ABSENT and value is not None and not isinstance(value, Tensor):
        raise TypeError(
            f"functional_call: ({name}) {what} a value of type ({type(value).__name__}), where a Tensor or None "
            "is expected."
        )


def _put(table: Any, key: str, value: Any) -> Any:
    """Puts a value in its place, _ABSENT for nothing; what was there."""
    before = table.get(key, _ABSENT)
    if value is not _ABSENT:
        table[key] = value
    elif before is not _ABSENT:
        del table[key]
    return before


@contextmanager
def _replaced(module: Any, state: dict[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    places = _places(module, "", {})
    ties = _ties(places)
    if strict:
        _check_complete(module, state, places, ties)
    wanted: dict[str, Tensor] = {}
    for name, value in state.items():
        for tied in ties.get(name, (name,)) if tie_weights else (name,):
            if (state if tie_weights else wanted).get(tied, value) is not value:
                raise ValueError(
                    f"functional_call: ({name}) and another name of the same tensor were given different values."
                )
            wanted[tied] = value
    saved: dict[str, tuple[Any, str, Any]] = {}
    try:
        for name, value in wanted.items():
            table, key = places.get(name) or _place(module, name)
            _check(name, "holds", table.get(key, _ABSENT))
            _check(name, "is given", value)
            saved[name] = (table, key, _put(table, key, value))
        yield
    finally:
        left = {name: _put(*saved[name]) for name in reversed(saved)}
        for name, value in state.items():
            now = left.get(name, value)
            if now is not value and now is not _ABSENT:  # the module put another tensor there
                state[name] = now


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: State | Sequence[State],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other Tensors in the places of its parameters and buffers.

    As `torch.func.functional_call`. It makes a function of the parameters out of a module, for the
    transforms of `mica.func`. The module is the same afterwards. Writes in place to a given buffer stay
    in the Tensor that was given.

    Args:
        module (Module): The module that is called.
        parameter_and_buffer_dicts (dict of str to Tensor, or sequence of them): Tensors by full name,
            as `named_parameters()` and `named_buffers()` give them; those left out stay as they are.
        args (tuple or object, optional): Positional arguments of the call; one alone needs no tuple.
        kwargs (dict, optional): Keyword arguments of the call.
        tie_weights (bool): Replace a Tensor that has several names at all of them. Default: True.
        strict (bool): Refuse unknown and missing names. Default: False.

    Returns:
        What `module(*args, **kwargs)` returns.

    Raises:
        RuntimeError: With `strict`, a name is unknown or missing.
        ValueError: A name stands in two dicts, or names of one Tensor are given different values.
        TypeError: A value is no Tensor.

    Example:
        >>> layer = mica.nn.Linear(2, 1)
        >>> params = {"weight": mica.ones(1, 2), "bias": mica.zeros(1)}
        >>> mica.func.functional_call(layer, params, mica.tensor([[1.0, 2.0]]))
        tensor([[3.]])
    """
    one = isinstance(parameter_and_buffer_dicts, dict)
    state: Any = parameter_and_buffer_dicts if one else {}
    dicts = parameter_and_buffer_dicts
    for d in () if one else (dicts,) if isinstance(dicts, Mapping) else dicts:
        if not isinstance(d, Mapping):
            raise ValueError(
                f"functional_call: expected a dictionary of tensors, or a sequence of them, but got a {type(d).__name__}."
            )
        for name, value in d.items():
            if name in state:
                raise ValueError(f"functional_call: ({name}) stands in two of the dictionaries.")
            state[name] = value
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, state, tie_weights, strict):
        return module(*given, **(kwargs or {}))


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stacks the parameters and buffers of several modules of one class, for an ensemble under `vmap`.

    As `torch.func.stack_module_state`.

    Args:
        models (sequence of Module): Modules of one class and one mode (training or eval).

    Returns:
        tuple of 2 dict: `(parameters, buffers)`, Tensors by name with the models along a new dimension 0.
        The parameters are new leaves that require grad where those of the models do.

    Raises:
        RuntimeError: There is no model, or classes, modes or `requires_grad` differ.

    Example:
        >>> models = [mica.nn.Linear(2, 1) for _ in range(3)]
        >>> params, buffers = mica.func.stack_module_state(models)
        >>> def run(params, buffers, x):
        ...     return mica.func.functional_call(models[0], (params, buffers), (x,))
        >>> mica.func.vmap(run, in_dims=(0, 0, None))(params, buffers, mica.ones(4, 2)).shape
        mica.Size([3, 4, 1])
    """
    if not models:
        raise RuntimeError("stack_module_state: no model was given; expected at least one.")
    first = models[0]
    if any(m.training != first.training for m in models):
        raise RuntimeError("stack_module_state: some models are in training mode and some in eval mode.")
    if any(type(m) is not type(first) for m in models):
        names = ", ".join(sorted({type(m).__name__ for m in models}))
        raise RuntimeError(f"stack_module_state: all models must be of one class; these are of ({names}).")

    def stacked(kind: str) -> dict[str, Tensor]:
        tables = [dict(getattr(m, kind)()) for m in models]
        result = {}
        for name in tables[0]:
            parts = [t[name] for t in tables]
            wants = [p.requires_grad for p in parts]
            if any(w != wants[0] for w in wants):
                raise RuntimeError(
                    f"stack_module_state: ({name}) requires grad in some of the models and not in others."
                )
            with mica.no_grad():
                result[name] = mica.stack([p.detach() for p in parts])
            result[name].requires_grad_(wants[0])
        return result

    return stacked("named_parameters"), stacked("named_buffers")
