"""Builds the documentation site: gathers its pages into build/docs/pages, and has Sphinx write build/docs/html.

    python scripts/docs_site.py            # with .venv-docs' Python
    python scripts/docs_site.py --serve    # and shows it at http://localhost:8000
    python scripts/docs_site.py --test     # and reads it in a browser (docs_browser.py)

The pages are those of docs/, as they stand, with the generated ones: operators (scripts/reference.py), the
Python API (api_pages.py) and the SDK's headers (sdk_pages.py). A warning of Sphinx fails, and so does a link
of the site that leads nowhere. The last line printed counts the pages.
"""

from __future__ import annotations

import functools
import html
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import api_pages
import docs_browser
import sdk_pages
from reference import INTERNAL, PAGES as OPERATORS

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "docs" / "pages"
HTML = ROOT / "build" / "docs" / "html"


# Where the site has files that have another name or place there.
MOVED = {"README.md": "introduction.md", "CONTRIBUTING.md": "contributing.md", "docs/README.md": "index.md"}


def place(path: Path) -> str:
    """Where the site has a file of the repository, from its root; "" where it does not."""
    if path.is_dir():
        return ""
    file = path.relative_to(ROOT).as_posix()
    return MOVED.get(file) or (file.removeprefix("docs/") if file.startswith("docs/") else "")


def linked(text: str, source: Path) -> str:
    """A page whose links lead to the site's places; files that the site has not are shown as names."""
    page = Path(place(source))

    def one(match: re.Match[str]) -> str:
        mark, text, target = match["mark"], match["text"], match["target"]
        if target.startswith(("http", "#", "<")):
            return match[0]
        file, hash_, part = target.partition("#")
        path = (source.parent / file).resolve()
        if there := place(path):
            return f"{mark}[{text}]({os.path.relpath(there, page.parent)}{hash_}{part})"
        return f"{text} (`{path.relative_to(ROOT)}`)"

    return re.sub(r"(?P<mark>!?)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)", one, text)


def gather() -> None:
    """Writes the pages that Sphinx reads."""
    shutil.rmtree(PAGES, ignore_errors=True)
    docs = ROOT / "docs"
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *docs.rglob("*.md"), *docs.rglob("*.svg")]
    for source in pages:
        target = PAGES / place(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(linked(source.read_text(), source))
        else:
            shutil.copy(source, target)
    gather_operators(PAGES / "operators")
    api_pages.write(PAGES / "api", PAGES / "operators")
    sdk_pages.write(ROOT / "sdk" / "include" / "mica", PAGES / "sdk")
    index()


def gather_operators(folder: Path) -> None:
    """Copies the operators' pages; those that no program calls become one page."""
    shutil.copytree(OPERATORS, folder)
    index = (folder / "README.md").read_text()
    internal = [f"# Internal operators\n\n{INTERNAL}\n"]
    for page in sorted(folder.glob("*.md")):
        text = page.read_text()
        if page.stem == "README":
            continue
        if INTERNAL in text:
            internal.append(text.partition(INTERNAL)[2].replace("[All operators](README.md)\n", ""))
            index = index.replace(f"]({page.name})", "](internal.md)")
            page.unlink()
        else:
            page.write_text(f"---\norphan: true\n---\n\n{text}")
    (folder / "internal.md").write_text("---\norphan: true\n---\n\n" + "\n".join(internal))
    (folder / "README.md").write_text(index)


def index() -> None:
    """The first page: docs/README.md, with the trees that the side bar shows.

    They have the order of its tables, and after it the pages that no table names.
    """
    text = (PAGES / "index.md").read_text().replace("# Pages", "# Mica's documentation", 1)

    def tree(folder: str) -> list[str]:
        named = re.findall(rf"\]\(({folder}/[\w-]+)\.md\)", text)
        return [
            *named,
            *sorted({f"{folder}/{page.stem}" for page in (PAGES / folder).glob("*.md")} - {*named}),
        ]

    guides = tree("guides")
    concepts = ["design", "abi", *tree("concepts")]
    elsewhere = {*concepts, "introduction", "contributing"}
    others = [name for name in re.findall(r"\]\(([\w-]+)\.md\)", text) if name not in elsewhere]
    reference = ["api/index", "operators/README", "sdk/index", *tree("reference")]
    trees = {
        "": ["introduction"],
        "Guides": guides,
        "Concepts": concepts,
        "Reference": reference,
        "For contributors": ["contributing", *others],
    }
    for caption, names in trees.items():
        lines = [
            "```{toctree}",
            ":hidden:",
            f":caption: {caption}" if caption else ":maxdepth: 1",
            "",
            *names,
            "```",
        ]
        text += "\n" + "\n".join(lines) + "\n"
    (PAGES / "index.md").write_text(text)


ATTRIBUTE = re.compile(r'\s(id|name|href|src)="([^"]*)"')


class Anchors:
    """The links of a page, and the places in it that links may name: attributes, whose quotes no text has."""

    def __init__(self, text: str) -> None:
        found = [(name, html.unescape(value)) for name, value in ATTRIBUTE.findall(text)]
        self.links = [value for name, value in found if name in ("href", "src") and value]
        self.ids = {value for name, value in found if name in ("id", "name")}


def broken_links() -> Iterator[str]:
    """Links of the built site to files or places that are not there."""
    pages = {page: Anchors(page.read_text()) for page in HTML.rglob("*.html")}
    for page, parsed in pages.items():
        for link in dict.fromkeys(parsed.links):
            path, place = urldefrag(link)
            if urlparse(link).scheme:
                continue
            target = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
            if not target.exists():
                yield f"{page.relative_to(HTML)}: no file for the link ({link})"
            elif place and target in pages and unquote(place) not in pages[target].ids:
                yield f"{page.relative_to(HTML)}: no place for the link ({link})"


def serve() -> None:
    """Shows the site until it is interrupted."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(HTML))
    with ThreadingHTTPServer(("localhost", 8000), handler) as server:
        print("http://localhost:8000")
        server.serve_forever()


def build() -> int:
    """Runs the operators' examples and Sphinx; the number of faults."""
    if subprocess.run([sys.executable, ROOT / "scripts" / "reference.py"], check=False).returncode:
        return 1
    gather()
    shutil.rmtree(HTML, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-j", "auto", "-W", "--keep-going"]
    command += ["-c", ROOT / "docs" / "site", "-d", PAGES.parent / "doctrees", PAGES, HTML]
    failed = subprocess.run(command, check=False).returncode != 0
    problems = list(broken_links())
    for problem in problems:
        print(problem)
    return len(problems) + failed


def main() -> int:
    failed, passed = build(), len(list(HTML.rglob("*.html")))
    if "--test" in sys.argv[1:] and not failed:
        read, faults = docs_browser.read_all()
        passed, failed = passed + read, failed + faults
    print(f"{passed} passed, {failed} failed")
    if "--serve" in sys.argv[1:] and not failed:
        serve()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
