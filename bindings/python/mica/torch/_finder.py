"""What sys.meta_path gets: modules of the name torch, and the distribution "torch"."""

from __future__ import annotations

import importlib.machinery
from typing import TYPE_CHECKING, Any

from mica._torch_names import table
from mica.torch import _modules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType, ModuleType


class Finder:
    """Finds torch and every submodule that the table knows; nothing else.

    It derives from no class of importlib.abc, which loads importlib.resources and inspect: 30 ms.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        if not table.is_module(fullname):
            return None
        return importlib.machinery.ModuleSpec(
            fullname,
            self,  # type: ignore[arg-type]
            origin=_modules.FILE,
            is_package=table.is_package(fullname),
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _modules.module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """The modules fill themselves, name by name, as they are asked."""

    def get_code(self, fullname: str) -> CodeType | None:
        """What `python -m torch.distributed.run` runs: Mica's module of that path."""
        import importlib.util

        found = importlib.util.find_spec("mica" + fullname.removeprefix("torch"))
        return found.loader.get_code(found.name) if found and hasattr(found.loader, "get_code") else None

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """The distribution "torch", for importlib.metadata."""
        if context is None or context.name is None or context.name.lower() == "torch":
            from mica.torch._distribution import Distribution

            yield Distribution()
