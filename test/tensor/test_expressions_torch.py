"""Expressions that must print alike in torch and in Mica: reprs, operators,
conversions, creation, modules, random streams. `M` is the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mica

EXPRESSIONS = """
M.arange(2000)
M.arange(12.).reshape(3, 4)
M.tensor([1e-5, 1., 1000.])
M.tensor([1.5, float('nan'), float('inf')])
M.tensor([float('inf'), 1.])
M.tensor(3)
M.tensor(3.5)
M.tensor([])
M.zeros(0, 3)
M.tensor([True, False])
M.tensor([1, 2], dtype=M.int32)
M.tensor([1 + 2j, 3 - 4.5j])
M.tensor([[1e10, 1.]])
M.arange(10000.).reshape(100, 100)
M.ones(2, 2, 2, 2)
M.tensor([1., 2.], dtype=M.float64)
M.tensor([1., 2.], dtype=M.float16)
M.tensor([1., 2.], dtype=M.bfloat16)
M.tensor([1., 2.], requires_grad=True)
M.tensor([1., 2.], requires_grad=True) + M.ones(2)
M.empty(2, 3, device='meta')
M.tensor([0., 0.])
(lambda g: M.autograd.grad(M.nn.functional.grid_sample(M.arange(12.).reshape(1, 1, 3, 4), g, padding_mode='border', align_corners=True).sum(), g)[0].abs())(M.tensor([[[[-1., .25], [1., .25], [.3, -1.], [.3, 1.], [-.75, .1], [-2., .1]]]], requires_grad=True))
(lambda g: M.autograd.grad(M.nn.functional.grid_sample(M.arange(12.).reshape(1, 1, 3, 4), g, padding_mode='border', align_corners=False).sum(), g)[0].abs())(M.tensor([[[[-1., .25], [1., .25], [.3, -1.], [.3, 1.], [-.75, .1], [-2., .1]]]], requires_grad=True))
(lambda g: M.autograd.grad(M.nn.functional.grid_sample(M.arange(12.).reshape(1, 1, 3, 4), g, padding_mode='reflection', align_corners=True).sum(), g)[0].abs())(M.tensor([[[[-1., .25], [1., .25], [.3, -1.], [.3, 1.], [-.75, .1], [-2., .1]]]], requires_grad=True))
(lambda g: M.autograd.grad(M.nn.functional.grid_sample(M.arange(12.).reshape(1, 1, 3, 4), g, padding_mode='reflection', align_corners=False).sum(), g)[0].abs())(M.tensor([[[[-1., .25], [1., .25], [.3, -1.], [.3, 1.], [-.75, .1], [-2., .1]]]], requires_grad=True))
M.zeros(0).double().std(correction=-5)
M.var_mean(M.zeros(0, 3), 0, correction=-5)
M.zeros(2, 3).half().t().half(memory_format=M.contiguous_format).stride()
M.zeros(2, 3, 4, 5).permute(0, 2, 3, 1).to(memory_format=M.contiguous_format).stride()
M.zeros(2, 3, 4, 5).contiguous(memory_format=M.channels_last).to(memory_format=M.contiguous_format).stride()
M.trapezoid(M.zeros(0, dtype=M.int8))
M.trapz(M.zeros(2, 0, dtype=M.int32), M.zeros(2, 0))
M.unique_consecutive(M.zeros(0, 2), return_inverse=True)
M.logsumexp(M.zeros(3, 0, dtype=M.complex64), 1)
M.repeat_interleave(M.ones(3), M.tensor([1, 2, 3]), output_size=7)
M.repeat_interleave(M.ones(3), M.tensor([1, 2, 3]), output_size=6)
M.nn.functional.embedding_bag(M.tensor([0, 1]), M.zeros(0, 3), M.tensor([0]))
M.zeros(()).index_copy(0, M.zeros(0, dtype=M.int64), M.zeros(()))
M.zeros(()).index_add(0, M.zeros(0, dtype=M.int64), M.zeros(()))
M.nn.functional.cross_entropy(M.zeros(4, 0, 1, 0), M.zeros(4, 1, 0, dtype=M.int64))
M.func.jvp(lambda x: x.as_strided((2,), (1,), 0), (M.arange(4.)[1:3],), (M.ones(2),))
M.div(2, M.tensor([1., 3.]), rounding_mode='floor')
M.div(255, M.tensor([7, 3]), rounding_mode='trunc')
M.div(2, M.tensor([1, 3]))
M.add(2, M.tensor([1, 3], dtype=M.int8), alpha=2)
M.sub(2.5, M.tensor([1, 3]))
M.mul(True, M.tensor([1, 3]))
M.mul(2, 3)
M.floor_divide(7, M.tensor([2, 3]))
M.true_divide(1, M.tensor([2, 4]))
M.bitwise_and(6, M.tensor([3, 5]))
M.remainder(7, M.tensor([2., 4.]))
M.tensor([1e-8])
M.tensor([123456789.])
M.tensor([0.1, 100.])
M.tensor([100000., 0.5])
M.tensor([[-1, 22], [333, 4]])
M.zeros(3, 0, 2, dtype=M.int64)
M.tensor(1 + 1e-9j)
M.ones(1001)
M.eye(40)
M.tensor([[1., float('-inf')], [0.001, 3]])
M.tensor([1.5], dtype=M.float8_e5m2)
M.Size([1, 2])
M.Size([1, 2]) + M.Size([3])
M.float32
M.device('cpu')
M.strided
M.channels_last
M.finfo(M.float32)
M.iinfo(M.int8)
M.finfo(M.bfloat16).eps
M.nn.Parameter(M.ones(2))
M.nn.Linear(2, 3)
M.nn.Sequential(M.nn.Conv2d(1, 2, 3, padding=1, bias=False), M.nn.BatchNorm2d(2), M.nn.Dropout(0.1), M.nn.GELU())
M.nn.Sequential(M.nn.LayerNorm(3), M.nn.Embedding(3, 4), M.nn.AdaptiveAvgPool2d(1), M.nn.AvgPool2d(2), M.nn.Flatten())
M.nn.ModuleList([M.nn.ReLU(), M.nn.ReLU(), M.nn.Linear(1, 1)])
M.nn.ModuleDict({'a': M.nn.Tanh()})
M.max(M.tensor([[1., 2.], [3., 0.]]), 1)
M.topk(M.tensor([1., 3., 2.]), 2)
M.sort(M.tensor([1., 3., 2.]))
M.tensor(2.5).item()
f'{M.tensor(2.5):.3f}'
float(M.tensor(2))
int(M.tensor(2.7))
bool(M.tensor(0))
bool(M.tensor([0, 1]))
len(M.ones(3, 2))
len(M.tensor(1))
list(M.arange(3))
3 in M.arange(5)
M.arange(6).reshape(2, 3).T
M.ones(2, 3).shape.numel()
2 - M.ones(2)
2 / M.tensor([1., 4.])
2 ** M.tensor([1., 4.])
5 // M.tensor([2, 3])
-5 % M.tensor([3, 4])
M.tensor([5, 7]) & 3
~M.tensor([True])
M.tensor([1, 2]) < 2
M.tensor([1, 2]) == None
M.tensor([1, 2]) << 1
M.tensor([1.5]) // 1
M.tensor([3]) / 2
M.tensor([1, 2]) @ M.tensor([3, 4])
M.promote_types(M.int32, M.float16)
M.result_type(M.tensor([1]), 1.5)
M.can_cast(M.float32, M.int32)
M.tensor(np.arange(3))
M.tensor(np.float32(1.5))
M.tensor([np.float64(1.5), 2])
M.from_numpy(np.ones((2, 2), np.int16))
M.tensor([[1, 2], [3]])
M.tensor('a')
M.full((2,), 7)
M.arange(1, 10, 3)
M.linspace(0, 1, 5)
M.zeros(2, 3).view(3, 2).shape
M.zeros(2, 3).permute(1, 0).stride()
M.zeros(2, 3).expand(4, 2, 3).stride()
M.zeros(2, 3).sum(dim=0, keepdim=True).shape
M.zeros(2, 3).sum(axis=0).shape
M.zeros(2, 3).new_tensor([1, 2])
M.zeros(2).type()
M.zeros(2).to(M.float64)
M.zeros(2).to(M.zeros(1, dtype=M.int32))
M.where(M.tensor([True, False]), 1., 2.)
M.einsum('ij,jk->ik', M.ones(2, 3), M.ones(3, 2))
M.zeros(3).split(2)
M.meshgrid(M.arange(2), M.arange(3), indexing='ij')
M.broadcast_shapes((2, 1), (3,))
M.nn.functional.one_hot(M.tensor([0, 2]), 3)
M.nn.functional.softmax(M.zeros(2, 2), dim=1)
M.tensor([1, 2, 3]).repeat_interleave(2)
M.unique(M.tensor([3, 1, 2, 2]))
M.add(M.ones(2), M.ones(2), alpha=3)
M.add(M.ones(2), 2, alpha=3)
M.add(M.ones(2), 'a')
M.add(M.ones(2))
M.add(M.ones(2), M.ones(2), beta=3)
M.ones(2) + M.ones(3)
M.ones(2, 3) @ M.ones(2, 3)
M.ones(2).view(3)
M.ones(2)[2]
M.ones(2)[::-1]
M.ones(2).sum(3)
M.ones(2).no_such_attribute
M.tensor([1, 2, 3]).numpy()
M.Generator().initial_seed()
M.ones(2, 3)[None, ..., 0]
M.arange(24).reshape(2, 3, 4)[:, [0, 2]]
M.arange(24).reshape(2, 3, 4)[M.tensor([0, 1]), :, M.tensor([1, 2])]
M.arange(24).reshape(2, 3, 4)[..., M.tensor([True, False, True, False])]
M.arange(24).reshape(2, 3, 4)[1, 1:, ::2]
M.arange(6)[M.arange(6) > 2]
M.arange(6)[True]
M.arange(6.).reshape(2, 3).norm(dim=1)
M.arange(6.).reshape(2, 3).norm(p=1, dim=0, keepdim=True)
M.arange(6.).norm('fro', dtype=M.float64)
M.norm(M.arange(6.), 3)
M.tensor(5)[:]
M.arange(6).reshape(2, 3)[[1, 0], [0, 1, 2]]
M.arange(6).reshape(2, 3)[[[1], [0]], [0, 1, 2]]
M.arange(3).__setitem__(slice(1, 1), M.tensor([9, 8]))
M.empty(0, 3).copy_(M.ones(2))
M.empty(0, 3).copy_(M.ones(3))
M.arange(4.).where(M.arange(4) > 1, M.tensor(9.))
M.nn.ParameterDict({'a': M.nn.Parameter(M.ones(2, 3))})
M.nn.Linear(2, 2).load_state_dict({'weight': M.ones(2, 2), 'more': M.ones(1)}, strict=False)
M.nn.Conv2d(1, 1, 3, padding_mode='sideways')
M.nn.ConvTranspose2d(1, 1, 3, padding_mode='reflect')
M.utils.data.default_collate([{'a': 1, 'b': M.ones(2)}, {'a': 2, 'b': M.zeros(2)}])
M.utils.data.ConcatDataset([range(3), range(4)])[-4]
list(M.utils.data.BatchSampler(M.utils.data.SequentialSampler(range(5)), 2, True))
M.arange(6)[None, M.tensor(2)]
M.arange(24).reshape(2, 3, 4)[..., ...].shape
M.arange(24).reshape(2, 3, 4)[..., 0, ...].shape
M.arange(24).reshape(2, 3, 4)[..., ..., 0].shape
M.arange(24).reshape(2, 3, 4)[..., 0, ..., 0].shape
M.arange(24).reshape(2, 3, 4)[0, ..., ...].shape
M.arange(24).reshape(2, 3, 4)[..., None, ...].shape
M.arange(24).reshape(2, 3, 4)[..., M.tensor([0, 1]), ...].shape
M.arange(24).reshape(2, 3, 4)[..., ..., M.tensor([0, 1])].shape
M.arange(24).reshape(2, 3, 4)[..., ..., ...].shape
M.arange(24).reshape(2, 3, 4)[0, 0, 0, ..., ...].shape
M.tensor(3)[..., ...]
(lambda x: (x.__setitem__(False, 1), x))(M.zeros(3))
(lambda x: (x.__setitem__(False, M.ones(3)), x))(M.zeros(3))
(lambda x: (x.__setitem__(False, M.ones(2)), x))(M.zeros(3))
(lambda x: (x.__setitem__(True, M.ones(3)), x))(M.zeros(3))
(lambda x: (x.__setitem__(True, 7), x))(M.zeros(3))
(lambda x: (x.__setitem__((False, 0), 1), x))(M.zeros(3))
(lambda x: (x.__setitem__((0, False), 1), x))(M.zeros(3))
(lambda x: (x.__setitem__((False, False), 1), x))(M.zeros(3))
(lambda x: (x.__setitem__((True, False), 1), x))(M.zeros(3))
(lambda x: (x.__setitem__((False, True), 1), x))(M.zeros(3))
(lambda x: (x.__setitem__(M.tensor(False), 1), x))(M.zeros(3))
(lambda x: (x.__setitem__(M.tensor(True), 1), x))(M.zeros(3))
M.zeros(3)[False]
M.zeros(3)[False, 0]
M.zeros(3)[True, False]
M.zeros(3)[False, True].shape
M.zeros(3)[True, True].shape
M.zeros(3)[True, 0].shape
M.zeros(3)[M.tensor([0, 1]), True].shape
M.zeros(3)[M.tensor([0, 1]), False].shape
M.ones(0).max()
M.ones(0).min()
M.ones(0).amax()
M.ones(0).argmax()
M.ones(0).aminmax()
M.ones(0).median()
M.ones(0).sum()
M.ones(0).mean()
M.ones(0, 3).max(0)
M.ones(3, 0).max(0)
M.ones(0).std()
M.ones(0).kthvalue(1)
M.ones(0).cummax(0)
M.ones(0).argmin(0)
M.max(M.ones(0))
M.ones(0).logsumexp(0)
M.zeros(3).t_().shape
M.zeros(2, 3).t_().stride()
M.zeros(2, 3, 1).squeeze_(2).shape
M.zeros(1, 2, 1).squeeze_((0, 2)).shape
M.zeros(1, 2, 1).squeeze_().shape
M.zeros(2, 3, 4).transpose_(0, 2).stride()
M.zeros(2, 3, 4).swapaxes_(0, -1).shape
M.zeros(2, 3, 4).swapdims_(0, 1).shape
M.zeros(6).as_strided_((2, 2), (1, 2)).shape
M.zeros(6).as_strided_((2, 2), (1, 2), 1).storage_offset()
M.zeros(2, 3, 4).t_()
M.zeros(2).unsqueeze_(5)
M.zeros(2).transpose_(0, 3)
M.zeros(2, 3).unsqueeze_(-1).shape
M.zeros(2, 3).squeeze_(5)
M.tensor([[1], [2]]).squeeze_(-1)._version
M.ones(2, 3, requires_grad=True).t_()
M.ones(2, 3, requires_grad=True)[0].unsqueeze_(0)
M.ones(2, 1, requires_grad=True).unbind()[0].squeeze_()
M.ones(2, 3, requires_grad=True).detach().t_()
[(x.squeeze_() is x, x.shape, x._base.shape) for x in [M.zeros(3, 1)[:2]]]
""".strip().splitlines()

# Of x, what grad_fn is called: the node's name as torch's users see it.
NODES = """
(x*2)
(2*x)
(x*M.tensor(2.))
(x/2)
(2/x)
(x+2)
(x-2)
(2-x)
(x**2)
(2**x)
(x**M.ones(2))
(x%2)
(-x)
(abs(x))
(x@M.ones(2, 2))
(x@M.ones(2))
x[0]
x[0:1]
x[[0]]
x[None]
x.sum()
x.sum(0)
x.mean()
x.max()
x.max(0)[0]
x.view(4)
x.reshape(4)
x.t()
x.T
x.transpose(0, 1)
x.clone()
x.exp()
x.softmax(0)
x.to(M.float64)
x.norm()
x.std()
x.flatten()
x.clamp(0, 1)
x.relu()
M.nn.functional.gelu(x)
M.nn.functional.cross_entropy(x, M.tensor([0, 1]))
M.nn.functional.layer_norm(x, [2])
M.nn.functional.dropout(x)
M.nn.Linear(2, 2)(M.ones(2, 2))
M.nn.Linear(2, 2, bias=False)(M.ones(2, 2))
M.nn.Conv2d(1, 1, 1)(M.ones(1, 1, 2, 2))
M.nn.BatchNorm2d(1)(M.ones(1, 1, 2, 2))
M.nn.MaxPool2d(1)(M.ones(1, 1, 2, 2, requires_grad=True))
M.nn.AvgPool2d(1)(M.ones(1, 1, 2, 2, requires_grad=True))
M.nn.AdaptiveAvgPool2d(2)(M.ones(1, 1, 2, 2, requires_grad=True))
M.nn.Embedding(2, 2)(M.tensor([0]))
M.cat([x])
M.stack([x])
M.where(M.tensor(True), x, 0.)
x.masked_fill(M.tensor(True), 0)
x.expand(3, 2, 2)
x.gather(0, M.tensor([[0]]))
x.clone().mul_(2)
x.clone().add_(2)
x.var(0)
x.prod()
x.tril()
x.squeeze(0)
x.squeeze()
x.t().contiguous()
x.sort()[0]
x.topk(1)[0]
M.addmm(M.ones(2), x, M.ones(2, 2))
M.bmm(M.ones(2, 2, 2, requires_grad=True), M.ones(2, 2, 2))
x.rsqrt()
x.cumsum(0)
x.log_softmax(0)
x.pow(3)
""".strip().splitlines()

MODULES = """
Conv2d(2, 4, 3, padding=1, padding_mode='reflect')(M.arange(50.).reshape(1, 2, 5, 5) / 50)
Conv2d(2, 4, 3, padding='same', padding_mode='circular', dilation=2)(M.arange(50.).reshape(1, 2, 5, 5) / 50)
Conv1d(2, 4, 3, padding=2, padding_mode='replicate')(M.arange(10.).reshape(1, 2, 5) / 10)
Conv3d(1, 2, 2)(M.arange(27.).reshape(1, 1, 3, 3, 3) / 27)
ConvTranspose1d(2, 2, 3, stride=2, output_padding=1)(M.arange(10.).reshape(1, 2, 5) / 10)
ConvTranspose2d(2, 4, 2, stride=2, groups=2, bias=False)(M.arange(18.).reshape(1, 2, 3, 3) / 18)
Embedding(4, 3, max_norm=1.0)(M.tensor([[0, 1], [1, 3]]))
Embedding(4, 3, max_norm=1.0, norm_type=1.0)(M.tensor([0, 2]))
PReLU()(M.arange(-2., 3.))
Mish()(M.arange(-2., 3.))
SELU()(M.arange(-2., 3.))
Hardswish()(M.arange(-2., 3.))
Hardsigmoid()(M.arange(-2., 3.))
GLU()(M.arange(-2., 2.))
Softmin(0)(M.arange(-2., 3.))
Softsign()(M.arange(-2., 3.))
Tanhshrink()(M.arange(-2., 3.))
LogSigmoid()(M.arange(-2., 3.))
RMSNorm(4)(M.arange(8.).reshape(2, 4))
RMSNorm([2, 4], eps=1e-3, elementwise_affine=False)(M.arange(8.).reshape(2, 4))
PixelShuffle(2)(M.arange(16.).reshape(1, 4, 2, 2))
ZeroPad2d((1, 0, 2, 0))(M.arange(4.).reshape(1, 1, 2, 2))
ReflectionPad2d(1)(M.arange(9.).reshape(1, 1, 3, 3))
ReplicationPad1d(2)(M.arange(3.).reshape(1, 1, 3))
CELU(2.0)(M.arange(-2., 3.))
Threshold(0.1, 2.0)(M.arange(-2., 3.))
Hardshrink()(M.arange(-2., 3.) / 3)
Softshrink(0.3)(M.arange(-2., 3.) / 3)
Softmax2d()(M.arange(8.).reshape(1, 2, 2, 2))
Mish(inplace=True)(M.arange(-2., 3.))
Hardswish(inplace=True)(M.arange(-2., 3.))
BatchNorm3d(2)(M.arange(16.).reshape(1, 2, 2, 2, 2))
InstanceNorm1d(2)(M.arange(12.).reshape(2, 2, 3).square())
InstanceNorm2d(2, affine=True, track_running_stats=True)(M.arange(16.).reshape(2, 2, 2, 2).square())
InstanceNorm2d(2)(M.arange(8.).reshape(2, 2, 2).square())
InstanceNorm3d(2, affine=True)(M.arange(16.).reshape(1, 2, 2, 2, 2).square())
AdaptiveAvgPool1d(3)(M.arange(7.).reshape(1, 1, 7))
AdaptiveMaxPool2d((2, 3))(M.arange(35.).reshape(1, 1, 5, 7))
CircularPad1d(2)(M.arange(3.).reshape(1, 1, 3))
CircularPad2d(1)(M.arange(9.).reshape(1, 1, 3, 3))
CircularPad3d(1)(M.arange(8.).reshape(1, 1, 2, 2, 2))
ConstantPad1d((1, 2), 3.5)(M.arange(3.).reshape(1, 1, 3))
ConstantPad2d(1, -1.0)(M.arange(4.).reshape(1, 1, 2, 2))
ConstantPad3d(1, 2.0)(M.arange(8.).reshape(1, 1, 2, 2, 2))
ZeroPad3d(1)(M.arange(8.).reshape(1, 1, 2, 2, 2))
ReflectionPad3d(1)(M.arange(8.).reshape(1, 1, 2, 2, 2))
ReplicationPad3d(1)(M.arange(8.).reshape(1, 1, 2, 2, 2))
Unfold(2, padding=1)(M.arange(8.).reshape(1, 2, 2, 2))
Fold((3, 3), 2)(M.arange(16.).reshape(1, 4, 4))
CosineSimilarity()(*[M.arange(6.).reshape(2, 3)] * 2)
PairwiseDistance(1.5, keepdim=True)(M.arange(6.).reshape(2, 3), M.ones(2, 3))
MSELoss(False)(M.arange(6.), M.ones(6))
NLLLoss(None, False, 1)(-M.arange(6.).reshape(2, 3), M.tensor([1, 2]))
CrossEntropyLoss(reduce=False)(M.arange(6.).reshape(2, 3), M.tensor([1, 2]))
BCELoss(None, None, False)(M.tensor([0.2, 0.4]), M.tensor([1.0, 0.0]))
""".strip().splitlines()

RANDOM = """
M.randn(5)
M.randn(20)
M.rand(5)
M.randint(0, 10, (5,))
M.empty(3, dtype=M.int64).random_()
M.empty(3, dtype=M.int16).random_()
M.empty(3).random_()
M.empty(3, dtype=M.int64).random_(5)
M.empty(3, dtype=M.int64).random_(-5, None)
M.randperm(10)
M.randn(3, dtype=M.float64)
M.nn.Linear(3, 2).weight
M.nn.Conv2d(1, 2, 3).bias
M.nn.Embedding(3, 2).weight
M.normal(0., 1., (4,))
M.multinomial(M.rand(3, 3000), 2000, True)[:, -5:]
M.multinomial(M.rand(3000, dtype=M.float64), 2000, True)[-5:]
M.multinomial(M.rand(3000).half(), 200)[-5:]
M.nn.init.xavier_uniform_(M.empty(2, 3))
M.nn.ConvTranspose2d(2, 3, 2, stride=2).weight
[b for b in M.utils.data.DataLoader(M.arange(7), 2, shuffle=True)] + [M.rand(1)]
[[b for b in M.utils.data.DataLoader(range(5), 2, shuffle=True, drop_last=True)] for epoch in range(3)]
[list(M.utils.data.DataLoader(range(5), 3, shuffle=True, generator=g)) for g in [M.Generator()] for epoch in range(3)]
list(M.utils.data.RandomSampler(range(5), replacement=True, num_samples=40))
list(M.utils.data.SubsetRandomSampler([7, 8, 9]))
[s.indices for s in M.utils.data.random_split(range(9), [5, 4])]
M.nn.init.kaiming_normal_(M.empty(4, 3))
""".strip().splitlines()


def outcome(library: Any, expression: str) -> str:
    """The text of the value, or the kind of the error."""
    try:
        text = repr(eval(expression, {"M": library, "np": np}))
    except Exception as error:  # the kinds are compared
        return f"raises {type(error).__name__}"
    return text.replace("torch.", "mica.")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression: str) -> None:
    assert outcome(mica, expression) == outcome(torch, expression)


@pytest.mark.parametrize("expression", NODES)
def test_node_name(expression: str) -> None:
    names = []
    for library in (mica, torch):
        result = eval(expression, {"M": library, "x": library.ones(2, 2, requires_grad=True)})
        names.append(result.grad_fn.name())
    assert names[0] == names[1]


@pytest.mark.parametrize("seed", [0, 1, 12345])
@pytest.mark.parametrize("expression", RANDOM)
def test_random_stream(expression: str, seed: int) -> None:
    torch.manual_seed(seed)
    mica.manual_seed(seed)
    assert outcome(mica, expression) == outcome(torch, expression)


@pytest.mark.parametrize("expression", MODULES)
def test_module(expression: str) -> None:
    """A module's repr, its parameters' start, its result and its gradients."""
    made, _, call = expression.partition(")(")
    results = []
    for library in (torch, mica):
        library.manual_seed(3)
        module = eval(f"M.nn.{made})", {"M": library})
        result = eval(f"module({call}", {"M": library, "module": module})
        if result.requires_grad:
            result.square().sum().backward()
        values = [result, *module.parameters(), *(p.grad for p in module.parameters())]
        results.append((repr(module), [v.detach().numpy() for v in values]))
    assert results[0][0] == results[1][0]
    for theirs, ours in zip(*(values for _, values in results), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_einsum_of_two_dtypes_is_refused() -> None:
    """Not computed in a third one: a float beside a half float once became int64."""
    for library in (mica, torch):
        with pytest.raises(RuntimeError):
            library.einsum("ij,jk->ik", library.ones(2, 2), library.ones(2, 2, dtype=library.bfloat16))
