"""scripts/torch_tests.py on a made-up test file: which tests count, and what becomes of those that end badly."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import torch_tests

MADE_UP = """
import os
import signal
import time

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase, freeze_rng_state, run_tests, name_of_old

MICA = "mica" in torch.__version__


class TestMadeUp(TestCase):
    def test_passes(self):
        self.assertEqual(torch.ones(2) + 1, torch.full((2,), 2.0))

    def test_random_numbers_are_frozen(self):
        with freeze_rng_state():
            before = torch.rand(9)
        self.assertEqual(torch.rand(9), before)

    def test_fails_on_torch(self):
        self.assertTrue(MICA)

    def test_fails(self):
        self.assertEqual(torch.ones(2), torch.full((2,), 1.0 + MICA))

    def test_skips(self):
        self.skipTest("always")

    def test_skips_on_mica(self):
        if MICA:
            self.skipTest("here alone")

    def test_crashes(self):
        if MICA:
            os.kill(os.getpid(), signal.SIGSEGV)

    def test_hangs(self):
        while MICA:
            time.sleep(1)

    def test_uses_private(self):
        if MICA:
            torch._C._of_nobody()

    def test_sparse_is_left_out(self):
        pass

    def test_z_passes_after_all(self):
        with self.assertRaisesRegex(IndexError, "out of range"):
            torch.ones(2).sum(3)


class TestPrepared(TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if MICA:
            raise RuntimeError("no preparation")

    def test_one(self):
        pass


class TestOfDevices(TestCase):
    def test_on_device(self, device):
        self.assertEqual(torch.ones(2, device=device).device.type, "cpu")


instantiate_device_type_tests(TestOfDevices, globals())

if __name__ == "__main__":
    run_tests()
"""


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> torch_tests.Row:
    folder = tmp_path_factory.mktemp("made_up")
    file = folder / "test_made_up.py"
    file.write_text(MADE_UP)
    torch_tests.KEPT = folder / "kept"
    return torch_tests.of_file(file, argparse.Namespace(sample=0, seed="mica", limit=5))


def test_what_counts(row: torch_tests.Row) -> None:
    assert row.passed == 4, row
    assert set(row.failed) == {
        "TestMadeUp.test_fails",
        "TestMadeUp.test_skips_on_mica",
        "TestMadeUp.test_crashes",
        "TestMadeUp.test_hangs",
        "TestPrepared.test_one",
    }
    assert row.left_out == {"sparse tensors": 1, "private names": 1}


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("TestMadeUp.test_fails", "Tensor-likes are not close"),
        ("TestMadeUp.test_skips_on_mica", "here alone"),
        ("TestMadeUp.test_crashes", "status -11"),
        ("TestMadeUp.test_hangs", "takes more than 5 s"),
        ("TestPrepared.test_one", "no preparation"),
    ],
)
def test_what_a_failure_says(row: torch_tests.Row, test: str, words: str) -> None:
    assert words in row.failed[test].text


def test_the_page_names_each_cause(row: torch_tests.Row) -> None:
    text = torch_tests.page([row], argparse.Namespace(sample=0, seed="mica"))
    assert "| test_made_up.py | 4 | 5 | 44.4 % |" in text
    assert "| 1 | test_made_up.py | takes more than N s | `TestMadeUp.test_hangs` |" in text
    assert "| 1 | sparse tensors |" in text


def test_a_sample_stays_when_tests_come() -> None:
    few = [f"TestA.test_{i}" for i in range(0, 400, 2)]
    many = [f"TestA.test_{i}" for i in range(400)]
    drawn = torch_tests.sampled("test_a.py", few, 0.25, "mica")
    assert 30 < len(drawn) < 70
    assert drawn == [t for t in torch_tests.sampled("test_a.py", many, 0.25, "mica") if t in set(few)]
    assert drawn != torch_tests.sampled("test_a.py", few, 0.25, "another")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "test_ops.py::TestCommonCPU.test_out__refs_add_cpu",
            "torch._refs, the decompositions of torch's compiler",
        ),
        ("test_ops.py::TestCommonCPU.test_out__softmax_backward_data_cpu_float32", "private names"),
        ("test_ops.py::TestCommonCPU.test_errors___rsub___cpu", None),
        ("test_torch.py::TestTorchDeviceTypeCPU.test_copy__cpu", None),
        ("test_ops.py::TestCommonCPU.test_out_to_sparse_cpu", "sparse tensors"),
        ("test_torch.py::TestTorchDeviceTypeCPU.test_storage_setitem_cpu_qint8", "quantized tensors"),
        ("test_sort_and_select.py::TestSortAndSelectCPU.test_isin_cpu_int8", None),
    ],
)
def test_what_is_left_out(name: str, why: str | None) -> None:
    names, _ = torch_tests.rules()
    assert torch_tests.reason(name, names) == why
