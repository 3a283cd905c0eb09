"""Mica: tensors, automatic differentiation and neural networks over one dispatcher.

This module re-exports the extension module's types and the generated operators;
packages that cost time to import (nn, optim, library, testing) load on first use.
"""

from __future__ import annotations

from mica import _C
from mica._C import *  # noqa: F403  (types, dtypes, functions of the runtime)
from mica._C import (
    DeviceLostError as DeviceLostError,
    Generator as Generator,
    OutOfMemoryError as OutOfMemoryError,
    Size as Size,
    Tensor as Tensor,
    device as device,
    dtype as dtype,
)
from mica.version import __version__ as __version__

for _name, _function in _C._functions[""].items():
    globals().setdefault(_name, _function)
del _name, _function

from mica import _tensor as _tensor  # noqa: E402
from mica._functions.aliases import install as _install_aliases  # noqa: E402

_install_aliases(globals())

from mica._tensor.legacy_types import install as _install_legacy_types  # noqa: E402

_install_legacy_types(globals())

from math import e as e, inf as inf, nan as nan, pi as pi  # noqa: E402

from mica._devices import *  # noqa: E402, F403
from mica._devices import modules as _modules  # noqa: E402
from mica._devices.random_state import (  # noqa: E402
    default_generator as default_generator,
    get_rng_state as get_rng_state,
    initial_seed as initial_seed,
    manual_seed as manual_seed,
    seed as seed,
    set_rng_state as set_rng_state,
)
from mica._functions import *  # noqa: E402, F403
from mica._functions.checks import *  # noqa: E402, F403
from mica._functions.foreach import *  # noqa: E402, F403
from mica._functions.grad_mode import (  # noqa: E402
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from mica._functions.variadic import *  # noqa: E402, F403
from mica._functions.view_copies import *  # noqa: E402, F403
from mica._runtime import (  # noqa: E402
    disable_plugin as disable_plugin,
    enable_plugin as enable_plugin,
    explain as explain,
    plugin_options as plugin_options,
    plugins as plugins,
    replace_plugin as replace_plugin,
    set_plugin_option as set_plugin_option,
)
from mica._tensor.dtype_limits import (  # noqa: E402
    finfo as finfo,
    iinfo as iinfo,
)
from mica._tensor.exchange import *  # noqa: E402, F403
from mica._tensor.printing import set_printoptions as set_printoptions  # noqa: E402

_modules.find_on_import()

newaxis = None
_OF_AMP = (
    "autocast",
    "get_autocast_dtype",
    "is_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
)

_LAZY = (
    "accelerator",
    "amp",
    "array_api",
    "autograd",
    "backends",
    "cuda",
    "distributed",
    "distributions",
    "fft",
    "func",
    "futures",
    "fx",
    "hub",
    "library",
    "linalg",
    "masked",
    "mps",
    "multiprocessing",
    "nn",
    "ops",
    "optim",
    "overrides",
    "profiler",
    "quasirandom",
    "random",
    "return_types",
    "serialization",
    "signal",
    "special",
    "storage",
    "testing",
    "types",
    "utils",
    "version",
    "xpu",
)
_OF_SERIALIZATION = ("load", "save")
_OF_OPERATORS = ("_dirichlet_grad", "_sample_dirichlet", "_standard_gamma", "_standard_gamma_grad")


TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

    from mica import (
        accelerator as accelerator,
        amp as amp,
        array_api as array_api,
        autograd as autograd,
        backends as backends,
        cuda as cuda,
        distributed as distributed,
        distributions as distributions,
        fft as fft,
        func as func,
        futures as futures,
        fx as fx,
        hub as hub,
        library as library,
        linalg as linalg,
        masked as masked,
        mps as mps,
        multiprocessing as multiprocessing,
        nn as nn,
        ops as ops,
        optim as optim,
        overrides as overrides,
        profiler as profiler,
        quasirandom as quasirandom,
        random as random,
        return_types as return_types,
        serialization as serialization,
        signal as signal,
        special as special,
        storage as storage,
        testing as testing,
        types as types,
        utils as utils,
        version as version,
        xpu as xpu,
    )
    from mica.amp import (
        autocast as autocast,
        get_autocast_dtype as get_autocast_dtype,
        is_autocast_enabled as is_autocast_enabled,
        set_autocast_dtype as set_autocast_dtype,
        set_autocast_enabled as set_autocast_enabled,
    )
    from mica.func import vmap as vmap
    from mica.serialization import load as load, save as save

    _dirichlet_grad: Any
    _sample_dirichlet: Any
    _standard_gamma: Any
    _standard_gamma_grad: Any
else:

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            import importlib

            module = importlib.import_module(f"mica.{name}")
            globals()[name] = module
            return module
        if name in _OF_AMP:
            from mica import amp

            return getattr(amp, name)
        if name in _OF_SERIALIZATION:
            from mica import serialization

            return getattr(serialization, name)
        if name.endswith("Storage"):
            from mica import storage

            if hasattr(storage, name):
                return getattr(storage, name)
        if name == "vmap":
            from mica.func import vmap

            return vmap
        if name in _OF_OPERATORS:
            from mica import ops

            return getattr(ops.mica, name)
        if name in ("_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_"):
            from mica.optim import _fused

            return getattr(_fused, name)
        module = None if name.startswith("_") else _modules.find(name)
        if module is not None:
            globals()[name] = module
            return module
        raise AttributeError(f"module 'mica' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_OF_AMP, *_OF_SERIALIZATION, *_modules.names(), "vmap"})
