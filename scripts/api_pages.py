"""The site's pages of the Python API, and what stands above each operator's page.

A module has a page: its classes, each with a page of its own, its functions, and a table of its operators,
which have pages already (scripts/reference.py). Docstrings are the text; nothing here is written by hand but
the order of modules (scripts/docstrings.py).
"""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import BuiltinFunctionType, MethodDescriptorType
from typing import Any

import docstrings
from sdk_pages import plain

import mica

# All of these have operators alone, which no docstring of Python describes.
OPERATORS_ALONE = ("fft", "linalg", "special")
OF_CORE = ("Tensor", "Size", "Generator", "device", "dtype", "finfo", "iinfo")
METHODS = (BuiltinFunctionType, MethodDescriptorType)


def summary(value: Any) -> str:
    """The first sentence of a docstring, for a cell of a Markdown table."""
    lines = inspect.cleandoc(getattr(value, "__doc__", None) or "").partition("\n\n")[0]
    return plain(lines.replace("\n", " ")).replace("`\\|", "`|") if lines else ""


def signatures(name: str, value: Any) -> list[str]:
    """How a generated function is called, an overload a line."""
    doc = value.__doc__ or ""
    own = name.rpartition(".")[2]
    found = re.findall(rf"^    - `{re.escape(own)}\((.*?)\)`: ", doc, re.M)
    if not found:
        try:
            text = str(inspect.signature(value))
            found = [re.sub(r"^(\$?self, /, |\$?self, /|self, |self)", "", text[1:-1])]
        except (TypeError, ValueError):
            listed = re.findall(r"^    (\w+) \(", doc, re.M)
            found = [", ".join(listed)]
    return [f"{name}({arguments})" for arguments in dict.fromkeys(found)]


@dataclass
class Pages:
    """Everything that is written below a folder."""

    folder: Path
    operators: dict[str, str] = field(default_factory=dict)  # Python name: the operator's page
    written: dict[int, str] = field(default_factory=dict)  # id of a class: its page
    said: set[str] = field(default_factory=set)  # names that a page has described

    def find_operators(self, folder: Path) -> None:
        """Reads which Python names each operator's page is about, and puts their signatures on it."""
        for page in sorted(folder.glob("*.md")):
            text = page.read_text()
            line = re.search(r"^In Python: (.*)$", text, re.M)
            if not line:
                continue
            names = re.findall(r"`([^`]+)`", line[1])
            names = [n if n.startswith("mica.") else f"mica.{n}" for n in names]
            blocks = [self.directive(name) for name in names if name not in self.operators]
            for name in names:
                self.operators.setdefault(name, page.stem)
            page.write_text(text.replace(line[0], "\n".join(b for b in blocks if b) or line[0], 1))

    def directive(self, name: str) -> str:
        """A description of a generated function; "" where it is written in Python."""
        value = resolved(name)
        if not isinstance(value, METHODS):
            return ""
        self.said.add(name)
        kind = "method" if name.startswith("mica.Tensor.") else "function"
        lines = "\n".join(signatures(name, value))
        return f":::{{py:{kind}}} {lines}\n:::\n"

    def table(self, rows: list[tuple[str, str, str]]) -> str:
        """A table of names, where they lead, and what they mean."""
        lines = [f"| [`{name}`]({target}) | {meaning} |" for name, target, meaning in rows]
        return "\n".join(["| | |", "|---|---|", *lines])

    def of_class(self, name: str, kind: type) -> str:
        """The page of a class, in its own file; its name."""
        page = self.written.get(id(kind))
        if page is None:
            page = self.written[id(kind)] = name.removeprefix("mica.")
            options = "   :members:\n" if docstrings.has_source(kind) else ""
            text = f":orphan:\n\n{name}\n{'=' * len(name)}\n\n.. autoclass:: {name}\n{options}"
            (self.folder / f"{page}.rst").write_text(text)
        return page

    def of_module(self, module: str) -> str:
        """The page of a module; the name of its file."""
        home: Any = importlib.import_module(f"mica.{module}".rstrip("."))
        title = f"mica.{module}".rstrip(".")
        names = getattr(home, "__all__", None) or [n for n in dir(home) if not n.startswith("_")]
        classes, functions, operators = [], [], []
        for name in names:
            value = getattr(home, name, None)
            full = f"{title}.{name}"
            if full in self.operators and isinstance(value, METHODS):
                operators.append((name, f"../operators/{self.operators[full]}.md", summary_of(value)))
            elif isinstance(value, type) and (
                docstrings.has_source(value) or (not module and name in OF_CORE)
            ):
                if name != "Tensor" or module:
                    classes.append((name, f"{self.of_class(full, value)}.rst", summary(value)))
            elif docstrings.has_source(value) and full not in self.said:
                self.said.add(full)
                functions.append(f".. autofunction:: {full}")
        parts = [f"# {title}", plain(inspect.cleandoc(home.__doc__ or "").partition("\n\n")[0])]
        if classes:
            parts += ["## Classes", self.table(classes)]
        if functions:
            parts += ["## Functions", "```{eval-rst}\n" + "\n\n".join(functions) + "\n```"]
        if operators:
            parts += ["## Operators", self.table(operators)]
        page = module or "mica"
        (self.folder / f"{page}.md").write_text("\n\n".join(parts) + "\n")
        return page

    def of_tensor(self) -> str:
        """The page of Tensor: attributes, methods in Python, and the operators' methods."""
        kind = mica.Tensor
        attributes, own, operators = [], [], []
        for name, value in sorted(vars(kind).items()):
            full = f"mica.Tensor.{name}"
            if name.startswith("_"):
                continue
            if full in self.operators and isinstance(value, METHODS):
                operators.append((name, f"../operators/{self.operators[full]}.md", summary_of(value)))
            elif inspect.isdatadescriptor(value) and summary(value):
                attributes.append(f"| `{name}` | {summary(value)} |")
            elif docstrings.has_source(getattr(kind, name, None)) or isinstance(value, METHODS):
                own.append(f".. automethod:: {full}")
        rst = "```{eval-rst}\n" + "\n\n".join(own) + "\n```"
        parts = ["# mica.Tensor", plain(inspect.cleandoc(kind.__doc__ or ""))]
        parts += ["## Attributes", "\n".join(["| | |", "|---|---|", *attributes])]
        parts += ["## Methods", rst, "## Operators", self.table(operators)]
        (self.folder / "Tensor.md").write_text("\n\n".join(parts) + "\n")
        return "Tensor"


def summary_of(function: Any) -> str:
    """The first sentence of a generated function's docstring."""
    return summary(function)


def resolved(name: str) -> Any:
    """What a dotted name of Python is; None where there is nothing."""
    found: Any = mica
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def write(folder: Path, operators: Path) -> None:
    """All pages, into a folder beside that of the operators' pages."""
    folder.mkdir(parents=True)
    pages = Pages(folder)
    pages.find_operators(operators)
    modules = sorted({*docstrings.MODULES, *OPERATORS_ALONE} - {"", "Tensor"})
    names = [pages.of_module(""), pages.of_tensor(), *map(pages.of_module, modules)]
    rows = []
    for name in names:
        full = name if name == "mica" else f"mica.{name}"
        value = resolved(full) if name != "mica" else mica
        rows.append((full, f"{name}.md", summary(value) or ""))
    hidden = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    (folder / "index.md").write_text(f"# The Python API\n\n{pages.table(rows)}\n\n{hidden}\n")
