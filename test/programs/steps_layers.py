"""Steps of networks: convolutions, pools, normalisations, losses, attention, modules and their optimizers."""

from __future__ import annotations

import math

import torch
from draw import Draw, Skip, step, tensor_dtype

F = "torch.nn.functional"


def pixels(d: Draw, rank: int) -> tuple[str, list[int]]:
    """A batch with channels of `rank` spatial dims: a named tensor in another shape, or a new one."""
    x = d.real()
    t = d.value(x)
    count = t.numel()
    if count >= 8 and d.chance(0.5):
        sizes = factors(d, count, rank + 2)
        return f"{x}.reshape({tuple(sizes)})", sizes
    sizes = [d.pick(1, 2, 3), d.pick(1, 2, 4)] + [d.pick(3, 4, 5, 7, 9) for _ in range(rank)]
    if d.chance(0.1):
        sizes = [d.pick(8, 33), 8, *([24, 33, 17][:rank])]
        if rank == 3:
            sizes = [2, 4, 9, 17, 33]
    return d.make(tuple(sizes), d.float_dtype(), d.flag()), sizes


def factors(d: Draw, count: int, parts: int) -> list[int]:
    """Sizes with a product of `count`."""
    sizes = []
    for _ in range(parts - 1):
        options = [k for k in (1, 2, 3, 4, 5, 7, 8, 16) if count % k == 0]
        sizes.append(d.rng.choice(options))
        count //= sizes[-1]
    return [*sizes, count]


@step(2.5)
def convolved(d: Draw) -> None:
    rank = d.pick(1, 2, 2, 3)
    x, sizes = pixels(d, rank)
    dtype = tensor_dtype(d.value(x.split(".")[0]))
    groups = d.pick(1, 1, sizes[1])
    kernel = [min(d.pick(1, 2, 3), n) for n in sizes[2:]]
    if 0 in sizes or math.prod(sizes) > 60_000 or sizes[1] > 16:
        raise Skip
    turned = d.chance(0.3)
    outputs = d.pick(1, 2) * groups
    shape = (sizes[1], outputs // groups, *kernel) if turned else (outputs, sizes[1] // groups, *kernel)
    weight = d.make(shape, dtype, d.flag())
    bias = d.make((outputs,), dtype, d.flag()) if d.flag() else "None"
    options = f"stride={d.pick(1, 2)}, padding={d.pick(0, 1) if min(kernel) > 1 else 0}, groups={groups}"
    if turned:
        d.let(f"{F}.conv_transpose{rank}d({x}, {weight}, {bias}, {options})")
    else:
        d.let(
            f"{F}.conv{rank}d({x}, {weight}, {bias}, {options}, dilation={d.pick(1, 1, 2) if max(kernel) == 1 else 1})"
        )


@step(2)
def pooled(d: Draw) -> None:
    rank = d.pick(1, 2, 2, 3)
    x, sizes = pixels(d, rank)
    if 0 in sizes or min(sizes[2:]) < 2:
        raise Skip
    d.one_of(
        f"{F}.max_pool{rank}d({x}, 2, stride={d.pick(1, 2)}, ceil_mode={d.flag()})",
        f"{F}.avg_pool{rank}d({x}, 2, stride={d.pick(1, 2)}, padding={d.pick(0, 1)}, count_include_pad={d.flag()})",
        f"{F}.adaptive_avg_pool{rank}d({x}, {d.pick(1, 2, 3)})",
        f"{F}.adaptive_max_pool{rank}d({x}, {d.pick(1, 2)})",
        f"{F}.max_pool{rank}d({x}, 2, return_indices=True)[0]",
        f"{F}.lp_pool{min(rank, 2)}d({x}{'' if rank < 3 else '[:, 0]'}, 2, 2)",
        f"{F}.max_pool{rank}d({x}, 2, stride=1, padding=1)",
    )


@step(1.5)
def resampled(d: Draw) -> None:
    rank = d.pick(1, 2, 2, 3)
    x, sizes = pixels(d, rank)
    if 0 in sizes or min(sizes[2:]) < 2 or math.prod(sizes) > 20_000:
        raise Skip
    linear = {1: "linear", 2: "bilinear", 3: "trilinear"}[rank]
    padding = (1, 1) * rank
    options = [
        f"{F}.interpolate({x}, scale_factor={d.pick(2, 1.5)}, mode='nearest')",
        f"{F}.interpolate({x}, size={d.pick(2, 5)}, mode='{linear}', align_corners={d.flag()})",
        f"{F}.pad({x}, {padding}, mode='{d.pick('reflect', 'replicate', 'circular')}')",
        f"{F}.pad({x}, {d.pick((1, 2), (-1, 1), (0, 1, 1, 0))}, value=0.5)",
    ]
    if rank == 2:
        options += [
            f"{F}.unfold({x}, 2, padding={d.pick(0, 1)}, stride={d.pick(1, 2)}).clone()",
            f"{F}.pixel_shuffle({x}.repeat(1, 4, 1, 1), 2)",
            f"{F}.interpolate({x}, scale_factor=2, mode='bicubic')",
            # In half types the grid's places are rounded, so that neighbours change.
            f"{F}.grid_sample({x}, torch.linspace(-1, 1, 24, dtype={x.split('.')[0]}.dtype).reshape(1, 3, 4, 2).expand({sizes[0]}, 3, 4, 2), align_corners={d.flag()})"
            if tensor_dtype(d.value(x.split(".")[0])) in ("float32", "float64")
            else f"{F}.unfold({x}, 2)",
            f"{F}.fold({F}.unfold({x}, 2), {tuple(sizes[2:])}, 2)",
        ]
    d.let(d.rng.choice(options))


def squares_overflow(t: torch.Tensor) -> bool:
    """Whether a variance is infinite of numbers that are not: torch's moments are NaN there, Mica's result is 0."""
    numbers = t.detach()[t.detach().isfinite()].double()
    return float(numbers.square().sum()) > torch.finfo(torch.promote_types(t.dtype, torch.float32)).max


@step(2.5)
def normalised(d: Draw) -> None:
    x, sizes = pixels(d, d.pick(1, 2))
    dtype = tensor_dtype(d.value(x.split(".")[0]))
    if 0 in sizes or sizes[1] > 2000 or sizes[-1] > 5000 or squares_overflow(d.value(x.split(".")[0])):
        raise Skip
    channel, last = (sizes[1],), (sizes[-1],)
    how = d.rng.randrange(5)
    scale = d.make(last if how == 1 else channel, dtype, d.flag()) if d.flag() else "None"
    shift = d.make(last if how == 1 else channel, dtype, d.flag()) if scale != "None" else "None"
    if how == 0:
        mean, var = (
            d.let(f"torch.zeros({channel}, dtype=torch.{dtype})"),
            d.let(f"torch.ones({channel}, dtype=torch.{dtype})"),
        )
        d.let(f"{F}.batch_norm({x}, {mean}, {var}, {scale}, {shift}, training={d.flag()}, momentum=0.25)")
    elif how == 1:
        d.let(f"{F}.layer_norm({x}, {last}, {scale}, {shift})")
    elif how == 2:
        if dtype in ("float16", "bfloat16"):
            scale = shift = "None"  # their gradients are sums that cancel, less what the mean was rounded by
        d.let(f"{F}.group_norm({x}, {d.pick(1, sizes[1])}, {scale}, {shift})")
    elif how == 3 and math.prod(sizes[2:]) > 1:
        d.let(f"{F}.instance_norm({x}, weight={scale}, bias={shift})")
    elif sizes[-1] == 1:  # rms_norm is the sign there: numbers that are rounding alone get any gradient
        d.let(f"{F}.local_response_norm({x}, 2)")
    else:
        d.let(d.pick(f"{F}.rms_norm({x}, {last})", f"{F}.local_response_norm({x}, 2)"))


@step(3)
def distributed(d: Draw) -> None:
    x = d.real(rank=1)
    dim = d.dim(x)
    d.one_of(
        f"torch.softmax({x}, {dim})",
        f"torch.log_softmax({x}, {dim})",
        f"{F}.softmin({x}, {dim})",
        f"torch.softmax({x}, {dim}, dtype=torch.float64)",
        f"{F}.glu(torch.cat([{x}, {x}], {dim}), {dim})",
        f"{F}.prelu({x} + 0.03125, torch.full((1,), 0.25, dtype={x}.dtype))",  # torch counts 0 to either side
    )


@step(2.5)
def lost(d: Draw) -> None:
    x = d.real(rank=1)
    t = d.value(x)
    shape, dtype = tuple(t.shape), tensor_dtype(t)
    reduction = f"reduction={d.pick('mean', 'sum', 'none')!r}"
    if d.chance(0.6):
        name = d.pick(
            "mse_loss",
            "l1_loss",
            "smooth_l1_loss",
            "huber_loss",
            "binary_cross_entropy_with_logits",
            "soft_margin_loss",
        )
        y = d.make(shape, dtype, d.chance(0.2))
        wanted = (
            f"{y}.sigmoid()" if "entropy" in name else f"{y}.sign()" if "margin" in name else f"{y} + 0.03125"
        )
        d.let(f"{F}.{name}({x}, {wanted}, {reduction})")
        return
    if 0 in shape or shape[-1] > 5000:
        raise Skip
    rows = math.prod(shape[:-1])
    labels = d.new()
    d.emit(f"torch.manual_seed(1)\n{labels} = torch.randint(0, {shape[-1]}, ({rows},))")
    flat = f"{x}.reshape({rows}, {shape[-1]})"
    signs = f"{labels}.sign() * 2 - 1"
    d.one_of(
        f"{F}.cross_entropy({flat}, {labels}, {reduction}, label_smoothing={d.pick(0.0, 0.25)})",
        f"{F}.cross_entropy({flat}, {labels}, {reduction}, ignore_index=0)",
        f"{F}.nll_loss(torch.log_softmax({flat}, 1), {labels}, {reduction})",
        f"{F}.kl_div({flat}.log_softmax(1), {flat}.detach().softmax(1), {reduction})",
        f"{F}.cosine_similarity({flat}, {flat}.flip(0), dim=1)",
        f"{F}.pairwise_distance({flat}, {flat}.flip(0))",
        f"{F}.triplet_margin_loss({flat}, {flat}.flip(0), {flat} * 0.5 + 1, {reduction})",
        f"{F}.one_hot({labels})",
        f"{F}.multi_margin_loss({flat}, {labels}, p={d.pick(1, 2)}, {reduction})",
        f"{F}.multilabel_margin_loss({flat}, {F}.pad({labels}[:, None], (0, {shape[-1] - 1}), value=-1), {reduction})"
        if shape[-1] < 70  # Mica compares all pairs of classes in memory
        else f"{F}.one_hot({labels})",
        f"{F}.multilabel_soft_margin_loss({flat}, {F}.one_hot({labels}, {shape[-1]}), {reduction})",
        f"{F}.cosine_embedding_loss({flat}, {flat}.flip(0), {signs}, {reduction})",
        f"{F}.margin_ranking_loss({flat}[:, 0], {flat}[:, -1], {signs}, {reduction})",
        f"{F}.hinge_embedding_loss({flat}[:, 0], {signs}, {reduction})",
        f"{F}.poisson_nll_loss({flat}[:, 0], {labels}, {reduction})",
        f"{F}.gaussian_nll_loss({flat}[:, 0], {labels}.double(), {flat}[:, -1].square() + 1, {reduction})",
    )


@step(1.5)
def attended(d: Draw) -> None:
    batch, heads, length, width = d.pick(1, 2), d.pick(1, 2, 3), d.pick(1, 3, 5, 17, 33), d.pick(2, 4, 8)
    dtype = d.float_dtype()
    q, k, v = (d.make((batch, heads, length, width), dtype, d.flag()) for _ in range(3))
    mask = d.pick(
        "",
        ", is_causal=True",
        f", attn_mask=torch.ones({length}, {length}, dtype=torch.bool).tril()",
        ", scale=0.5",
    )
    d.let(f"{F}.scaled_dot_product_attention({q}, {k}, {v}{mask}).contiguous()")


MODULES = {
    "Linear(3, 4)": (2, 3),
    "Linear(3, 4, bias=False)": (5, 2, 3),
    "Conv2d(2, 3, 3, padding=1)": (2, 2, 5, 5),
    "BatchNorm1d(3)": (4, 3),
    "BatchNorm2d(2)": (2, 2, 3, 3),
    "LayerNorm(3)": (4, 3),
    "GroupNorm(2, 4)": (2, 4, 3),
    "Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))": (5, 3),
    "Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(18, 2))": (
        2,
        1,
        5,
        5,
    ),
    "LSTM(3, 4)": (5, 2, 3),
    "GRU(3, 4, batch_first=True)": (2, 5, 3),
    "RNN(3, 4)": (5, 2, 3),
    "LSTM(3, 4, num_layers=2, bidirectional=True)": (3, 2, 3),
    "MultiheadAttention(4, 2)": (3, 2, 4),
    "TransformerEncoderLayer(4, 2, 8, dropout=0.0)": (3, 2, 4),
    "Bilinear(3, 3, 2)": (4, 3),
    "PReLU()": (3, 3),
    "Dropout(0.5)": (3, 3),
    "utils.parametrizations.weight_norm(torch.nn.Linear(3, 2, dtype=torch.float64))": (4, 3),
    "utils.parametrizations.spectral_norm(torch.nn.Linear(3, 2, dtype=torch.float64))": (4, 3),
    "Linear(1025, 33)": (3, 1025),
    "Conv2d(1, 8, 3, padding=1)": (64, 1, 24, 24),
}
OPTIMIZERS = [  # the larger eps keep Adam's steps from being signs of rounding
    "SGD({}, lr=0.1, momentum=0.5)",
    "SGD({}, lr=0.1, momentum=0.5, nesterov=True, weight_decay=0.01)",
    "Adam({}, lr=0.05, eps=0.1)",
    "AdamW({}, lr=0.05, eps=0.1, weight_decay=0.1)",
    "RMSprop({}, lr=0.05, eps=0.1, momentum=0.5)",
    "Adagrad({}, lr=0.1, eps=0.1)",
    "Adam({}, lr=0.05, eps=0.1, amsgrad=True)",
    "NAdam({}, lr=0.05, eps=0.1)",
]


@step(2)
def trained(d: Draw) -> None:
    """A module, perhaps with a hook, called once or trained for a few steps."""
    text = d.rng.choice(list(MODULES))
    shape, dtype = (
        MODULES[text],
        d.pick("float64", "float64", "float32") if d.floats != ["float64"] else "float64",
    )
    module = d.new("m")
    inputs = d.make(shape, dtype, d.flag())
    d.emit(f"torch.manual_seed({d.rng.randrange(100)})\n{module} = torch.nn.{text}.to(torch.{dtype})")
    if d.chance(0.4):
        d.emit_one_of(
            f"{module}.register_forward_hook(lambda module, args, out: log.append('forward'))",
            f"{module}.register_forward_pre_hook(lambda module, args: log.append('before'))",
            f"{module}.register_full_backward_hook(lambda module, gi, go: log.append('backward'))",
            f"{module}.register_forward_pre_hook(lambda module, args: (args[0] * 0.5, *args[1:]))",
            f"{module}.register_full_backward_pre_hook(lambda module, go: log.append('pre'))",
            f"{module}.eval()",
            f"next({module}.parameters()).register_hook(lambda g: g * 2)"
            if list(d.value(module).parameters())
            else f"{module}.train()",
            f"{module}.requires_grad_(False)",
        )
    call = (
        f"{module}({inputs}, {inputs}, {inputs})"
        if "Multihead" in text
        else f"{module}({inputs}, {inputs})"
        if "Bilinear" in text
        else f"{module}({inputs} + 0.03125)"  # torch counts 0 to either side
        if "PReLU" in text
        else f"{module}({inputs})"
    )
    picked = "[0]" if text.startswith(("LSTM", "GRU", "RNN", "Multihead")) else ""
    result = d.new()
    d.emit(f"torch.manual_seed(3)\n{result} = {call}{picked}")
    if d.chance(0.5) or not any(p.requires_grad for p in d.value(module).parameters()):
        return
    optimizer = d.new("o")
    d.emit(f"{optimizer} = torch.optim.{d.rng.choice(OPTIMIZERS).format(f'{module}.parameters()')}")
    d.emit(f"({result} ** 2).mean().backward()\n{optimizer}.step()")
    for _ in range(d.pick(1, 2, 3)):
        d.emit(
            f"torch.manual_seed(3)\n{optimizer}.zero_grad(set_to_none={d.flag()})\n"
            f"({call}{picked} ** 2).mean().backward()\n{optimizer}.step()"
        )
    if d.chance(0.3):
        d.emit(f"torch.nn.utils.clip_grad_norm_({module}.parameters(), 0.1)")
