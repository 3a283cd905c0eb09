"""The reference: a page for each operator, whose examples are run here and show what they print.

mica-gen writes the pages from the two YAML files (codegen/emit/docs.cc) with an example's
statements, where the entry has `example:`, or a comment that names the overload. An example that
lacks is made of the operator's own sample calls (mica.conformance): the shortest one, with its
numbers rounded, called by its public name, and held to give what the operator gives. Shapes and dtypes
that an entry states no rule for are found by running (reference_forms.py). The pages go
to build/docs/operators. A page of a public operator without an example fails, and so does an
example that raises. The last line printed counts them.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reference_forms import with_forms

import mica
from mica._functions import aliases as _aliases
from mica.conformance.operators import ENTRIES, MADE, Entry, numbers, operator
from mica.conformance.samples import Call, T

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release"))
SOURCE = BUILD / "generated" / "mica" / "docs" / "operators"
PAGES = ROOT / "build" / "docs" / "operators"
MARK = re.compile(r"^<!-- example: (?P<overload>\S+) -->\n", re.M)
GIVEN = re.compile(r"^```python\n(?P<code>.*?)^```\n", re.M | re.S)
SPELLED = 12  # elements of a tensor that are written out
LONGEST = 600  # elements of an example's tensors together
LINES = 16  # of what an example prints
MODULES = ("linalg", "fft", "special")  # where `linalg_svd` is called `svd`
INTERNAL = "Internal: other operators and formulas call it, programs do not."
KINDS = {"float32": "", "int64": "", "bool": "", "complex64": ""}  # dtypes that an example is tried in


class Unfit(Exception):
    """This call makes no good example."""


def _nested(values: Any) -> Any:
    """Lists of numbers, rounded to what a reader likes."""
    if values.dtype.kind == "c":
        return (values.real.round(1) + 1j * values.imag.round(1)).tolist()
    return values.astype("float64").round(1).tolist() if values.dtype.kind == "f" else values.tolist()


class Writer:
    """Writes the statements that make a call's tensors, and the call."""

    def __init__(self, entry: Entry, dtype: str) -> None:
        self.entry, self.dtype = entry, dtype
        self.statements: list[str] = []
        self.elements = 0
        self.names: set[str] = set()

    def tensor(self, described: T, name: str) -> str:
        count = 1
        for size in described.shape:
            count *= size
        self.elements += count
        if self.elements > LONGEST or count == 0:
            raise Unfit
        dtype = described.dtype or self.dtype
        values = numbers(described, dtype, 7 + len(self.names))
        if described.made and dtype in ("float32", "complex64"):
            values = MADE[described.made](mica.from_numpy(values.copy())).numpy()
        option = "" if dtype in KINDS else f", dtype=mica.{dtype}"
        spelled = f"mica.tensor({_nested(values)}{option})"
        if count > SPELLED and not described.made and dtype in ("float32", "int64"):
            shape = ", ".join(map(str, described.shape))
            low, high = int(max(described.low, 0)), int(described.high)
            spelled = f"mica.arange({count}{'.0' if dtype == 'float32' else ''})"
            if len(described.shape) > 1:
                spelled += f".reshape({shape})"
            if dtype == "int64":
                spelled = f"{spelled} % {max(high - low, 1)}" + (f" + {low}" if low else "")
            elif count > described.high:
                spelled = f"{spelled} / {count}"
        name = {"self": "x"}.get(name, name)
        while name in self.names:
            name += "2"
        self.names.add(name)
        self.statements.append(f"{name} = {spelled}")
        return name

    def value(self, value: Any, name: str) -> str:
        if isinstance(value, T):
            return self.tensor(value, name)
        if isinstance(value, list):
            stem = {"tensors": "x", "indices": "index"}.get(name, name.rstrip("s") or name)
            return f"[{', '.join(self.value(v, f'{stem}{k}') for k, v in enumerate(value))}]"
        if isinstance(value, str) and hasattr(mica, value) and isinstance(getattr(mica, value), mica.dtype):
            return f"mica.{value}"
        if isinstance(value, float) and value in (float("inf"), -float("inf")):
            return "mica.inf" if value > 0 else "-mica.inf"
        return repr(value)

    def arguments(self, call: Call) -> list[str]:
        parameters = [name for _, name, keyword in self.entry.arguments if not keyword]
        texts = [self.value(v, parameters[k]) for k, v in enumerate(call.args)]
        return texts + [f"{k}={self.value(v, k)}" for k, v in call.kwargs.items()]


def callables(names: list[str], arguments: list[str]) -> Iterator[str]:
    """The call by each public name, functions first."""
    for name in sorted(names, key=lambda n: (n.startswith("Tensor."), len(n), n)):
        if not name.startswith("Tensor."):
            yield f"{name}({', '.join(arguments)})"
        elif arguments and arguments[0].isidentifier():
            yield f"{arguments[0]}.{name.removeprefix('Tensor.')}({', '.join(arguments[1:])})"


def printed(statements: list[str]) -> str:
    """The session of these statements: each behind >>>, and what expressions print."""
    names: dict[str, Any] = {"mica": mica, "nn": mica.nn, "F": mica.nn.functional}
    lines = []
    for statement in statements:
        parsed = ast.parse(statement).body[0]
        first, *rest = statement.splitlines()
        lines += [f">>> {first}", *(f"... {line}" for line in rest)]
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            if isinstance(parsed, ast.Expr):
                result = eval(statement, names)  # noqa: S307 (the reference's own text)
                if result is not None:
                    print(repr(result))
            else:
                exec(statement, names)  # noqa: S102
        lines += shown.getvalue().splitlines()
    return "\n".join(lines)


def reproducible(session: str) -> str:
    """The session; raises ValueError where it shows an address, which no other run would."""
    if " at 0x" in session:
        raise ValueError(f"the output holds an address:\n{session}")
    return session


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)):
        return isinstance(b, (tuple, list)) and len(a) == len(b) and all(map(_equal, a, b))
    return repr(a) == repr(b)


def made(entry: Entry, names: list[str]) -> str:
    """A session of the shortest fitting sample call; "" if none fits."""
    found = ""
    for dtype in KINDS:
        for call in entry.calls():
            with contextlib.suppress(Unfit):
                writer = Writer(entry, dtype)
                arguments = writer.arguments(call)
                for text in callables(names, arguments):
                    session = _tried(entry, writer.statements, arguments, text)
                    if session and (not found or _weight(session) < _weight(found)):
                        found = session
                    if session:
                        break
        if found:
            return found
    return found


def _weight(session: str) -> int:
    """How far a session is from a good one: not too small, not too long."""
    return len(session) + (200 if "[" not in session else 0)


def _tried(entry: Entry, statements: list[str], arguments: list[str], text: str) -> str:
    """The session, where the public name gives what the operator does and prints little."""
    values: dict[str, Any] = {"mica": mica}
    try:
        for statement in statements:
            exec(statement, values)  # noqa: S102
        own = eval(f"operator({', '.join(arguments)})", {**values, "operator": operator(entry)})  # noqa: S307
        for statement in statements:  # the first call may have written them
            exec(statement, values)  # noqa: S102
        if not _equal(own, eval(text, values)):  # noqa: S307
            return ""
        session = reproducible(printed([*statements, text]))
        if len(session.splitlines()) > LINES:  # its form says enough
            form = f"{text}.shape" if isinstance(own, mica.Tensor) else f"[r.shape for r in {text}]"
            session = printed([*statements, form])
    except Exception:  # noqa: BLE001 - another spelling or sample is tried
        return ""
    return session if len(session.splitlines()) <= LINES else ""


def resolves(name: str) -> bool:
    """Whether Python has this name."""
    found: Any = mica
    for part in name.removeprefix("mica.").split("."):
        found = getattr(found, part, None)
    return found is not None


def respelled(name: str) -> str:
    """`mica.linalg.svd` for `mica.linalg_svd`, where there is such a name."""
    module, _, last = name.rpartition(".")
    for prefix in MODULES:
        better = f"mica.{prefix}.{last.removeprefix(prefix + '_')}"
        if last.startswith(prefix + "_") and not module.startswith("Tensor") and resolves(better):
            return better
    return name


NAMES = re.compile(r"^In Python: (.*)$", re.M)


def public_names(text: str) -> list[str]:
    """The page's Python names, those that Python has."""
    line = NAMES.search(text)
    found = [respelled(n) for n in re.findall(r"`([^`]+)`", line[1])] if line else []
    return [n for n in dict.fromkeys(found) if resolves(n)]


def with_names(text: str, names: list[str]) -> str:
    """The page with the names that Python has, torch's further ones behind them."""
    own = {n.rpartition(".")[2] for n in names}
    further = [f"mica.{alias}" for alias, name in _aliases._ALIASES.items() if name in own]
    listed = ", ".join(f"`{n}`" for n in dict.fromkeys([*names, *further]))
    line = f"In Python: {listed}" if names else INTERNAL
    return NAMES.sub(lambda _: line, text, count=1)


def with_internals(index: str, internal: set[str]) -> str:
    """The index with the operators that Python does not name moved to its last section."""
    lines = index.splitlines()
    moved = [line for line in lines if line.startswith("- [") and line[3 : line.index("]")] in internal]
    kept = [line for line in lines if line not in moved]
    return "\n".join([*kept, *moved]) + "\n"


def page(text: str, problems: list[str]) -> tuple[str, int]:
    """The finished page and how many examples it has; what fails goes to `problems`."""
    names, count = public_names(text), 0

    def fill(match: re.Match[str]) -> str:
        nonlocal count
        overload = match["overload"]
        session = made(ENTRIES[overload], names) if overload in ENTRIES and names else ""
        count += bool(session)
        return f"Example:\n\n```pycon\n{session}\n```\n" if session else ""

    def run(match: re.Match[str]) -> str:
        nonlocal count
        code = match["code"]
        statements = [ast.get_source_segment(code, s) or "" for s in ast.parse(code).body]
        try:
            session = reproducible(printed(statements))
        except Exception as error:  # noqa: BLE001 - any failure is reported
            problems.append(
                f"the example raises {type(error).__name__}: {str(error).splitlines()[0]}\n{code}"
            )
            return match[0]
        count += 1
        return f"```pycon\n{session}\n```\n"

    text = GIVEN.sub(run, text)
    text = re.sub(r"\n{3,}", "\n\n", MARK.sub(fill, text))
    return with_names(with_forms(text) if names else text, names), count


def main() -> int:
    PAGES.mkdir(parents=True, exist_ok=True)
    for old in PAGES.glob("*.md"):
        old.unlink()
    passed = failed = 0
    internal: set[str] = set()
    for source in sorted(SOURCE.glob("*.md")):
        problems: list[str] = []
        text, count = page(source.read_text(), problems)
        (PAGES / source.name).write_text(text)
        if INTERNAL in text:
            internal.add(source.stem)
        elif not problems and not count and source.stem != "README":
            problems.append("no example; give the entry an `example:` or sample calls")
        for problem in problems:
            print(f"{source.stem}: {problem}")
        passed, failed = passed + count, failed + len(problems)
    index = PAGES / "README.md"
    index.write_text(with_internals(index.read_text(), internal))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
