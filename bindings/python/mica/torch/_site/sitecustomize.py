"""Runs at the start of a child process of a program under `python -m mica.torch`.

It stands in a folder of its own that only mica.torch.install() puts on PYTHONPATH. With
MICA_TORCH=1 it makes the first `import torch` install the shim; Mica itself is not loaded
until then. The sitecustomize that it hides is run in its place.
"""

import importlib.machinery
import importlib.util
import os
import sys


class _Waiting:
    """Stands first on sys.meta_path until torch is asked for."""

    def _wake(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            import mica.torch

            mica.torch.install()

    def find_spec(self, name, path=None, target=None):  # noqa: ANN001, ANN202
        if name != "torch":
            return None
        self._wake()
        return importlib.util.find_spec(name)

    def find_distributions(self, context=None):  # noqa: ANN001, ANN202
        if getattr(context, "name", None) == "torch":
            self._wake()
            return sys.meta_path[0].find_distributions(context)
        return iter(())


if os.environ.get("MICA_TORCH") == "1":
    sys.meta_path.insert(0, _Waiting())

_here = os.path.dirname(os.path.abspath(__file__))
_others = [p for p in sys.path if os.path.abspath(p or ".") != _here]
_hidden = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _hidden is not None and _hidden.loader is not None:
    _hidden.loader.exec_module(importlib.util.module_from_spec(_hidden))
