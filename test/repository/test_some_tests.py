"""Which tests `./dev test --changed` chooses for a file (scripts/some_tests.py)."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import some_tests

ROOT = some_tests.ROOT


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("operators/nn_losses.yaml", "test/nn"),
        ("operators/nn_optimizers_steps.yaml", "test/optim"),
        ("operators/random.yaml", "test/random"),
        ("plugins/cpu/pooling/max_pooling.cc", "test/nn"),
        ("plugins/cpu/pooling/max_pooling.cc", "test/unit/cpu"),
        ("plugins/cpu/attention/attention.cc", "test/nn"),
        ("plugins/cpu/convolution/winograd.cc", "test/autograd/test_gradients.py"),
        ("kernels/portable/convolution.cc", "test/nn"),
        ("examples/pytorch/gpt.py", "test/optim/test_example_programs_torch.py"),
        ("plugins/vision/boxes.cc", "test/operators/test_vision.py"),
        ("test/unit/cpu/pooling_test.cc", "test/unit/cpu/pooling_test.cc"),
        ("test/nn/test_modules.py", "test/nn/test_modules.py"),
    ],
)
def test_a_file_reaches(file: str, test: str) -> None:
    assert (ROOT / file).is_file()
    assert test in some_tests.reached(file)


def test_sorting_reaches_no_test_of_networks() -> None:
    assert "test/nn" not in some_tests.reached("plugins/cpu/sorting/sorting.cc")


def test_every_row_names_files_and_tests() -> None:
    files = [str(path.relative_to(ROOT)) for path in ROOT.glob("[a-zA-Z]*/**/*") if "build" not in path.parts]
    files += [path.name for path in ROOT.glob("*.*")]
    for prefix, patterns in some_tests.REACHES.items():
        assert any(re.match(prefix, file) for file in files), prefix
        for pattern in patterns.split():
            assert list(ROOT.glob(pattern)), pattern
