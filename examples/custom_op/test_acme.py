"""acme's operators: values, shapes on meta, gradients, errors, and the generated module."""

import importlib.util
import math
import os
import sys
import warnings

import pytest

import mica


def rows(*shape, requires_grad=False):
    x = mica.randn(*shape, dtype=mica.float64)
    return x.requires_grad_() if requires_grad else x


def reference(q, k, v, scale=None):
    scale = 1 / math.sqrt(q.size(-1)) if scale is None else scale
    return mica.softmax(q @ k.transpose(1, 2) * scale, -1) @ v


@pytest.mark.parametrize("scale", [None, 0.3])
def test_values(scale):
    q, k, v = rows(2, 5, 4), rows(2, 3, 4), rows(2, 3, 6)
    y = mica.ops.acme.fused_attention(q, k, v, scale=scale)
    mica.testing.assert_close(y, reference(q, k, v, scale))
    strided = mica.ops.acme.fused_attention(q.transpose(0, 1).contiguous().transpose(0, 1), k, v, scale=scale)
    mica.testing.assert_close(strided, y)


def test_shape_on_meta_agrees():
    shapes = [(2, 5, 4), (2, 3, 4), (2, 3, 6)]
    meta = mica.ops.acme.fused_attention(*[mica.empty(s, device="meta") for s in shapes])
    real = mica.ops.acme.fused_attention(*[mica.randn(s) for s in shapes])
    assert (meta.shape, meta.dtype, str(meta.device)) == (real.shape, real.dtype, "meta")
    for device in ("meta", "cpu"):
        with pytest.raises(RuntimeError, match="are not those of batches of rows"):
            mica.ops.acme.fused_attention(*[mica.empty(2, 2, device=device)] * 3)
        with pytest.raises(RuntimeError, match="fits neither"):
            mica.ops.acme.fused_attention(*[mica.empty(n, 2, 2, device=device) for n in (2, 1, 1)])


def test_the_out_form():
    q, k, v = rows(2, 5, 4), rows(2, 3, 4), rows(2, 3, 6)
    expected = reference(q, k, v)
    out = mica.empty(0, dtype=mica.float64)
    assert mica.ops.acme.fused_attention.out(q, k, v, out=out) is out
    mica.testing.assert_close(out, expected)
    strided = mica.empty(6, 5, 2, dtype=mica.float64).permute(2, 1, 0)
    mica.ops.acme.fused_attention.out(q, k, v, out=strided)
    mica.testing.assert_close(strided, expected)
    square = rows(2, 3, 3)
    expected = reference(square, square, square)
    mica.ops.acme.fused_attention.out(square, square, square, out=square)
    mica.testing.assert_close(square, expected)
    with pytest.raises(RuntimeError, match="can't be cast"):
        mica.ops.acme.fused_attention.out(q, k, v, out=mica.empty(0, dtype=mica.int64))


# snippet: lists
def test_lists_and_generators():
    a, b = rows(2, 3), rows(2, 3)
    mica.testing.assert_close(mica.ops.acme.weighted_sum([a, b], [2.0, -1.0]), 2 * a - b)
    first, again = mica.Generator().manual_seed(3), mica.Generator().manual_seed(3)
    noisy = mica.ops.acme.weighted_sum([a], [1.0], noise=0.5, generator=first) - a
    assert noisy.min() >= 0 and noisy.max() < 0.5 and noisy.unique().numel() == 6
    mica.testing.assert_close(mica.ops.acme.weighted_sum([a], [1.0], noise=0.5, generator=again) - a, noisy)


# end snippet


def test_shapes_of_lists_are_checked_on_every_device():
    for device in ("meta", "cpu"):
        x, y = mica.empty(2, device=device), mica.empty(3, device=device)
        with pytest.raises(RuntimeError, match="differ in shape"):
            mica.ops.acme.weighted_sum([x, y], [1.0, 1.0])
        with pytest.raises(RuntimeError, match=r"Number \(1\) of weights"):
            mica.ops.acme.weighted_sum([x, x], [1.0])


def test_gradients_of_lists():
    a, b, c = rows(2, requires_grad=True), rows(2), rows(2, requires_grad=True)

    def total(a, c):
        return mica.ops.acme.weighted_sum([a, b, c], [2.0, 3.0, -1.0])

    total(a, c).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0] and b.grad is None and c.grad.tolist() == [-1.0, -1.0]
    assert mica.autograd.gradcheck(total, [a, c])
    assert mica.autograd.gradgradcheck(lambda a, c: total(a, c) ** 2, [a, c])
    with mica.no_grad():
        assert not total(a, c).requires_grad
    mica.testing.opcheck(mica.ops.acme.weighted_sum.default, ([a, b, c], [2.0, 3.0, -1.0]))


def test_gradients_and_gradients_of_gradients():
    inputs = [
        rows(2, 3, 2, requires_grad=True),
        rows(2, 4, 2, requires_grad=True),
        rows(2, 4, 3, requires_grad=True),
    ]
    y = mica.ops.acme.fused_attention(*inputs)
    assert "fused_attentionBackward" in str(y.grad_fn)
    expected = mica.autograd.grad(reference(*inputs).square().sum(), inputs)
    for got, want in zip(mica.autograd.grad(y.square().sum(), inputs), expected):
        mica.testing.assert_close(got, want)
    assert mica.autograd.gradcheck(mica.ops.acme.fused_attention, inputs)
    assert mica.autograd.gradgradcheck(mica.ops.acme.fused_attention, inputs)


def test_a_second_backward_says_that_the_saved_tensors_are_gone():
    x = rows(2, 3, 4, requires_grad=True)
    y = mica.ops.acme.fused_attention(x, x, x).sum()
    y.backward()
    with pytest.raises(
        RuntimeError, match="tensors that fused_attentionBackward saved are freed by the first"
    ):
        y.backward()


def test_tensors_of_two_devices_are_refused():
    with pytest.raises(RuntimeError, match=r"on the same device, but found \(cpu\) and \(meta\)"):
        mica.ops.acme.fused_attention(rows(2, 3, 4), rows(2, 3, 4), mica.empty(2, 3, 4, device="meta"))


def test_gradients_that_nobody_wants_are_not_made():
    q, k, v = rows(1, 2, 2), rows(1, 2, 2, requires_grad=True), rows(1, 2, 2)
    mica.ops.acme.fused_attention(q, k, v).sum().backward()
    assert k.grad is not None and q.grad is None
    with mica.no_grad():
        assert not mica.ops.acme.fused_attention(q, k, v).requires_grad


def test_a_write_after_the_forward_is_found():
    q, k, v = rows(1, 2, 2, requires_grad=True), rows(1, 2, 2), rows(1, 2, 2)
    y = mica.ops.acme.fused_attention(q, k, v)
    v.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_bad_input():
    with pytest.raises(NotImplementedError, match="float32 and float64"):
        mica.ops.acme.fused_attention(*[mica.ones(1, 2, 2, dtype=mica.int64)] * 3)
    with pytest.raises(TypeError, match="one dtype"):
        mica.ops.acme.fused_attention(mica.ones(1, 2, 2), mica.ones(1, 2, 2), rows(1, 2, 2))
    with pytest.raises(RuntimeError, match="differs from shape"):
        mica.ops.acme.swiglu(mica.ones(2), mica.ones(3))


def test_a_decomposition_differentiates_by_its_parts():
    x, gate = rows(3, requires_grad=True), rows(3, requires_grad=True)
    mica.testing.assert_close(mica.ops.acme.swiglu(x, gate), x * mica.nn.functional.silu(gate))
    assert mica.autograd.gradcheck(mica.ops.acme.swiglu, [x, gate])
    assert mica.ops.acme.swiglu(mica.empty(3, device="meta"), mica.empty(3, device="meta")).shape == (3,)


def test_a_decomposition_takes_lists_of_operators_and_has_an_out_form():
    x = rows(3, 2, requires_grad=True)
    mica.testing.assert_close(mica.ops.acme.sum_of_ends(x), x[0] + x[2])
    assert mica.autograd.gradcheck(mica.ops.acme.sum_of_ends, [x])
    out = mica.empty(0, dtype=mica.float64)
    mica.ops.acme.sum_of_ends.out(x.detach(), out=out)
    mica.testing.assert_close(out, (x[0] + x[2]).detach())
    with pytest.raises(RuntimeError, match="has no rows"):
        mica.ops.acme.sum_of_ends(mica.empty(0, 2))


def test_an_expression_runs_as_a_class():
    x = rows(4, 3)
    expected = 2 * mica.tanh(x / 2)
    mica.testing.assert_close(mica.ops.acme.soft_clip(x, limit=2), expected)
    mica.testing.assert_close(mica.ops.acme.soft_clip(x.t(), limit=2), expected.t())
    halves = mica.ops.acme.soft_clip(x.half())
    assert halves.dtype == mica.float16
    assert mica.ops.acme.soft_clip(mica.ones(3, dtype=mica.int64)).dtype == mica.get_default_dtype()
    out = mica.empty(4, 3, dtype=mica.float64)
    mica.ops.acme.soft_clip.out(x, limit=2, out=out)
    mica.testing.assert_close(out, expected)
    mica.ops.acme.soft_clip_(x, limit=2)
    mica.testing.assert_close(x, expected)
    assert mica.ops.acme.soft_clip(mica.empty(2, 3, device="meta")).shape == (2, 3)
    y = rows(3, requires_grad=True)
    assert mica.autograd.gradcheck(lambda t: mica.ops.acme.soft_clip(t, limit=2), [y])
    assert mica.autograd.gradgradcheck(lambda t: mica.ops.acme.soft_clip(t, limit=2), [y])


# snippet: object
def test_an_object_as_an_argument():
    halves = mica.ops.acme.quantizer(0.5)
    assert halves.type_name == "acme.Quantizer"
    x = mica.tensor([0.7, -0.1, 1.4], requires_grad=True)
    y = mica.ops.acme.quantize(x, halves)
    assert y.tolist() == [0.5, 0.0, 1.5]
    (y * mica.tensor([1.2, 2.0, 3.3])).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 3.5]  # the formula passes the quantizer on


# end snippet


def test_objects_in_the_other_layers():
    halves, x = mica.ops.acme.quantizer(0.5), rows(3, 4)
    quantize, quantize_if = mica.ops.acme.quantize, mica.ops.acme.quantize_if
    expected = (x * 2).round() / 2
    assert mica.equal(quantize(x, halves), expected)
    assert mica.equal(quantize_if(x, halves), expected) and mica.equal(quantize_if(x), x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a loop
        assert mica.equal(mica.func.vmap(quantize, in_dims=(0, None))(x, halves), expected)
    assert quantize(mica.empty(2, 3, device="meta"), halves).shape == (2, 3)
    assert mica.equal(mica.func.functionalize(quantize_if)(x, halves), expected)
    trace = mica.fx.experimental.proxy_tensor.make_fx
    graph = trace(lambda t: quantize(t, mica.ops.acme.quantizer(0.5)) + 1)(x)
    assert mica.equal(graph(x), expected + 1)  # it holds the quantizer of its trace
    with pytest.raises(TypeError, match="`quantizer` has type .float.; expected acme.Quantizer"):
        quantize(x, 0.5)
    with pytest.raises(ValueError, match="The step .-1.0+. is not positive"):
        mica.ops.acme.quantizer(-1.0)


def test_the_generated_module():
    folder = os.environ["ACME_GENERATED"]
    spec = importlib.util.spec_from_file_location("acme_operators", f"{folder}/operators.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["acme_operators"] = module
    spec.loader.exec_module(module)
    x = mica.ones(2)
    mica.testing.assert_close(module.swiglu(x, x), x * mica.sigmoid(x))
    with open(f"{folder}/operators.pyi") as stub:
        text = stub.read()
    assert (
        "def fused_attention(query: Tensor, key: Tensor, value: Tensor, *, scale: _float | None = ...) -> Tensor"
        in text
    )
    assert "def quantizer(step: _float) -> object" in text


# snippet: opcheck
def test_opcheck():
    inputs = (
        rows(2, 3, 2, requires_grad=True),
        rows(2, 4, 2, requires_grad=True),
        rows(2, 4, 3, requires_grad=True),
    )
    mica.testing.opcheck(mica.ops.acme.fused_attention.default, inputs)


# end snippet


# snippet: vmap
def test_batch_rule():
    q, k, v = rows(5, 2, 3, 4), rows(5, 2, 6, 4), rows(2, 6, 3)
    attention = mica.ops.acme.fused_attention
    got = mica.func.vmap(attention, in_dims=(0, 0, None))(q, k, v)
    mica.testing.assert_close(got, mica.stack([attention(a, b, v) for a, b in zip(q, k)]))


# end snippet


def test_vmap_of_the_others():
    assert mica._C._vmap_rule("acme::fused_attention") == "by hand"
    x, gate = rows(5, 3), rows(5, 3)
    mica.testing.assert_close(mica.func.vmap(mica.ops.acme.swiglu)(x, gate), mica.ops.acme.swiglu(x, gate))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no loop: its class has a rule
        got = mica.func.vmap(lambda t: mica.ops.acme.soft_clip(t, limit=2))(x)
    mica.testing.assert_close(got, mica.ops.acme.soft_clip(x, limit=2))
    mica.testing.opcheck(mica.ops.acme.soft_clip.default, (rows(2, 3, requires_grad=True),))


def test_vmap_of_gradients():
    q, k, v = rows(5, 1, 3, 2), rows(5, 1, 4, 2), rows(5, 1, 4, 3)
    slope = mica.func.grad(lambda *a: mica.ops.acme.fused_attention(*a).square().sum())
    got = mica.func.vmap(slope)(q, k, v)
    mica.testing.assert_close(got, mica.stack([slope(*a) for a in zip(q, k, v)]))


def test_autocast_policies_of_the_entries():
    q, k, v = (rows(2, 3, 4).float() for _ in range(3))
    low = [x.bfloat16() for x in (q, k, v)]
    with mica.autocast("cpu"):
        attention = mica.ops.acme.fused_attention(*low)  # float32: the kernel has no half types
        assert mica.ops.acme.soft_clip(q).dtype == mica.float32  # promote
        assert mica.ops.acme.soft_clip(low[0]).dtype == mica.bfloat16
        assert mica.ops.acme.swiglu(q, k).dtype == mica.float32  # parts: pointwise, as they are
    assert mica.equal(attention, mica.ops.acme.fused_attention(*(x.float() for x in low)))
