"""`python -m mica.torch --stubs FOLDER`: torch's names for a type checker, as a package of stubs.

With the folder on MYPYPATH (or among pyright's extraPaths), `import torch` is seen as Mica: each
module of the one table becomes a file that takes its names from Mica's modules, so that their types
are those of Mica's own stubs; what is inert is Any, what is absent is not there.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import keyword
import sys
from pathlib import Path
from typing import Any

from mica._torch_names import homes, table
from mica.torch._modules import names_in

HEAD = '"""{0} on Mica, for type checkers; made by `python -m mica.torch --stubs`."""\n\nfrom typing import Any\n\n'


def _modules() -> list[str]:
    """The modules that stubs are made of: all public ones."""
    package = Path(__file__).resolve().parent.parent
    files = (f.relative_to(package).with_suffix("").parts for f in package.rglob("*.py"))
    names = {".".join(("torch", *parts)).removesuffix(".__init__") for parts in files}
    names |= {name for name, line in table.hand().items() if line.kind == "module"} | homes.modules()
    names = {n for n in names if not any(part.startswith("_") for part in n.split("."))}
    return sorted(n for n in names if n.split(".")[1:2] not in _NOT_TORCH and _is_there(n))


def _is_there(path: str) -> bool:
    try:
        return table.is_module(path)
    except ImportError:  # what another package's absence closes: torch.utils.tensorboard
        return False


_NOT_TORCH = (["torch"], ["array_api"], ["conformance"])


@functools.cache
def static_names(module: str) -> frozenset[str]:
    """What a type checker sees in a module of Mica: the names that its stub or source binds."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin or not module.startswith("mica"):
        return frozenset()
    file = Path(spec.origin)
    stub = file.with_name(file.name.partition(".")[0] + ".pyi")
    source = stub if stub.exists() else file
    if source.suffix not in (".py", ".pyi"):
        return frozenset()
    found: set[str] = set()
    _collect(ast.parse(source.read_text(encoding="utf-8")).body, found, source == stub)
    return frozenset(found)


def _exported(module: str) -> set[str]:
    """What `from module import *` gives."""
    listed = getattr(sys.modules.get(module), "__all__", None)
    return {n for n in static_names(module) if (n in listed if listed else not n.startswith("_"))}


def _collect(body: list[ast.stmt], found: set[str], stub: bool) -> None:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and node.module and node.names[0].name == "*":
            name = node.module
            file = Path(__file__).parent.parent / f"{name.rpartition('.')[2]}.pyi"
            if file.exists() and importlib.util.find_spec(name) is None:
                _collect(ast.parse(file.read_text(encoding="utf-8")).body, found, True)
            found |= _exported(name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mica"):
            found.update(a.asname or a.name for a in node.names if a.asname or not stub)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(t.id for t in targets if isinstance(t, ast.Name))
        elif isinstance(node, (ast.If, ast.Try)):
            _collect(node.body, found, stub)
            _collect(node.orelse, found, stub)


def _value(real: Any, name: str) -> Any:
    """The attribute; None where it is absent, or another package's absence closes it."""
    try:
        return getattr(real, name, None)
    except ImportError:
        return None


def _line(path: str, name: str, modules: set[str]) -> str:
    child = f"{path}.{name}"
    if child in modules:
        return f"from {path} import {name} as {name}"
    line = table.hand().get(child)
    if line is not None and line.kind == "=":
        owner, _, own = line.detail.rpartition(".")
        return f"from {owner} import {own} as {name}" if own in static_names(owner) else f"{name}: Any"
    for real in table.real_modules(path):
        value = real.__dict__.get(name) if path == "torch" else _value(real, name)
        for module in (str(getattr(value, "__module__", "")), real.__name__):
            if name in static_names(module):
                return f"from {module} import {name} as {name}"
    return f"{name}: Any"


def text(path: str, modules: set[str]) -> str:
    """The stub of one module."""
    names = names_in(path) | {m[len(path) + 1 :] for m in modules if m.rpartition(".")[0] == path}
    for real in table.real_modules(path):
        names |= {
            n for n in static_names(real.__name__) if not n.startswith("_") and _value(real, n) is not None
        }
        names |= {n for n in homes.names_inside(path) if path != "torch" and _value(real, n) is not None}
    wanted = (
        n
        for n in sorted(names)
        if n.isidentifier() and not keyword.iskeyword(n) and not n.startswith("_") and n != "mica"
    )
    lines = [_line(path, n, modules) for n in wanted]
    if path == "torch":
        lines.append("__version__: str")
    return HEAD.format(path) + "\n".join(lines) + "\n"


def write(folder: Path) -> int:
    """Writes the package `torch` into the folder; gives the number of files."""
    importlib.import_module("mica")
    modules = set(_modules())
    for path in modules:
        place = folder.joinpath(*path.split("."))
        place.mkdir(parents=True, exist_ok=True)
        (place / "__init__.pyi").write_text(text(path, modules), encoding="utf-8")
    (folder / "torch" / "py.typed").write_text("")
    return len(modules)


def main(words: list[str]) -> int:
    """Writes the stubs, and says where they are."""
    if len(words) != 1 or words[0].startswith("-"):
        print("usage: python -m mica.torch --stubs FOLDER", file=sys.stderr)
        return 2
    count = write(Path(words[0]))
    print(f"{count} stubs of torch are in {words[0]}: put it on MYPYPATH, or into pyright's extraPaths.")
    return 0
