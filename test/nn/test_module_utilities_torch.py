"""nn.utils, nn.init, parametrisations, pruning and packing beside torch's: see module_programs.py."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any

import pytest
from module_programs import Case, check, kind, net, ones

for _module in ("torch.nn.attention.bias", "torch.nn.utils.prune"):  # torch loads them only when asked
    importlib.import_module(_module)
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def waves(L: Any, *shape: int) -> Any:
    """Values of -1 to 1 without a pattern."""
    return L.sin(ones(L, *shape) ** 2 * 1.3)


@case
def orthogonal(L: Any) -> Any:
    def made(maps: Any, rows: int, columns: int, relative: bool) -> Any:
        L.manual_seed(0)
        m = L.nn.Linear(columns, rows)
        start = L.linalg.qr(waves(L, max(rows, columns), min(rows, columns)))[0]
        with L.no_grad():
            m.weight.copy_(start if rows >= columns else start.T)
        orthogonal = L.nn.utils.parametrizations.orthogonal
        m = orthogonal(m, orthogonal_map=maps, use_trivialization=relative)
        w = m.weight
        product = w.T @ w if rows >= columns else w @ w.T
        (w * waves(L, rows, columns)).sum().backward()
        right = bool((product - L.eye(min(rows, columns))).abs().max() < 1e-4)
        assign = kind(lambda: setattr(m, "weight", L.eye(rows, columns)))
        return [list(m.state_dict()), repr(m), right, w if relative else 0, assign]

    return [
        kind(lambda a=(maps, *form): made(*a))
        for maps in (None, "matrix_exp", "cayley", "householder", "nonsense")
        for form in ((4, 4, True), (5, 3, True), (3, 5, True), (4, 4, False))
    ] + [kind(lambda: L.nn.utils.parametrizations.orthogonal(L.nn.ReLU()))]


@case
def weight_norms(L: Any) -> Any:
    found: list[Any] = []
    for dim in (0, 1, None):
        for norm in (L.nn.utils.parametrizations.weight_norm, L.nn.utils.weight_norm):
            L.manual_seed(0)
            m = norm(L.nn.Linear(3, 4), dim=dim)
            m(waves(L, 2, 3)).sum().backward()
            found += [list(m.state_dict()), m.weight, [p.grad for p in m.parameters()], repr(m)]
        L.nn.utils.remove_weight_norm(m)
        found += [list(m.state_dict()), m.weight]
    return [
        *found,
        kind(lambda: L.nn.utils.weight_norm(L.nn.ReLU())),
        kind(lambda: L.nn.utils.remove_weight_norm(L.nn.Linear(1, 1))),
        kind(lambda: L.nn.utils.parametrizations.weight_norm(L.nn.ReLU())),
    ]


@case
def spectral_norms(L: Any) -> Any:
    found: list[Any] = []
    makes = (lambda: L.nn.Linear(3, 4), lambda: L.nn.Conv2d(2, 3, 2), lambda: L.nn.ConvTranspose2d(2, 3, 2))
    for make in makes:
        for norm in (L.nn.utils.spectral_norm, L.nn.utils.parametrizations.spectral_norm):
            L.manual_seed(0)
            m = norm(make(), n_power_iterations=3)
            x = waves(L, 2, 3) if m.weight.dim() == 2 else waves(L, 1, 2, 4, 4)
            y = m(x)
            y.sum().backward()
            found += [list(m.state_dict()), y, m.eval()(x), [p.grad for p in m.parameters()], repr(m)]
    m = L.nn.utils.spectral_norm(L.nn.Linear(2, 2))
    L.nn.utils.remove_spectral_norm(m)
    return [
        *found,
        list(m.state_dict()),
        kind(lambda: L.nn.utils.spectral_norm(L.nn.Linear(2, 2), n_power_iterations=0)),
        kind(lambda: L.nn.utils.remove_spectral_norm(L.nn.Linear(1, 1))),
    ]


@case
def parametrized(L: Any) -> Any:
    P = L.nn.utils.parametrize

    class Symmetric(L.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).T

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    class Exp(L.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.exp()

    class Row(L.nn.Module):
        def forward(self, x: Any) -> Any:
            return x[0]

    class Two(L.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return a @ b

        def right_inverse(self, x: Any) -> Any:
            return x, L.eye(x.shape[1])

    L.manual_seed(0)
    m = L.nn.Linear(3, 3)
    P.register_parametrization(m, "weight", Symmetric())
    found = [m.weight, list(m.state_dict()), repr(m), P.is_parametrized(m), P.is_parametrized(m, "bias")]
    found += [type(m).__name__, P.type_before_parametrizations(m).__name__]
    m.weight = L.eye(3)
    found.append(m.weight)
    P.register_parametrization(m, "weight", Exp())
    found += [m.weight, list(m.state_dict()), kind(lambda: setattr(m, "weight", L.eye(3)))]
    with P.cached():
        found.append(m.weight is m.weight)
    twin = copy.deepcopy(m)
    found += [m.weight is m.weight, twin.weight, type(twin).__name__, kind(lambda: pickle.dumps(m))]
    P.remove_parametrizations(m, "weight")
    found += [list(m.state_dict()), type(m).__name__, m.weight.requires_grad]
    k = L.nn.Linear(2, 2)
    P.register_parametrization(k, "weight", Two())
    found += [list(k.state_dict()), tuple(k.weight.shape), repr(k)]
    found.append(kind(lambda: P.remove_parametrizations(k, "weight", leave_parametrized=False)))
    L.manual_seed(0)
    a, b = L.nn.Linear(3, 3), L.nn.Linear(3, 3)
    P.register_parametrization(a, "weight", Symmetric())
    P.transfer_parametrizations_and_params(a, b)
    found += [list(b.state_dict()), b.weight, type(b).__name__]
    c = L.nn.BatchNorm1d(2)
    P.register_parametrization(c, "running_mean", Exp())
    found += [list(c.state_dict()), [name for name, _ in c.named_buffers()]]
    for bad in (
        lambda: P.register_parametrization(L.nn.Linear(2, 2), "weight", Row()),
        lambda: P.register_parametrization(L.nn.Linear(2, 2), "nope", Exp()),
        lambda: P.remove_parametrizations(L.nn.Linear(1, 1), "weight"),
        lambda: P.register_parametrization(L.nn.Linear(2, 2), "weight", Row(), unsafe=True).bias,
    ):
        found.append(kind(lambda f=bad: str(type(f()).__name__)))
    return found


@case
def prune(L: Any) -> Any:
    Q = L.nn.utils.prune

    def layer() -> Any:
        m = L.nn.Linear(4, 3)
        with L.no_grad():
            m.weight.copy_(waves(L, 3, 4))
            m.bias.copy_(waves(L, 3))
        return m

    def random(m: Any) -> Any:
        L.manual_seed(0)
        return Q.random_unstructured(m, "weight", 0.5)

    found: list[Any] = []
    for how in (
        lambda m: Q.l1_unstructured(m, "weight", 0.3),
        lambda m: Q.l1_unstructured(m, "weight", 4),
        lambda m: Q.ln_structured(m, "weight", 0.5, 2, 0),
        lambda m: Q.ln_structured(m, "weight", 1, float("inf"), 1),
        lambda m: Q.identity(m, "weight"),
        lambda m: Q.custom_from_mask(m, "bias", L.tensor([1, 0, 1])),
        lambda m: Q.l1_unstructured(Q.l1_unstructured(m, "weight", 2), "weight", 0.5),
        random,
    ):
        m = layer()
        how(m)
        m(waves(L, 1, 4)).sum().backward()
        found += [
            list(m.state_dict()),
            m.weight,
            m.bias,
            [p.grad for p in m.parameters()],
            Q.is_pruned(m),
            repr(m),
        ]
    m, a, b = layer(), layer(), layer()
    Q.l1_unstructured(m, "weight", 2)
    Q.remove(m, "weight")
    Q.global_unstructured([(a, "weight"), (b, "bias")], Q.L1Unstructured, amount=5)
    bad = [
        lambda: Q.l1_unstructured(layer(), "weight", 1.5),
        lambda: Q.l1_unstructured(layer(), "weight", 100),
        lambda: Q.l1_unstructured(layer(), "weight", -1),
        lambda: Q.remove(layer(), "weight"),
        lambda: Q.l1_unstructured(layer(), "no", 1),
        lambda: Q.l1_unstructured(layer(), "weight", "a"),
        lambda: Q.ln_structured(layer(), "weight", 1, 2, 9),
        lambda: Q.ln_structured(layer(), "bias", 1, 2, 0),
        lambda: Q.random_structured(layer(), "bias", 1, 0),
        lambda: Q.custom_from_mask(layer(), "weight", ones(L, 4)),
    ]
    return [*found, list(m.state_dict()), Q.is_pruned(m), a.weight, b.bias, [kind(f) for f in bad]]


@case
def fusion(L: Any) -> Any:
    F, found = L.nn.utils.fusion, []
    for layer, norm, x in (
        (L.nn.Conv2d(2, 3, 2), L.nn.BatchNorm2d(3), waves(L, 1, 2, 4, 4)),
        (L.nn.ConvTranspose1d(2, 3, 2, bias=False), L.nn.BatchNorm1d(3), waves(L, 1, 2, 4)),
    ):
        with L.no_grad():
            for p in layer.parameters():
                p.copy_(waves(L, *p.shape))
            norm.running_mean.copy_(waves(L, 3))
            norm.running_var.copy_(waves(L, 3) + 2)
            norm.weight.copy_(waves(L, 3) * 2)
        m = F.fuse_conv_bn_eval(layer.eval(), norm.eval(), transpose=layer.transposed)
        found += [m(x), repr(m), bool((m(x) - norm(layer(x))).abs().max() < 1e-4)]

    def untracked(norm: Any, features: int) -> Any:
        return norm(features, track_running_stats=False).eval()

    linear = L.nn.Linear(2, 3).eval()
    with L.no_grad():
        linear.weight.copy_(waves(L, 3, 2))
        linear.bias.copy_(waves(L, 3))
    return [
        *found,
        F.fuse_linear_bn_eval(linear, L.nn.BatchNorm1d(3).eval())(waves(L, 2, 2)),
        kind(lambda: F.fuse_conv_bn_eval(L.nn.Conv2d(1, 1, 1), L.nn.BatchNorm2d(1))),
        kind(lambda: F.fuse_linear_bn_eval(linear, L.nn.BatchNorm1d(4).eval())),
        kind(lambda: F.fuse_conv_bn_eval(L.nn.Conv2d(1, 1, 1).eval(), untracked(L.nn.BatchNorm2d, 1))),
        kind(lambda: F.fuse_linear_bn_eval(linear, untracked(L.nn.BatchNorm1d, 3))),
    ]


@case
def clipping(L: Any) -> Any:
    U, found = L.nn.utils, []

    def parameters(factor: float = 3.0) -> Any:
        made = [L.nn.Parameter(ones(L, n + 1)) for n in range(4)]
        for n, p in enumerate(made[:3]):
            p.grad = waves(L, n + 1) * factor
        return made

    for norm in (2.0, 1.0, float("inf"), 0.5):
        p = parameters()
        found += [U.clip_grad_norm_(p, 1.0, norm_type=norm), [q.grad for q in p]]
    p = parameters()
    found += [U.get_total_norm([q.grad for q in p[:3]]), U.clip_grads_with_norm_(p, 0.5, L.tensor(2.0))]
    found += [
        [q.grad for q in p],
        U.clip_grad_value_(p, 0.1),
        [q.grad for q in p],
        U.clip_grad_norm_([], 1.0),
    ]
    found += [U.clip_grad_norm_(p[0], 1.0), U.clip_grad_norm_(iter(p), 1.0, foreach=False)]
    found.append(kind(lambda: U.clip_grad_norm_(parameters(float("nan")), 1.0, error_if_nonfinite=True)))
    flat = U.parameters_to_vector(p)
    U.vector_to_parameters(flat * 2, p)
    return [*found, flat, [q.detach() for q in p], kind(lambda: U.vector_to_parameters(3, p))]


@case
def packing(L: Any) -> Any:
    R = L.nn.utils.rnn
    items = [ones(L, 3, 2), ones(L, 1, 2) * 2, ones(L, 2, 2) * 3]
    forms = [(first, side) for first in (False, True) for side in ("right", "left")]
    padded = [R.pad_sequence(items, batch_first=b, padding_value=-1, padding_side=s) for b, s in forms]
    p = R.pack_sequence(items, enforce_sorted=False)
    bad = [
        lambda: R.pack_sequence(items),
        lambda: R.pack_padded_sequence(ones(L, 3, 2, 1), [3, 0]),
        lambda: R.pack_padded_sequence(ones(L, 3, 2, 1), [3]),
        lambda: R.pad_packed_sequence(p, total_length=1),
        lambda: R.pad_sequence([]),
        lambda: R.pad_sequence(items, padding_side="x"),
        lambda: R.pack_sequence([]),
        lambda: R.PackedSequence(ones(L, 2)),
    ]
    return [
        padded,
        R.unpad_sequence(R.pad_sequence(items), L.tensor([3, 1, 2])),
        list(p),
        R.unpack_sequence(p),
        [p.is_cuda, p.is_pinned()],
        [list(q) for q in (p.to(L.float64), p.double(), p.cpu(), p.half(), p.int(), p.byte())],
        R.pad_packed_sequence(p, batch_first=True, padding_value=9, total_length=5),
        [kind(lambda f=f: str(type(f()).__name__)) for f in bad],
        R.invert_permutation(L.tensor([2, 0, 1])),
    ]


@case
def inits(L: Any) -> Any:
    init, found = L.nn.init, []
    calls: list[Any] = [
        *((name,) for name in ("uniform_", "normal_", "trunc_normal_", "ones_", "zeros_", "eye_", "dirac_")),
        *((name,) for name in ("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_")),
        ("orthogonal_",), ("sparse_", 0.5), ("constant_", 0.3),
        ("kaiming_uniform_", 0.1, "fan_out", "relu"), ("trunc_normal_", 0.0, 1.0, -0.1, 0.2),
    ]  # fmt: skip

    def drawn(name: str, args: Any, shape: Any) -> Any:
        L.manual_seed(3)
        t = L.empty(shape)
        return [getattr(init, name)(t, *args) is t, t]

    for name, *args in calls:
        for shape in ((4, 3), (3,), (3, 3, 2), (0, 3)):
            found.append(kind(lambda a=(name, args, shape): drawn(*a)))
    for gain in (
        "linear",
        "conv2d",
        "sigmoid",
        "tanh",
        "relu",
        "leaky_relu",
        "selu",
        "x",
        "conv_transpose2d",
    ):
        found.append(kind(lambda g=gain: init.calculate_gain(g)))
    return [
        *found,
        init.calculate_gain("leaky_relu", 0.3),
        kind(lambda: init.calculate_gain("leaky_relu", "a")),
        kind(lambda: init.kaiming_uniform_(ones(L, 2, 2), mode="x")),
        kind(lambda: init.eye_(ones(L, 2))),
        kind(lambda: init.dirac_(ones(L, 3, 3, 2), groups=2)),
    ]


@case
def stateless(L: Any) -> Any:
    m, x, call = net(L).eval(), ones(L, 2, 3), L.func.functional_call
    state = {k: ones(L, *v.shape) for k, v in m.state_dict().items() if v.is_floating_point()}
    w = {"0.weight": ones(L, 4, 3)}
    return [
        call(m, state, (x,)),
        call(m, w, x),
        kind(lambda: call(m, {"no": ones(L, 1)}, (x,), strict=True)),
        kind(lambda: call(m, {"no": ones(L, 1)}, (x,))),
        call(m, (w, {"0.bias": ones(L, 4)}), (x,)),
        kind(lambda: call(m, (w, w), (x,))),
        m(x),
        list(L.func.stack_module_state([net(L), net(L)])[0]),
    ]


@case
def losses_with_old_arguments_and_weights(L: Any) -> Any:
    F, x, y, w = L.nn.functional, waves(L, 3, 4), waves(L, 4, 3).T.sigmoid(), waves(L, 3, 4) + 2
    index, found = L.tensor([0, 2, 1]), []
    for old in ({"size_average": False}, {"reduce": False}, {"size_average": True}, {"reduction": "sum"}, {}):
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "binary_cross_entropy_with_logits"):
            found.append(getattr(F, name)(x, y, **old))
        found += [F.binary_cross_entropy(y, y, **old), F.cross_entropy(x, index, **old)]
        found += [F.nll_loss(x, index, **old), F.multilabel_soft_margin_loss(x, y, **old)]
        found += [F.soft_margin_loss(x, y, **old), F.poisson_nll_loss(x, y, **old)]
        found += [F.hinge_embedding_loss(x, y, **old), F.margin_ranking_loss(x, y, y, **old)]
        found += [F.multi_margin_loss(x, index, **old), F.triplet_margin_loss(x, y, y * 2, **old)]
    for reduction in ("none", "sum", "mean", "x"):
        for name in ("mse_loss", "l1_loss", "huber_loss"):
            found.append(kind(lambda n=name, r=reduction: getattr(F, n)(x, y, reduction=r, weight=w)))
    return [*found, kind(lambda: F.mse_loss(x, y, weight=w[0]))]


@case
def attention_bias(L: Any) -> Any:
    B, found = L.nn.attention.bias, []
    q, k = waves(L, 1, 2, 4, 8), waves(L, 1, 2, 6, 8)
    attend = L.nn.functional.scaled_dot_product_attention
    for b in (B.causal_upper_left(4, 6), B.causal_lower_right(4, 6), B.causal_lower_right(4, 4)):
        found += [repr(b), b.variant.name, b.seq_len_q, b.seq_len_kv]
        found += [attend(q, k[:, :, : b.seq_len_kv], k[:, :, : b.seq_len_kv], attn_mask=b)]
    return [*found, kind(lambda: B.causal_upper_left(4))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_utilities(name: str) -> None:
    check(CASES[name], name)
