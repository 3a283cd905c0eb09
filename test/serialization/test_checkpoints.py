"""Checkpoints that are damaged or hostile, disks that are full: refused with the reason, no code run,
nothing overwritten. And a file that was written once must load for ever."""

from __future__ import annotations

import errno
import io
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import tarfile
import threading
import zipfile
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from process import printed, ran

import mica
from mica import storage
from mica.serialization import _pickler
from mica.serialization._pickle import slots as _pickle_slots

DATA = Path(__file__).resolve().parent.parent / "data"
# Written once, by Mica and by torch 2.13, in both of torch's formats: they load for ever.
GOLDEN = [
    "checkpoint_1.pt",
    "checkpoint_before_zip_1.pt",
    "checkpoint_torch_2_13.pt",
    "checkpoint_torch_2_13_before_zip.pt",
]


def golden_object() -> dict[str, Any]:
    base = mica.arange(6.0).reshape(2, 3)
    return {
        "base": base,
        "row": base[1],
        "half": mica.tensor([0.5, 1.5], dtype=mica.bfloat16),
        "count": mica.tensor(3),
        "wide": mica.tensor([1, 65535], dtype=mica.uint16),
        "weight": mica.nn.Parameter(mica.ones(2)),
        "plain": [1, "a", None, (True, 2.5)],
    }


@pytest.mark.parametrize("name", GOLDEN)
def test_the_golden_files_load(name: str) -> None:
    loaded, made = mica.load(DATA / name), golden_object()
    assert list(loaded) == list(made)
    for name, value in made.items():
        if isinstance(value, mica.Tensor):
            assert loaded[name].tolist() == value.tolist(), name
            assert (loaded[name].dtype, type(loaded[name])) == (value.dtype, type(value))
    assert loaded["plain"] == made["plain"]
    loaded["base"][1, 0] = 7
    assert loaded["row"][0] == 7


def saved(obj: Any) -> bytes:
    file = io.BytesIO()
    mica.save(obj, file)
    return file.getvalue()


def with_pickle(content: bytes, **records: bytes) -> io.BytesIO:
    """A checkpoint with this pickle and these storages."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/version", "3\n")
        for name, data in records.items():
            archive.writestr(f"archive/data/{name[1:]}", data)
    file.seek(0)
    return file


class Evil:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.system, (f"touch {self.path}",))


def test_no_code_of_a_file_runs(tmp_path: Path) -> None:
    for protocol in (0, 2, 4, 5):
        file = with_pickle(pickle.dumps(Evil(str(tmp_path / "ran")), protocol))
        with pytest.raises(pickle.UnpicklingError, match="system|opcode"):
            mica.load(file)
    with pytest.raises(pickle.UnpicklingError):
        mica.load(io.BytesIO(pickle.dumps(Evil(str(tmp_path / "ran")))))
    assert not (tmp_path / "ran").exists()


def storage_call(count: int, offset: int, size: str, stride: str, key: str = "0") -> bytes:
    """The pickle of one tensor, by hand."""
    text = (
        "ctorch._utils\n_rebuild_tensor_v2\n"
        f"((Vstorage\nctorch\nFloatStorage\nV{key}\nVcpu\nI{count}\ntQ"
        f"I{offset}\n({size}t({stride}tI00\nccollections\nOrderedDict\n)RtR."
    )
    return text.encode()


FOUR = b"\0" * 16
HOSTILE = {
    "beyond its storage": (storage_call(4, 1, "I4\n", "I1\n"), "needs 5 elements"),
    "negative stride": (storage_call(4, 3, "I4\n", "I-1\n"), "stride"),
    "negative size": (storage_call(4, 0, "I-4\n", "I1\n"), "size"),
    "huge size": (storage_call(4, 0, "I4611686018427387904\n", "I1\n"), "needs"),
    "more elements than bytes": (storage_call(400, 0, "I4\n", "I1\n"), "needs 1600 bytes"),
    "no record": (storage_call(4, 0, "I4\n", "I1\n", "7"), "data/7"),
    "another folder": (storage_call(4, 0, "I4\n", "I1\n", "../../etc/passwd"), "no record"),
    "huge memo": (b"\x80\x02}r\xff\xff\xff\x7f.", "numbers an object"),
    "huge bytearray": (b"cbuiltins\nbytearray\n(I100000000000\ntR.", "length"),
    "class of its own": (b"(dcbuiltins\neval\nb.", "builtins.eval"),
    "patched class": (b"ctorch._utils\n_rebuild_tensor_v2\n}(V_function\nI1\nub.", "damaged"),
    "instance opcode": (b"(ios\nsystem\n.", "opcode INST"),
    "empty": (b"", "damaged"),
    "cut": (b"\x80\x02}q\x00(X\x03\x00\x00\x00abc", "damaged"),
    "tensor of nothing": (
        b"ctorch._utils\n_rebuild_tensor_v2\n(I1\nI2\nI3\nI4\nI5\nI6\ntR.",
        "not a storage",
    ),
    "foreign persistent id": (b"Vhello\nQ.", "no storage"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_refused(name: str) -> None:
    content, words = HOSTILE[name]
    with pytest.raises(pickle.UnpicklingError, match=words):
        mica.load(with_pickle(content, _0=FOUR))


def test_a_good_pickle_by_hand_loads() -> None:
    loaded = mica.load(with_pickle(storage_call(4, 1, "I3\n", "I1\n"), _0=FOUR))
    assert loaded.tolist() == [0.0, 0.0, 0.0]


def test_compressed_and_overlapping_records_are_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\0" * 10_000_000)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="compressed"):
        mica.load(file)
    content = bytearray(saved([mica.ones(4), mica.zeros(4)]))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        infos = archive.infolist()
    entry = content.rindex(infos[5].filename.encode()) - 46
    content[entry + 42 : entry + 46] = infos[4].header_offset.to_bytes(4, "little")
    with pytest.raises(pickle.UnpicklingError, match="overlap|two records|damaged|cut short"):
        mica.load(io.BytesIO(bytes(content)))


def test_a_record_with_another_checksum_is_refused() -> None:
    content = bytearray(saved(mica.full((4,), 1.0)))
    place = content.index(b"\0\0\x80?" * 4)
    content[place] ^= 1
    with pytest.raises(pickle.UnpicklingError, match="checksum"):
        mica.load(io.BytesIO(bytes(content)))


def test_damaged_files_give_sentences() -> None:
    """Cut, with bytes changed, inserted or removed: an error or the object, never a crash."""
    whole = saved(golden_object())
    draw = random.Random(0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for _ in range(1500):
        content = bytearray(whole)
        kind = draw.randrange(4)
        place = draw.randrange(len(content))
        if kind == 0:
            del content[place:]
        elif kind == 1:
            for _ in range(draw.randrange(1, 8)):
                content[draw.randrange(len(content))] = draw.randrange(256)
        elif kind == 2:
            content[place:place] = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 20)))
        else:
            del content[place : place + draw.randrange(1, 20)]
        try:
            mica.load(io.BytesIO(bytes(content)))
        except pickle.UnpicklingError as error:
            assert len(str(error)) > 20


def test_damaged_pickles_give_sentences() -> None:
    """The pickle alone changed, with its checksum made right."""
    buffer = io.BytesIO()
    pickler = _pickler.Pickler(buffer, 2)
    pickler.dump(golden_object())
    records = {f"_{key}": bytes(storage.bytes_of(flat)) for key, flat, _ in pickler.storages.values()}
    draw = random.Random(1)
    for _ in range(1500):
        content = bytearray(buffer.getvalue())
        for _ in range(draw.randrange(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        try:
            mica.load(with_pickle(bytes(content), **records))
        except pickle.UnpicklingError as error:
            assert len(str(error)) > 20
        except (RuntimeError, MemoryError):
            pass


class Unsaved:
    def __reduce__(self) -> Any:
        raise ValueError("not this one")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt"
    mica.save({"a": mica.ones(2)}, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="not this one"):
        mica.save([mica.ones(2), Unsaved()], path)

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        mica.save([mica.zeros(2)], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.pt"]
    with pytest.raises(RuntimeError, match="does not exist"):
        mica.save(1, tmp_path / "nowhere" / "x.pt")


LIMITED = """
import os, resource, signal, sys
import mica
path, how = sys.argv[1:]
mica.save({"a": mica.ones(10)}, path)
before = open(path, "rb").read()
if how == "small":
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
else:
    import mica.serialization._zip_writer as writer
    whole = writer._add
    def add(archive, name, content):
        if name.endswith("data/1"):
            os.kill(os.getpid(), signal.SIGKILL)
        whole(archive, name, content)
    writer._add = add
try:
    mica.save([mica.zeros(10000), mica.zeros(10)], path)
except OSError as error:
    print(type(error).__name__, open(path, "rb").read() == before, len(os.listdir(os.path.dirname(path))))
"""


def test_a_save_that_ends_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    small = ran(LIMITED, str(path), "small")
    assert small.stdout.split() == ["OSError", "True", "1"], small.stderr
    killed = ran(LIMITED, str(path), "killed")
    assert killed.returncode == -signal.SIGKILL
    assert mica.load(path)["a"].tolist() == [1.0] * 10


def legacy(content: bytes, keys: Any = ("0",), count: int = 4, data: bytes = FOUR) -> bytes:
    """A file of the format before zip, by hand."""
    file = io.BytesIO()
    for head in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": sys.byteorder == "little"}):
        pickle.dump(head, file, 2)
    file.write(content)
    pickle.dump(list(keys), file, 2)
    file.write(count.to_bytes(8, "little", signed=True) + data)
    return file.getvalue()


BEFORE_ZIP = {
    "other counts": (legacy(storage_call(4, 0, "I4\n", "I1\n"), count=5), "stored with 5"),
    "a negative count": (legacy(storage_call(4, 0, "I4\n", "I1\n"), count=-4), "stored with -4"),
    "more than the file has": (legacy(storage_call(2**40, 0, "I4\n", "I1\n"), count=2**40), "of the file's"),
    "other keys": (legacy(storage_call(4, 0, "I4\n", "I1\n"), keys=["1"]), "other storages"),
    "beyond its storage": (legacy(storage_call(4, 1, "I4\n", "I1\n")), "needs 5 elements"),
    "a call": (legacy(b"cos\nsystem\n(Vtouch /tmp/x\ntR.", keys=[]), "os.system"),
    "cut": (legacy(storage_call(4, 0, "I4\n", "I1\n"))[:-3], "of the file's"),
}


@pytest.mark.parametrize("name", BEFORE_ZIP)
def test_hostile_files_of_the_format_before_zip(name: str) -> None:
    content, words = BEFORE_ZIP[name]
    with pytest.raises(pickle.UnpicklingError, match=words):
        mica.load(io.BytesIO(content))


def test_the_format_before_zip_is_not_mapped(tmp_path: Path) -> None:
    mica.save(mica.ones(2), tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="before zip"):
        mica.load(tmp_path / "x.pt", mmap=True)


def test_some_hundred_hostile_inputs() -> None:
    """scripts/fuzz_checkpoints.py runs many more."""
    program = Path(__file__).with_name("hostile_checkpoints.py")
    command = [sys.executable, str(program), "0", "60", os.devnull, "500"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_mapped_tensor_has_its_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "large.pt"
    mica.save({"a": mica.ones(3), "b": mica.zeros(1 << 20)}, path)
    mapped = mica.load(path, mmap=True)
    assert mapped["a"].untyped_storage().nbytes() == 12  # its part of the file, not all of it
    mica.save(mapped["a"], tmp_path / "small.pt")
    assert (tmp_path / "small.pt").stat().st_size < 4000


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_raises() -> None:
    with open("/dev/full", "wb", buffering=0) as file, pytest.raises(OSError):
        mica.save(mica.ones(1000), file)


def test_a_mapped_file_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    mica.save({"a": mica.ones(4), "b": mica.zeros(3)}, path)
    before = zlib.crc32(path.read_bytes())
    loaded = mica.load(path, mmap=True)
    loaded["a"][0] = 5
    assert loaded["a"].tolist() == [5.0, 1.0, 1.0, 1.0]
    assert zlib.crc32(path.read_bytes()) == before
    assert loaded["a"].data_ptr() % 64 == 0
    with pytest.raises(ValueError, match="needs a path"):
        mica.load(io.BytesIO(path.read_bytes()), mmap=True)


def test_a_storage_on_a_device_that_is_not_there(tmp_path: Path) -> None:
    content = saved(mica.ones(4))
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            new.writestr(info.filename, data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0"))
    buffer.seek(0)
    with pytest.raises(RuntimeError, match="map_location"):
        mica.load(buffer)
    buffer.seek(0)
    assert mica.load(buffer, map_location="cpu").tolist() == [1.0] * 4


class Allowed:
    pass


def test_no_object_says_where_its_memory_is() -> None:
    """NumPy believes an attribute of this name, of an object of any class."""
    made = Allowed()
    made.__dict__["__array_interface__"] = {"data": (3735928559, False), "shape": (4,), "typestr": "<f4"}
    with mica.serialization.safe_globals([Allowed]):
        with pytest.raises(pickle.UnpicklingError, match="__array_interface__"):
            mica.load(io.BytesIO(saved(made)))
        made.__dict__ = {"mine": 3}
        assert mica.load(io.BytesIO(saved(made))).mine == 3


def test_a_bare_device_that_is_not_there_is_only_a_name() -> None:
    """As torch writes device("cuda:1"); in a process where no program has named that kind of device."""
    code = """
import io, mica, test_checkpoints as t
for weights_only in (True, False):
    for text in (b"Vcuda\\nK\\x01", b"Vcuda:1\\n"):
        found = mica.load(t.with_pickle(b"ctorch\\ndevice\\n(" + text + b"tR."), weights_only=weights_only)
        print(found.type, found.index)
"""
    said = printed(code, PYTHONPATH=os.pathsep.join(sys.path))
    assert said.split() == ["cuda", "1"] * 4


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_plain_pickle_of_before_the_files_moved(weights_only: bool) -> None:
    t = mica.arange(6.0).reshape(2, 3)
    content = pickle.dumps({"t": t, "row": t[1], "p": mica.nn.Parameter(t)}, protocol=2)
    assert content.count(b"mica.serialization._tensors") > 2
    content = content.replace(b"mica.serialization._tensors", b"mica._serialization")
    found = mica.load(io.BytesIO(content), weights_only=weights_only)
    assert found["row"].tolist() == [3.0, 4.0, 5.0] and type(found["p"]) is mica.nn.Parameter
    found["t"].fill_(1)
    assert found["row"].tolist() == [1.0, 1.0, 1.0]


def test_what_only_the_shim_makes_is_refused_without_it() -> None:
    """A name of torch that is a stand-in on Mica: reading a file imports no mica.torch for it."""
    code = """
import sys, mica, pickle, test_checkpoints as t
content = b"ctorch.jit\\nScriptModule\\n."
for weights_only in (True, False):
    try:
        mica.load(t.with_pickle(content), weights_only=weights_only)
    except pickle.UnpicklingError as error:
        print(weights_only, "torch.jit.ScriptModule" in str(error), "import mica.torch" in str(error))
mica.load(t.with_pickle(b"ctorch.torch_version\\nTorchVersion\\n(V2.1\\ntR."), weights_only=False)
print("mica.torch" in sys.modules)
import mica.torch
print(mica.load(t.with_pickle(content), weights_only=False).__name__)
"""
    said = printed(code, PYTHONPATH=os.pathsep.join(sys.path))
    expected = ["True True False", "False True True", "False", "ScriptModule"]
    assert said.splitlines() == expected


@pytest.mark.parametrize("form", ["zip", "before zip", "first versions"])
def test_the_default_device_is_not_asked(form: str) -> None:
    file = io.BytesIO()
    if form == "first versions":
        file.write(pickle.dumps([mica.ones(2), mica.empty(0)]))
    else:
        mica.save([mica.ones(2), mica.empty(0)], file, _use_new_zipfile_serialization=form == "zip")
    file.seek(0)
    with mica.device("meta"):
        found = mica.load(file)
    assert found[0].tolist() == [1.0, 1.0] and found[1].device.type == "cpu"


@pytest.mark.parametrize("zipped", [True, False])
def test_a_fifo_is_read(tmp_path: Path, zipped: bool) -> None:
    file = io.BytesIO()
    mica.save(mica.arange(3.0), file, _use_new_zipfile_serialization=zipped)
    os.mkfifo(tmp_path / "fifo")
    writer = threading.Thread(target=lambda: (tmp_path / "fifo").write_bytes(file.getvalue()))
    writer.start()
    assert mica.load(tmp_path / "fifo").tolist() == [0.0, 1.0, 2.0]
    writer.join()


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("error", [KeyError("mine"), ValueError("mine"), IndexError("mine")])
def test_what_a_map_location_raises_comes_through(error: Exception, weights_only: bool) -> None:
    def wish(storage: Any, location: str) -> Any:
        raise error

    with pytest.raises(type(error), match="mine") as caught:
        mica.load(io.BytesIO(saved(mica.ones(2))), map_location=wish, weights_only=weights_only)
    assert caught.value is error


def test_a_default_dictionary_keeps_its_factory_on_another_device() -> None:
    content = pickle.dumps(defaultdict(list, a=[mica.ones(2)]))
    found = mica.load(io.BytesIO(content), map_location="cpu", weights_only=False)
    assert type(found) is defaultdict and found["b"] == [] and found["a"][0].tolist() == [1.0, 1.0]


def test_formats_and_kinds_that_are_not_read_are_named() -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("sys_info"))
    with pytest.raises(pickle.UnpicklingError, match="tar archive"):
        mica.load(io.BytesIO(file.getvalue()))
    for path in ("torch._utils._rebuild_sparse_tensor", "torch.float8_e8m0fnu", "torch.per_tensor_affine"):
        module, _, name = path.rpartition(".")
        with pytest.raises(pickle.UnpicklingError, match=f"{path}, .* that Mica lacks") as error:
            mica.load(with_pickle(f"c{module}\n{name}\n.".encode()))
        assert "weights_only=False" not in str(error.value)


def test_the_keys_of_storages_may_be_any_numbers() -> None:
    with pytest.raises(pickle.UnpicklingError, match="list of its storages"):
        mica.load(io.BytesIO(legacy(b"}.", keys=[10**6000])))


@pytest.mark.parametrize("kind", [dict, set])
def test_slots_grow_where_those_of_cpython_do(kind: type) -> None:
    made: Any = kind()
    real, counted = [], []
    bytes_now, slots_now = sys.getsizeof(made), _pickle_slots.table_of(0, kind is set)[0]
    for count in range(1, 200001):
        if kind is dict:
            made[count] = None
        else:
            made.add(count)
        if sys.getsizeof(made) != bytes_now:
            real.append(count)
            bytes_now = sys.getsizeof(made)
        slots, room = _pickle_slots.table_of(count, kind is set)
        assert room >= count
        if slots != slots_now:
            counted.append(count)
            slots_now = slots
    assert counted == [count for count in real if count > 1]  # an empty dictionary has no table yet
