"""Draws a program from a seed, one statement after another, while both libraries run it.

The families of steps (steps_*.py) register functions that write statements through a `Draw`:
it knows torch's values so far, so that operands fit. What torch and Mica do differently by
design is not drawn: writes to memory that several elements or several views of one split
share, and writes from a tensor that overlaps its target in part.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import torch
from nudges import alone
from session import Chaotic, Difference, Refused, Session, Wider, dtype_name, is_tensor

FLOATS = ["float64", "float32", "bfloat16", "float16"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8"]
COMPLEX = ["complex128", "complex64"]
# Around the vectors, tiles, blocks and rows of the kernels.
BORDERS = [n + d for n in (8, 16, 32, 64, 128, 256, 512, 1024) for d in (-1, 0, 1)]
# More than 32 blocks of 1,024, and more than a thread's share; the reduced dims of many are short.
LARGE = [(40000,), (33, 1025), (1025, 33), (64, 8, 24, 24), (130, 257), (3, 16, 33, 31), (5, 7, 1023)]
LARGE += [(2, 20000)]
SMALL = [1, 2, 3, 4, 5]
MOST = 100_000  # elements of an operand, beyond which no step takes it


def words(text: str) -> list[str]:
    """A table of names."""
    return text.split()


class Found(Exception):
    """The last statement shows a difference."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class Skip(Exception):
    """No value fits the step drawn."""


Step = Callable[["Draw"], None]
STEPS: list[tuple[float, Step]] = []


def step(weight: float) -> Callable[[Step], Step]:
    """Registers a kind of step with how often it is drawn."""

    def register(function: Step) -> Step:
        STEPS.append((weight, function))
        return function

    return register


class Draw:
    """A program in the making."""

    def __init__(self, seed: int, tell: Callable[[str], Any] | None = None) -> None:
        self.rng = random.Random(seed)
        self.tell = tell
        self.session = Session()
        self.program: list[str] = []
        self.frozen: set[str] = set()  # results of a split: not to be written
        self.count = 0
        # Half of the programs compute with float64 and integers alone, where nothing hides in rounding.
        self.floats = ["float64"] if self.chance(0.5) else self.rng.choices(FLOATS, [4, 6, 1, 1], k=2)

    # ---- chance
    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self, *options: Any) -> Any:
        return self.rng.choice(options)

    def flag(self) -> bool:
        return self.chance(0.5)

    def number(self) -> float:
        """A short float."""
        return self.pick(0.5, -0.5, 1.5, 2.0, -1.0, 0.25, 3.0, 0.75)

    # ---- statements
    def emit(self, statement: str) -> None:
        """Appends a statement and runs it."""
        self.program.append(statement)
        if self.tell is not None:
            self.tell(statement)
        difference = self.session.step(statement)
        if difference is not None:
            raise Found(difference)

    def new(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def let(self, expression: str, prefix: str = "v") -> str:
        """Names the value of an expression."""
        name = self.new(prefix)
        self.emit(f"{name} = {expression}")
        return name

    def one_of(self, *expressions: str) -> str:
        """Names the value of one of some expressions."""
        return self.let(self.pick(*expressions))

    def emit_one_of(self, *statements: str) -> None:
        self.emit(self.pick(*statements))

    # ---- operands
    def value(self, name: str) -> Any:
        return self.session.values[name]

    def names(self, fits: Callable[[Any], bool] = lambda t: True) -> list[str]:
        tensors = [
            n for n, t in self.session.values.items() if isinstance(t, torch.Tensor) and t.numel() <= MOST
        ]
        return [n for n in tensors if self.session.same_flags(n) and fits(self.value(n))]

    def tensor(self, fits: Callable[[Any], bool] = lambda t: True) -> str:
        """A named tensor that fits; of the last ones more often."""
        names = self.names(fits)
        if not names:
            raise Skip
        return self.rng.choice(names[-5:] if self.chance(0.6) else names)

    def operands(self, *expressions: str) -> list[Any]:
        """The tensors that expressions start with."""
        named = [self.session.values.get(text.partition(".")[0]) for text in expressions]
        return [t for t in named if isinstance(t, torch.Tensor)]

    def real(self, rank: int = 0) -> str:
        return self.tensor(lambda t: t.is_floating_point() and t.dim() >= rank)

    def writable(self, fits: Callable[[Any], bool] = lambda t: True) -> str:
        """A tensor no two elements of which share memory."""
        names = [n for n in self.names(fits) if n not in self.frozen and alone(self.value(n))]
        names = [n for n in names if not self.value(n).is_inference() and not self.shares_gradient(n)]
        odd = self.odd_views()
        names = [n for n in names if place(self.value(n)) not in odd]
        if not names:
            raise Skip
        return self.rng.choice(names)

    def odd_views(self) -> set[int]:
        """The memory of recorded results that one library alone calls views.

        torch writes some results (of 1-d pools, of chain_matmul) into memory of another shape and gives out a view
        of it. After a write it makes the node of every view again, so that hooks on the node before, and
        gradients of what was viewed before, are gone. Mica's results are their own.
        """
        ours = self.session.leaves(self.session.spaces["mica"])
        recorded = {
            path: t for path, t in self.held().items() if t.requires_grad and is_tensor(ours.get(path))
        }
        return {place(t) for path, t in recorded.items() if t._is_view() != ours[path]._is_view()}

    def both_view(self, name: str) -> bool:
        """Whether both libraries call a tensor a view, or neither: a view cannot be detached in place."""
        return self.value(name)._is_view() == self.session.spaces["mica"][name]._is_view()

    def held(self) -> dict[str, torch.Tensor]:
        """torch's tensors, those in tuples and modules too."""
        leaves = self.session.leaves(self.session.values)
        return {path: t for path, t in leaves.items() if isinstance(t, torch.Tensor)}

    def shared(self, name: str) -> bool:
        """Whether another tensor has the same memory."""
        return [place(t) for t in self.held().values()].count(place(self.value(name))) > 1

    def shares_gradient(self, name: str) -> bool:
        """Whether a tensor is one of several gradients, of which torch gives some the same memory."""
        held = [v for n in self.session.gradients for v in tensors(self.session.values.get(n))]
        return [place(t) for t in held].count(place(self.value(name))) > 1

    def same_strides(self, name: str) -> bool:
        return tuple(self.value(name).stride()) == tuple(self.session.spaces["mica"][name].stride())

    def source(self, target: str, name: str) -> str:
        """An operand of a write; a copy where it may share the target's memory."""
        places = {place(self.value(n)) for n in (target, name)}
        return name if len(places) == 2 or self.value(name).is_inference() else f"{name}.clone()"

    def shape(self, rank: int | None = None, large: float = 0.04) -> tuple[int, ...]:
        if rank is None:
            if self.chance(large):
                return tuple(self.rng.choice(LARGE))
            rank = self.rng.choices([0, 1, 2, 3, 4], [1, 4, 6, 4, 2])[0]
        sizes = [self.rng.choice(SMALL) for _ in range(rank)]
        if rank and self.chance(0.2):
            sizes[self.rng.randrange(rank)] = self.rng.choice(BORDERS)
        if rank and self.chance(0.02):
            sizes[self.rng.randrange(rank)] = 0
        return tuple(sizes)

    def dtype(self) -> str:
        kinds = [self.floats, INTEGERS, ["bool"], COMPLEX[: 1 if self.floats == ["float64"] else 2]]
        return self.rng.choice(self.rng.choices(kinds, [10, 3, 1, 1])[0])

    def dim(self, name: str) -> int:
        rank = max(self.value(name).dim(), 1)
        return self.rng.randrange(-rank, rank)

    def dims(self, name: str) -> tuple[int, ...]:
        """Some of a tensor's dims, in any order."""
        rank = self.value(name).dim()
        return tuple(self.rng.sample(range(rank), self.rng.randint(0, rank)))

    def factory(self, shape: tuple[int, ...], dtype: str, grad: bool = False, spread: int = 16) -> str:
        """An expression that makes a tensor: multiples of an eighth, whose sums are exact, or random numbers."""
        differentiable = dtype in FLOATS or dtype in COMPLEX
        tail = ".requires_grad_()" if grad and differentiable else ""
        if dtype == "bool":
            return f"torch.randint(0, 2, {shape}, dtype=torch.bool)"
        if dtype in INTEGERS:
            return f"torch.randint({0 if dtype == 'uint8' else -9}, 10, {shape}, dtype=torch.{dtype})"
        if self.chance(0.5) and dtype not in COMPLEX:
            return f"(torch.randint({-spread}, {spread + 1}, {shape}) / 8).to(torch.{dtype}){tail}"
        return f"torch.randn({shape}, dtype=torch.{dtype}){tail}"

    def make(self, shape: tuple[int, ...], dtype: str, grad: bool = False) -> str:
        """Names a new tensor of a random stream of its own."""
        name = self.new()
        self.emit(
            f"torch.manual_seed({self.rng.randrange(100)})\n{name} = {self.factory(shape, dtype, grad)}"
        )
        return name

    def float_dtype(self) -> str:
        return self.rng.choice(self.floats)

    def partner(self, name: str) -> str:
        """An operand that broadcasts with a tensor: another value, part of itself, a number, a new tensor."""
        t = self.value(name)
        way = self.rng.random()
        if way < 0.45:
            return self.tensor(lambda u: broadcasts(t.shape, u.shape))
        if way < 0.65:
            return repr(self.number()) if self.flag() else repr(self.pick(2, 3, -1, 1))
        if way < 0.8 and t.dim():
            return f"{name}.narrow({self.dim(name)}, 0, 1)" if 0 not in t.shape else name
        sizes = tuple(n if self.chance(0.7) else 1 for n in t.shape)[self.rng.randint(0, min(1, t.dim())) :]
        return self.make(sizes, self.dtype(), self.chance(0.3))


def place(t: torch.Tensor) -> int:
    """The address of a tensor's memory; of zeros that have none, 0."""
    return 0 if t._is_zerotensor() else int(t.untyped_storage().data_ptr())


def tensors(value: Any) -> list[torch.Tensor]:
    """A tensor, or those of a tuple."""
    held = value if isinstance(value, (list, tuple)) else [value]
    return [t for t in held if isinstance(t, torch.Tensor)]


def spread(index: str, dim: int, ndim: int) -> str:
    """An index vector as a tensor of `ndim` dims, along `dim`."""
    return f"{index}[{', '.join(':' if k == dim else 'None' for k in range(ndim))}]"


def broadcasts(a: Any, b: Any) -> bool:
    pairs = list(itertools.zip_longest(reversed(a), reversed(b), fillvalue=1))
    return all(m == n or 1 in (m, n) for m, n in pairs) and math.prod(max(pair) for pair in pairs) <= MOST


def tensor_dtype(t: Any) -> str:
    return dtype_name(t.dtype)


def grow(seed: int, tell: Callable[[str], Any] | None = None) -> tuple[list[str], Difference | None, str]:
    """A program, the difference after its last statement if there is one, and how it ended.

    `tell` hears each statement before it runs.
    """
    draw = Draw(seed, tell)
    length = draw.rng.randint(5, 24)
    try:
        for _ in range(draw.rng.randint(2, 4)):
            draw.make(draw.shape(), draw.dtype(), draw.chance(0.6))
        weights = [weight for weight, _ in STEPS]
        for _ in range(4 * length):
            if len(draw.program) >= length:
                break
            chosen = draw.rng.choices(STEPS, weights)[0][1]
            try:
                chosen(draw)
            except Skip:
                continue
        finish(draw)
    except Found as found:
        return draw.program, found.difference, "found"
    except Chaotic:
        return draw.program, None, "chaotic"
    except Wider:
        return draw.program, None, "wider"
    except Refused:
        return draw.program, None, "refused"
    return draw.program, None, "agreed"


def finish(draw: Draw) -> None:
    """Nearly always a program ends with the gradients of what it made."""
    names = draw.names(lambda t: t.requires_grad and t.is_floating_point() and not t.is_leaf)
    if names:
        chosen = draw.rng.sample(names, min(len(names), draw.rng.randint(1, 4)))
        total = " + ".join(f"({name} * {draw.number()}).sum()" for name in chosen)
        draw.emit(f"({total}).backward()")
