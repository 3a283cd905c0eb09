"""Which file of the Python package imports which: scripts/lint.py asks, for its rules on them.

Imports inside functions count, and importlib.import_module() of a written name; those under TYPE_CHECKING
do not, and neither does the package itself (`import mica`), which imports all of it. A module is named as
Python names it: mica.nn.modules.linear.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PACKAGE = "mica"
HOME = "bindings/python/"


def module_name(path: str) -> str | None:
    """mica.nn for bindings/python/mica/nn/__init__.py; None for a file outside the package."""
    if not path.startswith(f"{HOME}{PACKAGE}/") or not path.endswith(".py"):
        return None
    return ".".join(Path(path.removeprefix(HOME)).with_suffix("").parts).removesuffix(".__init__")


def path_of(name: str, paths: Iterable[str]) -> str:
    """The file of a module."""
    return next(path for path in paths if module_name(path) == name)


def _named(node: ast.AST) -> str:
    """The last name of an expression: import_module of importlib.import_module."""
    return getattr(node, "attr", None) or getattr(node, "id", "")


def _imports(node: ast.AST, package: str) -> Iterator[tuple[str, list[str], int]]:
    """What a file imports: a module, the names taken out of it, and the line."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, [], child.lineno) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            above = package.split(".")[: 1 - child.level or None] if child.level else []
            module = ".".join([*above, *([child.module] if child.module else [])])
            yield module, [alias.name for alias in child.names], child.lineno
        elif isinstance(child, ast.Call) and child.args and _named(child.func) == "import_module":
            name = getattr(child.args[0], "value", None)
            yield name if isinstance(name, str) else "", [], child.lineno
        if isinstance(child, ast.If) and _named(child.test) == "TYPE_CHECKING":
            child = ast.Module(child.orelse, [])
        yield from _imports(child, package)


def graph(sources: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """The modules of the package that each module imports, with the line of the first import; `sources` by path."""
    known = {name: path for path in sources if (name := module_name(path))}

    def nearest(name: str) -> str:
        while name and name not in known:
            name = name.rpartition(".")[0]
        return name

    edges: dict[str, dict[str, int]] = {}
    for name, path in known.items():
        package = name if path.endswith("/__init__.py") else name.rpartition(".")[0]
        found = edges[name] = {}
        for module, names, line in _imports(ast.parse(sources[path]), package):
            for target in [f"{module}.{n}" for n in names] or [module]:
                to = nearest(target) or module if target.split(".")[0] == PACKAGE else ""
                if to not in ("", PACKAGE, name):
                    found.setdefault(to, line)
    return edges


def circles(edges: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    """The sets of modules that all reach each other, the largest first; none of a single module."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        seen, todo = set(), [start]
        while todo:
            new = edges.get(todo.pop(), {}).keys() - seen
            seen |= new
            todo += new
        reached[start] = seen
    found = {tuple(sorted(w for w in reached[v] if v in reached[w])) for v in edges if v in reached[v]}
    return sorted(map(list, found), key=len, reverse=True)
