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
M.arange(6)[None, M.tensor(2)]
""".strip().splitlines()

RANDOM = """
M.randn(5)
M.randn(20)
M.rand(5)
M.randint(0, 10, (5,))
M.randperm(10)
M.randn(3, dtype=M.float64)
M.nn.Linear(3, 2).weight
M.nn.Conv2d(1, 2, 3).bias
M.nn.Embedding(3, 2).weight
M.normal(0., 1., (4,))
M.nn.init.xavier_uniform_(M.empty(2, 3))
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


@pytest.mark.parametrize("seed", [0, 1, 12345])
@pytest.mark.parametrize("expression", RANDOM)
def test_random_stream(expression: str, seed: int) -> None:
    torch.manual_seed(seed)
    mica.manual_seed(seed)
    assert outcome(mica, expression) == outcome(torch, expression)
