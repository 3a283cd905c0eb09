"""Steps that compute new values: factories, pointwise functions, reductions, sorting, joining, products."""

from __future__ import annotations

import math

from draw import FLOATS, INTEGERS, MOST, Draw, Skip, step, tensor_dtype, words
from nudges import alone

UNARY = words("""
sin cos tanh sigmoid relu abs neg square sqrt rsqrt log log1p expm1 erf erfc atan asinh floor ceil round
trunc frac sign reciprocal nan_to_num positive isnan isfinite logical_not sgn conj_physical angle exp2
tan cosh sinh acos asin atanh log2 log10 isinf signbit bitwise_not deg2rad i0 erfinv special.expit
special.ndtr special.entr special.log_ndtr special.i1 special.erfcx nn.functional.gelu
nn.functional.silu nn.functional.softplus nn.functional.elu nn.functional.leaky_relu
nn.functional.logsigmoid nn.functional.hardtanh nn.functional.mish nn.functional.selu nn.functional.celu
nn.functional.softsign nn.functional.tanhshrink nn.functional.relu6 nn.functional.softshrink
nn.functional.hardshrink
""")
NO_NANS = words(
    "nn.functional.hardtanh nn.functional.relu6 nn.functional.softshrink nn.functional.hardshrink"
)
BINARY = words("""
add sub mul div maximum minimum fmax fmin atan2 hypot remainder fmod eq ne lt le gt ge logical_and
logical_or logical_xor copysign xlogy heaviside logaddexp floor_divide true_divide bitwise_and
bitwise_or bitwise_xor rsub nextafter isclose gcd special.xlog1py logaddexp2 float_power
""")
OPERATORS = ["+", "-", "*", "/", "<", ">", "==", "!="]
REDUCTIONS = words("sum mean prod var std amax amin logsumexp any all nansum nanmean count_nonzero")
PICKS = words("max min median mode argmax argmin cummax cummin nanmedian kthvalue sort argsort topk")
NARROW = ["int8", "uint8", "int16"]
SCANS = ["cumsum", "cumprod", "logcumsumexp"]


@step(4)
def made(d: Draw) -> None:
    d.make(d.shape(large=0.12), d.dtype(), d.chance(0.5))


@step(1.5)
def made_like(d: Draw) -> None:
    x, dtype = d.tensor(), d.dtype()
    shape = d.shape()
    d.one_of(
        f"torch.zeros_like({x})",
        f"torch.ones_like({x}, dtype=torch.{dtype})",
        f"torch.full({shape}, {d.pick(2, 0.5, True)})",
        f"{x}.new_ones({shape})",
        f"{x}.new_full({shape}, 2)",
        f"torch.arange({d.pick(3, 8, 33)}, dtype=torch.{d.float_dtype()})",
        f"torch.arange({d.pick('1, 9, 3', '5, 0, -1', '0., 2., .25')})",
        f"torch.linspace(-1, 1, {d.pick(1, 5, 33)}, dtype=torch.{d.float_dtype()})",
        f"torch.eye({d.pick(1, 3, 5)}, {d.pick(2, 3)}, dtype=torch.{dtype})",
        f"torch.tensor({d.pick('[1, 2]', '[[0.5], [2]]', 'True', '[1, 2.5]', '3', '[True, 2]', '[]')})",
        f"torch.empty({shape}, dtype=torch.{d.float_dtype()}).fill_(1.5)",
        f"torch.tril_indices(3, {d.pick(2, 4)})",
    )


@step(2)
def random(d: Draw) -> None:
    seed = f"torch.manual_seed({d.rng.randrange(100)})\n" if d.chance(0.8) else ""
    shape, dtype = d.shape(), d.float_dtype()
    x = d.real()
    if not d.same_strides(x):
        raise Skip  # numbers are drawn in the order of memory
    drawn = d.pick(
        f"torch.rand({shape}, dtype=torch.{dtype})",
        f"torch.randn_like({x})",
        f"torch.randperm({d.pick(1, 5, 33, 257)})",
        f"torch.bernoulli(torch.full({shape}, 0.5, dtype=torch.{dtype}))",
        f"torch.multinomial(torch.ones({d.pick(4, 33)}), 3, replacement={d.flag()})",  # half types draw equal numbers
        f"torch.nn.functional.dropout({x}, 0.5)",
        f"torch.normal(torch.zeros({shape}, dtype=torch.{dtype}), 1.0)",
        f"torch.empty({shape}, dtype=torch.{dtype}).uniform_(-1, 1)",
        f"torch.empty({shape}, dtype=torch.{dtype}).exponential_()",
        f"torch.randint_like({x}, 0, 5)",
        f"torch.nn.functional.alpha_dropout({x}, 0.25)",
        f"torch.empty({shape}, dtype=torch.{dtype}).geometric_(0.5)",
    )
    name = d.new()
    d.emit(f"{seed}{name} = {drawn}")


@step(8)
def unary(d: Draw) -> None:
    x, name = d.tensor(), d.rng.choice(UNARY)
    # torch's loops over vectors give NaN no gradient here, its loops over the rest do.
    numbers = f"torch.nan_to_num({x})" if name in NO_NANS else x
    d.let(f"torch.{name}({numbers})")


@step(2)
def smooth(d: Draw) -> None:
    x = d.real()
    d.one_of(
        f"{x}.clamp(max=3).exp()",
        f"{x}.clamp({d.pick('-1, 1', 'min=0.5', 'max=-0.25')})",
        f"({x} * {x} + 1).log()",
        f"{x}.abs().add(0.5).pow({d.number()})",
        f"{x} ** {d.pick(0, 1, 2, 3, -1, 2.0)}",
        f"{d.number()} ** {x}.clamp(-2, 2)",
        f"{x}.abs().add(0.5) ** {x}.clamp(-2, 2)",
        f"torch.nn.functional.threshold({x}, 0.1, 20)",
        f"torch.special.multigammaln({x}.abs() + 3, 2)",
        f"torch.lgamma({x}.detach().abs() + 0.5)",  # away from the poles; of torch's trigamma 9 digits are right
        f"torch.digamma({x}.detach().abs() + 0.5)",
    )


@step(9)
def binary(d: Draw) -> None:
    x = d.tensor()
    y = d.partner(x)
    if d.chance(0.5):
        left, right = (x, y) if d.flag() else (y, x)
        d.let(f"{left} {d.rng.choice(OPERATORS)} {right}")
    else:
        options = f", alpha={d.pick(2, 3)}" if d.chance(0.2) else ""
        name = d.rng.choice(["add", "sub"] if options else BINARY)
        if name == "atan2" and {*NARROW} & {tensor_dtype(t) for t in d.operands(x, y)}:
            raise Skip  # torch squares and negates them in its gradient, where they wrap
        d.let(f"torch.{name}({x}, {y}{options})")


@step(1.5)
def ternary(d: Draw) -> None:
    x = d.tensor()
    y, z = d.partner(x), d.partner(x)
    d.one_of(
        f"torch.where({x} > {d.number()}, {y}, {z})",
        f"torch.where({x}.bool(), {x}, {y})",
        f"torch.lerp({x}, {y}, {d.pick(0.25, z)})",
        f"torch.addcmul({x}, {y}, {z}, value={d.pick(2, 0.5)})",
        f"torch.addcdiv({x}, {y}, {z}, value={d.pick(2, 0.5)})",
        f"{x}.masked_fill({x} > 0, {d.number()})",
        f"torch.clamp({x}, {y}, {z})",
        f"torch.div({x}, {y}, rounding_mode={d.pick('trunc', 'floor', None)!r})",
    )


@step(3)
def converted(d: Draw) -> None:
    x, dtype = d.tensor(), d.dtype()
    if dtype in INTEGERS and tensor_dtype(d.value(x)) in FLOATS:
        d.let(f"torch.nan_to_num({x}).clamp(0, 100).to(torch.{dtype})")
    else:
        d.let(
            d.pick(f"{x}.to(torch.{dtype})", f"{x}.type(torch.{dtype})", f"{x}.to({x}.dtype)", f"{x}.clone()")
        )


@step(7)
def reduced(d: Draw) -> None:
    x, name = d.tensor(), d.rng.choice(REDUCTIONS)
    dim = d.dim(x) if name == "prod" or d.chance(0.3) else d.dims(x)
    if name in ("var", "std", "logsumexp") and dim == ():
        # Over no dims torch's var is that of all elements and its gradient not, and its logsumexp raises.
        dim = d.dim(x)
    keep = "" if name == "count_nonzero" else f", keepdim={d.flag()}"
    extra = ""
    if name in ("sum", "prod", "nansum") and d.chance(0.3):
        extra = f", dtype=torch.{d.pick('float64', 'float32', 'int64', 'int32', 'bool', 'complex128')}"
    elif name == "mean" and d.chance(0.3):
        extra = ", dtype=torch.float64"
    elif name in ("var", "std") and d.flag():
        # Divided by 0, the squares of equal numbers are NaN or infinite, as rounding decides.
        count = math.prod(
            d.value(x).shape[k] for k in (dim if isinstance(dim, tuple) else [dim]) if d.value(x).dim()
        )
        extra = f", correction={d.pick(*(k for k in (0, 1, 2, 5) if k < max(count, 2)))}"
    if d.chance(0.25) and name != "logsumexp":
        d.let(f"torch.{name}({x}{extra})")
    else:
        d.let(f"torch.{name}({x}, {dim}{keep}{extra})")


@step(1.5)
def normed(d: Draw) -> None:
    x, order = d.real(), d.pick(1, 2, 0, 3, "float('inf')", 0.5)
    dims = d.dims(x) or None
    if order == 0 and d.value(x).requires_grad:
        order = 2  # torch's norm of order 0 is now a function of the input, now a number without history
    # Divided by a norm of at least 1e-12, a gradient that is zero but for rounding is of any size.
    d.one_of(
        f"{x}.norm()",
        f"torch.linalg.vector_norm({x}, {order}, dim={dims})",
        f"torch.norm({x}, {order}, {d.dim(x)}, keepdim={d.flag()})",
        f"torch.nn.functional.normalize({x}, dim={d.dim(x)}, eps=0.25)",
        f"torch.std_mean({x}, {d.dim(x)})[{d.pick(0, 1)}]",
        f"torch.var_mean({x}, {d.dim(x)})[{d.pick(0, 1)}]",
        f"torch.aminmax({x}, dim={d.dim(x)})[{d.pick(0, 1)}]",
        f"torch.renorm({x}, 2, 0, 1.0)",
        f"torch.quantile({x}.detach(), {d.pick(0.5, 0.25, 1.0)}, dim={d.dim(x)})",
        f"torch.dist({x}, {d.partner(x)})",
    )


@step(3)
def picked(d: Draw) -> None:
    x, name = d.tensor(), d.rng.choice(PICKS)
    dim = d.dim(x)
    if name in ("sort", "argsort"):
        d.let(f"torch.{name}({x}, dim={dim}, descending={d.flag()}, stable=True)")
        return
    if name in ("median", "mode", "nanmedian", "kthvalue", "topk"):  # which one of equal elements is not said
        # torch sorts lines in place also where elements share memory, so that they take another line's.
        own = f"{x}.detach()" if alone(d.value(x)) else f"{x}.detach().contiguous()"
        if name == "mode" and d.value(x).is_floating_point():
            own = f"torch.nan_to_num({own})"  # with NaN torch's depends on the line's order
        call = f"torch.{name}({own}, {1 if name in ('topk', 'kthvalue') else dim}" + (
            f", dim={dim})" if name in ("topk", "kthvalue") else ")"
        )
        d.let(f"{call}[0]")
        return
    d.let(f"torch.{name}({x}, {dim})")


@step(2)
def scanned(d: Draw) -> None:
    x, name = d.tensor(), d.rng.choice(SCANS)
    wider = name != "logcumsumexp" and d.chance(0.3)
    if name == "cumprod" and d.value(x).is_complex():
        wider = False  # torch's gradient through the real parts alone is that of the complex products
    dtype = f", dtype=torch.{d.pick('float64', 'float32', 'int64', 'complex128')}" if wider else ""
    d.let(f"torch.{name}({x}, {d.dim(x)}{dtype})")


@step(1)
def shifted(d: Draw) -> None:
    x = d.tensor()
    wide = f"{x}.long()" if tensor_dtype(d.value(x)) in NARROW else x  # torch adds the ends in their dtype
    d.one_of(
        f"torch.roll({x}, {d.pick(1, -2, 3)}, {d.dim(x)})",
        f"torch.flip({x}, {d.dims(x)})",
        f"torch.diff({x}, dim={d.dim(x)})",
        f"torch.tril({x}, {d.pick(0, 1, -1)})",
        f"torch.triu({x}, {d.pick(0, 1, -1)})",
        f"torch.rot90({x}, 1, (0, 1))",
        f"{x}.repeat({', '.join(['2'] * max(d.value(x).dim(), 1))})",
        f"torch.repeat_interleave({x}, 2, dim={d.dim(x) if d.value(x).dim() else None})",
        f"torch.tile({x}, (2,))",
        f"torch.trapezoid({wide}.reshape(-1))",
        f"torch.diag_embed({x}.reshape(-1)[:300])",
        f"torch.bucketize({x}, torch.tensor([-1., 0., .5, 2.]).to({x}.dtype))",
        f"torch.unique({x})",
        f"torch.histc({x}.double(), 4, -2, 2)",
        f"torch.nonzero({x})",
        f"torch.bincount(torch.nan_to_num({x}.flatten()).clamp(0, 50).long())",
    )


@step(2.5)
def joined(d: Draw) -> None:
    x = d.tensor()
    shape, dim = d.value(x).shape, d.dim(x)
    y = d.tensor(lambda t: t.shape == shape)
    third = d.tensor(lambda t: t.shape == shape)
    if d.value(x).numel() > MOST // 4:
        raise Skip
    d.one_of(
        f"torch.cat([{x}, {y}, {third}], {dim})",
        f"torch.cat([{x}, {y}], {dim})",
        f"torch.stack([{x}, {y}], {dim})",
        f"torch.hstack([{x}, {y}])",
        f"torch.column_stack([{x}, {y}])",
        f"torch.cat([{x}, torch.ones(0), {y}], {dim})",
        f"torch.block_diag({x}.reshape(-1)[:9], {y}.reshape(-1)[:9])",
        f"torch.vstack([{x}, {third}])",
        f"torch.cat([{x}, {y}.narrow({dim}, 0, 1)], {dim})",
        f"torch.stack([{x}, {y}, {third}]).sum({d.pick(0, -1)})",
    )


@step(4)
def multiplied(d: Draw) -> None:
    """Products of matrices, with a second operand made to fit."""
    x = d.real(rank=1)
    shape, dtype = tuple(d.value(x).shape), tensor_dtype(d.value(x))
    inner, width = shape[-1], d.pick(1, 2, 3, 5, 17, 33)
    if d.value(x).numel() * width > 1_000_000 or inner > 2000:
        raise Skip
    weight = d.make((inner, width), dtype, d.flag())
    rows = f"{x}.reshape(-1, {inner})"
    d.one_of(
        f"{x} @ {weight}",
        f"torch.matmul({x}, {weight})",
        f"torch.nn.functional.linear({x}, {weight}.t())",
        f"torch.nn.functional.linear({x}, {weight}.t(), {weight}[0])",
        f"{rows}.mm({weight})",
        f"torch.addmm({weight}[0], {rows}, {weight}, beta={d.pick(1, 0.5, 0)}, alpha={d.pick(1, 2)})",
        f"{rows}.mv({weight}[:, 0])",
        f"torch.einsum('...i,ij->...j', {x}, {weight})",
        f"torch.einsum('ij,kj->ik', {rows}, {weight}.t())",
        f"torch.tensordot({x}, {weight}, dims=1)",
        f"{weight}.t() @ {x}.reshape(-1, {inner}).t()",
        f"torch.outer({x}.flatten()[:9], {weight}[:, 0])",
        f"torch.kron({rows}[:3].clone(), {weight}[:, :1].clone())",
        f"torch.bmm({x}.reshape(1, -1, {inner}), {weight}[None])",
        f"torch.baddbmm({weight}[None, :1], {x}.reshape(1, -1, {inner}), {weight}[None])",
        f"torch.cdist({rows}, {weight}.t())",
        f"torch.chain_matmul({rows}, {weight}, {weight}.t())",
        f"torch.linalg.multi_dot([{rows}, {weight}, {weight}.t()])",
    )


@step(1)
def solved(d: Draw) -> None:
    """Linear algebra of a matrix far from singular."""
    n = d.pick(1, 2, 3, 5, 9)
    m = d.make((n, n), d.pick("float64", "float64", "float32"), d.chance(0.6))
    good = f"({m} @ {m}.mT + {n} * torch.eye({n}, dtype={m}.dtype))"
    right = d.make((n, 2), tensor_dtype(d.value(m)), d.chance(0.4))
    solution = d.pick(
        f"torch.linalg.inv({good})",
        f"torch.linalg.cholesky({good})",
        f"torch.linalg.det({good})",
        f"torch.linalg.slogdet({good})[1]",
        f"torch.linalg.solve({good}, {right})",
        f"torch.cholesky_solve({right}, torch.linalg.cholesky({good}))",
        f"torch.linalg.solve_triangular({good}.tril(), {right}, upper=False)",
        f"torch.linalg.eigvalsh({good})",
        f"torch.linalg.svdvals({good})",
        f"torch.linalg.matrix_power({good}, {d.pick(0, 1, 2, 3, -1)})",
        f"torch.linalg.matrix_exp({good} / {4 * n})",
        f"torch.linalg.pinv({good})",
        f"torch.linalg.lu_solve(*torch.linalg.lu_factor({good}), {right})",
        f"torch.trace({good})",
        f"torch.linalg.matrix_norm({good}, {d.pick(2, 1, repr('fro'), repr('nuc'))})",
    )
    # In torch most lie column by column, in Mica row by row; a copy of either is not what is saved for backward.
    d.let(f"{solution}.clone(memory_format=torch.contiguous_format)")


@step(0.7)
def transformed(d: Draw) -> None:
    x = d.tensor(
        lambda t: tensor_dtype(t) in ("float64", "float32", "complex64", "complex128") and t.numel() > 0
    )
    real = d.value(x).is_floating_point()
    d.let(
        f"torch.fft.{d.pick('fft', 'ifft', 'rfft' if real else 'fftn', 'fftshift', 'ifftn')}({x}).{d.pick('abs().square()', 'real.clone()', 'conj()')}"
    )
