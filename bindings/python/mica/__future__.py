"""How modules take new tensors when they are converted or loaded: settings of the process, torch.__future__.

By default a parameter stays the object it is and gets other data. It may instead be replaced by a
new one, or swapped with it (mica.utils.swap_tensors), which keeps the object where its class or
device changes; swapping comes first where both are set.
"""

from __future__ import annotations

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Lets conversions of a module (to, half, cuda, ...) make new parameters."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversions of a module make new parameters."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Lets conversions of a module, and load_state_dict, swap its tensors with the new ones."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversions of a module, and load_state_dict, swap tensors."""
    return _swap_module_params_on_conversion
