"""Which module defines a public class or function of torch: mica/_torch_names/homes.txt, made and held to torch.

Run with --write, under the environment with torch, it renews the file; test_surface_torch.py compares.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections import defaultdict
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent.parent
FILE = ROOT / "bindings" / "python" / "mica" / "_torch_names" / "homes.txt"
SKIPPED = (
    "_decomp _dynamo _functorch _guards _inductor _jit _library _logging _subclasses _vmap ao backends contrib "
    "cpu distributed export fx.experimental fx.passes jit monitor mtia nativert nested numa onnx package "
    "quantization sparse testing utils.backend utils.benchmark utils.bottleneck utils.bundled utils.collect_env "
    "utils.cpp utils.hipify utils.mkldnn utils.mobile utils.model_dump utils.serialization utils.show "
    "utils.tensorboard utils.throughput utils.viz"
)
PREFIXES = tuple(f"torch.{name}" for name in SKIPPED.split())
HEAD = """\
# Where torch defines its public classes and functions: a module, and names.
# `seed@torch` says that module torch, too, means this one. test/torch_names/homes.py makes it.
"""


def modules() -> list[str]:
    """torch's public modules that programs import from, imported."""
    folder = Path(torch.__file__).parent
    found = {"torch"}
    for file in folder.rglob("*.py"):
        parts = file.relative_to(folder).with_suffix("").parts
        name = ".".join(("torch", *parts)).removesuffix(".__init__")
        if not name.startswith(PREFIXES) and not any(part.startswith("_") for part in name.split(".")):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
                found.add(name)
    return sorted(found)


def homes() -> dict[tuple[str, str], str]:
    """(module, name) -> the module that defines it."""
    found = {}
    for module in modules():
        for name, value in sorted(vars(sys.modules[module]).items(), key=lambda item: item[0]):
            home = getattr(value, "__module__", None)
            if name.startswith("_") or not isinstance(value, (type, types.FunctionType)):
                continue
            if not isinstance(home, str) or not home.startswith("torch") or value.__name__ != name:
                continue
            if getattr(sys.modules.get(home), name, None) is value and not home.startswith(PREFIXES):
                found[module, name] = home
    return found


def text() -> str:
    """The content of the file."""
    found = homes()
    names = defaultdict(set)
    for (_, name), home in found.items():
        names[home].add(name)
    defined = {home: set(held) for home, held in names.items()}
    for (module, name), home in found.items():
        inside = [h for h in defined if name in defined[h] and h.startswith(f"{module}.")]
        if home != module and home in inside and len(inside) > 1:
            names[home].add(f"{name}@{module}")
    return HEAD + "".join(f"{home}: {' '.join(sorted(names[home]))}\n" for home in sorted(names))


if __name__ == "__main__":
    if "--write" in sys.argv:
        FILE.write_text(text())
    else:
        print(text())
