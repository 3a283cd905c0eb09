"""The programs of docs/guides/transforms.md, with what they give."""

# ruff: noqa: ANN001, ANN201, ANN205

import mica

# snippet: derivatives
from mica.func import functional_call, grad, grad_and_value, hessian, jvp, linearize, vjp


def energy(x):
    return (x**3).sum()


x = mica.tensor([1.0, 2.0])
grad(energy)(x)  # [3, 12]
hessian(energy)(x)  # [[6, 0], [0, 12]]
value, slope = jvp(energy, (x,), (mica.tensor([1.0, 0.0]),))  # 9, 3: along the first axis
value, pull = vjp(lambda x: x * x, x)  # pull(cotangent) -> (gradient,), again and again
value, push = linearize(lambda x: x * x, x)  # push(tangent) -> derivative, again and again
# end snippet
assert grad(energy)(x).tolist() == [3, 12] and hessian(energy)(x).tolist() == [[6, 0], [0, 12]]
assert slope.item() == 2 * 0 + 3 and pull(x)[0].tolist() == [2, 8] and push(x).tolist() == [2, 8]

# snippet: functionalize
from mica.func import functionalize  # noqa: E402
from mica.fx import make_fx  # noqa: E402


def shifted(x):
    x = x * 2
    x[1:].add_(1)
    return x


functionalize(shifted)(x)  # [2, 5]: the same, without a write
graph = make_fx(functionalize(shifted))(x).graph  # mul, slice, add, slice_scatter
# end snippet
assert functionalize(shifted)(x).tolist() == [2, 5]
assert [n.name for n in graph.nodes][1:5] == ["mul", "slice_1", "add", "slice_scatter"]

# snippet: model
net = mica.nn.Linear(2, 1)
weights = {name: p.detach() for name, p in net.named_parameters()}


def loss(weights, batch):
    return functional_call(net, weights, (batch,)).square().mean()


gradients, value = grad_and_value(loss)(weights, mica.ones(4, 2))
# end snippet
assert gradients["weight"].shape == (1, 2) and value.dim() == 0

# snippet: dual
from mica.autograd.forward_ad import dual_level, make_dual, unpack_dual  # noqa: E402

with dual_level():
    dual = make_dual(x, mica.ones(2))
    value, tangent = unpack_dual(dual.exp())
# end snippet
assert mica.equal(value, tangent)


# snippet: custom
class Cube(mica.autograd.Function):
    @staticmethod
    def forward(x):  # without ctx, so that every level can set up its own
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient


grad(grad(Cube.apply))(mica.tensor(2.0))  # 12
# end snippet
assert grad(grad(Cube.apply))(mica.tensor(2.0)).item() == 12
assert jvp(Cube.apply, (mica.tensor(2.0),), (mica.tensor(1.0),))[1].item() == 12
