"""The programs of docs/guides/graphs.md, with what they give."""

# ruff: noqa: ANN001, ANN201, ANN202

import mica

# snippet: record
from mica.fx import make_fx


def loss(weight, x):
    return (x @ weight).tanh().square().sum()


module = make_fx(mica.func.grad(loss))(mica.ones(3, 2), mica.ones(4, 3))
print(module.code)  # def forward(self, ...), one line an operator
module.print_readable()  # the same with dtypes and sizes
module(mica.zeros(3, 2), mica.ones(4, 3))
# end snippet
assert (module(mica.zeros(3, 2), mica.ones(4, 3)) == 0).all() and "tanh_backward" in module.code


# snippet: symbolic
def pooled(x):
    rows, columns = x.shape
    if rows > 2:  # a guard
        return x.view(-1).reshape(columns, rows).mean(1)
    return x


module = make_fx(pooled, tracing_mode="symbolic")(mica.ones(4, 6))
module(mica.ones(5, 3))
print(module.size_guards)  # s0 = size 0 of x_1, s1 = size 1 of x_1, s0 > 2
# end snippet
assert module(mica.ones(5, 3)).tolist() == [1, 1, 1]
assert module.size_guards.describe()[-1] == "s0 > 2"

# snippet: change
from mica.fx import Interpreter, Transformer  # noqa: E402

ops = mica.ops.mica
module = make_fx(lambda x: x.sin() + x)(mica.ones(3))
for node in module.graph.nodes:
    if node.op == "call_function" and node.target is ops.sin.default:
        with module.graph.inserting_after(node):
            twice = module.graph.call_function(ops.mul.Scalar, (node, 2))
        node.replace_all_uses_with(twice, delete_user_cb=lambda user, new=twice: user is not new)
module.graph.lint()
module.recompile()


class Timed(Interpreter):
    def run_node(self, node):
        print(node.format_node())
        return super().run_node(node)


Timed(module).run(mica.ones(3))


class Cosine(Transformer):
    def call_function(self, target, args, kwargs):
        target = ops.cos.default if target is ops.sin.default else target
        return super().call_function(target, args, kwargs)


changed = Cosine(module).transform()
# end snippet
x = mica.randn(3)
assert (module(x) == x.sin() * 2 + x).all() and (changed(x) == x.cos() * 2 + x).all()
