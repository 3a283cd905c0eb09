"""What a program sets reaches plugins by name (<mica/settings.h>), and a plugin may ask for idle memory back."""

from __future__ import annotations

from build import CXX, plugin, python

PROGRAM = """
import sys, mica
mica.load_plugin(sys.argv[1])
read = mica.ops.settings.read
def shown(*names):
    print(*[read(name, -1) for name in names])
"""


def said(program: str, **environment: str) -> list[str]:
    result = python(PROGRAM + program, str(plugin("settings.cc", compiler=CXX)), **environment)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()


def test_settings_reach_plugins() -> None:
    """Each switch of Python's, as it is at first and as it is set; a name that nobody knows has the plugin's number."""
    program = """
names = ("float32_matmul_precision", "matmul_reduced_precision_float16", "matmul_reduced_precision_bfloat16",
         "convolution_library", "convolution_tf32", "convolution_benchmark", "convolution_benchmark_limit",
         "convolution_deterministic", "deterministic", "unknown")
shown(*names)
cudnn, matmul = mica.backends.cudnn, mica.backends.cuda.matmul
matmul.allow_fp16_reduced_precision_reduction = matmul.allow_bf16_reduced_precision_reduction = False
cudnn.enabled = cudnn.allow_tf32 = False
cudnn.benchmark = cudnn.deterministic = True
cudnn.benchmark_limit = 4
mica.use_deterministic_algorithms(True, warn_only=True)
mica.set_float32_matmul_precision("medium")
shown(*names)
matmul.allow_tf32 = False
mica.use_deterministic_algorithms(True)
shown("float32_matmul_precision", "deterministic")
print(mica.get_float32_matmul_precision())
matmul.fp32_precision = cudnn.conv.fp32_precision = "tf32"
shown("float32_matmul_precision", "convolution_tf32")
print(mica.get_float32_matmul_precision(), matmul.fp32_precision, cudnn.conv.fp32_precision)
for word in ("ieee", "none"):
    matmul.fp32_precision = cudnn.conv.fp32_precision = word
    print(matmul.fp32_precision, cudnn.conv.fp32_precision)
    shown("float32_matmul_precision", "convolution_tf32")
cudnn.allow_tf32 = False
print(cudnn.conv.fp32_precision)
"""
    assert said(program) == [
        "0 1 1 1 1 0 10 0 0 -1",
        "2 0 0 0 0 1 4 1 2 -1",
        "0 1",
        "highest",
        "1 1",
        "high tf32 tf32",
        "ieee ieee",
        "0 0",
        "none none",
        "0 1",
        "ieee",
    ]


def test_settings_of_torch_are_the_same() -> None:
    program = """
import mica.torch
mica.torch.install()
import torch
torch.backends.cudnn.allow_tf32 = False
torch.backends.cuda.matmul.allow_tf32 = True
shown("convolution_tf32", "float32_matmul_precision")
mica.backends.cudnn.allow_tf32 = True
torch.set_float32_matmul_precision("highest")
print(torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32)
with torch.backends.cudnn.flags(enabled=False, benchmark=True, allow_tf32=False):
    shown("convolution_library", "convolution_benchmark", "convolution_tf32")
shown("convolution_library", "convolution_benchmark", "convolution_tf32")
"""
    assert said(program) == ["0 1", "True False", "0 1 0", "1 0 1"]


def test_attention_by_cudnn_is_a_setting() -> None:
    program = """
import mica.torch
mica.torch.install()
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
shown("attention_library")
torch.backends.cuda.enable_cudnn_sdp(False)
shown("attention_library")
torch.backends.cuda.enable_cudnn_sdp(True)
with sdpa_kernel(SDPBackend.MATH):
    shown("attention_library")
shown("attention_library")
"""
    assert said(program) == ["1", "0", "0", "1"]


def test_bad_settings() -> None:
    program = """
def attempt(module, name, value):
    try:
        setattr(module, name, value)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
attempt(mica.backends.cudnn, "allow_tf32", 1)
attempt(mica.backends.cudnn, "benchmark_limit", "many")
attempt(mica.backends.cudnn, "benchmark_limit", True)
attempt(mica.backends.cudnn.conv, "fp32_precision", "fp8")
for name, number in (("unknown", 1), ("deterministic", 3), ("convolution_benchmark_limit", -1)):
    try:
        mica._C._set_setting(name, number)
    except ValueError as error:
        print(error)
shown("convolution_tf32", "convolution_benchmark_limit")
"""
    assert said(program) == [
        "TypeError: The setting (allow_tf32) is True or False; this value is of type (int).",
        "TypeError: The setting (benchmark_limit) is an int; this value is of type (str).",
        "TypeError: The setting (benchmark_limit) is an int; this value is of type (bool).",
        "RuntimeError: The precision (fp8) is unknown; expected 'tf32', 'ieee' or 'none'.",
        "The setting (unknown) does not exist; <mica/settings.h> lists them.",
        "The number (3) of the setting (deterministic) is not from (0) to (2).",
        "The number (-1) of the setting (convolution_benchmark_limit) is not from (0) to (9223372036854775807).",
        "1 10",
    ]


def test_a_plugin_has_options_of_its_own() -> None:
    program = """
print(mica.plugin_options(), read("settings.depth", -1))
mica.set_plugin_option("settings.depth", -9)
print(mica.plugin_options(), read("settings.depth", -1), read("depth", -1))
try:
    mica.set_plugin_option("settings.width", 1)
except ValueError as error:
    print(error)
"""
    assert said(program) == [
        "{'settings.depth': 3} 3",
        "{'settings.depth': -9} -9 -1",
        "No plugin that is loaded declares the option (settings.width). Those that are declared: (settings.depth)",
    ]
    given = said("print(mica.plugin_options())", MICA_PLUGIN_OPTIONS="other.depth=1, settings.depth = 7")
    assert given == ["{'settings.depth': 7}"]


def test_a_plugin_empties_the_cache() -> None:
    program = """
x = mica.empty(1 << 20)
del x
idle = lambda: mica.memory_reserved("cpu") - mica.memory_allocated("cpu")
before = idle()
mica.ops.settings.empty_cache()
print(before > 0, idle() < before)
"""
    assert said(program) == ["True True"]
