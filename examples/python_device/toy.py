"""A device written in Python: the backend "toy.npu", with four kernels over NumPy.

Its tensors live in host memory under the backend's name. Every operator without a kernel
here runs on the CPU; autograd, `nn` and `optim` need nothing more. Run it: it fits a line.
"""

import numpy as np

import mica
from mica import nn, optim

npu = mica.library.register_device("toy.npu", count=2)


@npu.kernel("add.out")
def add(self, other, *, alpha, out):
    np.add(self, alpha * other, out=out, casting="same_kind")


@npu.kernel("mul.out")
def mul(self, other, *, out):
    np.multiply(self, other, out=out, casting="same_kind")


@npu.kernel("mm.out")
def mm(self, mat2, *, out):
    np.matmul(self, mat2, out=out)


@npu.kernel("nonzero")  # its result's size depends on data: the function returns it
def nonzero(self):
    return np.stack(np.nonzero(self), axis=1).astype(np.int64)


def main():
    mica.manual_seed(0)
    x = mica.randn(256, 3).to("toy.npu")
    y = x @ mica.tensor([[1.0], [-2.0], [0.5]]).to("toy.npu") + 3
    model = nn.Linear(3, 1).to("toy.npu")
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    print(f"weight {model.weight.tolist()[0]}, bias {model.bias.item():.3f}, loss {loss.item():.2e}")
    print(mica.explain("mm", x, model.weight.detach().t()))
    counts = mica.fallback_counts()["toy.npu"]
    print("on the CPU:", ", ".join(f"{name.removeprefix('mica::')} ×{n}" for name, n in counts.items()))
    return loss.item()


if __name__ == "__main__":
    main()
