"""Function modes and __torch_function__: the same calls in both libraries, by name and types
of arguments, for a table of expressions and statements; and what subclasses make of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from modes import CLASSES, LIBRARIES

# `x` and `y` are float32 2 x 2, `n` int64, `F` the functional module, `L` the library.
EXPRESSIONS = """
x + y; 1 + x; x - y; 1 - x; x * y; 2 * x; x / y; 2 / x; x // y; 2 // x; x % y; 2 % x; x ** y; 2 ** x
x @ y; n & n; 1 & n; n | n; n ^ n; 1 ^ n; n << 1; 1 << n; n >> 1; 1 >> n; ~n; -x; +x; abs(x)
x == y; x != y; x < y; x <= 1; x > y; x >= y; x == None
x += y; x -= y; x *= 2; x /= 2; x //= 2; x %= 2; n &= n; n |= n; n ^= n; n <<= 1; n >>= 1; x **= 2
int(x[0, 0]); bool(x[0, 0]); float(x[0, 0]); complex(x[0, 0]); len(x); 1 in x; reversed(x); x[0]; x[0] = 1
x[n]; x[x > 0] = y[0, 0]; x.T; x.mT; x.H; x.real; x.data; x.grad; x.requires_grad; x.shape; x.ndim; x.device
x.dtype; x.nbytes; x.is_sparse; x.grad = None; x.is_leaf; x.grad_fn; x.requires_grad_(); x.size(0); x.stride()
x.numel(); x.tolist(); x.cpu(); x.float(); x.double(); x.to(L.float64); x.is_contiguous(); x.storage_offset()
x.data_ptr(); x.element_size(); x.is_floating_point(); x.detach_(); x.detach(); x.clone(); x.add(y)
L.add(x, y); L.is_tensor(x); L.is_floating_point(x); x.norm(); L.norm(x); L.split(x, 1); x.split(1)
L.einsum("ij->ji", x); L.as_tensor(x); L.broadcast_tensors(x, y); L.stack((x, y)); L.cat([x, y])
L.rand(2); L.zeros(2); L.tensor([1.0]); L.empty(2); L.arange(3); L.manual_seed(1); L.Size([1]); L.no_grad()
F.softmax(x, dim=0); F.gelu(x); F.relu(x); F.dropout(x); F.mse_loss(x, y); F.layer_norm(x, (2,)); F.pad(x, (1, 1))
F.normalize(x); F.embedding(n, x); F.linear(x, y); F.cross_entropy(x, n[0])
F.conv2d(L.ones(1, 1, 3, 3), L.ones(1, 1, 1, 1)); F.max_pool2d(L.ones(1, 1, 2, 2), 2)
L.special.entr(x); L.linalg.norm(x); L.fft.fft(x); x.new_tensor([1.0]); x.new_zeros(2); L.equal(x, y)
L.allclose(x, y); x.unique(); x.copy_(y); x.fill_(1); x.zero_(); x.sum(dim=0); x.max(0); x.item
x.register_hook; x.unflatten(1, (2, 1)); x.new_full((2,), 1.0); L.where(x > 0, x, y); x.backward
"""
PROGRAMS = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split(";")]


def calls(name: str, program: str) -> list[Any]:
    library, log = LIBRARIES[name], CLASSES[name].FunctionLog()
    scope = {
        "L": library,
        "F": library.nn.functional,
        "x": library.ones(2, 2),
        "y": library.ones(2, 2),
        "n": library.ones(2, 2, dtype=library.int64),
    }
    with log:
        exec(program, scope)
    return log.calls


@pytest.mark.parametrize("program", PROGRAMS)
def test_mode_sees_the_same_calls(program: str) -> None:
    assert calls("mica", program) == calls("torch", program)


# Calls of functions that torch has in Python, and of a few others: the former arrive with all keywords.
NAMED = """
F.softmax(x, -1); F.dropout(x, 0.0); F.cross_entropy(x, n[0]); F.layer_norm(x, (2,)); F.relu(x); F.gelu(x)
F.mse_loss(x, x); F.pad(x, (1, 1)); F.interpolate(x[None, None], scale_factor=2); F.max_pool1d(x, 1)
F.normalize(x); F.embedding(n, x); F.batch_norm(x, None, None, training=True); F.conv1d(x[None], L.ones(1, 2, 1))
F.cosine_similarity(x, x); F.linear(x, x); F.leaky_relu(x, negative_slope=0.5); F.nll_loss(x, n[0])
x.split(1); x.norm(); x.unique(); x.sum(dim=0); x[0, 0].backward(retain_graph=True); L.meshgrid(x[0], x[0])
L.norm(x); L.split(x, 1); L.stack([x, x]); L.einsum("ij,jk", x, x); L.topk(x, 1); L.add(x, 1, alpha=2)
L.stft(x, 2, 1, return_complex=True); F.softmax(x, wrong=1)
"""


def test_functions_of_python_arrive_with_all_keywords() -> None:
    def plain(value: Any) -> Any:
        return type(value).__name__ if hasattr(value, "shape") else value

    def arrivals(L: Any, c: Any) -> list[Any]:
        seen: list[Any] = []

        class Asked(L.Tensor):
            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                named = sorted((k, plain(v)) for k, v in (kwargs or {}).items())
                seen.append((func.__name__, len(args), named, [t.__name__ for t in types]))
                return super().__torch_function__(func, types, args, kwargs)

        x = L.ones(2, 2, requires_grad=True).as_subclass(Asked)
        scope = {"L": L, "F": L.nn.functional, "x": x, "n": L.zeros(1, 2, dtype=L.int64)}
        for line in NAMED.strip().replace("\n", ";").split(";"):
            try:
                exec(line.strip(), scope)
            except TypeError:
                seen.append("TypeError")
            seen.append(line)
        return seen

    both(arrivals)


def both(test: Any) -> None:
    """The function's result is the same in both libraries."""
    results = {name: test(library, CLASSES[name]) for name, library in LIBRARIES.items()}
    assert results["mica"] == results["torch"]


def test_default_implementation_propagates() -> None:
    def kinds(L: Any, c: Any) -> list[str]:
        class Plain(L.Tensor):
            pass

        class Deeper(Plain):
            pass

        class Other(L.Tensor):
            pass

        p, d, o = (L.ones(3).as_subclass(cls) for cls in (Plain, Deeper, Other))
        q = L.ones(3, requires_grad=True).as_subclass(Plain)
        results = [
            p + 1, 1 + p, L.ones(3) + p, L.cat([p, p]), p.sum(), p.split(1), p.split(1)[0], p.max(0), p.shape,
            L.nn.functional.relu(p), p + d, d + p, p.detach(), p.data, p.grad, L.nn.Parameter(p), q * 2,
            p.reshape(3, 1)[0], p.unbind(), p.tolist(), p.numpy(), L.stack([p]), p.clone().add_(1), p == p,
        ]  # fmt: skip
        (q * 2).sum().backward()
        results.append(q.grad)
        try:
            p + o
        except TypeError:
            results.append("refused")
        return [type(r).__name__ for r in results]

    both(kinds)


def test_unit_subclass() -> None:
    def units(L: Any, c: Any) -> Any:
        metre, second = c.Unit.of([1.0, 2.0], "m"), c.Unit.of([3.0, 4.0], "s")
        try:
            metre + second
        except ValueError as error:
            refused = str(error)
        return (metre * second).unit, (metre + metre).unit, (metre * metre).sum().unit, refused

    both(units)


def test_mode_replaces_functions() -> None:
    def replaced(L: Any, c: Any) -> Any:
        class CosForSin(c.FunctionMode):
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                func = L.cos if func in (L.sin, L.Tensor.sin) else func
                return func(*args, **(kwargs or {}))

        with CosForSin():
            inside = [L.sin(L.zeros(1)).tolist(), L.zeros(1).sin().tolist()]
        return inside, L.sin(L.zeros(1)).tolist()

    both(replaced)


def test_any_object_takes_part() -> None:
    def answers(L: Any, c: Any) -> Any:
        class Duck:
            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                return func.__name__, [t.__name__ for t in types], len(args)

        class Silent:
            @classmethod
            def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
                return NotImplemented

        duck = Duck()
        results = [
            L.add(duck, 1), L.add(L.ones(1), other=duck), L.ones(1) + duck, duck + L.ones(1) if hasattr(duck, "__add__") else 0,
            L.cat([duck, L.ones(1)]), L.nn.functional.relu(duck), L.ones(3)[duck], L.nn.functional.linear(duck, L.ones(1)),
            L.overrides.is_tensor_like(duck), L.overrides.is_tensor_like(1), L.overrides.has_torch_function((duck,)),
        ]  # fmt: skip
        for wrong in (lambda: L.add(Silent(), 1), lambda: L.add(object(), L.ones(1))):
            try:
                wrong()
            except TypeError:
                results.append("refused")
        return results

    both(answers)


def test_order_of_asking() -> None:
    """Modes innermost first, then subclasses before their bases, else left to right."""

    def order(L: Any, c: Any) -> list[str]:
        asked: list[str] = []

        def passes(name: str, bases: tuple[type, ...]) -> Any:
            def function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                asked.append(name)
                return NotImplemented

            return type(name, bases, {"__torch_function__": classmethod(function)})

        class Mode(c.FunctionMode):
            def __init__(self, name: str) -> None:
                super().__init__()
                self.name = name

            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                asked.append(self.name)
                return func(*args, **(kwargs or {}))

        A = passes("A", (L.Tensor,))
        B = passes("B", (A,))
        C = passes("C", (L.Tensor,))
        a, b, third = (L.ones(1).as_subclass(cls) for cls in (A, B, C))
        for left, right in [(a, b), (b, a), (a, third), (third, b), (L.ones(1), b)]:
            try:
                L.add(left, right)
            except TypeError:
                asked.append("refused")
        with Mode("outer"), Mode("inner"):
            L.add(L.ones(1), 1)
        return asked

    both(order)


def test_disabled_subclasses_and_reentry() -> None:
    def seen(L: Any, c: Any) -> Any:
        count = []

        class Counting(L.Tensor):
            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                count.append(func.__name__)
                return super().__torch_function__(func, types, args, kwargs or {})

        x = L.ones(2).as_subclass(Counting)
        with (
            L._C.DisableTorchFunctionSubclass() if L is torch else L.overrides.DisableTorchFunctionSubclass()
        ):
            kind = type(x + 1).__name__
        L.nn.functional.silu(x)  # a function of Python: its own operators are not asked again
        return kind, count

    both(seen)


def test_wrap_and_handle() -> None:
    def handled(L: Any, c: Any) -> Any:
        overrides = L.overrides

        @overrides.wrap_torch_function(lambda x, y: (x, y))
        def mine(x: Any, y: Any) -> Any:
            return "mine"

        class Duck:
            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                return "duck" if func is mine else NotImplemented

        names = [
            overrides.resolve_name(f)
            for f in (L.add, L.Tensor.add, L.nn.functional.relu, L.Tensor.shape.__get__)
        ]
        shown = [n.removeprefix("torch").removeprefix("mica") for n in names]
        return mine(1, 2), mine(Duck(), 2), shown, overrides.is_tensor_method_or_property(L.Tensor.add)

    both(handled)


def test_device_block() -> None:
    def devices(L: Any, c: Any) -> Any:
        with L.device("meta"):
            inside = [L.ones(2), L.nn.Linear(2, 3).weight, L.ones(2, device="cpu"), L.tensor([1.0])]
            with L.device("cpu"):
                inside.append(L.ones(1))
        return [t.device.type for t in [*inside, L.ones(1)]]

    both(devices)
