"""The rules of this repository that a machine can check.

`./dev lint` runs them over every file that git knows or would add; each finding
is one line `file:line: what is wrong; what to do`. `--fix` formats instead. The
last line printed counts the rules that held. The rules are plain functions from
the list of files to findings, listed in RULES; test/repository/test_lint.py shows
each of them failing.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import import_graph

CXX = {".h", ".cc", ".c"}
COMMENTED = CXX | {".cmake"}
LONG, MAX_LINES = 500, 1000
MAX_CIRCLE = 3  # files of Python that import each other
SHIM = "mica.torch"
DATA = {"bindings/python/mica/conformance/samples.py"}
ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "test" / "opinfo"))
import constants  # noqa: E402
import references  # noqa: E402

# Version 14 decides, because versions differ in what they write.
CLANG_FORMAT = ["clang-format-14", f"--style=file:{ROOT / '.clang-format'}"]

# Which modules a module may include, besides itself. `generated` is what mica-gen
# writes (mica/ops/..., mica/api.h). None: anything.
CORE = ["sdk", "tensor", "schema", "dispatcher", "kernels", "generated"]
ARROWS: dict[str, list[str] | None] = {
    "sdk": [],
    "tensor": ["sdk"],
    "schema": ["sdk", "tensor"],
    "codegen": ["sdk", "tensor", "schema"],
    "dispatcher": ["sdk", "tensor", "schema"],
    "kernels": CORE,
    "keys": ["sdk"],
    "compiler": CORE,
    "bindings": CORE,
    "plugins": ["sdk"],
    "examples": CORE,
    "test": None,
    "bench": None,
}
# Folders below these are modules of their own: keys/autograd does not see keys/trace.
FOLDERS_OF_MODULES = {"keys", "plugins"}
# Layers that are C++ of the same build. The others are plugins as a third party's are.
CORE_LAYERS = {"keys/autograd", "keys/conjugate"}
# What several plugins share, and who may see it.
SHARED_PLUGINS = {f"plugins/{name}": "plugins/gpu" for name in ("cuda", "rocm", "simt")}
# Libraries that stay in their folder.
LIBRARY_HOMES = {
    r"dnnl|oneapi/|cblas|lapack|hwy/|sleef|omp\.h|cuda|cudnn|nccl|hip/|mpi\.h": ["plugins", "bench", "test"],
    r"yaml-cpp/": ["codegen", "test"],
    r"Python\.h": ["bindings"],
    r"absl/": [
        "tensor",
        "schema",
        "codegen",
        "dispatcher",
        "kernels",
        "keys",
        "compiler",
        "bindings",
        "test",
        "bench",
    ],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')


@dataclass(frozen=True)
class Finding:
    """One broken rule at one place."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class Tree:
    """The files to check, read once."""

    def __init__(self, root: Path, paths: Iterable[str]) -> None:
        self.root = root
        # Sources of others stay as they came.
        self.paths = sorted(
            path for path in paths if (root / path).is_file() and "third_party" not in Path(path).parts
        )
        self._lines: dict[str, list[str]] = {}

    def lines(self, path: str) -> list[str]:
        """The lines of a text file; none of a binary one."""
        if path not in self._lines:
            try:
                self._lines[path] = (self.root / path).read_text(encoding="utf-8").splitlines()
            except UnicodeDecodeError:
                self._lines[path] = []
        return self._lines[path]

    def of(self, suffixes: set[str]) -> list[str]:
        """The paths that end in one of these suffixes."""
        return [path for path in self.paths if Path(path).suffix in suffixes]


def module_of_path(path: str) -> str:
    """tensor/dtype.h -> tensor; keys/autograd/node.h -> keys/autograd."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in FOLDERS_OF_MODULES and len(parts) > 2 else parts[0]


def module_of_include(line: str, spelled: str) -> str | None:
    """The module that an include belongs to: <mica/...> is the SDK's, "mica/..." generated; None: foreign."""
    if spelled == "mica/fingerprint.h":  # made of the build itself, for who must know which one it is
        return None
    if spelled.startswith("mica/"):
        return "sdk" if "<" in line else "generated"
    module = module_of_path(spelled)
    return module if '"' in line and module.split("/")[0] in ARROWS else None


def seen_by(module: str) -> list[str] | None:
    """The modules that a module may include, itself first; None: all."""
    allowed = CORE if module in CORE_LAYERS else ARROWS[module.split("/")[0]]
    shared = [SHARED_PLUGINS[module]] if module in SHARED_PLUGINS else []
    return None if allowed is None else [module, *shared, *allowed]


def include_arrows(tree: Tree) -> Iterator[Finding]:
    """Modules include only the modules below them (ARROWS), and libraries stay in their folder."""
    for path in tree.of(CXX):
        module = module_of_path(path)
        base = module.split("/")[0]
        if base not in ARROWS:
            continue
        allowed = seen_by(module)
        for number, line in enumerate(tree.lines(path), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            spelled = match[1]
            if target := module_of_include(line, spelled):
                if allowed is not None and target not in allowed:
                    seen = ", ".join(allowed)
                    yield Finding(
                        path, number, f"{module} may not include {target} ({spelled}); it sees {seen}"
                    )
            else:
                for pattern, homes in LIBRARY_HOMES.items():
                    if re.match(pattern, spelled) and base not in homes:
                        yield Finding(
                            path, number, f"{spelled} stays inside {', '.join(homes)}; move the code there"
                        )


# Who may name a layer's folder: the layer, its tests, pages; and what writes the kernels of Autograd.
OF_LAYERS = ("keys/", "test/", "docs/", "README.md", "CONTRIBUTING.md")
OF_AUTOGRAD = "codegen/emit/"


def layer_is_one_folder(tree: Tree) -> Iterator[Finding]:
    """A layer can be deleted: beside tests and pages, no file names its folder in keys/, or its page."""
    layers = {path.split("/")[1] for path in tree.paths if path.startswith("keys/")}
    for path in tree.paths:
        if path.startswith(OF_LAYERS) or path == "scripts/lint.py":
            continue
        for number, line in enumerate(tree.lines(path), 1):
            for folder, layer in re.findall(r"\b(keys|concepts)/(\w+)", line):
                if layer in layers and not (layer == "autograd" and path.startswith(OF_AUTOGRAD)):
                    yield Finding(
                        path,
                        number,
                        f"({folder}/{layer}) could not be deleted alone; name what the layer offers",
                    )


# Headers that the build puts beside the SDK's (cmake/MathsText.cmake).
BUILT = {"mica/kit/kernels/maths.cl"}


def included_from_root(tree: Tree) -> Iterator[Finding]:
    """An include in quotes is a file's path from the root, one of <mica/...> a header of the SDK."""
    for path in tree.of(CXX):
        if path.startswith("examples/"):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            match = re.match(r'^\s*#\s*include\s*(?:"([^"]+)"|<(mica/[^>]+)>)', line)
            if not match:
                continue
            quoted, of_sdk = match[1], match[2]
            if of_sdk and of_sdk not in BUILT and not (tree.root / "sdk" / "include" / of_sdk).exists():
                yield Finding(path, number, f"sdk/include has no header <{of_sdk}>")
            elif quoted and not (
                quoted.startswith(("mica/", "absl/", "hwy/")) or (tree.root / quoted).exists()
            ):
                yield Finding(path, number, f'spell the include ("{quoted}") by its path from the root')


def python_circles(tree: Tree) -> Iterator[Finding]:
    """At most 3 files of the Python package import each other, imports inside functions included."""
    edges = import_graph.graph({p: "\n".join(tree.lines(p)) for p in tree.of({".py"})})
    for circle in import_graph.circles(edges):
        if len(circle) > MAX_CIRCLE:
            target = next(name for name in edges[circle[0]] if name in circle)
            yield Finding(
                import_graph.path_of(circle[0], tree.paths),
                edges[circle[0]][target],
                f"({len(circle)}) files import each other: {', '.join(circle)}; what two of them need belongs below both",
            )


def shim_on_top(tree: Tree) -> Iterator[Finding]:
    """Nothing outside of mica.torch imports it: it hands in what it makes (mica/_torch_names/table.py)."""
    edges = import_graph.graph({p: "\n".join(tree.lines(p)) for p in tree.of({".py"})})
    for name, targets in edges.items():
        for target, line in targets.items():
            if f"{target}.".startswith(f"{SHIM}.") and not f"{name}.".startswith(f"{SHIM}."):
                yield Finding(
                    import_graph.path_of(name, tree.paths),
                    line,
                    f"{name} imports {target}; ask mica._torch_names, or put what both need there",
                )


def notes(tree: Tree) -> Iterator[Finding]:
    """Each `Note [Title]` that is referred to has exactly one home: a line of its own."""
    homes: dict[str, tuple[str, int]] = {}
    references: list[tuple[str, int, str]] = []
    for path in tree.of(CXX | {".py", ".cmake", ".yaml"}):
        if Path(path).name in {"lint.py", "test_lint.py"}:
            continue
        for number, line in enumerate(tree.lines(path), 1):
            for title in re.findall(r"\bNote \[([^\]]+)\]", line):
                if re.fullmatch(r"[\s/#*]*Note \[[^\]]+\]:?\s*", line):
                    if title in homes:
                        yield Finding(
                            path, number, f"Note [{title}] has a home in {homes[title][0]}; keep one"
                        )
                    homes[title] = (path, number)
                else:
                    references.append((path, number, title))
    for path, number, title in references:
        if title not in homes:
            yield Finding(
                path, number, f"Note [{title}] has no home; write it on a line of its own where it belongs"
            )


def files_exist(tree: Tree) -> Iterator[Finding]:
    """A file of the repository that a comment, a docstring or a page names is there."""
    files = references.Files(tree.paths)
    for path in tree.paths:
        if "third_party" in path:
            continue
        for number, line in references.prose(path, tree.lines(path)):
            for name in references.NAME.findall(line):
                if files.dangling(name):
                    yield Finding(path, number, f"no file is named ({name}); name the one that is meant")
            if path.endswith(".md"):
                for target in references.LINK.findall(line):
                    if files.dangling_link(path, target):
                        yield Finding(path, number, f"the link ({target}) leads to no file")


def file_size(tree: Tree) -> Iterator[Finding]:
    """Source files have at most 1,000 lines; tables of samples are data."""
    for path, size in long_files(tree, MAX_LINES):
        yield Finding(path, size, f"the file has ({size}) lines; split it by idea, at most ({MAX_LINES})")


def long_files(tree: Tree, most: int) -> Iterator[tuple[str, int]]:
    """The source files of more lines than that, tables of samples apart, and their lines."""
    for path in tree.paths:
        if path not in DATA and (Path(path).suffix in CXX | {".py", ".cmake"} or path == "dev"):
            size = len(tree.lines(path))
            if size > most:
                yield path, size


def opening_comment(tree: Tree) -> Iterator[Finding]:
    """A file opens with a comment that says what it is; a.cc beside a.h leaves that to a.h."""
    for path in tree.of(COMMENTED):
        if path.endswith(".cc") and path.removesuffix("cc") + "h" in tree.paths:
            continue
        first = next((line for line in tree.lines(path) if line.strip()), "// empty")
        if not first.startswith(("//", "/*", "#")) or INCLUDE.match(first) or first.startswith("#pragma"):
            yield Finding(
                path, 1, "open the file with 3 to 15 lines: what it is, who uses it, what always holds"
            )
    for path in tree.of({".py"}):
        source = "\n".join(tree.lines(path))
        if source.strip() and not ast.get_docstring(ast.parse(source)):
            yield Finding(
                path, 1, "open the file with a docstring: what it is, who uses it, what always holds"
            )


def dead_code(tree: Tree) -> Iterator[Finding]:
    """Nothing is left for later in the source."""
    for path in tree.of(CXX | {".py", ".cmake", ".yaml"}):
        if Path(path).name in {"lint.py", "test_lint.py"}:
            continue
        for number, line in enumerate(tree.lines(path), 1):
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
                yield Finding(path, number, "do it now, or open an issue; the source holds no reminders")
            elif re.match(r"^\s*#\s*if 0\b", line):
                yield Finding(path, number, "remove the dead code; git remembers it")


def machine_paths(tree: Tree) -> Iterator[Finding]:
    """No path of one machine stands in a file."""
    pattern = re.compile(r"(?<![\w.$}])/(work|home|root)/[a-z]\w+")
    for path in tree.paths:
        if Path(path).name in {"lint.py", "test_lint.py"}:
            continue
        for number, line in enumerate(tree.lines(path), 1):
            if match := pattern.search(line):
                yield Finding(path, number, f"the path ({match[0]}...) is of one machine; make it relative")


# A block, a grain or the like that is defined as a number, in whatever way.
SIZE = re.compile(rf"(\w*(?:{constants.WORDS})\w*)(?:\s*=(?!=)|\s*\{{|\s+(?=\d))\s*([^;,{{}}]*)", re.I)


def sizes_are_read(tree: Tree) -> Iterator[Finding]:
    """A size at which a kernel changes its way is written so that test/opinfo/constants.py reads it."""
    for path in tree.of({".h", ".cc"}):
        if not path.startswith(constants.FOLDERS):
            continue
        known = constants.read("\n".join(tree.lines(path)))
        for number, line in enumerate(tree.lines(path), 1):
            for match in SIZE.finditer(re.sub(r"//.*", "", line)):
                for size in sorted(constants.numbers(match[2]) - known):
                    yield Finding(
                        path,
                        number,
                        f"no test would cross the size ({size}) of {match[1]}; "
                        f"write it as `constexpr int64_t kName = {size};`, which test/opinfo/constants.py reads",
                    )


def cxx_format(tree: Tree) -> Iterator[Finding]:
    """clang-format agrees with every C++ file."""
    paths = tree.of(CXX)
    if not paths:
        return
    result = subprocess.run(
        [*CLANG_FORMAT, "--dry-run", "--ferror-limit=1", *paths],
        cwd=tree.root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    seen = set()
    for match in re.finditer(r"^(\S+?):(\d+):\d+: warning: code should be", result.stderr, re.M):
        if match[1] not in seen:
            seen.add(match[1])
            yield Finding(match[1], int(match[2]), "the layout differs from clang-format's; run ./dev fmt")
    if result.returncode != 0:
        yield Finding(".clang-format", 1, f"clang-format ended with an error: {result.stderr[:200]}")


def ruff(*words: str, root: Path) -> subprocess.CompletedProcess[str]:
    """Runs the ruff of this environment."""
    return subprocess.run(
        [sys.executable, "-m", "ruff", *words], cwd=root, capture_output=True, text=True, check=False
    )


def python_lint(tree: Tree) -> Iterator[Finding]:
    """ruff's rules (pyproject.toml) hold, and its layout."""
    paths = tree.of({".py", ".pyi"})
    if not paths:
        return
    result = ruff("check", "--output-format=concise", "--no-cache", *paths, root=tree.root)
    found = False
    for match in re.finditer(r"^(\S+?):(\d+):\d+: (.*)$", result.stdout, re.M):
        found = True
        yield Finding(match[1], int(match[2]), match[3])
    if result.returncode != 0 and not found:
        yield Finding(
            "pyproject.toml", 1, f"ruff ended with an error: {result.stderr[:200] or result.stdout[:200]}"
        )
    result = ruff("format", "--check", "--no-cache", "--output-format=concise", *paths, root=tree.root)
    for match in re.finditer(r"^(\S+?):(\d+):\d+: unformatted", result.stdout, re.M):
        yield Finding(match[1], int(match[2]), "the layout differs from ruff's; run ./dev fmt")


RULES: list[Callable[[Tree], Iterator[Finding]]] = [
    include_arrows,
    layer_is_one_folder,
    included_from_root,
    python_circles,
    shim_on_top,
    notes,
    files_exist,
    file_size,
    opening_comment,
    dead_code,
    machine_paths,
    sizes_are_read,
    cxx_format,
    python_lint,
]


def repository_files(root: Path) -> list[str]:
    """What git tracks, and what it would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()


def fix(tree: Tree) -> None:
    """Formats every file."""
    if paths := tree.of(CXX):
        subprocess.run([*CLANG_FORMAT, "-i", *paths], cwd=tree.root, check=True)
    if paths := tree.of({".py", ".pyi"}):
        ruff("check", "--fix", "--quiet", *paths, root=tree.root)
        ruff("format", "--quiet", *paths, root=tree.root)


def main() -> int:
    tree = Tree(ROOT, repository_files(ROOT))
    if "--fix" in sys.argv[1:]:
        fix(tree)
        return 0
    for path, size in long_files(tree, LONG):
        print(f"{path}: warning: ({size}) lines; above ({LONG}), ask whether it holds two ideas")
    failed = 0
    for rule in RULES:
        findings = list(rule(tree))
        for finding in findings:
            print(finding)
        if findings:
            failed += 1
            print(f"  ^ {rule.__name__}: {rule.__doc__} ({len(findings)} findings)")
    print(f"{len(RULES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
