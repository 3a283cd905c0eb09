"""What a name of torch is on Mica, for --check and the list of coverage."""

from __future__ import annotations

import types
from typing import Any

from mica._torch_names.table import MODULES, Absent, Entry, hand, real_modules, resolve
from mica.torch._modules import module


def describe(path: str) -> tuple[str, str]:
    """What a name is: ("present", ""), ("inert", its kind) or ("absent", the reason).

    Attributes of objects count: torch.Tensor.view, torch.backends.cuda.matmul.allow_tf32.
    """
    parts = path.split(".")
    if parts[0] == "Tensor":
        parts = ["torch", *parts]
    while parts[:2] == ["torch", "torch"]:
        parts = parts[1:]
    for i in range(len(parts), 1, -1):
        prefix = ".".join(parts[:i])
        line = hand().get(prefix)
        if line is not None and not line.later and line.kind == "absent":
            return ("absent", line.detail)
    value: Any = None
    inert = ""
    for i in range(1, len(parts) + 1):
        prefix = ".".join(parts[:i])
        try:
            if i > 1 and not isinstance(value, types.ModuleType):
                value = getattr(value, parts[i - 1])
                continue
            of = hand().get(prefix)
            hidden = of is not None and of.kind == "hidden" and i < len(parts)
            value = module(prefix) if i == 1 or hidden else resolve(prefix)
        except (Absent, AttributeError, NotImplementedError) as error:
            return ("absent", str(error))
        except ImportError:  # Mica has it, and a package that it works through is not installed here
            return ("present", "")
        line = hand().get(prefix)
        inert = line.kind if line is not None and _stands(prefix, line) else ""
    return ("inert", inert) if inert else ("present", "")


def _stands(path: str, line: Entry) -> bool:
    """Whether the line, rather than Mica, gives an inert thing."""
    if line.kind == "=" or (line.kind in MODULES and line.detail):
        return False
    if not line.later:
        return True
    if line.kind == "module":
        return not real_modules(path)
    parent, _, name = path.rpartition(".")
    return not any(hasattr(real, name) for real in real_modules(parent))
