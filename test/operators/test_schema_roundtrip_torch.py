"""Every schema that torch registers parses and prints back unchanged.

The program test/tools/schema_roundtrip.cc answers one line for each line; it lies
somewhere in the build folder that MICA_BUILD_DIR names. Torch's own text is the
expected value, for registered schemas and for the YAML that they come from.
"""

import os
import re
import subprocess
from pathlib import Path

import torch
import torchgen

ROOT = Path(__file__).resolve().parents[2]

# Names that torch evaluates when it registers a default, and Mica prints as written.
NAMED_DEFAULTS = {
    "contiguous_format": "0",
    "Mean": "1",
    "long": "4",
    "float": "6",
    "strided": "0",
}


def tool() -> Path:
    """The built program; a missing one is an error, never a skip."""
    build = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release"))
    for path in sorted(build.rglob("schema_roundtrip")):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(f"No program schema_roundtrip lies under MICA_BUILD_DIR ({build}).")


def round_trip(lines: list[str]) -> list[str]:
    """What the program answers to each line."""
    done = subprocess.run(
        [tool()], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True, timeout=120
    )
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(lines)
    return answers


def normal(text: str) -> str:
    """The text without its white space."""
    return re.sub(r"\s+", "", text)


def registered() -> list[str]:
    """The schemas of every operator and of every custom class's methods."""
    schemas = [str(s) for s in torch._C._jit_get_all_schemas()]
    return schemas + [str(s) for s in torch._C._jit_get_custom_class_schemas()]


def test_registered_schemas_print_back_unchanged() -> None:
    schemas = registered()
    assert len(schemas) > 3000
    differ = [
        f"torch: {expected}\nmica:  {answer}"
        for expected, answer in zip(schemas, round_trip(schemas), strict=True)
        if normal(expected) != normal(answer)
    ]
    assert not differ, "\n".join([f"{len(differ)} of {len(schemas)} differ:", *differ[:20]])


def yaml_schemas() -> list[str]:
    """The `func:` lines of the YAML that torch ships, with the namespace."""
    path = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    lines = re.findall(r"^- func: (.*?)\s*(?:#.*)?$", path.read_text(), re.MULTILINE)
    return [line if "::" in line.split("(")[0] else f"aten::{line}" for line in lines]


def as_registered(text: str) -> str:
    """Named defaults as the numbers that torch registers."""
    for name, number in NAMED_DEFAULTS.items():
        text = re.sub(rf"={name}(?=[,)])", f"={number}", text)
    return text.replace("Dimname", "str")


def test_written_schemas_print_as_torch_registers_them() -> None:
    """Quotes, float spellings and short list defaults get torch's canonical form."""
    expected = {text.split("(")[0]: text for text in registered()}
    written = yaml_schemas()
    assert len(written) > 2000
    answers = dict(zip((w.split("(")[0] for w in written), round_trip(written), strict=True))
    shared = sorted(answers.keys() & expected.keys())
    assert len(shared) > 1500
    differ = [
        f"torch: {expected[name]}\nmica:  {answers[name]}"
        for name in shared
        if normal(as_registered(answers[name])) != normal(expected[name])
    ]
    assert not differ, "\n".join([f"{len(differ)} of {len(shared)} differ:", *differ[:20]])


def test_a_broken_schema_is_an_error_with_its_place() -> None:
    (answer,) = round_trip(["aten::add(Tensr self) -> Tensor"])
    assert answer.startswith("error: line 1, column 11: Type (Tensr) is unknown; did you mean (Tensor)?")
