"""`--check`: which names of torch a program uses, and whether Mica has them, without running it.

The program's source is read, and that of every package that it imports from site-packages or
beside it, but for packages' own tests. A name counts each time that it is written: `torch.nn.Linear`
through any alias of an import, not attributes of objects, whose class no reader knows. The text is
searched without strings and comments, not parsed: that takes a fifth of the time, and transformers
alone has 1,500 files that name torch.
"""

from __future__ import annotations

import ast
import importlib.machinery
import re
import sys
from collections import Counter
from pathlib import Path

from mica.torch._describe import describe

_QUIET = re.compile(
    r"#[^\n]*|(?:\b[rRbBuUfF]{1,2})?(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\""
    r"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")",
    re.S,
)
_JOINED = re.compile(r"\\\n")
_IMPORT = re.compile(r"(?:^|[;:])[ \t]*import[ \t]+([^\n;#]+)", re.M)
_FROM = re.compile(r"(?:^|[;:])[ \t]*from[ \t]+(\.*[ \t]*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n;#]+)", re.M)
_NAME = re.compile(r"(?<![\w.])([A-Za-z_]\w*)((?:\s*\.\s*[A-Za-z_]\w*)+)")


class Uses:
    """The names of torch that one file writes, and the modules that it imports."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.imports: set[str] = set()
        self._aliases: dict[str, str] = {}

    def imported(self, names: str) -> None:
        """Takes `a.b, c as d` of an import."""
        for module, alias in _pairs(names):
            self.imports.add(module)
            if module.split(".")[0] == "torch":
                self._aliases[alias or "torch"] = module if alias else "torch"

    def imported_from(self, module: str, names: str) -> None:
        """Takes the module and `(a, b as c)` of a from-import."""
        self.imports.add(module)
        if module.split(".")[0] != "torch":
            return
        for name, alias in _pairs(names):
            if name != "*":
                self._aliases[alias or name] = f"{module}.{name}"
                self.names[f"{module}.{name}"] += 1

    def read(self, text: str) -> None:
        """Counts the dotted names that begin with something that came from torch."""
        for match in _NAME.finditer(text):
            start = self._aliases.get(match[1])
            if start is not None:
                self.names[start + re.sub(r"\s", "", match[2])] += 1


def _pairs(names: str) -> list[tuple[str, str]]:
    """(name, alias or "") of each part of `a, b as c`."""
    parts = (part.split() for part in names.strip(" \t()").replace("\n", " ").split(","))
    return [(p[0], p[2] if len(p) == 3 else "") for p in parts if p]


def uses_of(source: str) -> Uses:
    """What a source text uses."""
    uses = Uses()
    text = _QUIET.sub(lambda found: "" if found[0][0] == "#" else "''", _JOINED.sub(" ", source))
    for match in _IMPORT.finditer(text):
        uses.imported(match[1])
    for match in _FROM.finditer(text):
        uses.imported_from(match[1].replace(" ", ""), match[2])
    # The module of a from-import is counted by its names alone.
    uses.read(_IMPORT.sub("", _FROM.sub("", text)))
    return uses


def files_of(module: str, paths: list[str]) -> list[Path]:
    """The source files of a top-level module or package: none of the standard library's or torch's."""
    if module in sys.stdlib_module_names or module in ("torch", "mica") or not module:
        return []
    spec = importlib.machinery.PathFinder.find_spec(module, paths)
    if spec is None:
        return []
    if spec.submodule_search_locations:
        places = [Path(place) for place in spec.submodule_search_locations]
        found = [(f, f.relative_to(place).parts) for place in places for f in place.rglob("*.py")]
        return sorted(f for f, parts in found if not {"test", "tests"}.intersection(parts[:-1]))
    return [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []


def collect(files: list[Path], follow: bool = True) -> tuple[dict[str, Counter[str]], list[str]]:
    """The names by package (the program is ""), and the files that could not be read."""
    found: dict[str, Counter[str]] = {"": Counter()}
    unread: list[str] = []
    homes = {str(_root(f).parent): None for f in files}
    paths = [*homes, *sys.path]
    waiting = [("", f) for f in files]
    seen: set[str] = set()
    while waiting:
        owner, file = waiting.pop()
        try:
            raw = file.read_bytes()
            if owner and b"torch" not in raw:
                continue
            source = raw.decode("utf-8")
            if not owner:
                ast.parse(source, str(file))
        except (SyntaxError, ValueError, OSError) as error:
            unread.append(f"{file}: {error}")
            continue
        uses = uses_of(source)
        found.setdefault(owner, Counter()).update(uses.names)
        if not follow or (owner and not uses.names):
            continue
        for name in uses.imports:
            top = name.split(".")[0] or (_root(file).name if not owner else "")
            if top and top not in seen:
                seen.add(top)
                waiting += [(top, f) for f in files_of(top, paths) if f not in files]
    return found, unread


def _root(file: Path) -> Path:
    """The folder of the outermost package that a file is in; the file itself if it is in none."""
    found = file
    while (found.parent / "__init__.py").exists():
        found = found.parent
    return found


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
            kind, detail = describe(name)
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


def _files(words: list[str]) -> list[Path]:
    """The files of `script.py...`, or of `-m module`; what follows are the program's own arguments."""
    if words[:1] != ["-m"]:
        return [Path(w) for i, w in enumerate(words) if i == 0 or w.endswith(".py")]
    for name in (f"{words[1]}.__main__", words[1]) if len(words) > 1 else ():
        place = Path(*name.split(".")).with_suffix(".py")
        for folder in ("", *sys.path):
            if (Path(folder) / place).exists():
                return [Path(folder) / place]
    raise FileNotFoundError(f"No module ({' '.join(words[1:2])}) is found.")


def main(words: list[str]) -> int:
    """Prints the report; 0 if Mica has every name that the program itself uses, else 1."""
    follow = "--no-packages" not in words
    words = [w for w in words if w != "--no-packages"]
    if not words or words[0] in ("-c", "-"):
        print(
            "usage: python -m mica.torch --check [--no-packages] (script.py... | -m module)", file=sys.stderr
        )
        return 2
    found, unread = collect(_files(words), follow)
    lines, missing = report(found)
    print("\n".join(lines) if lines else "No name of torch is used.")
    for text in unread:
        print(f"not read: {text}", file=sys.stderr)
    return 1 if missing or unread else 0
