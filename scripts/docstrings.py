"""Holds the docstrings of the public Python API to their form, and runs their examples.

    python scripts/docstrings.py                  # the modules of MODULES that are done
    python scripts/docstrings.py nn.functional    # these, done or not

Of every public class and function of a module: the first line is a sentence, `Args:` lists the parameters
of the signature and nothing else, what returns something has `Returns:` (or `Yields:`), and there is an
`Example:` that runs with nothing but `import mica` before it and prints what it shows. A class's own public
methods are held to the same, less the example; one that a base has already documented may go without a
docstring. Public is what `__all__` lists, else what is defined in mica under a name without underscore.
Of operators, whose docstrings are generated, `Args:` has to describe every argument; scripts/reference.py
runs their examples. Each fault is printed as file:line, and the last line counts the objects.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import doctest
import enum
import importlib
import inspect
import io
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import mica
from mica import _C

ROOT = Path(__file__).resolve().parent.parent
# Below `mica`; "" is mica itself, "Tensor" the methods of mica.Tensor that are written in Python.
MODULES = (
    "",
    "Tensor",
    "accelerator",
    "amp",
    "array_api",
    "array_api.fft",
    "array_api.linalg",
    "autograd",
    "autograd.forward_ad",
    "autograd.functional",
    "autograd.graph",
    "autograd.profiler",
    "conformance",
    "cuda",
    "distributed",
    "distributed.algorithms._checkpoint.checkpoint_wrapper",
    "distributed.algorithms.ddp_comm_hooks.default_hooks",
    "distributed.checkpoint",
    "distributed.checkpoint.default_planner",
    "distributed.checkpoint.filesystem",
    "distributed.checkpoint.format_utils",
    "distributed.checkpoint.hf_storage",
    "distributed.checkpoint.metadata",
    "distributed.checkpoint.planner",
    "distributed.checkpoint.planner_helpers",
    "distributed.checkpoint.staging",
    "distributed.checkpoint.state_dict",
    "distributed.checkpoint.state_dict_loader",
    "distributed.checkpoint.state_dict_saver",
    "distributed.checkpoint.stateful",
    "distributed.checkpoint.storage",
    "distributed.device_mesh",
    "distributed.elastic.multiprocessing.errors",
    "distributed.nn.functional",
    "distributed.optim",
    "distributed.run",
    "distributed.tensor",
    "distributed.tensor.experimental",
    "distributed.tensor.parallel",
    "distributed.tensor.placement_types",
    "distributions",
    "distributions.constraint_registry",
    "distributions.constraints",
    "distributions.transforms",
    "distributions.utils",
    "func",
    "futures",
    "fx",
    "fx.graph",
    "fx.interpreter",
    "fx.node",
    "fx.operator_schemas",
    "fx.passes.shape_prop",
    "fx.proxy",
    "fx.subgraph_rewriter",
    "hub",
    "masked",
    "mps",
    "multiprocessing",
    "nn",
    "nn.attention",
    "nn.flex_attention",
    "nn.functional",
    "nn.grad",
    "nn.init",
    "nn.parallel",
    "nn.utils",
    "nn.utils.fusion",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "nn.utils.rnn",
    "nn.utils.stateless",
    "ops",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "overrides",
    "profiler",
    "quasirandom",
    "random",
    "serialization",
    "signal.windows",
    "storage",
    "testing",
    "utils",
    "utils.benchmark",
    "utils.checkpoint",
    "utils.data",
    "utils.data.datapipes.iter",
    "utils.data.datapipes.map",
    "utils.flop_counter",
    "utils.module_tracker",
    "utils.python_dispatch",
    "xpu",
    "library",  # the last: its examples make a device, which others would see
)
SECTION = re.compile(r"^([A-Z]\w*(?: \w+)?):[ \t]*$")
# `name (type): text`, `a, b: text`; stars belong to the name.
ARGUMENT = re.compile(r"^    ((?:\\?\*{0,2}\w+)(?:, \\?\*{0,2}\w+)*)(?: \(.*?\))?:(?: |$)")
SENTENCE = re.compile(r"\S.*[.?!]$", re.S)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Documented:
    """A class, function or method that users see, under the name by which they reach it."""

    name: str
    object: Any
    owner: type | None = None  # of a method

    @property
    def place(self) -> str:
        """file:line of its definition."""
        source = inspect.unwrap(self.object)
        with contextlib.suppress(OSError, TypeError):
            file = Path(inspect.getsourcefile(source) or "").resolve()
            if file.is_relative_to(ROOT):
                return f"{file.relative_to(ROOT)}:{inspect.getsourcelines(source)[1]}"
        return self.name


def has_source(value: Any) -> bool:
    """Whether this is a class or function that Python code of mica defines."""
    inner = inspect.unwrap(value) if callable(value) else value
    if isinstance(inner, type):
        return inner.__module__.startswith("mica") and not _of_extension(inner)
    return isinstance(inner, FunctionType) and "/mica/" in inner.__code__.co_filename


def _of_extension(kind: type) -> bool:
    """Whether the type is made in C++, which has no source that inspect finds."""
    try:
        inspect.getsource(kind)
    except (OSError, TypeError):
        return True
    return False


def public(module: str) -> Iterator[Documented]:
    """What a module shows."""
    home: Any = mica.Tensor if module == "Tensor" else importlib.import_module(f"mica.{module}".rstrip("."))
    names = getattr(home, "__all__", None) or [n for n in dir(home) if not n.startswith("_")]
    prefix = "mica." + (f"{module}." if module else "")
    for name in names:
        value = getattr(home, name, None)  # Tensor lists what it lacks, with a reason
        if has_source(value):
            yield Documented(prefix + name, value, home if isinstance(home, type) else None)


def methods(of: Documented) -> Iterator[Documented]:
    """The public methods that a class defines itself."""
    for name, value in vars(of.object).items():
        function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if not name.startswith("_") and isinstance(function, FunctionType) and has_source(function):
            bound = getattr(of.object, name) if isinstance(value, classmethod) else function
            yield Documented(f"{of.name}.{name}", bound, of.object)


def sections(text: str) -> dict[str, list[str]]:
    """The docstring's lines below each heading ("Args:"); those before the first one below ""."""
    found: dict[str, list[str]] = {"": []}
    current = ""
    for line in text.splitlines():
        heading = SECTION.match(line)
        if heading:
            current = heading[1]
        elif line and not line.startswith(" "):
            current = ""
        found.setdefault(current, []).append(line)
    return found


def parameters(of: Documented) -> list[str] | None:
    """The names that a caller may give, with their stars; None where nobody says."""
    try:
        signature = inspect.signature(of.object)
    except (TypeError, ValueError):
        return None
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    names = [stars.get(p.kind, "") + p.name for p in signature.parameters.values()]
    static = of.owner and isinstance(inspect.getattr_static(of.owner, of.object.__name__, None), staticmethod)
    if of.owner and not static and not inspect.ismethod(of.object):
        names = names[1:]
    return [name for name in names if not name.lstrip("*").startswith("_")]


def _signature_is_own(kind: type) -> bool:
    """Whether a class says what makes it: no enumeration or protocol, nor one that leaves it to Python or Module.

    Module's own `__init__` has `*args, **kwargs`, which it refuses for a class such as Sigmoid.
    """
    is_protocol = getattr(kind, "_is_protocol", False)  # which nobody makes
    if (
        is_protocol
        or issubclass(kind, enum.Enum)
        or (kind is not mica.nn.Module and kind.__init__ is mica.nn.Module.__init__)
    ):
        return False
    makers = (kind.__init__, kind.__new__)
    return (
        any(isinstance(maker, FunctionType) for maker in makers) or type(kind).__call__ is not type.__call__
    )


def wrong_arguments(of: Documented, said: dict[str, list[str]]) -> Iterator[str]:
    """The parameters without a line below Args, and the lines without a parameter."""
    if isinstance(of.object, type) and not _signature_is_own(of.object):
        return
    expected = parameters(of)
    if expected is None:
        return
    lines = [line for heading in ("Args", "Keyword Args") for line in said.get(heading, [])]
    found = [match[1] for match in map(ARGUMENT.match, lines) if match]
    listed = [name.replace("\\", "") for names in found for name in names.split(", ")]
    bare = {name.lstrip("*") for name in listed}
    lacking = [name for name in expected if name.lstrip("*") not in bare]
    if lacking:
        yield f"Args lacks ({', '.join(lacking)})"
    known = {name.lstrip("*") for name in expected}
    for name in listed:
        # What `**kwargs` takes may be listed by name.
        if name.lstrip("*") not in known and not any(p.startswith("**") for p in expected):
            yield f"Args lists ({name}), which the signature has not"


def returns_something(function: Callable[..., Any]) -> bool:
    """By its annotation; without one, by whether its body has a `return` of a value, or a `yield`."""
    function = inspect.unwrap(function)
    annotation = getattr(function, "__annotations__", {}).get("return", inspect.Parameter.empty)
    if annotation is not inspect.Parameter.empty:
        return annotation not in (None, "None", "NoReturn", "Never")
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return False
    return any(
        isinstance(node, (ast.Yield, ast.YieldFrom))
        or (isinstance(node, ast.Return) and node.value is not None)
        for node in ast.walk(tree)
    )


def failing_examples(of: Documented, text: str) -> Iterator[str]:
    """What doctest says of the examples that fail."""
    test = doctest.DocTestParser().get_doctest(text, {"mica": mica}, of.name, None, None)
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=said.write)
    if said.getvalue():
        yield "the example fails\n" + textwrap.indent(said.getvalue().rstrip(), "    ")


def operators() -> Iterator[Documented]:
    """The generated functions of every module."""
    for module, functions in _C._functions.items():
        for name, function in functions.items():
            yield Documented(".".join(filter(None, ("mica", module, name))), function)


def operator_faults(of: Documented) -> Iterator[str]:
    """What is wrong with a generated docstring."""
    text = inspect.cleandoc(of.object.__doc__)
    said = sections(text)
    if not SENTENCE.match(text.partition("\n\n")[0]):
        yield "the first paragraph does not end with a period"
    yield from wrong_arguments(of, said)
    for line in said.get("Args", []):
        if re.match(r"    \w+ \(.*\):$", line):
            yield f"Args says nothing of{line[3:-1]}; describe it in the entry's `arguments:`"


def _needs_example(of: Documented) -> bool:
    """Classes and functions do, methods and exceptions not."""
    return of.owner is None and not (isinstance(of.object, type) and issubclass(of.object, BaseException))


def faults(of: Documented) -> Iterator[str]:
    """What is wrong with a docstring."""
    own = of.object.__doc__
    if not own:
        inherited = of.owner and any(
            getattr(vars(base).get(of.object.__name__), "__doc__", None) for base in of.owner.__mro__[1:]
        )
        if not inherited and of.name.rpartition(".")[2] not in ("forward", "extra_repr"):
            yield "there is no docstring"
        return
    text = inspect.cleandoc(own)
    first = text.partition("\n")[0]
    if not SENTENCE.match(first):
        yield f"the first line ({first}) is no sentence that ends with a period"
    said = sections(text)
    yield from wrong_arguments(of, said)
    if not isinstance(of.object, type) and returns_something(of.object):
        short = of.owner is not None and not parameters(of)  # one line is enough
        if not short and not {"Returns", "Yields"} & said.keys():
            yield "there is no `Returns:`"
    if _needs_example(of) and ">>>" not in "\n".join(said.get("Example", []) + said.get("Examples", [])):
        yield "there is no `Example:`"
    yield from failing_examples(of, text)


def checked(module: str, seen: set[int]) -> Iterator[Documented]:
    """What a module shows and no module before it, methods behind their class."""
    for found in public(module):
        if id(found.object) in seen:
            continue
        seen.add(id(found.object))
        yield found
        if isinstance(found.object, type):
            yield from methods(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="below mica: nn.functional")
    named = [name.removeprefix("mica.") for name in parser.parse_args().modules]
    os.environ.setdefault("COLUMNS", "100")
    passed = failed = 0
    seen: set[int] = set()
    found = [d for m in named or MODULES for d in checked(m, seen)]
    results = [(d, list(faults(d))) for d in found]
    if not named:
        results += [(d, list(operator_faults(d))) for d in operators()]
    for documented, wrong in results:
        for fault in wrong:
            print(f"{documented.place}: {documented.name}: {fault}")
        passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
