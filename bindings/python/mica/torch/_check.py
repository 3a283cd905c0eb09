"""`--check`: which names of torch a program uses, and whether Mica has them, without running it.

The program's source is parsed, and that of every package that it imports from site-packages or
beside it. A name counts each time that it is written: `torch.nn.Linear` through any alias of an
import, not attributes of objects, whose class no parser knows.
"""

from __future__ import annotations

import ast
import importlib.machinery
import sys
from collections import Counter
from pathlib import Path

from mica.torch import _table


class Uses(ast.NodeVisitor):
    """Collects the names of torch that one file writes, and the modules that it imports."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.imports: set[str] = set()
        self._aliases: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.imports.add(alias.name)
            if alias.name.split(".")[0] == "torch":
                self._aliases[alias.asname or "torch"] = alias.name if alias.asname else "torch"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level:
            self.imports.add("." * node.level + module)
            return
        self.imports.add(module)
        if module.split(".")[0] != "torch":
            return
        for alias in node.names:
            if alias.name != "*":
                name = f"{module}.{alias.name}"
                self._aliases[alias.asname or alias.name] = name
                self.names[name] += 1

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts: list[str] = []
        value: ast.expr = node
        while isinstance(value, ast.Attribute):
            parts.append(value.attr)
            value = value.value
        if isinstance(value, ast.Name) and value.id in self._aliases:
            self.names[".".join([self._aliases[value.id], *reversed(parts)])] += 1
        else:
            self.generic_visit(node)


def uses_of(source: str, name: str = "<string>") -> Uses:
    """What a source text uses; SyntaxError if it is no Python."""
    uses = Uses()
    tree = ast.parse(source, name)
    # Imports first: a function may stand before the import that its names come from.
    imports = (ast.Import, ast.ImportFrom)
    for node in ast.walk(tree):
        if isinstance(node, imports):
            uses.visit(node)
    for node in ast.iter_child_nodes(tree):
        _rest(uses, node)
    return uses


def _rest(uses: Uses, node: ast.AST) -> None:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.Attribute):
        uses.visit_Attribute(node)
        return
    for child in ast.iter_child_nodes(node):
        _rest(uses, child)


def files_of(module: str, paths: list[str]) -> list[Path]:
    """The source files of a top-level module or package: none of the standard library's or torch's."""
    if module in sys.stdlib_module_names or module in ("torch", "mica") or not module:
        return []
    spec = importlib.machinery.PathFinder.find_spec(module, paths)
    if spec is None:
        return []
    if spec.submodule_search_locations:
        return sorted(f for place in spec.submodule_search_locations for f in Path(place).rglob("*.py"))
    return [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []


def collect(files: list[Path], follow: bool = True) -> tuple[dict[str, Counter[str]], list[str]]:
    """The names by package (the program is ""), and the files that could not be read."""
    found: dict[str, Counter[str]] = {"": Counter()}
    unread: list[str] = []
    paths = [str(files[0].parent), *sys.path] if files else list(sys.path)
    waiting = [("", f) for f in files]
    seen: set[str] = set()
    while waiting:
        owner, file = waiting.pop()
        try:
            uses = uses_of(file.read_text(encoding="utf-8"), str(file))
        except (SyntaxError, ValueError, OSError) as error:
            unread.append(f"{file}: {error}")
            continue
        found.setdefault(owner, Counter()).update(uses.names)
        if not follow or (owner and not uses.names):
            continue
        for name in uses.imports:
            top = name.split(".")[0]
            if top and top not in seen:
                seen.add(top)
                waiting += [(top, f) for f in files_of(top, paths) if f not in files]
    return found, unread


def report(found: dict[str, Counter[str]]) -> tuple[list[str], int]:
    """Lines for a reader, and how many names the program itself uses that Mica lacks."""
    lines: list[str] = []
    missing = 0
    for owner, names in sorted(found.items()):
        if not names:
            continue
        kinds: Counter[str] = Counter()
        rows = []
        for name, count in sorted(names.items()):
            kind, detail = _table.describe(name)
            kinds[kind] += count
            if not owner or kind == "absent":
                rows.append(f"  {kind:8} {count:5}  {name}" + (f"  ({detail})" if kind == "inert" else ""))
            missing += kind == "absent" and not owner
        total = sum(kinds.values())
        held = 100.0 * (total - kinds["absent"]) / total
        lines.append(
            f"{owner or 'the program'}: {len(names)} names of torch, {total} uses, {held:.1f} % covered "
            f"({kinds['present']} present, {kinds['inert']} inert, {kinds['absent']} absent)"
        )
        lines += rows
    return lines, missing


def main(words: list[str]) -> int:
    """Prints the report; 0 if Mica has every name that the program itself uses, else 1."""
    follow = "--no-packages" not in words
    files = [Path(w) for w in words if not w.startswith("--")]
    if not files:
        print("usage: python -m mica.torch --check [--no-packages] script.py...", file=sys.stderr)
        return 2
    found, unread = collect(files, follow)
    lines, missing = report(found)
    print("\n".join(lines) if lines else "No name of torch is used.")
    for text in unread:
        print(f"not read: {text}", file=sys.stderr)
    return 1 if missing or unread else 0
