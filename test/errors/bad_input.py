"""Calls every registered operator with arguments that are mostly wrong; a program of its own.

    python test/errors/bad_input.py <seed> <calls per operator> <shard> <shards> <log> [operator]...

Arguments are drawn from lists of Python expressions by the type that the schema gives
them; every other call is a sample of the operator with one argument spoilt (near_misses.py). A call must return or raise one of `ALLOWED` with a full sentence; a result must
be readable, and its gradient too. Before each call its text stands in <log>, so that
whoever started the program knows which call ended it. Prints what is wrong, a line each.
With operators named, those of the shard alone are called, in that order. What an operator's
calls are follows from the seed and its name. Under the address sanitizer, whose shadow no
limit of address space leaves room for, Mica's own limit of memory holds alone.
"""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import sys
import warnings
from types import CodeType
from typing import Any

from near_misses import NearMisses, calls_of, near

import mica
from mica import _C
from mica.conformance.samples import Call

ALLOWED = (
    ValueError,
    TypeError,
    IndexError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    ZeroDivisionError,
)
SECONDS_PER_CALL = 30 if "ASAN_OPTIONS" in os.environ else 10
MOST_MEMORY = 6 << 30

# What a PyTorch user might pass, first what is mostly right, then what is mostly wrong.
TENSORS = (
    [
        "mica.ones(2, 3)",
        "mica.arange(6.).reshape(2, 3)",
        "mica.ones(3)",
        "mica.ones(3, 3, requires_grad=True)",
        "mica.tensor(2.0)",
        "mica.arange(6).reshape(2, 3)",
        "mica.tensor([0, 1, 2])",
        "mica.tensor([True, False, True])",
        "mica.ones(1, 2, 4, 4)",
        "mica.ones(2, 2, 3)",
        "mica.ones(2, 3, dtype=mica.float64, requires_grad=True)",
    ],
    [
        "mica.ones(0)",
        "mica.ones(0, 3)",
        "mica.ones(2, 0, 3, requires_grad=True)",
        "mica.tensor([float('nan'), float('inf'), -float('inf')])",
        "mica.tensor([-1, 7, 2**62])",
        "mica.tensor([-2**63, 2**63 - 1, 0])",
        "mica.ones(2, 3, dtype=mica.complex64, requires_grad=True)",
        "mica.ones(2, 3, dtype=mica.float16)",
        "mica.ones(3, dtype=mica.bfloat16, requires_grad=True)",
        "mica.ones(3, dtype=mica.float8_e4m3fn)",
        "mica.ones(3, dtype=mica.uint16)",
        "mica.ones(3, dtype=mica.uint8)",
        "mica.ones(3, dtype=mica.int8)",
        "mica.ones(3, 2).t()",
        "mica.ones(1, 3).expand(4, 3)",
        "mica.ones(3, 4)[:, ::2]",
        "mica.ones(2, 3, device='meta')",
        "mica.ones(2**40, device='meta')",
        "mica.ones(2**20, 2**21, 2**21, dtype=mica.uint8, device='meta')",
        "mica.ones(1, 1, 1, 1, 1, 1, 1, 1, 1, 1)",
        "mica.tensor(3)",
        "mica.tensor(True)",
        "mica.ones(7, 5)",
        "None",
        "3",
        "2.5",
        "'a'",
        "[1.0, 2.0]",
        "object()",
    ],
)
INTS = (
    ["0", "1", "-1", "2", "3"],
    ["-2", "100", "-100", "2**40", "2**63 - 1", "-2**63", "2**63", "-2**70", "None", "1.5", "'a'", "True",
     "mica.tensor(1)", "mica.tensor(1.5)", "mica.ones(2)", "[1]"],
)  # fmt: skip
INT_LISTS = (
    ["[0]", "[1]", "[-1]", "[0, 1]", "[1, 1]", "[2, 3]", "[3]", "2", "[1, 0]"],
    ["[]", "()", "[2, 2, 2]", "[0, 0]", "[100]", "[-100]", "[-1, -1]", "[2**40]", "[2**20, 2**21]",
     "[2**62, 4]", "[2**63 - 1, 2**63 - 1]", "[-2**63]", "[2**64]", "[1] * 70", "None", "[1.5]", "['a']", "'a'",
     "[None]", "[-5, 3]", "mica.tensor([1, 2])", "[mica.tensor(1)]", "1.5"],
)  # fmt: skip
FLOATS = (
    ["0.5", "1.0", "0.0", "2"],
    ["-1.0", "float('nan')", "float('inf')", "-float('inf')", "1e308", "1e-320", "10**400", "None", "'a'",
     "1j", "True", "mica.tensor(0.5)", "[0.5]"],
)  # fmt: skip
SCALARS = (
    ["1", "2.5", "0", "-1", "3"],
    ["True", "1j", "float('nan')", "float('inf')", "2**62", "-2**63", "2**63", "2**64", "-2**70", "1e308", "None",
     "'a'", "mica.tensor(2)", "mica.ones(2)", "[1]", "300"],
)  # fmt: skip
POOLS: dict[str, tuple[list[str], list[str]]] = {
    "Tensor": TENSORS,
    "int": INTS,
    "SymInt": INTS,
    "int[]": INT_LISTS,
    "SymInt[]": INT_LISTS,
    "float": FLOATS,
    "Scalar": SCALARS,
    "float[]": (["[0.5]", "[1.0, 2.0]"], ["[]", "[float('nan')] * 3", "['a']", "None", "0.5", "[None]"]),
    "bool": (["True", "False"], ["None", "1", "'a'", "mica.tensor(True)"]),
    "bool[]": (["[True]", "[True, False, True]"], ["[]", "None", "[None]", "True", "['a']"]),
    "str": (
        ["'mean'", "'none'", "'sum'", "'floor'", "'trunc'", "'constant'", "'reflect'", "'ij'", "'ij,jk->ik'"],
        ["''", "'tanh'", "'a\\0b'", "'\\ud800'", "'...->'", "'i->ii'", "'é'", "None", "3", "b'mean'", "'x' * 5000"],
    ),
    "ScalarType": (
        ["mica.float32", "mica.int64", "mica.float64", "mica.bool"],
        ["mica.complex64", "mica.float16", "mica.float8_e5m2", "mica.uint16", "None", "'float32'", "float", "3",
         "object"],
    ),
    "Device": (["'cpu'", "mica.device('cpu')"], ["'meta'", "'cuda'", "'cpu:7'", "''", "None", "5", "-1", "'a:b:c'"]),
    "Layout": (["None"], ["3"]),
    "MemoryFormat": (
        ["mica.contiguous_format", "mica.preserve_format"],
        ["mica.channels_last", "None", "3", "'a'"],
    ),
    "Generator": (["None", "mica.Generator()"], ["3", "mica.Generator('meta')", "'a'"]),
    "Tensor[]": (
        ["[mica.ones(2, 3)] * 2", "[mica.ones(3)]", "[mica.ones(3, 3), mica.ones(2, 3)]",
         "(mica.ones(2, 3), mica.arange(6).reshape(2, 3))", "[mica.tensor([0, 1])]"],
        ["[]", "[None]", "None", "mica.ones(2, 3)", "[mica.ones(3), 1]", "[mica.ones(2), mica.ones(2, device='meta')]",
         "[mica.ones(0), mica.ones(2, 3)]", "[mica.tensor(1.0)] * 2", "[mica.ones(2**40, device='meta')] * 3",
         "[mica.tensor([5, -9])]", "[mica.tensor([True, False])]", "[None, mica.tensor([1])]", "'ab'",
         "[mica.ones(1)] * 300", "[mica.ones(2, dtype=mica.complex64), mica.ones(2)]"],
    ),
    "Scalar[]": (["[1]", "[1, 2.0]"], ["[]", "None", "['a']", "[1j]"]),
}  # fmt: skip
# What CPython itself says of a call that does not fit a function or a method.
PYTHON_SAYS = re.compile(
    r"descriptor '|unbound method |.* unexpected keyword argument '|.* missing \d+ required |.* got multiple values for |"
    r".* takes .* arguments?|.* object is not callable|int too large to convert to float"
)
# A sentence: a capital, a name or a number first; a full stop or a list's colon at the first line's end.
SENTENCE = re.compile(r"\A[A-Z`'\"(\[\d_a-z:.]+.*[.:)]$", re.M)


class Drawer:
    """Draws argument texts for schemas and calls; everything follows from the seed."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.code: dict[str, CodeType] = {}

    def value(self, text: str) -> Any:
        if text not in self.code:
            self.code[text] = compile(text, "<argument>", "eval")
        return eval(self.code[text], {"mica": mica, "near": near})

    def argument(self, type_text: str, bad: float) -> str:
        kind = re.sub(r"\([^)]*\)", "", type_text).replace("?", "")
        kind = re.sub(r"\[\d+\]", "[]", kind)
        if type_text.endswith("?") and self.random.random() < 0.3:
            return "None"
        right, wrong = POOLS[kind]
        return self.random.choice(wrong if self.random.random() < bad else right)


def arguments_of(schema: str) -> list[tuple[str, str, bool, bool]]:
    """(type, name, keyword only, has a default) of each argument."""
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    result, keyword_only, depth, piece = [], False, 0, ""
    for c in inside + ",":
        depth += (c in "([") - (c in ")]")
        if c != "," or depth:
            piece += c
            continue
        text, piece = piece.strip(), ""
        if text == "*":
            keyword_only = True
        elif text:
            type_text, rest = re.fullmatch(r"([^ (]*(?:\([^)]*\))?\S*) (.*)", text).groups()
            name, equals, _ = rest.partition("=")
            result.append((type_text, name, keyword_only, bool(equals)))
    return result


def read(result: Any) -> None:
    """Reads every element and runs the backward, so that a bad view or graph shows."""
    if isinstance(result, (list, tuple)):
        for r in result[:50]:
            read(r)
    elif isinstance(result, mica.Tensor):
        repr(result)
        if result.device.type == "cpu" and 0 < result.numel() < 10_000:
            result.detach().clone().tolist()
            if result.requires_grad:
                (result.abs() if result.is_complex() else result).sum().backward()


class Run:
    """One shard of the operators."""

    def __init__(self, seed: str, calls: int, log: str) -> None:
        self.seed, self.calls = seed, calls
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT)
        self.wrong: dict[str, str] = {}
        self.made = self.returned = 0

    def attempt(
        self, drawer: Drawer, name: str, function: str, texts: list[str], named: dict[str, str]
    ) -> None:
        call = f"{function}({', '.join(texts + [f'{k}={v}' for k, v in named.items()])})"
        line = f"{name}\t{call}\n".encode(errors="replace")
        os.ftruncate(self.log, 0)
        os.pwrite(self.log, line, 0)
        try:
            values = [drawer.value(t) for t in texts]
            keywords = {k: drawer.value(v) for k, v in named.items()}
            target = drawer.value(function)
        except AttributeError:
            return
        self.made += 1
        signal.setitimer(signal.ITIMER_REAL, SECONDS_PER_CALL)
        try:
            read(target(*values, **keywords))
            self.returned += 1
        except ALLOWED as error:
            message = str(error)
            if "nternal error" in message:
                self.report(name, call, f"internal: {message}")
            elif not SENTENCE.match(message) and not PYTHON_SAYS.match(message):
                self.report(name, call, f"no sentence: {type(error).__name__}: {message!r}")
        except UnicodeEncodeError:
            pass
        except BaseException as error:
            self.report(name, call, f"{type(error).__name__}: {error}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def report(self, name: str, call: str, what: str) -> None:
        key = f"{name} {what[:60]}"
        if key not in self.wrong:
            self.wrong[key] = what
            print(f"WRONG {name}: {call}\n      {what[:600]}", flush=True)

    def operator(self, name: str) -> None:
        drawer = Drawer(f"{self.seed} {name}")
        schema = _C._find_operator(name).schema
        arguments = arguments_of(schema)
        lists = "Tensor[]" in schema.rpartition("->")[2]
        base = name.partition("::")[2].partition(".")[0]
        overload = name.partition(".")[2] or "default"
        functions = [f"getattr(mica.ops.mica.{base}, '{overload}')", f"mica.{base}", f"mica.Tensor.{base}"]
        samples = calls_of(name)
        for i in range(self.calls):
            if samples and i % 2:
                texts, named = self.near_miss(drawer, arguments, drawer.random.choice(samples))
            else:
                texts, named = self.random_call(drawer, arguments, lists)
            self.attempt(drawer, name, functions[i // 2 % 3], texts, named)

    def near_miss(
        self, drawer: Drawer, arguments: list[tuple[str, str, bool, bool]], sample: Call
    ) -> tuple[list[str], dict[str, str]]:
        """Arguments of a sample call, one of them spoilt, and outputs where the operator takes them."""
        types = {argument: type_text for type_text, argument, _, _ in arguments}

        def draw(place: int | str) -> str:
            return drawer.argument(arguments[place][0] if isinstance(place, int) else types[place], 0.5)

        texts, named = NearMisses(drawer.random).call(sample, draw)
        for type_text, argument, keyword_only, default in arguments[len(texts) :]:
            if keyword_only and not default and argument not in named:
                named[argument] = drawer.argument(type_text, 0.1)
        return texts, named

    def random_call(
        self, drawer: Drawer, arguments: list[tuple[str, str, bool, bool]], lists: bool
    ) -> tuple[list[str], dict[str, str]]:
        """Arguments of the schema's types, mostly wrong or mostly right."""
        bad = drawer.random.choice([0.0, 0.1, 0.3, 0.8])
        texts, named = [], {}
        for type_text, argument, keyword_only, default in arguments:
            if default and drawer.random.random() < 0.5:
                keyword_only = True
                if drawer.random.random() < 0.7:
                    continue
            text = drawer.argument(type_text, bad)
            if lists and "2**" in text and "mica" in text:
                continue  # 2**40 results of one element each are what was asked for
            if keyword_only or named:
                named[argument] = text
            else:
                texts.append(text)
        if drawer.random.random() < 0.05:
            texts = texts[:-1] if drawer.random.random() < 0.5 else [*texts, "mica.ones(2)"]
        if drawer.random.random() < 0.02:
            named["nonsense"] = "1"
        return texts, named


def main() -> None:
    seed, calls, shard, shards, log, *chosen = sys.argv[1:]
    warnings.simplefilter("ignore")
    if "ASAN_OPTIONS" in os.environ:
        mica.set_memory_limit(MOST_MEMORY // 6, "cpu")
    else:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    names = (chosen or sorted(_C._operator_names()))[int(shard) :: int(shards)]
    skip = os.environ.get("MICA_TEST_SKIP", "").split()
    run = Run(seed, int(calls), log)
    for name in names:
        if name not in skip:
            run.operator(name)
    print(f"{run.made} calls, {run.returned} returned, {len(run.wrong)} wrong")


if __name__ == "__main__":
    main()
