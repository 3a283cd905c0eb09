"""Tier T2 from C11: a layer and a frame kind that work, and each way to register them wrongly,
which is refused by one sentence and leaves the process as it was.

Every load runs in a process of its own, so that a crash is a failure with a name.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from layers import needs

from build import CXX, LIBCXX, ROOT, plugin, python

BUILD = Path(os.environ["MICA_BUILD_DIR"])

# (options for the compiler, what the message says)
ERRORS = {
    "an unknown neighbour": (['-DAFTER="nobody"'], r"Layer \(test.count\) names an unknown neighbour \(nobody\)"),
    "itself as neighbour": (['-DAFTER="test.count"'], r"names an unknown neighbour \(test.count\)"),
    "a cycle": (['-DAFTER="Autograd"', '-DBEFORE="frames"'], r"which makes a cycle: Autograd stands after frames"),
    "no bit left": (["-DLIE_FULL"], r"No bit is free for layer \(filler.\w\) between \(frames\) and \(autograd\)"),
    "no room at all": (['-DAFTER="Frame"', '-DBEFORE="FrameEscape"'], r"No bit is free for layer \(test.count\)"),
    "a layer of Mica's": (['-DLAYER="Autograd"'], r"Layer \(Autograd\) is one of Mica's own"),
    "a layer with a backend's name": (['-DLAYER="cpu"'], r"The name \(cpu\) of a layer is taken"),
    "a kind of Mica's": (["-DLIE_KIND_NAME"], r"frame kind \(grad\) is registered by plugin \(autograd\) already"),
    "a kind's record of a wrong size": (["-DLIE_KIND_SIZE"], "frame kind by a record that is NULL or too small"),
    "a kernel's record of a wrong size": (["-DLIE_RECORD_SIZE"], "by a record that is NULL, too small"),
    "a kernel at an unknown key": (["-DLIE_KEY"], r"\(somebody.elses\), which is neither a layer nor"),
    "a kernel of two functions": (["-DLIE_TWO_FUNCTIONS"], "must have one function, boxed or unboxed"),
    "a kernel of no function": (["-DLIE_NO_FUNCTION"], "must have one function, boxed or unboxed"),
    "an unboxed kernel of no schema": (["-DLIE_NO_HASH"], "names no operator or no schema_hash"),
    "a rule's record of a wrong size": (["-DRULE=8"], "registers a rule by a record that is NULL, too small"),
    "a rule without a function": (["-DRULE=sizeof rule, LAYER"], "without a key or a function"),
    "a rule at an unknown key": (["-DRULE=sizeof rule, \"nobodys\", &choose"], r"\(nobodys\), which is neither a layer nor"),
    "a rule for a backend": (['-DRULE=sizeof rule, "cpu", &choose'], r"a rule for \(cpu\), which is neither a layer nor"),
    "another version of the table": (["-DMINOR=77"], "failed to start: this Mica has no such table of layers"),
    "an init that fails at its end": (["-DLIE_HALFWAY"], "failed to start: the licence is not there"),
}  # fmt: skip

REFUSED = """
import json, sys, mica
answer = {}
mica.func.grad(lambda x: x.sum())(mica.ones(2))  # the kinds of Mica's own are there
try:
    mica.load_plugin(sys.argv[1])
except RuntimeError as error:
    answer["error"] = str(error)
for face, name in [("layer", "test.count"), ("layer", "filler.A"), ("frame", "layer.kind")]:
    try:
        with getattr(mica.library, face)(name):
            answer[name] = "is there"
    except RuntimeError as error:
        answer[name] = str(error)
mica.load_plugin(sys.argv[2])
with mica.library.layer("test.count"), mica.library.frame("honest.kind"):
    x = mica.ones(2).exp() + 1
answer["calls"] = mica.ops.test_layer.calls()
print(json.dumps(answer))
"""


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_is_one_sentence_and_leaves_nothing(error: str) -> None:
    options, sentence = ERRORS[error]
    result = python(REFUSED, str(plugin("layer.c", *options)), str(plugin("layer.c", '-DNAME="honest"')))
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert re.search(sentence, answer["error"]), answer["error"]
    assert "\n" not in answer["error"]
    for name in ("test.count", "filler.A"):
        assert f"No layer is named ({name})" in answer[name]
    assert "No transform has the name (layer.kind)" in answer["layer.kind"]
    assert answer["calls"] == 3  # ones, exp and add


def answer_of(program: str, *options: str) -> object:
    result = python("import json, sys, mica\n" + program, str(plugin("layer.c", *options)))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


LEFT_OUT = """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    mica.load_plugin(sys.argv[1])
with mica.library.frame("layer.kind"):
    value = mica.ones(2).neg()[0].item()
print(json.dumps([value, [str(w.message) for w in said]]))
"""


def test_an_unboxed_kernel_of_another_schema_is_left_out_by_name() -> None:
    value, said = answer_of(LEFT_OUT, "-DLIE_HASH")
    assert value == -1
    assert "(mica::neg) at (layer.kind) was built for another schema" in " ".join(said)
    assert answer_of(LEFT_OUT) == [1, []]


OWNED = """
mica.load_plugin(sys.argv[1])
try:
    mica.load_plugin(sys.argv[2])
except RuntimeError as error:
    first = str(error)
mica.disable_plugin("layer")
mica.load_plugin(sys.argv[2])
with mica.library.layer("test.count"):
    mica.ones(2).exp()
print(json.dumps([first, mica.ops.test_layer.calls()]))
"""


def test_a_layer_has_one_owner_until_that_is_disabled() -> None:
    other = str(plugin("layer.c", '-DNAME="other"'))
    result = python("import json, sys, mica\n" + OWNED, str(plugin("layer.c")), other)
    assert result.returncode == 0, result.stderr
    first, calls = json.loads(result.stdout)
    assert "The layer (test.count) is registered by plugin (layer) already" in first
    assert calls == 2  # ones and exp


ATTACH = """
mica.load_plugin(sys.argv[1])
x, y = mica.ones(2), mica.ones(2)
try:
    mica.ops.test_layer.attach(x, True)
    x.exp(), y.exp(), (x + y)
    on = mica.ops.test_layer.calls()
    mica.ops.test_layer.attach(x, False)
    before = mica.ops.test_layer.calls()  # attach itself has x, and passes the layer
    x.exp()
    print(json.dumps([on, mica.ops.test_layer.calls() - before]))
except ValueError as error:
    print(json.dumps(str(error)))
"""


def test_a_layers_bit_on_one_tensor() -> None:
    assert answer_of(ATTACH) == [2, 0]
    assert "Bit (48) is not of a layer that a plugin registered" in str(answer_of(ATTACH, "-DLIE_ATTACH"))


DISABLED = """
mica.load_plugin(sys.argv[1])
x = mica.ones(2)
mica.ops.test_layer.attach(x, True)
with mica.library.frame("layer.kind"):
    mica.disable_plugin("layer")
    try:
        x.exp()
    except NotImplementedError as error:
        inside = str(error)
try:
    with mica.library.frame("layer.kind"):
        pass
except RuntimeError as error:
    outside = str(error)
x.exp()  # its bit stands for nothing now
doctor = [p["name"] for p in mica.plugins() if p["state"] == "disabled"]
mica.enable_plugin("layer")
x.exp()
print(json.dumps([inside, outside, doctor, mica.ops.test_layer.calls()]))
"""


def test_disabling_takes_layer_and_kind_away() -> None:
    inside, outside, disabled, calls = answer_of(DISABLED)
    assert "mica::exp is called inside of the frame kind (layer.kind)" in inside
    assert "the plugin that brought it was disabled meanwhile" in inside
    assert "the plugin that brought it is disabled" in outside
    assert disabled == ["layer"]
    assert calls == 1


RULE = """
mica.load_plugin(sys.argv[1])
x = mica.ones(2)
passed = []
with mica.library.layer("test.count"):
    for name in ("exp", "neg", "sin", "cos"):
        before = mica.ops.test_layer.calls()
        getattr(x, name)()
        passed.append(mica.ops.test_layer.calls() - before - 1)  # calls() passes the layer, too
    explained = str(mica.explain("exp", x))
print(json.dumps([passed, explained]))
"""


def test_a_rule_chooses_for_each_operator() -> None:
    """A choice that is none counts as no rule: the layer's fallback serves."""
    passed, explained = answer_of(RULE, "-DRULE=sizeof rule, LAYER, &choose")
    assert passed == [0, 1, 1, 1]
    assert "test.count: by the layer's rule it has nothing to do for this operator" in explained


OTHERS_RULE = """
mica.load_plugin(sys.argv[1])
x = mica.ones(2, 2)
with mica.autocast("cpu"):
    print(json.dumps([str((x @ x).dtype), str(x.exp().dtype)]))
"""


def test_a_rule_at_anothers_key_leaves_the_owners_in_place() -> None:
    """It is asked first, and what it has no word for is the owner's."""
    assert answer_of(OTHERS_RULE, '-DRULE=sizeof rule, "Autocast", &choose') == [
        "mica.bfloat16",
        "mica.float32",
    ]


OUT_FORMS = """
mica.load_plugin(sys.argv[1])
x = mica.arange(12.0).reshape(3, 4)
def largest(a):
    values, places = mica.empty(4), mica.empty(4, dtype=mica.int64)
    mica.max(a, 0, out=(values, places))
    least, most = mica.empty(()), mica.empty(())
    mica.aminmax(a, out=(least, most))
    return [t.tolist() for t in (values, places, least, most)]
plain = largest(x)
with mica.library.layer("test.count"):
    within = largest(x)
print(json.dumps([plain, within]))
"""


def test_an_out_form_of_several_results_passes_a_layer() -> None:
    """Its caller has no room for what the schema returns: that is the arguments that it was given."""
    plain, within = answer_of(OUT_FORMS)
    assert plain == [[8, 9, 10, 11], [2, 2, 2, 2], 0, 11]
    assert within == plain


ERRORS_BELOW = """
import mica.library
class Mine(ValueError):
    pass
def raises(x):
    raise Mine("by the kernel", 7)
mica.library.define("test_errors::mine", "(Tensor x) -> Tensor")
mica.library.impl("test_errors::mine", "cpu", raises)
mica.load_plugin(sys.argv[1])
answers = []
def attempt(call):
    try:
        call()
    except Exception as error:
        answers.append([type(error).__name__, str(error)])
calls = [
    lambda: mica.ops.test_errors.mine(mica.ones(2)),
    lambda: mica.linalg.inv(mica.zeros(2, 2)),
    lambda: mica.ones(2, 3) @ mica.ones(2, 3),
    lambda: mica.ones(2)[5],
]
for call in calls:
    attempt(call)
with mica.library.layer("test.count"):
    for call in calls:
        attempt(call)
print(json.dumps([answers, mica.ops.test_layer.calls()]))
"""


def test_an_error_passes_a_layer_as_it_is() -> None:
    """Its class, its text and the call that it names, also where Python raised it."""
    answers, calls = answer_of(ERRORS_BELOW)
    assert calls > 3
    without, within = answers[:4], answers[4:]
    assert [kind for kind, _ in without] == ["Mine", "LinAlgError", "RuntimeError", "IndexError"]
    assert within == without


TAPE = """
mica.load_plugin(sys.argv[1])
print(json.dumps(mica.ops.test_tape.record(mica.ones(2, 3), mica.zeros(3))))
"""


@needs("trace")
def test_a_plugin_traces_and_reads_the_tape() -> None:
    """By the table that the trace plugin offers, which is opened for it."""
    result = python("import json, sys, mica" + TAPE, str(plugin("tape.c")))
    assert result.returncode == 0, result.stderr
    tape = json.loads(result.stdout)
    assert tape == "value 1 dtype 11 of 2 sizes; mica::add.Tensor 2 1 plain 5 -> 3; constant 2 made inside 0"


AUTOCAST = """
x, w = mica.randn(4, 4), mica.randn(4, 4, requires_grad=True)
def step():
    with mica.autocast("cpu"):
        y = mica.nn.functional.linear(x, w)
        loss = mica.nn.functional.softmax(mica.cat([y, x]), -1).sum()
        inner = mica.linalg.inv(mica.eye(3)).dtype
    loss.backward()
    grad, w.grad = w.grad, None
    return [str(t) for t in (y.dtype, loss.dtype, inner, (x @ w).dtype)], grad
ours, grad = step()
mica.replace_plugin(sys.argv[1])
theirs, other = step()
where = [p["path"] for p in mica.plugins() if p["name"] == "autocast" and p["state"] == "loaded"]
expected = ["mica.bfloat16", "mica.float32", "mica.float32", "mica.float32"]
print(json.dumps([ours, theirs, ours == expected and bool((grad == other).all()), where]))
"""


TRACE = """
from mica.fx import make_fx
w = mica.randn(4, 4, requires_grad=True)
def f(x):
    y = (x @ w).relu() * mica.tensor([1.0, 2.0, 3.0, 4.0])
    y[0] += 1
    return mica.autograd.grad(y.sum(), w)[0], x.shape[0] * y
def run():
    real, fake = make_fx(f)(mica.ones(2, 4)), make_fx(f, tracing_mode="symbolic")(mica.ones(2, 4))
    return [real.code, fake.code, [t.tolist() for t in fake(mica.full((3, 4), 2.0))]]
ours = run()
mica.replace_plugin(sys.argv[1])
theirs = run()
where = [p["path"] for p in mica.plugins() if p["name"] == "trace" and p["state"] == "loaded"]
print(json.dumps([ours, theirs, all("mica.ops" in code for code in ours[:2]), where]))
"""


FUNCTIONALIZE = """
from mica.func import functionalize
from mica.fx import make_fx
def f(x, w):
    y = x.clone() * w
    y[0].add_(1)
    y.t()[1].mul_(y.select(0, 1).sum())
    y.as_strided((2,), (3,), 1).copy_(mica.ones(2))
    mica.mul(y.detach(), 2, out=(z := mica.empty(0)))
    x.sub_(1)
    return y, z, mica.nn.functional.gelu(y)
def refused(x):
    w.add_(x)
def run():
    x, texts = mica.arange(6.0).reshape(2, 3), []
    for remove in ("mutations", "mutations_and_views"):
        given = x.clone()
        results = functionalize(f, remove=remove)(given, w)
        texts += [str([given.tolist(), *([t.tolist(), t.stride()] for t in results)])]
        texts += [str(mica.autograd.grad(results[0].sum(), w)[0].tolist())]
        texts += [make_fx(functionalize(f, remove=remove, return_mutations=True))(x.clone(), w).code]
    try:
        functionalize(refused)(x)
    except RuntimeError as error:
        texts.append(str(error))
    return texts
w = mica.ones(2, 3, requires_grad=True)
ours = run()
mica.replace_plugin(sys.argv[1])
theirs = run()
where = [p["path"] for p in mica.plugins() if p["name"] == "functionalize" and p["state"] == "loaded"]
pure = all("sub.Scalar" in code and "sub_" not in code for code in ours[2::3])
print(json.dumps([ours, theirs, pure and "a leaf Variable that requires grad" in ours[-1], where]))
"""


BATCHED = """
import warnings
from mica.func import grad, vmap
x, w, rows = mica.randn(3, 4, 5), mica.randn(5, 6), mica.tensor([[0, 2], [1, 1], [3, 0]])
def late(a):
    made = a.new_zeros(4)
    part = made[1:]
    made[0] = a.sum()
    return part + made.sum(), made
def error(f):
    try:
        f()
    except Exception as e:
        return [type(e).__name__, str(e)]
def run():
    warnings.simplefilter("error")  # nothing runs example by example
    made = vmap(lambda a: mica.zeros(4).index_add(0, mica.tensor([1]), a.sum().reshape(1)))(x)
    mica.manual_seed(3)
    values = [
        vmap(lambda a: (a @ w).relu().sum())(x),
        vmap(lambda a, i: mica.nn.functional.softmax(a[i].t(), 0).var())(x, rows),
        vmap(grad(lambda a: mica.nn.functional.layer_norm(a, (5,)).sin().sum()))(x),
        vmap(lambda a: mica.cat(a.clone().mul_(2).split(1), 1), in_dims=1, out_dims=1)(x),
        vmap(lambda a: a + mica.rand(2, 1, 5), randomness="different")(x[:, :1]),
        *vmap(late)(x),
        made,
    ]
    errors = [
        error(lambda: vmap(lambda a: a.nonzero())(x)),
        error(lambda: vmap(lambda a: a @ mica.ones(4, 4))(x)),
        error(lambda: vmap(lambda a: a + mica.rand(5))(x)),
        error(lambda: vmap(lambda a: a if a.sum() > 0 else -a)(x)),
    ]
    return [[v.tolist(), list(v.stride())] for v in values], errors
ours = run()
mica.replace_plugin(sys.argv[1])
theirs = run()
where = [p["path"] for p in mica.plugins() if p["name"] == "batched" and p["state"] == "loaded"]
right = ours[0][0][0] == (x @ w).relu().sum((1, 2)).tolist() and all(ours[1])
print(json.dumps([ours, theirs, right, where]))
"""


OWN = {"autocast": AUTOCAST, "batched": BATCHED, "functionalize": FUNCTIONALIZE, "trace": TRACE}
OWN = {layer: program for layer, program in OWN.items() if (ROOT / "keys" / layer).is_dir()}


@pytest.mark.parametrize("compiler", [CXX, LIBCXX], ids=["g++", "clang with libc++"])
@pytest.mark.parametrize(("layer", "program"), OWN.items(), ids=OWN.keys())
def test_micas_own_layer_is_built_as_a_third_partys(
    layer: str, program: str, compiler: tuple[str, ...]
) -> None:
    """A layer of keys/ by another compiler and another standard library, against the SDK's headers alone, in
    the place of the one that Mica brings."""
    path = str(plugin(str(ROOT / "keys" / layer), compiler=compiler))
    result = python("import json, sys, mica\n" + program, path)
    assert result.returncode == 0, result.stderr
    ours, theirs, as_expected, where = json.loads(result.stdout)
    assert theirs == ours
    assert as_expected
    assert where == [path]


def instructions(calls: int, *loaded: str) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [str(BUILD / "bin" / "bench_abi"), "tree", str(calls), *loaded]
    environment = {**os.environ, "MICA_PLUGINS_ONLY": "none"}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return int(re.findall(r"Collected : (\d+)", result.stderr)[0])


def test_a_layer_that_is_loaded_and_not_active_costs_no_instruction() -> None:
    layer = str(plugin("layer.c"))
    calls = 20_000
    without = instructions(1000 + calls) - instructions(1000)
    loaded = instructions(1000 + calls, layer) - instructions(1000, layer)
    assert without > 100 * calls
    # A process starts with a few thousand instructions more or less; one a call would be `calls`.
    assert abs(loaded - without) < calls
