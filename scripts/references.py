"""Which files a text names: what scripts/lint.py holds to exist.

A file is named in prose (a comment, a docstring, a page outside its code blocks) by a path with a
folder, as `dispatcher/tables/keys.h` or `tables/keys.h`, by a page's bare name, as `abi.md`, or by
the target of a link in a page. A path whose first folder is no folder of the repository is somebody
else's, and what mica-gen writes is not there to be found.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

# A path, or a page. Not part of a longer path, of a pattern (`*.h`) or of a name with a hole (`<name>.cc`).
NAME = re.compile(
    r"(?<![\w.\-/<>{}$*%+~@:])"
    r"((?:[\w.-]+/)+[\w.-]*\w\.(?:cc|cu|h|py|pyi|md|yaml|cmake|tsv|svg|txt|json)|[\w-]+\.md)"
    r"(?![\w/*<{(-]|\.\w)"
)
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)(?:#[^)]*)?\)")
# What mica-gen writes, as sources and comments name it.
GENERATED = re.compile(r"mica/(ops/.*|api\.h)|(mica/)?kernels/(generated_composites|\w+_declarations)\.h")
_DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _of_page(lines: list[str]) -> Iterator[tuple[int, str]]:
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def _of_python(lines: list[str]) -> Iterator[tuple[int, str]]:
    source = "\n".join(lines) + "\n"
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DEFINITIONS) and ast.get_docstring(node):
            text = node.body[0]
            for number in range(text.lineno, (text.end_lineno or text.lineno) + 1):
                yield number, lines[number - 1]


def _of_cxx(lines: list[str]) -> Iterator[tuple[int, str]]:
    block = False
    for number, line in enumerate(lines, 1):
        if block or re.match(r"\s*/\*", line):
            yield number, line
            block = "*/" not in line
        elif comment := re.search(r"(?:^|[\s;{}])//(.*)", line):
            yield number, comment[1]


def _of_hashes(lines: list[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        if comment := re.search(r"(?:^|\s)#(.*)", line):
            yield number, comment[1]


def prose(path: str, lines: list[str]) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file that are text for a reader."""
    suffix = Path(path).suffix
    if suffix == ".md":
        return _of_page(lines)
    if suffix in (".py", ".pyi"):
        return _of_python(lines)
    if suffix in (".h", ".cc", ".c", ".cu"):
        return _of_cxx(lines)
    return _of_hashes(lines) if suffix in (".yaml", ".cmake") or suffix == "" else iter(())


class Files:
    """The files of the repository, found by any end of their path."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._ends: set[str] = set()
        self._folders: set[str] = set()  # by name
        self._paths: set[str] = {""}  # of files and folders, whole
        for path in paths:
            parts = path.split("/")
            self._folders.update(parts[:-1])
            self._paths.update("/".join(parts[: i + 1]) for i in range(len(parts)))
            self._ends.update("/".join(parts[i:]) for i in range(len(parts)))

    def dangling(self, name: str) -> bool:
        """Whether the name is one of a file that should be here and is not."""
        folder, slash, _ = name.partition("/")
        of_others = slash and folder not in self._folders
        return name not in self._ends and not of_others and not GENERATED.fullmatch(name)

    def dangling_link(self, page: str, target: str) -> bool:
        """Whether a page's link, a path from its own folder, leads to no file or folder."""
        steps: list[str] = []
        for part in (*PurePosixPath(page).parent.parts, *target.split("/")):
            if part == "..":
                if not steps:
                    return True
                steps.pop()
            elif part not in (".", ""):
                steps.append(part)
        return "/".join(steps) not in self._paths
