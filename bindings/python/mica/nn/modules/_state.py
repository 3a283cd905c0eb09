"""state_dict and load_state_dict of modules."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import mica
from mica import _C, __future__ as settings
from mica._C import Tensor
from mica.nn.parameter import Parameter, is_lazy

if TYPE_CHECKING:
    from mica.nn.modules.module import Module

_EXTRA = "_extra_state"


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """What load_state_dict found missing and unexpected."""

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _has_extra(module: Module, base: type[Module], method: str) -> bool:
    """Whether the module's class defines the method, for which `base` (Module) has only a refusal."""
    return getattr(type(module), method) is not getattr(base, method)


def state_dict(module: Module, destination: Any, prefix: str, keep_vars: bool) -> dict[str, Any]:
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in tuple(module._state_dict_pre_hooks.values()):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in tuple(module._state_dict_hooks.values()):
        changed = hook(module, destination, prefix, metadata)
        if getattr(hook, "_from_public_api", False):
            if changed is not None:
                raise RuntimeError(f"A state_dict post-hook returns None, not a ({type(changed).__name__}).")
        elif changed is not None:
            destination = changed
    return destination  # type: ignore[no-any-return]


def save_own(module: Module, base: type[Module], destination: Any, prefix: str, keep_vars: bool) -> None:
    """Writes the module's own parameters, persistent buffers and extra state."""
    for name, parameter in module._parameters.items():
        if parameter is not None:
            destination[prefix + name] = parameter if keep_vars or is_lazy(parameter) else parameter.detach()
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            destination[prefix + name] = buffer if keep_vars or is_lazy(buffer) else buffer.detach()
    if _has_extra(module, base, "get_extra_state"):
        destination[prefix + _EXTRA] = module.get_extra_state()


def load_own(
    module: Module,
    base: type[Module],
    state: Any,
    prefix: str,
    metadata: Any,
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    """Reads the module's own state; adds to the three lists what is wrong."""
    for hook in tuple(module._load_state_dict_pre_hooks.values()):
        hook(module, state, prefix, metadata, strict, missing, unexpected, errors)
    assign = bool(metadata.get("assign_to_params_buffers", False))
    for table in (module._parameters, module._buffers):
        for name, own in list(table.items()):
            if own is None or name in module._non_persistent_buffers_set:
                continue
            if prefix + name not in state:
                missing.append(prefix + name)
                continue
            _load_tensor(table, name, prefix + name, own, state[prefix + name], assign, errors)
    if _has_extra(module, base, "set_extra_state"):
        if prefix + _EXTRA in state:
            module.set_extra_state(state[prefix + _EXTRA])
        else:
            missing.append(prefix + _EXTRA)
    elif prefix + _EXTRA in state:
        unexpected.append(prefix + _EXTRA)
    unexpected += _unknown(module, state, prefix)


def _unknown(module: Module, state: Any, prefix: str) -> list[str]:
    """Keys under the prefix that lead to nothing of this module."""
    own = {*module._parameters, *module._buffers} - module._non_persistent_buffers_set
    empty = {k for t in (module._parameters, module._buffers) for k, v in t.items() if v is None}
    unknown = []
    for key in state:
        if not key.startswith(prefix) or key == prefix + _EXTRA:
            continue
        first, _, rest = key[len(prefix) :].partition(".")
        if rest and first in module._modules:
            continue
        if rest or first not in own or first in empty:
            unknown.append(key)
    return unknown


def _load_tensor(
    table: dict[str, Any], name: str, key: str, own: Tensor, given: Any, assign: bool, errors: list[str]
) -> None:
    if (
        isinstance(given, Tensor)
        and not is_lazy(own)
        and not is_lazy(given)
        and own.ndim == 0
        and tuple(given.shape) == (1,)
    ):
        given = given[0]  # scalars were saved as vectors once
    if not isinstance(given, Tensor):
        errors.append(f"The value for ({key}) is of type ({type(given).__name__}); expected a Tensor.")
    elif is_lazy(given):
        if not is_lazy(own):
            errors.append(
                f"The state's tensor ({key}) is lazy, without shape or values yet; the module's has both."
            )
    elif is_lazy(own):
        with mica.no_grad():
            own.materialize(given.shape)  # type: ignore[attr-defined]
            own.copy_(given)
    elif given.shape != own.shape:
        errors.append(
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
            f"the shape in current model is {own.shape}."
        )
    elif settings.get_swap_module_params_on_conversion():
        _swap(own, key, given, assign, errors)
    elif assign:
        if isinstance(own, Parameter) and not isinstance(given, Parameter):
            given = Parameter(given, own.requires_grad)
        elif isinstance(own, Parameter):
            given.requires_grad_(own.requires_grad)
        table[name] = given
    else:
        if own.is_meta and not given.is_meta:
            warnings.warn(
                f"The value for ({key}) goes nowhere: the module's tensor is on the device (meta), which has no values; "
                "load_state_dict(assign=True) puts the state's own tensors there.",
                stacklevel=2,
            )
        with mica.no_grad():
            own.copy_(given)


def _swap(own: Any, key: str, given: Tensor, assign: bool, errors: list[str]) -> None:
    """Lets the module's tensor become what its module_load() makes of the state's."""
    try:
        with mica.no_grad():
            new = own.module_load(given, assign=assign)
            if new is given or new is own:
                raise RuntimeError("module_load returned one of self or other; return a detach() of it.")
            if isinstance(own, Parameter) and not isinstance(new, Parameter):
                new = Parameter(new, own.requires_grad)
            elif isinstance(own, Parameter):
                new.requires_grad_(own.requires_grad)
            _C._swap_tensors(own, new)
    except Exception as error:
        errors.append(f'While swapping the parameter named "{key}", an exception occurred: {error}')


def _load(module: Module, state: Any, prefix: str, kept: Any, assign: bool, lists: Any) -> None:
    metadata = dict(kept.get(prefix[:-1], {}))
    if assign:
        metadata["assign_to_params_buffers"] = True
    module._load_from_state_dict(state, prefix, metadata, True, *lists)  # torch's lists are whole, too
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = {k: v for k, v in state.items() if k.startswith(below)}
            _load(child, part, below, kept, assign, lists)
    if module._load_state_dict_post_hooks:
        keys = _IncompatibleKeys(lists[0], lists[1])
        for hook in tuple(module._load_state_dict_post_hooks.values()):
            if hook(module, keys) is not None:
                raise AssertionError(
                    "A load_state_dict post-hook changes the lists of keys in place and returns None."
                )


def load_state_dict(module: Module, state: Any, strict: bool, assign: bool) -> tuple[list[str], list[str]]:
    if not hasattr(state, "keys"):
        raise TypeError(f"A state_dict is a mapping; this value is of type ({type(state).__name__}).")
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    kept = getattr(state, "_metadata", None) or {}
    _load(module, OrderedDict(state), "", kept, assign, (missing, unexpected, errors))
    for kind, keys in (("Unexpected", unexpected), ("Missing", missing)):
        if strict and keys:
            quoted = ", ".join(f'"{key}"' for key in keys)
            errors.insert(0, f"{kind} key(s) in state_dict: {quoted}.")
    if errors:
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(errors)
        )
    return missing, unexpected
