"""Checkpoints both ways between torch and Mica: dtypes, sharing, views, modules, optimisers, mapping."""

from __future__ import annotations

import copy
import io
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch

import mica

DTYPES = [
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
]


def shown(value: Any) -> Any:
    """A value of either library as something that compares."""
    if hasattr(value, "stride"):
        kind = type(value).__name__
        dtype = str(value.dtype).rpartition(".")[2]
        numbers = None if value.device.type == "meta" else value.detach().to(complex_or_float(value)).tolist()
        place = (tuple(value.shape), value.stride(), value.storage_offset(), value.requires_grad)
        return kind, dtype, numbers, place
    if isinstance(value, dict):
        return type(value).__name__, [(k, shown(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)) and type(value).__name__ != "Size":
        return type(value).__name__, [shown(v) for v in value]
    return repr(value).replace("mica.", "torch.")


def complex_or_float(value: Any) -> Any:
    library = mica if isinstance(value, mica.Tensor) else torch
    return library.complex128 if "complex" in str(value.dtype) else library.float64


def everything(L: Any) -> dict[str, Any]:
    base = L.arange(24.0).reshape(4, 6)
    layer = L.nn.Linear(2, 3)
    named = {n: L.tensor([1, 0, 1]).to(getattr(L, n)) for n in DTYPES}
    return {
        "dtypes": named,
        "view": base[1:, ::2],
        "base": base,
        "turned": base.t(),
        "scalar": L.tensor(2.5),
        "empty": L.empty(0, 3),
        "grad": L.ones(2, requires_grad=True),
        "parameter": L.nn.Parameter(L.ones(2), requires_grad=False),
        "meta": L.empty(2, 3, device="meta"),
        "plain": [1, "text", None, (2.5, True), {3}, b"bytes", 2 + 1j, bytearray(b"x")],
        "ordered": OrderedDict(a=1),
        "objects": [L.float32, L.device("cpu"), L.Size((2, 3))],
        "state": layer.state_dict(),
        "large": 2**70,
    }


def stepped(L: Any) -> Any:
    layer = L.nn.Linear(2, 3)
    optim = L.optim.Adam(layer.parameters(), lr=0.1)
    layer(L.ones(1, 2)).sum().backward()
    optim.step()
    return layer, optim


@pytest.mark.parametrize("form", ["zip", "mapped", "before zip"])
@pytest.mark.parametrize("writer, reader", [(mica, torch), (torch, mica), (mica, mica)])
def test_everything_goes_both_ways(writer: Any, reader: Any, form: str, tmp_path: Path) -> None:
    path = tmp_path / "all.pt"
    saved = everything(writer)
    writer.save(
        saved,
        path,
        _use_new_zipfile_serialization=form != "before zip",
    )
    loaded = reader.load(path, mmap=form == "mapped")
    assert shown(loaded) == shown(saved)
    pointer = "_storage_ptr" if reader is mica else "data_ptr"
    places = [
        t._storage_ptr() if pointer == "_storage_ptr" else t.untyped_storage().data_ptr()
        for t in (loaded["view"], loaded["base"], loaded["turned"])
    ]
    assert len(set(places)) == 1


@pytest.mark.parametrize("writer, reader", [(mica, torch), (torch, mica)])
def test_optimisers_and_modules(writer: Any, reader: Any) -> None:
    layer, optim = stepped(writer)
    file = io.BytesIO()
    writer.save({"layer": layer.state_dict(), "optim": optim.state_dict()}, file)
    file.seek(0)
    found = reader.load(file)
    other, other_optim = stepped(reader)
    other.load_state_dict(found["layer"])
    other_optim.load_state_dict(found["optim"])
    for L, m, o in ((writer, layer, optim), (reader, other, other_optim)):
        o.zero_grad()
        m(L.ones(1, 2)).sum().backward()
        o.step()
    assert other.weight.detach().numpy() == pytest.approx(layer.weight.detach().numpy(), rel=1e-6)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch compares the sources of classes
@pytest.mark.parametrize("writer, reader", [(mica, torch), (torch, mica)])
def test_whole_modules_when_they_are_trusted(writer: Any, reader: Any, zipped: bool) -> None:
    net = writer.nn.Sequential(
        writer.nn.Conv2d(1, 2, 2), writer.nn.ReLU(), writer.nn.Flatten(), writer.nn.Linear(8, 2)
    )
    file = io.BytesIO()
    writer.save(net, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    loaded = reader.load(file, weights_only=False)
    x = [[[[0.1 * i * j for i in range(3)] for j in range(3)]]]
    ours, theirs = net(writer.tensor(x)).tolist(), loaded(reader.tensor(x)).tolist()
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
    assert repr(net) == repr(loaded)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("writer, reader", [(mica, torch), (torch, mica), (mica, mica)])
def test_whole_recurrent_networks(writer: Any, reader: Any, zipped: bool, kind: str) -> None:
    writer.manual_seed(0)
    net = getattr(writer.nn, kind)(2, 3, num_layers=2, bidirectional=True)
    file = io.BytesIO()
    writer.save(net, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    loaded = reader.load(file, weights_only=False)
    x = [[0.1, 0.2], [0.3, -0.4]]
    ours, theirs = net(writer.tensor(x))[0], loaded(reader.tensor(x))[0]
    assert ours.detach().numpy() == pytest.approx(theirs.detach().numpy(), rel=1e-5, abs=1e-6)
    loaded.weight_ih_l0.data.zero_()
    assert loaded(reader.tensor(x))[0].tolist() != ours.tolist()


def test_map_location(tmp_path: Path) -> None:
    for L in (mica, torch):
        path = tmp_path / f"{L.__name__}.pt"
        L.save({"a": L.ones(2)}, path)
        for wish in ("cpu", L.device("cpu"), {"cpu": "cpu"}, lambda storage, location: storage, None):
            assert L.load(path, map_location=wish)["a"].tolist() == [1.0, 1.0]
        assert L.load(path, map_location="meta")["a"].device.type == "meta"


@pytest.mark.parametrize("writer, reader", [(mica, torch), (torch, mica)])
def test_modules_by_a_list_of_what_is_safe(writer: Any, reader: Any) -> None:
    net = writer.nn.Sequential(writer.nn.Linear(2, 3), writer.nn.Dropout(0.5), writer.nn.ReLU())
    file = io.BytesIO()
    writer.save(net, file)
    names = reader.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue()))
    assert "torch.nn.modules.dropout.Dropout" in names
    nn = reader.nn
    safe = [nn.Sequential, nn.Linear, nn.Dropout, nn.ReLU]
    with pytest.raises(Exception, match="Weights only load failed"):
        reader.load(io.BytesIO(file.getvalue()))
    with reader.serialization.safe_globals([*safe, set]):
        assert repr(reader.load(io.BytesIO(file.getvalue()))) == repr(net)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("writer, reader", [(mica, torch), (torch, mica), (mica, mica)])
def test_storages_by_themselves(writer: Any, reader: Any, zipped: bool) -> None:
    x = writer.arange(4.0)
    file = io.BytesIO()
    writer.save([x, x.storage(), x.view(2, 2)], file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    tensor, storage, view = reader.load(file)
    assert storage.tolist() == [0, 1, 2, 3] and storage.dtype == reader.float32
    storage[1] = 7
    assert tensor.tolist() == [0, 7, 2, 3] and view.tolist() == [[0, 7], [2, 3]]


def test_arguments_that_torch_refuses() -> None:
    for L in (mica, torch):
        with pytest.raises(TypeError, match="unknown_keyword"):
            L.save(1, io.BytesIO(), unknown_keyword=1)
        file = io.BytesIO()
        L.save([L.ones(1)], file, _use_new_zipfile_serialization=False)
        assert L.load(io.BytesIO(file.getvalue()), map_location="meta")[0].device.type == "meta"


class Thing:
    def __init__(self) -> None:
        self.value = 3


def test_safe_globals(tmp_path: Path) -> None:
    for L in (mica, torch):
        path = tmp_path / f"{L.__name__}.pt"
        L.save(Thing(), path)
        with pytest.raises(Exception, match="Weights only load failed"):
            L.load(path)
        assert L.serialization.get_unsafe_globals_in_checkpoint(path) == [f"{__name__}.Thing"]
        with L.serialization.safe_globals([Thing]):
            assert L.load(path).value == 3
        L.serialization.add_safe_globals([Thing])
        assert Thing in L.serialization.get_safe_globals()
        assert L.load(path).value == 3
        L.serialization.clear_safe_globals()
        assert L.serialization.get_safe_globals() == []
        assert L.load(path, weights_only=False).value == 3


def test_storages_of_two_dtypes_are_refused(tmp_path: Path) -> None:
    for L in (mica, torch):
        x = L.ones(4)
        with pytest.raises(RuntimeError, match="different types"):
            L.save([x, x.view(L.int32)], tmp_path / "x.pt")


def storages(L: Any) -> list[Any]:
    x = L.arange(6.0).reshape(2, 3)
    s = x.untyped_storage()
    t = x.storage()
    found = [len(s), s.nbytes(), len(t), t[2], list(t)[:3], t.size(), t.element_size(), str(s.device)]
    found += [L.FloatStorage([1.0, 2.0]).tolist(), L.LongStorage(3).size(), L.UntypedStorage(5).nbytes()]
    y = L.empty(0).set_(t, 1, (2, 2), (3, 1))
    found += [y.tolist(), y.storage_offset()]
    t.resize_(8)
    found += [t.size(), s.nbytes(), x.tolist(), x.untyped_storage().nbytes(), s.resizable()]
    big = b"\x00\x01\x00\x02\x00\x03"
    found += [L.ShortStorage.from_buffer(big, "big", 2, 2).tolist(), L.ShortStorage([1, 2]).double().tolist()]
    found += [L.ByteStorage([1, 2]).type(), isinstance(t, L.FloatStorage), isinstance(s, L.TypedStorage)]
    found += [t.type(), t.int().tolist()[:3], s.half().tolist()[:4], copy.deepcopy(t)[2], s[1:3].tolist()]
    s[4:8].fill_(0)
    found += [x.tolist(), L.UntypedStorage([3, 1])[1], L.ByteStorage.from_buffer(b"abc").tolist()]
    found += [L.HalfStorage(2).element_size(), pickle.loads(pickle.dumps(L.IntStorage([4, 5]))).tolist()]
    found += [s.is_shared(), s.share_memory_() is s, x.is_shared(), t.is_shared(), s.get_device()]
    y[0, 0] = 9
    found += [x.tolist(), s.clone().tolist() == s.tolist(), t.untyped().nbytes()]
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_storages() -> None:
    assert storages(mica) == storages(torch)


def test_storage_of_a_file(tmp_path: Path) -> None:
    found = []
    for L in (mica, torch):
        path = tmp_path / L.__name__
        path.write_bytes(bytes(range(16)))
        s = L.UntypedStorage.from_file(str(path), True, 16)
        s[0] = 200
        private = L.UntypedStorage.from_file(str(path), False, 8)
        private[1] = 99
        found.append([s.tolist(), private.tolist(), list(path.read_bytes())])
    assert found[0] == found[1]


def test_state_dicts_that_do_not_fit_say_all_at_once() -> None:
    for L in (mica, torch):
        net = L.nn.Sequential(L.nn.Linear(2, 3), L.nn.BatchNorm1d(3), L.nn.Conv1d(1, 2, 3))
        state = net.state_dict()
        before = {k: v.tolist() for k, v in state.items()}
        for key in ("0.weight", "1.running_mean"):
            del state[key]
        state |= {
            "9.x": L.ones(1),
            "extra": 3,
            "2.weight": L.ones(5),
            "1.weight": L.ones(7),
            "0.bias": "text",
        }
        with pytest.raises(RuntimeError) as strict:
            net.load_state_dict(state)
        words = [
            "0.weight",
            "1.running_mean",
            "9.x",
            "extra",
            "0.bias",
            "size mismatch for 2.weight",
            "1.weight",
        ]
        assert all(word in str(strict.value) for word in words)
        with pytest.raises(RuntimeError) as loose:
            net.load_state_dict(state, strict=False)
        assert [word in str(loose.value) for word in words] == [False] * 4 + [True] * 3
        for key in ("2.weight", "1.weight", "0.bias"):
            del state[key]
        found = net.load_state_dict(state, strict=False)
        assert found.missing_keys == ["0.weight", "0.bias", "1.weight", "1.running_mean", "2.weight"]
        assert found.unexpected_keys == ["9.x", "extra"]
        assert {k: v.tolist() for k, v in net.state_dict().items()} == before
