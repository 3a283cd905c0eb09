"""What scripts/run_suites.py runs side by side, and what it counts: rows of suites that print and end."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import run_suites
import suites
from suites import Suite

BUILT = {"release": True}


def suite(name="a", cores=1, shares="", needs=(), run="echo '1 passed, 0 failed'"):
    return Suite(name, f'bash -c "{run}"', "tally", cores=cores, shares=shares, needs=needs)


@pytest.mark.parametrize(
    ("new", "running", "starts"),
    [
        (suite(cores=0), [], True),
        (suite(), [suite()], True),
        (suite(), [suite(), suite()], False),
        (suite(cores=2), [suite()], False),
        (suite(cores=0), [suite()], False),
        (suite(), [suite(cores=0)], False),
        (suite(shares="install"), [suite(shares="install")], False),
        (suite(shares="install"), [suite()], True),
        (suite(needs=("release:package",)), [suite()], True),
        (suite(needs=("asan:package",)), [suite()], False),
        (suite(needs=("asan:package",)), [], True),
    ],
)
def test_what_starts_beside_others(monkeypatch, new, running, starts):
    monkeypatch.setattr(run_suites, "CORES", 2)
    assert run_suites.fits(new, running, BUILT) is starts


def test_counts_and_failures(monkeypatch, capsys, tmp_path):
    rows = [
        suite("good", run="echo '3 passed, 0 failed'"),
        suite("bad", run="echo FAILED here; echo '2 passed, 1 failed'; exit 1"),
        suite("silent", run="true"),
        suite("dies", cores=0, run="echo '4 passed, 0 failed'; exit 3"),
    ]
    monkeypatch.setattr(run_suites, "SUITES", rows)
    monkeypatch.setattr(run_suites, "LOGS", tmp_path)
    monkeypatch.setattr(run_suites, "CORES", 2)
    monkeypatch.setattr(sys, "argv", ["run_suites.py"])
    assert run_suites.main() == 1
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == "9 passed, 3 failed"
    for line in ("bad: FAILED here", "silent: The command", "dies: The command"):
        assert f"\n{line}" in said
    assert {path.stem for path in tmp_path.glob("*.log")} == {"good", "bad", "silent", "dies"}


def test_the_page_names_every_suite():
    page = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
    rows = re.findall(r"^\| `([\w-]+)` \|", page.read_text().partition("## The suites")[2], re.M)
    # torch's own tests are a suite where their folder is named.
    assert sorted({*rows, "torch-tests"}) == sorted({*(s.name for s in suites.SUITES), "torch-tests"})
    assert len(rows) == len(set(rows))


def test_long_forms():
    rows = [
        Suite("a", "short", "pytest", long={"run": "hours", "count": "tally"}),
        Suite("b", "short", "tally"),
    ]
    assert [(s.name, s.run, s.count) for s in run_suites.choose(rows, ["--long"])] == [
        ("a", "hours", "tally")
    ]
    assert [s.run for s in run_suites.choose(rows, ["--long", "a"])] == ["hours"]
    assert [s.run for s in run_suites.choose(rows, ["a"])] == ["short"]
    with pytest.raises(SystemExit, match=r"suite \(b\) is unknown"):
        run_suites.choose(rows, ["--long", "b"])
    for row in run_suites.choose(suites.SUITES, ["--long"]):
        assert row.timeout >= suites.HOUR
