"""The programs of docs/guides/memory-of-backward.md, with what they give."""

# ruff: noqa: ANN001, ANN201, ANN204

import tempfile
from pathlib import Path

import mica

net = mica.nn.Sequential(*(mica.nn.Linear(16, 16) for _ in range(8)))
x = mica.ones(4, 16)


def gradients():
    return [p.grad for p in net.parameters()]


net(x).sum().backward()
expected = [g.clone() for g in gradients()]
net.zero_grad()

# snippet: disk
from mica.autograd import graph  # noqa: E402


class OnDisk:
    """Keeps what is saved for backward in files of a folder."""

    def __init__(self, folder, at_least=1024):
        self.folder, self.at_least, self.count = Path(folder), at_least, 0

    def pack(self, tensor):
        if tensor.nbytes < self.at_least or isinstance(tensor, mica.nn.Parameter):
            return tensor
        self.count += 1
        path = self.folder / f"{self.count}.pt"
        mica.save(tensor.detach(), path)
        return path

    def unpack(self, packed):
        return mica.load(packed) if isinstance(packed, Path) else packed


with tempfile.TemporaryDirectory() as folder:
    disk = OnDisk(folder, at_least=128)
    with graph.saved_tensors_hooks(disk.pack, disk.unpack):
        loss = net(x).sum()
    loss.backward()
# end snippet
assert disk.count > 0
assert all(mica.allclose(a, b) for a, b in zip(gradients(), expected))
net.zero_grad()

# snippet: cpu
with graph.save_on_cpu(pin_memory=False):
    loss = net(x).sum()
loss.backward()
# end snippet
assert all(mica.allclose(a, b) for a, b in zip(gradients(), expected))
net.zero_grad()

# snippet: checkpoint
from mica.utils.checkpoint import checkpoint, checkpoint_sequential  # noqa: E402


def forward(x):
    for block in net:
        x = checkpoint(block, x, use_reentrant=False)  # keeps x alone
    return x


forward(x).sum().backward()
checkpoint_sequential(net, 4, x, use_reentrant=False)  # the same for a Sequential, in four parts
# end snippet
assert all(mica.allclose(a, b) for a, b in zip(gradients(), expected))
net.zero_grad()

# snippet: selective
from functools import partial  # noqa: E402

from mica.utils.checkpoint import create_selective_checkpoint_contexts  # noqa: E402

products = [mica.ops.mica.mm.default, mica.ops.mica.addmm.default]  # or policy(context, operator, *args)
contexts = partial(create_selective_checkpoint_contexts, products)
checkpoint(net, x, use_reentrant=False, context_fn=contexts).sum().backward()
# end snippet
assert all(mica.allclose(a, b) for a, b in zip(gradients(), expected))
net.zero_grad()

# snippet: mutation
with graph.allow_mutation_on_saved_tensors():
    weight = mica.ones(3, requires_grad=True)
    state = weight * 2
    loss = state.sin().sum()
    state.zero_()  # sin's backward needs what stood here: it is copied now
    loss.backward()
# end snippet
assert mica.allclose(weight.grad, 2 * mica.full((3,), 2.0).cos())

# snippet: look
loss = net(x).square().mean()
node = loss.grad_fn
assert node.name() == "MeanBackward0"
((square, number),) = node.next_functions
kept = square._saved_self  # the output of the network
picture = graph.draw(loss, params=net)  # or graph.draw(loss, "graph.svg", params=net)
# end snippet
assert kept.shape == (4, 16) and "0.weight" in picture
