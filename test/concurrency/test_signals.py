"""Signals while kernels run: results stay right, the process lives, and what a handler raises arrives as itself.

Everything runs in processes of its own without faulthandler: pytest's installs an alternate signal stack, and
on that no kernel is seen that keeps something else than a stack under its stack pointer.
"""

import pytest
import signal_storm
from process import printed, ran

# Each kernel meets two pairs in turn, so that every pair meets many kernels.
PAIRS = [(name, kind) for name in signal_storm.SIGNALS for kind in signal_storm.HANDLERS]


@pytest.mark.alone
@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("kernel", signal_storm.KERNELS)
def test_results_are_those_of_the_calm(kernel, turn):
    number = 2 * list(signal_storm.KERNELS).index(kernel) + 5 * turn
    name, kind = PAIRS[number % len(PAIRS)]
    if kernel == "loader":
        kind = "python"  # starting a worker puts Python's own handler back in the place of a raw one
    found = signal_storm.in_a_process(kernel, name, kind, ("best", "avx2")[turn], 500)
    assert found["wrong"] == 0
    assert found["rounds"] > 0
    assert found["sent"] == 500
    assert kind == "raw" or found["handled"] > 0
    assert found["late"] < 1, "the last signal's handler"  # 0.1 on a machine that does nothing else


RAISES = """
import signal, sys, mica
class Mine(KeyboardInterrupt): pass
kind = {{"TimeoutError": TimeoutError, "SystemExit": SystemExit, "Mine": Mine, "OSError": OSError}}[{kind!r}]
def handler(*_): raise kind("from the handler")
x, w = mica.rand(1 << 20), mica.rand(256, 256, requires_grad=True)
for _ in range(20):
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        for _ in iter(int, 1):  # Python 3.11 loses what is raised at the jump of a `while` just after `try`
            {call}
    except kind as error:
        assert str(error) == "from the handler", error
        assert type(error) is kind
assert (mica.ones(2) + 1).tolist() == [2.0, 2.0]
print("as itself")
"""


@pytest.mark.parametrize("kind", ["TimeoutError", "SystemExit", "Mine", "OSError"])
@pytest.mark.parametrize("call", ["x.sin()", "(w @ w).exp().sum().backward()", "x.sort()"])
def test_what_a_handler_raises_arrives_as_itself(call, kind):
    done = ran(RAISES.format(call=call, kind=kind))
    assert done.stdout == "as itself\n", done.stderr[-2000:]


HANDLER_COMPUTES = """
import signal, mica
seen = []
def handler(*_): seen.append((mica.ones(3, requires_grad=True) * 2).sum().item())
signal.signal(signal.SIGALRM, handler)
x = mica.rand(1 << 22)
with mica.no_grad():
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    for _ in range(30):
        mica.func.vmap(lambda v: v.sin())(x.view(4, -1))
signal.setitimer(signal.ITIMER_REAL, 0)
assert seen and set(seen) == {6.0}, seen
print("computed")
"""


def test_a_handler_computes_under_its_callers_modes():
    assert printed(HANDLER_COMPUTES) == "computed\n"


# The handler runs in the middle of a product whose sums stand in scratch memory, and uses some itself.
HANDLER_MULTIPLIES = """
import mica, signal
mica.manual_seed(0)
a = mica.randn(1500, 1500, dtype=mica.bfloat16)
w, h = mica.randn(70, 90, requires_grad=True), mica.randn(90, 70, dtype=mica.bfloat16)
def small():
    return [*mica.autograd.grad((w @ w.t()).sin().sum(), [w]), h @ h.t(), w.detach()[:, ::2] @ w.detach().t()[::2]]
same = lambda xs, ys: all(bool(mica.equal(x, y)) for x, y in zip(xs, ys, strict=True))
calm, large, seen = small(), a @ a, []
signal.signal(signal.SIGALRM, lambda *_: seen.append(same(small(), calm)))
signal.setitimer(signal.ITIMER_REAL, 0.03, 0.03)
ran = [bool(mica.equal(a @ a, large)) for _ in range(12)]
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(seen) > 0, all(seen), all(ran))
"""


def test_a_handlers_products_leave_the_kernels_scratch_memory_alone():
    assert printed(HANDLER_MULTIPLIES) == "True True True\n"
