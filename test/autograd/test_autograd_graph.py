"""mica.autograd.graph: hooks on nodes, on groups of tensors and on what is saved, edges as
values, what nodes show of themselves, and the drawing."""

from __future__ import annotations

import gc
import re
import threading
import weakref
import xml.etree.ElementTree as ElementTree

import pytest
from process import printed

import mica
from mica.autograd import graph

ROOT = "{http://www.w3.org/2000/svg}"


def leaf(*values: float) -> mica.Tensor:
    return mica.tensor(values, dtype=mica.float64, requires_grad=True)


def in_use() -> int:
    gc.collect()
    return mica._C._memory_stats(mica.device("cpu"))["bytes_in_use"]


# ---- hooks on saved tensors
def test_innermost_saved_hooks_act():
    x, log = leaf(1, 2), []

    def pair(name):
        return graph.saved_tensors_hooks(
            lambda t: log.append(f"pack {name}") or t * 1, lambda t: log.append(f"unpack {name}") or t
        )

    with pair("outer"):
        y = x.sin()
        with pair("inner"):
            z = y.exp()
        w = z * z
    w.sum().backward()
    assert log == ["pack outer", "pack inner", "pack outer", "pack outer"] + ["unpack outer"] * 2 + [
        "unpack inner",
        "unpack outer",
    ]
    expected = 2 * (2 * x.sin()).exp() * x.cos()
    assert mica.allclose(x.grad, expected.detach())


def test_backward_leaves_the_hooks_as_it_found_them():
    x, log, entered = leaf(1, 2), [], []

    def unpack(t):
        entered.append(graph.saved_tensors_hooks(lambda t: log.append("left") or t, lambda t: t))
        entered[-1].__enter__()
        return t

    with graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.sin()
    y.sum().backward()
    x.sin()
    assert entered and log == []
    with graph.saved_tensors_hooks(lambda t: log.append("mine") or t, lambda t: t):
        z = (x * 2).exp()
        y = x.sin()
        y.sum().backward()
        x.sin()
    assert log == ["mine"] * len(log) and len(log) > 2
    with pytest.raises(RuntimeError, match="No saved-tensor hooks stand"):
        entered[0].__exit__(None, None, None)
    z.sum().backward()


def test_hooks_that_end_may_push_and_pop_others():
    class Restless:
        def __del__(self):
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass

        def __call__(self, t):
            return t

    def unpack(t):
        for _ in range(5):
            graph.saved_tensors_hooks(Restless(), lambda t: t).__enter__()
        return t

    x = leaf(1, 2)
    with graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.sin()
    y.sum().backward()
    assert mica.allclose(x.grad, x.detach().cos())


def test_packed_tensors_are_not_kept():
    x = mica.ones(1 << 16, requires_grad=True)
    for _ in range(2):  # the second time everything that stays is there
        before = in_use()
        with graph.saved_tensors_hooks(lambda t: None, lambda _: x.detach()):
            y = (x.exp().exp() * x).sum()
        assert in_use() - before < x.nbytes  # of three intermediate values none
        del y
    assert in_use() == before


def test_pack_records_nothing_and_may_compute():
    x = leaf(0.5)
    with graph.saved_tensors_hooks(lambda t: (t * 2).exp(), lambda packed: packed.log() / 2):
        y = x.sin() * x
    y.backward(mica.ones(1, dtype=mica.float64))
    assert mica.allclose(x.grad, (x.sin() + x * x.cos()).detach())


def test_double_backward_through_hooks():
    x = leaf(0.3, -1.2)
    with graph.saved_tensors_hooks(lambda t: t.detach().numpy().copy(), mica.from_numpy):
        y = (x.sin() * x).sum()
        (first,) = mica.autograd.grad(y, x, create_graph=True)
    (second,) = mica.autograd.grad(first.sum(), x)
    assert mica.allclose(second, (2 * x.cos() - x * x.sin()).detach())


def refuse_write(tensor: mica.Tensor) -> mica.Tensor:
    return tensor.zero_()


SAVED_HOOK_ERRORS = [
    (
        refuse_write,
        lambda t: t,
        RuntimeError,
        "A saved tensor pack hook is modifying its input in place.*must write to a clone",
    ),
    (
        lambda t: t,
        lambda t: 3,
        TypeError,
        r"Output of saved tensor unpack_hook expected to be a Tensor.*of type \(int\)",
    ),
    (lambda t: 1 / 0, lambda t: t, ZeroDivisionError, "division"),
    (lambda t: t, lambda t: 1 / 0, ZeroDivisionError, "division"),
]


@pytest.mark.parametrize(("pack", "unpack", "kind", "sentence"), SAVED_HOOK_ERRORS)
def test_wrong_saved_hooks(pack, unpack, kind, sentence):
    x = leaf(1)
    with pytest.raises(kind, match=sentence), graph.saved_tensors_hooks(pack, unpack):
        (x * 2).exp().sum().backward()
    x.grad = None
    (x * 2).exp().sum().backward()  # nothing is left behind
    assert x.grad is not None


def test_disable_saved_tensors_hooks():
    hooks = graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="^not here"), hooks:
            pass
        with graph.disable_saved_tensors_hooks("nor here"), pytest.raises(RuntimeError, match="^nor here"):
            graph.save_on_cpu().__enter__()
        with pytest.raises(RuntimeError, match="^not here"), hooks:
            pass
    with hooks, pytest.raises(RuntimeError, match="^too late"), graph.disable_saved_tensors_hooks("too late"):
        pass
    with hooks:
        leaf(1).exp()


def test_saved_hooks_are_of_the_thread():
    packed = []
    with graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        other = threading.Thread(target=lambda: leaf(1).exp())
        other.start()
        other.join()
        assert packed == []


@pytest.mark.parametrize("pinned", [False, True])
def test_save_on_cpu(pinned):
    x = leaf(1, 2)
    with graph.save_on_cpu(pin_memory=pinned):
        y = (x.exp() * x).sum()
    y.backward()
    assert mica.allclose(x.grad, (x.exp() * (1 + x)).detach())


# ---- writes to what was saved
def test_allow_mutation_copies_what_is_written_alone():
    x = mica.ones(1 << 16, dtype=mica.float64, requires_grad=True)
    copied = []
    mica.empty_cache()  # so that a copy takes no larger block
    with graph.allow_mutation_on_saved_tensors():
        a, b = x * 2, x * 3
        y = (a.sin() + b.sin()).sum()
        for _ in range(2):  # the copy of a, not of b; and once
            before = in_use()
            a.add_(1)
            copied.append(in_use() - before)
    assert a.nbytes <= copied[0] < 1.1 * a.nbytes and copied[1] < 1000
    y.backward()
    expected = 2 * mica.tensor(2.0, dtype=mica.float64).cos() + 3 * mica.tensor(3.0, dtype=mica.float64).cos()
    assert mica.allclose(x.grad, expected.expand(1 << 16))


WRITES = {
    "the tensor": lambda a, view: a.zero_(),
    "a view": lambda a, view: view.fill_(7),
    "a view of a view": lambda a, view: view[1:].copy_(mica.zeros(1, dtype=mica.float64)),
    "data": lambda a, view: a.data.mul_(3),
    "out=": lambda a, view: mica.add(mica.ones(2, 2), 1, out=a.detach()),
    "under no_grad": lambda a, view: mica.no_grad()(a.add_)(1),
    "setitem": lambda a, view: a.__setitem__((0, 1), 9.0),
    "random": lambda a, view: a.uniform_(),
}


@pytest.mark.parametrize("name", WRITES)
def test_allow_mutation(name):
    def gradient(write):
        x = mica.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=mica.float64, requires_grad=True)
        a = x * 2
        with graph.allow_mutation_on_saved_tensors():
            y = (a.sin() * a[0] + (a[0] * a[0]).exp()).sum()
            write(a, a[0])
            (g,) = mica.autograd.grad(y, x)
        return g

    assert mica.equal(gradient(WRITES[name]), gradient(lambda a, view: None))


def test_mutation_after_the_block_is_refused():
    x = leaf(1)
    with graph.allow_mutation_on_saved_tensors():
        a = x * 2
        y = a.sin()
    a.zero_()
    with pytest.raises(RuntimeError, match="after the end of allow_mutation_on_saved_tensors"):
        y.backward()


def test_increment_version():
    x = leaf(1)
    a = x * 2
    y = a.sin()
    graph.increment_version(a)
    assert a._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


# ---- what nodes show
def test_saved_values_of_nodes():
    x, w = leaf(1, 2), mica.ones(2, dtype=mica.float64)
    node = (x * w).grad_fn
    assert node._saved_other is not None and node._saved_other.tolist() == [1, 1]
    assert node._saved_self is None  # no gradient needs it: w has none
    assert {"_saved_other", "_raw_saved_other", "name"} <= set(dir(node))
    result = x.exp()
    assert result.grad_fn._saved_result.grad_fn == result.grad_fn
    assert mica.add(x, w, alpha=3).grad_fn._saved_alpha == 3
    assert x.sum(0, keepdim=True).grad_fn._saved_dim in ([0], (0,))
    with pytest.raises(AttributeError, match="_saved_nothing"):
        _ = node._saved_nothing
    (x * x).sum().backward()
    freed = x.exp()
    freed.sum().backward()
    with pytest.raises(RuntimeError, match="are freed by the first backward"):
        _ = freed.grad_fn._saved_result


def test_hooks_on_one_saved_tensor():
    x = leaf(1, 2)
    y = x * x
    place = y.grad_fn._raw_saved_self
    place.register_hooks(lambda t: t * 10, lambda t: t)
    assert y.grad_fn._saved_self.tolist() == [10, 20] and y.grad_fn._saved_other.tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        place.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [11, 22]
    with pytest.raises(RuntimeError, match="did not save"):
        (x * x.detach()).grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_nodes():
    x = leaf(1, 2)
    y = (x * 2).reshape(1, 2)
    node = y.grad_fn
    assert node.name() == "ViewBackward0" or node.name().startswith("ReshapeAliasBackward")
    assert node.next_functions[0][0].name() == "MulBackward0"
    (info,) = node._input_metadata
    assert info.shape == (1, 2) and info.dtype == mica.float64 and info.device == mica.device("cpu")
    node.metadata["who"] = "me"
    assert y.grad_fn.metadata == {"who": "me"} and y.grad_fn == node and hash(y.grad_fn) == hash(node)


def test_node_hooks():
    x, log = leaf(1, 2), []
    y = x * 3
    pre = y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    post = y.grad_fn.register_hook(
        lambda inputs, outputs: log.append((inputs[0].tolist(), outputs[0].tolist()))
    )
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [6, 6] and log == [([6, 6], [2, 2])]
    pre.remove()
    post.remove()
    y.sum().backward()
    assert x.grad.tolist() == [9, 9] and len(log) == 1
    with pytest.raises(TypeError, match="must return None or a tuple"):
        z = x * 1
        z.grad_fn.register_hook(lambda inputs, outputs: 5)
        z.sum().backward()
    accumulate = graph.get_gradient_edge(x).node
    accumulate.register_prehook(lambda grads: (grads[0] + 100,))
    x.grad = None
    (x * 1).sum().backward()
    assert x.grad.tolist() == [101, 101]


# ---- edges
def test_edges_stand_for_tensors():
    x = leaf(1, 2)
    y = x * x
    z = y.exp()
    edge_x, edge_y, edge_z = map(graph.get_gradient_edge, (x, y, z))
    assert edge_y.node == y.grad_fn and edge_y.output_nr == 0
    ones = mica.ones(2, dtype=mica.float64)
    expected = mica.autograd.grad(z, [x, y], ones, retain_graph=True)
    found = mica.autograd.grad(edge_z, [edge_x, edge_y], ones, retain_graph=True)
    assert all(mica.equal(a, b) for a, b in zip(expected, found))
    weak = weakref.ref(y)
    del y
    assert weak() is None  # the edge keeps no tensor
    mica.autograd.backward([edge_z], [ones], retain_graph=True, inputs=[edge_x])
    assert mica.equal(x.grad, expected[0])
    total = z.sum()
    del z
    (g,) = mica.autograd.grad(graph.get_gradient_edge(total), x)
    assert mica.equal(g, expected[0])
    several = graph.get_gradient_edge(mica.linalg.svd(mica.eye(2, requires_grad=True)).S)
    assert several.output_nr == 1


EDGE_ERRORS = [
    (lambda x, y: graph.get_gradient_edge(x.detach()), RuntimeError, "does not require grad"),
    (lambda x, y: graph.get_gradient_edge(3), TypeError, r"type \(int\)"),
    (lambda x, y: mica.autograd.grad(graph.get_gradient_edge(y), x), RuntimeError, "an edge of MulBackward0, has the shape"),
    (
        lambda x, y: mica.autograd.grad(graph.get_gradient_edge(y), x, mica.ones(3, dtype=mica.float64)),
        RuntimeError,
        r"shape \[3\], and the output, an edge of MulBackward0, the shape \[2\]",
    ),
    (lambda x, y: mica.autograd.grad(y.sum(), graph.get_gradient_edge(leaf(1))), RuntimeError, "an edge of AccumulateGrad, appears to not have been used"),
    (lambda x, y: mica.autograd.grad(y.sum(), 3), TypeError, r"`inputs` must be a Tensor, a GradientEdge.*\(int\)"),
    (lambda x, y: mica.autograd.grad([y.sum(), "no"], x), TypeError, r"`outputs` holds a value of type \(str\)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "sentence"), EDGE_ERRORS)
def test_wrong_edges(call, kind, sentence):
    x = leaf(1, 2)
    with pytest.raises(kind, match=sentence):
        call(x, x * x)


# ---- groups of tensors
def test_multi_grad_hook_of_all():
    x, y, unused = leaf(1), leaf(2), leaf(3)
    a, b = x * 2, y * 3
    calls = []
    handle = graph.register_multi_grad_hook([a, b, unused], calls.append)
    (a * b).backward(retain_graph=True)
    assert [None if g is None else g.item() for g in calls[0]] == [6, 2, None]
    a.backward(retain_graph=True)  # comes to one of them
    assert [None if g is None else g.item() for g in calls[1]] == [1, None, None]
    mica.autograd.grad(a * b, [b], retain_graph=True)
    assert [None if g is None else g.item() for g in calls[2]] == [None, 2, None]
    handle.remove()
    (a * b).backward()
    assert len(calls) == 3


def test_multi_grad_hook_of_any():
    x = leaf(1, 2)
    a, b = x * 2, x.exp()
    calls = []
    graph.register_multi_grad_hook([a, b, x.detach()], lambda g: calls.append(g.tolist()), mode="any")
    for _ in range(2):
        (a + b).sum().backward(retain_graph=True)
    assert calls == [[1, 1], [1, 1]]
    with pytest.raises(ValueError, match="Expects mode to be one of .* but got some"):
        graph.register_multi_grad_hook([a], calls.append, mode="some")


def test_accumulate_hooks():
    x, log = leaf(1), []
    handle = x.register_post_accumulate_grad_hook(
        lambda p: (log.append(p.grad.item()), setattr(p, "grad", None))[0]
    )
    for _ in range(2):
        (x * 2).backward()
    assert log == [2, 2] and x.grad is None
    handle.remove()
    (x * 2).backward()
    assert x.grad.item() == 2
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(lambda p: None)


# ---- batched gradients
def test_grads_batched():
    x = leaf(1, 2, 3)
    y = x * x
    basis = mica.eye(3, dtype=mica.float64)
    (jacobian,) = mica.autograd.grad(y, x, basis, is_grads_batched=True, retain_graph=True)
    assert mica.equal(jacobian, mica.diag(2 * x.detach()))
    unused = leaf(1)
    found = mica.autograd.grad(y, [x, unused], basis, is_grads_batched=True, allow_unused=True)
    assert mica.equal(found[0], jacobian) and found[1] is None


# ---- anomaly mode
def test_anomaly_names_the_forward_line():
    x = leaf(0.0)
    with mica.autograd.detect_anomaly():
        y = x.sqrt() * 0  # the line
        sentence = r"'SqrtBackward0' returned nan values in its 0th output.*test_autograd_graph.py.*the line"
        with pytest.warns(UserWarning, match="the line"), pytest.raises(RuntimeError, match=sentence):
            y.backward()
    assert not mica.is_anomaly_enabled()
    with mica.autograd.set_detect_anomaly(True, check_nan=False), pytest.warns(UserWarning, match="in test_"):
        z = x.exp()
        z.register_hook(lambda g: None)
        with pytest.raises(ZeroDivisionError):
            Failing.apply(z).backward()


class Failing(mica.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        raise ZeroDivisionError


# ---- drawing
def test_draw(tmp_path):
    net = mica.nn.Sequential(mica.nn.Linear(3, 4), mica.nn.Tanh(), mica.nn.Linear(4, 1))
    loss = net(mica.ones(2, 3)).square().mean()
    drawing = graph.draw(loss, tmp_path / "graph.svg", params=net)
    assert (tmp_path / "graph.svg").read_text() == drawing == drawing._repr_svg_()
    root = ElementTree.fromstring(drawing)
    boxes = list(root.iter(ROOT + "g"))
    texts = [[t.text for t in g.iter(ROOT + "text")] for g in boxes]
    titles = sorted(t[0] for t in texts)
    assert {"0.weight", "0.bias", "2.weight", "2.bias", "Tanh", "Mean"} <= set(titles)
    assert ["0.weight", "float32[4, 3]"] in texts
    assert [g.get("class") for g in boxes].count("output") == 1
    assert any("result: float32[2, 4]" in (t.text or "") for t in root.iter(ROOT + "title"))
    check_layout(root)


def check_layout(root: ElementTree.Element) -> None:
    """Boxes lie apart and inside; arrows start and end at boxes, from above to below."""
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = []
    for g in root.iter(ROOT + "g"):
        r = {k: float(v) for k, v in g.find(ROOT + "rect").attrib.items() if k != "rx"}
        boxes.append((r["x"], r["y"], r["x"] + r["width"], r["y"] + r["height"]))
    for i, (x0, y0, x1, y1) in enumerate(boxes):
        assert x0 >= 0 and y0 >= 0 and x1 <= width and y1 <= height
        for a0, b0, a1, b1 in boxes[:i]:
            assert x1 <= a0 or a1 <= x0 or y1 <= b0 or b1 <= y0
    for path in root.findall(ROOT + "path"):
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", path.get("d"))]
        (x0, y0), (x1, y1) = numbers[:2], numbers[-2:]
        assert y0 < y1
        assert any(b[0] <= x0 <= b[2] and abs(y0 - b[3]) < 0.2 for b in boxes)
        assert any(b[0] <= x1 <= b[2] and abs(y1 - b[1]) < 0.2 for b in boxes)


@pytest.mark.parametrize("steps", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_draw_large(steps):
    x, y = leaf(1, 2), leaf(3, 4)
    h = x
    for _ in range(steps):
        h = h.sin() + x  # long edges from one leaf
    check_layout(ElementTree.fromstring(graph.draw([h, (h * y).sum()], params={"<x>": x})))


def test_draw_odd():
    x, y = leaf(1, 2), leaf(3, 4)
    freed = (x * y).sum()
    freed.backward()
    assert "freed, or written since" in graph.draw(freed)
    with pytest.raises(RuntimeError, match=r"output \(0\) does not require grad"):
        graph.draw(mica.ones(2))
    check_layout(ElementTree.fromstring(graph.draw(x)))


def test_detach_in_place_of_views_without_a_history():
    with mica.inference_mode():
        made = mica.ones(1)
    view = made.squeeze()
    assert view.detach_() is view
    assert mica.arange(4)[1:].detach_().tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="cannot be detached in place"):
        mica.ones(3)[1:].detach_()


def test_a_base_detached_in_place_and_written_takes_its_views_with_it():
    x = mica.ones(3, requires_grad=True)
    base = x * 2
    view, unseen = base[:2], base[1:]
    assert view.requires_grad
    base.detach_()
    with mica.no_grad():
        base.mul_(3)
    (view.sum() * x.sum() + unseen.sum()).backward()
    assert x.grad.tolist() == [12, 12, 12]  # of the second factor only
    assert base.grad is None and base.is_leaf


# Each of many tensors' locks is one of a few: while a gradient is added, that of another tensor is needed.
VIEWS_OF_RECORDED_GRADIENTS = """
import mica
for _ in range(2000):
    x, g = mica.ones(3, requires_grad=True), mica.ones(1, 3, requires_grad=True)
    for _ in range(2):
        x.view(1, 3).backward(g, create_graph=True)
    assert x.grad.tolist() == [2, 2, 2]
"""


def test_recorded_gradients_are_added_without_a_lock():
    printed(VIEWS_OF_RECORDED_GRADIENTS, timeout=60)
