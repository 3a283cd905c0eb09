"""gradcheck and gradgradcheck: gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mica
from mica._C import Tensor


class GradcheckError(RuntimeError):
    """An analytical gradient differs from the numerical one."""


def _inputs(inputs: Any) -> tuple[Any, ...]:
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _differentiable(t: Any) -> bool:
    return isinstance(t, Tensor) and t.requires_grad


def _outputs(result: Any) -> list[Tensor]:
    items = [result] if isinstance(result, Tensor) else list(result)
    return [t for t in items if isinstance(t, Tensor) and (t.is_floating_point() or t.is_complex())]


def _columns(t: Tensor) -> list[tuple[int, complex]]:
    """Directions of perturbation: each element, and its imaginary part."""
    parts = (1.0, 1.0j) if t.is_complex() else (1.0,)
    return [(i, part) for i in range(t.numel()) for part in parts]


def _numerical(fn: Callable[..., Any], inputs: tuple[Any, ...], x: Tensor, eps: float) -> list[list[Tensor]]:
    """d outputs / d each direction of x, by central differences."""
    rows = []
    flat = x.detach().reshape(-1) if x.is_contiguous() else None
    for index, part in _columns(x):
        values = []
        for sign in (1.0, -1.0):
            step = sign * eps * part if x.is_complex() else sign * eps
            with mica.no_grad():
                if flat is not None:
                    old = flat[index].item()
                    flat[index] = old + step
                else:
                    place = _unravel(index, x.shape)
                    view = x.detach()
                    old = view[place].item()
                    view[place] = old + step
                with mica.enable_grad():  # fn may be a gradient itself
                    results = _outputs(fn(*inputs))
                values.append([o.detach().clone() for o in results])
                if flat is not None:
                    flat[index] = old
                else:
                    view[place] = old
        rows.append([(a - b) / (2 * eps) for a, b in zip(*values)])
    return rows


def _unravel(index: int, shape: Sequence[int]) -> tuple[int, ...]:
    place = []
    for size in reversed(shape):
        place.append(index % size)
        index //= size
    return tuple(reversed(place))


def _compare(analytical: complex, numerical: complex, atol: float, rtol: float) -> bool:
    return abs(analytical - numerical) <= atol + rtol * abs(numerical)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = False,
    **unused: Any,
) -> bool:
    """Whether func's gradients equal finite differences; float64 inputs are needed."""
    args = _inputs(inputs)
    checked = [t for t in args if _differentiable(t)]
    if not checked:
        raise ValueError("gradcheck() needs an input that requires grad.")
    for t in checked:
        if t.dtype not in (mica.float64, mica.complex128):
            raise ValueError(f"gradcheck() needs float64 or complex128 inputs; one is {t.dtype}.")
    try:
        _check(func, args, checked, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(
    func: Any, args: tuple[Any, ...], checked: list[Tensor], eps: float, atol: float, rtol: float
) -> None:
    # Finite differences first: they write the inputs, which the graph may save.
    numerical = [_numerical(func, args, x, eps) for x in checked]
    outputs = _outputs(func(*args))
    for o, output in enumerate(outputs):
        for index, part in _columns(output):
            seed = mica.zeros_like(output).reshape(-1)
            seed[index] = part
            if output.requires_grad:
                grads: Any = mica.autograd.grad(
                    output, checked, seed.reshape(output.shape), retain_graph=True, allow_unused=True
                )
            else:
                grads = [None] * len(checked)
            for n, (x, grad) in enumerate(zip(checked, grads)):
                if grad is not None and (grad.shape != x.shape or grad.dtype != x.dtype):
                    raise GradcheckError(
                        f"The gradient of input ({n}) is {grad.dtype} {tuple(grad.shape)}; the input is {x.dtype} {tuple(x.shape)}."
                    )
                flat = [0.0] * x.numel() if grad is None else grad.reshape(-1).tolist()
                for (i, direction), row in zip(_columns(x), numerical[n]):
                    value = row[o].reshape(-1)[index].item()
                    # The real inner product of the seed with the change of the output.
                    expected = (complex(part).conjugate() * value).real
                    got = (complex(flat[i]).conjugate() * complex(direction)).real
                    if not _compare(got, expected, atol, rtol):
                        raise GradcheckError(
                            f"The gradient of output ({o}) element ({index}) with respect to input ({n}) element ({i}) "
                            f"is {got:.9g}; finite differences give {expected:.9g}."
                        )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **unused: Any,
) -> bool:
    """gradcheck of the gradient itself: second derivatives."""
    args = _inputs(inputs)
    outputs = [t for t in _outputs(func(*args)) if t.requires_grad]
    if grad_outputs is None:
        seeds = [
            mica.randn(*o.shape, dtype=o.dtype) if o.ndim else mica.randn(1, dtype=o.dtype).reshape(())
            for o in outputs
        ]
        for s in seeds:
            s.requires_grad_()
    else:
        seeds = list(_inputs(grad_outputs))
    count = len(args)

    def gradient(*values: Any) -> tuple[Tensor, ...]:
        inner = values[:count]
        wanted = [t for t in inner if _differentiable(t)]
        results = [t for t in _outputs(func(*inner)) if t.requires_grad]
        grads = mica.autograd.grad(results, wanted, values[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradient, (*args, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception
    )
