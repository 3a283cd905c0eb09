"""The calls of docs/errors.md, each of which raises the sentence that the page shows.

`errors.py NAME` prints what that call raises; without a name all are made, and one that raises
nothing fails. The page's other blocks are messages that Mica must not have.
"""

import sys
from collections.abc import Callable

import mica


def sizes() -> None:
    # snippet: sizes
    mica.add(mica.ones(3), mica.ones(4))
    # end snippet


def product() -> None:
    # snippet: product
    mica.ones(2, 3) @ mica.ones(4, 5)
    # end snippet


def dtype() -> None:
    # snippet: dtype
    mica.zeros(3, dtype=mica.int32).normal_()
    # end snippet


def overflow() -> None:
    # snippet: overflow
    mica.full((2,), 300, dtype=mica.uint8)
    # end snippet


def target() -> None:
    # snippet: target
    mica.nn.functional.cross_entropy(mica.ones(2, 3), mica.tensor([0, 7]))
    # end snippet


def version() -> None:
    # snippet: version
    x = mica.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()
    # end snippet


def batch() -> None:
    # snippet: batch
    mica.func.vmap(lambda x: x.item())(mica.ones(3))
    # end snippet


def device() -> None:
    # snippet: device
    mica.ones(2, device="xpu")
    # end snippet


def matrix() -> None:
    # snippet: matrix
    mica.linalg.cholesky(-mica.eye(3))
    # end snippet


def seed() -> None:
    # snippet: seed
    mica.Generator().manual_seed("a")
    # end snippet


CASES = {
    f.__name__: f for f in (sizes, product, dtype, overflow, target, version, batch, device, matrix, seed)
}


def raised(call: Callable[[], None]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise SystemExit(f"The call ({call.__name__}) raised nothing.")


for name in sys.argv[1:] or CASES:
    print(raised(CASES[name]))
