"""Steps of automatic differentiation: backward, hooks, custom functions, modes and transforms."""

from __future__ import annotations

import torch
from draw import Draw, Skip, step

SMOOTH = ["sin", "tanh", "sigmoid", "exp", "square", "cos"]


def recorded(d: Draw) -> str:
    """A float tensor with a history."""
    return d.tensor(lambda t: t.requires_grad and t.is_floating_point() and not t.is_leaf)


def leaf(d: Draw) -> str:
    return d.tensor(lambda t: t.requires_grad and t.is_leaf)


def formula(d: Draw, names: list[str], depth: int = 2) -> str:
    """A smooth expression of named values of one shape, in that shape."""
    if depth == 0:
        return d.rng.choice(names)
    part = lambda: formula(d, names, depth - 1)  # noqa: E731
    x = names[0]
    return d.pick(
        f"({part()} * {part()})",
        f"({part()} + {part()})",
        f"({part()} - {d.number()})",
        f"torch.{d.rng.choice(SMOOTH)}({part()} * 0.5)",
        f"({part()} * {x}.mean())",
        f"({part()}.flip(0) + {part()})" if d.flag() else f"({part()} / ({part()} ** 2 + 1))",
        f"torch.where({x} > 0, {part()}, {part()})",
        f"{part()}.cumsum(0)",
        f"{part()}.softmax(0)",
        f"({part()} - {part()}.mean())",
        f"torch.cat([{part()}[1:], {part()}[:1]])",
    )


@step(4)
def backward(d: Draw) -> None:
    x = recorded(d)
    scalar = f"({x} * {d.number()}).sum()" if d.chance(0.7) else f"{x}.mean()"
    keep = d.pick("", "retain_graph=True", "retain_graph=True", "create_graph=True")
    if d.chance(0.2):
        d.emit(f"{x}.backward(torch.ones_like({x}){', ' + keep if keep else ''})")
    elif d.chance(0.15):
        y = recorded(d)
        inputs = f", inputs=[{', '.join(sorted({leaf(d), leaf(d)}))}]" if d.flag() else ""
        d.emit(
            f"torch.autograd.backward([{x}, {y}], [torch.ones_like({x}), {y}.detach().clone()]"
            f"{', ' + keep if keep else ''}{inputs})"
        )
    elif d.chance(0.1):
        d.emit(f"{x}.backward()")
    else:
        d.emit(f"{scalar}.backward({keep})")


@step(4)
def gradient(d: Draw) -> None:
    x = recorded(d)
    # Of intermediate results a second derivative depends on the formula of the first.
    other = (
        leaf(d)
        if any("create_graph=True" in text for text in d.program)
        else d.tensor(lambda t: t.requires_grad)
    )
    leaves = sorted({leaf(d), other, leaf(d), *([x] if d.chance(0.1) else [])})
    options = f"create_graph={d.chance(0.6)}, retain_graph=True, {d.pick('allow_unused=True', 'allow_unused=True', 'allow_unused=False', 'materialize_grads=True')}"
    scalar = f"({x} * {d.pick(x, d.number())}).sum()"
    result = d.let(f"torch.autograd.grad({scalar}, [{', '.join(leaves)}], {options})", "g")
    found = d.session.values.get(result)
    ours = d.session.spaces["mica"].get(result) or ()
    usable = [k for k, (g, o) in enumerate(zip(found or (), ours)) if g is not None and o is not None]
    usable = [k for k in usable if found[k].requires_grad == ours[k].requires_grad]
    if usable:
        name = d.let(f"{result}[{d.rng.choice(usable)}]")
        if d.value(name).requires_grad and d.chance(0.6):
            inner = [n for n in leaves if d.value(n).is_leaf]
            d.let(
                f"torch.autograd.grad(({name} * {name}).sum(), [{', '.join(inner)}], retain_graph=True, allow_unused=True)",
                "g",
            )


@step(1.5)
def accumulated(d: Draw) -> None:
    """A leaf's gradient as a value, which later steps read and write."""
    x = d.tensor(lambda t: t.is_leaf and t.grad is not None and t.grad.layout == torch.strided)
    if d.session.spaces["mica"][x].grad is not None:
        d.let(f"{x}.grad")


@step(2)
def hooked(d: Draw) -> None:
    x = d.tensor(lambda t: t.requires_grad)
    d.emit_one_of(
        f"{x}.register_hook(lambda g: g * 2)",
        f"{x}.register_hook(lambda g: log.append({x!r}))",
        f"{x}.register_hook(lambda g: log.append(tuple(g.shape)))",
        f"{x}.retain_grad()",
        f"{x}.register_hook(lambda g: g.clone() + 1)",
        f"{x}.register_hook(lambda g: None)",
        f"{x}.register_post_accumulate_grad_hook(lambda t: log.append('accumulated'))",
        f"{x}.grad_fn.register_hook(lambda gi, go: log.append('after {x}'))",
        f"{x}.grad_fn.register_prehook(lambda go: log.append('node {x}'))",
        f"h = {x}.register_hook(lambda g: g * 3)\nh.remove()\ndel h",
    )


@step(1.5)
def flags(d: Draw) -> None:
    x = d.tensor()
    d.emit(
        d.pick(
            *([] if d.shared(x) else [f"{x}.requires_grad_()", f"{x}.requires_grad_(False)"]),
            f"{x}.grad = None",
            *([f"{x}.detach_()"] if d.both_view(x) else []),
            f"{d.new()} = {x}.detach().clone().requires_grad_({x}.is_floating_point())",
            f"{x}.grad = torch.ones_like({x})",
        )
        if d.chance(0.7)
        else f"{d.new()} = {x}.detach().clone()"
    )


@step(3)
def unrecorded(d: Draw) -> None:
    """A block that records nothing: what is made there, and writes of what was made outside."""
    x = d.tensor()
    name = d.new()
    mode = d.pick("no_grad()", "no_grad()", "inference_mode()", "enable_grad()", "set_grad_enabled(False)")
    made = [f"{x} * 2", f"{x}.clone()", f"{x} + {x}", f"{x}.detach()", "torch.ones(3)", f"{x}.sin()"]
    # torch gives a view made here of what requires a gradient no gradient, though it says that it requires one.
    inner = d.pick(*made, *([] if d.value(x).requires_grad else [f"{x}[...]", f"{x}.reshape(-1)"]))
    lines = [f"{name} = {inner}"]
    try:
        if d.chance(0.3):
            lines += [f"{d.writable(lambda t: not t.is_inference())}.mul_(2)"]
    except Skip:
        pass
    d.emit(f"with torch.{mode}:\n" + "\n".join(f"    {line}" for line in lines))


FUNCTIONS = {
    "Product": """
class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        log.append(tuple(ctx.needs_input_grad))
        return g * y, g * x
""",
    "Write": """
class Write(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        ctx.mark_dirty(x)
        return x.mul_(y)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y, None
""",
    "Plain": """
class Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * 2 + y

    @staticmethod
    def backward(ctx, g):
        log.append(ctx.saved_tensors)
        return g * 2, g
""",
    "Pair": """
class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.shape = x.shape
        ctx.set_materialize_grads(False)
        index = x.argsort(stable=True)
        ctx.mark_non_differentiable(index)
        return x + y, x - y, index

    @staticmethod
    def backward(ctx, a, b, index):
        log.append((a is None, b is None, index is None))
        first = 0 if a is None else a
        second = 0 if b is None else b
        return first + second, first - second
""",
    "Same": """
class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x.view_as(x), y

    @staticmethod
    def backward(ctx, g, h):
        return g * 2, h * 3
""",
    "Split": """
class Split(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)
        ctx.save_for_forward(*inputs, output)

    @staticmethod
    def backward(ctx, g):
        x, y, out = ctx.saved_tensors
        return g * y.exp(), g * out

    @staticmethod
    def jvp(ctx, x, y):
        a, b, out = ctx.saved_tensors
        return x * b.exp() + y * out

    @staticmethod
    def vmap(info, in_dims, x, y):
        return Split.apply(x, y), in_dims[0]
""",
}


@step(3)
def custom(d: Draw) -> None:
    kind = d.rng.choice(list(FUNCTIONS))
    x = d.real()
    if kind == "Write":
        x = d.writable(
            lambda t: t.is_floating_point() and not (t.requires_grad and t.is_leaf) and t._base is None
        )
        if d.session.spaces["mica"][x]._is_view():
            raise Skip
    shape, dtype = d.value(x).shape, d.value(x).dtype
    y = d.tensor(lambda t: t.shape == shape and t.dtype == dtype)
    if kind not in d.session.values:
        d.emit(FUNCTIONS[kind].strip())
    if kind in ("Pair", "Same"):
        result = d.let(f"{kind}.apply({x}, {y})", "p")
        if result in d.session.values:
            name = d.let(f"{result}[{d.pick(0, 1)}]")
            d.frozen.update([name, x, y])
    elif kind == "Write":
        y = y if d.value(y) is not d.value(x) and y != x else f"{y}.clone()"
        d.let(f"{kind}.apply({x}, {d.source(x, y) if '.' not in y else y})")
    else:
        d.let(f"{kind}.apply({x}, {y})")


@step(5)
def transformed(d: Draw) -> None:
    """torch.func around a small program; the captured values may have histories."""
    x = d.tensor(lambda t: t.is_floating_point() and t.dim() >= 1 and 0 < t.numel() <= 300)
    t = d.value(x)
    others = d.names(lambda u: u.shape == t.shape and u.dtype == t.dtype)
    names = ["x", "x", d.rng.choice(others)]
    f = f"lambda x: {formula(d, names)}"
    total = f"lambda x: ({formula(d, names)}).sum()"
    direction = f"torch.ones_like({x})"
    dim = d.dim(x)
    inner = f"lambda x: {formula(d, ['x', 'x'])}" if t.dim() >= 2 else "lambda x: x.sin() * x"
    write = "lambda x: x.clone().mul_(2).add_(x).narrow(0, 0, 1).sin_().sum()"
    d.one_of(
        f"torch.func.grad({total})({x})",
        f"torch.func.grad(lambda x: (torch.func.grad({total})(x) * x).sum())({x})",
        f"torch.vmap({inner}, in_dims={dim}, out_dims={dim if t.dim() >= 2 else 0})({x})",
        f"torch.vmap(torch.func.grad(lambda x: (x.sin() * x).sum()))({x})",
        f"torch.func.jvp({f}, ({x},), ({direction},))",
        f"torch.func.vjp({f}, {x})[1]({direction})[0]",
        f"torch.func.jacrev({f})({x})" if t.numel() <= 12 else f"torch.func.grad({total})({x})",
        f"torch.func.jacfwd({f})({x})" if t.numel() <= 12 else f"torch.func.grad({total})({x})",
        f"torch.func.hessian({total})({x})" if t.numel() <= 6 else f"torch.func.grad({total})({x})",
        f"torch.func.grad_and_value({total})({x})",
        f"torch.func.grad({write})({x})",
        f"torch.vmap(lambda a, b: a * b + a.sum(), in_dims=({dim}, None))({x}, {x}.select({dim}, 0))",
        f"torch.vmap(lambda a: torch.where(a > 0, a, -a).cumsum(0).amax(0), in_dims={dim})({x})"
        if t.dim() > 1
        else f"{x}.sum()",
        f"torch.func.jvp(torch.func.grad({total}), ({x},), ({direction},))[1]",
        f"torch.func.functionalize({f})({x})",
        f"torch.utils.checkpoint.checkpoint({f}, {x}, use_reentrant=False)",
    )


@step(1)
def dual(d: Draw) -> None:
    x = d.tensor(
        lambda t: t.is_floating_point() and t.dim() >= 1 and 0 < t.numel() <= 2000 and not t.is_inference()
    )
    a, b = d.new(), d.new()
    names = ["x", "x"]
    d.emit(
        f"with torch.autograd.forward_ad.dual_level():\n"
        f"    x = torch.autograd.forward_ad.make_dual({x}.detach(), torch.ones_like({x}))\n"
        f"    {a}, {b} = torch.autograd.forward_ad.unpack_dual({formula(d, names)})\n"
        f"    del x"
    )


@step(1)
def saved(d: Draw) -> None:
    """Hooks on what is saved for backward."""
    x = recorded(d)
    name = d.new()
    d.emit(
        f"with torch.autograd.graph.saved_tensors_hooks(lambda t: (log.append('pack'), t.detach().clone())[1], lambda t: t):\n"
        f"    {name} = {d.pick(f'{x} * {x}', f'{x}.exp()', f'{x}.sin() * 2', f'{x} / ({x} * {x} + 1)')}"
    )
