"""Expressions that random programs (test/programs) found to differ between torch and Mica; `M` is the library."""

from __future__ import annotations

import pytest
import torch
from test_expressions_torch import outcome

import mica

EXPRESSIONS = """
[M.logsumexp(x.requires_grad_(), (), keepdim=True) for x in (M.tensor(2.), M.tensor([1., 2.]), M.zeros(0, 2), M.ones(2, 3))]
[M.trapezoid(M.zeros(*s, requires_grad=True)).requires_grad for s in ((0,), (1,), (2, 0), (2, 2))]
[M.trapezoid(x.to(t), dx=d) for x in (M.full((39306,), 1.), M.arange(9).reshape(3, 3), M.ones(2, 0), M.ones(1)) for t in (M.float16, M.float64, M.complex128, M.int64) for d in (1, .5)]
[f(M.tensor([[1 + 2j, 5 + 1j], [3 + 4j, 1 + 1j]]), d, dtype=t) for f in (M.cumsum, M.cumprod) for d in (0, 1) for t in (M.float64, M.float32, M.int64, M.complex128)]
[f(M.tensor([[1 + 2j], [3 + 4j], [2 - 1j]]).expand(3, n), 1, out=M.zeros(3, n)) for f in (M.cumsum, M.cumprod) for n in (1, 2, 40)]
[f(M.tensor(x), *d, dtype=M.bool) for f in (M.sum, M.nansum, M.prod) for x in ([.5, .25], [.5, -.5], [float('nan'), 0.], [1, -1], [2, 0], [256, 0], [1j, 0.]) for d in ((), (0,)) if not (f is M.nansum and x[0] == 1j)]
[M.nansum(M.tensor(x, dtype=s), *d, dtype=t) for x in ([float('nan')], [1.5, 1.5, float('nan')], [float('nan'), 2., 3.] * 9) for s in (M.float32, M.float64, M.bfloat16) for d in ((), (0,)) for t in (M.int64, M.int32, M.uint8, M.bool, M.float64, M.float32)]
[f(M.tensor(x), 0, out=M.zeros([], dtype=M.bool)) for f in (M.sum, M.prod) for x in ([.5, .25], [.5, -.5], [0., 0.], [256, 256])]
[f(M.tensor(x, dtype=t), dim=(), **k) for f in (M.any, M.all) for x in ([[1, 0], [0, 2]], 2, []) for t in (M.int64, M.bool, M.uint8, M.float32) for k in ({}, {'keepdim': True})]
[f(M.tensor([[1, 0], [0, 2]]), dim=(), out=M.zeros(0, dtype=M.bool)) for f in (M.any, M.all)]
[f(M.tensor([[1., 0.], [0., 2.]]), **k) for f in (M.any, M.all) for k in ({'dim': None}, {'dim': None, 'keepdim': True}, {'dim': (0, 1)}, {'dim': (1,), 'keepdim': True})]
[(y.requires_grad, y.detach(), M.autograd.grad(y.sum(), x)) for n in (0, 1, 2) for x in [M.eye(2).mul(3).expand(2, 2, 2).clone().requires_grad_()] for y in [M.linalg.matrix_power(x, n)]]
[y.requires_grad for x in [M.eye(2, requires_grad=True)] for y in (M.heaviside(x, M.ones(2)), M.heaviside(M.ones(2), x), M.ones(2, 2).heaviside_(x), M.heaviside(x.detach(), x.detach()), *M.unique(x, return_inverse=True), M.unique(x), *M.geqrf(x), *M.linalg.ldl_factor_ex(x), M.linalg.ldl_factor(x)[0], M.normal(x, 1.), M.normal(1., x * x), M.normal(x, x * x))]
M.unique(M.ones(2, requires_grad=True)).sum().backward()
[M.autograd.grad(M.normal(x, s).sum(), x) for x in [M.ones(2, requires_grad=True)] for s in (1., M.ones(2))]
[M.autograd.grad(f([x, y]).sum(), x)[0] for f in (M.cat, M.block_diag, M.hstack, M.vstack, M.stack) for x in [M.ones(2, 2, requires_grad=True)] for y in [M.ones(2, 2)]]
[(v.sum().backward(), x.grad) for f in (M.cat, M.block_diag, M.hstack, M.vstack, M.stack) for x in [M.ones(2, 2, requires_grad=True)] for y in [M.ones(2, 2)] for v in [f([x, y])] if y.fill_(2) is not None]
[(v.mul(v).sum().backward(), x.grad, e.grad) for x in [M.ones(2, 2, requires_grad=True)] for e in [M.ones(0, requires_grad=True)] for v in [M.cat([e, x, x * 2], -1)]]
[(M.block_diag(*x).square().sum().backward(), [t.grad for t in x]) for x in [[M.ones(s, requires_grad=True) for s in ((), (2,), (2, 3), (0,), (1, 0))]]]
[(l.detach(), M.autograd.grad(l.sum(), x)) for p in (1, 2) for r in ('none', 'mean', 'sum') for x in [M.tensor([[float('nan'), 1., 2.], [1., 2., 2.], [1., float('nan'), 0.], [2., 1., 1.]], requires_grad=True)] for l in [M.nn.functional.multi_margin_loss(x, M.tensor([0, 1, 0, 0]), p=p, reduction=r)]]
[(l.detach(), M.autograd.grad(l.sum(), x)) for x in [M.tensor([[float('nan'), 1., 2.], [1., 2., 2.], [1., float('nan'), 0.], [2., 1., 1.]], requires_grad=True)] for l in [M.nn.functional.multilabel_margin_loss(x, M.tensor([[0, 1, -1], [1, -1, 0], [0, 2, -1], [0, -1, -1]]), reduction='none')]]
[M.autograd.grad(f(x, *d).sum(), x) for f in (M.amax, M.amin, M.max, M.min) for d in ((), (0,), (1,)) for x in [M.tensor([[float('nan'), 1., 2.], [1., 2., 2.]], requires_grad=True)] if not (d and f in (M.max, M.min))]
[M.autograd.grad(f(x, correction=c, **d).sum(), x) for f in (M.var, M.std) for c in (0, 1, 2, 3) for d in ({}, {'dim': 0}) for y in ([1., 2.], [1., 1.], [float('nan'), 1.], 2.) for x in [M.tensor(y, requires_grad=True)]]
[f(M.ones(2, 3), out=M.zeros(s).T) for s in ((), (1, 1), (4, 5)) for f in (M.sin, lambda x, out: M.sum(x, 1, out=out), lambda x, out: M.cat([x, x], out=out), lambda x, out: M.matmul(x, x.T, out=out))]
[(M.autograd.grad(y.sum(), b), a.grad) for a in [M.ones(1)] for b in [M.full((1,), 3., requires_grad=True)] for y in [M.tensordot(a, b, dims=1)] if a.mul_(2) is not None]
[M.autograd.grad(y.sum(), b) for b in [M.arange(6.).reshape(2, 3).requires_grad_()] for a in [b * 1] for y in [M.nn.functional.adaptive_avg_pool1d(a, 1)] if a.mul_(2) is not None]
[M.autograd.grad(y.sum(), b) for b in [M.full((2,), .5, requires_grad=True)] for y in [M.erfinv(b), (b * 1).erfinv_()] if y.mul_(2) is not None]
[M.autograd.grad((q * w).sum() + (r * w).sum(), b)[0].mul(1e4).round() for w in [M.tensor([[1., 2.], [3., 5.]])] for b in [M.tensor([[2., 1.], [1., 3.]], requires_grad=True)] for a in [b * 1] for q, r in [M.linalg.qr(a)] if a.mul_(2) is not None]
[(M.autograd.grad(roots, [inputs[k] for k in picked], retain_graph=True), [t.grad for t in (v, w, u)]) for picked in ([0], [1], [2], [3], [4], [2, 4], [0, 1]) for a, b in [(M.tensor(1., requires_grad=True), M.tensor(2., requires_grad=True))] for v in [a * 2] for w in [v * 3] for u in [b * v] if [t.retain_grad() for t in (v, w, u)] for inputs in [(a, b, v, w, u)] for roots in ([w, u], [u, u])  if not (roots[0] is u and 3 in picked)]
[f(M.empty_strided(s, t)).stride() for f in (M.exp, M.isnan, lambda x: x + x.clone()) for s, t in (((4, 1, 3), (6, 2, 2)), ((4, 1, 3), (3, 7, 1)), ((4, 1, 3), (3, 1, 1)), ((1, 3), (1, 1)), ((1, 3), (9, 1)), ((3, 1), (1, 1)), ((3, 1), (1, 3)), ((1, 1, 2), (2, 9, 1)))]
[tuple(M.cat([M.ones(0)] * n, d).shape) for n in (1, 2) for d in (0, 1, 2, -1, -3)]
[(M.cat([M.ones(0), M.ones(2, 3)], d)).shape for d in (0, 1)]
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(EXPRESSIONS)))
def test_expression(number: int) -> None:
    expression = EXPRESSIONS[number]
    assert outcome(mica, expression) == outcome(torch, expression), expression
