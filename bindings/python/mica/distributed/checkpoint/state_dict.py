"""States of models and optimizers under the names that parameters have when nothing wraps the model.

So a checkpoint does not say by what the program was made parallel or compiled, and other programs load it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import mica
from mica import nn
from mica._C import Tensor
from mica.distributed._collectives import broadcast
from mica.distributed._init import group_of, is_initialized
from mica.distributed.checkpoint._optimizer_state import (
    collected,
    flattened,
    init_optim_state as _init_optim_state,  # noqa: F401 - torch's name, which programs use
    taken_over,
)
from mica.distributed.checkpoint._ranks import Ranks
from mica.optim import Optimizer
from mica.utils._tree import map_tensors

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

_WRAPPED = (
    "_orig_mod",
    "_checkpoint_wrapped_module",
)  # what compiled and checkpointed modules hold theirs as
Optimizers = Optimizer | Iterable[Optimizer]


@dataclass
class StateDictOptions:
    """What getting and setting states does.

    As `torch.distributed.checkpoint.state_dict.StateDictOptions`.

    Args:
        full_state_dict (bool): Whole tensors on each rank, which is all that there is yet. Default: False.
        cpu_offload (bool): Tensors on the CPU; with `full_state_dict` on rank 0 alone. Default: False.
        ignore_frozen_params (bool): Leaves out parameters that require no grad. Default: False.
        keep_submodule_prefixes (bool): Of `submodules`, whose names begin with theirs. Default: True.
        strict (bool): Refuses states that lack something. Default: True.
        broadcast_from_rank0 (bool): All ranks take over what rank 0 is given; needs `full_state_dict`. Default: False.
        flatten_optimizer_state_dict (bool): A flat dict of the optimizers' state. Default: False.
        dsd_fqn_modifiers (str): Taken and not used. Default: "_fqn_modifiers".

    Example:
        >>> from mica.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
        >>> model = mica.nn.Linear(2, 2)
        >>> model.bias.requires_grad_(False)
        Parameter containing:
        ...
        >>> list(get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True)))
        ['weight']
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _plain(model: nn.Module, name: str) -> str:
    """A name of a parameter or buffer without those of the modules that wrap others."""
    module: Any = model
    kept = []
    for part in name.split("."):
        inner = getattr(module, "_modules", None) or {}
        wraps = part in _WRAPPED or (
            part == "module" and isinstance(module, nn.parallel.DistributedDataParallel)
        )
        if not (wraps and part in inner):
            kept.append(part)
        module = inner.get(part)
    return ".".join(kept)


def _parameter_names(model: nn.Module) -> dict[Tensor, list[str]]:
    """The names of each parameter; one that several modules share has several."""
    names: dict[Tensor, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(_plain(model, name))
    return names


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _listed(optimizers: Optimizers) -> list[Optimizer]:
    found = [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)
    if not found:
        raise RuntimeError(
            "No optimizers are given; give one, or use the functions of the model's state alone."
        )
    return found


def _placed(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """The state where the options want it."""
    if not options.cpu_offload:
        return state
    if options.full_state_dict and is_initialized() and group_of(None).rank() != 0:
        return {}
    found: dict[str, Any] = map_tensors(state, lambda t: t.cpu())
    return found


def get_model_state_dict(
    model: nn.Module,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Gives a model's state under its own names, whatever wraps it.

    As `torch.distributed.checkpoint.state_dict.get_model_state_dict`.

    Args:
        model (Module): The model: plain, in a DistributedDataParallel, compiled, with activation checkpoints.
        submodules (set of Module, optional): Of these alone; deprecated. Default: None.
        options (StateDictOptions, optional): Default: None, its defaults.

    Returns:
        dict: As the `state_dict()` of the model that nothing wraps; its tensors are the model's own.

    Raises:
        ValueError: The options contradict each other.

    Example:
        >>> from mica.distributed.checkpoint.state_dict import get_model_state_dict
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> model = mica.nn.parallel.DistributedDataParallel(mica.nn.Linear(2, 2))
        >>> list(model.state_dict()), list(get_model_state_dict(model))
        (['module.weight', 'module.bias'], ['weight', 'bias'])
        >>> mica.distributed.destroy_process_group()
    """
    options = _checked(options)
    with mica.no_grad():
        state = {_plain(model, name): value for name, value in model.state_dict().items()}
    if options.ignore_frozen_params:
        frozen = {n for p, names in _parameter_names(model).items() if not p.requires_grad for n in names}
        state = {name: value for name, value in state.items() if name not in frozen}
    if submodules:
        state = _of_submodules(model, state, submodules, options.keep_submodule_prefixes)
    return _placed(state, options)


def _of_submodules(
    model: nn.Module, state: dict[str, Any], submodules: set[nn.Module], keeps_prefixes: bool
) -> dict[str, Any]:
    warnings.warn("`submodules` is deprecated; choose from what is given.", FutureWarning, stacklevel=3)
    prefixes = [f"{_plain(model, name)}." for name, module in model.named_modules() if module in submodules]
    return {
        name if keeps_prefixes else name[len(prefix) :]: value
        for name, value in state.items()
        for prefix in prefixes
        if name.startswith(prefix)
    }


def get_optimizer_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Gives optimizers' states with the model's names for parameters.

    As `torch.distributed.checkpoint.state_dict.get_optimizer_state_dict`. An optimizer without state makes it, by a
    step that changes no parameter.

    Args:
        model (Module): The model.
        optimizers (Optimizer or iterable of Optimizer): Its optimizers; the states of several are one.
        submodules (set of Module, optional): Taken and not used. Default: None.
        options (StateDictOptions, optional): Default: None, its defaults.

    Returns:
        dict: "state" by names, and "param_groups"; flat with `flatten_optimizer_state_dict`.

    Raises:
        ValueError: An optimizer has a parameter that is none of the model's.
        RuntimeError: No optimizers are given.

    Example:
        >>> from mica.distributed.checkpoint.state_dict import get_optimizer_state_dict
        >>> model = mica.nn.Linear(2, 2)
        >>> state = get_optimizer_state_dict(model, mica.optim.AdamW(model.parameters()))
        >>> list(state["state"]), state["param_groups"][0]["params"]
        (['weight', 'bias'], ['weight', 'bias'])
    """
    options = _checked(options)
    names = _parameter_names(model)
    state: dict[str, Any] = {"state": {}, "param_groups": []}
    with mica.no_grad():
        for optimizer in _listed(optimizers):
            found = collected(optimizer, names)
            state["state"].update(found["state"])
            state["param_groups"].extend(found["param_groups"])
    if options.flatten_optimizer_state_dict:
        state = flattened(state)
    return _placed(state, options)


def get_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gives a model's and its optimizers' states.

    As `torch.distributed.checkpoint.state_dict.get_state_dict`.

    Args:
        model (Module): As `get_model_state_dict` takes.
        optimizers (Optimizer or iterable of Optimizer): As `get_optimizer_state_dict` takes; none is allowed.
        submodules (set of Module, optional): Of these alone; deprecated. Default: None.
        options (StateDictOptions, optional): Default: None, its defaults.

    Returns:
        tuple: The model's state, and the optimizers'.

    Raises:
        ValueError: An optimizer has a parameter that is none of the model's.

    Example:
        >>> from mica.distributed.checkpoint.state_dict import get_state_dict
        >>> model = mica.nn.Linear(2, 2)
        >>> of_model, of_optimizer = get_state_dict(model, mica.optim.SGD(model.parameters(), lr=0.1))
        >>> list(of_model), of_optimizer["param_groups"][0]["lr"]
        (['weight', 'bias'], 0.1)
    """
    found = get_model_state_dict(model, submodules=submodules, options=options)
    given = [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)
    return found, get_optimizer_state_dict(model, given, options=options) if given else {}


def set_model_state_dict(
    model: nn.Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Gives a model the state that `get_model_state_dict` gave, whatever wraps it.

    As `torch.distributed.checkpoint.state_dict.set_model_state_dict`.

    Args:
        model (Module): The model; parameters on "meta" take the tensors themselves.
        model_state_dict (dict): The state, by names that nothing wraps; with `broadcast_from_rank0` that of rank 0.
        options (StateDictOptions, optional): Default: None, its defaults.

    Returns:
        tuple: Names that are missing, and that are unexpected, as `load_state_dict` gives.

    Raises:
        RuntimeError: The state is empty, or with `strict` lacks names or has others.

    Example:
        >>> from mica.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
        >>> saved, model = mica.nn.Linear(2, 2), mica.nn.Linear(2, 2)
        >>> set_model_state_dict(model, get_model_state_dict(saved))
        <All keys matched successfully>
    """
    options = _checked(options)
    if options.broadcast_from_rank0:
        model_state_dict = _from_rank0(model_state_dict)
    if not model_state_dict and options.strict:
        raise RuntimeError(
            "The state of the model is empty; give what get_model_state_dict() gave, or strict=False."
        )
    names = {_plain(model, name): name for name in model.state_dict()}
    state = {names.get(name, name): value for name, value in model_state_dict.items()}
    on_meta = any(p.device.type == "meta" for p in model.parameters())
    return model.load_state_dict(state, strict=options.strict, assign=on_meta)


def set_optimizer_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Gives optimizers the states that `get_optimizer_state_dict` gave.

    As `torch.distributed.checkpoint.state_dict.set_optimizer_state_dict`; not between backward and step.

    Args:
        model (Module): The model.
        optimizers (Optimizer or iterable of Optimizer): Its optimizers.
        optim_state_dict (dict): Their states; with `broadcast_from_rank0` those of rank 0.
        options (StateDictOptions, optional): Default: None, its defaults.

    Raises:
        RuntimeError: The state is empty, or with `strict` lacks that of a parameter.

    Example:
        >>> from mica.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
        >>> model = mica.nn.Linear(2, 2)
        >>> slow, fast = (mica.optim.SGD(model.parameters(), lr=lr) for lr in (0.1, 0.9))
        >>> set_optimizer_state_dict(model, slow, get_optimizer_state_dict(model, fast))
        >>> slow.param_groups[0]["lr"]
        0.9
    """
    options = _checked(options)
    if options.broadcast_from_rank0:
        optim_state_dict = _from_rank0(optim_state_dict)
    if not optim_state_dict:
        raise RuntimeError("The state of the optimizers is empty; give what get_optimizer_state_dict() gave.")
    names = _parameter_names(model)
    with mica.no_grad():
        for optimizer in _listed(optimizers):
            taken_over(optimizer, names, optim_state_dict, options.strict)


def set_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Gives a model and its optimizers the states that `get_state_dict` gave.

    As `torch.distributed.checkpoint.state_dict.set_state_dict`.

    Args:
        model (Module): As `set_model_state_dict` takes.
        optimizers (Optimizer or iterable of Optimizer): As `set_optimizer_state_dict` takes; none is allowed.
        model_state_dict (dict): The model's.
        optim_state_dict (dict): The optimizers'.
        options (StateDictOptions, optional): Default: None, its defaults.

    Returns:
        tuple: Names of the model's state that are missing, and that are unexpected.

    Raises:
        RuntimeError: A state is empty, or with `strict` lacks something.

    Example:
        >>> from mica.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
        >>> model = mica.nn.Linear(2, 2)
        >>> optimizer = mica.optim.AdamW(model.parameters())
        >>> of_model, of_optimizer = get_state_dict(model, optimizer)
        >>> set_state_dict(model, optimizer, model_state_dict=of_model, optim_state_dict=of_optimizer)
        <All keys matched successfully>
    """
    given = [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)
    if given:
        set_optimizer_state_dict(model, given, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


class _Shape(NamedTuple):
    """What stands for a tensor in the state that rank 0 sends first."""

    size: tuple[int, ...]
    dtype: Any


def _from_rank0(state: dict[str, Any]) -> dict[str, Any]:
    """Rank 0's state, on all ranks."""
    tensors: list[Tensor] = []

    def shape_of(tensor: Tensor) -> _Shape:
        tensors.append(tensor.detach().cpu().contiguous())
        return _Shape(tuple(tensor.shape), tensor.dtype)

    here = group_of(None).rank() == 0
    shapes = Ranks(None, no_dist=False).all_reduce(
        "broadcast", lambda: None, lambda _: map_tensors(state, shape_of)
    )

    def filled(value: Any) -> Any:
        if isinstance(value, _Shape):
            tensor = tensors.pop(0) if here else mica.empty(value.size, dtype=value.dtype)
            broadcast(tensor, src=0)
            return tensor
        if isinstance(value, dict):
            return {key: filled(inner) for key, inner in value.items()}
        if type(value) in (list, tuple):
            return type(value)(filled(inner) for inner in value)
        return value

    found: dict[str, Any] = filled(shapes)
    return found
