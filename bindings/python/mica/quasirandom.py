"""Sobol sequences, plain and scrambled (Owen), point for point those of torch.quasirandom.

The direction numbers are Joe and Kuo's (criterion D(6), up to 21201 dimensions), read from the table
that scipy ships; without scipy an engine of more than one dimension raises ImportError.
"""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor

_BITS = 30


def _directions(dimension: int) -> Tensor:
    """The direction numbers, [dimension, 30], each moved to its place in a number of 30 bits."""
    numbers = [[1] * _BITS]
    if dimension > 1:
        numbers += [_of_polynomial(p, first) for p, first in _table(dimension)]
    return mica.tensor(numbers) * 2 ** mica.arange(_BITS).flip(0)


def _table(dimension: int) -> list[tuple[int, list[int]]]:
    """The primitive polynomial and the first direction numbers of each dimension but the first."""
    from pathlib import Path

    import numpy as np

    try:
        import scipy
    except ImportError:
        raise ImportError(
            f"Sobol sequences of ({dimension}) dimensions need the table of direction numbers that scipy ships; install scipy."
        ) from None
    with np.load(Path(scipy.__file__).parent / "stats" / "_sobol_direction_numbers.npz") as table:
        polynomials, firsts = table["poly"][1:dimension], table["vinit"][1:dimension]
    return list(zip(polynomials.tolist(), firsts.tolist()))


def _of_polynomial(polynomial: int, first: list[int]) -> list[int]:
    """Direction numbers by the recurrence of a primitive polynomial over two elements."""
    degree = polynomial.bit_length() - 1
    numbers = first[:degree]
    for j in range(degree, _BITS):
        new = numbers[j - degree]
        for k in range(degree):
            if polynomial >> (degree - 1 - k) & 1:
                new ^= numbers[j - k - 1] << (k + 1)
        numbers.append(new)
    return numbers


def _gray(number: Tensor) -> Tensor:
    return number ^ (number >> 1)


class SobolEngine:
    """Points of a Sobol sequence in [0, 1): they fill the unit cube more evenly than random ones.

    As `torch.quasirandom.SobolEngine`, point for point. More than one dimension needs scipy, which ships the
    table of direction numbers.

    Args:
        dimension (int): Numbers of each point, from 1 to 21201.
        scramble (bool): Randomise the sequence (Owen), so that errors can be estimated. Default: False.
        seed (int, optional): Of the scrambling. Default: None, for the default generator.

    Raises:
        ValueError: `dimension` is not in [1, 21201].
        ImportError: `dimension` is above 1 and scipy is not installed.

    Example:
        >>> engine = mica.quasirandom.SobolEngine(1)
        >>> engine.draw(4)
        tensor([[0.0000],
                [0.5000],
                [0.7500],
                [0.2500]])
    """

    MAXBIT = _BITS
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                f"The number of dimensions ({dimension}) of SobolEngine is not in [1, {self.MAXDIM}]."
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = _directions(dimension)
        if scramble:
            self._scramble()
        else:
            self.shift = mica.zeros(dimension, dtype=mica.int64)
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**_BITS).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next points of the sequence.

        Args:
            n (int): How many points. Default: 1.
            out (Tensor, optional): Resized and filled with the points. Default: None.
            dtype (dtype, optional): Of the points. Default: the default dtype.

        Returns:
            Tensor: `(n, dimension)`, in [0, 1).
        """
        dtype = mica.get_default_dtype() if dtype is None else dtype
        at_start = self.num_generated == 0 and n > 0
        result = (self._next(n).double() / 2**_BITS).to(dtype)
        if at_start:  # the first point, alone, is rounded to the default dtype, as torch's
            result[:1] = self._first_point
        if out is not None:
            out.resize_as_(result).copy_(result)
            return out
        return result

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next `2 ** m` points, which are balanced if those before are none or as many.

        Args:
            m (int): 2 ** m points are drawn.
            out (Tensor, optional): Resized and filled with the points. Default: None.
            dtype (dtype, optional): Of the points. Default: the default dtype.

        Returns:
            Tensor: `(2 ** m, dimension)`, in [0, 1).

        Raises:
            ValueError: These points and those before are together no power of 2.
        """
        count, total = 2**m, self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"The number of points drawn ({self.num_generated}) and 2**{m} make ({total}), which is no power of 2; "
                "only such numbers of points are balanced. SobolEngine.draw() draws any number."
            )
        return self.draw(count, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Goes back to the first point and returns the engine."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves out points.

        Args:
            n (int): How many points.

        Returns:
            SobolEngine: The engine itself.
        """
        if n > 0:
            self._walk(mica.tensor([self.num_generated + n - 1]))
        self.num_generated += n
        return self

    def _next(self, n: int) -> Tensor:
        found = self._walk(self.num_generated + mica.arange(n))
        self.num_generated += n
        return found

    def _walk(self, places: Tensor) -> Tensor:
        """The points at these places as numbers of 30 bits; the last becomes the state."""
        codes = _gray(places).unsqueeze(1)
        points = self.shift.expand(places.numel(), -1)
        for bit in range(_BITS):
            points = points ^ ((codes >> bit & 1) * self.sobolstate[:, bit])
        if places.numel():
            self.quasi.copy_(points[-1])
        return points

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = mica.Generator()
            generator.manual_seed(self.seed)
        powers = 2 ** mica.arange(_BITS)
        bits = mica.randint(2, (self.dimension, _BITS), generator=generator)
        self.shift = (bits * powers).sum(1)
        triangles = mica.randint(2, (self.dimension, _BITS, _BITS), generator=generator).tril()
        triangles.diagonal(0, -2, -1).fill_(1)
        split = (
            self.sobolstate.unsqueeze(-1) >> mica.arange(_BITS).flip(0) & 1
        ).double()  # [dimension, number, bit], highest first
        mixed = mica.bmm(split, triangles.double().transpose(1, 2)).long() % 2
        self.sobolstate = (mixed * powers.flip(0)).sum(-1)

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        words += ["scramble=True"] if self.scramble else []
        words += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(words)})"
