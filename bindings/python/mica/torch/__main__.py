"""`python -m mica.torch (script.py | -m module | -c code) [arguments]`, `--check PROGRAM` or `--stubs FOLDER`.

Runs a PyTorch program on Mica as `python` would run it: the same sys.argv and sys.path,
`__name__ == "__main__"`, a traceback of the program alone.
"""

from __future__ import annotations

import builtins
import os
import runpy
import sys
from types import CodeType

USAGE = """usage: python -m mica.torch (script.py | -m module | -c code | -) [argument]...
       python -m mica.torch --check [--no-packages] (script.py... | -m module)
       python -m mica.torch --stubs FOLDER"""


def _run(words: list[str]) -> None:
    first = words[0]
    if first == "-m":
        sys.argv = words[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    if first == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path[0] = ""
        _execute(compile(words[1], "<string>", "exec"), None)
        return
    if first == "-":
        sys.argv = words
        sys.path[0] = ""
        _execute(compile(sys.stdin.read(), "<stdin>", "exec"), None)
        return
    sys.argv = words
    sys.path[0] = os.path.dirname(os.path.abspath(first))
    with open(first, "rb") as file:
        _execute(compile(file.read(), first, "exec"), first)


def _execute(code: CodeType, file: str | None) -> None:
    """Runs the code in a fresh __main__, which pickle and spawned children find."""
    import types

    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __file__=file) if file else main.__dict__.update(
        __builtins__=builtins
    )
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def main() -> int:
    """Runs the program, or checks it, and returns the exit status of the check."""
    words = sys.argv[1:]
    if words and words[0] == "--check":
        from mica.torch._check import main as check

        return check(words[1:])
    if words and words[0] == "--stubs":
        from mica.torch._stubs import main as stubs

        return stubs(words[1:])
    if not words or words[0] in ("-h", "--help") or (words[0] in ("-m", "-c") and len(words) < 2):
        print(USAGE, file=sys.stderr)
        return 0 if words and words[0] in ("-h", "--help") else 2
    from mica.torch import install

    install()
    _run(words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
