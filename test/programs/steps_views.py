"""Steps that share memory: views, writes through them, indexing, `out=`."""

from __future__ import annotations

import math

import torch
from draw import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    MOST,
    Draw,
    Skip,
    broadcasts,
    place,
    spread,
    step,
    tensor_dtype,
    words,
)
from nudges import alone

WRITES = words("sin_ tanh_ abs_ neg_ square_ sigmoid_ relu_ zero_ floor_ exp2_ sqrt_ erf_ reciprocal_ round_")


def slices(d: Draw, name: str) -> str:
    """An index of numbers, slices, None and an ellipsis."""
    parts = []
    for n in d.value(name).shape:
        way = d.rng.random()
        if way < 0.2 and n:
            parts.append(str(d.rng.randrange(-n, n)))
        elif way < 0.6:
            first = d.rng.randint(0, max(n - 1, 0))
            parts.append(f"{first or ''}:{d.pick('', n, -1, first + 1)}:{d.pick(1, 1, 2, 3)}")
        elif way < 0.7:
            parts.append("None")
            parts.append(":")
        else:
            parts.append(":")
    if parts and d.chance(0.3):
        parts = [*parts[: d.rng.randint(0, len(parts))], "..."]
    return ", ".join(parts) or "..."


def view(d: Draw, x: str) -> str:
    """An expression of a view of a tensor."""
    t = d.value(x)
    n, shape = t.dim(), list(t.shape)
    options = [f"{x}[{slices(d, x)}]"] * 3
    options += [
        f"{x}.reshape(-1)",
        f"{x}.unsqueeze({d.rng.randrange(-n - 1, n + 1)})",
        f"{x}.detach()",
        f"{x}.squeeze()",
    ]
    options += [
        f"{x}.view({tuple(shape)})",
        f"{x}.view_as({x})",
        f"{x}.expand(2, {'*' + str(shape) if n else ''})",
    ]
    if n:
        dim = d.dim(x)
        options += [f"{x}.transpose({dim}, {d.dim(x)})", f"{x}.permute({tuple(d.rng.sample(range(n), n))})"]
        options += [f"{x}.flatten({d.pick(0, -1)})", f"{x}.squeeze({dim})", f"{x}.movedim({dim}, 0)"]
        if shape[dim]:
            options += [f"{x}.select({dim}, {d.rng.randrange(shape[dim])})"]
            start = d.rng.randrange(shape[dim])
            options += [f"{x}.narrow({dim}, {start}, {d.rng.randint(0, shape[dim] - start)})"]
            size = d.rng.randint(1, shape[dim])
            if (shape[dim] - size + 1) * size * t.numel() <= MOST * shape[dim]:
                options += [f"{x}.unfold({dim}, {size}, {d.pick(1, 2)})"]
    if n >= 2:
        options += [f"{x}.diagonal({d.pick(0, 1, -1)}, 0, {d.pick(1, -1)})", f"{x}.mT", f"{x}.swapaxes(0, 1)"]
    if t.numel() >= 4 and d.same_strides(x):
        size = d.rng.randint(1, min(t.numel() // 2, 9))
        options += [f"{x}.as_strided(({size},), (1,), {x}.storage_offset())"]
    name = tensor_dtype(t)
    if name in COMPLEX:
        options += [f"torch.view_as_real({x})", f"{x}.real", f"{x}.imag"] * 2
    if name in ("float64", "int64") and not t.requires_grad:
        options += [f"{x}.view(torch.{d.pick('int64', 'float64')})"] if name == "int64" else []
        options += [f"{x}.view(torch.{d.pick('int32', 'int16', 'uint8')})"] if name == "int64" else []
    return d.rng.choice(options)


@step(9)
def viewed(d: Draw) -> None:
    d.let(view(d, d.tensor()))


@step(2)
def parted(d: Draw) -> None:
    """The results of a split are several views of one: they are read only."""
    x = d.tensor(lambda t: t.dim() > 0)
    dim = d.dim(x)
    how = d.pick("chunk", "split", "unbind", "tensor_split")
    call = f"torch.unbind({x}, {dim})" if how == "unbind" else f"torch.{how}({x}, {d.pick(1, 2, 3)}, {dim})"
    if d.value(x).shape[dim] > 50:
        raise Skip
    parts = d.new("p")
    d.emit(f"{parts} = {call}")
    if d.session.values.get(parts):
        d.frozen.add(d.let(f"{parts}[{d.pick(0, -1)}]"))


def target(d: Draw) -> str:
    """What a write goes to: mostly no leaf that requires a gradient, which refuses."""
    if d.chance(0.06):
        return d.writable()
    return d.writable(lambda t: not (t.requires_grad and t.is_leaf) and not base_is_leaf(t))


def base_is_leaf(t: object) -> bool:
    base = getattr(t, "_base", None)
    return base is not None and base.is_leaf and base.requires_grad


@step(7)
def written(d: Draw) -> None:
    x = target(d)
    t = d.value(x)
    way = d.rng.random()
    if way < 0.3:
        d.emit(f"{x}.{d.rng.choice(WRITES)}()")
    elif way < 0.4:
        d.emit_one_of(
            f"{x}.fill_({d.number()})",
            f"{x}.clamp_(-1, 1)",
            f"{x}.masked_fill_({x} > 0, {d.pick(2, 0)})",
            f"{x}.pow_(2)",
            f"{x}.tril_()",
            f"{x}.nan_to_num_()",
            f"{x}.requires_grad_()" if not t.requires_grad and not d.shared(x) else f"{x}.zero_()",
        )
    else:
        fits = lambda u: broadcasts(t.shape, u.shape) and u.dim() <= t.dim()  # noqa: E731
        y = (
            d.tensor(lambda u: fits(u) and (t.is_floating_point() or not u.requires_grad))
            if d.chance(0.7)
            else None
        )
        right = repr(d.number()) if y is None else d.source(x, y)
        scaled = right if right[0] not in "-" else f"({right})"
        d.emit_one_of(
            f"{x}.add_({right})",
            f"{x}.mul_({right})",
            f"{x}.sub_({right}, alpha=2)",
            f"{x} += {right}",
            f"{x} *= {right}",
            f"{x}.copy_({'torch.tensor(' + right + ')' if y is None else right})",
            f"{x}.div_(({scaled}) * 0 + 2)",
            f"{x}[...] = {right}",
            f"{x}.addcmul_({x}.clone(), {'torch.tensor(' + right + ')' if y is None else right})",
            f"{x}.maximum({'torch.tensor(' + right + ')' if y is None else right})",
        )


@step(4)
def assigned(d: Draw) -> None:
    x = target(d)
    index = slices(d, x)
    at = d.session.values[x]
    way = d.rng.random()
    if way < 0.4:
        d.emit(f"{x}[{index}] {d.pick('=', '+=', '*=')} {d.pick(2, 0, 1.5, True)}")
    elif way < 0.7:
        d.emit(f"{x}[{index}] {d.pick('=', '+=', '*=')} {x}[{index}].clone() * 2")
    elif way < 0.85:
        d.emit(f"{x}[{x} > 0] = {d.pick(1, 0.5)}")
    elif at.dim() and at.shape[0]:
        rows = [d.rng.randrange(at.shape[0]) for _ in range(2)]
        if rows[0] == rows[1]:
            rows = rows[:1]
        d.emit(f"{x}[{rows}] {d.pick('=', '+=')} {d.pick(3, f'{x}[{rows}].clone() + 1')}")


@step(2.5)
def scattered(d: Draw) -> None:
    """Writes at indices along a dim; equal indices only where the order does not matter."""
    x = target(d)
    t = d.value(x)
    if t.dim() == 0 or 0 in t.shape or t.numel() > 5000:
        raise Skip
    dim = d.rng.randrange(t.dim())
    n = t.shape[dim]
    rows = sorted({d.rng.randrange(n) for _ in range(3)})
    index = f"torch.tensor({rows})"
    like = f"{x}.clone().index_select({dim}, {index})"
    order = [] if t.is_complex() else ["amax", "amin"]
    means = [] if t.dtype in (torch.int8, torch.uint8, torch.int16) else ["mean"]  # torch's sums wrap
    reduce = d.pick("sum", "prod", *means, *order)
    # Where `self` is left out, torch still gives it a share of the gradient of equal extremes, and drops that.
    includes = reduce in order or d.flag()
    grid = f"{spread(index, dim, t.dim())}.expand_as({like})"
    again = f"torch.tensor({[rows[0], rows[-1], rows[0]]})"
    repeated = f"{x}.clone().index_select({dim}, {again})"
    grid_again = f"{spread(again, dim, t.dim())}.expand_as({repeated})"
    d.emit_one_of(
        f"{x}.index_fill_({dim}, {index}, 2)",
        f"{x}.index_copy_({dim}, {index}, {like} * 2)",
        f"{x}.index_add_({dim}, {again}, {repeated}, alpha=2)",
        f"{x}.scatter_({dim}, {grid}, {like} * 2)",
        f"{x}.scatter_({dim}, {grid}, 3)",
        f"{x}.scatter_add_({dim}, {grid_again}, {repeated})",
        f"{x}.scatter_reduce_({dim}, {grid_again}, {repeated}, '{reduce}', include_self={includes})",
        f"{x}.index_put_((torch.tensor({rows[:1]}),), {x}.clone()[{rows[0]}] * 2, accumulate={d.flag()})"
        if dim == 0
        else f"{x}.zero_()",
        f"{x}.put_(torch.tensor([0, {t.numel() - 1}]), torch.tensor([1, 2]).to({x}.dtype), accumulate={d.flag()})",
        f"{x}.masked_scatter_({x} > 0, {x}.clone())",
        f"{x}.index_reduce_({dim}, {again}, {repeated}, '{d.pick('prod', *means, *order)}')",
    )


@step(4)
def gathered(d: Draw) -> None:
    x = d.tensor(lambda t: t.dim() > 0 and 0 not in t.shape)
    t = d.value(x)
    dim = d.rng.randrange(t.dim())
    n = t.shape[dim]
    rows = [d.rng.randrange(n) for _ in range(d.pick(1, 2, 4))]
    signed = [k - n if d.chance(0.3) else k for k in rows]
    colons = ":, " * dim
    index = f"torch.tensor({rows})"
    along = spread(index, dim, t.dim())
    sizes = [len(rows) if k == dim else m for k, m in enumerate(t.shape)]
    own = x if alone(t) else f"{x}.contiguous()"  # torch writes into a copy whose elements share memory, too
    d.one_of(
        f"{x}[{colons}{signed}]",
        f"{x}[{colons}torch.tensor({signed})]",
        f"{x}[{colons}torch.tensor([{signed}, {signed}])]",
        f"{x}.index_select({dim}, {index})",
        f"{x}.gather({dim}, {along}.expand({sizes}))",
        f"torch.take_along_dim({x}, {along}, {dim})",
        f"{x}.take(torch.tensor({[d.rng.randrange(t.numel()) for _ in range(3)]}))",
        f"{x}[{x} > 0]",
        f"torch.masked_select({x}, {x} > {x}.narrow({dim}, 0, 1))",
        f"torch.nn.functional.embedding({index}, {x}.reshape({n}, -1))",
        f"{x}.index_add({dim}, {index}, {x}.index_select({dim}, {index}))",
        f"{x}.scatter({dim}, {along}[..., :1].expand({[1 if k == dim else m for k, m in enumerate(t.shape)]}), 2)"
        if t.dim() == dim + 1
        else f"{own}.select_scatter({x}.select({dim}, 0) * 2, {dim}, {rows[0]})",
        f"{own}.slice_scatter({x}.narrow({dim}, 0, 1), {dim}, {rows[0]}, {rows[0] + 1})",
        f"{x}.index_fill({dim}, {index}, 2)",
        f"torch.where({x} > 0)[0]",
    )


OUT = words("add mul sub maximum eq lt true_divide sum cumsum sin cat matmul index_select")


@step(2)
def out(d: Draw) -> None:
    """`out=` of a named tensor or a new one, of the result's dtype or a wider one."""
    x = d.tensor(lambda t: not t.requires_grad)
    name = d.rng.choice(OUT)
    shape = list(d.value(x).shape)
    arguments = {
        "sum": f"{x}, {d.dim(x)}",
        "cumsum": f"{x}, {d.dim(x)}",
        "sin": x,
        "cat": f"[{x}, {x}]",
        "matmul": f"{x}.reshape(-1, 1), {x}.reshape(1, -1)",
        "index_select": f"{x}, 0, torch.tensor([0])",
    }.get(name, f"{x}, {d.pick(x, x + '.flip(0)' if shape else x)}")
    if name == "matmul" and math.prod(shape) > 300:
        raise Skip
    result = d.new()
    wide = "torch.complex128" if d.value(x).is_complex() else "torch.float64"
    dtype = d.pick(f"{x}.dtype", f"{x}.dtype", wide, "torch.bool")
    holder = d.pick(
        f"torch.empty(0, dtype={dtype})",
        f"torch.zeros({shape}, dtype={dtype})",
        f"torch.zeros({shape[::-1]}, dtype={dtype}).T",
    )
    d.emit(f"{result} = {holder}")
    d.emit(f"torch.{name}({arguments}, out={result})")


@step(1)
def in_place_shape(d: Draw) -> None:
    # torch gives a result that retains its gradient one of the shape that it had then.
    x = d.tensor(lambda t: t.dim() >= 1 and not t.is_leaf and not t.retains_grad)
    if x in d.frozen or place(d.value(x)) in d.odd_views():
        raise Skip
    detach = ["detach_()"] if d.both_view(x) else []
    d.emit(f"{x}.{d.pick('unsqueeze_(0)', 'squeeze_()', 'transpose_(0, -1)', *detach)}")


@step(1)
def scalar(d: Draw) -> None:
    x = d.tensor(lambda t: t.numel() == 1)
    d.emit(
        f"{d.new('s')} = {d.pick(f'{x}.item()', f'{x}.tolist()', f'float({x}.abs())', f'bool({x})', f'len({x}.shape)')}"
    )


@step(0.5)
def listed(d: Draw) -> None:
    x = d.tensor(lambda t: 0 < t.numel() <= 8 and tensor_dtype(t) in (*INTEGERS, "bool", *FLOATS[:2]))
    # Not strides: those of a gradient that is the same everywhere are zero.
    d.emit(
        f"{d.new('s')} = {d.pick(f'{x}.tolist()', f'list({x}.shape)', f'str({x}.dtype).split(chr(46))[1]')}"
    )
