"""Tables that plugins offer each other: found by name while their plugin is enabled, opened when asked for, and
refused where they are wrong, taken, or asked for in a circle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from build import CXX, LIBCXX, plugin, python


def service(
    name: str, *options: str, offers: str = "", asks: str = "", compiler: tuple[str, ...] = CXX
) -> str:
    texts = [f'-DNAME="{name}"', f'-DOFFERS="{offers}"', f'-DASKS="{asks}"']
    return str(plugin("service.cc", *texts, *options, compiler=compiler))


def asked(program: str, *paths: str, **environment: str) -> list[str]:
    """The lines that a program prints, which has `attempt(function, *arguments)`, a result's or an error's text."""
    head = """
import sys, mica
def attempt(function, *arguments):
    try:
        print(function(*arguments))
    except Exception as error:
        print(f"{type(error).__name__}: {error}".splitlines()[0])
"""
    result = python(head + program, *paths, **environment)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()


@pytest.mark.parametrize("compiler", [CXX, LIBCXX], ids=["g++", "clang with libc++"])
def test_plugins_call_each_other(compiler: tuple[str, ...]) -> None:
    """Also plugins of two compilers and standard libraries; a table is there exactly while its plugin is."""
    program = """
ask = lambda: mica.ops.asker.ask(21)
mica.load_plugin(sys.argv[2])
attempt(ask)
mica.load_plugin(sys.argv[1])
attempt(ask)
mica.disable_plugin("giver")
attempt(ask)
mica.enable_plugin("giver")
attempt(ask)
"""
    lines = asked(
        program,
        service("giver", offers="giver.answers", compiler=compiler),
        service("asker", asks="giver.answers"),
    )
    absent = "RuntimeError: The extension (giver.answers) of version (1.0) or later is not there: no enabled plugin"
    assert [line[: len(absent)] for line in lines] == [absent, "42", absent, "42"]


def test_a_plugin_is_opened_for_its_extension(tmp_path: Path) -> None:
    path = service("giver", offers="giver.answers")
    (tmp_path / "giver.json").write_text(json.dumps({"path": path}))
    program = """
mica._C._add_plugin_folder(sys.argv[2])
state = lambda: [p["state"] for p in mica.plugins() if p["name"] == "giver"]
mica.load_plugin(sys.argv[1])
print(state())
attempt(mica.ops.asker.ask, 4)
print(state())
"""
    lines = asked(program, service("asker", asks="giver.answers"), str(tmp_path))
    assert lines == ["['found']", "8", "['loaded']"]


REFUSED = {
    "a short table": (
        ("-DSIZE=8",),
        "giver.answers",
        r"has the struct_size (8); it begins with a MicaTable of (16)",
    ),
    "no table": (("-DNULL_TABLE",), "giver.answers", "registers an extension's table and gives NULL"),
    "one name twice": (("-DTWICE",), "giver.answers", "(giver.answers) is offered twice by one plugin"),
    "a name of Mica's": ((), "mica.layers", "(mica.layers) has a name of Mica's"),
    "no name": ((), "a name", "The name (a name) of an extension is not made of letters"),
    "an init that fails later": (("-DFAILS",), "giver.answers", "failed to start: the service has no port"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_sentence(case: str) -> None:
    options, name, sentence = REFUSED[case]
    program = """
attempt(mica.load_plugin, sys.argv[1])
mica.load_plugin(sys.argv[2])
attempt(mica.ops.asker.ask, 1)
attempt(mica.add, mica.ones(1), 1)
"""
    lines = asked(program, service("giver", *options, offers=name), service("asker", asks="giver.answers"))
    assert sentence in lines[0]
    assert "is not there" in lines[1]
    assert lines[2:] == ["tensor([2.])"]


def test_an_older_version_is_not_there() -> None:
    program = "mica.load_plugin(sys.argv[1]), mica.load_plugin(sys.argv[2])\nattempt(mica.ops.asker.ask, 1)"
    asker = service("asker", "-DLEAST=4", asks="giver.answers")
    for minor, expected in (
        (3, "RuntimeError: The extension (giver.answers) of version (1.4)"),
        (4, "2"),
        (5, "2"),
    ):
        [line] = asked(program, service("giver", f"-DMINOR={minor}", offers="giver.answers"), asker)
        assert line.startswith(expected)


def test_two_plugins_of_one_name_for_a_table() -> None:
    """The first stays; the other may come, or come back, once that is disabled."""
    program = """
first, second, asker = sys.argv[1:]
mica.load_plugin(first), mica.load_plugin(asker)
attempt(mica.load_plugin, second)
attempt(mica.ops.asker.ask, 1)
mica.disable_plugin("first")
attempt(mica.load_plugin, second)
attempt(mica.enable_plugin, "first")
attempt(mica.ops.asker.ask, 2)
mica.disable_plugin("second")
attempt(mica.enable_plugin, "first")
attempt(mica.ops.asker.ask, 3)
"""
    both = [service(name, offers="giver.answers") for name in ("first", "second")]
    lines = asked(program, *both, service("asker", asks="giver.answers"))
    assert (
        "The extension (giver.answers) is offered by the plugin (first) already; disable that first."
        in lines[0]
    )
    assert "The extension (giver.answers) is offered by the plugin (second) already" in lines[3]
    assert [*lines[1:3], *lines[4:]] == ["2", "None", "4", "None", "6"]


def test_plugins_that_wait_for_each_other(tmp_path: Path) -> None:
    """Each asks for the other's table while it starts: both are refused, and the process goes on."""
    for name, other in (("egg", "hen"), ("hen", "egg")):
        path = service(name, "-DASK_AT_ONCE", offers=f"{name}.answers", asks=f"{other}.answers")
        (tmp_path / f"{name}.json").write_text(json.dumps({"path": path}))
    program = """
mica._C._add_plugin_folder(sys.argv[1])
egg, = [p["path"] for p in mica.plugins() if p["name"] == "egg"]
attempt(mica.load_plugin, egg)
print(sorted((p["name"], p["state"]) for p in mica.plugins() if p["name"] in ("egg", "hen")))
attempt(mica.add, mica.ones(1), 1)
"""
    lines = asked(program, str(tmp_path))
    assert "(hen.answers) of version (1.0) or later is not there" in lines[0]
    assert lines[1:] == ["[('egg', 'refused'), ('hen', 'refused')]", "tensor([2.])"]


def test_the_doctor_lists_an_extension() -> None:
    program = """
mica.load_plugin(sys.argv[1])
for r in mica._C._plugin_registrations(sys.argv[1]):
    print(r["kind"], r["name"])
"""
    assert "extension giver.answers" in asked(program, service("giver", offers="giver.answers"))
