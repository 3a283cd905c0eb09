"""mica.torch: `import torch` gives Mica.

Three ways in: `python -m mica.torch script.py [args]` (also `-m module`, `-c code`),
`mica.torch.install()` at the top of a program, and, for the child processes of either,
MICA_TORCH=1 in the environment. `python -m mica.torch --check script.py` says, without
running, which names of torch the program uses and whether Mica has them.

One table decides what a name of torch is (mica/_torch_names): a Mica object, something
inert that is there because libraries import it, or absent. torch itself is never imported.
"""

from __future__ import annotations

import sys
from typing import Any

from mica._torch_names import table
from mica._torch_names.table import Absent as Absent
from mica._torch_names.version import VERSION as VERSION
from mica.torch import _inert, _modules, _relocation
from mica.torch._describe import describe as describe

table.register(table.Shim(_modules.module, _inert.make, _modules.operator))

_FINDERS: list[Any] = []


def namespace(name: str = "torch") -> Any:
    """The module that `import <name>` gives once the shim is installed."""
    return _modules.module(name)


def install() -> None:
    """Makes `import torch` give Mica in this process, and in its children.

    It wins over an installed torch, in find_spec() and importlib.metadata too. Where the real
    torch is imported already it raises RuntimeError, since two libraries would share one name.
    """
    if _FINDERS:
        return
    present = sys.modules.get("torch")
    if present is not None:
        raise RuntimeError(
            f"The module torch is imported already (from {getattr(present, '__file__', None)}); "
            "call mica.torch.install() before the first `import torch`."
        )
    import os
    from pathlib import Path

    from mica import _C, _devices
    from mica.torch._finder import Finder

    _devices.reserve("cuda", "xpu", "mps")

    finder = Finder()
    sys.meta_path.insert(0, finder)
    _FINDERS.append(finder)
    _C._add_tensor_attributes({"__module__": "torch"})
    _C._set_library_name("torch")
    site = str(Path(__file__).with_name("_site"))
    paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    root = str(Path(__file__).resolve().parent.parent.parent)
    os.environ["MICA_TORCH"] = "1"
    # First, so that its sitecustomize.py is the one that a child runs; last, so that a child finds mica.
    wanted = [site, *(p for p in paths if p != site)]
    os.environ["PYTHONPATH"] = os.pathsep.join(
        wanted if root in sys.path or root in paths else [*wanted, root]
    )


def uninstall() -> None:
    """Takes the finder and torch's modules out again; objects that programs hold go on working."""
    import os

    from mica import _C

    _C._set_library_name("mica")
    _relocation.restore()
    while _FINDERS:
        finder = _FINDERS.pop()
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
    for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
        del sys.modules[name]
    _C._add_tensor_attributes({"__module__": "mica"})
    os.environ.pop("MICA_TORCH", None)


def is_installed() -> bool:
    """Whether `import torch` gives Mica in this process."""
    return bool(_FINDERS)
