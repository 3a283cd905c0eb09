"""A device is a first-class citizen of Python: mica.acme, x.acme(), the current device, DLPack, streams of others.

Each program runs in a process of its own on each of three devices, none of which it touched before: its plugin is
found, as that of a user is, and nothing else says its name. What a test prints is compared, so that all devices
give the same."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from process import ran

ROOT = Path(__file__).resolve().parents[2]
SIMT = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release")) / "simt" / "mica_simt.so"
# Any other device is tested by its name and its plugin: MICA_TEST_PLUGIN=opencl:/path/of/mica_opencl.so
NAME, _, PLUGIN = os.environ.get("MICA_TEST_PLUGIN", "").partition(":")
DEVICES = [NAME] if NAME else ["simt", "null", "late"]


def plugin_of(device: str, request: pytest.FixtureRequest) -> str:
    if device == NAME:
        return PLUGIN
    return str(SIMT) if device == "simt" else str(request.getfixturevalue(f"{device}_device"))


@pytest.fixture(params=DEVICES)
def run(request, tmp_path):
    """Runs a program in which D is the device; returns what it prints, D for its name."""
    device = request.param
    plugin = plugin_of(device, request)
    (tmp_path / f"{device}.json").write_text(json.dumps({"path": plugin}))

    def program(text: str) -> str:
        start = f"import mica\nD = {device!r}\nmica._C._add_plugin_folder({str(tmp_path)!r})\n"
        result = ran(start + text, PYTHONWARNINGS="error")
        assert result.returncode == 0, result.stderr
        return result.stdout.strip().replace(device, "D")

    program.device = device
    return program


def test_its_module_is_there_before_anything_opens_it(run):
    program = """
def state():
    [plugin] = [p for p in mica.plugins() if f"backend:{D}" in p["provides"].split(",")]
    return plugin["state"]
module = getattr(mica, D)
print(module.__name__, state(), end=" ")
print(module.is_available(), module.device_count() == mica.device_count(D) > 0, state())
exec(f"import mica.{D} as imported")
print(imported is module, D in dir(mica))
"""
    assert run(program) == "mica.D found True True loaded\nTrue True"


NAMES = """
Event ExternalStream OutOfMemoryError Stream StreamContext amp current_device current_stream default_generators
default_stream device device_count device_of empty_cache get_amp_supported_dtype get_device_name
get_device_properties get_rng_state get_rng_state_all get_stream_from_external init initial_seed is_available
is_bf16_supported is_initialized manual_seed manual_seed_all max_memory_allocated max_memory_reserved mem_get_info
memory_allocated memory_reserved memory_stats memory_summary reset_peak_memory_stats seed seed_all set_device
set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream stream synchronize
"""


def test_its_module_has_what_mica_cuda_has(run):
    program = f"""
module = getattr(mica, D)
public = {{n for n in dir(mica.cuda) if n[0] != "_"}} - {{"CUDAGraph"}} | set({NAMES.split()!r})
print(sorted(n for n in public if not hasattr(module, n)))
print(module.synchronize.__module__, "mica.cuda" in module.synchronize.__doc__)
"""
    assert run(program) == "[]\nmica.D False"


def test_tensors_modules_and_storages_move_by_its_name(run):
    program = """
from mica import nn
x = mica.ones(2)
moved = getattr(x, D)()
print(moved.device.type, getattr(moved, f"is_{D}"), getattr(x, f"is_{D}"), getattr(moved, D)() is moved)
print(next(getattr(nn.Linear(2, 2), D)().parameters()).device.type)
packed = nn.utils.rnn.pack_sequence([mica.ones(2), mica.ones(1)])
print(getattr(getattr(packed, D)(), f"is_{D}"), getattr(x.untyped_storage(), D)().device.type)
"""
    assert run(program) == "D True False True\nD\nTrue D"


CURRENT = """
module = getattr(mica, D)
last = module.device_count() - 1
def places(text):
    x = mica.ones(2, device=D)
    found = [x, x + 1, mica.ones(2).to(D), getattr(mica.ones(2), D)(), mica.tensor([1.0], device=D),
             mica.rand(2, device=D), mica.zeros_like(mica.ones(2), device=D), mica.nn.Linear(2, 2, device=D).weight]
    print(text, sorted({t.device.index for t in found}) == [module.current_device()], module.current_device() == last)
module.set_device(last)
places("set_device")
module.set_device(0)
with module.device(last):
    places("device")
print(module.current_device())
mica.accelerator.set_device_index(last)
places("accelerator")
print(mica.accelerator.current_device_index() == last, mica.accelerator.current_accelerator())
mica.accelerator.synchronize()
print(mica.accelerator.current_stream().device.index == last, mica.ones(2, device=last).device.type)
"""


def test_one_current_device_is_meant_by_all(run):
    assert run(CURRENT) == (
        "set_device True True\ndevice True True\n0\naccelerator True True\nTrue D\nTrue D"
    )


def test_a_default_device_without_a_number_follows_the_current_one(run):
    program = """
module = getattr(mica, D)
last = module.device_count() - 1
mica.set_default_device(D)
before = mica.ones(1).device.index
module.set_device(last)
print(before, mica.ones(1).device.index == mica.get_default_device().index == last)
mica.set_default_device(f"{D}:0")
print(mica.ones(1).device.index)
mica.set_default_device(None)
module.set_device(0)
with mica.device(D):
    with mica.device("cpu"):
        module.set_device(last)
        print(mica.ones(1).device.type, end=" ")
    print(mica.ones(1).device.index == last)
print(mica.ones(1).device.type)
"""
    assert run(program) == "0 True\n0\ncpu True\ncpu"


def test_seeds_and_states_of_its_generators(run):
    program = """
module = getattr(mica, D)
module.manual_seed_all(3)
state = module.get_rng_state()
x = mica.rand(4, device=D)
module.set_rng_state(state)
print(mica.equal(x.cpu(), mica.rand(4, device=D).cpu()), module.initial_seed(), len(module.default_generators) == module.device_count())
"""
    assert run(program) == "True 3 True"


def test_autocast_under_its_name(run):
    program = """
module = getattr(mica, D)
with module.amp.autocast(dtype=mica.bfloat16):
    y = mica.ones(2, 2, device=D) @ mica.ones(2, 2, device=D)
print(y.dtype in module.get_amp_supported_dtype(), y.device.type, module.amp.GradScaler().is_enabled())
"""
    assert run(program) == "True D True"


# ---- DLPack


def test_dlpack_shares_memory_on_every_device(run):
    program = """
last = mica.device_count(D) - 1
x = mica.arange(6.0, device=f"{D}:{last}").reshape(2, 3)
y = mica.from_dlpack(x.T)
y += 1
print(y.device == x.device, y.stride(), x.tolist())
print(mica.from_dlpack(x.__dlpack__(max_version=(1, 0))).tolist() == x.tolist())
kind, number = x.__dlpack_device__()
print(number == last, kind == {"opencl": 4}.get(D, 12))
import numpy as np
print(np.from_dlpack(x.cpu()).tolist(), mica.from_dlpack(x.__dlpack__(dl_device=(1, 0))).device)
for wrong in ({"dl_device": (1, 0), "copy": False}, {"stream": -2}, {"stream": 1.5}):
    try:
        x.__dlpack__(**wrong)
    except (BufferError, ValueError, TypeError) as error:
        print(type(error).__name__)
"""
    assert run(program) == (
        "True (1, 3) [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]\nTrue\nTrue True\n"
        "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]] cpu\nBufferError\nValueError\nTypeError"
    )


# Another library's tensor: it notes what it is asked, and its capsules are none of Mica's own.
THEIRS = """
import ctypes
class Theirs:
    def __init__(self, x, kind=None, number=None):
        self.x, (self.kind, self.number) = x, x.__dlpack_device__()
        self.kind = self.kind if kind is None else kind
        self.number = self.number if number is None else number
        self.deleted, self.deleters = 0, []
    def __dlpack_device__(self):
        return self.kind, self.number
    def __dlpack__(self, *, stream=None, max_version=None, copy=None):
        self.stream = stream
        capsule = self.x.__dlpack__(stream=-1)
        # A deleter of its own, as any other library's.
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        managed = get(capsule, b"dltensor")
        def delete(at):
            self.deleted += 1
        self.deleters.append(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(delete))
        ctypes.c_void_p.from_address(managed + 56).value = ctypes.cast(self.deleters[-1], ctypes.c_void_p).value
        ctypes.c_int32.from_address(managed + 8).value = self.kind
        ctypes.c_int32.from_address(managed + 12).value = self.number
        return capsule
"""


def test_dlpack_of_another_library_is_ready_for_the_current_stream(run):
    program = (
        THEIRS
        + """
x = mica.arange(3.0, device=D)
theirs = Theirs(x)
y = mica.from_dlpack(theirs)
print(y.device == x.device, y.data_ptr() == x.data_ptr(), theirs.stream, y.tolist())
side = mica.Stream(D)
with side:
    z = mica.from_dlpack(theirs)
print(theirs.stream == side.handle)
del y, z
print(theirs.deleted)
for kind, number in ((x.__dlpack_device__()[0], 99), (17, 0)):
    try:
        mica.from_dlpack(Theirs(x, kind, number))
    except BufferError as error:
        print(str(error).split(" (")[0])
"""
    )
    assert run(program) == (
        "True True 0 [0.0, 1.0, 2.0]\nTrue\n2\n"
        "A DLPack tensor is on the device number\nA DLPack tensor of device type"
    )


def test_two_backends_of_one_type_are_told_apart(null_device):
    program = (
        THEIRS
        + """
null, simt = mica.ones(2, device="null"), mica.ones(2, device="simt")
print(mica.from_dlpack(null).device, mica.from_dlpack(simt).device)
print(mica.from_dlpack(Theirs(simt), device="simt").device)
try:
    mica.from_dlpack(Theirs(simt))
except BufferError as error:
    print("(null) and (simt)" in str(error), "device=" in str(error))
"""
    )
    result = ran("import mica\n" + program, MICA_PLUGINS=f"{null_device}:{SIMT}")
    assert result.stdout.splitlines() == ["null:0 simt:0", "simt:0", "True True"], result.stderr


def test_a_consumers_stream_waits_for_what_computes_the_tensor(late_device):
    # The late device does its work later: a consumer whose stream waits for nothing reads too early.
    program = """
import sys
mine, theirs = mica.Stream("late"), mica.Stream("late")
wrong = 0
for _ in range(20):
    with mine:
        x = mica.full((4096,), 2.0).to("late")
        y = x * x
        capsule = y.__dlpack__(stream=int(sys.argv[1]) or theirs.handle)
    with theirs:
        z = mica.from_dlpack(capsule)
        wrong += not bool(((z * z).cpu() == 16).all())
print(wrong)
"""
    counts = [
        int(
            ran(
                f"import mica, sys\nsys.argv.append('{stream}')\n{program}", MICA_PLUGINS=str(late_device)
            ).stdout
        )
        for stream in (0, -1)
    ]
    assert counts[0] == 0 < counts[1]


def test_memory_that_dlpack_lent_goes_back_when_the_kernels_on_it_have_ended(late_device):
    program = (
        THEIRS
        + """
import os
x = mica.full((4096,), 3.0).to("late")
mica.synchronize("late")
os.environ["LATE_MICROSECONDS"] = "200000"
theirs = [Theirs(x) for _ in range(3)]
side = mica.Stream("late")
y = mica.from_dlpack(theirs[0])
squares = y * y
z = mica.from_dlpack(theirs[1])
with side:
    side.wait_stream(mica.late.default_stream())
    sums = z + z
del y, z
print([t.deleted for t in theirs])
mica.late.default_stream().synchronize()
side.synchronize()
print([t.deleted for t in theirs], (squares.cpu() == 9).all().item(), (sums.cpu() == 6).all().item())
mica.synchronize("late")
mica.from_dlpack(theirs[2])  # nothing is queued
print(theirs[2].deleted)
"""
    )
    result = ran("import mica\n" + program, MICA_PLUGINS=str(late_device))
    assert result.stdout.splitlines() == ["[0, 0, 0]", "[1, 1, 0] True True", "1"], result.stderr


def test_from_dlpack_without_a_copy(run):
    program = """
x = mica.arange(3.0, device=f"{D}:0")
y = mica.from_dlpack(x, device=D, copy=False)
print(y.data_ptr() == x.data_ptr())
for source, device in ((x, "cpu"), (mica.ones(2), D)):
    try:
        mica.from_dlpack(source, device=device, copy=False)
    except BufferError as error:
        print("leave copy=False out" in str(error))
print(mica.from_dlpack(x, device="cpu").tolist(), mica.from_dlpack(mica.ones(2), device=D).device.type)
"""
    assert run(program) == "True\nTrue\nTrue\n[0.0, 1.0, 2.0] D"


def test_a_device_of_another_backend_is_refused(run):
    program = """
from mica import nn
x, module = mica.ones(2), getattr(mica, D)
for call in (lambda: getattr(x, D)("cpu"), lambda: getattr(x.untyped_storage(), D)("cpu"),
             lambda: getattr(nn.Linear(1, 1), D)("cpu"), lambda: module.Stream("cpu"), lambda: module.set_device("cpu")):
    try:
        call()
    except RuntimeError as error:
        print(str(error).split(":")[0] == f"Invalid device, must be {D} device", end=" ")
mica.utils.rename_privateuse1_backend(D)
for name in ("cpu", "meta"):
    try:
        mica.utils.rename_privateuse1_backend(name)
    except RuntimeError as error:
        print("is Mica's own" in str(error), mica.utils.backend_registration._C._private_backend() == D, end=" ")
"""
    assert run(program).split() == ["True"] * 9


# ---- streams of other libraries


def test_a_handle_of_a_stream_has_64_bits(run):
    program = """
module = getattr(mica, D)
x = mica.ones(2, device=D)
for handle in (-1, 1 << 64, 1 << 70, "7"):
    try:
        module.ExternalStream(handle)
    except ValueError as error:
        print(error)
"""
    assert run(program).splitlines() == [
        f"The handle ({handle}) of a stream is no int from 0 to 2^64 - 1."
        for handle in ("-1", 1 << 64, 1 << 70, "'7'")
    ]


def test_work_goes_to_a_stream_of_another_library(run):
    program = """
module = getattr(mica, D)
theirs = module.Stream()
mine = module.ExternalStream(theirs.native_handle)
with module.stream(mine):
    print(module.current_stream() == theirs, module.current_stream() == module.default_stream(), end=" ")
    x = mica.ones(3, device=D) + 1
mine.synchronize()
print(x.tolist(), getattr(mine, f"{D}_stream") == theirs.handle, isinstance(mine, module.Stream))
with mica.Stream(D) as stream:
    print(module.current_stream() == stream)
event = mica.Event(D)
event.record()
event.synchronize()
print(event.query())
"""
    assert run(program) == "True False [2.0, 2.0, 2.0] True True\nTrue\nTrue"


# ---- kernels from Python


def test_a_library_registers_kernels_under_its_names(run):
    program = """
mica.utils.rename_privateuse1_backend(D)
x = mica.ones(2, device=D)
for number, key in enumerate(("PrivateUse1", D.upper(), D)):
    lib = mica.library.Library(f"mine{number}", "DEF", key)
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1)
    print(getattr(mica.ops, f"mine{number}").f(x).tolist(), end=" ")
    try:
        getattr(mica.ops, f"mine{number}").f(mica.ones(2))
    except NotImplementedError:
        print("not on the CPU")
"""
    assert run(program) == "\n".join(["[2.0, 2.0] not on the CPU"] * 3)


def test_the_programs_own_backend_is_the_accelerator(null_device):
    program = """
print(mica.accelerator.current_accelerator(), mica.ones(1, device=0).device)
mica.utils.rename_privateuse1_backend("simt")
print(mica.accelerator.current_accelerator(), mica.ones(1, device=0).device)
"""
    result = ran("import mica\n" + program, MICA_PLUGINS=f"{null_device}:{SIMT}")
    assert result.stdout.splitlines() == ["null null:0", "simt simt:0"], result.stderr


def test_a_device_in_python_and_a_name_with_dots_have_modules_too():
    program = """
mica.library.register_device("acme.npu", count=2)
mica.acme_npu.set_device(1)
x = mica.ones(2).acme_npu()
print(x.device, x.is_acme_npu, mica.nn.Linear(1, 1).acme_npu().weight.device, mica.acme_npu.device_count())
mica.library.register_device("sum")
print(callable(mica.sum), callable(mica.ones(2).sum), mica.ones(1, device="sum").device)
try:
    mica.no_such_backend
except AttributeError as error:
    print(error)
"""
    result = ran("import mica\n" + program)
    assert result.stdout.splitlines() == [
        "acme.npu:1 True acme.npu:1 2",
        "True True sum:0",
        "module 'mica' has no attribute 'no_such_backend'",
    ], result.stderr


# ---- programs that import torch


def test_under_the_shim_a_program_finds_its_device(run):
    program = """
import mica.torch
mica.torch.install()
import torch
module = getattr(torch, D)
print(module.is_available(), torch.accelerator.is_available(), torch.accelerator.device_count() == module.device_count())
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
print(torch.ones(2, device=device).device.type, torch.get_device_module().__name__, torch.get_device_module(D) is module)
"""
    assert run(program) == "True True True\nD torch.D True"


def test_under_the_shim_privateuse1_is_the_programs_name(run):
    program = """
import types
import mica.torch
mica.torch.install()
import torch
print(torch._C._get_privateuse1_backend_name(), torch._utils._is_privateuse1_backend_available())
torch.utils.rename_privateuse1_backend(D)
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
print(torch._C._get_privateuse1_backend_name(), torch._utils._is_privateuse1_backend_available())
print(getattr(torch.ones(2), D)().device.type, torch.ones(2, device=D).device.type)
mine = types.ModuleType("torch_mine")
mine.answer = 42
torch._register_device_module(D, mine)
print(getattr(torch, D).answer, torch.get_device_module(D) is mine, torch.accelerator.device_count() > 0)
exec(f"import torch.{D} as imported")
print(imported is mine)
try:
    torch._register_device_module(D, mine)
except RuntimeError as error:
    print("already been registered" in str(error))
"""
    assert run(program) == "privateuseone False\nD True\nD D\n42 True True\nTrue\nTrue"


def test_a_reserved_name_finds_its_plugin_at_first_use():
    # The shim knows "cuda" without a plugin: its first use opens the one that was found.
    program = """
mica._C._register_backend_name("simt")
print(mica.ones(2, device="simt").device)
"""
    folder = f"mica._C._add_plugin_folder({str(SIMT.parent)!r})\n"
    result = ran("import mica\n" + folder + program)
    assert result.stdout.strip() == "simt:0", result.stderr
