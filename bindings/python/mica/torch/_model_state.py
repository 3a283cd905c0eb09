"""torch.distributed.checkpoint.state_dict for one process: a model's state without the names that
wrappers add, and loading it back. Sharded states have no meaning here and are not made.
"""

from __future__ import annotations

import dataclasses
from typing import Any

_WRAPPERS = ("_orig_mod.",)


@dataclasses.dataclass
class StateDictOptions:
    """What the functions may do; only `strict`, `ignore_frozen_params` and `cpu_offload` change one process."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _plain(name: str) -> str:
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name


def get_model_state_dict(
    model: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The model's state dict, names as if nothing wrapped it."""
    options = options or StateDictOptions()
    frozen = {n for n, p in model.named_parameters() if not p.requires_grad}
    found = {}
    for name, value in model.state_dict().items():
        if options.ignore_frozen_params and name in frozen:
            continue
        found[_plain(name)] = value.cpu() if options.cpu_offload and hasattr(value, "cpu") else value
    return found


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Loads a state dict of get_model_state_dict(); parameters on "meta" take the tensors themselves."""
    options = options or StateDictOptions()
    names = {_plain(name): name for name in model.state_dict()}
    state = {names.get(name, name): value for name, value in model_state_dict.items()}
    on_meta = any(p.device.type == "meta" for p in model.parameters())
    return model.load_state_dict(state, strict=options.strict, assign=on_meta)
