"""Operators that a plugin calls as C functions (<mica/calls.h>), built by gcc, and by clang with another
standard library: what they compute and raise, what is refused, and what replacing kernels does to them."""

from __future__ import annotations

import json
import re

import pytest

from build import CXX, LIBCXX, plugin, python

COMPILERS = {"gcc": CXX, "libc++": LIBCXX}


def answer_of(program: str, compiler: str = "gcc", *arguments: str) -> object:
    caller = str(plugin("caller.cc", compiler=COMPILERS[compiler]))
    result = python("import json, sys, mica\nmica.load_plugin(sys.argv[1])\n" + program, caller, *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


VARIOUS = """
x = mica.arange(6.0, dtype=mica.float64).reshape(3, 2)
joined = mica.cat([(x + 2 * mica.ones(3, 2, dtype=mica.float64))[:2], x])
joined[:1] = 1
expected = joined + joined.sum() * mica.ones(1, 2, dtype=mica.float64)
print(json.dumps([mica.ops.test_caller.various(x).tolist(), expected.tolist()]))
"""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_arguments_of_each_kind(compiler: str) -> None:
    computed, expected = answer_of(VARIOUS, compiler)
    assert computed == expected


ERRORS = """
said = []
for f in (mica.ops.test_caller.product, mica.matmul):
    try:
        f(mica.ones(2, 3), mica.ones(2, 3))
    except Exception as error:
        said.append([type(error).__name__, str(error)])
print(json.dumps(said))
"""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_error_comes_back_as_a_status(compiler: str) -> None:
    """What the core throws does not reach the plugin's frames, whose C++ may be another."""
    (kind, said), (expected_kind, expected) = answer_of(ERRORS, compiler)
    assert kind == expected_kind
    assert said.splitlines()[0] == expected.splitlines()[0]
    assert "in mm(Tensor self, Tensor mat2) -> Tensor, at layer cpu" in said


LIES = """
said = []
for which in range(4):
    try:
        mica.ops.test_caller.lie(which)
        said.append("nothing")
    except Exception as error:
        said.append(type(error).__name__ + ": " + str(error).splitlines()[0])
print(json.dumps(said))
"""
SENTENCES = [
    r"TypeError: The call of operator mica::add.Tensor by a plugin's layer is a function \(MicaTensor\*\) -> "
    r"MicaTensor\* behind its operator, where the schema add.Tensor\(.*\) -> Tensor asks for \(MicaTensor\*, "
    r"MicaTensor\*, MicaScalar\) -> MicaTensor\*\.",
    r"TypeError: .*\(MicaTensor\*, MicaIntSpan, MicaScalar\) -> MicaTensor\* behind .* asks for \(MicaTensor\*, "
    r"MicaTensor\*, MicaScalar\)",
    r"TypeError: .*mica::neg .*\(MicaTensor\*\) -> void behind .* asks for \(MicaTensor\*\) -> MicaTensor\*\.",
    r"RuntimeError: No operator has the name \(mica::nobodys\)",
]


def test_a_wrong_signature_is_a_sentence_at_first_use() -> None:
    said = answer_of(LIES)
    for sentence, pattern in zip(said, SENTENCES, strict=True):
        assert re.match(pattern, sentence), sentence


REPLACED = """
import threading, time
mica.load_plugin(sys.argv[2])
x = mica.ones(3)
wrong, seen, stop = [], set(), threading.Event()
def work():
    while not stop.is_set():
        wrong.append(mica.ops.test_caller.wrong(x, 20000))  # without the interpreter's lock
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for turn in range(10000):
    mica.disable_plugin("neg")
    time.sleep(0)
    mica.enable_plugin("neg")
    time.sleep(0)
    seen.add(mica.ops.test_caller.calls())
    if len(seen) > 200:
        break
stop.set()
for thread in threads:
    thread.join()
print(json.dumps([sum(wrong), len(wrong), len(seen)]))
"""


def test_calls_while_other_threads_replace_the_kernels() -> None:
    """A table that was replaced is not called by: the function reads the operator's at each call."""
    wrong, calls, seen = answer_of(REPLACED, "gcc", str(plugin("neg.cc", compiler=CXX)))
    assert wrong == 0
    assert calls > 0
    assert seen > 200  # calls went on from turn to turn
