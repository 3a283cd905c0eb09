"""Checks that code in the pages is code that is compiled and tested.

A fenced block in README.md or docs/ that shows C++ or Python stands below a
marker that names its source, and equals that region of it:

    <!-- snippet: examples/digits/train.py#model -->
    ```python
    ...
    ```

The region lies between `snippet: model` and `end snippet` comments of the file
(`# snippet: model`, `// snippet: model`); without `#name`, it is the whole file.
Regions are compared without their common indentation. A block below a marker
`<!-- guide: ... -->` is run instead, by the scripts/guide_*.py that names its page.
A source of the form `output/<name>` or `output/<name>/<word>` is what a program of OUTPUTS prints,
called with that word, so that numbers and sentences in the pages are true. `--update` rewrites the pages. A page's own programs lie in docs/snippets/: each *.py
there is run. The last line printed counts the blocks and the programs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = {"python", "py", "cpp", "c++", "cc", "c"}
BUILD = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release"))
_SNIPPETS = ROOT / "docs" / "snippets"
# Name: the command, and which of its lines a page shows.
OUTPUTS = {
    "errors": ([sys.executable, str(_SNIPPETS / "errors.py")], ""),
    "explain": ([sys.executable, str(_SNIPPETS / "explain.py")], ""),
}
BLOCK = re.compile(
    r"(?:^<!-- (?:snippet: (?P<source>\S+)|(?P<guide>guide: .*?)) -->\n)?^```(?P<language>[\w+]+)\n(?P<body>.*?)^```$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    source: str | None
    guided: bool  # below a `guide:` marker
    body: str
    start: int  # offsets of the body in the page
    end: int


def pages(root: Path) -> list[Path]:
    """README, CONTRIBUTING and every page of docs/."""
    return [page for page in [*root.glob("*.md"), *sorted(root.glob("docs/**/*.md"))] if page.is_file()]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page that name a language."""
    text = page.read_text()
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        yield Block(
            page,
            line,
            match["language"],
            match["source"],
            match["guide"] is not None,
            match["body"],
            match.start("body"),
            match.end("body"),
        )


def output(name: str) -> str:
    """What a program of OUTPUTS prints now; raises ValueError with a sentence when there is none."""
    program, *words = name.split("/")
    if program not in OUTPUTS:
        raise ValueError(f"no program of OUTPUTS is named ({program})")
    command, lines = OUTPUTS[program]
    result = subprocess.run([*command, *words], capture_output=True, text=True, check=False, cwd=ROOT)
    if result.returncode:
        raise ValueError(f"the program of ({name}) failed: {result.stderr or result.stdout}")
    printed = result.stdout
    return "".join(line + "\n" for line in printed.splitlines() if re.match(lines, line))


def region(root: Path, source: str) -> str:
    """The text of `path#name`; raises ValueError with a sentence when there is none."""
    if source.startswith("output/"):
        return output(source.removeprefix("output/"))
    path, _, name = source.partition("#")
    if not (root / path).is_file():
        raise ValueError(f"the file ({path}) does not exist")
    text = (root / path).read_text()
    if not name:
        return text
    comment = r"^[ \t]*(?:#|//)[ \t]*"
    found = re.search(
        rf"{comment}snippet: {re.escape(name)}[ \t]*\n(.*?){comment}end snippet", text, re.M | re.S
    )
    if not found:
        raise ValueError(f"the file ({path}) has no region `snippet: {name}` closed by `end snippet`")
    return textwrap.dedent(found[1])


def check(root: Path, block: Block) -> str | None:
    """What is wrong with a block, or None."""
    if block.source is None:
        if block.guided:
            runners = [script.read_text() for script in (root / "scripts").glob("guide_*.py")]
            if not any(f'"{block.page.name}"' in text for text in runners):
                return "the block is marked `guide:`, and no scripts/guide_*.py names its page"
        elif block.language in CHECKED:
            return "the block shows code but names no source; put `<!-- snippet: path#name -->` above it"
        return None
    try:
        expected = region(root, block.source)
    except ValueError as error:
        return str(error)
    if block.body.rstrip() != expected.rstrip():
        return f"the block differs from its source ({block.source}); run scripts/doc_snippets.py --update"
    return None


def update(root: Path, page: Path) -> None:
    """Rewrites the marked blocks of a page from their sources."""
    text = page.read_text()
    for block in reversed(list(blocks(page))):
        if block.source:
            text = text[: block.start] + region(root, block.source).rstrip() + "\n" + text[block.end :]
    page.write_text(text)


def main() -> int:
    passed = failed = 0
    for page in pages(ROOT):
        if "--update" in sys.argv[1:]:
            update(ROOT, page)
        for block in blocks(page):
            problem = check(ROOT, block)
            if problem:
                failed += 1
                print(f"{page.relative_to(ROOT)}:{block.line}: {problem}")
            elif block.source:
                passed += 1
    for program in sorted(_SNIPPETS.glob("*.py")):
        result = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
        if result.returncode == 0:
            passed += 1
        else:
            failed += 1
            print(f"{program.relative_to(ROOT)}:1: the program failed\n{result.stdout}{result.stderr}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
