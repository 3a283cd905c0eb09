"""Mica: tensors, automatic differentiation and neural networks over one dispatcher.

This module re-exports the extension module's types and the generated operators;
packages that cost time to import (nn, optim, library, testing) load on first use.
"""

from __future__ import annotations

from mica import _C
from mica._C import *  # noqa: F403  (types, dtypes, functions of the runtime)
from mica._C import Generator, OutOfMemoryError, Size, Tensor, device, dtype  # noqa: F401

__version__ = "0.1.0"

for _name, _function in _C._functions[""].items():
    globals().setdefault(_name, _function)
del _name, _function

from mica import _tensor  # noqa: E402, F401  (adds Python methods to Tensor)
from mica._aliases import install as _install_aliases  # noqa: E402

_install_aliases(globals())

from mica._legacy_types import install as _install_legacy_types  # noqa: E402

_install_legacy_types(globals())

from math import e, inf, nan, pi  # noqa: E402, F401

from mica._devices import *  # noqa: E402, F403
from mica._foreach import *  # noqa: E402, F403
from mica._functions import *  # noqa: E402, F403
from mica._grad_mode import (  # noqa: E402, F401
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from mica._random import (  # noqa: E402, F401
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from mica._runtime import (  # noqa: E402, F401
    disable_plugin,
    enable_plugin,
    explain,
    plugins,
)
from mica._statistics import *  # noqa: E402, F403
from mica._tensor_str import set_printoptions  # noqa: E402, F401
from mica._type_info import finfo, iinfo  # noqa: E402, F401

newaxis = None

_LAZY = (
    "accelerator",
    "autograd",
    "cuda",
    "fft",
    "library",
    "linalg",
    "masked",
    "nn",
    "ops",
    "optim",
    "random",
    "signal",
    "special",
    "testing",
    "utils",
)


TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

    from mica import (  # noqa: F401
        accelerator,
        autograd,
        cuda,
        fft,
        library,
        linalg,
        masked,
        nn,
        ops,
        optim,
        random,
        signal,
        special,
        testing,
        utils,
    )
else:

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            import importlib

            module = importlib.import_module(f"mica.{name}")
            globals()[name] = module
            return module
        raise AttributeError(f"module 'mica' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
