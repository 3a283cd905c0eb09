"""Draws docs/pictures/layers.svg from what the dispatcher says of its layers.

    python scripts/layers_picture.py            # writes the picture
    python scripts/layers_picture.py --check    # fails where the picture is out of date

Names, order and free bits of the layers, what each one does, the kinds of frames and the files that
bring them are asked of the package that PYTHONPATH names.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

import mica
from mica import _C

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "layers.svg"
OF_PYTHON = ("FunctionMode", "DispatchMode", "PythonSubclass")  # which no plugin brings
LEFT, WIDTH, ROW, GAP = 20, 760, 28, 18
STYLE = (
    "rect{stroke:#345;stroke-width:1;rx:4}.l{fill:#dfe9f5}.d{fill:#f6efd9}.b{fill:#dff0e2}"
    ".s{font-size:12px;fill:#456}.n{font-weight:bold}.e{text-anchor:end}.m{text-anchor:middle}"
)


def files() -> dict[str, str]:
    """Layer or frame kind: the file that brings it. Opens the plugins of all layers."""
    found = {}
    for plugin in mica.plugins():
        for provided in plugin["provides"].split(","):
            kind, _, name = provided.partition(":")
            if kind == "layer":
                mica.load_plugin(plugin["path"])
                found[name] = Path(plugin["path"]).name
    return found


class Drawing:
    """Rows from the top to the bottom, as SVG."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.y = 16

    def text(self, x: int, words: str, style: str = "", down: int = 0) -> None:
        self.lines.append(f'  <text x="{x}" y="{self.y + down}" class="{style}">{escape(words)}</text>')

    def box(self, x: int, width: int, style: str) -> None:
        self.lines.append(
            f'  <rect x="{x}" y="{self.y}" width="{width}" height="{ROW - 4}" class="{style}"/>'
        )

    def row(self, style: str, name: str, does: str, file: str = "", bit: str = "") -> None:
        self.box(LEFT + 40, WIDTH - 80, style)
        self.text(LEFT + 30, bit, "s e", 17)
        self.text(LEFT + 50, name, "n", 17)
        self.text(LEFT + 175, does, "", 17)
        self.text(LEFT + WIDTH - 48, file, "s e", 17)
        self.y += ROW

    def note(self, words: str) -> None:
        self.text(LEFT + WIDTH // 2, words, "s m", GAP - 7)
        self.y += GAP

    def svg(self) -> str:
        size = f'width="{WIDTH + 2 * LEFT}" height="{self.y}" viewBox="0 0 {WIDTH + 2 * LEFT} {self.y}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">\n'
            f"  <!-- written by scripts/layers_picture.py -->\n  <style>{STYLE}</style>\n"
            + "\n".join(self.lines)
            + "\n</svg>\n"
        )


def draw() -> str:
    brought = files()
    layers: list[tuple[str, int, str]] = _C._layers()
    kinds = sorted(_C._frame_kinds())
    d = Drawing()
    d.text(LEFT, "A call passes those layers that have work, from the top", "n", 4)
    d.y += 16
    d.row("d", "your program", "mica.add(x, y)   x + y   ops::add(x, y)")
    above = 64
    for name, bit, does in layers:
        if free := above - bit - 1:
            d.note(f"{free} bit{'s' * (free > 1)} free for other layers")
        else:
            d.y += 2
        file = brought.get(name, "Python" if name in OF_PYTHON else "the host")
        if name == "Frame":
            file = ", ".join(sorted({brought[kind] for kind in kinds}))
            d.row("l", name, f"{does}: {', '.join(kinds)}", "", str(bit))
            d.note(f"the kinds come with {file}")
        else:
            d.row("l", name, does, file, str(bit))
        above = bit
    d.y += 8
    d.row("d", "the host", "shapes, dtypes, outputs, versions, errors: ready before a kernel runs")
    d.y += 4
    width = (WIDTH - 80) // 4
    for i, words in enumerate(
        ["cpu: mica_cpu.so", "meta: shapes alone", "a vendor's device", "portable kernels"]
    ):
        d.box(LEFT + 40 + i * width, width - 6, "b")
        d.text(LEFT + 40 + i * width + width // 2, words, "m", 17)
    d.y += ROW + 14
    d.text(
        LEFT,
        "The numbers are bits of a call's key set; a layer that has no work for a call costs it nothing.",
        "s",
    )
    d.y += 12
    return d.svg()


def main() -> int:
    picture = draw()
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(picture)
        return 0
    if PICTURE.read_text() == picture:
        return 0
    print("docs/pictures/layers.svg is out of date; run scripts/layers_picture.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
