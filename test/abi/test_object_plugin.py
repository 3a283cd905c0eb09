"""Objects of a plugin's own type as arguments and results of its operators, through the C border: they travel,
outlive the plugin's being disabled, and a plugin that lies about one is told so."""

from __future__ import annotations

import pytest
from record import BASELINE

from build import plugin, python

GOLDEN = BASELINE.parent.parent / "golden" / "1.0" / "objects.so"

USE = """
import copy, gc, pickle, sys, mica
mica.load_plugin(sys.argv[1])
ops = mica.ops.objects
seven = ops.make(7)
assert isinstance(seven, mica.library.Object) and seven.type_name == "objects.Number", seven
assert repr(seven).startswith("<objects.Number object at 0x")
assert ops.value(seven) == 7 and ops.value(number=seven) == 7
assert ops.same(seven) is seven and ops.same() is None and ops.same(None) is None
assert seven == seven and seven != ops.make(7) and len({seven, seven}) == 1
assert ops.ask(0) == 11
for refuse in (copy.copy, copy.deepcopy, pickle.dumps):
    try:
        refuse(seven)
    except TypeError as error:
        assert "type (objects.Number) can be neither pickled nor copied" in str(error), error
    else:
        raise AssertionError(refuse)
try:
    mica.library.Object()
except TypeError:
    pass
else:
    raise AssertionError("an object was made of nothing")
gc.collect()
assert ops.alive() == 1, ops.alive()
mica.disable_plugin("objects")
try:
    ops.value(seven)
except (RuntimeError, NotImplementedError, AttributeError):
    pass
else:
    raise AssertionError("a disabled plugin answered")
another = [seven]
del seven
assert repr(another[0]).startswith("<objects.Number object")
kept = another.pop()
mica.enable_plugin("objects")
assert ops.value(kept) == 7
mica.disable_plugin("objects")
del kept  # its end runs in a plugin that is disabled
mica.enable_plugin("objects")
assert ops.alive() == 0, ops.alive()
print("used")
"""

REFUSED = """
import sys, mica
mica.load_plugin(sys.argv[1])
ops = mica.ops.objects
for call in sys.argv[2:]:
    try:
        print("gave", eval(call))
    except (RuntimeError, TypeError) as error:
        print(type(error).__name__, str(error).splitlines()[0])
assert (mica.ones(2) + mica.ones(2)).tolist() == [2.0, 2.0]
"""


def refused(*calls: str, lie: str = "", **environment: str) -> list[str]:
    """What these calls raised, in a process of their own."""
    options = [lie] if lie else []
    result = python(REFUSED, str(plugin("objects.c", *options)), *calls, **environment)
    assert result.returncode == 0, result.stderr[-2000:]
    return [*result.stdout.splitlines(), *result.stderr.splitlines()]


@pytest.mark.parametrize("recorded", [False, True], ids=["built now", "recorded"])
def test_objects_travel_and_outlive_their_plugin(recorded: bool) -> None:
    path = GOLDEN if recorded else plugin("objects.c")
    result = python(USE, str(path))
    assert result.stdout == "used\n", result.stdout + result.stderr


EXPECTED = "where an object of the type (objects.Number) is expected."
OTHER = "an object of the type (objects.Other), where one of the type (objects.Number) is expected."


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("ops.value(ops.make_other())", f"The argument `number` of objects::value is {OTHER}"),
        ("ops.value.default(3)", "The argument `number` has type (int); expected objects.Number."),
        ("ops.value.default(None)", "The argument `number` has type (NoneType); expected objects.Number."),
        # From the plugin itself, boxed.
        ("ops.ask(1)", f"The argument `number` of objects::value is {OTHER}"),
        ("ops.ask(2)", "The argument `number` of objects::value is an object without a whole MicaObjectType"),
        ("ops.ask(3)", f"The argument `number` of objects::value is NULL, {EXPECTED}"),
        ("ops.ask(4)", f"The argument `number` of objects::value is (None), {EXPECTED}"),
        ("ops.ask(5)", f"The argument `number` of objects::value is (5), {EXPECTED}"),
    ],
)
def test_object_of_another_type_is_refused_by_both_names(call: str, said: str) -> None:
    [answer] = refused(call)
    assert answer.startswith(f"TypeError {said}")


@pytest.mark.parametrize(
    ("lie", "returned"),
    [
        ("-DLIE_OTHER_TYPE", "an object of the type (objects.Other), where one of the type (objects.Number) is expected"),
        ("-DLIE_NAMELESS_TYPE", "an object without a whole MicaObjectType, where one of the type"),
        ("-DLIE_NO_TYPE", "an object without a whole MicaObjectType, where one of the type"),
        ("-DLIE_NULL", "NULL, where an object of the type (objects.Number) is expected"),
        ("-DLIE_NO_REFERENCE", "an object of the type (objects.Number) whose last reference was released"),
        ("-DLIE_INT", "a value of the tag (2)"),
    ],
)  # fmt: skip
def test_lie_about_a_result_is_refused(lie: str, returned: str) -> None:
    [said] = refused("ops.make(1)", lie=lie)
    assert said.startswith(f"RuntimeError The kernel of objects::make at (cpu) returned {returned}")
    assert "its schema says is a value of the type objects.Number" in said


def test_python_object_of_the_same_name_is_passed_on_and_not_read() -> None:
    program = """
import sys, time, weakref, mica
mica.load_plugin(sys.argv[1])
ops = mica.ops.objects

@mica.library.register_object_type("objects.Number")
class Number:
    pass

mine = Number()
assert ops.same(mine) is mine and ops.value(ops.make(3)) == 3
try:
    ops.value(mine)
except TypeError as error:
    assert "reads numbers of this plugin alone" in str(error), error
else:
    raise AssertionError("memory of Python was read as a number")
gone = weakref.ref(mine)
for _ in range(100):
    ops.drop(mine)
    ops.drop(ops.make(1))
    mine = Number()
for _ in range(1000):
    if gone() is None and ops.alive() == 0:
        break
    time.sleep(0.01)
print(gone() is None, ops.alive())
"""
    result = python(program, str(plugin("objects.c")))
    assert result.stdout == "True 0\n", result.stdout + result.stderr


def test_release_of_a_borrowed_object_is_found_in_the_checked_mode() -> None:
    said = refused("ops.ask(0)", "ops.alive()", lie="-DLIE_RELEASE", MICA_CHECK_WRITES="1")
    assert said[0].startswith(
        "RuntimeError A kernel of objects::value released its argument `number` (1 times)"
    )
    assert said[1] == "gave 0"  # the caller's own reference was there to be released


def test_release_without_a_reference_is_a_warning() -> None:
    said = refused("ops.value(ops.make(5))", lie="-DLIE_RELEASE_TWICE")
    assert said[0] == "gave 5"
    assert any(
        "An object of the type (objects.Other) is released that has no reference left" in s for s in said
    )
