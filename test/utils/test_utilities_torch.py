"""Programs around tensors and modules that must print alike in torch and in Mica:
reparametrisation, checkpoints, trees, lists of tensors, storages, sequences."""

from __future__ import annotations

import copy
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
import torch
from shim import agree

import mica

Point = namedtuple("Point", "x y")
TREE = {"a": [1, (2, None)], "b": OrderedDict(z=Point(3, 4)), "c": ()}


def state(module: Any) -> list[Any]:
    return [(k, v.detach().reshape(-1).tolist()) for k, v in module.state_dict().items()]


def trained(L: Any, module: Any, *inputs: Any) -> list[Any]:
    """A step of descent: the loss and the state before and after."""
    before = state(module)
    optim = L.optim.SGD(module.parameters(), lr=0.1)
    loss = module(*inputs).square().sum()
    loss.backward()
    optim.step()
    return [loss.item(), before, state(module), module(*inputs).tolist()]


def weight_norm(L: Any) -> Any:
    found: list[Any] = []
    for dim in (0, 1, None):
        module = L.nn.utils.weight_norm(L.nn.Linear(3, 2), dim=dim)
        found += trained(L, module, L.ones(2, 3))
        L.nn.utils.remove_weight_norm(module)
        found.append(sorted(state(module)))
    conv = L.nn.utils.weight_norm(L.nn.Conv2d(2, 3, 2))
    return [*found, *trained(L, conv, L.ones(1, 2, 3, 3))]


def parametrized_weight_norm(L: Any) -> Any:
    module = L.nn.utils.parametrizations.weight_norm(L.nn.Linear(3, 2))
    found = [*trained(L, module, L.ones(2, 3)), type(module).__name__]
    twin = copy.deepcopy(module)
    with L.no_grad():
        module.weight = L.ones(2, 3)
    found += [module.weight.tolist(), state(twin), repr(twin) == repr(module)]
    L.nn.utils.parametrize.remove_parametrizations(module, "weight")
    return [*found, type(module).__name__, sorted(state(module))]


def parametrization(L: Any) -> Any:
    class Symmetric(L.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).t()

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    class Doubled(L.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return 2 * x

    P = L.nn.utils.parametrize
    module = L.nn.Linear(3, 3)
    P.register_parametrization(module, "weight", Symmetric())
    found = [P.is_parametrized(module), P.is_parametrized(module, "bias"), *trained(L, module, L.ones(3))]
    P.register_parametrization(module, "weight", Doubled())
    found.append(module.weight.tolist())
    with P.cached():
        found.append(module.weight is module.weight)
    for wrong in (
        lambda: P.register_parametrization(module, "nothing", Doubled()),
        lambda: setattr(module, "weight", L.ones(3, 3)),
        lambda: P.remove_parametrizations(module, "bias"),
    ):
        try:
            wrong()
        except Exception as error:  # the kinds are compared
            found.append(type(error).__name__)
    P.remove_parametrizations(module, "weight", leave_parametrized=False)
    return [*found, P.is_parametrized(module), sorted(state(module))]


def checkpointed(L: Any) -> Any:
    checkpoint = L.utils.checkpoint.checkpoint
    inner, outer, last = L.nn.Linear(4, 4), L.nn.Linear(4, 4), L.nn.Dropout(0.5)
    runs = []

    def part(x: Any, scale: float = 1.0) -> Any:
        runs.append(L.is_grad_enabled())
        return last(outer(inner(x).tanh())).sigmoid() * scale

    x = L.rand(3, 4, requires_grad=True)
    y = checkpoint(part, x, scale=2.0, use_reentrant=False)
    y.sum().backward()
    found = [y.tolist(), x.grad.tolist(), inner.weight.grad.tolist(), runs]
    plain = L.rand(3, 4)  # no input requires grad, the parameters do
    nested = checkpoint(lambda t: checkpoint(part, t, use_reentrant=False) * t, plain, use_reentrant=False)
    found += [g.tolist() for g in L.autograd.grad(nested.sum(), [inner.weight, outer.bias])]
    with L.no_grad():
        found.append(checkpoint(part, plain, use_reentrant=False).requires_grad)
    net = L.nn.Sequential(*(L.nn.Linear(4, 4) for _ in range(5)))
    L.utils.checkpoint.checkpoint_sequential(net, 2, x, use_reentrant=False).sum().backward()
    return [*found, [p.grad.tolist() for p in net.parameters()]]


def trees(L: Any) -> Any:
    T = L.utils._pytree
    leaves, spec = T.tree_flatten(TREE)
    found = [leaves, spec.num_leaves, spec.num_nodes, spec.num_children, spec == T.tree_structure(TREE)]
    found += [T.tree_unflatten([2 * n if n else n for n in leaves], spec), T.tree_leaves([[], 3])]
    found += [T.tree_map(lambda a, b: (a, b), [1, {"k": 2}], [3, {"k": 4}])]
    found += [T.tree_map_only(int, lambda n: n + 1, TREE), T.tree_map_only((str, int), str, ["a", 1, 2.5])]
    found += [T.tree_any(lambda n: n == 4, TREE), T.tree_all(lambda n: n, TREE)]
    found += [T.tree_leaves(TREE, is_leaf=lambda n: isinstance(n, list))]
    try:
        T.tree_unflatten([1], spec)
    except ValueError:
        found.append("refused")
    return found


def lists_of_tensors(L: Any) -> Any:
    def make() -> list[Any]:
        return [L.arange(1.0, 3.0), L.arange(4.0).reshape(2, 2) + 1]

    found: list[Any] = []
    for name, *args in (
        ("add", 1),
        ("add", make()),
        ("mul", [2.0, 3.0]),
        ("div", 4.0),
        ("sub", make()),
        ("sqrt",),
        ("neg",),
        ("abs",),
        ("reciprocal",),
        ("maximum", 2.0),
        ("minimum", make()),
        ("pow", 2),
        ("addcmul", make(), make(), 0.5),
        ("addcdiv", make(), make(), [1.0, 2.0]),
        ("lerp", make(), 0.3),
        ("clamp_min", 2.0),
    ):
        found.append([t.tolist() for t in getattr(L, f"_foreach_{name}")(make(), *args)])
        written = make()
        getattr(L, f"_foreach_{name}_")(written, *args)
        found.append([t.tolist() for t in written])
    written = make()
    L._foreach_zero_(written)
    L._foreach_copy_(written[:1], make()[:1])
    return [*found, [t.tolist() for t in written], [t.item() for t in L._foreach_norm(make())]]


def storages(L: Any) -> Any:
    x = L.arange(6.0).reshape(2, 3)
    view = x[1:]
    return [
        view.untyped_storage().nbytes(),
        view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(),
        view.storage().size(),
        view.storage().tolist(),
        x.get_device(),
        x.is_pinned(),
        x.resolve_conj() is x,
    ]


def sequences(L: Any) -> Any:
    R = L.nn.utils.rnn
    parts = [L.ones(3, 2), 2 * L.ones(1, 2), L.zeros(0, 2)]
    padded = R.pad_sequence(parts, batch_first=True, padding_value=-1.0)
    found = [
        padded,
        R.pad_sequence(parts).shape,
        R.pad_sequence([L.arange(2), L.arange(3)], padding_side="left"),
    ]
    found += R.unpad_sequence(padded, L.tensor([3, 1, 0]), batch_first=True)
    return [f.tolist() if hasattr(f, "tolist") else f for f in found]


def clipping(L: Any) -> Any:
    parameters = [L.nn.Parameter(L.ones(2)), L.nn.Parameter(L.ones(3)), L.nn.Parameter(L.ones(1))]
    for k, p in enumerate(parameters[:2]):
        p.grad = L.full_like(p, 3.0 + k).detach()
    total = L.nn.utils.get_total_norm([p.grad for p in parameters[:2]])
    L.nn.utils.clip_grads_with_norm_(parameters, 1.0, total)
    found = [total.item(), [p.grad.tolist() for p in parameters[:2]]]
    found.append(L.nn.utils.clip_grad_norm_(parameters, 0.5, float("inf")).item())
    return [*found, [p.grad.tolist() for p in parameters[:2]]]


def subclasses(L: Any) -> Any:
    class Named(L.Tensor):  # type: ignore[misc,name-defined]
        pass

    x = L.ones(2, requires_grad=True)
    y = (x * 2).as_subclass(Named)
    y.sum().backward()
    return [type(y).__name__, y.tolist(), x.grad.tolist()]


def step_hooks(L: Any) -> Any:
    p = L.nn.Parameter(L.ones(1))
    p.grad = L.ones(1)
    optim, log = L.optim.SGD([p], lr=0.5), []
    first = optim.register_step_pre_hook(lambda o, args, kwargs: log.append(("before", p.item())))
    optim.register_step_post_hook(lambda o, args, kwargs: log.append(("after", p.item())))
    optim.step()
    first.remove()
    optim.step()
    return log


PROGRAMS: list[Callable[[Any], Any]] = [
    weight_norm, parametrized_weight_norm, parametrization, checkpointed, trees, lists_of_tensors, storages,
    sequences, clipping, subclasses, step_hooks,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program(program: Callable[[Any], Any]) -> None:
    results = []
    for library in (torch, mica):
        library.manual_seed(4)
        results.append(program(library))
    agree(results[1], results[0], f"{results[1]}\n{results[0]}", 1e-5)
