"""Odd corners of modules, optimizers, datasets and checkpoints beside torch's, each once a difference:
see module_programs.py. What is common is in the files named after the modules."""

from __future__ import annotations

import collections
import copy
import io
import pickle
import subprocess
import sys
import warnings
from typing import Any

import pytest
import torch
from module_programs import Case, check, kind, net, ones

from mica.torch._modules import module as namespace_module

CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def saved(L: Any, obj: Any, **options: Any) -> Any:
    file = io.BytesIO()
    L.save(obj, file)
    file.seek(0)
    return L.load(file, **options)


@case
def lazy_conversions(L: Any) -> Any:
    L.manual_seed(0)
    m = L.nn.Sequential(L.nn.LazyLinear(3), L.nn.LazyBatchNorm1d()).double()
    kept = [type(t).__name__ for t in (m[0].weight, m[1].weight, m[1].running_mean)]
    found = [*kept, m.float()(ones(L, 4, 5)), repr(m)]
    twin = pickle.loads(pickle.dumps(L.nn.LazyLinear(3)))
    plain = L.nn.Linear(5, 3)
    loaded = L.nn.LazyLinear(3)
    loaded.load_state_dict(plain.state_dict())
    shared = kind(lambda: L.nn.LazyLinear(3).share_memory())
    return [*found, twin(ones(L, 2, 2)).shape, loaded(ones(L, 2, 5)).shape, repr(loaded), shared]


@case
def weight_norm_of_older_states(L: Any) -> Any:
    L.manual_seed(0)
    old = L.nn.utils.weight_norm(L.nn.Linear(3, 2))
    new = L.nn.utils.parametrizations.weight_norm(L.nn.Linear(3, 2))
    deep = L.nn.Sequential(L.nn.utils.parametrizations.weight_norm(L.nn.Linear(3, 2)))
    states = [new.load_state_dict(old.state_dict()), deep.load_state_dict(L.nn.Sequential(old).state_dict())]
    return [[str(s) for s in states], new(ones(L, 1, 3)) - old(ones(L, 1, 3)), sorted(deep.state_dict())]


@case
def removed_parametrization_keeps_the_parameter(L: Any) -> Any:
    P, m = L.nn.utils.parametrize, L.nn.Linear(2, 2)
    weight = m.weight
    optimizer = L.optim.SGD(m.parameters(), lr=1.0)
    P.register_parametrization(m, "weight", L.nn.Tanh())
    P.remove_parametrizations(m, "weight")
    m.weight.grad = L.ones(2, 2)
    before = m.weight.detach().clone()
    optimizer.step()
    return [m.weight is weight, m.weight - before]


@case
def tied_weights_given_twice(L: Any) -> Any:
    m = L.nn.Sequential(L.nn.Linear(2, 2), L.nn.Linear(2, 2))
    m[1].weight = m[0].weight
    both = {"0.weight": L.eye(2), "1.weight": L.ones(2, 2)}
    call = L.func.functional_call
    same = {"0.weight": both["0.weight"], "1.weight": both["0.weight"]}
    one = {"0.weight": L.eye(2), "0.bias": L.zeros(2), "1.bias": L.zeros(2)}
    return [
        kind(lambda: call(m, both, (ones(L, 1, 2),))),
        kind(lambda: call(m, both, (ones(L, 1, 2),), tie_weights=False).shape),
        kind(lambda: call(m, same, (ones(L, 1, 2),)).shape),
        kind(lambda: call(m, one, (ones(L, 1, 2),))),
    ]


@case
def gradients_of_hooks_are_counted(L: Any) -> Any:
    def ran(hook: Any) -> Any:
        L.manual_seed(0)
        m, x = L.nn.Bilinear(2, 2, 1), ones(L, 1, 2).requires_grad_()
        m.register_full_backward_hook(hook)
        m(x, x.detach()).sum().backward()
        return x.grad

    hooks = (lambda m, i, o: (i[0], i[1], None), lambda m, i, o: i[0], lambda m, i, o: (i[0] * 2, None))
    return [kind(lambda h=h: ran(h)) for h in hooks]


@case
def extra_state_without_a_setter(L: Any) -> Any:
    class Getter(L.nn.Linear):
        def get_extra_state(self) -> Any:
            return 1

    m = Getter(2, 2)
    return [kind(lambda s=s: str(m.load_state_dict(m.state_dict(), strict=s))) for s in (True, False)]


@case
def states_that_go_nowhere_warn(L: Any) -> Any:
    m = L.nn.Linear(2, 2, device="meta")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        m.load_state_dict(L.nn.Linear(2, 2).state_dict())
        m.load_state_dict(L.nn.Linear(2, 2).state_dict(), assign=True)
    return [len(seen), m.weight.is_meta]


@case
def modules_of_older_pickles(L: Any) -> Any:
    class Old(L.nn.Linear):
        def __setstate__(self, state: Any) -> None:
            super().__setstate__(state)
            self.new = 3

    m = Old(2, 2)
    m.__setstate__({k: v for k, v in m.__dict__.items() if "with_kwargs" not in k and "pre_hooks" not in k})
    m.register_forward_pre_hook(lambda m, args, kwargs: None, with_kwargs=True)
    return [m.new, m(ones(L, 1, 2)).shape, kind(lambda: L.nn.ReLU().__setstate__({}))]


@case
def handles_know_their_table(L: Any) -> Any:
    m = L.nn.Linear(1, 1)
    handle = m.register_forward_hook(lambda *args: None)
    return handle.hooks_dict_ref() is m._forward_hooks


@case
def kinds_of_what_modules_refuse(L: Any) -> Any:
    rows = (
        lambda: L.nn.LSTM(2, 3)(ones(L, 4, 2).double()),
        lambda: L.nn.init.calculate_gain("leaky_relu", True),
        lambda: L.nn.utils.vector_to_parameters([1.0], [ones(L, 1)]),
        lambda: L.nn.ParameterList().extend(L.nn.Parameter(ones(L, 2))),
        lambda: L.utils.data.RandomSampler([1], replacement=1),
        lambda: L.utils.data.BatchSampler([1], 1, "no"),
        lambda: L.utils.data.TensorDataset(ones(L, 2), ones(L, 3)),
        lambda: L.utils.data.ConcatDataset([]),
        lambda: L.utils.data.ConcatDataset([[1, 2]])[-3],
        lambda: L.load(3),
        lambda: L.use_deterministic_algorithms("yes"),
        lambda: L.set_deterministic_debug_mode("loud"),
        lambda: L.set_deterministic_debug_mode(7),
    )
    return [kind(row) for row in rows]


@case
def probabilities_out_of_range(L: Any) -> Any:
    F = L.nn.functional
    bad = [[2.0, 0.5], [-0.5, 0.5], [float("nan"), 0.5], [0.0, 1.0]]
    ways = [(p, r) for p in bad for r in ("mean", "none")]
    loss = L.nn.BCELoss()
    per_row = L.func.vmap(L.func.grad(lambda p: F.binary_cross_entropy(p, L.ones(2))))(ones(L, 3, 2) / 7)
    return [
        *(
            kind(lambda p=p, r=r: F.binary_cross_entropy(L.tensor(p), L.ones(2), reduction=r))
            for p, r in ways
        ),
        *(kind(lambda t=t: loss(L.tensor([0.5]), L.tensor([t]))) for t in (float("nan"), 2.0, -1.0, 1.0)),
        kind(lambda: loss(L.empty(0), L.empty(0))),
        per_row,
    ]


@case
def step_hooks_see_the_optimizer(L: Any) -> Any:
    m, seen = net(L), []
    optimizer = L.optim.SGD(m.parameters(), lr=0.1)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append((args[0] is o, len(args))))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append((args[0] is o, sorted(kwargs))))
    optimizer.step()
    optimizer.step(lambda: None)
    optimizer.step(closure=None)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 5.0), {}))
    return [optimizer.step(), seen]


@case
def averages_of_whole_numbers(L: Any) -> Any:
    m = L.nn.BatchNorm1d(2)
    averaged = L.optim.swa_utils.AveragedModel(m, use_buffers=True)
    for steps in (1, 4, 9):
        m.num_batches_tracked.fill_(steps)
        averaged.update_parameters(m)
    return averaged.module.num_batches_tracked


@case
def batches_of_parts_of_datasets(L: Any) -> Any:
    data = L.utils.data

    class Many(data.Dataset):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, i: int) -> int:
            return i

        def __getitems__(self, places: list[int]) -> list[int]:
            return [100 + i for i in places]

    class Stream(data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(range(3))

    few = Many()
    few.__class__.__getitems__ = lambda self, places: [0]
    return [
        [b.tolist() for b in data.DataLoader(data.Subset(range(9), [4, 2, 7]), batch_size=2)],
        data.Subset(L.arange(6), [1, 3, 5])[[0, 2]],
        data.StackDataset([1, 2], [3, 4]).__getitems__([1, 0]),
        data.StackDataset(a=[1, 2], b=[3, 4]).__getitems__([1]),
        kind(lambda: data.StackDataset(few, few).__getitems__([0, 1])),
        list(Stream() + Stream()),
        kind(lambda: data.ConcatDataset([Stream()])),
        kind(lambda: list(data.ChainDataset([[1]]))),
        [data.DataLoader(d)._dataset_kind for d in ([1], Stream())],
    ]


@case
def checkpoints_of_what_is_no_leaf(L: Any) -> Any:
    x = ones(L, 2).requires_grad_()
    t = ones(L, 3)
    t.note = {"epoch": 3}
    again = saved(L, {"y": x * 2, "t": t, "layout": L.strided})
    twins = [saved(L, t, weights_only=False).note, pickle.loads(pickle.dumps(t)).note, copy.deepcopy(t).note]
    return [
        again["y"],
        again["y"].requires_grad,
        again["y"].is_leaf,
        again["t"].note,
        twins,
        str(again["layout"]),
    ]


@case
def submodules_do_not_hide_functions(L: Any) -> Any:
    program = (
        "import torch.nn.utils as u, torch.nn.utils.spectral_norm; from torch.nn.utils.weight_norm import WeightNorm;"
        "from torch.nn.utils import *; u.parametrizations.spectral_norm(torch.nn.Linear(2, 2));"
        "print(type(u.spectral_norm).__name__, type(weight_norm).__name__, WeightNorm.__name__)"
    )
    if L is torch:  # whose import alone takes seconds
        return ["function", "function", "WeightNorm"]
    done = subprocess.run([sys.executable, "-m", "mica.torch", "-c", program], capture_output=True, text=True)
    return done.stdout.split() or done.stderr


@case
def older_names_of_init(L: Any) -> Any:
    L.manual_seed(0)
    return [
        L.nn.init._no_grad_trunc_normal_(L.empty(3), 0.0, 1.0, -2.0, 2.0),
        L.nn.init._no_grad_fill_(L.empty(2), 3.0),
    ]


@case
def attention_without_keys(L: Any) -> Any:
    found = []
    for rows, keys, mask in ((0, 0, None), (3, 0, None), (3, 0, L.ones(3, 0) > 0), (0, 3, None)):
        q, k = L.ones(2, 2, rows, 4, requires_grad=True), L.ones(2, 2, keys, 4, requires_grad=True)
        y = L.nn.functional.scaled_dot_product_attention(q, k, k, mask)
        y.sum().backward()
        found.append([y, q.grad, k.grad])
    return found


@case
def reentrant_checkpoints(L: Any) -> Any:
    run, x = L.utils.checkpoint.checkpoint, ones(L, 2).requires_grad_()
    options: list[Any] = [{"scale": 2.0}, {"debug": True}, {"context_fn": lambda: None}]
    return [kind(lambda o=o: run(L.sin, x, use_reentrant=True, **o)) for o in options]


@case
def shown_storages(L: Any) -> Any:
    tensors = [L.ones(2), L.ones(1, dtype=L.bool), L.empty(0), L.ones(2, device="meta")]
    texts = [repr(s) for t in tensors for s in (t.storage(), t.untyped_storage())]
    return [text.replace("mica.", "torch.") for text in [*texts, repr(L.FloatStorage([1, 2]))]]


@case
def counted_keys(L: Any) -> Any:
    m = net(L)
    seen = []
    m._register_load_state_dict_pre_hook(lambda state, prefix, meta, strict, *lists: seen.append(strict))
    result = m.load_state_dict(collections.OrderedDict(m[0].state_dict(prefix="0.")), strict=False)
    return [seen, len(result.missing_keys), result.unexpected_keys]


@pytest.mark.filterwarnings("ignore")
def test_what_dir_lists_is_there() -> None:
    """Programs walk modules by dir() and getattr()."""
    for name in ("", ".nn", ".optim", ".utils.data", ".distributions", ".nn.functional", ".autograd"):
        module = namespace_module(f"torch{name}")
        assert not [n for n in dir(module) if not hasattr(module, n)], f"torch{name}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_corner(name: str) -> None:
    check(CASES[name], name)
