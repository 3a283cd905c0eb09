"""Conjugates and negatives that only views promise: every operator gets the numbers that they show.

Each sample runs on tensors whose memory holds the conjugates (or the negatives) of their elements, as
Tensor.conj() makes them: plain, in place, and into an out= of that kind. Values must be those of
plain tensors, and what is written must be found in the view's base.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from compare import unlike
from every_operator import INPLACE, SAMPLED, each, judge

import mica
from mica.conformance.batches import Sample, tensors_of
from mica.conformance.operators import ENTRIES, Entry, attempt


def conjugated(t: mica.Tensor) -> mica.Tensor:
    return t.conj_physical()._conj() if t.is_complex() else t


def negated(t: mica.Tensor) -> mica.Tensor:
    return (-t)._neg_view() if t.is_floating_point() or t.is_complex() else t


KINDS = {"conjugated": ("complex64", conjugated), "negated": ("float32", negated)}


def samples(entry: Entry, dtype: str, **options: Any) -> list[tuple[int, Sample]]:
    """The calls that plain tensors of the dtype can make, with tensors that can be marked."""
    found = []
    for number, call in enumerate(entry.calls()):
        sample, error = attempt(Sample, entry, call, dtype, **options)
        if error is None and sample.tensors:
            found.append((number, sample))
    return found


def seeded(f: Callable[..., Any], *tensors: mica.Tensor) -> tuple[Any, Exception | None]:
    mica.manual_seed(3)
    return attempt(f, *tensors)


def compared(name: str, options: dict[str, Any], run: Callable[[Sample, Any], tuple[Any, Any]]) -> list[str]:
    wrong = []
    for kind, (dtype, mark) in KINDS.items():
        for number, sample in samples(ENTRIES[name], dtype, **options):
            found = run(sample, mark)
            if found[1] is not None and (text := unlike(*found)):
                wrong.append(f"{kind} call {number}: {text}")
    return wrong


def plain(sample: Sample, mark: Any) -> tuple[Any, Any]:
    expected, error = seeded(sample, *[t.clone() for t in sample.tensors])
    if error is not None:
        return None, None
    got, error = seeded(sample, *[mark(t) for t in sample.tensors])
    return (repr(error) if error else tensors_of(got), tensors_of(expected))


def in_place(sample: Sample, mark: Any) -> tuple[Any, Any]:
    """The first argument's elements, those that its memory shows, and whether it is marked still."""

    def written(first: mica.Tensor) -> Any:
        given, keyword = sample.given([first, *sample.inputs[1:]])
        sample.f(*given, **keyword)
        return first

    first = sample.inputs[0]
    if not isinstance(sample.positional[0], mica.Tensor) or first is not sample.positional[0]:
        return None, None
    expected, error = seeded(written, first.clone())
    if error is not None:
        return None, None
    base = (first.conj_physical() if mark is conjugated else -first).clone()
    view = base._conj() if mark is conjugated else base._neg_view()
    before = base._version
    got, error = seeded(written, view)
    if error is not None:
        return repr(error), expected
    memory = base.conj_physical() if mark is conjugated else -base
    return [got, memory, got.is_conj() or got.is_neg(), base._version > before], [
        expected,
        expected,
        True,
        True,
    ]


@each("conjugate views", SAMPLED)
def test_operators(name: str) -> None:
    judge("conjugate views", name, compared(name, {}, plain))


@each("conjugate views in place", INPLACE)
def test_in_place_forms(name: str) -> None:
    judge("conjugate views in place", name, compared(name, {"inplace": True}, in_place))


def numbers() -> mica.Tensor:
    return mica.tensor([[1 + 2j, 3 - 1j], [0 - 1j, -2 + 4j]])


def test_conj_is_a_view() -> None:
    x = numbers()
    y = x.conj()
    assert y.is_conj() and y._is_view() and y._base is x and y.data_ptr() == x.data_ptr()
    assert not y.conj().is_conj() and not x.is_conj() and x.real.conj() is not None
    y[0, 0] = 5 + 7j
    assert x[0, 0].item() == 5 - 7j
    x[1, 1] = 1j
    assert y[1, 1].item() == -1j and y.tolist()[1][1] == -1j
    assert y.mT.is_conj() and y[0].is_conj() and y.detach().is_conj() and not y.clone().is_conj()
    assert x.mH.is_conj() and x.mH.tolist() == x.conj_physical().mT.tolist()


def test_out_is_written_through_the_view() -> None:
    x, base = numbers(), mica.zeros(2, 2, dtype=mica.complex64)
    out = base.conj()
    assert mica.add(x, x, out=out) is out
    assert base.tolist() == (2 * x).conj_physical().tolist()
    grown = mica.zeros(0, dtype=mica.complex64)._conj()
    mica.mul(x, 2, out=grown)
    assert grown.tolist() == (2 * x).tolist() and grown.is_conj()


def test_the_imaginary_part_of_a_conjugate_is_a_negated_view() -> None:
    x = numbers()
    imaginary = x.conj().imag
    assert imaginary.is_neg() and not imaginary.resolve_neg().is_neg()
    assert imaginary.tolist() == (-x.imag).tolist()
    imaginary.mul_(2)
    assert x.imag.tolist() == [[4.0, -2.0], [-2.0, 8.0]]
    assert not x.conj().real.is_neg() and x.conj().real.data_ptr() == x.data_ptr()


def test_gradients_through_writes_of_views() -> None:
    def f(x: mica.Tensor) -> mica.Tensor:
        y = x * 1
        y.conj().mul_(2 + 1j)
        y.conj().imag.mul_(3)
        z = y.conj()
        w = z[1].clone()
        z[0] = w * w
        return z.mH @ y

    x = numbers().to(mica.complex128).requires_grad_()
    assert mica.autograd.gradcheck(f, (x,)) and mica.autograd.gradgradcheck(f, (x,))
    assert type(x.conj().grad_fn).__name__ == "ConjBackward0"


MARKED = {
    "conjugated back": lambda y: y.conj(),
    "its conjugates": lambda y: y[...],
    "its imaginary part": lambda y: y.imag,
    "its real part": lambda y: y.real[1:],
}


@pytest.mark.parametrize("of", MARKED)
def test_gradients_through_writes_of_views_of_what_is_marked_and_no_view(of: str) -> None:
    """An inverse transform of real numbers is conjugated memory that nobody else has."""

    def loss(x: mica.Tensor, resolved: bool) -> mica.Tensor:
        y = mica.fft.ifft(x)
        y = y.conj_physical().conj_physical() if resolved else y
        MARKED[of](y).sigmoid_()
        return (y.real + 2 * y.imag).square().sum()

    x = mica.tensor([-2.0, 0.5, -1.0], dtype=mica.float64)
    leaf = x.clone().requires_grad_()
    assert mica.fft.ifft(leaf).is_conj() and mica.fft.ifft(leaf)._base is None
    loss(leaf, False).backward()
    gradients = [mica.func.grad(loss)(x, resolved) for resolved in (False, True)]
    tangents = [
        mica.func.jvp(lambda x, r=resolved: loss(x, r), (x,), (mica.ones_like(x),))[1]
        for resolved in (False, True)
    ]
    assert mica.allclose(leaf.grad, gradients[1])
    assert mica.allclose(*gradients)
    assert mica.allclose(*tangents)
    assert mica.allclose(gradients[0].sum(), tangents[0])


def test_parts_of_a_marked_tensor_that_is_no_view_have_tangents() -> None:
    """linalg.solve from the right gives conjugated memory; its tangent is made otherwise."""
    a = mica.tensor([[2.0 + 1j, 0.5], [1j, 3.0]], dtype=mica.complex128)

    def parts(a: mica.Tensor, resolved: bool) -> mica.Tensor:
        x = mica.linalg.solve(a, mica.ones(3, 2, dtype=mica.complex128), left=False)
        x = x.resolve_conj() if resolved else x
        return x.real + 2 * x.imag

    found = [mica.func.jvp(lambda a, r=r: parts(a, r), (a,), (mica.ones_like(a),)) for r in (False, True)]
    assert all(map(mica.allclose, *found))


def test_a_result_in_out_whose_memory_it_took() -> None:
    """A loan of memory (tensor/loan.h) holds the conjugates of what is to be written."""
    x = mica.arange(600.0)
    out = mica.empty(600, dtype=mica.complex64)
    assert mica.equal(mica.fft.ifft(x, out=out), mica.fft.ifft(x))


@pytest.mark.parametrize("transform", ["vmap", "functionalize", "jvp", "make_fx", "compile of a copy"])
def test_transforms(transform: str) -> None:
    def f(x: mica.Tensor) -> mica.Tensor:
        y = x.clone()
        y.conj().mul_(1j)
        y.conj().imag.add_(1)
        return (y.conj() * y).conj() + y.mH.mT

    x = numbers().to(mica.complex128)
    expected = f(x)
    if transform == "vmap":
        got = mica.func.vmap(f)(mica.stack([x, 2 * x]))[0]
    elif transform == "functionalize":
        got = mica.func.functionalize(f)(x)
    elif transform == "jvp":
        got, tangent = mica.func.jvp(f, (x,), (x,))
        step = 1e-4
        near = (f(x + step * x) - f(x - step * x)) / (2 * step)
        assert mica.allclose(tangent, near, rtol=1e-6)
    elif transform == "make_fx":
        got = mica.fx.make_fx(f)(x)(x)
    else:
        got = mica.fx.make_fx(mica.func.functionalize(f, remove="mutations_and_views"))(x)(x)
    assert mica.allclose(got, expected)


def test_copies_and_files() -> None:
    x = numbers()
    pair = {"x": x, "conj": x.conj()}
    stream = io.BytesIO()
    mica.save(pair, stream)
    stream.seek(0)
    for again in (mica.load(stream), pickle.loads(pickle.dumps(pair)), copy.deepcopy(pair)):
        assert [again[name].tolist() for name in pair] == [t.tolist() for t in pair.values()]
        again["conj"][0, 0] = 9j
        assert again["x"][0, 0].item() == -9j
    stream = io.BytesIO()
    mica.save(x.conj().imag, stream)
    stream.seek(0)
    for part in (mica.load(stream), pickle.loads(pickle.dumps(x.conj().imag)), copy.deepcopy(x.conj().imag)):
        assert part.is_neg() and part.tolist() == (-x.imag).tolist()
    assert mica.asarray(x.conj().resolve_conj().numpy()).tolist() == x.conj().tolist()
    assert x.conj().numpy(force=True).tolist() == x.conj().tolist()
    assert x.conj().untyped_storage().data_ptr() == x.data_ptr()
    assert repr(x.conj()) == repr(x.conj_physical())


@pytest.mark.parametrize(
    ("reads", "sentence"),
    {
        "numpy": (lambda y: y.numpy(), "Can't call numpy.*conjugate bit.*resolve_conj"),
        "numpy of the imaginary part": (lambda y: y.imag.numpy(), "negative bit.*resolve_neg"),
        "view_as_real": (
            mica.view_as_real,
            "view_as_real doesn't work on unresolved conjugated.*resolve_conj",
        ),
        "view of a dtype": (lambda y: y.view(mica.float32), "unresolved conjugated"),
        "DLPack": (lambda y: y.__dlpack__(), "conjugate bit"),
    }.values(),
)
def test_what_shows_memory_refuses(reads: Callable[[mica.Tensor], Any], sentence: str) -> None:
    with pytest.raises((RuntimeError, BufferError), match=f"(?s){sentence}"):
        reads(numbers().conj())


def test_without_the_layer_the_memory_is_not_read() -> None:
    y = numbers().conj()
    expected = (y + 1).tolist()
    mica.disable_plugin("conjugate")
    try:
        for read in (lambda: y + 1, lambda: y.tolist(), lambda: y.mul_(2)):
            with pytest.raises(NotImplementedError, match=r"layer \(Conjugate\).*conj_physical"):
                read()
    finally:
        mica.enable_plugin("conjugate")
    assert (y + 1).tolist() == expected
