"""Checkpoints of machines of the other byte order, of parts of storages, and for unpicklers of one's own."""

from __future__ import annotations

import io
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import mica
from mica import serialization
from mica.serialization import LoadEndianness

OTHER = "big" if sys.byteorder == "little" else "little"
DTYPES = (
    "bool",
    "uint8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


def of_other_order(value: mica.Tensor, tell: str | None = OTHER) -> bytes:
    """A checkpoint as a machine of the other byte order writes it: the bytes of each number reversed."""
    swapped = value.clone()
    swapped.untyped_storage().byteswap(value.dtype)
    file, made = io.BytesIO(), io.BytesIO()
    mica.save(swapped, file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("/byteorder"):
                if tell is None:
                    continue
                content = tell.encode()
            new.writestr(name, content)
    return made.getvalue()


@pytest.mark.parametrize("weights_only", (True, False))
@pytest.mark.parametrize("name", DTYPES)
def test_the_other_byte_order(name: str, weights_only: bool, tmp_path: Path) -> None:
    value = mica.tensor([[1, 0, 3], [100, 5, 1]]).to(getattr(mica, name))
    value = value * (1 + 0.5j) if value.is_complex() else value
    path = tmp_path / "x.pt"
    path.write_bytes(of_other_order(value))
    for mapped in (False, True):
        loaded = mica.load(path, weights_only=weights_only, mmap=mapped)
        assert loaded.dtype == value.dtype and loaded.tolist() == value.tolist()
    assert mica.load(path).tolist() == value.tolist()  # mapping wrote nothing into the file


def test_a_shared_map_does_not_swap_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(before := of_other_order(mica.arange(5.0)))
    with serialization.set_default_mmap_options(serialization.MAP_SHARED):
        assert mica.load(path, mmap=True).tolist() == [0, 1, 2, 3, 4]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "chosen,swaps",
    (
        (None, sys.byteorder != "little"),
        (LoadEndianness.NATIVE, False),
        (LoadEndianness.LITTLE, sys.byteorder != "little"),
        (LoadEndianness.BIG, sys.byteorder != "big"),
    ),
)
def test_files_that_do_not_tell_their_order(chosen: Any, swaps: bool) -> None:
    value = mica.tensor([1, 2, 300], dtype=mica.int32)
    content = of_other_order(value, None)
    serialization.set_default_load_endianness(chosen)
    try:
        loaded = mica.load(io.BytesIO(content))
    finally:
        serialization.set_default_load_endianness(None)
    assert (loaded.tolist() == value.tolist()) is swaps


def test_unknown_orders_and_bytes_without_a_dtype_are_refused() -> None:
    with pytest.raises(pickle.UnpicklingError, match="Unknown endianness type"):
        mica.load(io.BytesIO(of_other_order(mica.ones(2), "middle")))
    with pytest.raises(pickle.UnpicklingError, match="no dtype by which its bytes could be swapped"):
        mica.load(io.BytesIO(of_other_order(mica.tensor([1, 2], dtype=mica.uint16))))


@pytest.mark.parametrize("weights_only", (True, False))
def test_a_storage_of_two_dtypes_is_not_swapped_by_one_of_them(weights_only: bool) -> None:
    call = "ctorch._utils\n_rebuild_tensor_v2\n(({}ctorch\n{}\nV0\nVcpu\nI{}\ntQI0\n(I{}\nt(I1\ntI00\nNtR"
    text = f"({call}{call}t.".format("Vstorage\n", "FloatStorage", 2, 2, "Vstorage\n", "DoubleStorage", 1, 1)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in (
            ("data.pkl", text.encode()),
            ("byteorder", OTHER.encode()),
            ("data/0", bytes(8)),
        ):
            archive.writestr(f"x/{name}", content)
    made.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="elements of two sizes"):
        mica.load(made, weights_only=weights_only)


def parts(first: str, second: str) -> bytes:
    """A file of the format before zip with two references to a storage of two float32."""
    file = io.BytesIO()
    for head in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}):
        pickle.dump(head, file, 2)
    call = "(Vstorage\nctorch\nFloatStorage\nV7\nVcpu\nI2\n{}tQ"
    file.write(f"({call}{call}t.".format(first, second).encode())
    pickle.dump(["7"], file, 2)
    file.write((2).to_bytes(8, "little") + bytes(mica.tensor([1.5, 2.5]).numpy()))
    return file.getvalue()


def test_parts_of_a_storage() -> None:
    first, second = mica.load(io.BytesIO(parts("(V1\nI0\nI1\nt", "(V2\nI1\nI1\nt")))
    assert (first.tolist(), second.tolist()) == ([1.5], [2.5])
    assert first.data_ptr() + 4 == second.data_ptr()


@pytest.mark.parametrize(
    "part", ("(V1\nI1\nI2\nt", "(V1\nI-1\nI2\nt", "(V1\nI0\nI-1\nt", "(V1\nI0\nt", "V1\n", "I3\n")
)
@pytest.mark.parametrize("weights_only", (True, False))
def test_parts_beyond_a_storage(part: str, weights_only: bool) -> None:
    with pytest.raises(pickle.UnpicklingError, match="the part of it that is meant|without .* on"):
        mica.load(io.BytesIO(parts("N", part)), weights_only=weights_only)


def test_an_unpickler_of_ones_own() -> None:
    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            seen.append(f"{module}.{name}")
            return super().find_class(module, name)

    class module:  # noqa: N801
        pass

    module.Unpickler = Unpickler  # type: ignore[attr-defined]
    seen: list[str] = []
    for new in (True, False):
        file = io.BytesIO()
        mica.save({"x": mica.ones(2), "y": Path("a")}, file, _use_new_zipfile_serialization=new)
        file.seek(0)
        assert mica.load(file, pickle_module=module)["x"].tolist() == [1, 1]
    assert seen and not any(name.startswith("torch") for name in seen)
    with pytest.raises(RuntimeError, match="pickle_module"):
        mica.load(file, pickle_module=module, weights_only=True)


def test_storages_without_elements_have_any_dtype() -> None:
    empty = mica.tensor([], dtype=mica.int8)
    other = mica.TypedStorage(wrap_storage=empty.untyped_storage(), dtype=mica.float64)
    for new in (True, False):
        file = io.BytesIO()
        mica.save([empty, other], file, _use_new_zipfile_serialization=new)
        file.seek(0)
        loaded = mica.load(file)
        assert (loaded[0].dtype, loaded[1].dtype, len(loaded[1])) == (mica.int8, mica.float64, 0)


def test_a_file_that_cannot_seek_has_torch_s_sentence() -> None:
    class Reader:
        def read(self, n: int = -1) -> bytes:
            return b"data"

    with pytest.raises(AttributeError, match="You can only torch.load from a file that is seekable"):
        mica.load(Reader())
