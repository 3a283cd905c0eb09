"""Several vendors in one process: OpenCL (MICA_PLUGINS), the null device (built here from its
one file) and a device in Python, with copies between all pairs."""

import itertools
import subprocess
from pathlib import Path

import pytest

import mica

EXAMPLES = Path(__file__).resolve().parents[1]
DEVICES = ["cpu", "opencl", "null:0", "null:1", "py.beside"]


@pytest.fixture(scope="session", autouse=True)
def vendors(tmp_path_factory):
    library = tmp_path_factory.mktemp("null") / "mica_null.so"
    source = EXAMPLES / "null_device" / "null.cc"
    include = f"-I{EXAMPLES.parent / 'sdk' / 'include'}"
    subprocess.run(
        ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", include, source, "-o", library], check=True
    )
    mica.load_plugin(str(library))
    return mica.library.register_device("py.beside")


@pytest.mark.parametrize("source,target", list(itertools.permutations(DEVICES, 2)))
def test_copies_between_all_pairs(source, target):
    x = mica.arange(24, dtype=mica.float32).reshape(4, 6)
    there = x.to(source)
    assert there.to(target).device == mica.empty(0, device=target).device
    assert there.to(target).tolist() == x.tolist()
    assert there.t()[::2].to(target).tolist() == x.t()[::2].tolist()
    assert there.to(target, mica.int32).tolist() == x.to(mica.int32).tolist()
    into = mica.zeros(4, 6).to(target)
    into[:, 1::2].copy_(there[:, ::2])
    assert into[:, 1::2].tolist() == x[:, ::2].tolist()
    assert into[:, ::2].tolist() == [[0, 0, 0]] * 4


@pytest.mark.parametrize("a,b", list(itertools.combinations(DEVICES, 2)))
def test_an_operator_over_two_devices_names_both_and_the_fix(a, b):
    with pytest.raises(RuntimeError) as error:
        mica.ones(3, device=a) + mica.ones(3, device=b)
    for device in (a, b):
        assert f"({mica.empty(0, device=device).device})" in str(error.value), error.value
    assert ".to('" in str(error.value)


@pytest.mark.parametrize("device", DEVICES)
def test_each_computes_and_differentiates_on_its_own(device):
    x = mica.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    assert y.device == x.grad.device == x.device
    assert y.item() == 14
    assert x.grad.tolist() == [2, 4, 6]
