"""Holds the built files to what docs/abi.md promises of them.

Reads the release build (MICA_BUILD_DIR): which symbols a plugin exports, what it
links, and that each plugin's description names a file that is there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from layers import absent_layer

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import lint  # noqa: E402

BUILD = Path(os.environ["MICA_BUILD_DIR"])
PLUGINS = BUILD / "lib" / "mica" / "plugins"
ENTRY_SYMBOLS = {"mica_plugin_query_v1", "mica_plugin_init_v1"}
LAYERS = {path.parent.name for path in (ROOT / "keys").glob("*/CMakeLists.txt")}
PLUGINS_OF_THE_SDK = [
    f"mica_{name}.so" for name in ["cpu", *sorted(LAYERS)] if f"keys/{name}" not in lint.CORE_LAYERS
]


def read(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", PLUGINS_OF_THE_SDK)
def test_plugin_exports_its_two_symbols_alone(name: str) -> None:
    symbols = read("nm", "-D", "--defined-only", str(PLUGINS / name))
    assert {line.split()[-1] for line in symbols.splitlines()} == ENTRY_SYMBOLS


@pytest.mark.parametrize("name", PLUGINS_OF_THE_SDK)
def test_plugin_links_nothing_of_mica(name: str) -> None:
    needed = re.findall(r"NEEDED.*\[(.*)\]", read("readelf", "-d", str(PLUGINS / name)))
    assert needed
    assert not [library for library in needed if "mica" in library or "absl" in library]


@pytest.mark.parametrize("name", PLUGINS_OF_THE_SDK)
def test_plugin_binds_every_symbol_when_it_opens(name: str) -> None:
    assert "BIND_NOW" in read("readelf", "-d", str(PLUGINS / name))


@pytest.mark.parametrize("name", PLUGINS_OF_THE_SDK)
def test_plugin_has_no_unique_symbol(name: str) -> None:
    # A GNU unique symbol is one for the whole process: two plugins would share it.
    symbols = read("readelf", "-sW", str(PLUGINS / name))
    assert set(symbols.split()) >= ENTRY_SYMBOLS
    assert not re.search(r"\bUNIQUE\b", symbols)


@pytest.mark.parametrize("name", PLUGINS_OF_THE_SDK)
def test_plugin_carries_its_manifest_in_a_note(name: str) -> None:
    assert re.search(r"^\s*Mica\s", read("readelf", "-nW", str(PLUGINS / name)), re.M)


def test_a_plugin_that_links_libmica_says_which_build_it_belongs_to() -> None:
    """And libmica, which holds it to that, is of the same."""
    bound = set()
    for path in PLUGINS.glob("*.so"):
        if "libmica" not in read("readelf", "-d", str(path)):
            continue
        runtime = json.loads(path.with_name(path.stem.removeprefix("mica_") + ".json").read_text())[
            "runtime_version"
        ]
        assert re.fullmatch(r"libmica [0-9a-f]{16}", runtime), path
        bound.add(runtime)
    assert len(bound) == 1
    assert bound.pop().encode() in (BUILD / "lib" / "libmica.so").read_bytes()


OF_ANOTHER_BUILD = """
import sys, mica
try:
    mica.load_plugin(sys.argv[1])
except RuntimeError as error:
    print(error)
"""


def test_a_layer_of_another_build_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    """Its constructors would run against types of another shape."""
    layer = (PLUGINS / "mica_autograd.so").read_bytes()
    stranger = tmp_path / "mica_autograd.so"
    stranger.write_bytes(re.sub(rb"libmica [0-9a-f]{16}", b"libmica 0123456789abcdef", layer))
    command = [sys.executable, "-c", OF_ANOTHER_BUILD, str(stranger)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "is C++ of another build of Mica (libmica 0123456789abcdef) than this one (libmica " in said
    assert "build or install the two together" in said


# What needs a layer, by the layer's folder in keys/.
NEEDS = {
    "autocast": "mica.autocast('cpu').__enter__()",
    "batched": "mica.func.vmap(mica.sin)(x)",
    "conjugate": "mica.ones(2, dtype=mica.complex64).conj() + 1",
    "functionalize": "mica.func.functionalize(mica.sin)(x)",
    "trace": "mica.fx.make_fx(mica.sin)(x)",
}
NEEDS = {layer: need for layer, need in NEEDS.items() if layer in LAYERS}
WITHOUT_A_LAYER = """
import sys, mica, mica.fx
x = mica.randn(4, 4, requires_grad=True)
model = mica.nn.Sequential(mica.nn.Linear(4, 8), mica.nn.ReLU(), mica.nn.Linear(8, 2))
optimizer = mica.optim.Adam(model.parameters())
model(x).sum().backward()
optimizer.step()
with mica.autocast("cpu", enabled=False):
    model(x)
mica.is_autocast_enabled("cpu"), mica.get_autocast_dtype("cpu")
for need in sys.argv[1:]:
    try:
        eval(need)
        print("runs")
    except (RuntimeError, NotImplementedError) as error:
        print(str(error).splitlines()[0])
"""


@pytest.mark.parametrize("layer", NEEDS)
def test_a_layer_that_is_not_there_is_missed_by_who_needs_it_alone(layer: str, tmp_path: Path) -> None:
    folder = tmp_path / "mica" / "plugins"
    folder.mkdir(parents=True)
    for path in PLUGINS.iterdir():
        if path.stem.removeprefix("mica_") != layer:
            (folder / path.name).symlink_to(path)
    for path in PLUGINS.parent.parent.glob("libmica*.so*"):
        shutil.copy(path, tmp_path, follow_symlinks=False)  # the folder of plugins is beside it
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_LAYER, *NEEDS.values()],
        capture_output=True, text=True, check=True, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
    )  # fmt: skip
    for name, said in zip(NEEDS, result.stdout.splitlines(), strict=True):
        if name == layer:
            assert re.search(rf"No loaded plugin provides \(layer:\w+\).*{tmp_path}", said)
        else:
            assert said == "runs"


def test_every_description_names_a_plugin() -> None:
    descriptions = list(PLUGINS.glob("*.json"))
    assert len(descriptions) >= 2
    for description in descriptions:
        content = json.loads(description.read_text())
        assert content["name"] == description.stem
        assert (PLUGINS / content["path"]).is_file()


def test_libmica_knows_nothing_of_python_and_of_vendor_libraries() -> None:
    needed = re.findall(r"NEEDED.*\[(.*)\]", read("readelf", "-d", str(BUILD / "lib" / "libmica.so")))
    assert needed
    assert not [library for library in needed if re.search(r"python|dnnl|openblas|gomp|sleef", library)]


def test_no_test_is_skipped_for_a_layer_that_is_there() -> None:
    """Those that fail since a layer is not there are, where its folder of keys/ is not (test/conftest.py)."""
    said = "RuntimeError: No loaded plugin provides (layer:{}). It was looked for"
    assert absent_layer(said.format("nobodys")) == "nobodys"
    provided = [
        name.removeprefix("layer:")
        for path in PLUGINS.glob("*.json")
        for name in json.loads(path.read_text())["provides"].split(",")
        if name.startswith("layer:")
    ]
    assert len(provided) >= len(LAYERS)
    assert [layer for layer in provided if absent_layer(said.format(layer))] == []
