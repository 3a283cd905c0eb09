"""Dispatch modes and wrapper subclasses: the same operators in both libraries, forward and
backward, for a table of programs; and what modes, subclasses, copies and optimizers do.

Left out of the sequences are operators that differ by design: how a gradient comes into
.grad (torch detaches, Mica copies), and lift_fresh of new tensors, which Mica lacks.
"""

from __future__ import annotations

import copy
import io
import pickle
import threading
from typing import Any

import pytest
import torch
from modes import CLASSES, LIBRARIES

_BY_DESIGN = {"detach", "lift_fresh", "clone", "copy_", "new_empty_strided"}
_VIEWS = {"t", "transpose", "permute", "view", "unsqueeze", "squeeze", "expand"}

# `x` 3 x 4 and `w` 5 x 4 require grad, `c` 4 does not; `L` the library, `F` its functional module.
EXPRESSIONS = """
F.linear(x, w).relu().sum(); (x * 2 + 1).exp().mean(); (x @ w.t()).tanh().sum(); x.sum(0, keepdim=True)
L.cat([x, x]).sigmoid().sum(); x.reshape(12).sum(); x[0].sum(); x.T.sum(); x.to(L.float64).sum(); x.max(); -x
(x - c) / c; 1 - x; x == c; x.pow(3).sum(); x.view(2, 6).transpose(0, 1).sum(); L.where(x > 0, x, c).sum()
L.zeros(2, 3); L.ones_like(x); x.new_zeros(2); L.full((2,), 1.5); L.empty(2); x.item if 0 else x.sum().item()
bool(c.sum()); c + 1; c.clone().add_(1); L.stack([x, x]).sum(); x.unsqueeze(0).squeeze(0).sum(); x.mean(1).sum()
L.sin(x).cos().sum(); x.abs().log().sum(); x.sqrt().sum(); x.clamp(0, 1).sum(); x.cumsum(0).sum()
L.bmm(x[None], w.t()[None]).sum(); F.gelu(x).sum(); x.sub(c, alpha=2).sum()
"""
PROGRAMS = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split(";")]


def scope_of(library: Any) -> dict[str, Any]:
    library.manual_seed(0)
    return {
        "L": library,
        "F": library.nn.functional,
        "x": library.rand(3, 4, requires_grad=True),
        "w": library.rand(5, 4, requires_grad=True),
        "c": library.rand(4) + 1,
    }


def operators(name: str, program: str, backward: bool) -> list[Any]:
    library, log = LIBRARIES[name], CLASSES[name].OperatorLog()
    scope = scope_of(library)
    with log:
        result = eval(program, scope)
        if backward and isinstance(result, library.Tensor) and result.requires_grad and result.numel() == 1:
            result.backward()
    return [call for call in log.calls if call[0] not in _BY_DESIGN]


@pytest.mark.parametrize("program", PROGRAMS)
def test_mode_sees_the_same_operators(program: str) -> None:
    assert operators("mica", program, False) == operators("torch", program, False)


# Formulas differ from torch's in which operators they use; these agree but for views.
BACKWARD = [
    "F.linear(x, w).relu().sum()",
    "(x * 2).exp().sum()",
    "(x @ w.t()).tanh().sum()",
    "x[0].sum()",
    "x.T.sum()",
    "x.reshape(12).sum()",
    "x.to(L.float64).sum()",
    "(-x).sum()",
    "L.bmm(x[None], w.t()[None]).sum()",
    "x.sigmoid().sum()",
]


@pytest.mark.parametrize("program", BACKWARD)
def test_mode_sees_the_same_backward(program: str) -> None:
    names = {L: [name for name, _ in operators(L, program, True) if name not in _VIEWS] for L in LIBRARIES}
    assert names["mica"] == names["torch"]


def both(test: Any) -> None:
    """The function's result is the same in both libraries."""
    results = {name: test(library, CLASSES[name]) for name, library in LIBRARIES.items()}
    assert results["mica"] == results["torch"]


def rounded(t: Any) -> Any:
    t = getattr(t, "elem", t)
    return [round(v, 4) for v in t.detach().reshape(-1).tolist()]


@pytest.mark.parametrize("program", BACKWARD)
def test_logging_tensor_has_the_same_gradients(program: str) -> None:
    def gradients(L: Any, c: Any) -> Any:
        scope, plain = scope_of(L), scope_of(L)
        for name in ("x", "w"):
            scope[name] = c.LoggingTensor(scope[name].detach(), requires_grad=True)
        c.LoggingTensor.log.clear()
        result = eval(program, scope)
        result.backward()
        log = [name for name in c.LoggingTensor.log if name not in _BY_DESIGN | _VIEWS]
        eval(program, plain).backward()
        for name in ("x", "w"):
            grad = scope[name].grad
            assert (grad is None) == (plain[name].grad is None)
            if grad is not None:
                assert type(grad) is c.LoggingTensor and rounded(grad) == rounded(plain[name].grad)
        return log, type(result).__name__, rounded(result)

    both(gradients)


def test_writes_and_views_of_a_wrapper() -> None:
    def written(L: Any, c: Any) -> Any:
        a = c.LoggingTensor(L.zeros(3))
        same = a
        a += 1
        a.mul_(2)
        out = c.LoggingTensor(L.empty(3))
        L.add(a, a, out=out)
        return a is same, repr(a), repr(out), repr(copy.deepcopy(a)), a[1:].sum().item(), bool(a.sum() > 1)

    both(written)


def test_two_tensor_trains() -> None:
    def trained(L: Any, c: Any) -> Any:
        L.manual_seed(0)
        model = L.nn.Sequential(L.nn.Linear(3, 4), L.nn.ReLU(), L.nn.Linear(4, 1))
        for layer in (model[0], model[2]):
            for name in ("weight", "bias"):
                value = getattr(layer, name).detach()
                setattr(layer, name, L.nn.Parameter(c.TwoTensor(value.clone(), value * 2)))
        kinds = [type(p).__name__ for p in model.parameters()]
        is_parameter = [isinstance(p, L.nn.Parameter) for p in model.parameters()]
        losses = []
        optimizers = [L.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), L.optim.Adam(model.parameters())]
        for optimizer in optimizers:
            for _ in range(2):
                optimizer.zero_grad()
                loss = model(L.ones(2, 3)).pow(2).sum()
                loss.backward()
                optimizer.step()
                losses.append([rounded(loss.a), rounded(loss.b)])
        grads = [type(p.grad).__name__ for p in model.parameters()]
        return kinds, is_parameter, losses, grads

    both(trained)


def test_modes_nest_raise_and_are_of_one_thread() -> None:
    def behaviour(L: Any, c: Any) -> Any:
        seen: list[Any] = []

        class Named(c.DispatchMode):
            def __init__(self, name: str) -> None:
                super().__init__()
                self.name = name

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                seen.append(self.name)
                return func(*args, **(kwargs or {}))

        class Boom(c.DispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                raise KeyError("boom")

        class Inner(c.DispatchMode):
            """Runs operators of its own, which it does not see."""

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                seen.append("inner")
                return func(*args, **(kwargs or {})) + 1

        x = L.ones(2)
        with Named("outer"), Named("inner"):
            x * 2
        with Inner():
            seen.append((x * 2).tolist())
        try:
            with Named("outer"), Boom():
                x * 2
        except KeyError as error:
            seen.append(str(error))
        x * 2
        with Named("mine"):
            thread = threading.Thread(target=lambda: seen.append((x * 3).tolist()))
            thread.start()
            thread.join()
        with Named("again") as mode, mode:
            x * 2
        dispatch = L.utils._python_dispatch
        with Named("off"), dispatch._disable_current_modes():
            x * 2
        with Named("a"), Named("b"):
            with dispatch._pop_mode_temporarily():
                x * 2
            seen.append(len(dispatch._get_current_dispatch_mode_stack()))
        return seen

    both(behaviour)


def test_modes_and_transforms() -> None:
    def transformed(L: Any, c: Any) -> Any:
        log = c.OperatorLog()
        with log:
            outside = L.func.grad(lambda x: (x * x).sum())(L.ones(2)).tolist()
        seen = "mul" in [name for name, _ in log.calls]
        log.calls.clear()

        def inside(x: Any) -> Any:
            with log:
                return (x * 2).sum()

        value = L.func.vmap(inside)(L.ones(3, 2)).tolist()
        names = [name for name, _ in log.calls]
        log.calls.clear()
        with log:
            nested = L.func.vmap(L.func.grad(lambda x: x.sin().sum()))(L.zeros(3, 2)).tolist()
        return (
            outside,
            seen,
            value,
            [n for n in names if n not in _VIEWS],
            nested,
            "cos" in [name for name, _ in log.calls],
        )

    both(transformed)


def test_mode_replaces_results_under_autograd() -> None:
    def replaced(L: Any, c: Any) -> Any:
        class Double(c.DispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                result = func(*args, **(kwargs or {}))
                return result * 2 if "sin" in str(func) else result

        x = L.ones(2, requires_grad=True)
        with Double():
            y = x.sin().sum()
        y.backward()
        return round(y.item(), 5), rounded(x.grad)

    both(replaced)


def test_flop_counter() -> None:
    def counted(L: Any, c: Any) -> Any:
        L.manual_seed(0)
        nn = L.nn
        model = nn.Sequential(nn.Conv2d(3, 4, 3, groups=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))
        programs = {
            "model": lambda: model(L.rand(2, 3, 8, 8)).sum().backward(),
            "grouped": lambda: nn.Conv2d(4, 6, 3, groups=2)(
                L.rand(2, 4, 8, 8)
            ),  # torch miscounts its gradient
            "transposed": lambda: nn.ConvTranspose2d(3, 4, 3)(L.rand(2, 3, 8, 8)).sum().backward(),
            "mm": lambda: L.rand(2, 3) @ L.rand(3, 4),
            "bmm": lambda: L.rand(5, 2, 3) @ L.rand(5, 3, 4),
            "batched": lambda: L.rand(2, 5, 2, 3) @ L.rand(3, 4),
            "addmm": lambda: L.addmm(L.rand(4), L.rand(2, 3), L.rand(3, 4)),
            "baddbmm": lambda: L.baddbmm(L.rand(1, 1, 4), L.rand(5, 2, 3), L.rand(5, 3, 4)),
            "einsum": lambda: L.einsum("bij,bjk->bik", L.rand(5, 2, 3), L.rand(5, 3, 4)),
            "empty": lambda: L.rand(0, 3) @ L.rand(3, 4),
            "lstm-like": lambda: (L.rand(2, 3, requires_grad=True) @ L.rand(3, 4)).tanh().sum().backward(),
            "pointwise": lambda: L.rand(100).sin().sum(),
        }
        totals = {}
        for name, program in programs.items():
            with c.FlopCounter(display=False) as counter:
                program()
            totals[name] = counter.get_total_flops()
        with c.FlopCounter(display=False) as counter:
            programs["model"]()
        modules = {path: sum(counts.values()) for path, counts in counter.get_flop_counts().items()}
        return totals, {path: flops for path, flops in modules.items() if flops}

    both(counted)


def test_pickle_and_copy_of_subclasses() -> None:
    def copies(L: Any, c: Any) -> Any:
        unit = c.Unit.of([1.0, 2.0], "m")
        again = pickle.loads(pickle.dumps(_Picklable[L].of([1.0, 2.0], "m")))
        two = copy.deepcopy(c.TwoTensor(L.ones(2), L.zeros(2)))
        parameter = copy.deepcopy(L.nn.Parameter(c.LoggingTensor(L.ones(2))))
        return (
            type(again) is _Picklable[L], again.unit, again.tolist(), type(two).__name__, two.b.tolist(), unit.unit,
            type(parameter).__name__, isinstance(parameter, L.nn.Parameter), parameter.requires_grad,
        )  # fmt: skip

    both(copies)


class TorchPicklable(CLASSES["torch"].Unit):  # type: ignore[misc]
    pass


class MicaPicklable(CLASSES["mica"].Unit):  # type: ignore[misc]
    pass


_Picklable = {LIBRARIES["torch"]: TorchPicklable, LIBRARIES["mica"]: MicaPicklable}


def test_wrapper_pickles() -> None:
    def pickled(L: Any, c: Any) -> Any:
        kind = {torch: TorchTwo}.get(L, MicaTwo)
        two = kind(L.ones(2), L.zeros(2))
        buffer = io.BytesIO()
        pickle.dump(two, buffer)
        again = pickle.loads(buffer.getvalue())
        return again.a.tolist(), again.b.tolist(), tuple(again.shape)

    both(pickled)


class TorchTwo(CLASSES["torch"].TwoTensor):  # type: ignore[misc]
    pass


class MicaTwo(CLASSES["mica"].TwoTensor):  # type: ignore[misc]
    pass
