"""examples/python_device runs, in a process of its own, and trains."""

import os
import subprocess
import sys
from pathlib import Path

TOY = Path(__file__).resolve().parents[2] / "examples" / "python_device" / "toy.py"


def test_the_toy_device_trains():
    result = subprocess.run(
        [sys.executable, str(TOY)], capture_output=True, text=True, env=os.environ, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "loss 0.00e+00" in result.stdout or "e-" in result.stdout, result.stdout
    assert "the backend's kernel for" in result.stdout, result.stdout
    assert len(TOY.read_text().splitlines()) < 100


def run(program):
    """What a program prints that begins with `import mica, numpy as np`."""
    result = subprocess.run(
        [sys.executable, "-c", "import mica, numpy as np\n" + program],
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_a_device_that_nobody_keeps_stays_until_it_is_disabled():
    program = """
import gc
from mica._devices.python_backend import _registered
for _ in range(30):
    mica.library.register_device("short.lived")
    gc.collect()
    x = mica.ones(2, device="short.lived").cpu()
    try:
        mica.library.register_device("short.lived")
    except RuntimeError as error:
        assert "is registered already; disable that one first" in str(error)
    _registered["short.lived"].disable()
print((x + 1).tolist())
"""
    assert run(program) == "[2.0, 2.0]"


def test_a_kernel_whose_parameters_do_not_fit_is_refused():
    program = """
device = mica.library.register_device("py.fit")
for operator, function in (
    ("mul.out", lambda self, foo: 0),
    ("mul.out", lambda self, other, out: 0),
    ("mul.out", lambda *args, **kwargs: 0),
):
    try:
        device.kernel(operator)(function)
        print("taken")
    except TypeError as error:
        assert "mica::mul.out(Tensor self, Tensor other" in str(error), error
        print("(self, foo) does not fit" in str(error))
"""
    assert run(program).split() == ["True", "taken", "taken"]


def test_a_number_goes_to_the_kernel_of_tensors():
    program = """
device = mica.library.register_device("py.add")
x = mica.arange(3, dtype=mica.float32).to("py.add")
before = x + 1  # its table is made here, and anew when a kernel comes
@device.kernel("add.out")
def add(self, other, *, alpha=1, out):
    np.add(self, other * np.asarray(alpha, dtype=other.dtype), out=out)
mica.fallback_counts(reset=True)
y = x + 1
z = mica.add(x, 2.5, alpha=2)
x += 1
into = mica.empty(3, device="py.add")
mica.add(mica.arange(3).to("py.add").float(), 1, out=into)
kernels = {k for counts in mica.fallback_counts().values() for k in counts if "add" in k}
print(y.cpu().tolist(), z.cpu().tolist(), x.cpu().tolist(), into.cpu().tolist(), kernels, y.dtype)
n = mica.arange(3).to("py.add") + 1
f = mica.arange(3).to("py.add") + 1.5
print(n.dtype, f.dtype, (mica.ones(1, dtype=mica.float16).to("py.add") + 1.5).dtype)
print("mica::add.Tensor, with the number as a 0-d tensor" in str(mica.explain("add.Scalar", x)))
"""
    assert run(program).splitlines() == [
        "[1.0, 2.0, 3.0] [5.0, 6.0, 7.0] [1.0, 2.0, 3.0] [1.0, 2.0, 3.0] set() mica.float32",
        "mica.int64 mica.float32 mica.float16",
        "True",
    ]


def test_elements_of_a_list_are_named():
    program = """
mica.library.register_device("py.one")
mica.library.register_device("py.two")
try:
    mica.cat([mica.ones(1, device="py.one"), mica.ones(1, device="py.two")])
except RuntimeError as error:
    print(error)
"""
    assert "`tensors[0]` is on the device (py.one:0) and `tensors[1]` on (py.two:0)" in run(program)


def test_the_accelerator_may_have_any_name():
    program = """
mica.library.register_device("py.any", count=2)
accelerator = mica.accelerator
accelerator.synchronize()
with accelerator.device_index(1):
    print(accelerator.current_device_index(), accelerator.current_stream().device)
print(accelerator.current_device_index(), accelerator.device_count())
"""
    assert run(program).splitlines() == ["1 py.any:1", "0 2"]


def test_seeds_reach_the_current_device_and_all_devices():
    program = """
mica.library.register_device("cuda", count=2)
cuda = mica.cuda
cuda.manual_seed_all(5)
with cuda.device(1):
    first = cuda.initial_seed()
    cuda.manual_seed(6)
    print(first, cuda.initial_seed(), cuda.get_rng_state().equal(cuda.get_rng_state(1)))
print(cuda.initial_seed(), cuda.get_rng_state().equal(cuda.get_rng_state(1)))
cuda.seed_all()
print(cuda.get_rng_state(0).equal(cuda.get_rng_state(1)))
"""
    assert run(program).splitlines() == ["5 6 True", "5 False", "True"]
