"""SparseAdam, for gradients that are sparse tensors. Mica has none yet, so that every step
ends in the error that torch gives for dense gradients."""

from __future__ import annotations

from typing import Any

from mica._C import Tensor
from mica.optim._steps import GroupOptimizer, Rows, check_betas, check_rate


class SparseAdam(GroupOptimizer):
    """Adam for sparse gradients, which Mica has none of: every step over a gradient raises.

    It is here so that programs that name it import; use `Adam`. Arguments are as in
    `torch.optim.SparseAdam`.

    Args:
        params (iterable): Parameters to optimize, as `mica.optim.Optimizer` takes them; real ones only.
        lr (float or Tensor): Learning rate, above 0. Default: 1e-3.
        betas (tuple of 2 float): Decay of the means of `g` and of `g**2`, in [0, 1). Default: (0.9,
            0.999).
        eps (float): Added to the denominator, above 0. Default: 1e-8.
        maximize (bool): Climb the gradient instead of descending it. Default: False.

    Raises:
        ValueError: A hyperparameter is out of its range, a parameter is complex, or `params` is empty.
        RuntimeError: A parameter has a (dense) gradient (from `step()`).

    Example:
        >>> w = mica.ones(2, requires_grad=True)
        >>> optimizer = mica.optim.SparseAdam([w])
        >>> w.sum().backward()
        >>> optimizer.step()
        Traceback (most recent call last):
            ...
        RuntimeError: SparseAdam does not support dense gradients, and Mica has no sparse tensors; consider Adam instead.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_rate(lr)
        for name, value in (("lr", lr), ("eps", eps)):
            if not value > 0.0:
                raise ValueError(f"The option {name} ({value}) must be above 0.")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        for i, group in enumerate(self.param_groups):
            for j, p in enumerate(group["params"]):
                if p.is_complex():
                    raise ValueError(f"SparseAdam does not support complex parameters; ([{i}, {j}]) is one.")

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        raise RuntimeError(
            "SparseAdam does not support dense gradients, and Mica has no sparse tensors; consider Adam instead."
        )

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        raise AssertionError("A step without sparse gradients has no rows.")
