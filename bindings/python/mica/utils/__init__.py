"""mica.utils: data loading and helpers, each loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_LAZY = (
    "_python_dispatch",
    "_pytree",
    "backend_registration",
    "benchmark",
    "checkpoint",
    "data",
    "deterministic",
    "dlpack",
    "flop_counter",
    "hooks",
    "module_tracker",
    "python_dispatch",
    "tensorboard",
)
# Functions, by the module that they are in.
_FUNCTIONS = {
    "generate_methods_for_privateuse1_backend": "backend_registration",
    "rename_privateuse1_backend": "backend_registration",
    "summary": "_summary",
    "swap_tensors": "_swap_tensors",
}

if TYPE_CHECKING:
    from mica.utils import (
        backend_registration as backend_registration,
        benchmark as benchmark,
        checkpoint as checkpoint,
        data as data,
        deterministic as deterministic,
        dlpack as dlpack,
        flop_counter as flop_counter,
        hooks as hooks,
        module_tracker as module_tracker,
        python_dispatch as python_dispatch,
        tensorboard as tensorboard,
    )
    from mica.utils._summary import summary as summary
    from mica.utils._swap_tensors import swap_tensors as swap_tensors
    from mica.utils.backend_registration import (
        generate_methods_for_privateuse1_backend as generate_methods_for_privateuse1_backend,
        rename_privateuse1_backend as rename_privateuse1_backend,
    )
else:

    def __getattr__(name: str) -> Any:
        import importlib

        if name in _FUNCTIONS:
            return getattr(importlib.import_module(f"mica.utils.{_FUNCTIONS[name]}"), name)
        if name not in _LAZY:
            raise AttributeError(f"module 'mica.utils' has no attribute '{name}'")
        return importlib.import_module(f"mica.utils.{name}")
