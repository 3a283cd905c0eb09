"""How Sphinx builds the site: scripts/docs_site.py gathers the pages, and calls it with this folder."""

from __future__ import annotations

import re
from typing import Any

project = "Mica"
html_title = "Mica"
language = "en"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# A word of a type, "module", may be the name of several attributes.
suppress_warnings = ["ref.python"]

# Markdown as a code host reads it.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# Docstrings: Google's form, single backticks are code, types stand in Args.
default_role = "code"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Shape", "Overloads"]
napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
strip_signature_backslash = True

html_theme = "furo"
html_favicon = "static/mica.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
templates_path: list[str] = []

MARKS = re.compile(r"(?<!\\)([*|]|(?<=\w)_(?!\w))")


def as_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are text whose only mark is the backtick: `|x|` and `*args` mean themselves outside of it."""
    session = code = False
    for number, line in enumerate(lines):
        session = line.lstrip().startswith(">>>") or (session and bool(line.strip()))
        if session:
            continue
        bullet = re.match(r"\s*\* ", line)
        pieces = []
        for piece in re.split(r"(`)", line[bullet.end() if bullet else 0 :]):
            code ^= piece == "`"
            pieces.append(piece if code or piece == "`" else MARKS.sub(r"\\\1", piece))
        code = code and bool(line.strip())
        lines[number] = (bullet[0] if bullet else "") + "".join(pieces)


_trees: dict[tuple[Any, ...], str] = {}  # the side bar, by the folder of the pages that show it


def tree_once(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Pages that are not in the side bar show the same one: half of the time of writing them was in making it."""
    if "orphan" not in app.env.metadata.get(name, {}):
        return
    make = context["toctree"]

    def toctree(**options: Any) -> str:
        key = (name.rpartition("/")[0], *sorted(options.items()))
        if key not in _trees:
            _trees[key] = make(**options)
        return _trees[key]

    context["toctree"] = toctree


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("html-page-context", tree_once, priority=400)  # before the theme
    app.connect("autodoc-process-docstring", as_text, priority=400)  # before napoleon
