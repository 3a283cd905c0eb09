"""Files that attack: each attack in each format. None may change a class, a module or a built-in of the
process, give something that was not asked for, or take time or memory beyond the file's own size."""

from __future__ import annotations

import io
import os
import pickle
import resource
import struct
import subprocess
import sys
import time
import traceback
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import process_state
import pytest
from test_checkpoints import FOUR, legacy, with_pickle

import mica


# ---- pickles by hand
def name(path: str) -> bytes:
    module, _, last = path.rpartition(".")
    return f"c{module}\n{last}\n".encode()


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def mapping(**items: bytes) -> bytes:
    return b"}(" + b"".join(text(k) + v for k, v in items.items()) + b"u"


def call(path: str, *arguments: bytes) -> bytes:
    return name(path) + b"(" + b"".join(arguments) + b"tR"


def doubled(first: bytes, times: int, pair: bytes = b"\x86") -> bytes:
    """A value and itself in a pair, and that in a pair, ...: a tree of 2**times leaves in few bytes."""
    return first + b"".join(b"q" + bytes([n]) + b"h" + bytes([n]) + pair for n in range(times))


class Torch:
    """The names and calls of torch's formats."""

    storage = b"(" + text("storage") + name("torch.FloatStorage") + text("0") + text("cpu") + b"K\x04tQ"
    whole_numbers = storage.replace(b"FloatStorage", b"LongStorage").replace(b"K\x04tQ", b"K\x02tQ")
    hooks = call("collections.OrderedDict")
    _tensor = "torch._utils._rebuild_tensor_v2"

    def name(self, path: str) -> bytes:
        return name(path)

    def tensor(
        self,
        size: bytes = b"K\x04\x85",
        stride: bytes = b"K\x01\x85",
        storage: bytes = b"",
        dtype: str = "float32",
    ) -> bytes:
        return call(self._tensor, *self._place(storage or self.storage, dtype, b"K\x00", size, stride))

    def _place(self, storage: bytes, dtype: str, *place: bytes) -> tuple[bytes, ...]:
        return (storage, *place, b"\x89", self.hooks)

    def parameter(self, data: bytes, state: bytes = b"}") -> bytes:
        return call("torch._utils._rebuild_parameter_with_state", data, b"\x88", self.hooks, state)

    def meta(self, size: bytes, stride: bytes) -> bytes:
        return call(
            "torch._utils._rebuild_meta_tensor_no_storage", name("torch.float32"), size, stride, b"\x89"
        )

    def dtype(self, which: str) -> bytes:
        return name(f"torch.{which}")


class First(Torch):
    """Those of the plain pickles of Mica's first versions."""

    storage = call("mica.serialization._tensors._SharedBytes", b"C\x10" + FOUR)
    whole_numbers = storage
    _tensor = "mica.serialization._tensors._rebuild_tensor"

    def name(self, path: str) -> bytes:
        here = (
            "torch.nn.parameter.Parameter",
            "torch.nn.parameter.Buffer",
            "torch.Tensor",
            "torch.Size",
            "torch.device",
        )
        return name(path.replace("torch", "mica", 1) if path in here else path)

    def _place(self, storage: bytes, dtype: str, *place: bytes) -> tuple[bytes, ...]:
        return (storage, self.dtype(dtype), *place, text("cpu"), b"\x89")

    def parameter(self, data: bytes, state: bytes = b"}") -> bytes:
        cls = self.name("torch.nn.parameter.Parameter")
        return call("mica.serialization._tensors._rebuild_subclass", cls, data, b"\x88", state)

    def meta(self, size: bytes, stride: bytes) -> bytes:
        return call("mica.serialization._tensors._rebuild_meta", self.dtype("float32"), size, stride, b"\x89")

    def dtype(self, which: str) -> bytes:
        return call("mica._C._metadata_object", text(which))


SLOTS = b"N" + mapping(__add__=b"K\x05", _grad_fn=b"N", requires_grad=b"\x89", items=b"N") + b"\x86b"
SHARED = [
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "torch.nn.parameter.Buffer",
    "collections.Counter",
    "collections.OrderedDict",
    "collections.defaultdict",
    "torch.Size",
    "torch.float32",
    "torch.FloatStorage",
    "torch.device",
    "builtins.set",
    "builtins.bytearray",
    "builtins.complex",
    "torch._utils._rebuild_tensor_v2",
    "torch.serialization._get_layout",
]


def attacks(w: Torch) -> dict[str, bytes]:
    """Pickles that must be refused."""
    made = {}
    instances = {
        "tensor": w.tensor(),
        "parameter": w.parameter(w.tensor()),
        "storage": w.storage,
        "device": w.name("torch.device") + b"(" + text("cpu") + b"tR",
        "layout": call("torch.serialization._get_layout", text("torch.strided")),
        "dtype": w.dtype("float32"),
        "size": w.name("torch.Size") + b"K\x01\x85\x85R",
    }
    for path in SHARED:
        made[f"slots on {path}"] = w.name(path) + SLOTS
        made[f"attributes on {path}"] = w.name(path) + mapping(__doc__=text("mine")) + b"b"
        made[f"an item in {path}"] = w.name(path) + text("__add__") + b"K\x05s"
        made[f"items in {path}"] = w.name(path) + b"(" + text("__add__") + b"K\x05u"
        made[f"append to {path}"] = w.name(path) + b"K\x05a"
        made[f"members of {path}"] = w.name(path) + b"(K\x05\x90"
    for label, instance in instances.items():
        made[f"slots on a {label}"] = instance + SLOTS
        made[f"attributes on a {label}"] = instance + mapping(_function=b"N") + b"b"
        made[f"items in a {label}"] = instance + b"(K\x00K\x05u"
    for path in ("torch.Tensor", "torch.Size", "collections.OrderedDict", "builtins.set", "torch.device"):
        made[f"a new {path} of a length"] = w.name(path) + b"J\xff\xff\xff\x7f\x85\x81"
        made[f"{path} of a length"] = w.name(path) + b"(J\xff\xff\xff\x7ftR"
    for path in (
        "os.system",
        "builtins.eval",
        "builtins.getattr",
        "torch.load",
        "torch.hub.load",
        "mica.torch.install",
    ):
        made[f"calls {path}"] = call(path, text("x"))
        made[f"calls {path} by its new name"] = (
            text(path.rpartition(".")[0]) + text(path.split(".")[-1]) + b"\x93)R"
        )
        made[f"calls {path} for a subclass"] = call(
            "torch._tensor._rebuild_from_type_v2", name("_codecs.encode"), w.name("torch.Tensor"), b")", b"}"
        )
    nested = b")"
    for _ in range(300):
        nested = b"(" + name("torch._tensor._rebuild_from_type_v2") + w.name("torch.Tensor") + nested + b"}t"
    made["calls within calls"] = name("torch._tensor._rebuild_from_type_v2") + nested + b"R"
    made["hides a method of a tensor"] = w.parameter(w.tensor(), mapping(backward=b"N"))
    made["hides a method of a dictionary"] = w.hooks + mapping(items=name("builtins.set")) + b"b"
    memory = mapping(__array_interface__=b"}")  # NumPy would read where that says
    made["a tensor that says where its memory is"] = w.parameter(w.tensor(), memory)
    made["a dictionary that says where its memory is"] = w.hooks + memory + b"b"
    made["a default made of a function"] = call("collections.defaultdict", name("torch.device"))
    made["a layout that is a module"] = call("torch.serialization._get_layout", text("torch.cuda"))
    made["a layout that is not there"] = call("torch.serialization._get_layout", text("torch.nowhere"))
    made["a tensor as a size"] = w.tensor(size=w.tensor(), stride=w.tensor())
    made["numbers wider than 64 bits"] = w.tensor(size=b"\x8a\x09" + b"\1" * 9 + b"\x85")
    made["more elements than 64 bits"] = w.tensor(
        size=b"(" + b"\x8a\x05\0\0\0\0\1" * 2 + b"K\x00t", stride=b"(K\0K\0K\0t"
    )
    made["a huge tensor without memory"] = w.meta(*[b"\x8a\x08" + b"\xff" * 7 + b"\x7f\x85"] * 2)
    made["a gradient of integers"] = w.parameter(
        w.tensor(b"K\x02\x85", storage=w.whole_numbers, dtype="int64")
    )
    made["a module's class"] = b"(" + text("module") + w.name("torch.Tensor") + text("a") + text("b") + b"tQ"
    made["a list as a key"] = b"}]K\x01s"
    made["a tensor of no storage"] = w.tensor(storage=b"N")
    made["a tensor in place of a word"] = b"(" + w.tensor() + b"NNNNtQ"
    made["an old class"] = b"(icollections\nCounter\n."
    made["a place of the memo where nothing is"] = b"]q\x05h\x03"
    made["a place of the memo below all"] = b"]q\x00g-1\n"
    made["an escape that nobody writes"] = b"S'\\d'\n"
    made["a name that none has"] = text("a" * 2000) + text("b") + b"\x93"
    made["a view of a tensor"] = b"(" + w.storage[1:-2] + w.tensor() + b"tQ"
    return made


def colliding(slots: int) -> list[int]:
    """Numbers that fill two thirds of a dictionary of so many slots: the first half of them along one path
    from slot to slot, the others so that their search leads onto it, and along it to its end."""
    mask, path = slots - 1, [0]
    while len(path) < slots // 2:
        path.append((5 * path[-1] + 1) & mask)
    taken, others = bytearray(slots), []
    for place in path:
        taken[place] = 1
    number = slots
    while len(others) < slots // 6 - 10:
        number += 1
        rest, place = number, number & mask
        while taken[place] and rest:
            rest >>= 5
            place = (5 * place + rest + 1) & mask
        if taken[place]:
            others.append(number)
    return path + others


def word(number: int) -> bytes:
    return b"J" + number.to_bytes(4, "little")


def nested(link: bytes, times: int) -> bytes:
    """None, and what `link` makes of the object before (memo 9), again and again."""
    return b"N" + (b"q\x09" + link) * times


def bombs(w: Torch) -> dict[str, bytes]:
    """Pickles that ask for much more than they weigh: refused, or loaded at their own weight."""
    many = 4000
    crowd = colliding(1 << 16)
    names = b"}(" + b"".join(text(f"a{n}") + b"N" for n in range(20000)) + b"uq\x05"
    huge = b"\x8a\x05\0\0\0\0\1\x85"
    turned = call(
        "torch._utils._rebuild_tensor_v2",
        Torch.storage,
        b"K\x00",
        huge,
        b"K\x00\x85",
        b"\x89",
        w.hooks,
        mapping(neg=b"\x88"),
    )
    sixty_four = b"(" + b"K\x01" * 64 + b"tq\x06"
    key = b"}" + doubled(b"K\x01\x85", 100) + b"Ns"
    return {
        "bytearrays of lengths": b"](" + call("builtins.bytearray", b"J\x00\x00\x00\x40") * 8 + b"e",
        "bytes of bytes": b"](" + b"X\xa0\x86\x01\x00" + b"a" * 100000 + b"q\x00"
        + (call("_codecs.encode", b"h\x00", text("latin1")) + b"") * 2000 + b"e",
        "bytearrays of bytes": b"](" + b"B\xa0\x86\x01\x00" + b"a" * 100000 + b"q\x00"
        + name("builtins.bytearray") + b"q\x01" + b"h\x01h\x00\x85R" * many + b"e",
        "a key of shared tuples": key,
        "a key of shared sets": b"}" + doubled(b"(K\x01\x91", 100, b"\x86\x85(K\x01\x91"[:1]) + b"Ns",
        "a member of shared tuples": b"\x8f(" + doubled(b"K\x01\x85", 100) + b"\x90",
        "a frozen set of shared tuples": b"(" + doubled(b"K\x01\x85", 100) + b"\x91",
        "a called set of shared tuples": call("builtins.set", b"](" + doubled(b"K\x01\x85", 100) + b"e"),
        "a counter of shared tuples": call("collections.Counter", key),
        "deep tuples as a key": b"}" + b"K\x01" + b"\x85" * 500000 + b"Ns",
        "a persistent id of shared tuples": doubled(b"K\x01\x85", 100) + b"Q",
        "a size of shared tuples": w.tensor(size=doubled(b"K\x01\x85", 100)),
        "a state of shared tuples": w.hooks + doubled(b"}", 100) + b"b",
        "a tensor's state of shared tuples": w.parameter(w.tensor(), doubled(b"}", 100)),
        "lists of shared lists": doubled(b"]", 100),
        "dictionaries of dictionaries": b"](" + b"}(" + b"".join(b"M" + struct.pack("<H", n) + b"N" for n in range(20000))
        + b"uq\x00" + name("collections.OrderedDict") + b"q\x01" + b"h\x01h\x00\x85R" * many + b"e",
        "sizes of sizes": b"](" + b"(" + b"K\x01" * 100000 + b"tq\x00" + name("torch.Size") + b"q\x01"
        + b"h\x01h\x00\x85R" * many + b"e",
        "frozen sets of sets": b"](" + b"\x8f(" + b"".join(b"M" + struct.pack("<H", n) for n in range(20000)) + b"\x90"
        + b"q\x00" + name("builtins.frozenset") + b"q\x01" + b"h\x01h\x00\x85R" * many + b"e",
        "keys of one hash": b"}(" + b"".join(
            b"\x8a\x0c" + (n * (2**61 - 1)).to_bytes(12, "little") + b"N" for n in range(1, 30000)
        ) + b"u",
        "members of one hash": b"\x8f(" + b"".join(
            b"\x8a\x0c" + (n * (2**61 - 1)).to_bytes(12, "little") for n in range(1, 30000)
        ) + b"\x90",
        "long keys that are equal": b"](" + (b"X\xa0\x86\x01\x00" + b"a" * 100000) + b"q\x00"
        + (b"X\xa0\x86\x01\x00" + b"a" * 100000) + b"q\x01" + b"}h\x00Nsq\x02" + b"h\x02h\x01Ns" * (50 * many) + b"e",
        "long numbers as keys": b"](" + b"\x8b\xa0\x86\x01\x00" + b"\x01" * 100000 + b"q\x00" + b"}h\x00Ns" * (10 * many) + b"e",
        "a number of many digits": b"I" + b"9" * 300000 + b"\n",
        "a long number of many digits": b"L" + b"9" * 300000 + b"L\n",
        "a far place of the memo": b"}r\xff\xff\xff\x7f",
        "a text longer than the file": b"X\xff\xff\xff\x7fabc",
        "bytes longer than the file": b"\x8e" + b"\xff" * 7 + b"\x7fabc",
        "a bytearray longer than the file": b"\x96" + b"\xff" * 7 + b"\x7fabc",
        "a frame longer than the file": b"\x80\x04\x95" + b"\xff" * 7 + b"\x7f}",
        "marks": b"(" * 200000 + b"t" * 200000,
        "lists in lists": b"]" * 200000 + b"a" * 199999,
        "tuples in tuples": b")" + b"\x85" * 500000,
        "states in states": w.tensor() + b"q\x00" + name("torch._tensor._rebuild_from_type_v2") + b"q\x01"
        + name("torch._utils._rebuild_tensor_v2") + b"q\x02" + name("torch.Tensor") + b"q\x03"
        + b"(" + w.storage + b"K\x00))\x89" + w.hooks + b"tq\x04" + text("a") + b"q\x05" + b"N"
        + (b"q\x06h\x01(h\x02h\x03h\x04}h\x05h\x06stR" * 50000),
        "an expanded tensor": w.tensor(size=b"\x8a\x06\0\0\0\0\0\1\x85", stride=b"K\x00\x85"),
        "expanded tensors": b"](" + w.tensor(size=b"\x8a\x06\0\0\0\0\0\1\x85", stride=b"K\x00\x85") * 50 + b"e",
        "a huge tensor without memory": w.meta(b"\x8a\x06\0\0\0\0\0\1\x85", b"K\x01\x85"),
        "names longer than they need be": text("a" * 100000) + b"q\x00" + b"0](" + b"h\x00h\x00\x93" * 100 + b"e",
        "many long names": text("a" * 100000) + b"q\x00" + b"0]("
        + b"".join(b"h\x00" + text(str(n)) + b"\x93" for n in range(4000)) + b"e",
        "colliding keys": b"}(" + b"".join(word(n) + b"N" for n in crowd) + b"u",
        "colliding keys of a counter": call("collections.Counter") + b"(" + b"".join(word(n) + b"N" for n in crowd) + b"u",
        "colliding keys of a call": call("collections.OrderedDict", b"](" + b"".join(word(n) + b"N\x86" for n in crowd) + b"e"),
        "a colliding key again and again": b"}q\x00(" + b"".join(word(n) + b"N" for n in crowd) + b"u"
        + word(crowd[-1]) + b"q\x010" + b"h\x01Ns" * 60000,
        "colliding places of the memo": b"N" + b"".join(b"r" + n.to_bytes(4, "little") for n in crowd) + text("a" * max(crowd)),
        "a default dictionary in each other": name("collections.defaultdict") + b"q\x01"
        + nested(b"h\x01N}K\x01h\x09s\x86R", 200000),
        "default dictionaries from above": name("collections.defaultdict") + b"q\x01)Rq\x02"
        + b"K\x01h\x01)Rq\x03s0h\x03" * 200000,
        "ordered dictionaries in each other": name("collections.OrderedDict") + b"q\x01" + nested(b"h\x01}K\x01h\x09s\x85R", 60000),
        "counters in each other": name("collections.Counter") + b"q\x01" + nested(b"h\x01}K\x01h\x09s\x85R", 60000),
        "dictionaries in each other": nested(b"}K\x01h\x09s", 60000),
        "attributes in each other": name("collections.OrderedDict") + b"q\x01" + text("a") + b"q\x02"
        + nested(b"h\x01)R}h\x02h\x09sb", 60000),
        "attributes again and again": b"](" + names + w.parameter(w.tensor(), b"h\x05").replace(b"tR", b"tq\x07R")
        + (b"" if isinstance(w, First) else name("torch._utils._rebuild_parameter_with_state") + b"q\x06" + b"h\x06h\x07R" * 60000) + b"e",
        "attributes of dictionaries": b"](" + names + name("collections.OrderedDict") + b"q\x06" + b"h\x06)Rh\x05b" * 60000 + b"e",
        "a negated expanded tensor": turned,
        "many tensors of many dimensions": b"](" + sixty_four + w.meta(b"h\x06", b"h\x06") * 2000 + b"e",
    }  # fmt: skip


# ---- the formats
def zipped(content: bytes) -> bytes:
    return with_pickle(content, _0=FOUR).getvalue()


def before_zip(content: bytes) -> bytes:
    stored = b"torch\nFloatStorage\n" in content or b"torch\nLongStorage\n" in content
    return legacy(content, keys=["0"] if stored else [])


FORMATS: dict[str, tuple[Torch, Callable[[bytes], bytes]]] = {
    "zip": (Torch(), zipped),
    "before zip": (Torch(), before_zip),
    "first versions": (First(), lambda content: content),
}


def load(content: bytes, **options: Any) -> Any:
    return mica.load(io.BytesIO(content), **options)


@pytest.mark.parametrize("form", FORMATS)
def test_attacks_are_refused_and_change_nothing(form: str) -> None:
    words, packed = FORMATS[form]
    for label, content in attacks(words).items():
        before = process_state.whole_state()
        with pytest.raises(pickle.UnpicklingError) as error:
            load(packed(b"\x80\x04" + content + b"."))
            pytest.fail(f"The attack ({label}) loads.")
        assert not process_state.changes(before, process_state.whole_state()), label
        assert len(str(error.value)) > 60, label


def weigh(content: bytes) -> None:
    """Loads a file in a process of its own, which ends where it takes more than its size allows."""
    used = int(open("/proc/self/statm").read().split()[0]) * 4096  # noqa: SIM115
    # The file, its pickle and what the machine keeps of each byte; some seconds for each megabyte.
    resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20) + 300 * len(content),) * 2)
    resource.setrlimit(
        resource.RLIMIT_CPU, (int(time.process_time()) + 3 + 12 * len(content) // 1000000,) * 2
    )
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    before = process_state.whole_state()
    for options in ({}, {"map_location": "cpu"}, {"map_location": lambda storage, place: storage}):
        try:
            found = load(content, **options)
        except pickle.UnpicklingError as error:
            assert 60 < len(str(error)) < 2000, str(error)[:100]
        else:
            del found
    assert not process_state.changes(before, process_state.whole_state())


def main(form: str) -> None:
    words, packed = FORMATS[form]
    load(packed(b"\x80\x02}."))
    for label, content in bombs(words).items():
        child = os.fork()
        if child == 0:
            try:
                weigh(packed(b"\x80\x04" + content + b"."))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        print(f"{label}: {'held' if status == 0 else f'ended by status ({status})'}", flush=True)


@pytest.mark.parametrize("form", FORMATS)
def test_bombs_cost_what_they_weigh(form: str) -> None:
    """In processes with a limit of memory and of the processor's time, both by the file's size."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, __file__, form], capture_output=True, text=True, env=environment)
    assert run.stdout.splitlines() == [f"{label}: held" for label in bombs(FORMATS[form][0])], run.stderr[
        -2000:
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_what_good_files_have_loads_from_a_pickle_by_hand(form: str) -> None:
    w, packed = FORMATS[form]
    good = mapping(
        counter=call("collections.Counter", b"}K\x01K\x02s"),
        default=call("collections.defaultdict", name("builtins.set")),
        keys=b"}(K\x01K\x02\x86NK\x05\x85Nu",
        frozen=b"(K\x01K\x02\x91",
        size=w.name("torch.Size") + b"K\x01K\x02\x86\x85R",
        array=call("builtins.bytearray", b"C\x03abc"),
        attributes=w.hooks + mapping(_metadata=b"}") + b"b",
        data=w.tensor(),
        parameter=w.parameter(w.tensor(), mapping(mine=b"K\x05")),
    )
    found = load(packed(b"\x80\x04" + good + b"."))
    assert found["data"].tolist() == [0.0] * 4
    assert found["parameter"].mine == 5 and found["parameter"].requires_grad
    assert type(found["counter"]) is Counter and found["counter"] == {1: 2}
    assert found["default"][0] == set() and found["frozen"] == {1, 2} and found["array"] == b"abc"
    assert found["keys"] == {(1, 2): None, (5,): None} and found["size"] == (1, 2)
    assert type(found["attributes"]) is OrderedDict and found["attributes"]._metadata == {}


if __name__ == "__main__":
    main(sys.argv[1])
