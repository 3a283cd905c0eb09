"""Modules and functions of mica.nn with torch's weights against torch: results and gradients.

CASES is the data: a module (or a function of nn.functional) by name, what makes it, and
its inputs; both libraries get equal weights and inputs. Recurrent networks, attention
and transformers are tested here, whose operators take lists of weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from both import difference

import mica
from mica.conformance.operators import make
from mica.conformance.samples import T


def _tensor(library: Any, shape: tuple[int, ...], seed: int, grad: bool = True) -> Any:
    made = make(library, T(shape, -1, 1), "float64", "contiguous", seed)
    return made.requires_grad_(grad)


def _module(name: str, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Makes the module in a library, with the same weights in both."""

    def build(library: Any) -> Any:
        module = getattr(library.nn, name)(*args, **kwargs).to(library.float64)
        with library.no_grad():
            for k, (_, weight) in enumerate(sorted(module.named_parameters())):
                weight.copy_(_tensor(library, tuple(weight.shape), 100 + k, False) * 0.5)
        return module.eval()

    return build


def _flat(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [y for part in x for y in _flat(part)]
    return [x] if isinstance(x, (torch.Tensor, mica.Tensor)) else []


def _compare(build: Callable[[Any], Any], call: Callable[[Any, Any], Any]) -> None:
    """Results of `call(library, module)`, and gradients of inputs and weights."""
    found = {}
    for library in (mica, torch):
        module = build(library)
        inputs, results = call(library, module)
        results = [r for r in _flat(results) if r.is_floating_point()]
        loss = sum((r * r).sum() + r.sum() for r in results)
        loss.backward()
        weights = (
            [w for _, w in sorted(module.named_parameters())] if hasattr(module, "named_parameters") else []
        )
        leaves = [x for x in [*_flat(inputs), *weights] if x.requires_grad]
        found[library] = (results, [x.grad for x in leaves])
    for what, ours, theirs in zip(("result", "gradient"), found[mica], found[torch]):
        assert len(ours) == len(theirs)
        for k, (got, expected) in enumerate(zip(ours, theirs)):
            if expected is None:
                assert got is None or not bool((got != 0).any()), f"{what} {k}"
                continue
            assert not difference(got, expected, loosen=10), f"{what} {k}: {difference(got, expected)}"


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize(
    ("layers", "both_ways", "bias", "batch_first"),
    [(1, False, True, False), (2, True, True, True), (2, True, False, False), (1, True, True, False)],
)
@pytest.mark.parametrize("given", [False, True])
def test_recurrent_networks(
    name: str, layers: int, both_ways: bool, bias: bool, batch_first: bool, given: bool
) -> None:
    count = layers * (2 if both_ways else 1)

    def call(library: Any, module: Any) -> Any:
        x = _tensor(library, (4, 5, 3), 1)
        states = [_tensor(library, (count, 4 if batch_first else 5, 6), 2 + k) for k in range(2)]
        hx = None if not given else tuple(states) if name == "LSTM" else states[0]
        return [x, *(states if given else [])], module(x, hx)

    _compare(_module(name, 3, 6, layers, bias=bias, bidirectional=both_ways, batch_first=batch_first), call)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("nested", [True, False])
def test_packed_sequences(name: str, nested: bool) -> None:
    lengths = [5, 3, 3, 1] if nested else [3, 5, 1, 4]

    def call(library: Any, module: Any) -> Any:
        utils = library.nn.utils.rnn
        x = _tensor(library, (5, 4, 3), 1)
        packed = utils.pack_padded_sequence(x, library.tensor(lengths), enforce_sorted=nested)
        output, last = module(packed)
        padded, found = utils.pad_packed_sequence(output)
        assert found.tolist() == lengths
        return [x], (padded, last)

    _compare(_module(name, 3, 6, 2, bidirectional=True), call)


def test_recurrent_network_with_relu() -> None:
    def call(library: Any, module: Any) -> Any:
        x = _tensor(library, (4, 5, 3), 1)
        return [x], module(x)

    _compare(_module("RNN", 3, 6, nonlinearity="relu"), call)


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_projections(both_ways: bool, bias: bool) -> None:
    """An LSTM whose hidden state is smaller than its cell state; padded and packed."""

    def call(library: Any, module: Any) -> Any:
        utils = library.nn.utils.rnn
        x = _tensor(library, (5, 4, 3), 1)
        packed = utils.pack_padded_sequence(x, library.tensor([5, 3, 3, 1]))
        output, last = module(packed)
        return [x], (*module(x), utils.pad_packed_sequence(output)[0], last)

    _compare(_module("LSTM", 3, 6, 2, bias=bias, bidirectional=both_ways, proj_size=2), call)


@pytest.mark.parametrize(
    ("name", "options"),
    [("RNN", {}), ("RNN", {"nonlinearity": "relu"}), ("GRU", {}), ("LSTM", {}), ("LSTM", {"proj_size": 2})],
)
@pytest.mark.parametrize("lengths", [[3, 3], [3, 1]])
def test_second_gradients(name: str, options: dict[str, Any], lengths: list[int]) -> None:
    """Of padded and packed sequences, in both directions, for inputs, first states and weights."""

    def call(library: Any, module: Any) -> Any:
        utils = library.nn.utils.rnn
        x = _tensor(library, (3, 2, 3), 1)
        states = [_tensor(library, (2, 2, n), 2 + n) for n in (options.get("proj_size", 4), 4)]
        packed = utils.pack_padded_sequence(x, library.tensor(lengths))
        output, last = module(packed, tuple(states) if name == "LSTM" else states[0])
        loss = sum((r * r).sum() for r in _flat([output.data, last]))
        leaves = [x, *states[: len(_flat([last]))], *module.parameters()]
        return [x, *states], library.autograd.grad(loss, leaves, create_graph=True)

    _compare(_module(name, 3, 4, bidirectional=True, **options), call)


@pytest.mark.parametrize("name", ["RNNCell", "GRUCell", "LSTMCell"])
@pytest.mark.parametrize("batched", [True, False])
def test_recurrent_cells(name: str, batched: bool) -> None:
    def call(library: Any, module: Any) -> Any:
        x = _tensor(library, (5, 3) if batched else (3,), 1)
        return [x], module(x)

    _compare(_module(name, 3, 6), call)


_ATTENTION = [
    {},
    {"need_weights": False},
    {"average_attn_weights": False},
    {"mask": "float"},
    {"mask": "bool", "need_weights": False},
    {"mask": "bool", "padding": True},
    {"padding": True, "need_weights": False},
]


@pytest.mark.parametrize("how", range(len(_ATTENTION)))
@pytest.mark.parametrize(
    "options",
    [{}, {"batch_first": True}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 5, "vdim": 6}],
)
def test_multihead_attention(how: int, options: dict[str, Any]) -> None:
    case = dict(_ATTENTION[how])
    first = options.get("batch_first", False)

    def call(library: Any, module: Any) -> Any:
        def made(length: int, width: int, seed: int) -> Any:
            return _tensor(library, (2, length, width) if first else (length, 2, width), seed)

        q = made(4, 8, 1)
        k, v = made(7, options.get("kdim", 8), 2), made(7, options.get("vdim", 8), 3)
        kwargs = {name: value for name, value in case.items() if name not in ("mask", "padding")}
        if "mask" in case:
            mask = library.ones(4, 7).triu(2) > 0
            kwargs["attn_mask"] = mask if case["mask"] == "bool" else mask.to(library.float64) * -3
        if "padding" in case:
            kwargs["key_padding_mask"] = library.tensor([[False] * 7, [False] * 5 + [True] * 2])
        return [q, k, v], module(q, k, v, **kwargs)

    _compare(_module("MultiheadAttention", 8, 2, **options), call)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_transformer(norm_first: bool, causal: bool) -> None:
    def call(library: Any, module: Any) -> Any:
        src, tgt = _tensor(library, (5, 2, 8), 1), _tensor(library, (4, 2, 8), 2)
        mask = module.generate_square_subsequent_mask(4).to(library.float64) if causal else None
        return [src, tgt], module(src, tgt, tgt_mask=mask)

    _compare(
        _module("Transformer", 8, 2, 2, 2, 16, dropout=0.0, activation="gelu", norm_first=norm_first), call
    )


_SHAPES = [((2, 3, 5, 4), (2, 3, 6, 4), 3), ((1, 2, 130, 8), (1, 2, 300, 8), 8), ((3, 5, 4), (3, 6, 4), 4)]


@pytest.mark.parametrize(
    ("shapes", "mask"), list(itertools.product(range(3), ["none", "causal", "bool", "float", "broadcast"]))
)
def test_attention(shapes: int, mask: str) -> None:
    query, key, width = _SHAPES[shapes]

    def call(library: Any, _: Any) -> Any:
        q, k = _tensor(library, query, 1), _tensor(library, key, 2)
        v = _tensor(library, (*key[:-1], width), 3)
        rows, columns = query[-2], key[-2]
        given = None
        if mask == "bool":  # its second row sees nothing
            given = library.ones(rows, columns).tril(1) > 0
            given[1] = False
        elif mask == "float":
            given = _tensor(library, (rows, columns), 4)
        elif mask == "broadcast":
            given = _tensor(library, (1, columns), 4, False)
        f = library.nn.functional.scaled_dot_product_attention
        return [q, k, v, given], f(q, k, v, given, is_causal=mask == "causal")

    _compare(lambda _: object(), call)


def test_attention_of_groups() -> None:
    def call(library: Any, _: Any) -> Any:
        q, k, v = (_tensor(library, (2, heads, 9, 4), heads) for heads in (6, 2, 2))
        f = library.nn.functional.scaled_dot_product_attention
        return [q, k, v], f(q, k, v, is_causal=True, enable_gqa=True, scale=0.3)

    _compare(lambda _: object(), call)


def test_attention_in_low_precision() -> None:
    for dtype in ("float32", "bfloat16", "float16"):
        results = []
        for library in (mica, torch):
            q, k, v = (
                _tensor(library, (2, 3, 200, 16), s, False).to(getattr(library, dtype)) for s in (1, 2, 3)
            )
            results.append(library.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        assert not difference(*results, loosen=4)


def test_attention_never_holds_the_scores() -> None:
    """4 096 rows and columns of 8 heads would be 512 MB of scores."""
    q = mica.rand(1, 8, 4096, 16)
    mica.empty_cache("cpu")
    mica.reset_peak_memory_stats("cpu")
    before = mica.memory_allocated("cpu")
    mica.nn.functional.scaled_dot_product_attention(q, q, q)
    assert mica.max_memory_allocated("cpu") - before < 32 << 20


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 1])
def test_embedding_bag(mode: str, padding_idx: int | None) -> None:
    def call(library: Any, _: Any) -> Any:
        weight = _tensor(library, (6, 3), 1)
        index = library.tensor([1, 2, 4, 5, 4, 1, 0, 3])
        offsets = library.tensor([0, 3, 3, 6])
        f = library.nn.functional.embedding_bag
        kwargs = {"per_sample_weights": _tensor(library, (8,), 2)} if mode == "sum" else {}
        found = f(index, weight, offsets, mode=mode, padding_idx=padding_idx, **kwargs)
        return [weight], (found, f(index.reshape(2, 4), weight, mode=mode))

    _compare(lambda _: object(), call)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("form", ["padded", "joined", "tensors", "impossible", "single"])
def test_ctc_loss(reduction: str, form: str) -> None:
    targets = [[1, 2, 2], [3, 1, 0]]
    targets_lengths = [3, 2]

    def call(library: Any, _: Any) -> Any:
        x = _tensor(library, (6, 4) if form == "single" else (6, 2, 4), 1)
        steps = [6, 2 if form == "impossible" else 5]
        given: Any = library.tensor(targets)
        lengths: Any = (steps, targets_lengths)
        if form == "joined":
            given = library.tensor([1, 2, 2, 3, 1])
        elif form == "tensors":
            lengths = tuple(library.tensor(n) for n in lengths)
        elif form == "single":
            given, lengths = library.tensor(targets[0]), ([6], [3])
        f = library.nn.functional.ctc_loss
        zero = form == "impossible"
        return [x], f(x.log_softmax(-1), given, *lengths, reduction=reduction, zero_infinity=zero)

    _compare(lambda _: object(), call)


_LOSSES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "PoissonNLLLoss": ({"full": True}, ["x", "p"]),
    "GaussianNLLLoss": ({"full": True}, ["x", "x", "p"]),
    "SoftMarginLoss": ({}, ["x", "signs"]),
    "MultiLabelMarginLoss": ({}, ["x", "classes"]),
    "MultiLabelSoftMarginLoss": ({}, ["x", "p"]),
    "MultiMarginLoss": ({"p": 2, "margin": 0.5}, ["x", "class"]),
    "HingeEmbeddingLoss": ({"margin": 0.5}, ["x", "signs"]),
    "MarginRankingLoss": ({"margin": 0.5}, ["x", "x", "signs"]),
    "CosineEmbeddingLoss": ({"margin": 0.2}, ["x", "x", "sign"]),
    "TripletMarginLoss": ({"swap": True}, ["x", "x", "x"]),
    "TripletMarginWithDistanceLoss": ({"margin": 0.7}, ["x", "x", "x"]),
}


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", _LOSSES)
def test_losses(name: str, reduction: str) -> None:
    options, kinds = _LOSSES[name]

    def call(library: Any, module: Any) -> Any:
        made = {
            "p": lambda k: _tensor(library, (3, 4), k, False) + 1.5,
            "signs": lambda _: library.tensor([[1, -1, 1, 1], [-1, -1, 1, -1], [1, 1, -1, 1]]),
            "sign": lambda _: library.tensor([1, -1, 1]),
            "class": lambda _: library.tensor([1, 3, 0]),
            "classes": lambda _: library.tensor([[1, 3, -1, 0], [2, -1, 0, 0], [0, 1, 2, 3]]),
        }
        inputs = [made.get(kind, lambda k: _tensor(library, (3, 4), k))(k) for k, kind in enumerate(kinds)]
        return inputs, module(*inputs)

    _compare(_module(name, reduction=reduction, **options), call)


_LAYERS: dict[str, tuple[tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = {
    "Upsample": ((), {"scale_factor": 1.5, "mode": "bilinear"}, (2, 3, 4, 5)),
    "UpsamplingNearest2d": ((), {"size": 7}, (2, 3, 4, 5)),
    "UpsamplingBilinear2d": ((), {"scale_factor": 2}, (2, 3, 4, 5)),
    "MaxPool3d": ((2,), {"stride": 1}, (2, 3, 4, 5, 4)),
    "AvgPool3d": ((2,), {"padding": 1}, (2, 3, 4, 5, 4)),
    "AdaptiveAvgPool1d": ((3,), {}, (2, 3, 7)),
    "AdaptiveAvgPool3d": (((2, None, 3),), {}, (2, 3, 4, 5, 4)),
    "AdaptiveMaxPool1d": ((3,), {}, (2, 3, 7)),
    "AdaptiveMaxPool2d": (((2, None),), {}, (2, 3, 5, 4)),
    "AdaptiveMaxPool3d": ((2,), {"return_indices": True}, (2, 3, 4, 5, 4)),
    "LPPool1d": ((2, 3), {}, (2, 3, 7)),
    "LPPool2d": ((3, 2), {"stride": 1}, (2, 3, 5, 4)),
    "LPPool3d": ((2, 2), {}, (2, 3, 4, 5, 4)),
    "LocalResponseNorm": ((3,), {"alpha": 0.5}, (2, 5, 4, 3)),
    "PixelUnshuffle": ((2,), {}, (2, 3, 4, 6)),
    "ChannelShuffle": ((3,), {}, (2, 6, 4)),
    "RReLU": ((0.1, 0.4), {}, (2, 3)),
}


@pytest.mark.parametrize("name", _LAYERS)
def test_layers(name: str) -> None:
    args, options, shape = _LAYERS[name]

    def call(library: Any, module: Any) -> Any:
        x = _tensor(library, shape, 1)
        return [x], module(x)

    _compare(_module(name, *args, **options), call)


def test_unpooling() -> None:
    for dims in (1, 2, 3):

        def call(library: Any, pool: Any, dims: int = dims) -> Any:
            x = _tensor(library, (2, 3, *[6] * dims), 1)
            found, places = pool(x)
            return [x], getattr(library.nn, f"MaxUnpool{dims}d")(2)(found, places)

        _compare(_module(f"MaxPool{dims}d", 2, return_indices=True), call)


def test_bilinear_and_bags() -> None:
    def two(library: Any, module: Any) -> Any:
        x, y = _tensor(library, (4, 3), 1), _tensor(library, (4, 5), 2)
        return [x, y], module(x, y)

    _compare(_module("Bilinear", 3, 5, 2), two)

    def bags(library: Any, module: Any) -> Any:
        return [], module(library.tensor([[1, 2], [0, 3]]))

    _compare(_module("EmbeddingBag", 5, 3, mode="sum"), bags)
