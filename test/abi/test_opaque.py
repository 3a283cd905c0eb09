"""Opaque tensors: elements in a layout of a plugin's own (plugins/packed.c has them in reverse).

Whoever takes them as they are never puts them into memory; every operator of Mica's gets the elements.
"""

from __future__ import annotations

import copy
import io
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from compare import unlike
from every_operator import INPLACE, SAMPLED, each, judge
from layers import needs

import mica
from build import CXX, LIBCXX, plugin, python
from mica.conformance.batches import Sample, tensors_of
from mica.conformance.operators import ENTRIES, attempt

pytestmark = needs("opaque")
DTYPES = ("float32", "int64")


@pytest.fixture(scope="module", autouse=True)
def packed() -> Iterator[None]:
    mica.load_plugin(str(plugin("packed.c")))
    yield
    mica.disable_plugin("packed")


def pack(t: mica.Tensor) -> mica.Tensor:
    return mica.ops.packed.pack(t.detach())


def held(t: mica.Tensor) -> bool:
    return mica.ops.packed.held(t)


def reorders() -> int:
    return mica.ops.packed.count("reorders")


def seeded(f: Callable[..., Any], *tensors: mica.Tensor) -> tuple[Any, Exception | None]:
    mica.manual_seed(3)
    return attempt(f, *tensors)


def what_differs(name: str, run: Callable[..., Any], **options: Any) -> list[str]:
    """Calls of an operator whose results are others where its arguments are opaque."""
    wrong = []
    for dtype in DTYPES:
        for number, call in enumerate(ENTRIES[name].calls()):
            sample, error = attempt(Sample, ENTRIES[name], call, dtype, **options)
            if error is not None or not sample.tensors:
                continue
            expected, error = seeded(run, sample, *[t.clone() for t in sample.tensors])
            if error is not None:
                continue
            got, error = seeded(run, sample, *[pack(t) for t in sample.tensors])
            if text := unlike(repr(error) if error else tensors_of(got), tensors_of(expected)):
                wrong.append(f"{dtype} call {number}: {text}")
    return wrong


@each("opaque tensors", SAMPLED)
def test_operators(name: str) -> None:
    judge("opaque tensors", name, what_differs(name, lambda sample, *tensors: sample(*tensors)))


@each("opaque tensors in place", INPLACE)
def test_in_place_forms(name: str) -> None:
    """What is written is seen through a view that was made before, while there was no memory."""

    def run(sample: Sample, first: mica.Tensor, *rest: mica.Tensor) -> Any:
        seen, before = first.detach(), first._version
        given, keyword = sample.given([first, *rest])
        result = sample.f(*given, **keyword)
        return [result, first, seen, mica.tensor(first._version - before)]

    judge("opaque tensors in place", name, what_differs(name, run, inplace=True))


def numbers() -> mica.Tensor:
    return mica.arange(1.0, 7.0).reshape(2, 3)


def test_who_takes_them_never_makes_memory() -> None:
    before = reorders()
    x = pack(numbers())
    y = mica.ops.packed.halve(mica.ops.packed.halve(x))
    assert held(x) and held(y) and reorders() == before
    assert (x.shape, x.stride(), x.dtype, x.device.type) == ((2, 3), (3, 1), mica.float32, "cpu")
    assert y.is_contiguous() and y.storage_offset() == 0 and y.numel() == 6 and y._version == 0
    assert (y + 0).tolist() == (numbers() / 4).tolist()
    assert held(x) and not held(y) and reorders() == before + 1
    assert y.sum().item() == 21 / 4 and reorders() == before + 1  # put into memory once
    assert mica.ops.packed.halve(y).tolist() == (numbers() / 8).tolist()


def test_views_need_no_memory_until_they_are_read() -> None:
    before = reorders()
    x = pack(numbers())
    views = [x.T, x[1], x[:, 1:], x.detach(), x.view(6), x.unsqueeze(0).expand(4, 2, 3)]
    assert reorders() == before and held(x) and held(views[3]) and not held(x[0])
    assert reorders() == before + 1  # held() of a part asked for its elements
    n = numbers()
    same = [n.T, n[1], n[:, 1:], n, n.view(6), n.unsqueeze(0).expand(4, 2, 3)]
    assert [v.tolist() for v in views] == [v.tolist() for v in same] and reorders() == before + 1
    x[0, 0] = 40
    assert views[0][0, 0].item() == 40 and views[4][0].item() == 40 and views[1]._version == 1
    assert not held(x)


def test_a_view_is_written_first() -> None:
    x = pack(numbers())
    x.view(6)[2:4].zero_()
    assert x.tolist() == [[1, 2, 0], [0, 5, 6]] and not held(x)
    out = pack(numbers())
    assert mica.add(numbers(), 1, out=out) is out and out.tolist() == (numbers() + 1).tolist()
    grown = pack(mica.zeros(0))
    assert mica.mul(numbers(), 2, out=grown).tolist() == (numbers() * 2).tolist()
    assert pack(numbers()).resize_(3, 3)[:2].tolist() == numbers().tolist()


READS: dict[str, Callable[[mica.Tensor], Any]] = {
    "nobody": lambda x: None,
    "itself": lambda x: x.sum(),
    "an alias": lambda x: x[1].sum(),
    "a view before and after": lambda x: (x.T, x[0].sum(), x.T),
}
CHANGES: dict[str, Callable[[mica.Tensor], Any]] = {
    "t_": lambda x: x.t_(),
    "squeeze_": lambda x: x.squeeze_(),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "as_strided_": lambda x: x.as_strided_((2,), (2,), 1),
    "detach_": lambda x: x.detach_(),
    "swap": lambda x: x.swapaxes_(0, 1),
    "data": lambda x: setattr(x, "data", mica.full((2, 3), 7.0)),
    "data of another": lambda x: setattr(x, "data", pack(mica.full((2, 3), 7.0))),
    "data of a row": lambda x: setattr(x, "data", pack(mica.full((2, 3), 7.0))[1]),
    "set_": lambda x: x.set_(mica.full((4,), 7.0)),
    "set_ to another": lambda x: x.set_(pack(mica.full((4,), 7.0))),
    "resize_": lambda x: x.resize_(1, 2),
    "share_memory_": lambda x: x.share_memory_(),
    "requires_grad_": lambda x: x.requires_grad_(),
    "storage": lambda x: x.untyped_storage().resize_(400),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("read", READS)
def test_what_moves_a_tensor(read: str, change: str) -> None:
    """Whoever read it before, it lies where a plain one would, and so do its views."""

    def run(x: mica.Tensor) -> Any:
        views = [x, x[1], x.detach()]
        kept = READS[read](x)
        CHANGES[change](x)
        views += [x.detach(), kept]
        shown = [v for v in views if isinstance(v, mica.Tensor)]
        return [(v.tolist(), v.stride(), v.storage_offset(), v.requires_grad) for v in shown]

    assert run(pack(numbers())) == run(numbers().clone())


def test_transforms_see_aliases() -> None:
    def f(x: mica.Tensor, v: mica.Tensor) -> tuple[mica.Tensor, mica.Tensor]:
        return v.mul_(2), x.add_(1)

    for read in (False, True):
        x = pack(mica.arange(4.0))
        v = x[2:]
        if read:
            v.sum()
        with pytest.raises(NotImplementedError, match="shares memory with another"):
            mica.func.functionalize(f)(x, v)

    def g(a: mica.Tensor) -> mica.Tensor:
        b = a * 1
        first = b[..., 1:]
        b.sum()
        b[..., :2].add_(1)
        first.mul_(2)
        return b.as_strided(b.shape, b.stride(), b.storage_offset())

    x, plain = pack(mica.arange(6.0).reshape(1, 2, 3)), mica.arange(6.0).reshape(1, 2, 3)
    two = lambda h: mica.func.vmap(mica.func.vmap(h))  # noqa: E731
    for h in (
        two(g),
        mica.func.vmap(lambda b: mica.func.jvp(g, (b,), (b,))[1]),
        two(lambda a: (a.sum(), a)[1]),
    ):
        assert mica.equal(h(x), h(plain))
    offsets: list[int] = []
    two(lambda a: (a.sum(), offsets.append(a.storage_offset()), a)[2])(pack(numbers())[None])
    assert offsets == [0]


def test_gradients() -> None:
    def loss(x: mica.Tensor) -> mica.Tensor:
        y = x * 2
        y[0].mul_(x[1])
        return (y @ x.T).square().sum()

    plain = numbers().requires_grad_()
    loss(plain).backward()
    x = pack(numbers()).requires_grad_()
    loss(x).backward()
    assert mica.equal(x.grad, plain.grad) and x.is_leaf
    x = pack(numbers())
    x.grad = pack(mica.ones(2, 3))
    mica.optim.SGD([x.requires_grad_()], lr=1.0).step()
    assert x.tolist() == (numbers() - 1).tolist()
    assert mica.func.grad(loss)(pack(numbers())).tolist() == plain.grad.tolist()
    with pytest.raises(NotImplementedError, match="halve"):
        mica.ops.packed.halve(pack(numbers()).requires_grad_()).sum().backward()


@pytest.mark.parametrize("transform", ["vmap", "functionalize", "jvp", "make_fx", "autocast"])
def test_transforms(transform: str) -> None:
    def f(x: mica.Tensor) -> mica.Tensor:
        y = x.clone()
        y.T[0].add_(x[0, 0])
        return y.T @ x + x.sum()

    def run(x: mica.Tensor) -> Any:
        if transform == "vmap":
            return mica.func.vmap(lambda row: row * 2 + row.view(3)[0])(x)
        if transform == "functionalize":
            return mica.func.functionalize(f)(x)
        if transform == "jvp":
            return mica.func.jvp(f, (x,), (x,))[1]
        if transform == "make_fx":
            return mica.fx.make_fx(f)(x)(x)
        with mica.autocast("cpu", mica.bfloat16):
            return f(x)

    assert mica.equal(run(pack(numbers())), run(numbers()))


def test_what_shows_memory() -> None:
    n = numbers()
    reads: dict[str, Callable[[mica.Tensor], Any]] = {
        "numpy": lambda x: x.numpy().tolist(),
        "array": lambda x: np.asarray(x[1:]).tolist(),
        "DLPack": lambda x: np.from_dlpack(x).tolist(),
        "storage": lambda x: x.untyped_storage().tolist(),
        "size of the storage": lambda x: x.untyped_storage().nbytes(),
        "data": lambda x: x.data.add_(1).tolist(),
        "item": lambda x: x[1, 1].item(),
        "repr": repr,
        "buffer": lambda x: bytes(memoryview(x.numpy())),
        "copy": lambda x: copy.deepcopy(x).tolist(),
        "pickle": lambda x: pickle.loads(pickle.dumps(x)).tolist(),
        "shared": lambda x: x.share_memory_().tolist(),
        "truth": lambda x: bool(x[0, 0] == 1),
        "set": lambda x: mica.empty(0).set_(x).tolist(),
        "assigned": lambda x: (setattr(y := mica.zeros(1), "data", x), y.tolist())[1],
        "real pointer": lambda x: x.data_ptr() != 0 and x.data_ptr() == x.untyped_storage().data_ptr(),
    }
    for name, read in reads.items():
        assert read(pack(n)) == read(n.clone()), name
    x = pack(n)
    stream = io.BytesIO()
    mica.save({"x": x, "row": x[1]}, stream)
    stream.seek(0)
    again = mica.load(stream)
    again["row"].zero_()
    assert again["x"].tolist() == [[1, 2, 3], [0, 0, 0]] and x.tolist() == n.tolist()
    y = pack(n)
    view = y.T
    y.data_ptr()
    y.numpy()[0, 0] = 9
    assert view[0, 0].item() == 9


def test_payloads_end_with_their_tensors() -> None:
    before = mica.ops.packed.count("alive")
    x = pack(numbers())
    view = x[0]
    assert mica.ops.packed.count("alive") == before + 1
    x.sum()
    assert mica.ops.packed.count("alive") == before  # in memory now
    y = pack(numbers())
    view = y.detach()
    del y
    assert held(view)
    del x, view
    assert mica.ops.packed.count("alive") == before


def test_a_reorder_that_fails_leaves_the_tensor_as_it_was() -> None:
    x = pack(numbers())
    row = x[1]
    mica.ops.packed.fail(True)
    try:
        for read in (lambda: x + 1, lambda: row.tolist(), lambda: x.numpy(), x.zero_, x.data_ptr):
            with pytest.raises(RuntimeError, match="the packed elements are out of reach"):
                read()
        assert held(x)
    finally:
        mica.ops.packed.fail(False)
    assert row.tolist() == [4, 5, 6] and (x + 1).tolist() == (numbers() + 1).tolist()


def test_threads_read_one_tensor() -> None:
    """Each reads it first, by another way, some hundred times."""
    n = mica.arange(4096.0)
    wrong: list[Any] = []
    reads: list[Callable[[mica.Tensor], Any]] = [
        lambda x: (x + 1)[-1].item() == 4096,
        lambda x: x.view(64, 64).T[1, 0].item() == 1,
        lambda x: x.numpy()[7] == 7,
        lambda x: mica.ops.packed.halve(x)[-1].item() == 4095 / 2,
    ]
    for _ in range(100):
        x = pack(n)
        start = threading.Barrier(len(reads))

        def use(read: Callable[[mica.Tensor], Any], x: mica.Tensor = x, start: Any = start) -> None:
            start.wait()
            if not read(x):
                wrong.append(read)

        threads = [threading.Thread(target=use, args=(read,)) for read in reads]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_without_the_layer_nothing_is_read() -> None:
    x = pack(numbers())
    x.sum()
    mica.disable_plugin("opaque")
    try:
        with pytest.raises(NotImplementedError, match=r"layer \(Opaque\).*layout|layer \(Opaque\)"):
            x + 1
    finally:
        mica.enable_plugin("opaque")
    assert (x + 1).tolist() == (numbers() + 1).tolist()


def test_an_offset_is_read_while_another_thread_makes_the_memory() -> None:
    wrong: list[int] = []
    for _ in range(150):
        x = pack(mica.arange(300_000.0))
        view = x[7:]
        done = threading.Event()

        def read(x: mica.Tensor = x, done: threading.Event = done) -> None:
            mica.neg(x)
            done.set()

        thread = threading.Thread(target=read)
        thread.start()
        while not done.is_set():
            wrong += [
                v for v in (x.storage_offset(), view.storage_offset() - 7, x[3:].storage_offset() - 3) if v
            ]
        thread.join()
    assert not wrong


LIES = {
    "LIE_NO_REORDER": r"payload \(packed.Reversed\).*\[2, 3\].*without `reorder`",
    "LIE_OLD_TYPE": r"payload \(packed.Reversed\).*\[2, 3\].*without `reorder`",
    "LIE_NULL": r"\[2, 3\] is made without a payload",
    "LIE_KEEP": r"reorder.*\(packed.Reversed\) of float32\[2, 3\] on cpu kept a reference",
    "LIE_KEEP_VIEW": r"reorder.*\(packed.Reversed\) of float32\[2, 3\] on cpu kept a reference",
    "LIE_RESIZE": r"reorder.*\(packed.Reversed\).*resized the tensor that it was to write, from \[2, 3\]",
    "LIE_DECLINE": r"reorder.*\(packed.Reversed\) of float32\[2, 3\] on cpu declines to write",
    "DEVICE=77,0": r"\[2, 3\] is made on a device \(77, 0\) that nobody registered",
    "DEVICE=-1,0": r"\[2, 3\] is made on a device \(-1, 0\) that nobody registered",
    "DEVICE=1,0": r"\[2, 3\] on the device \(meta\) would have elements",
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_told(lie: str) -> None:
    done = python(
        """
import re, sys, mica
mica.load_plugin(sys.argv[1])
try:
    mica.ops.packed.pack(mica.ones(2, 3)).sum()
except (ValueError, RuntimeError, NotImplementedError) as error:
    assert re.search(sys.argv[2], str(error)), error
else:
    raise AssertionError("taken")
print((mica.ones(2) + 1).tolist())
""",
        str(plugin("packed.c", f"-D{lie}")),
        LIES[lie],
    )
    assert (done.returncode, done.stdout) == (0, "[2.0, 2.0]\n"), done.stderr


def test_a_kernel_that_declines_leaves_elements_to_the_next() -> None:
    done = python(
        """
import sys, mica
mica.load_plugin(sys.argv[1])
x = mica.ops.packed.pack(mica.arange(6.0))
print(mica.neg(x).tolist(), mica.ops.packed.held(x))
""",
        str(plugin("packed.c", "-DDECLINES")),
    )
    assert done.stdout == "[-0.0, -1.0, -2.0, -3.0, -4.0, -5.0] False\n", done.stderr


@pytest.mark.parametrize("compiler", [CXX, LIBCXX], ids=["gcc", "clang with libc++"])
def test_the_face_in_cpp(compiler: tuple[str, ...]) -> None:
    """The payloads of one plugin are no other's, and memory to it."""
    done = python(
        """
import sys, mica
mica.load_plugin(sys.argv[1])
mica.load_plugin(sys.argv[2])
x = mica.arange(6.0).reshape(2, 3)
mine, theirs = mica.ops.blocks.pack(x), mica.ops.packed.pack(x)
print([mica.ops.blocks.total(t) for t in (mine, mine[1], mine, theirs, x)])
print(mica.ops.packed.halve(mica.ops.blocks.pack(x)).tolist(), mica.neg(x, out=mica.empty(2, 3)).tolist() == (-x).tolist())
empty = mica.ops.blocks.pack(x[:0])
try:
    empty + 1
except ValueError as error:
    print(error)
""",
        str(plugin("blocks.cc", compiler=compiler)),
        str(plugin("packed.c")),
    )
    assert done.stdout.splitlines()[:2] == [
        "[1015.0, 12.0, 15.0, 15.0, 15.0]",
        "[[0.0, 0.5, 1.0], [1.5, 2.0, 2.5]] True",
    ], done.stderr
    assert "there are no blocks" in done.stdout and "(blocks.Doubled) of float32[0, 3]" in done.stdout
    assert "as kernels of functional forms alone can" in done.stderr
