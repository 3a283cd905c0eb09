"""What programs match of the errors of torch's layers, losses and optimizers stands in Mica's sentences.

Each expression is evaluated on torch and on Mica under torch's name. Mica's exception is of torch's class, and
its sentence has the first line of torch's, but for its first letter and the full stop; where only a phrase of
torch's line is meant to be matched, the table has it.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

import mica

# expression, and the phrase where it is not torch's whole first line
TABLE = """
F.linear(ones(3, 8), ones(5, 10))
F.linear(ones(2, 3, 8), ones(5, 10), ones(5))
F.linear(ones(8), ones(5, 10))
nn.Linear(10, 5)(ones(3, 8))
F.scaled_dot_product_attention(ones(1, 2, 3, 4), ones(1, 2, 3, 5), ones(1, 2, 3, 4))  ## Expected size for first two dimensions of batch2 tensor
F.conv1d(ones(1, 3, 8), ones(4, 2, 3))
F.conv2d(ones(1, 1, 8, 8), ones(8, 6, 3, 3), groups=2)
F.conv_transpose1d(ones(1, 3, 8), ones(4, 2, 3))
F.conv1d(ones(1, 3, 2), ones(4, 3, 3))
F.conv2d(ones(1, 3, 4, 4), ones(8, 3, 9, 9))
F.conv3d(ones(1, 3, 2, 2, 2), ones(4, 3, 3, 3, 3), padding=(0, 1, 1))
nn.Conv2d(3, 4, 3)(ones(3, 3))
nn.Conv2d(3, 4, 3, groups=2)
nn.Conv2d(3, 4, 3, padding_mode="foo")  ## padding_mode must be one of
nn.Conv2d(3, 4, 3, padding="foo")  ## Invalid padding string 'foo', should be one of
F.max_pool2d(ones(1, 1, 2, 2), 3)
F.avg_pool2d(ones(1, 1, 2, 2), 3)
F.avg_pool1d(ones(1, 1, 2), 3)  ## Output size is too small
F.max_pool3d(ones(1, 1, 2, 2, 2), 3)
F.batch_norm(ones(1, 4), None, None, training=True)
F.batch_norm(ones(2, 3), ones(2), ones(2))
nn.BatchNorm1d(3)(ones(2, 3, 4, 5))
nn.BatchNorm2d(3)(ones(2, 3))
nn.BatchNorm2d(3)(ones(2, 4, 5, 5))
F.instance_norm(ones(2, 3, 1))
nn.GroupNorm(3, 4)
nn.LayerNorm(4)(ones(3, 5))  ## Given normalized_shape=[4], expected input
F.interpolate(ones(1, 1, 2, 2))
F.interpolate(ones(1, 1, 2, 2), size=4, scale_factor=2)
F.pad(ones(3), (1, 2, 3))
F.pad(ones(3, 3, 3), (5, 5), mode="reflect")  ## Padding size should be less than the corresponding input dimension, but got: padding (5, 5) at dimension 2 of input [3, 3, 3]
F.pixel_shuffle(ones(1, 3, 2, 2), 2)
F.dropout(ones(3), 2.0)
nn.Dropout(-1.0)
nn.LSTM(4, 5)(ones(3, 2, 7))
nn.LSTM(4, 5)(ones(3, 2, 4), (ones(1, 3, 5), ones(1, 3, 5)))
nn.LSTM(4, 5)(ones(3, 2, 4), (ones(1, 2, 5), ones(1, 3, 5)))
nn.LSTM(4, 5)(ones(3, 4), (ones(1, 2, 5), ones(1, 2, 5)))
nn.GRU(4, 5)(ones(3, 2, 4), ones(1, 3, 5))
nn.GRU(4, 5)(ones(3, 2, 4), ones(3, 5))
nn.LSTM(4, 5)(ones(3, 2, 2, 4))
nn.LSTM(4, 5)(ones(3, 2, 4).double())
nn.MultiheadAttention(7, 2)
nn.MultiheadAttention(8, 2)(ones(3, 2, 6), ones(3, 2, 6), ones(3, 2, 6))  ## was expecting embedding dimension of 8, but got 6
nn.Transformer(8, 2)(ones(3, 2, 8), ones(3, 3, 8))
nn.Embedding(10, 3)(torch.tensor([10]))  ## index out of range
nn.Embedding(3, 4, padding_idx=5)
F.embedding(torch.tensor([1]), ones(3, 2), padding_idx=4)
nn.Embedding(10, 3)(ones(1))  ## to have one of the following scalar types: Long, Int
F.cross_entropy(ones(3, 5), ones(3))  ## expected target dtype to be Long or Byte
F.cross_entropy(ones(3, 5), torch.tensor([0, 5, 1]))
F.nll_loss(ones(3, 5), torch.tensor([0, -1, 1]))
F.cross_entropy(ones(3, 5), torch.tensor([0, 1]))
F.cross_entropy(ones(3, 5), ones(3, 5).long())  ## Expected floating point type for target with class probabilities
F.binary_cross_entropy(ones(3) * 1.5, ones(3))  ## should be between 0 and 1
F.binary_cross_entropy(ones(3, 5), ones(3))
F.binary_cross_entropy_with_logits(ones(3, 5), ones(3))
F.l1_loss(ones(3, 5), ones(4))
F.one_hot(torch.tensor([3]), 2)
nn.Linear(3, 2).load_state_dict({})
nn.Linear(3, 2).load_state_dict({"weight": ones(3, 3), "bias": ones(2)})
nn.Linear(3, 2).load_state_dict({"weight": ones(2, 3), "bias": ones(2), "x": ones(1), "y": ones(1)})
nn.Module()(1)
nn.Linear(2, 2).wieght
nn.Sequential(nn.Linear(2, 2), "relu")
nn.ModuleList([1])
nn.ModuleDict({"a": 1})
nn.Linear(2, 2).register_parameter("a.b", None)
nn.Linear(2, 2).register_buffer("weight", None)
nn.Linear(2, 2).get_submodule("x")
setattr(nn.Linear(2, 2), "weight", ones(2, 2))
setattr(nn.Sequential(nn.ReLU()), "0", 1)
setattr(object.__new__(nn.Module), "l", nn.ReLU())
nn.utils.rnn.pack_padded_sequence(ones(3, 2, 4), [1, 3])  ## `lengths` array must be sorted in decreasing order when `enforce_sorted` is True
optim.Adam([])
optim.Adam(ones(1))  ## params argument given to the optimizer should be an iterable of Tensors or dicts, but got
optim.SGD([1], lr=0.1)
optim.SGD([leaf() * 2], lr=0.1)
optim.SGD([leaf()], lr=-1)
optim.SGD([leaf()], lr=0.1, momentum=-1)
optim.SGD([leaf()], lr=0.1, weight_decay=-1)
optim.SGD([leaf()], lr=0.1, nesterov=True)
optim.Adam([leaf()], betas=(1.0, 0.9))
optim.Adam([leaf()], betas=(0.9, -1.0))
optim.Adam([leaf()], eps=-1)
optim.AdamW([leaf()], lr=-1)
optim.RMSprop([leaf()], alpha=-1)
optim.Adagrad([leaf()], lr_decay=-1)
optim.Adadelta([leaf()], rho=2)
"""


def error(library: Any, expression: str) -> Exception:
    names = {
        "torch": library,
        "nn": library.nn,
        "F": library.nn.functional,
        "optim": library.optim,
        "ones": library.ones,
        "leaf": lambda: library.ones(1, requires_grad=True),
    }
    with pytest.raises(Exception) as raised:
        eval(expression, names)
    return raised.value


@pytest.mark.parametrize("line", TABLE.strip().splitlines())
@pytest.mark.filterwarnings("ignore")
def test_the_phrase_of_torch(line: str) -> None:
    expression, _, phrase = line.partition("  ## ")
    theirs, ours = error(torch, expression), error(mica, expression)
    assert phrase in str(theirs)
    first = phrase or "\n".join(str(theirs.args[0]).splitlines()[:2]).strip(" .")
    assert first[1:] in str(ours.args[0]).replace("mica.", "torch."), f"\ntorch: {theirs}\n mica: {ours}"
    for kind in (RuntimeError, IndexError, TypeError, ValueError, KeyError, AttributeError, AssertionError):
        assert isinstance(ours, kind) == isinstance(theirs, kind), (ours, theirs)
