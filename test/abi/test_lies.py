"""A plugin that lies is refused by name, with the rule that it broke; what it had
registered is taken back; the process goes on.

Each lie is one row: the macro that plugins/liar.c is built with, and what the
message must say. Every load runs in a process of its own, so that a crash is a
failure with a name.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from build import CXX, plugin, python

# (options for the compiler, what the message says)
LIES = {
    "wrong ABI number": (["-DABI=2"], r"speaks ABI major \(2\); this Mica speaks \(1\)"),
    "no ABI number": (
        [r'-DNOTE="{\"name\":\"liar\",\"provides\":\"\"}"'],
        r"does not say its ABI: `abi_major` lacks",
    ),
    "empty manifest": ([r'-DNOTE="{}"'], "gives no name"),
    "manifest of no bytes": ([r'-DNOTE=""'], "is not the flat JSON object"),
    "manifest that is no JSON": ([r'-DNOTE="name=liar"'], "is not the flat JSON object"),
    "manifest with a strange name": (
        [r'-DNOTE="{\"name\":\"../liar\",\"abi_major\":1}"'],
        "not made of letters, digits",
    ),
    "no manifest": (["-DLIE_NO_NOTE"], "carries no Mica manifest"),
    "a CPU feature that lacks": (['-DFEATURES="mmx9"'], r"needs the CPU feature \(mmx9\)"),
    "query answers nothing": (["-DLIE_NO_MANIFEST"], "answers its query with no manifest"),
    "query answers another name": (["-DLIE_ANSWER_NAME"], r"`name` \(somebody else\) against \(liar\)"),
    "query answers another ABI": (["-DLIE_ANSWER_ABI"], r"ABI \(2.0\) against \(1.0\)"),
    "query answers other features": (["-DLIE_ANSWER_FEATURES"], r"`cpu_features` \(avx2\) against \(\)"),
    "manifest of a wrong size": (["-DLIE_MANIFEST_SIZE"], r"manifest of struct_size \(8\)"),
    "no query": (["-DLIE_NO_QUERY"], "lacks the entry symbol `mica_plugin_query_v1`"),
    "no init": (["-DLIE_NO_INIT"], "lacks the entry symbol `mica_plugin_init_v1`"),
    "a symbol that lacks": (["-DLIE_MISSING_SYMBOL"], "cannot be opened: .*a_function_of_nowhere"),
    "a table of a wrong size": (["-DLIE_TABLE_SIZE"], r"\(liar.dev\) lacks the mandatory function `copy`"),
    "a table of another ABI": (["-DLIE_TABLE_MAJOR"], r"table of \(liar.dev\) speaks ABI major \(9\)"),
    "a mandatory function lacks": (["-DLIE_NO_COPY"], r"\(liar.dev\) lacks the mandatory function `copy`"),
    "a device of another backend's": (
        ['-DPROVIDES="backend:bad"', '-DDEVICE="cpu"'],
        r"registers the device \(cpu\), and its manifest does not provide \(backend:cpu\); it provides \(backend:bad\)",
    ),
    "a device that it promises alone": (
        ['-DPROVIDES="backend:liar.dev,backend:more"'],
        r"does not register the device \(more\) that its manifest provides",
    ),
    "memory of the host's for DLPack": (["-DLIE_DLPACK=3"], r"the DLPack type \(3\), which is no device's"),
    "no number of DLPack's": (["-DLIE_DLPACK=-2"], r"the DLPack type \(-2\), which is no device's"),
    "no table": (["-DLIE_NULL_TABLE"], "without a name or without a table"),
    "a device's name": (["-DLIE_DEVICE_NAME"], r"backend name \(9 no name!\) is not made of"),
    "a duplicate operator": (["-DLIE_DUPLICATE_OPERATOR"], r"Operator \(liar::seven\) is defined twice"),
    "an operator that exists": (["-DLIE_TAKEN_OPERATOR"], r"Operator \(mica::add.Tensor\) is defined already"),
    "a bad schema": (["-DLIE_BAD_SCHEMA"], r"Type \(Tensr\) is unknown"),
    "no schema": (["-DLIE_NULL_SCHEMA"], "registers a schema and gives NULL"),
    "two kernels for one place": (["-DLIE_DUPLICATE_KERNEL"], r"\(liar::seven\) gets two kernels"),
    "a kernel for an unknown backend": (["-DLIE_BACKEND"], r"\(somebody.elses\), which is neither a layer"),
    "no record": (["-DLIE_NULL_RECORD"], "registers a kernel record and gives NULL"),
    "a record of a wrong size": (["-DLIE_RECORD_SIZE"], r"kernel record has the struct_size \(16\)"),
    "a record without function": (["-DLIE_NO_FUNCTION"], r"\(liar::seven\) has no function"),
    "an unknown class": (["-DLIE_CLASS"], r"Class \(no such class\) is unknown"),
    "init fails halfway": (["-DLIE_HALFWAY"], "failed to start: the driver is not there"),
    "init fails with a bare code": (["-DLIE_BARE_STATUS"], "failed to start: .*out of memory"),
    "a status of a wrong size": (["-DLIE_STATUS_SIZE"], r"a status of struct_size \(8\)"),
}  # fmt: skip

# The same for an operator that runs from data: options for plugins/from_data.c.
DATA_LIES = {
    "an unknown class": (
        '-DCLASS="weave"',
        r"The class \(weave\) of the operator \(liar::twice\) does not run",
    ),
    "an unknown dtype rule": ("-DRULE=77", r"dtype rule \(77\) .* expected 0 \(MICA_RULE_PROMOTE\) to 9"),
    "an unknown dtype": ("-DRULE=8", r"fixed dtype \(-1\) of the operator \(liar::twice\) is unknown"),
    "no such argument": ("-DDTYPE_ARG=2", r"number \(2\) in `dtype_arg` .* expected -1 to 1"),
    "an opcode of later days": (
        "-DOPCODE=9999",
        r"opcode \(9999\) of the operator \(liar::twice\) is unknown",
    ),
    "a register it has not": ("-DOPERAND=200", r"MUL of the operator \(liar::twice\) uses register 200"),
    "an input it has not": ("-DINPUT=1", r"LOAD of the operator \(liar::twice\) names number 1; .* has 1"),
    "an input of no argument": ("-DINPUT_ARG=-3", r"number \(-3\) in `input_args` .* expected 0 to 1"),
    "too many registers": ("-DREGISTERS=300", r"has \(300\) registers; expected 0 to 254"),
    "results it has not": ("-DOUTPUTS=2", r"stores \(2\) results; its schema has 1"),
    "too many states": ("-DSTATES=65", r"states 0 to 65 .* at most 64"),
    "a program of a wrong size": ("-DPROGRAM_SIZE=8", r"struct_size \(8\); ABI 1.0 asks for"),
}

LOAD = """
import json, sys, mica
answer = {"error": "", "operators": []}
try:
    mica.load_plugin(sys.argv[1])
except RuntimeError as error:
    answer["error"] = str(error)
answer["operators"] = [n for n in mica._C._operator_names() if n.split("::")[0] in ("liar", "thrower")]
[answer["state"]] = [p["state"] for p in mica.plugins() if p["path"] == sys.argv[1]]
answer["goes_on"] = (mica.ones(3) + mica.ones(3)).tolist()
answer["neg"] = mica.neg(mica.ones(1)).tolist()
answer["tiny"] = float(mica.tensor(1e-310, dtype=mica.float64).item() * 1.0)
print(json.dumps(answer))
"""


def load(path: Path, **environment: str) -> tuple[dict[str, object], str]:
    """What became of a plugin, and what stderr said."""
    result = python(LOAD, str(path), **environment)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.splitlines()[-1]), result.stderr


def goes_on(answer: dict[str, object]) -> bool:
    return answer["goes_on"] == [2.0, 2.0, 2.0] and answer["neg"] == [-1.0]


def test_honest_plugin_loads() -> None:
    answer, _ = load(plugin("liar.c"))
    assert answer["error"] == ""
    assert answer["operators"] == ["liar::seven"]
    assert answer["state"] == "loaded"
    assert goes_on(answer)


@pytest.mark.parametrize("lie", LIES)
def test_lie_is_refused_with_its_rule(lie: str) -> None:
    options, message = LIES[lie]
    path = plugin("liar.c", *options)
    answer, _ = load(path)
    assert path.name in str(answer["error"])
    assert re.search(message, str(answer["error"]))
    assert answer["state"] == "refused"
    assert answer["operators"] == []
    assert goes_on(answer)


def test_honest_operator_from_data_runs() -> None:
    run = "import sys, mica; mica.load_plugin(sys.argv[1]); print(mica.ops.liar.twice(mica.ones(2), by=3).tolist())"
    assert python(run, str(plugin("from_data.c"))).stdout == "[3.0, 3.0]\n"


@pytest.mark.parametrize("lie", DATA_LIES)
def test_lie_in_an_operators_data_is_refused(lie: str) -> None:
    option, message = DATA_LIES[lie]
    answer, _ = load(plugin("from_data.c", option))
    assert re.search(message, str(answer["error"]))
    assert answer["state"] == "refused"
    assert answer["operators"] == []
    assert goes_on(answer)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("-DLIE_INIT", "thrown in init"),
        ("-DLIE_QUERY", "thrown in query"),
        ("-DLIE_THROW_INT", "no std::exception"),
    ],
)
def test_exception_stops_at_the_border(option: str, message: str) -> None:
    answer, _ = load(plugin("thrower.cc", option, compiler=CXX))
    assert "lets an exception pass its C border" in str(answer["error"])
    assert message in str(answer["error"])
    assert answer["operators"] == []
    assert goes_on(answer)


def test_kernel_of_another_schema_is_left_out_alone() -> None:
    answer, stderr = load(plugin("liar.c", "-DLIE_HASH"))
    assert answer["state"] == "loaded"
    assert answer["operators"] == ["liar::seven"]
    assert "(mica::neg.out) at (cpu) was built for another schema" in stderr
    assert goes_on(answer)


def test_kernel_with_a_signature_that_cannot_be_called_is_left_out() -> None:
    answer, stderr = load(plugin("liar.c", "-DLIE_UNBOXED"))
    assert answer["state"] == "loaded"
    assert "(liar::seven) at (cpu) has no boxed function" in stderr


def test_slow_start_is_said_while_it_lasts() -> None:
    path = plugin("liar.c", "-DLIE_SLOW")
    answer, stderr = load(path, MICA_PLUGIN_SLOW_SECONDS="0.2")
    assert answer["state"] == "loaded"
    assert f"Plugin (liar) at ({path}) has been starting for (0.2) s" in stderr
    _, quiet = load(path)
    assert "has been starting" not in quiet


def test_init_that_never_comes_back_is_refused_and_what_it_registered_is_gone() -> None:
    path = plugin("liar.c", "-DLIE_FOREVER")
    answer, stderr = load(path, MICA_PLUGIN_START_SECONDS="1", MICA_PLUGIN_SLOW_SECONDS="0.3")
    assert f"Plugin ({path}) had not started after (1) s: its init has not come back" in str(answer["error"])
    assert "has been starting for (0.3) s" in stderr
    assert answer["state"] == "refused"
    assert answer["operators"] == []
    assert goes_on(answer)


def test_init_that_comes_back_too_late_registers_nothing() -> None:
    # It sleeps 1.5 s before its last registration, which is refused then.
    program = """
import sys, time, mica
try:
    mica.load_plugin(sys.argv[1])
except RuntimeError as error:
    print("had not started" in str(error))
time.sleep(1.5)
print([n for n in mica._C._operator_names() if n.startswith("liar")], mica.neg(mica.ones(1)).tolist())
"""
    path = plugin("liar.c", "-DLIE_SLOW")
    result = python(program, str(path), MICA_PLUGIN_START_SECONDS="0.5")
    assert result.stdout == "True\n[] [-1.0]\n", result.stderr


@pytest.mark.parametrize("option", ["-DLIE_MXCSR", "-DLIE_CONSTRUCTOR_MXCSR"])
def test_loading_leaves_the_floating_point_environment(option: str) -> None:
    answer, _ = load(plugin("liar.c", option))
    assert answer["state"] == "loaded"
    assert answer["tiny"] == 1e-310


def test_second_plugin_of_a_name_names_both_files() -> None:
    first, second = plugin("liar.c"), plugin("liar.c", "-DLIE_WAITING")
    program = """
import sys, mica
mica.load_plugin(sys.argv[1])
mica.load_plugin(sys.argv[1])
try:
    mica.load_plugin(sys.argv[2])
except RuntimeError as error:
    print(error)
print([p["state"] for p in mica.plugins() if p["path"] in sys.argv[1:]])
mica.disable_plugin("liar")
mica.load_plugin(sys.argv[2])
print([p["state"] for p in mica.plugins() if p["path"] in sys.argv[1:]])
"""
    result = python(program, str(first), str(second))
    assert result.returncode == 0, result.stderr
    message, states, swapped = result.stdout.splitlines()
    assert message.startswith("Two plugins have the name (liar)")
    assert str(first) in message
    assert str(second) in message
    assert states == "['loaded', 'refused']"
    assert swapped == "['disabled', 'loaded']"


def test_one_file_by_two_paths_is_one_plugin(tmp_path: Path) -> None:
    path = plugin("liar.c")
    link = tmp_path / "link.so"
    link.symlink_to(path)
    program = "import sys, mica\nfor p in sys.argv[1:]: mica.load_plugin(p)\nprint(len([p for p in mica.plugins() if p['name'] == 'liar']))"
    result = python(program, str(path), str(link))
    assert result.stdout == "1\n", result.stderr


def test_kernel_whose_function_does_not_fit_the_schema_is_left_out() -> None:
    program = """
import json, sys, mica
mica.load_plugin(sys.argv[1])
x = mica.tensor([-1.0, 2.0])
print(json.dumps([mica.add(x, x).tolist(), mica.nn.functional.threshold(x, 0, 5).tolist(), (-x).tolist(),
                  x.abs().tolist(), x.tolist()]))
"""
    result = python(program, str(plugin("misfit.cc", compiler=CXX)))
    assert result.returncode == 0, result.stderr
    added, threshold, negative, absolute, x = json.loads(result.stdout)
    assert (added, threshold, negative) == ([-2.0, 4.0], [5.0, 2.0], [1.0, -2.0])
    assert absolute == [7.0, 7.0]  # the kernel that fits serves
    assert x == [-1.0, 2.0]
    for operator, given, asked in [
        ("add.Tensor", "(MicaTensor*, MicaTensor*, MicaScalar, MicaTensor*) -> void",
         "(MicaTensor*, MicaTensor*, MicaScalar) -> MicaTensor*"),
        ("add.out", "(MicaTensor*, MicaScalar, MicaTensor*, MicaTensor*) -> void",
         "(MicaTensor*, MicaTensor*, MicaScalar, MicaTensor*) -> void"),
        ("threshold.out", "(MicaTensor*, double, another type, MicaTensor*) -> void",
         "(MicaTensor*, MicaScalar, MicaScalar, MicaTensor*) -> void"),
        ("neg.out", "(MicaTensor*, MicaTensor*) -> MicaTensor*", "(MicaTensor*, MicaTensor*) -> void"),
    ]:  # fmt: skip
        (said,) = [
            line for line in result.stderr.splitlines() if f"({operator})" in line or f"::{operator})" in line
        ]
        assert f"is a function {given} behind its MicaCall" in said
        assert f"asks for {asked}." in said
        assert "It is left out" in said
