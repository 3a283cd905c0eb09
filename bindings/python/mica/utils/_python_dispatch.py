"""torch's name of mica.utils.python_dispatch."""

from mica.utils.python_dispatch import *  # noqa: F403
from mica.utils.python_dispatch import (
    _disable_current_modes as _disable_current_modes,
    _get_current_dispatch_mode as _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack as _get_current_dispatch_mode_stack,
    _len_torch_dispatch_stack as _len_torch_dispatch_stack,
    _pop_mode as _pop_mode,
    _pop_mode_temporarily as _pop_mode_temporarily,
    _push_mode as _push_mode,
)
