"""Shows each rule of scripts/lint.py failing on a small tree, and holding on a good one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import import_graph
import lint

GOOD = "// What this is.\n"

MICA = "bindings/python/mica"
FROM = '"""It."""\n\nfrom mica import {0}\n\n__all__ = ["{0}"]\n'
FOUR = {f"{MICA}/{one}.py": FROM.format(other) for one, other in ("ab", "bc", "cd", "da")}

# rule, path, its content (or that of several files), line and a part of the finding
CASES: list[tuple[str, str, str | dict[str, str], int, str]] = [
    (
        "include_arrows",
        "tensor/a.h",
        GOOD + '#include "schema/schema.h"\n',
        2,
        "tensor may not include schema",
    ),
    (
        "include_arrows",
        "schema/a.h",
        GOOD + '#include "dispatcher/tables/keys.h"\n',
        2,
        "may not include dispatcher",
    ),
    (
        "include_arrows",
        "codegen/a.h",
        GOOD + '#include "dispatcher/tables/keys.h"\n',
        2,
        "may not include dispatcher",
    ),
    (
        "include_arrows",
        "dispatcher/a.h",
        GOOD + '#include "mica/ops/add.h"\n',
        2,
        "may not include generated",
    ),
    (
        "include_arrows",
        "kernels/a.h",
        GOOD + '#include "keys/autograd/n.h"\n',
        2,
        "may not include keys/autograd",
    ),
    (
        "include_arrows",
        "keys/trace/a.h",
        GOOD + '#include "keys/autograd/n.h"\n',
        2,
        "may not include keys/autog",
    ),
    (
        "include_arrows",
        "keys/new/a.h",
        GOOD + '#include "tensor/tensor.h"\n',
        2,
        "keys/new may not include tensor (tensor/tensor.h); it sees keys/new, sdk",
    ),
    (
        "layer_is_one_folder",
        "bench/a.py",
        {"keys/new/a.cc": GOOD, "bench/a.py": '"""A."""\n\nLAYERS = ["keys/old", "keys/new"]\n'},
        3,
        "(keys/new) could not be deleted alone",
    ),
    (
        "layer_is_one_folder",
        "sdk/a.h",
        {"keys/new/a.cc": GOOD, "sdk/a.h": "// As docs/concepts/new.md and concepts/other.md say.\n"},
        1,
        "(concepts/new) could not be deleted alone",
    ),
    (
        "include_arrows",
        "plugins/cpu/a.h",
        GOOD + '#include "tensor/tensor.h"\n',
        2,
        "may not include tensor",
    ),
    (
        "include_arrows",
        "plugins/cpu/a.h",
        GOOD + '#include "plugins/gpu/a.h"\n',
        2,
        "may not include plugins/gpu",
    ),
    (
        "include_arrows",
        "sdk/include/mica/b.h",
        GOOD + '#include "absl/strings/str_cat.h"\n',
        2,
        "stays inside",
    ),
    ("include_arrows", "kernels/a.cc", GOOD + "#include <dnnl.hpp>\n", 2, "stays inside plugins"),
    ("included_from_root", "tensor/a.cc", GOOD + '#include "a.h"\n', 2, "from the root"),
    ("included_from_root", "tensor/a.cc", GOOD + "#include <mica/a.h>\n", 2, "no header <mica/a.h>"),
    (
        "python_circles",
        f"{MICA}/a.py",
        FOUR,
        3,
        "(4) files import each other: mica.a, mica.b, mica.c, mica.d",
    ),
    (
        "shim_on_top",
        f"{MICA}/a.py",
        '"""A."""\n\n\ndef f():\n    from mica.torch import install\n',
        5,
        "mica.a imports mica.torch",
    ),
    ("notes", "tensor/a.h", "// See Note [Nowhere].\n", 1, "Note [Nowhere] has no home"),
    ("notes", "tensor/a.h", "// Note [Here]\n// Note [Here]\n", 2, "keep one"),
    ("files_exist", "tensor/a.h", "// What tensor/b.h says.\n", 1, "no file is named (tensor/b.h)"),
    ("files_exist", "tensor/a.h", "/* As PLAN.md\n   says. */\n", 1, "(PLAN.md)"),
    ("files_exist", "bindings/a.py", '"""A.\n\nSee bindings/b.py.\n"""\n', 3, "(bindings/b.py)"),
    ("files_exist", "operators/a.yaml", "a: 1  # operators/b.yaml\n", 1, "(operators/b.yaml)"),
    ("files_exist", "docs/a.md", "See `docs/b.h`.\n", 1, "(docs/b.h)"),
    ("files_exist", "docs/a.md", "See [b](guides/).\n", 1, "the link (guides/) leads to no file"),
    ("file_size", "tensor/a.cc", GOOD * 1001, 1001, "(1001) lines"),
    ("opening_comment", "tensor/a.h", "#pragma once\n", 1, "open the file"),
    ("opening_comment", "tensor/b.cc", '#include "tensor/a.h"\n', 1, "open the file"),
    ("opening_comment", "bindings/a.py", "import os\n", 1, "open the file"),
    ("dead_code", "tensor/a.cc", GOOD + "// TODO: later\n", 2, "do it now"),
    ("dead_code", "tensor/a.cc", GOOD + "#if 0\n", 2, "dead code"),
    ("machine_paths", "docs/a.md", "See /home/anna/mica.\n", 1, "of one machine"),
    (
        "sizes_are_read",
        "plugins/cpu/a.cc",
        GOOD + "constexpr int64_t kBlock = 512;\n#define ROW_BLOCK 768\n",
        3,
        "no test would cross the size (768) of ROW_BLOCK",
    ),
    (
        "sizes_are_read",
        "plugins/cpu/a.cc",
        GOOD + "constexpr long kGrain{32768};\n",
        2,
        "constexpr int64_t kName = 32768;",
    ),
    ("sizes_are_read", "kernels/a.cc", GOOD + "enum { kTile = 48 };\n", 2, "size (48) of kTile"),
    ("cxx_format", "tensor/a.cc", GOOD + "int   a;\n", 2, "clang-format"),
    ("python_lint", "bindings/a.py", '"""A."""\n\nimport os\n', 3, "F401"),
    ("python_lint", "bindings/a.py", '"""A."""\n\na   = 1\n', 3, "ruff"),
]


def run_rule(name: str, root: Path, files: dict[str, str]) -> list[lint.Finding]:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    rule = next(rule for rule in lint.RULES if rule.__name__ == name)
    return list(rule(lint.Tree(root, files)))


@pytest.mark.parametrize(("rule", "path", "content", "line", "text"), CASES)
def test_rule_finds(
    rule: str, path: str, content: str | dict[str, str], line: int, text: str, tmp_path: Path
) -> None:
    findings = run_rule(rule, tmp_path, {path: content} if isinstance(content, str) else content)
    assert len(findings) == 1
    assert (findings[0].path, findings[0].line) == (path, line)
    assert text in findings[0].text


@pytest.mark.parametrize("rule", [rule.__name__ for rule in lint.RULES])
def test_rule_holds_on_good_files(rule: str, tmp_path: Path) -> None:
    files = {
        "sdk/include/mica/abi.h": GOOD,
        "tensor/a.h": GOOD + "#include <mica/abi.h>\n",
        "tensor/a.cc": '#include "tensor/a.h"\n',
        "kernels/b.cc": GOOD + '#include "mica/ops/add.h"\n#include "tensor/a.h"\n',
        "plugins/cpu/b.h": GOOD,
        "plugins/cpu/a.cc": GOOD
        + '#include <dnnl.hpp>\n\n#include <mica/abi.h>\n#include "plugins/cpu/b.h"\n',
        "kernels/c.cc": GOOD + "constexpr int64_t kBlock = 512, kTile = kBlock / 2;\n",
        "dispatcher/a.h": "// Note [Keys]\n// Here they are.\n\n// As Note [Keys] says.\n",
        f"{MICA}/torch/b.py": FROM.format("torch"),
        f"{MICA}/a.py": FROM.format("b"),
        f"{MICA}/b.py": FROM.format("c"),
        f"{MICA}/c.py": FROM.format("a"),
        # Others' files, generated ones, patterns, and code are no references.
        "bindings/a.py": '"""What this is: tensor/a.h, linux/hwcap.h, mica/ops/add.h, tensor/*.h."""\n'
        + '\nNAME = "tensor/none.h"\n',
        "docs/a.md": "[a](../tensor/a.h) and [folder](../tensor), `a.md`\n\n```sh\ncat tensor/b.h\n```\n",
    }
    assert run_rule(rule, tmp_path, files) == []


def test_every_rule_has_a_failing_case() -> None:
    assert {case[0] for case in CASES} == {rule.__name__ for rule in lint.RULES}


def test_what_counts_as_an_import() -> None:
    source = """
import mica
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import mica.a
else:
    from . import b
def f():
    import mica.c.name
    return importlib.import_module("mica.c.d"), importlib.import_module(name)
"""
    names = ["a", "b", "c/__init__", "c/d"]
    sources = {f"{MICA}/e.py": source, f"{MICA}/__init__.py": "", **{f"{MICA}/{n}.py": "" for n in names}}
    assert import_graph.graph(sources)["mica.e"] == {"mica.b": 7, "mica.c": 9, "mica.c.d": 10}
    assert import_graph.graph({f"{MICA}/c/d.py": "from ..a import x", f"{MICA}/a.py": ""})["mica.c.d"] == {
        "mica.a": 1
    }
