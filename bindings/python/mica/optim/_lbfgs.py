"""L-BFGS (Nocedal and Wright, algorithms 7.4 and 7.5), with the strong Wolfe line search if asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.optim._optimizer import Optimizer
from mica.optim._steps import check_rate, scalar


def _cubic(
    x1: float, f1: float, g1: float, x2: float, f2: float, g2: float, low: float, high: float
) -> float:
    """The minimum in [low, high] of the cubic through two values and slopes."""
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        place = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        place = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(place, low), high)


class _Point:
    """A step length with the loss there, its gradient, and the slope along the direction."""

    def __init__(self, t: float, f: float, g: Tensor, slope: float) -> None:
        self.t, self.f, self.g, self.slope = t, f, g, slope

    def cubic(self, other: _Point, low: float, high: float) -> float:
        return _cubic(self.t, self.f, self.slope, other.t, other.f, other.slope, low, high)


def _strong_wolfe(
    at: Callable[[float], _Point], start: _Point, t: float, d_norm: float, tolerance: float, most: int
) -> tuple[_Point, int]:
    """A point of sufficient decrease (1e-4) and small slope (0.9), and how often the loss was computed."""
    c1, c2 = 1e-4, 0.9
    previous, point = start, at(t)
    calls, steps, bracket, done = 1, 0, [], False
    while steps < most:
        if point.f > start.f + c1 * point.t * start.slope or (steps > 1 and point.f >= previous.f):
            bracket = [previous, point]
            break
        if abs(point.slope) <= -c2 * start.slope:
            bracket, done = [point], True
            break
        if point.slope >= 0:
            bracket = [previous, point]
            break
        low = point.t + 0.01 * (point.t - previous.t)
        t = previous.cubic(point, low, point.t * 10)
        previous, point = point, at(t)
        calls, steps = calls + 1, steps + 1
    if steps >= most:
        bracket = [start, point]
    stuck = False
    low_, high_ = (0, 1) if bracket[0].f <= bracket[-1].f else (1, 0)
    while not done and steps < most:
        a, b = bracket[0], bracket[1]
        if abs(b.t - a.t) * d_norm < tolerance:
            break
        ends = (min(a.t, b.t), max(a.t, b.t))
        t = a.cubic(b, *ends)
        margin = 0.1 * (ends[1] - ends[0])
        if min(ends[1] - t, t - ends[0]) < margin:
            if stuck or t >= ends[1] or t <= ends[0]:
                t = ends[1] - margin if abs(t - ends[1]) < abs(t - ends[0]) else ends[0] + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = at(t)
        calls, steps = calls + 1, steps + 1
        if point.f > start.f + c1 * point.t * start.slope or point.f >= bracket[low_].f:
            bracket[high_] = point
            low_, high_ = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
        else:
            if abs(point.slope) <= -c2 * start.slope:
                done = True
            elif point.slope * (bracket[high_].t - bracket[low_].t) >= 0:
                bracket[high_] = bracket[low_]
            bracket[low_] = point
    return bracket[low_ if len(bracket) > 1 else 0], calls


def _real(tensor: Tensor) -> Tensor:
    """A complex tensor as pairs of numbers, another as it is."""
    return mica.view_as_real(tensor) if tensor.is_complex() else tensor


class LBFGS(Optimizer):
    """L-BFGS, a quasi-Newton method over all parameters as one vector; for full batches.

    As `torch.optim.LBFGS`. One `step(closure)` runs up to `max_iter` iterations `p = p + t * d`, with
    `d = -H @ g` and `H` the inverse Hessian estimated from the last `history_size` changes of the
    gradient. It computes the loss several times, and all parameters are in one group.

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them.
        lr (float): Length `t` of an iteration, or the first that a line search tries. Default: 1.
        max_iter (int): Most iterations of one `step()`. Default: 20.
        max_eval (int, optional): Most evaluations of the closure in one `step()`.
            Default: `max_iter * 5 // 4`.
        tolerance_grad (float): Ends when no element of the gradient is larger. Default: 1e-7.
        tolerance_change (float): Ends when neither parameters nor loss change by more. Default: 1e-9.
        history_size (int): Changes of the gradient that are kept, each of the size of all parameters.
            Default: 100.
        line_search_fn (str, optional): "strong_wolfe", or None for steps of length `lr`. Default: None.

    Attributes:
        state (dict): For the first parameter the counts `n_iter` and `func_evals`, and the history.

    Raises:
        ValueError: There is more than one group, `lr` is negative, or `params` is empty.
        RuntimeError: The line search is unknown (from `step()`).

    Example:
        >>> w = mica.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = mica.optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((w - 3) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure), w
        (tensor(29., grad_fn=<SumBackward0>), tensor([3.0000, 3.0000], requires_grad=True))
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _gradient(self) -> Tensor:
        parts = [mica.zeros_like(p) if p.grad is None else p.grad for p in self._params]
        return mica.cat([_real(g).reshape(-1) for g in parts])

    def _move(self, length: Any, direction: Tensor) -> None:
        start = 0
        for p in map(_real, self._params):
            p.add_(direction[start : start + p.numel()].view_as(p), alpha=length)
            start += p.numel()

    def _direction(self, state: dict[str, Any], gradient: Tensor, history: int) -> Tensor:
        """The two-loop recursion."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return gradient.neg()
        old, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y = gradient.sub(state["prev_flat_grad"])
        s = state["d"].mul(state["t"])
        ys = y.dot(s)
        if ys > 1e-10:
            if len(old) == history:
                for kept in (old, steps, ro):
                    kept.pop(0)
            old.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        q, weights = gradient.neg(), []
        for y, s, r in zip(reversed(old), reversed(steps), reversed(ro)):
            weights.append(s.dot(q) * r)
            q = q.add(y * -weights[-1])
        d = q.mul(state["H_diag"])
        for y, s, r, weight in zip(old, steps, ro, reversed(weights)):
            d = d.add(s * (weight - y.dot(d) * r))
        return d

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Minimizes the loss by up to `max_iter` iterations.

        Args:
            closure (callable): Clears the gradients, computes the loss, calls `backward()` and returns the
                loss. It is called once for each evaluation.

        Returns:
            Tensor: The loss of the first evaluation, before the parameters changed.
        """
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure that computes the loss and its gradients.")
        search = self.param_groups[0]["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError(f"The line search ({search}) is unknown: only 'strong_wolfe' is supported.")
        with mica.no_grad():
            return self._iterate(mica.enable_grad()(closure))

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, evaluations = float(first), 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if gradient.abs().max() <= group["tolerance_grad"]:
            return first
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = self._direction(state, gradient, group["history_size"])
            state["prev_flat_grad"], before = gradient.clone(), loss
            lr = scalar(group["lr"])
            t = min(1.0, float(1.0 / gradient.abs().sum())) * lr if state["n_iter"] == 1 else lr
            slope = gradient.dot(d)
            if slope > -group["tolerance_change"]:
                state.update(d=d, t=t)
                break
            if group["line_search_fn"] is None:
                self._move(t, d)
                calls = 0
                if iteration != group["max_iter"]:
                    loss, calls = float(closure()), 1
                    gradient = self._gradient()
            else:
                start = _Point(0.0, loss, gradient.clone(), float(slope))
                most = group["max_eval"] - evaluations
                found, calls = self._search(closure, start, d, t, group["tolerance_change"], most)
                loss, gradient, t = found.f, found.g, found.t
                self._move(t, d)
            state.update(d=d, t=t)
            evaluations += calls
            state["func_evals"] += calls
            small = float(d.mul(t).abs().max()) <= group["tolerance_change"]
            if evaluations >= group["max_eval"] or gradient.abs().max() <= group["tolerance_grad"]:
                break
            if small or abs(loss - before) < group["tolerance_change"]:
                break
        state["prev_loss"] = before
        return first

    def _search(
        self, closure: Callable[[], Any], start: _Point, d: Tensor, t: float, tolerance: float, most: int
    ) -> tuple[_Point, int]:
        saved = [p.clone() for p in self._params]

        def at(length: float) -> _Point:
            self._move(length, d)
            loss = float(closure())
            gradient = self._gradient()
            for p, value in zip(self._params, saved):
                p.copy_(value)
            return _Point(length, loss, gradient, float(gradient.dot(d)))

        return _strong_wolfe(at, start, t, float(d.abs().max()), tolerance, most)
