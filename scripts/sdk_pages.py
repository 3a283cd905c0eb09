"""The site's pages of the C++ SDK: a page for each header of sdk/include/mica, made of its own comments.

A header begins with a comment that says what it is for; behind it stand declarations, each below its
comment, with blank lines between. That is all the structure there is, and this reads no more of C++: a
declaration is shown as it is written, less the bodies of functions. (Doxygen and breathe want their own
marks in the comments, which C plugin authors read in the header itself, and 60 MB of packages.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SKIPPED = re.compile(
    r"#\s*(include|pragma|ifndef \w+_H_|define \w+_H_|endif|ifdef __cplusplus|if )|extern \"C\"|}"
)
NAME = re.compile(
    r"(?:struct|class|enum class|enum|union)\s+(?P<type>\w+)\s*(?:final\s*)?[:{;]|#\s*define\s+(?P<macro>\w+)"
    r"|using\s+(?P<alias>\w+)|typedef\b[^;{]*?\(\*(?P<pointer>\w+)\)"
    r"|typedef\b[^;{(]*?(?P<typedef>\w+)\s*;|(?P<function>[\w~]+)\s*\("
)


@dataclass(frozen=True)
class Block:
    """One declaration, or several without a blank line between them."""

    comment: str
    code: str

    @property
    def name(self) -> str:
        """What it declares first."""
        found = NAME.search(re.sub(r"template\s*<[^{;]*?>\s*\n|\[\[\w+\]\]|MICA_\w+_EXPORT", "", self.code))
        return next((n for n in found.groups() if n), "") if found else ""


def plain(text: str) -> str:
    """Text without marks of Markdown, besides code in backticks."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([<>|*_\\\[\]])", r"\\\1", p) for p in pieces)


def uncommented(lines: list[str]) -> str:
    """The text of comment lines, in Markdown: what is indented further is shown as it stands."""
    text = "\n".join(re.sub(r"^\s*(?:// ?|/\* ?| \* ?|\*/)|\s*\*/$", "", line) for line in lines).strip("\n")
    out: list[str] = []
    for line in text.splitlines():
        deep = line.startswith("   ") or (line.startswith("  ") and "   " in line.strip())
        inside = bool(out) and out[-1].startswith("    ")
        if deep and not inside and out and out[-1]:
            out.append("")
        if not deep and inside and line:
            out.append("")
        out.append(f"    {line}" if deep else plain(line))
    return "\n".join(out)


def chunks(text: str) -> Iterator[list[str]]:
    """Runs of lines between blank lines that stand outside of braces and comments."""
    depth, comment, chunk = 0, False, []
    for line in text.splitlines():
        bare = re.sub(r"//.*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'|/\*.*?\*/", "", line)
        if not line.strip() and depth <= 0 and not comment:
            if chunk:
                yield chunk
            chunk = []
            continue
        chunk.append(line)
        comment = ("/*" in bare or comment) and "*/" not in bare
        opened = (
            0 if comment or re.match(r"namespace\b|extern \"C\"|}\s*//\s*(extern|namespace)", line) else 1
        )
        depth = max(0, depth + opened * (bare.count("{") - bare.count("}")))
    if chunk:
        yield chunk


def without_body(lines: list[str]) -> list[str]:
    """A function's declaration; a type is kept as it is."""
    head = re.sub(r"template\s*<[^{;]*?>", "", " ".join(lines)).partition("{")[0]
    is_type = re.search(r"\b(struct|class|enum|union|typedef)\s+\w*\s*(final\s*)?(:[^:(]*)?$", head.strip())
    if is_type or "(" not in head or "{" not in " ".join(lines):
        return lines
    kept: list[str] = []
    for line in lines:
        if "{" in line:
            kept.append(line.partition("{")[0].rstrip() + ";")
            break
        kept.append(line)
    return kept


def blocks(text: str) -> tuple[str, list[Block]]:
    """The opening comment, and the declarations."""
    opening, found = "", []
    for number, chunk in enumerate(chunks(text)):
        at = 0
        inside = False
        while at < len(chunk) and (inside or re.match(r"\s*(//|/\*)", chunk[at])):
            inside = ("/*" in chunk[at] or inside) and "*/" not in chunk[at]
            at += 1
        comment, code = chunk[:at], [c for c in chunk[at:] if not SKIPPED.match(c) or c.startswith("} ")]
        if number == 0:
            opening = uncommented(comment)
        elif code and not re.match(r"namespace|template <>|static_assert|#", code[0]):
            found.append(Block(uncommented(comment), "\n".join(without_body(code))))
        elif code and re.match(r"#\s*define", code[0]):
            found.append(Block(uncommented(comment), "\n".join(code)))
        elif comment and not code and "---" not in comment[0]:
            found.append(Block(uncommented(comment), ""))
    return opening, found


def page(header: Path) -> str:
    """The Markdown of a header's page."""
    opening, found = blocks(header.read_text())
    parts = [f"# `<mica/{header.name}>`", opening]
    for block in found:
        if block.name:
            parts.append(f"## `{block.name}`")
        if block.comment:
            parts.append(block.comment)
        if block.code:
            parts.append(f"```cpp\n{block.code}\n```")
    return "\n\n".join(parts) + "\n"


def write(headers: Path, folder: Path) -> None:
    """The pages and their index."""
    folder.mkdir(parents=True)
    names = sorted(headers.glob("*.h"))
    lines = ["# The SDK", "", "What plugins include, in C11 and C++17; they link nothing of Mica."]
    lines += ["[The concept](../concepts/sdk.md), [writing a backend](../guides/write-a-backend.md).", ""]
    lines += ["| header | |", "|---|---|"]
    for header in names:
        (folder / f"{header.stem}.md").write_text(page(header))
        first = re.split(r"(?<=[.:])\s", blocks(header.read_text())[0].replace("\n", " "))[0]
        lines.append(f"| [`<mica/{header.name}>`]({header.stem}.md) | {first.rstrip(':')} |")
    lines += ["", "```{toctree}", ":hidden:", "", *(header.stem for header in names), "```"]
    (folder / "index.md").write_text("\n".join(lines) + "\n")
