"""Programs of names*.txt about tensors that become others: swaps, and how modules are converted and loaded."""

from __future__ import annotations

from typing import Any

from name_services import module


def swapped(L: Any) -> Any:  # noqa: N803 - as rows name it
    """Two tensors before and after; what may not be swapped stays."""
    a, b = L.nn.Parameter(L.ones(2)), L.nn.Parameter(L.zeros(3), requires_grad=False)
    a.mark, keys = 1, {id(a): "a", id(b): "b"}
    (a * 2).sum().backward()
    L.utils.swap_tensors(a, b)
    refused = []
    view = a[:1]
    for pair in ((a, b), (b, a)):
        try:
            L.utils.swap_tensors(*pair)
        except RuntimeError as error:
            refused.append(type(error).__name__)
    return [a, b, a.grad, b.grad, b.mark, hasattr(a, "mark"), a.requires_grad, keys[id(a)], refused, view]


def converted(L: Any, kind: str) -> Any:  # noqa: N803
    """Which objects stay when a module is converted and loaded while a setting is on."""
    future = module(L, "__future__")
    ask, say = getattr(future, f"get_{kind}"), getattr(future, f"set_{kind}")
    found: list[Any] = [ask()]
    say(True)
    try:
        m = L.nn.BatchNorm1d(2)
        parts = dict(m.named_parameters())
        for steps in (lambda: m.double(), lambda: m.double(), lambda: m.to_empty(device="cpu")):
            m(L.ones(2, 2, dtype=m.weight.dtype)).sum().backward()
            gradients = {k: p.grad for k, p in m.named_parameters()}
            steps()
            found.append([(p is parts[k], p.grad is gradients[k]) for k, p in m.named_parameters()])
            found.append([(p.dtype, p.grad.dtype, p.requires_grad) for p in m.parameters()])
        parts = dict(m.named_parameters())
        state = {k: L.ones_like(v, dtype=L.float32) for k, v in m.state_dict().items()}
        for assign in (False, True):
            m.load_state_dict(state, assign=assign)
            found.append([(p is parts[k], p) for k, p in m.named_parameters()])
        return [*found, ask()]
    finally:
        say(False)


def faked(L: Any, path: str) -> Any:  # noqa: N803
    """A product without memory."""
    fakes = module(L, path)
    with fakes.FakeTensorMode() as m:
        y = L.ones(2, 3) @ L.ones(3, 4)
    return [isinstance(y, fakes.FakeTensor), tuple(y.shape), y.fake_mode is m, repr(y)]


def hooked(L: Any) -> Any:  # noqa: N803
    """What a BackwardHook calls its hooks with."""
    seen: list[Any] = []
    hooks = [lambda m, given, got: seen.append((given, got)), lambda m, given, got: (given[0] * 2, None)]
    hook = L.utils.hooks.BackwardHook(L.nn.Identity(), hooks, [lambda m, got: seen.append(got)])
    x = L.arange(3.0).requires_grad_()
    a, b = hook.setup_input_hook((x, 7))
    hook.setup_output_hook(a * b).sum().backward()
    return [seen, x.grad]


def swapped_optimizer(L: Any) -> Any:  # noqa: N803
    """A step of other parameters from another state, and the optimizer after it."""
    params = [L.nn.Parameter(L.ones(2)), L.nn.Parameter(L.ones(3))]
    optimizer = L.optim.Adam(params, lr=0.1)
    loss = sum((p * p).sum() for p in params)
    loss.backward()
    optimizer.step()
    others = {str(i): L.nn.Parameter(p.detach() * 2) for i, p in enumerate(params)}
    state = optimizer.state_dict()
    state = {**state, "param_groups": [{**state["param_groups"][0], "lr": 0.5}]}
    state["state"] = {k: {n: v.clone() for n, v in own.items()} for k, own in state["state"].items()}
    with L.optim.swap_in_optimizer_params_and_state(optimizer, others, state):
        for p in others.values():
            p.grad = L.ones_like(p)
        optimizer.step()
    refused = []
    for wrong in ({}, {**state, "param_groups": []}, {**state, "state": {7: {}}}, {"state": 1}):
        try:
            with L.optim.swap_in_optimizer_params_and_state(optimizer, others, wrong):
                pass
        except RuntimeError:
            refused.append(len(wrong))
    return [list(others.values()), state, optimizer.state_dict(), params, refused]


def function_stack(L: Any) -> Any:  # noqa: N803
    """Modes as torch._C shows them, and a class whose tensors are not asked."""
    C = module(L, "_C")  # noqa: N806
    mode = L.overrides.BaseTorchFunctionMode()
    depth = C._len_torch_function_stack()  # other rows may have left some
    found: list[Any] = []
    C._push_on_torch_function_stack(mode)
    try:
        found += [C._len_torch_function_stack() - depth, C._get_function_stack_at(depth) is mode]
        C._pop_torch_function_stack()
    except Exception:
        L.overrides._pop_mode()
        raise
    found.append(C._len_torch_function_stack() - depth)

    class Quiet(L.Tensor):  # type: ignore[misc, name-defined]
        __torch_function__ = C._disabled_torch_function_impl

    x = L.ones(2).as_subclass(Quiet)
    return [*found, type(x + 1).__name__, type(x.exp()).__name__, Quiet.__torch_function__(L.add, (), (x, 1))]


def graph_attributes(L: Any) -> Any:  # noqa: N803
    """Attributes of a graph module by their paths, and what dead code elimination leaves."""
    homes, nodes = module(L, "fx.graph_module"), module(L, "fx.node")

    def noted(x: Any) -> None:
        return None

    graph = L.fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(noted, (x,))
    graph.output(x)
    made = module(L, "fx._lazy_graph_module")._make_graph_module(L.nn.Module(), graph)
    homes._assign_attr(L.ones(2), made, "a.b")
    homes._assign_attr(3, made, "c")
    nodes._side_effectful_functions.add(noted)
    changed = [graph.eliminate_dead_code()]
    nodes._side_effectful_functions.remove(noted)
    changed.append(graph.eliminate_dead_code())
    return [
        homes._get_attr(made, "a.b"),
        homes._get_attr(made, "c"),
        [n for n, _ in made.named_buffers()],
        changed,
    ]
