"""Gradients as a plugin in C sees them: by Autograd's table (<mica/autograd.h>), found by name."""

from __future__ import annotations

import pytest

from build import plugin, python

HEAD = """
import gc, sys, mica
mica.load_plugin(sys.argv[1])
ops = mica.ops.test_gradient
x = mica.tensor([3.0, 5.0], requires_grad=True)
def attempt(function, *arguments):
    try:
        print(function(*arguments))
    except Exception as error:
        print(f"{type(error).__name__}: {error}".splitlines()[0])
"""


def lines(program: str, *options: str) -> list[str]:
    result = python(HEAD + program, str(plugin("gradient.c", *options)))
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()


def test_hooks_backward_and_the_graph() -> None:
    """Of sum(x * x) at 3: the hooks on x * x square the gradient (1), and the graph leads from the loss to x."""
    [said, held] = lines("""
print(ops.backward(x))
gc.collect()
print(ops.held())
""")
    assert said == (
        "tensor 1; before 1; after 1 to 3; leaf 3; grad 6; "
        "after 1 to 3; leaf 3; grad 6; after 1 to 3; gradient 6; "
        "SumBackward0 > MulBackward0 other self=3 > AccumulateGrad of x 3;"
    )
    assert held == "1"  # the accumulate hook's, as long as x lives


def test_a_backward_of_its_own() -> None:
    """The custom function's object goes with its node, and what it saved with the first backward."""
    assert lines("""
y = ops.custom(x)
print(y.grad_fn.name(), ops.held())
(y * 2).sum().backward(retain_graph=True)
print(x.grad.tolist(), ops.held())
(y * 2).sum().backward()
print(x.grad.tolist())
attempt(y.sum().backward)
del y
gc.collect()
print(ops.held())
print(ops.custom(x.detach()).requires_grad, ops.held())
""") == [
        "TimesSavedBackward 1",
        "[6.0, 10.0] 1",
        "[12.0, 20.0]",
        "RuntimeError: the tensor is freed",
        "0",
        "False 0",
    ]


def test_a_saved_result_outlives_its_node() -> None:
    """It has no history then. The node's object is gone with the node."""
    assert lines("""
print(ops.orphan(x))
print(ops.held())
""") == ["differentiable 3, plain 3", "0"]


def test_hooks_are_added_and_removed_while_another_thread_runs_their_nodes() -> None:
    assert lines("""
import threading
y = (x * x).sum()
leaf = y.grad_fn.next_functions[0][0].next_functions[0][0]
stop = False
def hook(*gradients):
    return None
def change():
    while not stop:
        added = [x.register_hook(hook) for _ in range(5)]
        added += [x.register_post_accumulate_grad_hook(hook)]
        added += [leaf.register_prehook(hook), leaf.register_hook(hook)]
        for one in added:
            one.remove()
def run():
    for _ in range(1500):
        y.backward(retain_graph=True)
changing = [threading.Thread(target=change) for _ in range(2)]
running = [threading.Thread(target=run) for _ in range(2)]
for thread in changing + running:
    thread.start()
for thread in running:
    thread.join()
stop = True
for thread in changing:
    thread.join()
print(x.grad.tolist())
""") == ["[18000.0, 30000.0]"]


def test_a_hook_that_the_backward_of_its_own_node_adds() -> None:
    """As in torch, it is called after that backward, and is not told what had arrived before it was there."""
    assert lines("""
class F(mica.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t * 2
    @staticmethod
    def backward(ctx, g):
        ctx.register_hook(lambda made, arrived: print(len(made), len(arrived)))
        return g * 2
y = F.apply(x).sum()
y.backward(retain_graph=True)
y.backward()
""") == ["1 0", "1 1", "1 1"]


def test_a_node_with_more_ends_than_it_can_count_is_refused() -> None:
    said = lines("""
class F(mica.autograd.Function):
    @staticmethod
    def forward(ctx, *tensors):
        return tuple(tensors[0] * 1 for _ in range(count))
    @staticmethod
    def backward(ctx, *grads):
        return (grads[0],)
count = 1
attempt(F.apply, *[x] * 65536)
count = 65536
attempt(F.apply, x)
""")
    assert said == [
        "RuntimeError: A node of the backward graph has at most (65535) inputs; this one would get (65536).",
        "RuntimeError: A node of the backward graph has at most (65535) outputs; this one would get (65536).",
    ]


SENTENCES = [
    "TypeError: MicaAutograd::grad was given NULL in the place of a tensor.",
    "TypeError: MicaAutograd::add_tensor_hook was given NULL in the place of a function.",
    "IndexError: Edge (3) is none of the (0) of AccumulateGrad.",
    "IndexError: The edge into number (7) of AccumulateGrad is none of its (1) edges.",
    "ValueError: The flags (64) of a backward hold some that there are not; expected bits of (15).",
    "ValueError: A struct that MicaAutograd::push_saved_tensor_hooks was given has the struct_size (8)",
    "TypeError: The node of a custom function's call is a AccumulateGrad, which was not made for one",
    "RuntimeError: MicaAutograd::grad_input is called where the current frame is none; expected one of the kind grad.",
    "RuntimeError: Which nodes run can be asked while backward runs only.",
    "TypeError: MicaAutograd::saved_unpack was given NULL in the place of a saved tensor.",
    "TypeError: MicaAutograd::custom_node was given NULL in the place of a struct.",
    "ValueError: custom_finish was given (1) inputs of TwoInputsBackward, whose custom_node was given (2)",
    "ValueError: Input (1) of TwoInputsBackward is another one at custom_finish than at custom_node",
    "RuntimeError: The call of TwoInputsBackward is finished; custom_finish ends each once.",
]


def test_what_is_wrong_is_refused_with_a_sentence() -> None:
    said = lines(f"for i in range({len(SENTENCES)}): attempt(ops.wrong, x, i)\nprint(ops.held())")
    assert [line[: len(s)] for line, s in zip(said, SENTENCES)] == SENTENCES
    assert said[-1] == "0"  # objects that came with a refused call are destroyed, too


@pytest.mark.parametrize("case", ["disabled", "younger"])
def test_where_the_table_is_not_there(case: str) -> None:
    """The plugin that asks is told NULL, and says so; nothing crashes, and an enabled plugin serves again."""
    options = ("-DMINOR=99",) if case == "younger" else ()
    disable = 'mica.disable_plugin("autograd")' if case == "disabled" else ""
    assert lines(
        f"""
x.grad_fn
p = mica.ones(2)
{disable}
attempt(ops.custom, p)
print((p + 1).tolist())
""",
        *options,
    ) == ["RuntimeError: nobody differentiates here", "[2.0, 2.0]"]


def test_what_the_table_gave_outlives_its_plugin() -> None:
    """Nodes, hooks and saved tensors go back through the table that gave them, while Autograd is disabled too."""
    said = lines("""
y = ops.custom(x)
node = y.grad_fn
remove = x.register_hook(lambda g: g)
mica.disable_plugin("autograd")
remove.remove()
print(node.name())
attempt(lambda: node.next_functions)
del y, node, remove
gc.collect()
print(ops.held())
mica.enable_plugin("autograd")
(x * x).sum().backward()
print(x.grad.tolist())
""")
    assert said[1].startswith("RuntimeError: Gradients need the autograd plugin. ")
    assert said[1].endswith("Plugin (autograd) provides it and is disabled.")
    assert [said[0], *said[2:]] == ["TimesSavedBackward", "0", "[6.0, 10.0]"]
