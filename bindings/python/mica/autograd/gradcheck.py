"""gradcheck and gradgradcheck: gradients against finite differences.

A function of tensors is a map between real vectors, a complex number being two of
their components. Its Jacobian is found twice: row by row through autograd, with
unit cotangents, and column by column through central differences. In the fast
mode one random direction of each side stands for all of them. Further checks hold
backward to what the engine may ask of it: the same answer twice, zeros for zeros,
gradients that look like their inputs, and undefined cotangents.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mica
from mica._C import Tensor
from mica.autograd._gradcheck_batched import check_batched_backward, check_batched_forward
from mica.autograd._gradcheck_forward import check_forward
from mica.autograd.function import Function


class GradcheckError(RuntimeError):
    """A gradient differs from finite differences, or backward breaks one of its rules."""


@dataclass(frozen=True)
class _Tolerance:
    eps: float
    atol: float
    rtol: float

    def allows(self, got: float, expected: float, scale: float = 1.0) -> bool:
        return abs(got - expected) <= self.atol * scale + self.rtol * abs(expected)


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, Tensor) else tuple(values)


def _requiring_grad(values: Sequence[Any]) -> list[Tensor]:
    return [t for t in values if isinstance(t, Tensor) and t.requires_grad]


def _differentiable(result: Any) -> list[Tensor]:
    return _requiring_grad(_as_tuple(result))


def _components(t: Tensor) -> int:
    """The number of real numbers in `t`."""
    return t.numel() * (2 if t.is_complex() else 1)


def _real(t: Tensor) -> list[float]:
    """The real numbers of `t`, in order; a complex one is its real and its imaginary part."""
    t = t.detach()
    if t.is_complex():
        t = mica.view_as_real(t.resolve_conj().contiguous())
    if hasattr(type(t), "__torch_dispatch__"):  # a subclass may have no memory of its own
        return [element.item() for element in t.reshape(-1)]
    values: list[float] = t.reshape(-1).tolist()
    return values


def _from_real(values: list[float], like: Tensor) -> Tensor:
    """The tensor of the shape and dtype of `like` with these real numbers."""
    if like.is_complex():
        pairs = mica.tensor(values, dtype=like.dtype.to_real()).reshape(-1, 2)
        return mica.view_as_complex(pairs).reshape(like.shape).to(like.device)
    return mica.tensor(values, dtype=like.dtype, device=like.device).reshape(like.shape)


def _place(t: Tensor, component: int) -> str:
    """A component in words: the element's index, and which part of a complex number."""
    part = ""
    if t.is_complex():
        part = (" (real part)", " (imaginary part)")[component % 2]
        component //= 2
    index = []
    for size in reversed(t.shape):
        index.append(component % size)
        component //= size
    return f"{list(reversed(index))}{part}"


def _check_inputs(name: str, inputs: tuple[Any, ...]) -> list[Tensor]:
    """The inputs whose gradients are checked."""
    checked = _requiring_grad(inputs)
    if not checked:
        raise ValueError(f"{name}() needs an input tensor that requires grad; none of the inputs does.")
    for n, t in enumerate(inputs):
        if not isinstance(t, Tensor) or not t.requires_grad:
            continue
        if t.dtype not in (mica.float64, mica.complex128):
            warnings.warn(
                f"Input ({n}) of {name}() requires grad and is {t.dtype}; finite differences are accurate "
                "enough in float64 and complex128 only, so the check may fail.",
                stacklevel=4,
            )
        if t.numel() and any(stride == 0 and size > 1 for stride, size in zip(t.stride(), t.shape)):
            raise RuntimeError(
                f"Input ({n}) of {name}() has elements that share memory (strides {tuple(t.stride())} of shape "
                f"{tuple(t.shape)}), so they cannot be changed one by one; give a contiguous copy."
            )
    return checked


class _Check:
    """One run: the function, its inputs, and which outputs are differentiable."""

    def __init__(self, func: Callable[..., Any], inputs: tuple[Any, ...], tolerance: _Tolerance) -> None:
        self.func, self.inputs, self.tolerance = func, inputs, tolerance
        self.numbers = [n for n, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
        self.checked = [inputs[n] for n in self.numbers]
        every = _as_tuple(func(*inputs))
        self.outputs = [o for o, t in enumerate(every) if isinstance(t, Tensor) and t.requires_grad]
        # Without a differentiable output, all that can change must not change.
        self.constant = not self.outputs
        if self.constant:
            self.outputs = [
                o
                for o, t in enumerate(every)
                if isinstance(t, Tensor) and (t.is_floating_point() or t.is_complex())
            ]

    def run(self) -> list[Tensor]:
        every = _as_tuple(self.func(*self.inputs))
        return [every[o] for o in self.outputs]

    def difference(self, x: Tensor, direction: list[float]) -> list[list[float]]:
        """The change of every output along a direction of `x`, by central differences."""
        old, step = x.detach().clone(), _from_real(direction, x) * self.tolerance.eps
        values = []
        try:
            for moved in (old + step, old - step):
                x.detach().copy_(moved)
                values.append([_real(o) for o in self.run()])
        finally:
            x.detach().copy_(old)
        scale = 2 * self.tolerance.eps
        return [[(a - b) / scale for a, b in zip(up, down)] for up, down in zip(*values)]

    def gradients(self, output: Tensor, cotangent: list[float]) -> list[Tensor | None]:
        """The gradients of the inputs for a cotangent of one output."""
        return list(
            mica.autograd.grad(
                output, self.checked, _from_real(cotangent, output), retain_graph=True, allow_unused=True
            )
        )

    def pulled(self, output: Tensor, cotangent: list[float]) -> list[list[float]]:
        """The same as real numbers; zeros where there is no gradient."""
        grads = self.gradients(output, cotangent)
        return [[0.0] * _components(x) if g is None else _real(g) for g, x in zip(grads, self.checked)]

    def wrong(self, o: int, n: int, what: str, got: float, expected: float) -> GradcheckError:
        return GradcheckError(
            f"Jacobian mismatch for output {self.outputs[o]} with respect to input {self.numbers[n]}: the gradient is "
            f"wrong {what}: autograd gives ({got:.9g}), finite differences give ({expected:.9g}), with atol "
            f"({self.tolerance.atol:g}) and rtol ({self.tolerance.rtol:g})."
        )


def _unit(size: int, at: int) -> list[float]:
    return [float(i == at) for i in range(size)]


def _check_constant(check: _Check) -> None:
    """Nothing requires grad, so nothing may depend on the inputs."""
    for n, x in enumerate(check.checked):
        for i in range(_components(x)):
            for o, change in enumerate(check.difference(x, _unit(_components(x), i))):
                worst = max(change, key=abs, default=0.0)
                if abs(worst) > check.tolerance.atol:
                    raise GradcheckError(
                        f"Numerical gradient for function expected to be zero: output ({check.outputs[o]}) does not "
                        f"require grad, but it changes by ({worst:.9g}) "
                        f"with element {_place(x, i)} of input ({check.numbers[n]})."
                    )


def _check_all(check: _Check) -> None:
    """Every entry of the Jacobian."""
    # Finite differences first: they write the inputs, which the graph may save.
    numerical = [
        [check.difference(x, _unit(_components(x), i)) for i in range(_components(x))] for x in check.checked
    ]
    for o, output in enumerate(check.run()):
        for k in range(_components(output)):
            grads = check.pulled(output, _unit(_components(output), k))
            for n, x in enumerate(check.checked):
                for i, got in enumerate(grads[n]):
                    expected = numerical[n][i][o][k]
                    if not check.tolerance.allows(got, expected):
                        where = f"for output element {_place(output, k)} and input element {_place(x, i)}"
                        raise check.wrong(o, n, where, got, expected)


def _check_directions(check: _Check) -> None:
    """One random direction of each input against one random cotangent of each output."""
    rng = random.Random(0)
    directions = []
    for x in check.checked:
        raw = [rng.random() for _ in range(_components(x))]
        norm = sum(r * r for r in raw) ** 0.5 or 1.0
        directions.append([r / norm for r in raw])
    numerical = [check.difference(x, d) for x, d in zip(check.checked, directions)]
    for o, output in enumerate(check.run()):
        cotangent = [rng.random() for _ in range(_components(output))]
        grads = check.pulled(output, cotangent)
        for n, direction in enumerate(directions):
            got = sum(g * d for g, d in zip(grads[n], direction))
            expected = sum(c * y for c, y in zip(cotangent, numerical[n][o]))
            # What atol allows for each entry, carried to the sum over all of them.
            if not check.tolerance.allows(got, expected, max(sum(direction) * sum(cotangent), 1.0)):
                _check_all(check)  # says which entry, if one alone is wrong
                raise check.wrong(o, n, "along random directions (fast mode)", got, expected)


def _check_repeats(check: _Check, tolerance: float) -> None:
    """Backward gives the same twice."""
    rng = random.Random(1)
    for o, output in enumerate(check.run()):
        cotangent = [rng.random() for _ in range(_components(output))]
        first, second = check.pulled(output, cotangent), check.pulled(output, cotangent)
        for n, (a, b) in enumerate(zip(first, second)):
            worst = max((abs(p - q) for p, q in zip(a, b)), default=0.0)
            if not worst <= tolerance:
                raise GradcheckError(
                    f"The gradient of output ({check.outputs[o]}) with respect to input ({check.numbers[n]}) "
                    f"differs by ({worst:.9g}) between two runs of backward; nondet_tol ({tolerance:g}) is allowed. "
                    "Backward is not reentrant."
                )


def _check_zeros(check: _Check) -> None:
    """Zero cotangents give zero gradients, which look like their inputs."""
    outputs = check.run()
    seeds = [mica.zeros_like(o) for o in outputs]
    grads = mica.autograd.grad(outputs, check.checked, seeds, allow_unused=True)
    for number, x, grad in zip(check.numbers, check.checked, grads):
        if grad is None:
            continue
        mine = (tuple(grad.shape), grad.dtype, str(grad.device))
        if mine != (tuple(x.shape), x.dtype, str(x.device)):
            raise GradcheckError(
                f"The gradient of input ({number}) is {grad.dtype} {tuple(grad.shape)} on {grad.device}; the "
                f"input is {x.dtype} {tuple(x.shape)} on {x.device}."
            )
        worst = max(_real(grad), key=abs, default=0.0)
        if worst != 0:
            raise GradcheckError(
                f"The gradient of input ({number}) is ({worst:.9g}) for cotangents of zero; backward does not "
                "multiply by its cotangent."
            )


class _Undefined(Function):
    """The identity, whose backward gives no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None


def _check_undefined(check: _Check) -> None:
    """Backward takes cotangents that are not there: all of them, and each alone."""
    count = len(check.outputs)
    for missing in [set(range(count)), *({o} for o in range(count) if count > 1)]:
        outputs = [_Undefined.apply(t) if o in missing else t for o, t in enumerate(check.run())]
        named = ", ".join(str(check.outputs[o]) for o in sorted(missing))
        try:
            grads = mica.autograd.grad(
                outputs, check.checked, [mica.zeros_like(o) for o in outputs], allow_unused=True
            )
        except RuntimeError as error:
            raise GradcheckError(
                f"Expected backward function to handle undefined output grads; it fails when those of outputs ({named}) "
                f"are undefined: {error}"
            ) from error
        for number, grad in zip(check.numbers, grads):
            if grad is not None and any(_real(grad)):
                raise GradcheckError(
                    f"The gradient of input ({number}) is not zero when the cotangents of outputs ({named}) "
                    "are undefined and the others zero."
                )


def _refuse_masked(name: str, masked: bool | None) -> None:
    if masked:
        raise NotImplementedError(
            f"{name}() with masked ({masked}) needs sparse tensors, which Mica does not have; leave masked out."
        )


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Checks the gradients of a function against central finite differences.

    As `torch.autograd.gradcheck`. Every entry of the Jacobian is compared, by
    `abs(a - b) <= atol + rtol * abs(b)`. It also checks that backward gives the same twice, zeros for
    zeros, and gradients of the shape and dtype of their inputs.

    Args:
        func (callable): A function of `inputs` that returns a Tensor or a tuple of them.
        inputs (Tensor or sequence): Its arguments. Those that require grad are checked; they should be
            float64 or complex128, as it warns otherwise.
        eps (float): Step of the differences. Default: 1e-6.
        atol (float): Absolute tolerance. Default: 1e-5.
        rtol (float): Relative tolerance. Default: 1e-3.
        raise_exception (bool): Raise where a gradient is wrong; else return False. Default: True.
        nondet_tol (float): How much two runs of backward may differ. Default: 0.0.
        check_undefined_grad (bool): Check that backward takes outputs without gradient. Default: True.
        check_grad_dtypes (bool): No effect: dtypes are checked always. Default: False.
        check_batched_grad (bool): Compare backward under `vmap` with a loop. Default: False.
        check_batched_forward_grad (bool): The same of forward mode; needs `check_forward_ad`.
            Default: False.
        check_forward_ad (bool): Check forward mode too. Default: False.
        check_backward_ad (bool): Check backward. Default: True.
        fast_mode (bool): Compare along one random direction instead of all entries. Default: False.
        masked (bool, optional): For sparse Tensors, which Mica lacks; True raises. Default: None.

    Returns:
        bool: True where all agree.

    Raises:
        GradcheckError: A gradient is wrong.
        ValueError: No input requires grad.
        AssertionError: The checks asked for contradict each other, or there are none.
        RuntimeError: An input has elements that share memory.
        NotImplementedError: `masked` is True.

    Example:
        >>> x = mica.tensor([0.5, 1.0], dtype=mica.float64, requires_grad=True)
        >>> mica.autograd.gradcheck(mica.sin, x)
        True
    """
    _refuse_masked("gradcheck", masked)
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True.")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True.")
    if not (check_backward_ad or check_forward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True: gradcheck() has nothing "
            "left to check."
        )
    arguments = _as_tuple(inputs)
    _check_inputs("gradcheck", arguments)
    try:
        with mica.enable_grad():
            check = _Check(func, arguments, _Tolerance(eps, atol, rtol))
            if check.constant:
                _check_constant(check)
                return True
            if check_backward_ad:  # first: where both modes fail, backward is what most programs use
                (_check_directions if fast_mode else _check_all)(check)
            if check_forward_ad:
                check_forward(check)
            if check_batched_forward_grad:
                check_batched_forward(check)
            if not check_backward_ad:
                return True
            if check_batched_grad:
                check_batched_backward(check)
            _check_repeats(check, nondet_tol)
            _check_zeros(check)
            if check_undefined_grad:
                _check_undefined(check)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _cotangents(outputs: list[Tensor], strided: bool) -> list[Tensor]:
    """Random cotangents that require grad, from a generator of their own."""
    rng, made = random.Random(2), []
    for o in outputs:
        seed = _from_real([rng.gauss(0, 1) for _ in range(_components(o))], o)
        if strided and o.ndim:
            seed = mica.stack([seed, seed], -1)[..., 0]
        made.append(seed.detach().requires_grad_())
    return made


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Checks second derivatives: `gradcheck` of the gradient, as a function of inputs and output gradients.

    As `torch.autograd.gradgradcheck`.

    Args:
        func (callable): A function of `inputs` that returns a Tensor or a tuple of them.
        inputs (Tensor or sequence): Its arguments. Those that require grad are checked; they should be
            float64 or complex128, as it warns otherwise.
        grad_outputs (Tensor or sequence of Tensor, optional): Gradients of the outputs. Default: random
            ones.
        eps (float): Step of the differences. Default: 1e-6.
        atol (float): Absolute tolerance. Default: 1e-5.
        rtol (float): Relative tolerance. Default: 1e-3.
        gen_non_contig_grad_outputs (bool): Make the random ones strided. Default: False.
        raise_exception (bool): Raise where a gradient is wrong; else return False. Default: True.
        nondet_tol (float): How much two runs of backward may differ. Default: 0.0.
        check_undefined_grad (bool): Check that backward takes outputs without gradient. Default: True.
        check_grad_dtypes (bool): No effect: dtypes are checked always. Default: False.
        check_batched_grad (bool): Compare backward under `vmap` with a loop. Default: False.
        check_fwd_over_rev (bool): Check forward mode through backward too. Default: False.
        check_rev_over_rev (bool): Check backward through backward. Default: True.
        fast_mode (bool): Compare along one random direction instead of all entries. Default: False.
        masked (bool): For sparse Tensors, which Mica lacks; True raises. Default: False.

    Returns:
        bool: True where all agree.

    Raises:
        GradcheckError: A derivative is wrong.
        ValueError: No input or no output requires grad.
        AssertionError: There is nothing to check.
        RuntimeError: An input has elements that share memory.
        NotImplementedError: `masked` is True.

    Example:
        >>> x = mica.tensor([0.5, 1.0], dtype=mica.float64, requires_grad=True)
        >>> mica.autograd.gradgradcheck(mica.sin, x)
        True
    """
    _refuse_masked("gradgradcheck", masked)
    if not (check_rev_over_rev or check_fwd_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True: gradgradcheck() has "
            "nothing left to check."
        )
    arguments = _as_tuple(inputs)
    _check_inputs("gradgradcheck", arguments)
    with mica.enable_grad():
        every = _as_tuple(func(*arguments))
        places = [o for o, t in enumerate(every) if isinstance(t, Tensor) and t.requires_grad]
        outputs = [every[o] for o in places]
        if not outputs:
            raise ValueError("gradgradcheck() needs a function with an output that requires grad.")
        seeds = (
            _cotangents(outputs, gen_non_contig_grad_outputs)
            if grad_outputs is None
            else list(_as_tuple(grad_outputs))
        )
    count = len(arguments)
    numbers = [n for n, t in enumerate(arguments) if isinstance(t, Tensor) and t.requires_grad]

    def gradient(*values: Any) -> tuple[Tensor, ...]:
        inner = values[:count]
        grads = mica.autograd.grad(
            _differentiable(func(*inner)),
            _requiring_grad(inner),
            values[count:],
            create_graph=True,
            allow_unused=True,
        )
        return tuple(g for g in grads if g is not None)

    def pulled_back(*values: Any) -> tuple[Tensor, ...]:
        """The same by vjp, which sees through dual numbers."""

        def of_checked(*checked: Tensor) -> tuple[Tensor, ...]:
            inner = list(values[:count])
            for n, t in zip(numbers, checked):
                inner[n] = t
            every = _as_tuple(func(*inner))
            return tuple(every[o] for o in places)

        _, pull = mica.func.vjp(of_checked, *(values[n] for n in numbers))
        return tuple(pull(tuple(values[count:])))

    def run(function: Callable[..., Any], **which: bool) -> bool:
        return gradcheck(
            function,
            (*arguments, *seeds),
            eps=eps,
            atol=atol,
            rtol=rtol,
            raise_exception=raise_exception,
            nondet_tol=nondet_tol,
            fast_mode=fast_mode,
            **which,
        )

    if check_fwd_over_rev and not run(pulled_back, check_forward_ad=True, check_backward_ad=False):
        return False
    return not check_rev_over_rev or run(
        gradient, check_undefined_grad=check_undefined_grad, check_batched_grad=check_batched_grad
    )
