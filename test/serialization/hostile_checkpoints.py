"""Makes hostile checkpoints from a seed, and loads them.

    python hostile_checkpoints.py SEED SECONDS LOG [COUNT]

Each input is a good checkpoint (zip or the format before it, of many shapes) that was cut, flipped,
spliced, given other sizes and counts, compressed, made to overlap, or a pickle of random opcodes or by
hostile_pickles.py's grammar that calls what it must not. Loading must give an object, or raise one of
the errors that say why, in time and memory by the file's size, and change no class, module or built-in
of the process; an audit hook sees whether anything was run, written or opened that a load has no
business with. The input's number stands in LOG while it is loaded. Prints "N inputs, M wrong".
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import random
import struct
import sys
import time
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import hostile_pickles
import process_state

import mica
import mica.serialization
from mica.serialization import _legacy_reader as _checkpoint_legacy, _zip_reader as _checkpoint_read

# What a load may raise: its refusals, and what says that a number is too large for the machine.
EXPECTED = (pickle.UnpicklingError, MemoryError)
FORBIDDEN = (
    "os.",
    "subprocess.",
    "shutil.",
    "socket.",
    "pty.",
    "ctypes.",
    "import",
    "exec",
    "compile",
    "open",
)
# A load's processor time and memory: so much, and for each byte of the file. Sanitizers take some times that.
SLOWER = 8 if "asan" in os.environ.get("LD_PRELOAD", "") else 1
SECONDS, SECONDS_A_BYTE = 2 * SLOWER, 12e-6 * SLOWER
BYTES, BYTES_A_BYTE = 32 << 20, 300 * SLOWER
WHOLE = 500  # inputs after which all modules are compared, and not their most used classes alone
_seen: list[str] = []
_watching = [False]


def watch(event: str, arguments: Any) -> None:
    if _watching[0] and event.startswith(FORBIDDEN):
        _seen.append(f"{event}{arguments!r:.100}")


def objects() -> list[Any]:
    base = mica.arange(12.0).view(3, 4)
    layer = mica.nn.Linear(3, 2)
    return [
        [base, base[1], base.t(), mica.ones(3, dtype=mica.bfloat16), mica.tensor(True)],
        {"state": layer.state_dict(), "numbers": [1, 2.5, 2**70, None], "text": "x" * 40, b"b": {3, 4}},
        {
            "p": mica.nn.Parameter(mica.ones(2)),
            "meta": mica.empty(2, device="meta"),
            "u": mica.ones(2).to(mica.uint16),
        },
        [[[[[mica.zeros(1)]]]], ({"a": {"b": {"c": mica.empty(0)}}},)],
    ]


def seeds() -> list[bytes]:
    made = []
    for zipped in (True, False):
        for protocol in (2, 4):
            for obj in objects():
                file = io.BytesIO()
                mica.save(obj, file, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
                made.append(file.getvalue())
    return made


GLOBALS = [
    "os system",
    "posix system",
    "builtins eval",
    "builtins exec",
    "builtins getattr",
    "builtins __import__",
    "subprocess Popen",
    "torch load",
    "torch.hub load",
    "torch.nn.Module __setattr__",
    "collections OrderedDict",
    "collections defaultdict",
    "collections Counter",
    "torch Size",
    "torch device",
    "torch FloatStorage",
    "torch Tensor",
    "torch float32",
    "torch.nn.parameter Parameter",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_meta_tensor_no_storage",
    "torch._tensor _rebuild_from_type_v2",
    "_codecs encode",
    "builtins bytearray",
    "builtins complex",
    "builtins set",
]
NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    255,
    65536,
    2**31 - 1,
    2**31,
    2**32,
    2**62,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64,
    2**200,
]


def opcodes(draw: random.Random) -> bytes:
    """A pickle of random opcodes; most of them fit their arguments."""
    parts: list[bytes] = [b"\x80\x02"] if draw.random() < 0.8 else []
    for _ in range(draw.randrange(1, 40)):
        kind = draw.randrange(12)
        if kind == 0:
            parts.append(b"c" + draw.choice(GLOBALS).replace(" ", "\n").encode() + b"\n")
        elif kind == 1:
            parts.append(pickle.dumps(draw.choice(NUMBERS), 2)[2:-1])
        elif kind == 2:
            text = draw.choice(
                ["storage", "0", "cpu", "touch /tmp/hostile", "cuda:0", "__class__", "a" * 300]
            ).encode()
            parts.append(b"X" + struct.pack("<I", len(text)) + text)
        elif kind == 3:
            parts.append(draw.choice([b"(", b")", b"]", b"}", b"N", b"\x88", b"\x8f"]))
        elif kind == 4:
            parts.append(draw.choice([b"t", b"l", b"d", b"\x85", b"\x86", b"\x87", b"e", b"u", b"a", b"s"]))
        elif kind in (5, 6):
            parts.append(b"R")
        elif kind == 7:
            parts.append(draw.choice([b"b", b"\x81", b"Q", b"2", b"0", b"1", b"\x90", b"\x91"]))
        elif kind == 8:
            parts.append(b"q" + bytes([draw.randrange(4)]) + b"h" + bytes([draw.randrange(5)]))
        elif kind == 9:
            parts.append(storage(draw))
        elif kind == 10:
            parts.append(b"]" * draw.choice([3, 3000]) + b"a" * draw.choice([2, 2999]))
        else:
            parts.append(bytes(draw.randrange(256) for _ in range(draw.randrange(1, 4))))
    return b"".join(parts) + (b"." if draw.random() < 0.9 else b"")


def storage(draw: random.Random) -> bytes:
    """A tensor over storage 0, with numbers that may be anything."""
    number = lambda: draw.choice([*NUMBERS, *range(5)])  # noqa: E731
    sizes = [f"I{number()}\n" for _ in range(draw.randrange(3))]
    strides = [f"I{number()}\n" for _ in range(len(sizes) if draw.random() < 0.9 else 1)]
    kind = draw.choice(["FloatStorage", "BoolStorage", "ComplexDoubleStorage", "float32"])
    return (
        "ctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\n"
        f"{kind}\nV0\nVcpu\nI{number()}\ntQI{number()}\n({''.join(sizes)}t({''.join(strides)}t"
        "I00\nccollections\nOrderedDict\n)RtR"
    ).encode()


def archive(
    draw: random.Random, content: bytes, method: int = zipfile.ZIP_STORED, good: bool = False
) -> bytes:
    """A zip archive of a pickle and storage 0; `good`: once, with bytes enough."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two records of a name
        with zipfile.ZipFile(file, "w", method) as made:
            made.writestr("archive/data.pkl", content)
            made.writestr("archive/version", "3\n")
            for _ in range(1 if good else draw.randrange(1, 3)):
                made.writestr("archive/data/0", b"\0" * (1000 if good else draw.choice([0, 4, 16, 100000])))
    return file.getvalue()


def flip(draw: random.Random, good: bytes) -> bytes:
    content = bytearray(good)
    for _ in range(draw.choice([1, 1, 2, 8, 64])):
        content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content)


def cut(draw: random.Random, good: bytes) -> bytes:
    return good[: draw.randrange(len(good))] if draw.random() < 0.5 else good[draw.randrange(len(good)) :]


def splice(draw: random.Random, good: bytes) -> bytes:
    a, b, c = (draw.randrange(len(good)) for _ in range(3))
    return good[:a] + good[b : b + draw.randrange(200)] + good[c:]


def count(draw: random.Random, good: bytes) -> bytes:
    """Another number where one stands: in headers, directories, sizes of storages."""
    content = bytearray(good)
    at = draw.randrange(max(len(content) - 8, 1))
    marks = [content.find(m, draw.randrange(len(content))) for m in (b"PK\1\2", b"PK\5\6", b"PK\3\4")]
    if draw.random() < 0.7 and max(marks) >= 0:
        at = draw.choice([m for m in marks if m >= 0]) + draw.randrange(46)
    width = draw.choice(["<H", "<I", "<q"])
    size = struct.calcsize(width)
    content[at : at + size] = struct.pack("<Q", draw.choice(NUMBERS) % 2**64)[:size]
    return bytes(content)


def legacy(draw: random.Random, content: bytes) -> bytes:
    """The head of the format before zip, a hostile pickle, and storages that may be lies."""
    file = io.BytesIO()
    machine = {"little_endian": True, "protocol_version": 1001, "type_sizes": {}}
    for head in (_checkpoint_legacy.MAGIC, _checkpoint_legacy.PROTOCOL, machine):
        pickle.dump(head, file, 2)
    file.write(content)
    keys = ["0"] if b"Storage" in content else []
    pickle.dump(draw.choice([keys, keys, ["0", "0"], "0", [["0"]], [10**5000]]), file, 2)
    file.write(struct.pack("<q", draw.choice([0, 1, 4, -1, 2**60])) + b"\0" * draw.choice([0, 16, 4096]))
    return file.getvalue()


INPUTS: list[Callable[[random.Random, bytes], bytes]] = [
    flip,
    cut,
    splice,
    count,
    lambda draw, good: legacy(draw, opcodes(draw) if draw.random() < 0.5 else storage(draw) + b"."),
    lambda draw, good: flip(draw, archive(draw, opcodes(draw))),
    lambda draw, good: archive(draw, opcodes(draw)),
    lambda draw, good: archive(draw, b"\x80\x02" + storage(draw) + b"."),
    lambda draw, good: archive(draw, b"\x80\x02]" + b"\0" * 100000 + b".", zipfile.ZIP_DEFLATED),
    lambda draw, good: opcodes(draw),
    *[lambda draw, good: archive(draw, hostile_pickles.program(draw), good=True)] * 5,
    *[lambda draw, good: legacy(draw, hostile_pickles.program(draw))] * 2,
    *[lambda draw, good: hostile_pickles.program(draw, first=True)] * 3,
]


def touch(found: Any) -> None:
    """Reads all tensors where that does not take for ever: their memory must be there."""
    rest, seen = [found], set()
    while rest:
        value = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, mica.Tensor):
            if value.device.type == "cpu" and value.numel() < 100000:
                value.detach().clone()
        elif isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, (list, tuple)):
            rest += value


def memory(name: str) -> int:
    """A line of /proc that counts the process's memory, in bytes; 0 where there is none."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) << 10
    return 0


def weighed(content: bytes) -> str:
    """What is wrong with how an input was loaded, what it took, and what it left."""
    before = process_state.short_state()
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the most memory is that of now
    used, begin = memory("VmRSS:"), time.process_time()
    said = load(content)
    seconds, more = time.process_time() - begin, memory("VmHWM:") - used
    if changed := process_state.changes(before, process_state.short_state()):
        return f"changed {changed[:5]}; {said}"
    if said or seconds > SECONDS + SECONDS_A_BYTE * len(content):
        return said or f"took {seconds:.1f} s for {len(content)} bytes"
    if more > BYTES + BYTES_A_BYTE * len(content):
        return f"took {more >> 20} MB for {len(content)} bytes, of the process's {used >> 20}"
    return ""


def load(content: bytes) -> str:
    """Empty, or what is wrong with how an input was loaded."""
    del _seen[:]
    _watching[0] = True
    try:
        found = mica.load(io.BytesIO(content))
    except EXPECTED as error:
        found = None
        if not str(error) and not isinstance(error, MemoryError):
            return f"{type(error).__name__} without a reason"
    except RuntimeError as error:
        found = None
        if "map_location" not in str(error):  # a device that is not there
            return f"RuntimeError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        _watching[0] = False
    if _seen:
        return f"the load did {_seen[:3]}"
    touch(found)
    return ""


def main() -> int:
    seed, seconds, log = int(sys.argv[1]), float(sys.argv[2]), open(sys.argv[3], "w")  # noqa: SIM115
    most = int(sys.argv[4]) if len(sys.argv) > 4 else 1 << 60
    good = seeds()
    for content in good:  # whatever is imported for a load is by now
        assert load(content) or not _checkpoint_read.safe_globals
    for codec in ("raw_unicode_escape", "unicode_escape", "latin1", "ascii", "cp437"):
        "x".encode(codec)
    load(pickle.dumps({}))
    for backend in ("cuda", "xpu"):  # one that a plugin provides, one that none does
        mica._C._device_count(backend)
    sys.addaudithook(watch)
    end, made, wrong = time.monotonic() + seconds, 0, 0
    whole = process_state.whole_state()
    while time.monotonic() < end and made < most:
        log.seek(0)
        log.write(f"{seed + made}\n")
        log.flush()
        draw = random.Random(seed + made)
        made += 1
        content = draw.choice(INPUTS)(draw, draw.choice(good))
        said = weighed(content)
        if said.startswith(
            "took"
        ):  # the machine's own doings are in these numbers too; a file's are there again
            said = weighed(content)
        if made % WHOLE == 0:
            changed = process_state.changes(whole, process_state.whole_state())
            said = said or (f"it or one of ({WHOLE}) before changed {changed[:5]}" if changed else "")
            whole = process_state.whole_state()
        if said:
            wrong += 1
            print(f"WRONG {seed + made - 1}: {said}", flush=True)
    print(f"{made} inputs, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    status = main()
    sys.stdout.flush()
    os._exit(status)
