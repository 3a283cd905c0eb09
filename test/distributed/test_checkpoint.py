"""Checkpoints of some ranks loaded by any other number of ranks: every byte, every layout, and what is refused."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ranks
from pieces import Pieces, bytes_of, cut, tiled
from processes import printed
from ranks import ENGINES, on_all, on_ranks

import mica
import mica.distributed as dist
from mica.distributed import checkpoint
from mica.distributed.checkpoint import (
    CheckpointException,
    FileSystemReader,
    FileSystemWriter,
    _filesystem_writer,
)
from mica.distributed.checkpoint._safetensors import _NAMES
from mica.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from mica.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys

DTYPES = sorted(_NAMES, key=str)


INTEGERS = [mica.uint8, mica.int8, mica.int16, mica.int32, mica.int64]


def random_bytes(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Any bits, such as NaNs with a payload; a bool's are 0 and 1."""
    mica.manual_seed(seed)
    count = dtype.itemsize
    for n in shape:
        count *= n
    drawn = mica.randint(0, 2 if dtype == mica.bool else 256, (count,), dtype=mica.uint8)
    return drawn.view(dtype).reshape(shape)


def whole_state() -> dict[str, Any]:
    found = {f"of.{d}": random_bytes((7, 3), d, i) for i, d in enumerate(DTYPES)}
    return {
        **found,
        "rows": random_bytes((10, 4), mica.float32, 100),
        "columns": random_bytes((4, 10), mica.int16, 101),
        "tiles": random_bytes((8, 13), mica.float64, 102),
        "few": random_bytes((2, 3), mica.bfloat16, 103),
        "deep": random_bytes((3, 4, 5, 2), mica.float16, 104),
        "scalar": random_bytes((), mica.complex128, 105),
        "none": mica.empty(0, 6),
        "large": random_bytes((300, 5001), mica.float32, 106),
    }


def laid_out(state: dict[str, Any], world: int, rank: int) -> dict[str, Any]:
    """The state as a rank has it: some keys in pieces of each kind, the others whole on all ranks."""
    found = dict(state)
    for key, dim in (("rows", 0), ("columns", 1), ("few", 0), ("deep", 2), ("none", 0), ("large", 1)):
        found[key] = cut(state[key], dim, world, rank)
    found["tiles"] = tiled(state["tiles"], world, rank)
    for dtype in DTYPES:
        if str(dtype) > "mica.f":
            found[f"of.{dtype}"] = cut(state[f"of.{dtype}"], 0, world, rank)
    return found


def emptied(value: Any) -> Any:
    if isinstance(value, Pieces):
        return Pieces(value.size(), [(offsets, mica.zeros_like(t)) for offsets, t in value.boxes])
    return mica.zeros_like(value)


def same(value: Any, expected: Any) -> bool:
    if isinstance(value, Pieces):
        return all(bytes_of(a) == bytes_of(b) for (_, a), (_, b) in zip(value.boxes, expected.boxes))
    return bytes_of(value) == bytes_of(expected)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The folder of what a number of ranks saved."""
    state, folders = whole_state(), {}

    def folder_of(world: int) -> Path:
        if world not in folders:
            folders[world] = tmp_path_factory.mktemp(f"saved by {world}")
            on_all(world, lambda r: checkpoint.save(laid_out(state, world, r), checkpoint_id=folders[world]))
        return folders[world]

    return folder_of


@pytest.mark.parametrize("loaders", [1, 2, 3, 4])
@pytest.mark.parametrize("savers", [1, 2, 4])
def test_any_number_of_ranks_loads_what_another_saved(
    saved: Callable[[int], Path], savers: int, loaders: int
) -> None:
    state, folder = whole_state(), saved(savers)

    def load(r: int) -> None:
        expected = laid_out(state, loaders, r)
        found = {key: emptied(value) for key, value in expected.items()}
        checkpoint.load(found, checkpoint_id=folder)
        assert [key for key in found if not same(found[key], expected[key])] == []

    on_all(loaders, load)


def test_each_rank_writes_its_share(saved: Callable[[int], Path]) -> None:
    sizes = [path.stat().st_size for path in saved(4).glob("*.safetensors")]
    total = sum(t.nbytes for t in whole_state().values())
    assert len(sizes) == 4 and total < sum(sizes) < total * 1.01
    assert max(sizes) < total / 4 * 1.01


def test_replicated_tensors_are_written_once_and_by_all_ranks(tmp_path: Path) -> None:
    state = {str(i): mica.full((i + 1, 100), float(i)) for i in range(20)}
    on_all(3, lambda r: checkpoint.save(state, checkpoint_id=tmp_path))
    sizes = sorted(path.stat().st_size for path in tmp_path.glob("*.safetensors"))
    total = sum(t.nbytes for t in state.values())
    assert len(sizes) == 3 and sum(sizes) < total * 1.05 and sizes[-1] < sizes[0] * 1.1


@pytest.mark.parametrize("engine", ENGINES)
def test_with_each_engine(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "engine", engine)
    whole = mica.arange(35.0).reshape(7, 5)

    def both(r: int) -> None:
        checkpoint.save({"x": cut(whole, 0, 3, r), "epoch": 5}, checkpoint_id=tmp_path)
        state = {"x": emptied(cut(whole, 1, 3, r)), "epoch": 0}
        checkpoint.load(state, checkpoint_id=tmp_path)
        assert same(state["x"], cut(whole, 1, 3, r)) and state["epoch"] == 5

    on_all(3, both)


@pytest.mark.skipif(not dist.is_gloo_available(), reason="the library Gloo is not here")
def test_processes_save_what_one_without_a_group_loads(tmp_path: Path) -> None:
    program = """
        import sys, mica, mica.distributed as dist
        sys.path.insert(0, sys.argv[2])
        from pieces import cut
        dist.init_process_group("gloo")
        rank, whole = dist.get_rank(), mica.arange(1000.0).reshape(100, 10)
        dist.checkpoint.save({"x": cut(whole, 0, 2, rank), "y": whole}, checkpoint_id=sys.argv[1])
        state = {"x": mica.zeros(100, 10)}
        dist.checkpoint.load(state, checkpoint_id=sys.argv[1])
        assert mica.equal(state["x"], whole)
        dist.barrier()
        dist.destroy_process_group()
    """
    printed(2, program, str(tmp_path), os.path.dirname(__file__))
    state = {"x": mica.zeros(100, 10), "y": mica.zeros(100, 10)}
    with pytest.warns(UserWarning, match="assuming the intent is to load in a single process"):
        checkpoint.load(state, checkpoint_id=tmp_path)
    assert mica.equal(state["x"], state["y"]) and state["x"][99, 9] == 999


def test_a_group_of_some_ranks_saves(tmp_path: Path) -> None:
    def f(r: int) -> None:
        pair = dist.new_group([1, 2])
        if r in (1, 2):
            piece = cut(mica.arange(6.0), 0, 2, pair.rank())
            checkpoint.save({"x": piece}, checkpoint_id=tmp_path, process_group=pair)

    on_all(3, f)
    state = {"x": mica.zeros(6)}
    checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
    assert state["x"].tolist() == [0, 1, 2, 3, 4, 5]


def test_no_dist_within_a_group_is_for_one_rank_alone(tmp_path: Path) -> None:
    def f(r: int) -> None:
        folder = tmp_path / str(r)
        checkpoint.save({"x": mica.full((2,), float(r))}, checkpoint_id=folder, no_dist=True)
        state = {"x": mica.zeros(2)}
        checkpoint.load(state, checkpoint_id=folder, no_dist=True)
        assert state["x"].tolist() == [r, r]

    on_all(2, f)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.t(),
    "every other": lambda x: x[::2, 1::3],
    "expanded": lambda x: x[:1].expand(5, -1),
    "conjugated": lambda x: mica.complex(x, x + 1).conj(),
    "negated": lambda x: mica.complex(x, x + 1).conj().imag,
    "of a parameter": lambda x: mica.nn.Parameter(x),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_saved_and_loaded_into(name: str, tmp_path: Path) -> None:
    view = VIEWS[name]
    x = view(mica.arange(48.0).reshape(6, 8))
    checkpoint.save({"x": x}, checkpoint_id=tmp_path, no_dist=True)
    into = x.detach().clone() if name == "expanded" else view(mica.zeros(6, 8))
    before = into
    with mica.no_grad():
        into.zero_()
    state = {"x": into}
    checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
    assert state["x"] is before and bytes_of(into) == bytes_of(x)


def test_values_keep_their_types_and_their_places(tmp_path: Path) -> None:
    values = {
        "number": 3, "nan": float("inf"), "text": "ä\n", "none": None, "pair": (1, [2.5, "x"]), "list": [1, 2],
        "bytes": b"\0\xff", "set": {1}, "dtype": mica.float16, "nested": {"deep": [{"a": mica.ones(1)}, {}, {"b": 7}]},
        "tensors in a tuple": (mica.ones(2), 3),
    }  # fmt: skip
    checkpoint.save(values, checkpoint_id=tmp_path, no_dist=True)
    found = _load_state_dict_from_keys(checkpoint_id=tmp_path)
    pair = found.pop("tensors in a tuple")
    assert pair[0].tolist() == [1, 1] and pair[1:] == (3,)
    del values["tensors in a tuple"]
    assert found.pop("nested") == {"deep": [{"a": mica.ones(1)}, None, {"b": 7}]}
    assert found == {k: v for k, v in values.items() if k != "nested"}
    assert _load_state_dict_from_keys("nested.deep", checkpoint_id=tmp_path) == {
        "nested": {"deep": [{"a": mica.ones(1)}, None, {"b": 7}]}
    }
    assert _load_state_dict_from_keys({"number"}, checkpoint_id=tmp_path) == {"number": 3}


def test_keys_that_are_no_text_keep_their_type(tmp_path: Path) -> None:
    saved = {"of": {0: {"count": 5, "x": mica.ones(2)}, (1, 2): 7}, 3: "three"}
    checkpoint.save(saved, checkpoint_id=tmp_path, no_dist=True)
    state = {"of": {0: {"count": 0, "x": mica.zeros(2)}, (1, 2): 0}, 3: ""}
    checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
    assert state["of"].keys() == {0, (1, 2)} and state["of"][(1, 2)] == 7 and state[3] == "three"
    assert state["of"][0]["count"] == 5 and state["of"][0]["x"].tolist() == [1, 1]


class Counter:
    """An object with a state."""

    def __init__(self, count: int) -> None:
        self.count, self.calls = count, 0

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count, "t": mica.full((2,), float(self.count))}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.count, self.calls = state["count"], self.calls + 1
        assert state["t"].tolist() == [self.count] * 2


def test_objects_with_a_state(tmp_path: Path) -> None:
    assert isinstance(Counter(1), checkpoint.stateful.Stateful)
    checkpoint.save({"counter": Counter(4)}, checkpoint_id=tmp_path, no_dist=True)
    counter = Counter(0)
    state = {"counter": counter}
    checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
    assert state["counter"] is counter and (counter.count, counter.calls) == (4, 1)


def test_tensors_on_meta_get_memory(tmp_path: Path) -> None:
    checkpoint.save({"m": {"x": mica.ones(3)}}, checkpoint_id=tmp_path, no_dist=True)
    state = {"m": {"x": mica.empty(3, device="meta")}}
    checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
    assert state["m"]["x"].tolist() == [1, 1, 1] and state["m"]["x"].device.type == "cpu"


@pytest.mark.parametrize(
    "options", [{"single_file_per_rank": False}, {"thread_count": 3}, {"sync_files": False}]
)
def test_numbers_of_files(options: dict[str, Any], tmp_path: Path) -> None:
    state = {str(i): mica.full((i + 1,), float(i)) for i in range(5)}
    checkpoint.save({**state, "n": 1}, storage_writer=FileSystemWriter(tmp_path, **options), no_dist=True)
    expected = {"single_file_per_rank": 6, "thread_count": 3, "sync_files": 1}[next(iter(options))]
    assert len(list(tmp_path.glob("*.safetensors"))) == expected
    found = {key: mica.zeros_like(t) for key, t in state.items()}
    checkpoint.load(found, storage_reader=FileSystemReader(tmp_path), no_dist=True)
    assert all(mica.equal(found[key], state[key]) for key in state)


def test_files_are_split_by_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_filesystem_writer, "_FILE", 1000)
    checkpoint.save({str(i): mica.ones(100) for i in range(8)}, checkpoint_id=tmp_path, no_dist=True)
    assert len(list(tmp_path.glob("*.safetensors"))) == 4


def test_the_files_are_safetensors(tmp_path: Path) -> None:
    whole = mica.arange(12, dtype=mica.int32).reshape(4, 3)
    state = {
        "x": whole,
        "__metadata__": mica.ones(1, dtype=mica.bool),
        "z": mica.ones(2, dtype=mica.complex64),
    }
    on_all(2, lambda r: checkpoint.save({**state, "cut": cut(whole, 0, 2, r)}, checkpoint_id=tmp_path))
    found = {}
    for path in tmp_path.glob("*.safetensors"):
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        assert length % 8 == 0 and header.pop("__metadata__") == {"format": "mica"}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            assert begin % {"I32": 4, "BOOL": 1, "F32": 4}[entry["dtype"]] == 0
            found[name] = (entry["dtype"], entry["shape"], content[8 + length + begin : 8 + length + end])
    assert found == {
        "x": ("I32", [4, 3], bytes_of(whole)),
        "cut[0:2, 0:3]": ("I32", [2, 3], bytes_of(whole[:2])),
        "cut[2:4, 0:3]": ("I32", [2, 3], bytes_of(whole[2:])),
        "__metadata___": ("BOOL", [1], b"\1"),
        "z": ("F32", [2, 2], struct.pack("<4f", 1, 0, 1, 0)),
    }


def test_only_the_boxes_that_are_wanted_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, read = mica.arange(4096.0 * 4096).reshape(4096, 4096), []
    checkpoint.save({"x": whole}, checkpoint_id=tmp_path, no_dist=True)
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda *a: read.append(preadv(*a)) or read[-1])
    for box, most in (
        ((slice(100, 110), slice(None)), 10 * 4096 * 4),
        ((slice(100, 110), slice(7, 8)), 10 * 4096 * 4),  # runs of 4 bytes: rows are read
        ((slice(0, 4096), slice(0, 2048)), 4096 * 4096 * 4),
    ):
        read.clear()
        part = whole[box].clone()
        piece = Pieces(whole.shape, [([box[0].start, box[1].start or 0], mica.zeros_like(part))])
        checkpoint.load({"x": piece}, checkpoint_id=tmp_path, no_dist=True)
        assert mica.equal(piece.boxes[0][1], part) and part.nbytes <= sum(read) <= most
    wide = mica.arange(2.0 * 100000).reshape(2, 100000)
    checkpoint.save({"x": wide}, checkpoint_id=tmp_path, no_dist=True)
    read.clear()
    piece = Pieces(wide.shape, [([0, 50000], mica.zeros(2, 20000))])  # runs of 80 KB: they alone are read
    checkpoint.load({"x": piece}, checkpoint_id=tmp_path, no_dist=True)
    assert mica.equal(piece.boxes[0][1], wide[:, 50000:70000]) and sum(read) == 2 * 20000 * 4


def test_from_and_to_one_file(tmp_path: Path) -> None:
    state = {"model": {"w": mica.arange(4.0)}, "epoch": 2}
    mica.save(state, tmp_path / "one.pt")
    torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "folder")
    dcp_to_torch_save(tmp_path / "folder", tmp_path / "again.pt")
    found = mica.load(tmp_path / "again.pt")
    assert found["epoch"] == 2 and mica.equal(found["model"]["w"], state["model"]["w"])


def _safetensors_file(path: Path, extra: Any = None, **tensors: tuple[str, Any]) -> None:
    """A file as the package safetensors writes it."""
    header, data = {"__metadata__": extra or {"format": "pt"}}, b""
    for name, (dtype, tensor) in tensors.items():
        content = bytes_of(tensor)
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_models_of_hugging_face_are_read_by_many_ranks(tmp_path: Path) -> None:
    x, y = mica.arange(24.0).reshape(6, 4), mica.arange(6).bfloat16()
    _safetensors_file(tmp_path / "model-00001-of-00002.safetensors", **{"a.weight": ("F32", x)})
    _safetensors_file(tmp_path / "model-00002-of-00002.safetensors", bias=("BF16", y))

    def load(r: int) -> None:
        state = {"a": {"weight": emptied(cut(x, 0, 4, r))}, "bias": mica.zeros(6)}
        checkpoint.load(state, storage_reader=checkpoint.HuggingFaceStorageReader(str(tmp_path)))
        assert same(state["a"]["weight"], cut(x, 0, 4, r)) and state["bias"].tolist() == [0, 1, 2, 3, 4, 5]

    on_all(4, load)

    def refuse(kind: type[Exception], **state: Any) -> str:
        reader = checkpoint.HuggingFaceStorageReader(str(tmp_path))
        return refused(kind, 1, lambda r: checkpoint.load(dict(state), storage_reader=reader))

    assert "Missing key" in refuse(RuntimeError, other=mica.ones(1))
    extra = tmp_path / "other.safetensors"
    _safetensors_file(extra, bias=("BF16", y))
    assert "has the tensor (bias), which another file has, too" in refuse(ValueError, bias=y)
    _safetensors_file(extra, z=("F6_E2M3", y))
    assert "(z) of (F6_E2M3), which Mica lacks" in refuse(ValueError, bias=y)
    _safetensors_file(extra, z=("F32", y))
    assert "has (F32) [6] in (12) bytes" in refuse(ValueError, bias=y)
    _safetensors_file(extra, {"DCP_SHARDING_INFO": "{}"}, z=("BF16", y))
    assert "pieces of tensors" in refuse(ValueError, bias=y)
    for path in tmp_path.iterdir():
        path.unlink()
    assert "no file of the ending .safetensors" in refuse(FileNotFoundError, bias=y)


# ---- refused


def refused(kind: type[BaseException], world: int, f: Callable[[int], Any]) -> str:
    """The sentence that all ranks raise, as an error of the kind."""
    found = on_ranks(world, f)
    for one in found:
        assert isinstance(one, kind) and isinstance(one, CheckpointException), found
    assert len({str(one) for one in found}) == 1
    return str(found[0])


def test_pieces_that_overlap_leave_holes_or_stick_out(tmp_path: Path) -> None:
    x = mica.ones(4, 2)

    def save(*boxes: tuple[int, int]) -> Callable[[int], Any]:
        return lambda r: checkpoint.save(
            {"w": Pieces((6, 2), [((boxes[r][0], 0), x[: boxes[r][1]])])}, checkpoint_id=tmp_path
        )

    assert re.search(
        r"key \(w\) has chunks \[0:3, 0:2\] and \[2:6, 0:2\] that overlap",
        refused(ValueError, 2, save((0, 3), (2, 4))),
    )
    assert re.search(
        r"key \(w\) .* a hole: they have \(10\) of the \(12\)", refused(ValueError, 2, save((0, 3), (4, 2)))
    )
    assert re.search(
        r"key \(w\) has a chunk \[3:7, 0:2\] that is not within", refused(ValueError, 2, save((0, 3), (3, 4)))
    )
    assert not list(tmp_path.iterdir())  # planned before anything is written


def test_ranks_that_have_different_things_under_a_key(tmp_path: Path) -> None:
    def save(*states: dict[str, Any]) -> str:
        return refused(ValueError, 2, lambda r: checkpoint.save(states[r], checkpoint_id=tmp_path))

    one, other = mica.ones(2), mica.ones(3)
    assert re.search(
        r"\(0\) and \(1\).*\(x\): \[0:2\].*\[2\].*\[0:3\].*\[3\]", save({"x": one}, {"x": other})
    )
    assert re.search(r"\(x\).*float32.*int64", save({"x": one}, {"x": one.long()}))
    assert re.search(r"\(x\)", save({"x": one}, {"x": 1}))
    halves = [Pieces((4,), [((2 * r,), one if r else one.double())]) for r in range(2)]
    assert re.search(r"\(1\).*float32.*\(x\).*float64", save(*({"x": half} for half in halves)))


class Unknown:
    """A class that loading would refuse."""


def test_values_that_loading_would_refuse_are_refused_when_saved(tmp_path: Path) -> None:
    said = refused(
        TypeError, 1, lambda r: checkpoint.save({"deep": {"x": Unknown()}}, checkpoint_id=tmp_path)
    )
    assert re.search(r"key \(deep\.x\) needs \(test_checkpoint\.Unknown\), which loading would refuse", said)
    said = refused(TypeError, 1, lambda r: checkpoint.save({"x": lambda: 1}, checkpoint_id=tmp_path))
    assert re.search(r"key \(x\), of type \(function\), cannot be saved", said)
    assert not list(tmp_path.iterdir())
    with mica.serialization.safe_globals([Unknown]):
        checkpoint.save({"x": Unknown()}, checkpoint_id=tmp_path, no_dist=True)
        state = {"x": None}
        checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
    assert type(state["x"]) is Unknown
    assert "Unknown" in refused(Exception, 1, lambda r: checkpoint.load({"x": None}, checkpoint_id=tmp_path))


def test_what_does_not_fit_is_refused_on_every_rank(tmp_path: Path) -> None:
    checkpoint.save({"w": mica.ones(4, 2), "n": 3}, checkpoint_id=tmp_path, no_dist=True)

    def load(**state: Any) -> Callable[[int], Any]:
        return lambda r: checkpoint.load(dict(state), checkpoint_id=tmp_path)

    assert re.search(
        r"Missing key in checkpoint state_dict: v\..*\(2\) keys: n, w", refused(RuntimeError, 2, load(v=1))
    )
    said = refused(ValueError, 2, load(w=mica.ones(2, 4)))
    assert re.search(r"saved \[4, 2\] and current \[2, 4\] for the key \(w\)", said)
    said = refused(ValueError, 2, load(w=mica.ones(4, 2, dtype=mica.int32)))
    assert re.search(r"float32\) for the key \(w\), and the state dict \(mica\.int32", said)
    assert re.search(r"tensor for the key \(w\).*type \(int\)", refused(ValueError, 2, load(w=1)))
    state = {"w": mica.zeros(4, 2, dtype=mica.float64)}  # holds every value
    checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
    assert state["w"].sum() == 8

    def one_rank(r: int) -> None:
        checkpoint.load({"w": mica.ones(4, 2 + r)}, checkpoint_id=tmp_path)

    assert refused(ValueError, 3, one_rank).count("fails in the step (plan)") == 2


def test_integers_are_loaded_into_dtypes_that_hold_them_all(tmp_path: Path) -> None:
    into, refusals = [*INTEGERS, mica.bool, mica.float16], set()
    for saved in INTEGERS:
        last = mica.iinfo(saved).max
        checkpoint.save({"x": mica.tensor([last], dtype=saved)}, checkpoint_id=tmp_path, no_dist=True)
        for dtype in into:
            state = {"x": mica.zeros(1, dtype=dtype)}
            try:
                checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
                assert dtype == mica.float16 or state["x"].item() == last
            except ValueError as error:
                assert f"has ({saved}) for the key (x), and the state dict ({dtype})" in str(error)
                refusals.add((saved, dtype))
    u8, i8, i16, i32, i64 = INTEGERS
    assert refusals == {
        (u8, i8), (i8, u8), (i16, u8), (i16, i8), (i32, u8), (i32, i8), (i32, i16), (i64, u8), (i64, i8), (i64, i16),
        (i64, i32), *((saved, mica.bool) for saved in INTEGERS),
    }  # fmt: skip


def test_a_partial_load_leaves_what_the_checkpoint_lacks(tmp_path: Path) -> None:
    checkpoint.save({"w": mica.ones(2)}, checkpoint_id=tmp_path, no_dist=True)
    state = {"w": mica.zeros(2), "v": mica.zeros(2)}
    planner = checkpoint.DefaultLoadPlanner(allow_partial_load=True)
    checkpoint.load(state, checkpoint_id=tmp_path, planner=planner, no_dist=True)
    assert state["w"].tolist() == [1, 1] and state["v"].tolist() == [0, 0]


def test_other_calls_that_are_refused(tmp_path: Path) -> None:
    for call, what in ((checkpoint.save, "storage_writer"), (checkpoint.load, "storage_reader")):
        with pytest.raises(RuntimeError, match=f"`checkpoint_id` must be specified if {what} is None"):
            call({}, no_dist=True)
        with pytest.raises(RuntimeError, match="s3://bucket/x\\) is no path"):
            call({}, checkpoint_id="s3://bucket/x", no_dist=True)
    with pytest.raises(NotImplementedError, match="use_collectives=False"):
        checkpoint.save({}, checkpoint_id=tmp_path, use_collectives=False)
    with pytest.raises(NotImplementedError, match="PROCESS"):
        checkpoint.async_save(
            {},
            checkpoint_id=tmp_path,
            async_checkpointer_type=checkpoint.state_dict_saver.AsyncCheckpointerType.PROCESS,
        )
    assert "meta" in refused(
        ValueError, 1, lambda r: checkpoint.save({"x": mica.ones(1, device="meta")}, checkpoint_id=tmp_path)
    )
    twice = {"a.b": 1, "a": {"b": 2}}
    assert "(a.b)" in refused(ValueError, 1, lambda r: checkpoint.save(twice, checkpoint_id=tmp_path))
    checkpoint.save({"x": 1}, checkpoint_id=tmp_path, no_dist=True)
    writer = FileSystemWriter(tmp_path, overwrite=False)
    said = refused(RuntimeError, 2, lambda r: checkpoint.save({"x": 2}, storage_writer=writer))
    assert "Checkpoint already exists" in said


def test_a_planner_of_ones_own(tmp_path: Path) -> None:
    class Renames(checkpoint.DefaultSavePlanner):
        def set_up_planner(
            self, state_dict: Any, storage_meta: Any = None, is_coordinator: bool = False
        ) -> None:
            renamed = {f"foo_{key}": value for key, value in state_dict.items()}
            super().set_up_planner(renamed, storage_meta, is_coordinator)

    class Lies(checkpoint.DefaultSavePlanner):
        def lookup_object(self, index: Any) -> Any:
            return super().lookup_object(index).half()

    checkpoint.save({"x": mica.ones(2)}, checkpoint_id=tmp_path, planner=Renames(), no_dist=True)
    assert list(_load_state_dict_from_keys(checkpoint_id=tmp_path)) == ["foo_x"]
    said = refused(
        ValueError, 1, lambda r: checkpoint.save({"x": mica.ones(2)}, checkpoint_id=tmp_path, planner=Lies())
    )
    assert re.search(
        r"gives \(\[2\] and \(mica\.float16\)\) for the key \(x\), and its plan says \[2\] and \(mica\.float32",
        said,
    )
