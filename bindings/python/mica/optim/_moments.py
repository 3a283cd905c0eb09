"""What Adamax, NAdam and RAdam share: betas, eps and decay, and a running mean of gradients."""

from __future__ import annotations

from typing import Any

from mica.optim._steps import GroupOptimizer, Rows, check_betas, check_range, check_rate, scalar


class _MomentOptimizer(GroupOptimizer):
    """Those with betas, eps and decay, whose state begins with a running mean."""

    _slots = ("exp_avg", "exp_avg_sq")
    _columns = ("exp_avg", "exp_avg_sq", "step")

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        check_rate(defaults["lr"])
        check_range("eps", defaults["eps"], 0.0)
        check_betas(defaults["betas"])
        check_range("weight_decay", defaults["weight_decay"], 0.0)
        super().__init__(params, defaults)

    def _kept(self, group: dict[str, Any], rows: Rows) -> Any:
        """What the decay leaves of the parameter; where it is coupled it is added to the gradient."""
        decay = group["weight_decay"]
        if group.get("decoupled_weight_decay"):
            rows.prepare(group, 0)
            return 1 - scalar(group["lr"], group) * decay
        rows.prepare(group, decay)
        return 1.0
