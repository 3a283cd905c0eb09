"""Module's hooks and states beside torch's: module_programs.py says how they are compared."""

from __future__ import annotations

import collections
import copy
import functools
import pickle
import warnings
from collections import OrderedDict
from typing import Any

import pytest
from module_programs import Case, check, kind, net, ones, plain

CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


# -- hooks


@case
def forward_hooks_in_order(L: Any) -> Any:
    m, seen = L.nn.Linear(2, 2), []
    m.register_forward_pre_hook(lambda mod, a: seen.append("pre 1"))
    m.register_forward_pre_hook(lambda mod, a: seen.append("pre 2"), prepend=True)
    m.register_forward_pre_hook(lambda mod, a, k: seen.append(("pre kw", sorted(k))), with_kwargs=True)
    m.register_forward_hook(lambda mod, a, o: seen.append("post 1"))
    m.register_forward_hook(
        lambda mod, a, k, o: seen.append(("post kw", sorted(k))), with_kwargs=True, prepend=True
    )
    first = m(input=ones(L, 1, 2)).shape
    handles = [m.register_forward_hook(lambda mod, a, o: seen.append("gone"))]
    handles[0].remove()
    handles[0].remove()
    m(ones(L, 1, 2))
    return [seen, tuple(first), len(m._forward_hooks), list(m._forward_hooks_with_kwargs.values())]


@case
def forward_hooks_change_values(L: Any) -> Any:
    m = L.nn.Identity()
    found = []
    with m.register_forward_pre_hook(lambda mod, a: a[0] * 2):
        found.append(m(ones(L, 2)))
    with m.register_forward_pre_hook(lambda mod, a: (a[0] * 3,)):
        found.append(m(ones(L, 2)))
    with m.register_forward_pre_hook(lambda mod, a, k: ((a[0] * 4,), k), with_kwargs=True):
        found.append(m(ones(L, 2)))
    with m.register_forward_hook(lambda mod, a, o: o + 1):
        found.append(m(ones(L, 2)))
    with m.register_forward_pre_hook(lambda mod, a, k: 3, with_kwargs=True):
        found.append(kind(lambda: m(ones(L, 2))))
    with m.register_forward_hook(lambda mod, a, o: 0):
        found.append(m(ones(L, 2)))
    return [*found, m(ones(L, 2))]


@case
def always_called_hooks(L: Any) -> Any:
    class Fails(L.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    m, seen = Fails(), []
    m.register_forward_hook(lambda mod, a, o: seen.append("plain"))
    m.register_forward_hook(lambda mod, a, o: seen.append(("always", o)), always_call=True)
    m.register_forward_hook(
        lambda mod, a, k, o: seen.append(("kw", o, k)), always_call=True, with_kwargs=True
    )
    result = kind(lambda: m(ones(L, 2)))
    ok = L.nn.Identity()
    ok.register_forward_hook(lambda mod, a, o: seen.append("before"), always_call=True)
    ok.register_forward_hook(lambda mod, a, o: 1 / 0)
    ok.register_forward_hook(lambda mod, a, o: seen.append("after"), always_call=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [result, kind(lambda: ok(ones(L, 2))), seen]


@case
def global_hooks(L: Any) -> Any:
    from_module = L.nn.modules.module
    m, seen = L.nn.Sequential(L.nn.Identity()), []
    handles = [
        from_module.register_module_forward_pre_hook(lambda mod, a: seen.append(("pre", type(mod).__name__))),
        from_module.register_module_forward_hook(lambda mod, a, o: seen.append(("post", type(mod).__name__))),
        from_module.register_module_forward_hook(
            lambda mod, a, k, o: seen.append(("kw", type(mod).__name__, sorted(k))), with_kwargs=True
        ),
        from_module.register_module_full_backward_hook(
            lambda mod, i, o: seen.append(("back", type(mod).__name__))
        ),
        from_module.register_module_full_backward_pre_hook(
            lambda mod, o: seen.append(("pre back", type(mod).__name__))
        ),
    ]
    m.register_forward_hook(lambda mod, a, o: seen.append("own"))
    x = ones(L, 2).requires_grad_()
    m(x).sum().backward()
    for handle in handles:
        handle.remove()
    m(x)
    return seen


@case
def registration_hooks(L: Any) -> Any:
    from_module, seen = L.nn.modules.module, []
    handles = [
        from_module.register_module_parameter_registration_hook(
            lambda m, n, p: seen.append(("p", n, p is None))
        ),
        from_module.register_module_buffer_registration_hook(
            lambda m, n, b: seen.append(("b", n, b is None))
        ),
        from_module.register_module_module_registration_hook(lambda m, n, s: seen.append(("m", n))),
    ]
    try:
        m = L.nn.Module()
        m.w = L.nn.Parameter(ones(L, 1))
        m.register_parameter("none", None)
        m.register_buffer("b", ones(L, 1))
        m.b = ones(L, 2)
        m.w = None
        m.child = L.nn.Identity()
        m.add_module("other", L.nn.Identity())
        m.c = L.nn.Buffer(ones(L, 1), persistent=False)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@case
def full_backward_hooks(L: Any) -> Any:
    class Two(L.nn.Module):
        def forward(self, x: Any, y: Any, z: Any = None) -> Any:
            return x * y, x + 1, 3 if z is None else z

    m, seen = Two(), []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append(["hook", *map(plain, gi), *map(plain, go)]))
    m.register_full_backward_pre_hook(lambda mod, go: seen.append(["pre", *map(plain, go)]))
    x, y = ones(L, 2).requires_grad_(), ones(L, 2) * 2
    results = kind(lambda: m(x, y))
    if isinstance(results, str):
        return [results]
    a, b = results[:2]
    a.sum().backward()
    return [seen, x.grad]


@case
def full_backward_hooks_change_gradients(L: Any) -> Any:
    m = L.nn.Linear(2, 2, bias=False)
    with L.no_grad():
        m.weight.copy_(ones(L, 2, 2))
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 10,))
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 3,))
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] + 1,), prepend=True)
    x = ones(L, 1, 2).requires_grad_()
    m(x).sum().backward()
    return [x.grad, m.weight.grad, m._is_full_backward_hook]


@case
def backward_hook_without_input_gradients(L: Any) -> Any:
    m, seen = L.nn.Linear(2, 1), []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append([list(gi), *map(plain, go)]))
    m(ones(L, 1, 2)).sum().backward()
    return seen


@case
def hooks_of_all_modules_come_first(L: Any) -> Any:
    m, seen = L.nn.Sigmoid(), []
    every = [
        L.nn.modules.module.register_module_forward_pre_hook(lambda mod, a: seen.append("all pre")),
        L.nn.modules.module.register_module_forward_hook(lambda mod, a, o: seen.append("all post")),
        L.nn.modules.module.register_module_full_backward_hook(
            lambda mod, gi, go: seen.append("all backward")
        ),
    ]
    m.register_forward_pre_hook(lambda mod, a: seen.append("pre"))
    m.register_forward_hook(lambda mod, a, o: seen.append("post"))
    m.register_full_backward_hook(lambda mod, gi, go: seen.append("backward"))
    m(ones(L, 2).requires_grad_()).sum().backward()
    refused = kind(lambda: L.nn.modules.module.register_module_backward_hook(print))
    for handle in every:
        handle.remove()
    return [seen, refused]


@case
def backward_hooks_keep_named_tuples_and_warn_of_dictionaries(L: Any) -> Any:
    Pair = collections.namedtuple("Pair", "first second")

    class Named(L.nn.Module):
        def forward(self, x: Any) -> Any:
            return Pair(x * 2, x * 3)

    class Dictionary(L.nn.Module):
        def forward(self, x: Any) -> Any:
            return {"x": x}

    found = []
    for made in (Named(), Dictionary()):
        made.register_full_backward_hook(lambda mod, gi, go: None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.append(type(made(ones(L, 2).requires_grad_())).__name__)
        found.append([w.category.__name__ for w in caught])
    return found


@case
def old_backward_hooks_warn_of_what_they_miss(L: Any) -> Any:
    class Several(L.nn.Module):
        def forward(self, x: Any, how: str) -> Any:
            return {"steps": x * 2 + 1, "pair": (x * 2, x * 3), "list": [x * 2], "one": x * 2}[how]

    found = []
    for how in ("steps", "pair", "list", "one"):
        made, x = Several(), ones(L, 2).requires_grad_()
        made.register_backward_hook(lambda mod, gi, go: None)
        made.forward = functools.partial(made.forward, how=how)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made(x)
        found.append([w.category.__name__ for w in caught])
    return found


@case
def backward_of_a_function_takes_zeros_for_what_has_no_gradient(L: Any) -> Any:
    seen = []

    class Same(L.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, n: Any) -> Any:
            ctx.mark_non_differentiable(y)
            return x.clone(), y.clone(), n.clone()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            seen.append([plain(g) for g in grads])
            return grads[0], None, None

    x = ones(L, 2).requires_grad_()
    Same.apply(x, ones(L, 3), L.arange(2))[0].sum().backward()
    return [seen, x.grad]


@case
def old_backward_hooks(L: Any) -> Any:
    m, seen = L.nn.Linear(2, 1), []
    m.register_backward_hook(lambda mod, gi, go: seen.append(len(go)))
    found = [m._is_full_backward_hook, kind(lambda: m.register_full_backward_hook(lambda *a: None))]
    other = L.nn.Linear(2, 1)
    other.register_full_backward_hook(lambda *a: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m(ones(L, 1, 2)).sum().backward()
    return [
        *found,
        other._is_full_backward_hook,
        kind(lambda: other.register_backward_hook(lambda *a: None)),
        seen,
    ]


@case
def hooks_after_copy_and_pickle(L: Any) -> Any:
    m = L.nn.Linear(1, 1)
    m.register_forward_hook(_print_nothing)
    twin, again = copy.deepcopy(m), pickle.loads(pickle.dumps(m))
    return [len(twin._forward_hooks), len(again._forward_hooks), sorted(vars(again)) == sorted(vars(m))]


def _print_nothing(module: Any, args: Any, output: Any) -> None:
    return None


# -- state


@case
def state_dict_hooks(L: Any) -> Any:
    m, seen = net(L), []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: seen.append(("pre", prefix, keep)))
    m[2].register_state_dict_post_hook(
        lambda mod, d, prefix, meta: seen.append(("post", prefix, len(d), meta))
    )
    m[0]._register_state_dict_hook(lambda mod, d, prefix, meta: d.update({prefix + "more": 1}))
    m[2].register_load_state_dict_pre_hook(
        lambda mod, d, p, *rest: seen.append(("load", p, len(d), len(rest)))
    )
    m.register_load_state_dict_post_hook(
        lambda mod, keys: seen.append((keys.missing_keys, keys.unexpected_keys))
    )
    state = m.state_dict(prefix="a.", keep_vars=True)
    seen.append([type(v).__name__ for v in state.values()])
    plain_state = m.state_dict()
    seen.append([list(plain_state), type(plain_state).__name__, dict(plain_state._metadata)])
    result = m.load_state_dict(plain_state, strict=False)
    return [seen, repr(result), m.state_dict(destination=OrderedDict(), prefix="x.").keys() >= {"x.0.weight"}]


@case
def post_hooks_must_return_nothing(L: Any) -> Any:
    m = L.nn.Linear(1, 1)
    m.register_state_dict_post_hook(lambda *a: {})
    first = kind(m.state_dict)
    n = L.nn.Linear(1, 1)
    n._register_state_dict_hook(lambda mod, d, p, meta: {"other": 1})
    k = L.nn.Linear(1, 1)
    k.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
    last = L.nn.Linear(1, 1)
    last.register_load_state_dict_post_hook(lambda mod, keys: 3)
    return [
        first,
        dict(n.state_dict()),
        repr(k.load_state_dict({"weight": ones(L, 1, 1)})),
        kind(lambda: last.load_state_dict({}, strict=False)),
    ]


@case
def loading_lists_every_key(L: Any) -> Any:
    m = net(L)
    state = m.state_dict()
    del state["0.weight"]
    state["new.key"] = ones(L, 1)
    state["2.1.bias"] = ones(L, 7)
    state["1.running_mean"] = "text"
    try:
        m.load_state_dict(state)
        return "nothing"
    except RuntimeError as error:
        text = str(error)
    return [word in text for word in ("0.weight", "new.key", "2.1.bias", "1.running_mean", "Sequential")]


@case
def loading_what_fits(L: Any) -> Any:
    m = net(L)
    found = m.load_state_dict({"0.bias": ones(L, 4), "x": ones(L, 1)}, strict=False)
    return [
        found.missing_keys,
        found.unexpected_keys,
        m[0].bias,
        kind(lambda: m.load_state_dict([("a", 1)])),
        kind(lambda: m.load_state_dict({"0.bias": ones(L, 5)}, strict=False)),
        repr(m.load_state_dict(m.state_dict())),
    ]


@case
def loading_by_assignment(L: Any) -> Any:
    m, x = L.nn.Linear(2, 1), ones(L, 1, 2).double()
    b = L.nn.Parameter(ones(L, 1), requires_grad=False)
    m.weight.requires_grad_(False)
    m.load_state_dict({"weight": x, "bias": b}, assign=True)
    with L.device("meta"):
        empty = L.nn.BatchNorm1d(2)
    state = L.nn.BatchNorm1d(2).state_dict()
    empty.load_state_dict(state, assign=True)
    return [
        str(m.weight.dtype).split(".")[-1],
        m.weight.data_ptr() == x.data_ptr(),
        m.weight.requires_grad,
        m.bias is b,
        m.bias.requires_grad,
        [v.device.type for v in empty.state_dict().values()],
        type(empty.weight).__name__,
    ]


@case
def loading_copies_dtype_and_scalars(L: Any) -> Any:
    m = L.nn.Linear(2, 1)
    m.load_state_dict({"weight": ones(L, 1, 2).double(), "bias": ones(L, 1)})
    p = L.nn.Module()
    p.s = L.nn.Parameter(L.tensor(1.0))
    first = kind(lambda: p.load_state_dict({"s": L.tensor([3.0])}))
    return [m.weight, str(first), p.s, kind(lambda: p.load_state_dict({"s": ones(L, 2)}))]


@case
def extra_state(L: Any) -> Any:
    class With(L.nn.Module):
        state = 1

        def get_extra_state(self) -> Any:
            return {"n": self.state}

        def set_extra_state(self, state: Any) -> None:
            self.state = state["n"] + 1

    m = L.nn.Sequential(With())
    d = m.state_dict()
    m.load_state_dict(d)
    bare = L.nn.Identity()
    return [
        list(d.items()),
        m[0].state,
        kind(lambda: m.load_state_dict({})),
        m.load_state_dict({}, strict=False).missing_keys,
        kind(lambda: bare.load_state_dict({"_extra_state": 1})),
        kind(bare.get_extra_state),
        kind(lambda: bare.set_extra_state(1)),
    ]


@case
def versions_of_batch_norm(L: Any) -> Any:
    m = L.nn.BatchNorm1d(2)
    state = OrderedDict((k, v) for k, v in m.state_dict().items() if k != "num_batches_tracked")
    old = kind(lambda: repr(m.load_state_dict(state)))
    with_metadata = OrderedDict(state)
    with_metadata._metadata = OrderedDict({"": {"version": 2}})  # type: ignore[attr-defined]
    return [old, kind(lambda: m.load_state_dict(with_metadata)), dict(m.state_dict()._metadata)]


@case
def buffers_that_are_not_kept(L: Any) -> Any:
    m = L.nn.Module()
    m.register_buffer("a", ones(L, 1))
    m.register_buffer("b", ones(L, 1), persistent=False)
    m.c = L.nn.Buffer(ones(L, 1), persistent=False)
    m.register_buffer("none", None)
    before = list(m.state_dict())
    m.register_buffer("b", ones(L, 2))
    m.none = ones(L, 3)
    return [
        before,
        list(m.state_dict()),
        sorted(m._non_persistent_buffers_set),
        [n for n, _ in m.named_buffers()],
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_protocol(name: str) -> None:
    check(CASES[name], name)
