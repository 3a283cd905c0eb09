"""What torch's test_autograd.py asks beside operators: views of several, custom functions, hooks on what is saved,
anomaly mode and the sentences of refusals.

Each program runs on torch and on Mica, and what it gives agrees; a refusal has torch's class and phrase.
"""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import mica

BOTH = (torch, mica)
SEVERAL: dict[str, Callable[[Any], Any]] = {
    "split": lambda x: x.split(2),
    "split of sizes": lambda x: x.split([1, 3]),
    "split_with_sizes": lambda x: x.split_with_sizes([1, 3]),
    "chunk": lambda x: x.chunk(2),
    "chunk of nothing": lambda x: x[:0].chunk(2),
    "unbind": lambda x: x.unbind(),
    "a view of one": lambda x: [p.view_as(p) for p in x.unbind()],
}
OF_SEVERAL = "output of a function that returns multiple views"


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("requires_grad", [True, False])
def test_none_of_several_views_is_written(name: str, requires_grad: bool) -> None:
    """Also where the written value alone has a history; not where nothing is recorded."""
    for m in BOTH:
        x = m.ones(4, 3, requires_grad=requires_grad).clone()
        with pytest.raises(RuntimeError, match=OF_SEVERAL):
            SEVERAL[name](x)[0].mul_(m.ones(3, requires_grad=True))
        with m.no_grad():
            SEVERAL[name](x)[0].mul_(2)
        plain = m.ones(4, 3)
        SEVERAL[name](plain)[0].mul_(2)
        assert plain.sum() == (
            12 if name == "chunk of nothing" else plain.numel() + SEVERAL[name](plain)[0].numel()
        )


def test_pieces_that_are_views_by_themselves_are_written() -> None:
    for m in BOTH:
        x = m.arange(6.0).requires_grad_()
        y = x * 1
        y.tensor_split(3)[1].mul_(5)
        y.hsplit(2)[1].mul_(2)
        y.sum().backward()
        assert x.grad.tolist() == [1, 1, 5, 10, 2, 2]


def test_unsafe_pieces_are_written() -> None:
    """They are views of several, and the caller answers for what the others then show."""
    for m in BOTH:
        for call in (
            lambda t: t.unsafe_split(1),
            lambda t: t.unsafe_split_with_sizes((1, 1)),
            lambda t: t.unsafe_chunk(2),
        ):
            x = m.ones(2, 3, requires_grad=True)
            first, second = call(x * 2)
            first.mul_(3)
            (first.sum() + second.sum()).backward()
            assert x.grad.tolist() == [[6] * 3, [2] * 3]


def test_several_views_inside_of_a_transform() -> None:
    for m in BOTH:

        def written(x: Any, m: Any = m) -> Any:
            pieces = (x * 1).chunk(2)
            return pieces[0].view_as(pieces[0]).mul_(2).sum()

        with pytest.raises(RuntimeError, match=OF_SEVERAL):
            m.func.grad(written)(m.ones(4))
        assert m.func.vmap(lambda x: x.chunk(2)[0].mul_(2))(m.ones(2, 4)).tolist() == [[2, 2], [2, 2]]


def function_of(m: Any, **methods: Any) -> Any:
    return type("Made", (m.autograd.Function,), {k: staticmethod(v) for k, v in methods.items()})


def viewed(m: Any) -> Any:
    return function_of(m, forward=lambda ctx, x: x.view_as(x), backward=lambda ctx, g: g)


def view_of_no_grad(m: Any) -> Any:
    with m.no_grad():
        view = m.zeros(2).view(2)
    return view.requires_grad_().view(2)


def deleted(m: Any, name: str) -> None:
    delattr(m.ones(2, requires_grad=True), name)


def wrong_shape(m: Any) -> Any:
    return function_of(m, forward=lambda ctx, x: x.clone(), backward=lambda ctx, g: m.ones(3))


def two_formulas(m: Any) -> Any:
    return function_of(m, forward=lambda ctx, x: x.clone(), backward=lambda ctx, g: g, vjp=lambda ctx, g: g)


def in_dual(m: Any, function: Any, *more: Any) -> Any:
    with m.autograd.forward_ad.dual_level():
        dual = m.autograd.forward_ad.make_dual(m.ones(2), m.ones(2))
        return m.autograd.forward_ad.unpack_dual(function.apply(dual, *more))


def not_differentiable(m: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        out = x.clone()
        ctx.mark_non_differentiable(out)
        return out

    return function_of(m, forward=forward, jvp=lambda ctx, t: t.clone())


REFUSED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a written view of a function": (
        "This view was created inside a custom Function",
        lambda m: viewed(m).apply(m.ones(2)).mul_(m.ones(2, requires_grad=True)),
    ),
    "a written view of a view of no_grad": (
        "a view of a view .* is being .* inside the no_grad block",
        lambda m: view_of_no_grad(m).mul_(2),
    ),
    "backward of a complex number": (
        "grad can be implicitly created only for real scalar outputs",
        lambda m: (m.ones(1, requires_grad=True) * 1j).backward(),
    ),
    "backward to no inputs": (
        "cannot be empty",
        lambda m: m.ones((), requires_grad=True).exp().backward(inputs=[]),
    ),
    "data that is deleted": ("", lambda m: deleted(m, "data")),
    "requires_grad that is deleted": ("", lambda m: deleted(m, "requires_grad")),
    "a gradient of a wrong shape": (
        "expected shape",
        lambda m: wrong_shape(m).apply(m.ones(2, requires_grad=True)).sum().backward(),
    ),
    "a hook after accumulation in the middle": (
        "post accumulate grad hooks cannot be registered on non-leaf tensors",
        lambda m: m.ones(2, requires_grad=True).exp().register_post_accumulate_grad_hook(print),
    ),
    "backward and vjp": (
        "Implementing both 'backward' and 'vjp'",
        lambda m: two_formulas(m).apply(m.ones(2, requires_grad=True)).sum().backward(),
    ),
    "no jvp": (
        "must implement the jvp function",
        lambda m: in_dual(m, function_of(m, forward=lambda ctx, x: x.clone())),
    ),
    "a tangent of what is not differentiable": (
        "You should return None at that position instead",
        lambda m: in_dual(m, not_differentiable(m)),
    ),
    "a saved tensor by hand": (
        "Trying to create a SavedTensor object from Python is forbidden",
        lambda m: m.autograd.SavedTensor(),
    ),
    "a file without write": ("", lambda m: m.save("x", m.ones(2))),
    "a file whose write is no function": ("", lambda m: m.save("x", type("F", (), {"write": 1})())),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    phrase, call = REFUSED[name]
    kinds = []
    for m in BOTH:
        with pytest.raises(Exception, match=phrase) as refusal:
            call(m)
        kinds.append(
            [isinstance(refusal.value, k) for k in (RuntimeError, TypeError, AttributeError, ValueError)]
        )
    assert kinds[0] == kinds[1]


def test_a_copied_tangent_is_a_copy() -> None:
    for m in BOTH:
        ad, tangent = m.autograd.forward_ad, m.full((2,), 5.0)
        with ad.dual_level():
            source, target = ad.make_dual(m.ones(2), tangent), m.ones(2)
            target.copy_(source)
            tangent.mul_(2)
            assert ad.unpack_dual(target).tangent.tolist() == [5, 5]
            assert ad.unpack_dual(source).tangent.tolist() == [10, 10]


def test_the_text_of_a_view_without_a_known_gradient() -> None:
    for m in BOTH:
        x = m.ones(1, requires_grad=True)
        with m.no_grad():
            view = x[:]
            view *= 2
        assert repr(view) == "tensor([2.], grad_fn=<Invalid>)"


def test_a_written_function_view_keeps_no_history_by_itself() -> None:
    for m in BOTH:
        x = m.ones(2)
        view = viewed(m).apply(x)
        view.mul_(3)  # nothing is recorded
        assert x.tolist() == [3, 3]


def test_one_tensor_returned_twice_stays_one() -> None:
    def doubled(ctx: Any, x: Any) -> Any:
        out = x * 2
        return out, out

    for m in BOTH:
        function = function_of(m, forward=doubled, backward=lambda ctx, a, b: a * 2 + b * 2)
        x = m.ones(2, requires_grad=True)
        a, b = function.apply(x)
        assert a is b
        (a * b).sum().backward()
        assert x.grad.tolist() == [8, 8]


def test_defaults_of_forward_reach_setup_context() -> None:
    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.power = inputs
        ctx.save_for_backward(x)

    for m in BOTH:
        function = function_of(
            m,
            forward=lambda x, power=3: x**power,
            setup_context=setup,
            backward=lambda ctx, g: (g * ctx.power * ctx.saved_tensors[0] ** (ctx.power - 1), None),
        )
        x = m.full((), 2.0, requires_grad=True)
        assert m.autograd.grad(function.apply(x), x)[0].item() == 12
        assert m.autograd.grad(function.apply(x, 2), x)[0].item() == 4


def test_backward_to_edges_in_the_middle() -> None:
    """They run up to there, and add to no .grad of the tensors that the edges stand for."""
    for m in BOTH:
        leaf = m.ones(2, requires_grad=True)
        x, y = leaf.clone(), m.ones(2, requires_grad=True).clone()
        edges = [m.autograd.graph.get_gradient_edge(t) for t in (x, y)]
        (x.exp() * y).sum().backward(inputs=[edges[0], y])
        assert x.retains_grad is False and y.grad.tolist() == pytest.approx([2.71828, 2.71828], rel=1e-5)


def test_how_much_is_kept_where_saved_tensors_may_be_written() -> None:
    for m in BOTH:
        with m.autograd.graph.allow_mutation_on_saved_tensors() as kept:
            a = m.ones(2, 3, requires_grad=True).clone()
            first, again = a**2, a**2
            assert len(kept.tid_to_weakhandle) == 1 and len(kept.cloned) == 0
            a.sin_()
            assert len(kept.cloned) == 1  # once for both
            third = a**2
            a.sin_()
            assert len(kept.cloned) == 2
            del first, again
            assert len(kept.cloned) == 1
            del third
            assert len(kept.cloned) == 0


def test_a_second_backward_through_interpolation() -> None:
    """Nothing of the image is saved, so nothing is freed."""
    for m in BOTH:
        for mode in ("bilinear", "bicubic"):
            x = m.ones(1, 1, 4, 4, requires_grad=True)
            out = m.nn.functional.interpolate(x, size=8, mode=mode, align_corners=False)
            out.backward(m.ones_like(out))
            first = x.grad.clone()
            out.backward(m.ones_like(out))
            assert m.allclose(x.grad, 2 * first)


def test_versions_of_what_is_resized() -> None:
    for m in BOTH:
        m.use_deterministic_algorithms(False)  # which fills what is new, and counts that as a write
        x = m.empty(1)
        versions = []
        for shape in ((1, 2), (1, 2), (3,), (3,)):
            x.resize_(shape)
            versions.append(x._version)
        x.resize_as_(m.ones(4))
        assert [*versions, x._version] == [1, 1, 2, 2, 3]


def test_gradients_asked_of_the_middle_warn() -> None:
    for m in BOTH:
        x = m.ones(2, requires_grad=True)
        y = x.clone()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert x.grad is None and not said
            assert y.grad is None and len(said) == 1
            assert "not a leaf Tensor is being accessed" in str(said[0].message)
            y.retain_grad()
            assert y.grad is None and len(said) == 1


def test_anomaly_mode_says_what_failed_and_what_made_it() -> None:
    for m in BOTH:
        with warnings.catch_warnings(record=True) as said, pytest.raises(RuntimeError):
            warnings.simplefilter("always")
            with m.autograd.detect_anomaly():
                d = m.ones(5, requires_grad=True) + 1
                square = d**2
                d += 1
                square.sum().backward()
        assert "Anomaly Detection has been enabled" in str(said[0].message)
        assert "Error detected in PowBackward0" in str(said[1].message) and len(said) == 2
        with warnings.catch_warnings(record=True) as said, pytest.raises(RuntimeError):
            warnings.simplefilter("always")
            x = m.zeros(1, requires_grad=True)
            root = m.sqrt(x * 0).sum() * 0
            with m.autograd.detect_anomaly():
                root.backward()
        assert "No forward pass information" in str(said[1].message)


def test_a_report_that_is_made_an_error_hides_nothing(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)  # pytest has one of its own
    for m in BOTH:
        with m.autograd.set_detect_anomaly(True):
            d = m.ones(5, requires_grad=True) + 1
            square = d**2
            d += 1
            with (
                warnings.catch_warnings(),
                pytest.raises(RuntimeError, match="modified by an inplace operation"),
            ):
                warnings.simplefilter("error")
                square.sum().backward()
        assert "Error detected in PowBackward0" in capsys.readouterr().err


def test_a_decorated_class_and_threads() -> None:
    for m in BOTH:
        with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
            m.no_grad()(type("Made", (), {}))
        with m.autograd.set_multithreading_enabled(False):
            assert not m.autograd.is_multithreading_enabled()
        assert m.autograd.is_multithreading_enabled()


@pytest.mark.parametrize(
    "dtype, value", [("float32", 2.5), ("int64", 2.5), ("bool", 3), ("complex64", 1 + 2j)]
)
def test_a_number_is_copied_into_a_tensor(dtype: str, value: Any) -> None:
    got = [m.zeros(2, dtype=getattr(m, dtype)).copy_(value).tolist() for m in BOTH]
    assert got[0] == got[1]


@pytest.mark.parametrize("zipped", [True, False])
def test_a_saved_file_is_whole_before_it_is_closed(zipped: bool) -> None:
    for m in BOTH:
        with tempfile.NamedTemporaryFile() as file:
            m.save(m.ones(3), file, _use_new_zipfile_serialization=zipped)
            with open(file.name, "rb") as again:
                assert m.load(io.BytesIO(again.read())).tolist() == [1, 1, 1]
