"""What the layer counts: by class, in a forward, in a backward, under transforms; and that it
is nothing when it is off."""

import threading

import pytest
from my_layer import FlopCounter

import mica


def test_contractions_count_by_their_equation():
    a, b = mica.randn(3, 4), mica.randn(4, 5)
    with FlopCounter() as counter:
        mica.mm(a, b)  # the unboxed kernel
        mica.bmm(mica.randn(2, 3, 4), mica.randn(2, 4, 5))
        mica.mv(a, mica.randn(4))
        mica.dot(mica.randn(7), mica.randn(7))
        mica.addmm(mica.randn(5), a, b)
    assert counter.count("mica::mm") == 2 * 3 * 4 * 5
    assert counter.count("mica::bmm") == 2 * 2 * 3 * 4 * 5
    assert counter.count("mica::mv") == 2 * 3 * 4
    assert counter.count("mica::dot") == 2 * 7
    assert counter.count("mica::addmm") == 2 * 3 * 4 * 5
    assert counter.count("contraction") == counter.count() == 120 + 240 + 24 + 14 + 120


def test_other_classes_count_elements():
    x = mica.randn(3, 4)
    with FlopCounter() as counter:
        y = x.exp() + x[0]
        y.mul_(2.0)
        mica.exp(x, out=y)
        x.sum(0)
        x.t().reshape(12)
        mica.ones(5).fill_(2.0)
    assert counter.count("pointwise") == 4 * 12
    assert counter.count("reduction") == 12
    assert counter.count() == 5 * 12


def test_convolution():
    with FlopCounter() as counter:
        mica.nn.functional.conv2d(mica.randn(2, 3, 8, 8), mica.randn(5, 3, 3, 3))
    assert counter.count("mica::convolution") == 2 * (2 * 5 * 6 * 6) * (3 * 3 * 3)


def test_backward_is_seen():
    x, w = mica.randn(3, 4), mica.randn(4, 5, requires_grad=True)
    with FlopCounter() as forward:
        loss = (x @ w).sum()
    with FlopCounter() as backward:
        loss.backward()
    assert forward.count("contraction") == 2 * 3 * 4 * 5
    assert backward.count("contraction") == 2 * 3 * 4 * 5  # of w alone: x wants no gradient
    mica.testing.assert_close(w.grad, x.t() @ mica.ones(3, 5))


def test_the_batch_is_seen_under_vmap_and_both_passes_under_grad():
    w, batch = mica.randn(4, 5), mica.randn(6, 3, 4)
    with FlopCounter() as counter:
        y = mica.func.vmap(lambda x: x @ w)(batch)
    assert counter.count("contraction") == 6 * 2 * 3 * 4 * 5
    mica.testing.assert_close(y, batch @ w)
    with FlopCounter() as counter:
        mica.func.vmap(mica.func.grad(lambda x: (x @ w).square().sum()))(batch)
    assert counter.count("contraction") == 6 * 2 * (2 * 3 * 4 * 5)


def test_parts_of_composites_are_counted_once():
    x, w, b = mica.randn(2, 3, 4), mica.randn(5, 4), mica.randn(5)
    with FlopCounter() as counter:
        mica.nn.functional.linear(x, w, b)
    assert counter.count("contraction") == 2 * 2 * 3 * 4 * 5
    assert counter.count("pointwise") == 2 * 3 * 5


def test_counters_nest_and_belong_to_their_thread():
    x = mica.randn(10)
    seen = []
    with FlopCounter() as outer:
        x.exp()
        with FlopCounter() as inner:
            x.exp()
        thread = threading.Thread(target=lambda: seen.append(x.exp()))
        thread.start()
        thread.join()
        x.exp()
        assert outer.count() == 30
    x.exp()
    assert (outer.count(), inner.count(), len(seen)) == (30, 10, 1)


def test_the_layer_stands_where_it_asked_to():
    with FlopCounter():
        text = mica.explain("mul.Tensor", mica.randn(2, requires_grad=True), mica.randn(2))
    assert text.index("my_layer.flops") < text.index("Autograd")
    assert "my_layer" not in mica.explain("mul.Tensor", mica.randn(2), mica.randn(2))


def test_a_disabled_layer_is_gone_and_comes_back():
    x = mica.randn(3)
    counter = FlopCounter()
    with counter:
        x.exp()
        mica.disable_plugin("my_layer")
        try:
            mica.testing.assert_close(x.exp().log(), x)  # the bit is included, and nothing stands there
        finally:
            mica.enable_plugin("my_layer")
        x.exp()
    assert counter.count() == 6
    for error, sentence, layer in [
        (ValueError, "is one of Mica's own", "Autograd"),
        (RuntimeError, r"No layer is named \(acme.none\)", "acme.none"),
    ]:
        with pytest.raises(error, match=sentence), mica.library.layer(layer):
            pass
