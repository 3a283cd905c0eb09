"""The first use of each feature, from eight threads at once, in fresh processes.

The first use loads a plugin: a thread that comes meanwhile waits for all of it, neither for ever nor for
a part. Each feature is tried in several processes, since what goes wrong depends on when threads change.
"""

from __future__ import annotations

import textwrap

import pytest
from process import ran

pytestmark = pytest.mark.alone  # eight threads need the cores
STARTS = 5

FEATURES = {
    "vmap": "assert mica.equal(mica.vmap(lambda t: t * 2)(x), x * 2)",
    "backward": """
        leaf = x.clone().requires_grad_()
        (leaf * leaf).sum().backward()
        assert mica.equal(leaf.grad, 2 * x)
    """,
    "grad": "assert mica.equal(mica.func.grad(lambda t: (t * t).sum())(x), 2 * x)",
    "jvp": "assert mica.equal(mica.func.jvp(lambda t: t * t, (x,), (mica.ones(2, 3),))[1], 2 * x)",
    "jacrev": "assert mica.equal(mica.func.jacrev(lambda t: 3 * t)(x[0]), 3 * mica.eye(3))",
    "hessian": "assert mica.equal(mica.func.hessian(lambda t: (t * t).sum())(x[0]), 2 * mica.eye(3))",
    "make_fx": """
        from mica.fx.experimental.proxy_tensor import make_fx
        traced = make_fx(lambda t: t * 2 + 1)(x)
        assert mica.equal(traced(x + 1), (x + 1) * 2 + 1)
    """,
    "functionalize": """
        def write(t):
            t = t.clone()
            return t.add_(1)
        assert mica.equal(mica.func.functionalize(write)(x), x + 1)
    """,
    "autocast": """
        with mica.autocast("cpu", dtype=mica.bfloat16):
            assert (x @ x.T).dtype == mica.bfloat16
    """,
    "conjugated views": "assert mica.equal(mica.complex(x, x).conj().imag, -x)",
    "dispatch mode": """
        from mica.utils._python_dispatch import TorchDispatchMode
        seen = []
        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                seen.append(function)
                return function(*args, **(kwargs or {}))
        with Mode():
            x + 1
        assert len(seen) == 1
    """,
    "function mode": """
        from mica.overrides import TorchFunctionMode
        seen = []
        class Mode(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                seen.append(function)
                return function(*args, **(kwargs or {}))
        with Mode():
            mica.add(x, 1)
        assert len(seen) == 1
    """,
    "subclass": """
        class Kind(mica.Tensor):
            pass
        assert type(x.as_subclass(Kind) * 2) is Kind
    """,
    "checkpoint": """
        from mica.utils.checkpoint import checkpoint
        leaf = x.clone().requires_grad_()
        checkpoint(lambda t: (t * t).sum(), leaf, use_reentrant=False).backward()
        assert mica.equal(leaf.grad, 2 * x)
    """,
    "custom function": """
        class Double(mica.autograd.Function):
            @staticmethod
            def forward(ctx, t):
                return t * 2
            @staticmethod
            def backward(ctx, g):
                return g * 2
        leaf = x.clone().requires_grad_()
        Double.apply(leaf).sum().backward()
        assert mica.equal(leaf.grad, 2 * mica.ones(2, 3))
    """,
    "library": """
        name = f"first{threading.get_ident()}"
        library = mica.library.Library(name, "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda t: t * 2, "CPU")
        assert mica.equal(getattr(mica.ops, name).twice(x), 2 * x)
    """,
    "optimizer": """
        p = mica.nn.Parameter(x.clone())
        (p * p).sum().backward()
        mica.optim.SGD([p], lr=0.5).step()
        assert mica.equal(p, mica.zeros(2, 3))
    """,
    "convolution": """
        layer = mica.nn.Conv2d(1, 2, 3)
        layer(mica.ones(1, 1, 5, 5)).sum().backward()
        assert mica.equal(layer.bias.grad, mica.full((2,), 9.0))
    """,
    "linear algebra": "assert mica.allclose(mica.linalg.svdvals(mica.eye(3)), mica.ones(3))",
    "Fourier transform": "assert mica.allclose(mica.fft.ifft(mica.fft.fft(x)).real, x, atol=1e-6)",
    "files": """
        import io
        file = io.BytesIO()
        mica.save(x, file)
        file.seek(0)
        assert mica.equal(mica.load(file), x)
    """,
}

PROGRAM = """
import sys, threading, traceback
import mica

x = mica.arange(6.0).reshape(2, 3)
start = threading.Barrier(8)
failures = []

def use():
{feature}

def run():
    start.wait()
    try:
        use()
    except BaseException:
        failures.append(traceback.format_exc())

sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=run) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit("\\n".join(failures) or None)
"""


@pytest.mark.parametrize("feature", FEATURES)
def test_first_use_from_eight_threads(feature: str) -> None:
    body = textwrap.indent(textwrap.dedent(FEATURES[feature]), "    ")
    for _ in range(STARTS):
        done = ran(PROGRAM.replace("{feature}", body), timeout=60)
        assert done.returncode == 0, done.stderr
