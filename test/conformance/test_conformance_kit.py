"""The kit on a device with faults: each is found, said with a line that shows it, and reported."""

from __future__ import annotations

import argparse
import html.parser
import json
import subprocess
import sys

import numpy as np
import pytest
from layers import needs

import mica
from mica import conformance
from mica.conformance import command, expectations
from mica.conformance.kit import conform
from mica.conformance.results import FAILS, PASSES, UNSUPPORTED, Report, Row, row_from_json

DEVICE = "faulty.npu"


@pytest.fixture(scope="module", autouse=True)
def faulty_device() -> None:
    device = mica.library.register_device(DEVICE)

    @device.kernel("mm.out")
    def mm(self, mat2, *, out):
        np.matmul(self, mat2, out=out)

    @device.kernel("add.out")  # wrong where the memory of `self` is not in order
    def add(self, other, *, alpha, out):
        np.add(self, alpha * other, out=out, casting="unsafe")
        if not self.flags.c_contiguous and self.dtype == np.float32:
            out += 1

    @device.kernel("mul.out")
    def mul(self, other, *, out):
        raise ValueError("This chip is on fire.")

    @device.kernel("maximum.out")  # int64 alone
    def maximum(self, other, *, out):
        if out.dtype != np.int64:
            raise NotImplementedError
        np.maximum(self, other, out=out)


def run(*names: str, **options: object) -> dict[tuple[str, str], Row]:
    report = conform(DEVICE, operators=list(names), groups=["value"], **options)
    return {(row.name, row.dtype): row for row in report.rows}


def test_three_verdicts() -> None:
    rows = run("mm", "add.Tensor", "mul.Tensor", "cumsum", dtypes=["float32", "float64"])
    assert rows["mm", "float32"].verdict == PASSES
    assert rows["add.Tensor", "float64"].verdict == PASSES
    assert rows["add.Tensor", "float32"].verdict == FAILS
    assert rows["mul.Tensor", "float32"].verdict == FAILS
    assert "on fire" in rows["mul.Tensor", "float32"].failures[0].detail
    assert rows["cumsum", "float32"].verdict == UNSUPPORTED
    assert DEVICE in rows["cumsum", "float32"].reason


def test_rows_come_back_from_json() -> None:
    report = conform(DEVICE, operators=["add.Tensor", "mul.Tensor"], groups=["value"])
    written = json.loads(json.dumps(report.as_json()))["rows"]
    read = [row_from_json(row) for row in written]
    assert any(row.failures for row in read)
    assert json.loads(json.dumps(Report(DEVICE, {}, read).as_json()))["rows"] == written


def test_a_kernel_that_refuses_a_dtype_is_unsupported_there() -> None:
    rows = run("maximum", dtypes=["int64", "float32"])
    assert rows["maximum", "int64"].verdict == PASSES
    assert rows["maximum", "float32"].verdict == UNSUPPORTED


def test_the_fallback_is_allowed_again_afterwards() -> None:
    before = mica.set_fallback(None)
    run("cumsum", dtypes=["float32"])
    assert mica.set_fallback(None) == before


def test_the_line_of_a_failure_shows_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    failure = run("add.Tensor", dtypes=["float32"])["add.Tensor", "float32"].failures[0]
    exec(failure.line, {name: getattr(conformance, name) for name in conformance.__all__})
    printed = capsys.readouterr().out
    assert "verdict: fails" in printed and failure.detail in printed


def test_expectations_surprise_both_ways() -> None:
    rows = [Row("value", "add", "int8", unsupported=1, reason="why"), Row("value", "add", "int64", passed=1)]
    rows += [Row("runtime", "copies: large", unsupported=1)]
    text = expectations.write(rows, "x")
    assert text.splitlines()[1:] == ["runtime copies: large", "add value int8"]
    assert expectations.surprises(rows, expectations.read(text), True) == []
    listed = expectations.read("add value int8  # because\nruntime copies: large\n")
    assert expectations.surprises(rows, listed, True) == []
    (found,) = expectations.surprises(rows, expectations.read("runtime copies: large"), True)
    assert "value add int8 is unsupported and not listed: why" in found
    more = expectations.read("add value int8 int64\nruntime copies: large\nmul * *")
    found = expectations.surprises(rows, more, True)
    assert "listed as unsupported, and passes" in found[0] and "mul * *" in found[1]
    assert len(expectations.surprises(rows, more, False)) == 1
    others = expectations.read("add value,out !int64\nruntime copies: large")
    assert expectations.surprises(rows, others, True) == []
    with pytest.raises(ValueError, match="add value"):
        expectations.read("add value")


def test_a_device_of_few_operators_lists_those() -> None:
    rows = [Row("value", name, "int8", unsupported=1, reason="why") for name in ("sub", "mul")]
    rows += [Row("value", "relu", "int8", passed=1)]
    text = expectations.write(rows, "x")
    assert text.splitlines()[1:] == ["rest open", "relu supported"]
    listed = expectations.read(text)
    assert expectations.surprises(rows, listed, True) == []
    # What comes later needs no line, whether the device runs it or not.
    more = [Row("value", "new", "int8", unsupported=1, reason="why"), Row("value", "newer", "int8", passed=1)]
    assert expectations.surprises([*rows, *more], listed, True) == []
    (found,) = expectations.surprises(rows[:2], listed, True)
    assert found == "The line (relu supported) fits no row"
    lost = [*rows[:2], Row("value", "relu", "int8", unsupported=1, reason="why")]
    (found,) = expectations.surprises(lost, listed, True)
    assert found == "value relu int8 is unsupported and not listed: why"
    device = [*rows, Row("runtime", "copies: large", unsupported=1, reason="why")]
    assert len(expectations.surprises(device, listed, True)) == 1


class Balanced(html.parser.HTMLParser):
    """Raises when a tag is closed that was not opened last."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def command_line(tmp_path, *words: str) -> tuple[int, dict, str]:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    files = ["--json", str(tmp_path / "r.json"), "--report", str(tmp_path / "r.html")]
    status = command.run(parser.parse_args(["--device", DEVICE, *files, *words]))
    return status, json.loads((tmp_path / "r.json").read_text()), (tmp_path / "r.html").read_text()


def test_command(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    status, data, page = command_line(tmp_path, "--ops", "mm,cumsum", "--checks", "value,error")
    assert status == 0 and data["counts"]["fails"] == 0 and data["counts"]["unsupported"] > 0
    assert "0 fail" in capsys.readouterr().out
    status, data, page = command_line(tmp_path, "--ops", "add", "--dtypes", "float32,int64")
    assert status == 1 and data["counts"]["fails"] > 0
    assert "show('faulty.npu'" in capsys.readouterr().out
    Balanced().feed(page)
    for words in ("faulty.npu", "What fails", "add.Tensor", "show(&#x27;faulty.npu&#x27;", "unsupported"):
        assert words in page
    assert "<script" not in page and "http" not in page
    with pytest.raises(SystemExit, match="nonsense"):
        command_line(tmp_path, "--checks", "nonsense")
    with pytest.raises(SystemExit, match="nonsense"):
        command_line(tmp_path, "--ops", "nonsense")


def test_expected_list(tmp_path) -> None:
    listed = tmp_path / "list.txt"
    words = ["--ops", "mm,cumsum", "--checks", "value"]
    assert command_line(tmp_path, *words, "--write-expected", str(listed))[0] == 0
    assert command_line(tmp_path, *words, "--expected", str(listed))[0] == 0
    listed.write_text(listed.read_text().replace("cumsum", "mm"))
    status, data, _ = command_line(tmp_path, *words, "--expected", str(listed))
    assert status == 1 and len(data["surprises"]) > 2


def test_runtime_checks_can_fail() -> None:
    from mica.conformance.runtime import CHECKS, check, run_check

    @check("test")
    def a_lie(device: str) -> None:
        """Never holds."""
        raise AssertionError("The device lies.")

    @check("test")
    def a_gap(device: str) -> None:
        """Is not there."""
        raise NotImplementedError("no such thing")

    try:
        rows = run_check("test: a lie", DEVICE) + run_check("test: a gap", DEVICE)
    finally:
        del CHECKS[-2:]
    assert [row.verdict for row in rows] == [FAILS, UNSUPPORTED]
    assert rows[0].failures[0].detail == "The device lies."


def test_the_command_of_an_installed_mica() -> None:
    words = [sys.executable, "-m", "mica", "conformance", "--device", "cpu"]
    result = subprocess.run(
        [*words, "--ops", "neg", "--checks", "value,inplace"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0 and "0 fail, 0 unsupported" in result.stdout, result
    result = subprocess.run(
        [*words[:-1], "nonsense.npu"], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode != 0 and "nonsense.npu" in result.stderr, result
    assert "Traceback" not in result.stderr


@needs("batched", "autocast")
def test_vmap_and_autocast_of_a_device() -> None:
    report = conform(
        DEVICE, operators=["mm", "maximum", "mul.Tensor", "add.Tensor"], groups=["vmap", "autocast"]
    )
    rows = {(row.check, row.name): row for row in report.rows}
    assert rows["vmap", "mul.Tensor"].verdict == FAILS and rows["autocast", "mul.Tensor"].verdict == FAILS
    assert rows["vmap", "maximum"].verdict == UNSUPPORTED  # not of float32
    assert rows["vmap", "add.Tensor"].verdict == PASSES and rows["autocast", "add.Tensor"].verdict == PASSES
    assert (
        rows["vmap", "mm"].verdict == UNSUPPORTED
    )  # of a batch that is a product of batches, which it lacks
