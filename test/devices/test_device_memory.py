"""The host's memory of a device (test/conformance/late_device.cc): how much is reserved, what is given back and
when, limits, statistics, snapshots, pinned memory; copies that do not wait, `fill`, copies between devices.

Each test runs a program in a process of its own, whose device says on stderr what it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from process import ran

START = """
import mica
from mica import nn
from mica.nn import functional as F
D, MB = "late", 1 << 20
def make(size, device=D):
    return mica.empty(size, dtype=mica.uint8, device=device)
def stat(name):
    return mica.memory_stats(D)[name]
"""


def run(late_device: Path, program: str, **settings: str) -> tuple[list[str], list[str]]:
    """The lines that the program prints, and those that the device says."""
    settings = {"LATE_MICROSECONDS": "0", "LATE_SAY": "1", **settings}
    done = ran(START + program, MICA_PLUGINS=str(late_device), OMP_NUM_THREADS="1", **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


# ---- how much is reserved


def test_199_sizes_one_after_another(late_device: Path) -> None:
    program = """
def reserved_over_live(sizes):
    mica.empty_cache(D)
    mica.reset_peak_memory_stats(D)
    x = None
    for size in sizes:
        x = make(size * 86_000)
    return mica.max_memory_reserved(D) / stat("requested_bytes.all.peak")
import random
shuffled = random.Random(0).sample(range(1, 200), 199)
for sizes in range(1, 200), range(199, 0, -1), shuffled:
    print(reserved_over_live(sizes))
print(mica.max_memory_allocated(D) > 30e6)
"""
    *ratios, large = run(late_device, program)[0]
    assert large == "True"
    assert all(1 <= float(ratio) <= 1.3 for ratio in ratios), ratios


GPT = """
class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.reshape(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))
class GPT(nn.Module):
    def __init__(self, vocabulary, d, heads, layers, length):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
        self.blocks = nn.Sequential(*(Block(d, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)
    def forward(self, x):
        return self.head(self.norm(self.blocks(self.token(x) + self.place(mica.arange(x.shape[1], device=D)))))
mica.manual_seed(0)
gpt = GPT(1024, 256, 8, 4, 96).to(D)
optimizer = mica.optim.AdamW(gpt.parameters(), lr=1e-3)
taken = []
for step in range(4):
    words = mica.randint(0, 1024, (8, 97))
    loss = F.cross_entropy(gpt(words[:, :-1].to(D)).flatten(0, 1), words[:, 1:].flatten().to(D))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    taken.append(stat("num_device_alloc"))
print(mica.max_memory_reserved(D), stat("requested_bytes.all.peak"), stat("allocation.all.allocated"), *taken)
"""


def test_the_training_of_a_gpt(late_device: Path) -> None:
    reserved, live, blocks, *taken = map(int, run(late_device, GPT)[0][0].split())
    assert live > 100e6 and blocks > 3000
    assert reserved <= 1.1 * live
    assert taken[-1] - taken[-2] <= 0.02 * blocks / 4  # what a step still asks the device for


# ---- what is given back, and limits


def test_idle_memory_goes_back_before_a_device_is_full(late_device: Path) -> None:
    program = """
parts = [make(4 * MB) for _ in range(12)]
s = mica.Stream(D)
with mica.stream(s):
    other = make(8 * MB)
del parts[1::2], other
big = make(30 * MB)  # fits when the idle blocks, the other stream's among them, are the device's again
print(big.numel() == 30 * MB, stat("num_ooms"))
del big
try:
    make(50 * MB)
except mica.OutOfMemoryError as error:
    print(str(error).splitlines()[0])
print(stat("num_ooms"), stat("num_alloc_retries") >= 1, (mica.ones(3).to(D) * 2).cpu().tolist())
"""
    lines = run(late_device, program, LATE_MEMORY=str(64 << 20))[0]
    assert lines == [
        "True 0",
        "The device late:0 has no memory for a request of 52428800 bytes; 25165824 bytes are in use, 25165824 "
        "reserved, and the limit is not set.",
        "1 True [2.0, 2.0, 2.0]",
    ]


def test_the_sentence_says_what_is_idle_and_cannot_go_back(late_device: Path) -> None:
    program = """
whole = make(40 * MB)
del whole
kept = make(30 * MB)  # cut from it
try:
    make(40 * MB)
except mica.OutOfMemoryError as error:
    print(str(error).splitlines()[0])
"""
    [line] = run(late_device, program, LATE_MEMORY=str(64 << 20))[0]
    assert line.endswith(
        "31457280 bytes are in use, 41943040 reserved, and the limit is not set. Of the reserved ones 10485760 are "
        "idle, between blocks in use or kept for recorded work."
    )


def test_a_fraction_of_the_memory(late_device: Path) -> None:
    program = """
late = mica.late
print(late.get_per_process_memory_fraction())
late.set_per_process_memory_fraction(0.5)
print(late.get_per_process_memory_fraction())
def fits(size):
    try:
        return make(size).numel() == size
    except mica.OutOfMemoryError:
        return False
print(fits(30 * MB), fits(34 * MB), fits(32 * MB))
late.set_per_process_memory_fraction(0)
late.empty_cache()
print(fits(1), late.memory_reserved())
late.set_per_process_memory_fraction(1)
print(fits(60 * MB))
for fraction in 1.5, -0.1:
    try:
        late.set_per_process_memory_fraction(fraction)
    except ValueError as error:
        print(str(error).splitlines()[0])
"""
    assert run(late_device, program, LATE_MEMORY=str(64 << 20))[0] == [
        "1.0",
        "0.5",
        "True False True",
        "False 0",
        "True",
        "The fraction (1.5) must be between 0 and 1.",
        "The fraction (-0.1) must be between 0 and 1.",
    ]


def test_a_fraction_of_unknown_memory_is_refused(late_device: Path) -> None:
    program = """
try:
    mica.late.set_per_process_memory_fraction(0.5)
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""
    [line] = run(late_device, program, LATE_MEMORY="-1")[0]
    assert line.startswith("The device (late:0) does not say how much memory it has")


@pytest.mark.parametrize("fault", ["none", "event_query_never"])
def test_what_another_stream_uses_comes_back_under_pressure(late_device: Path, fault: str) -> None:
    program = """
s = mica.Stream(D)
x = mica.ones(10 * MB).to(D)
with mica.stream(s):
    y = x * x
x.record_stream(s)
del x
print(stat("active_bytes.all.current") - stat("allocated_bytes.all.current") == 40 * MB)
z = make(48 * MB)  # where `x` was
print(z.numel(), (y[:2].cpu() == 1).all().item())
"""
    lines = run(late_device, program, LATE_MEMORY=str(96 << 20), LATE_MICROSECONDS="20000", LATE_FAULT=fault)[
        0
    ]
    assert lines == ["True", f"{48 << 20} True"]


def test_memory_in_the_order_of_streams(late_device: Path) -> None:
    program = """
s = mica.Stream(D)
with mica.stream(s):
    x = mica.full((MB,), 3.0).pin_memory().to(D, non_blocking=True)
    y = x * x
    del x
    mica.empty_cache(D)  # waits for nothing: the device takes it back behind what the stream does
    print(s.query())
    print(y.cpu().unique().tolist())
del y
mica.empty_cache(D)
print(mica.memory_reserved(D))
"""
    lines, said = run(late_device, program, LATE_ORDERED="1", LATE_MICROSECONDS="50000")
    assert lines == ["False", "[9.0]", "0"]
    given = [line.split(" bytes ")[0] for line in said if " bytes for stream " in line]
    back = [line.split(" bytes ")[0] for line in said if " bytes of stream " in line]
    assert len(given) >= 2 and sorted(given) == sorted(back)


# ---- statistics and snapshots


def test_memory_on_its_way_back_is_waited_for(late_device: Path) -> None:
    program = """
x = mica.empty(10 * MB, device=D)
y = x * x  # 80 MB of the 96 wait in the stream's order to come back
del x, y
print(make(80 * MB).numel() == 80 * MB)
"""
    late = {"LATE_ORDERED": "1", "LATE_MEMORY": str(96 << 20), "LATE_MICROSECONDS": "50000"}
    assert run(late_device, program, **late)[0] == ["True"]


def test_statistics_have_torchs_names(late_device: Path) -> None:
    program = """
x = make(3 * MB + 1)
y = make(100)
y = make(3 * MB - 700)
del x
stats = mica.late.memory_stats()
names = ["allocated_bytes", "requested_bytes", "active_bytes", "reserved_bytes", "inactive_split_bytes"]
names += ["allocation", "active", "inactive_split", "segment"]
for name in names:
    print(name, *(stats[f"{name}.all.{part}"] for part in ("current", "peak", "allocated", "freed")))
print(mica.late.memory_stats_as_nested_dict()["segment"]["all"]["peak"])
late = mica.late
print(late.memory_allocated(), late.max_memory_allocated(), late.memory_reserved(), late.max_memory_reserved())
late.reset_peak_memory_stats()
late.reset_accumulated_memory_stats()
late.empty_cache()
print(late.max_memory_allocated(), late.max_memory_reserved() > late.memory_reserved())
print(stat("allocation.all.allocated"), stat("num_device_alloc"), stat("num_device_free"))
"""
    mb = 1 << 20
    first, second = 3 * mb + 512, 3 * mb - 512
    most = first + 512 + second  # the small block goes behind the one that takes its name
    held = (
        (3 * mb + mb // 8) + 3 * mb + 2 * mb
    )  # segments in steps of a sixteenth of 2 MiB; that of small blocks
    lines = run(late_device, program)[0]
    assert lines[:4] == [
        f"allocated_bytes {second} {most} {most} {first + 512}",
        f"requested_bytes {3 * mb - 700} {6 * mb - 599} {6 * mb - 599} {3 * mb + 101}",
        f"active_bytes {second} {most} {most} {first + 512}",
        f"reserved_bytes {held} {held} {held} 0",
    ]
    assert lines[5].startswith("allocation 1 3 3 2") and lines[8] == "segment 3 3 3 0"
    assert lines[9] == "3"
    assert lines[10] == f"{second} {most} {held} {held}"
    assert lines[11] == f"{second} True"
    assert lines[12] == "0 0 2"


def test_a_snapshot_lists_segments_and_blocks(late_device: Path) -> None:
    program = """
whole = make(8 * MB)
del whole
parts = [make(2 * MB - 100) for _ in range(4)]
s = mica.Stream(D)
with mica.stream(s):
    small = make(1000)
del parts[1]
segments = mica.late.memory_snapshot()
print(len(segments), sum(x["total_size"] for x in segments) == mica.late.memory_reserved())
print(sum(x["allocated_size"] for x in segments) == mica.late.memory_allocated())
large, = (x for x in segments if x["segment_type"] == "large")
little, = (x for x in segments if x["segment_type"] == "small")
print([(b["state"], b["size"] // MB, b["requested_size"]) for b in large["blocks"]])
print(large["blocks"][0]["address"] == large["address"] == parts[0].data_ptr(), large["total_size"] == 8 * MB)
print(little["stream"] == s.handle, little["segment_pool_id"], little["device"], little["requested_size"])
"""
    asked = (2 << 20) - 100
    assert run(late_device, program)[0] == [
        "2 True",
        "True",
        str([("active_allocated", 2, asked), ("inactive", 2, 0)] + 2 * [("active_allocated", 2, asked)]),
        "True True",
        "True (0, 0) 0 1000",
    ]


# ---- pinned memory


def test_pinned_memory_has_a_cache_of_its_own(late_device: Path) -> None:
    program = """
reserved = mica.memory_reserved(D)
addresses = set()
for _ in range(10):
    addresses.add(mica.ones(MB).pin_memory().data_ptr())
print(len(addresses), mica.memory_reserved(D) == reserved)
stats = mica.late.host_memory_stats()
print(stats["reserved_bytes.all.current"] == 4 * MB, stats["allocated_bytes.all.current"], stats["segment.all.allocated"])
mica.accelerator.empty_host_cache()
print(mica.late.host_memory_stats()["reserved_bytes.all.current"])
"""
    lines, said = run(late_device, program)
    assert lines == ["1 True", "True 0 1", "0"]
    assert len([line for line in said if line.startswith("pinned")]) == 1


# ---- copies that do not wait


@pytest.mark.parametrize("settings", [{}, {"LATE_UNPINNED": "1"}])
def test_a_write_behind_a_copy_that_does_not_wait(late_device: Path, settings: dict[str, str]) -> None:
    program = """
for given in mica.ones(1000), mica.ones(10, 100).t(), mica.ones(1000, dtype=mica.float64):
    there = mica.empty(given.shape, device=D)
    there.copy_(given, non_blocking=True)
    print(mica.current_stream(D).query())
    given.fill_(5)
    print(there.cpu().unique().tolist())
back = mica.zeros(1000)
back.copy_(mica.ones(1000).to(D), non_blocking=True)
print(back.unique().tolist())
back.fill_(7)
mica.synchronize(D)
print(back.unique().tolist())
large = mica.ones(17 * MB)
there = large.to(D, non_blocking=True)  # larger than what is copied aside
large.fill_(5)
print(there[-3:].cpu().tolist())
"""
    lines = run(late_device, program, LATE_MICROSECONDS="100000", **settings)[0]
    assert lines == 3 * ["False", "[1.0]"] + ["[1.0]", "[7.0]", "[1.0, 1.0, 1.0]"]


# ---- fill


def test_a_copy_aside_needs_no_pinned_memory(late_device: Path) -> None:
    program = "print(mica.ones(1000).to(D, non_blocking=True).cpu().sum().item())"
    assert run(late_device, program, LATE_FULL="1")[0] == ["1000.0"]


def test_copies_aside_are_bounded_together(late_device: Path) -> None:
    program = """
source, there = mica.ones(16 * MB), mica.zeros(16 * MB).to(D)
for _ in range(7):
    there.copy_(source, non_blocking=True)
print(128 <= mica.late.host_memory_stats()["reserved_bytes.all.current"] // MB <= 256)
print(there.cpu().sum().item() == 16 * MB)
"""
    assert run(late_device, program, LATE_MICROSECONDS="100000")[0] == ["True", "True"]


def test_copies_of_another_layout_are_bounded_together(late_device: Path) -> None:
    program = """
import resource
source, most = mica.ones(4096, 2 * 1024), 0  # 32 MB
there = mica.zeros(2 * 1024, 4096).to(D)
mica.synchronize(D)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(16):
    there.copy_(source.t(), non_blocking=True)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024 <= 320)
print(there.cpu().sum().item() == 8 * MB)
"""
    assert run(late_device, program, LATE_MICROSECONDS="500000")[0] == ["True", "True"]


def test_fill_is_the_devices(late_device: Path) -> None:
    program = """
def kept(x, want):
    assert x.cpu().tolist() == want, (x, want)
kept(mica.zeros(3, device=D), [0.0] * 3)
kept(mica.zeros(2, dtype=mica.complex64, device=D), [0j] * 2)
x = mica.ones(4).to(D)
version = x._version
assert x.zero_() is x and x._version == version + 1
kept(x, [0.0] * 4)
kept(mica.full((3,), -1, dtype=mica.int32, device=D), [-1] * 3)
kept(mica.full((3,), 0x0707, dtype=mica.int16, device=D), [0x0707] * 3)
kept(mica.full((3,), 200, dtype=mica.uint8, device=D), [200] * 3)
kept(mica.ones(3, dtype=mica.bool, device=D), [True] * 3)
y = mica.ones(2, 3).to(D)
y[1].zero_()
kept(y, [[1.0] * 3, [0.0] * 3])
counts = mica.fallback_counts().get("late", {})
print(sorted(name for name in counts if "zero" in name or "fill" in name))
w = mica.ones(3).to(D).requires_grad_()
v = w * w
v.zero_()
v.sum().backward()
kept(w.grad, [0.0] * 3)
with mica.no_grad():
    w.zero_()
try:
    mica.empty(3, dtype=mica.uint8, device=D).fill_(300)
except RuntimeError as error:
    print(str(error).splitlines()[0])
y[:, 1].zero_()  # has gaps
kept(y, [[1.0, 0.0, 1.0], [0.0] * 3])
z = mica.empty(3).to(D).fill_(1.5)  # its bytes differ
kept(z, [1.5] * 3)
kept(mica.empty(2, device=D).fill_(-0.0).reciprocal(), [-float("inf")] * 2)
print("the device's `fill` where all bytes become alike; else" in str(mica.explain("zero_", z)))
"""
    lines, said = run(late_device, program)
    assert lines[0] == "[]"
    assert lines[1].startswith("Value (300) does not fit the dtype (uint8)")
    assert lines[2:] == ["True"]
    fills = [line.split()[1] for line in said if line.startswith("fill")]
    assert fills == [
        "0",
        "0",
        "0",
        "255",
        "7",
        "200",
        "1",
        *4 * ["0"],
    ]  # the last in backward and for y, v, w


def test_fill_in_the_order_of_its_stream(late_device: Path) -> None:
    program = """
s = mica.Stream(D)
x, two = mica.ones(1000).to(D), mica.full((1000,), 2.0).to(D)
with mica.stream(s):
    y = x * two
    y.zero_()
    z = y + x
    print(z.cpu().unique().tolist())
"""
    lines, said = run(late_device, program, LATE_MICROSECONDS="20000")
    assert lines == ["[1.0]"]
    stream = next(line.split()[1] for line in said if line.endswith("made"))
    assert f"fill 0 in stream {stream}" in said


def test_a_device_that_declines_goes_the_other_way(late_device: Path) -> None:
    program = """
x = mica.arange(6, dtype=mica.float32).to("late:0")
y = x.to("late:1")
print(y.device, y.cpu().tolist())
y.zero_()
print(y.cpu().tolist(), "mica::zero_" in str(mica.fallback_counts()))
"""
    for fault, fallen in ("declines", "True"), ("none", "False"):
        lines = run(late_device, program, LATE_FAULT=fault)[0]
        assert lines == ["late:1 [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]", f"{[0.0] * 6} {fallen}"]


# ---- locks


def test_no_lock_is_held_while_the_device_is_asked(late_device: Path) -> None:
    # Each of the device's functions asks the host for memory in another thread, and waits for that.
    program = """
s, t = mica.Stream(D), mica.Stream(D)
x = mica.ones(1000).pin_memory().to(D, non_blocking=True)
with mica.stream(s):
    y = x * x
    x.record_stream(s)
    event = s.record_event()
t.wait_event(event)
event.query(), event.synchronize(), s.query()
del x
z = make(4 * MB)
del z
mica.zeros(10, device=D)
y.to("late:1").cpu()
mica.ones(10).to(D, non_blocking=True)
mica.empty_cache(D)
mica.accelerator.empty_host_cache()
mica.synchronize(D)
mica.set_memory_limit(mica.memory_reserved(D) + MB, D)
try:
    make(8 * MB)
except mica.OutOfMemoryError:
    print("done")
mica.set_memory_limit(0, D)
del s, t, event, y
mica.disable_plugin("late")
"""
    for settings in {}, {"LATE_ORDERED": "1"}:
        assert run(late_device, program, LATE_ASK="1", **settings)[0] == ["done"]
