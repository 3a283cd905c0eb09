"""GradScaler: multiplies the loss, so that small float16 gradients do not vanish."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from enum import Enum

import mica

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mica import Tensor
    from mica.optim import Optimizer


class OptState(Enum):
    """What was done with an optimizer's gradients since the last `update()` of a `GradScaler`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Multiplies the loss so that small float16 gradients do not vanish, and chooses the factor.

    As `torch.amp.GradScaler`. `step()` brings the gradients back to their own scale and leaves the
    optimizer's step out where one is infinite or NaN. `update()` then multiplies the scale by
    `backoff_factor`, and by `growth_factor` after `growth_interval` good iterations in a row.

    Args:
        device (str): Type of device. Where it is "cuda" and there is none, the scaler warns and is
            disabled. Default: "cuda".
        init_scale (float): The scale of the first iteration. Default: 65536.0.
        growth_factor (float): What the scale grows by, above 1. Default: 2.0.
        backoff_factor (float): What the scale shrinks by, below 1. Default: 0.5.
        growth_interval (int): Iterations without infinities before the scale grows. Default: 2000.
        enabled (bool): False makes `scale()` the identity and `step()` the optimizer's. Default: True.

    Raises:
        AssertionError: A factor is on the wrong side of 1.

    Example:
        >>> w = mica.ones(1, requires_grad=True)
        >>> optimizer = mica.optim.SGD([w], lr=0.25)
        >>> scaler = mica.amp.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale((2 * w).sum()).backward()
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> w, scaler.get_scale()
        (tensor([0.5000], requires_grad=True), 8.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not mica.cuda.is_available():
            warnings.warn(
                "GradScaler is for the device (cuda), which is not there; it is disabled.", stacklevel=2
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError(f"The growth_factor ({growth_factor}) of GradScaler must be above 1.")
        if backoff_factor >= 1.0:
            raise AssertionError(f"The backoff_factor ({backoff_factor}) of GradScaler must be below 1.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_fresh)

    def _begin(self, device: Any) -> Tensor:
        if self._scale is None:
            self._scale = mica.full((), float(self._init_scale), dtype=mica.float32, device=device)
            self._growth_tracker = mica.full((), self._init_growth_tracker, dtype=mica.int32, device=device)
        return self._scale

    def _begun(self, method: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(f"{method}() is called before scale(): there is no scale yet.")
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """Multiplies outputs, a loss mostly, by the scale.

        Args:
            outputs (Tensor or iterable of Tensor): What `backward()` will start from.

        Returns:
            Tensor or iterable of Tensor: The products, in a container of the same kind.

        Raises:
            ValueError: Something among the outputs is neither a Tensor nor an iterable.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, mica.Tensor):
            return outputs * self._begin(outputs.device).to(outputs.device)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError(f"scale takes tensors and iterables of them; got {type(outputs).__name__}.")

    def _unscale_grads_(self, optimizer: Optimizer, inverse: Tensor, allow_fp16: bool) -> dict[Any, Tensor]:
        """Multiplies the gradients by `inverse`; for each device whether one was not finite."""
        grads: dict[Any, list[Tensor]] = defaultdict(list)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if parameter.grad.dtype == mica.float16 and not allow_fp16:
                    raise ValueError(
                        "GradScaler cannot unscale a float16 gradient without losing it; keep the "
                        "parameters in float32 and let autocast choose the operators' dtypes."
                    )
                grads[parameter.grad.device].append(parameter.grad)
        found = {}
        with mica.no_grad():
            for device, tensors in grads.items():
                largest = mica.stack([n.float() for n in mica._foreach_norm(tensors, float("inf"))])
                found[device] = mica.isfinite(largest).all().logical_not().float()
                mica._foreach_mul_(tensors, inverse.to(device))
        return found

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides an optimizer's gradients by the scale now, so that they can be clipped before `step()`.

        Args:
            optimizer (Optimizer): The optimizer that holds the parameters.

        Raises:
            RuntimeError: It was called on this optimizer since the last `update()`, or `step()` was.
            ValueError: A gradient is float16; parameters are kept in float32.
            AssertionError: Nothing was scaled yet.
        """
        if not self._enabled:
            return
        scale = self._begun("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is called after step(); call it before, once between two updates.")
        inverse = scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Takes the optimizer's step on unscaled gradients, unless one of them is infinite or NaN.

        Args:
            optimizer (Optimizer): The optimizer.
            *args: Passed to its `step()`.
            **kwargs: Passed to its `step()`; no `closure`.

        Returns:
            What `optimizer.step()` returns; None where it was left out.

        Raises:
            RuntimeError: It was called on this optimizer since the last `update()`, or a `closure` is
                given.
            AssertionError: Nothing was scaled yet, or no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError(
                "A closure is not supported where GradScaler is enabled: it would run unscaled."
            )
        self._begun("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has been called on this optimizer since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError(
                "No gradient of this optimizer was looked at: none of its parameters has one."
            )
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer: Optimizer, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        if any(found.item() for found in state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Sets the scale for the next iteration; call it once an iteration, after all steps.

        Args:
            new_scale (float or Tensor, optional): The scale from now on. Default: grown or shrunk by what the steps
                found.

        Raises:
            AssertionError: No `step()` or `unscale_()` came before, or `new_scale` is no Tensor of 1
                element on the scaler's device.
        """
        if not self._enabled:
            return
        scale = self._begun("update")
        assert self._growth_tracker is not None
        if new_scale is not None:
            if isinstance(new_scale, mica.Tensor) and (
                new_scale.numel() != 1 or new_scale.requires_grad or new_scale.device.type != self._device
            ):
                raise AssertionError(
                    f"The new scale must be a float, or a tensor of 1 element on ({self._device}) without gradient."
                )
            scale.fill_(float(new_scale))
        else:
            states = self._per_optimizer_states.values()
            found = [f for state in states for f in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError(
                    "update() found no step or unscale_() since the last update(); call one before it."
                )
            self._grow(scale, self._growth_tracker, any(f.item() for f in found))
        self._per_optimizer_states = defaultdict(_fresh)

    def _grow(self, scale: Tensor, tracker: Tensor, found_inf: bool) -> None:
        if found_inf:
            scale.mul_(self._backoff_factor)
            tracker.zero_()
        elif tracker.item() + 1 < self._growth_interval:
            tracker.add_(1)
        else:
            grown = scale * self._growth_factor
            if math.isfinite(grown.item()):
                scale.copy_(grown)
            tracker.zero_()

    def get_scale(self) -> float:
        """Returns the scale as a float; 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def _found_inf_per_device(self, optimizer: Optimizer) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _check_inf_per_device(self, optimizer: Optimizer) -> dict[Any, Tensor]:
        """Looks at the gradients as they are; what it found counts for update()."""
        one = mica.ones_like(self._begun("_check_inf_per_device"))
        found = self._unscale_grads_(optimizer, one, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def get_growth_factor(self) -> float:
        """Returns what the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the scale grows by.

        Args:
            new_factor (float): The factor, above 1.
        """
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Returns what the scale shrinks by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the scale shrinks by.

        Args:
            new_factor (float): The factor, below 1.
        """
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Returns after how many iterations without infinities the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets after how many iterations without infinities the scale grows.

        Args:
            new_interval (int): Number of iterations.
        """
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Returns whether the scaler scales at all."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Returns the scale, its factors and its count as a dict for a file; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict()` gave; does nothing when disabled.

        Args:
            state_dict (dict): Result of `state_dict()` of an enabled scaler.

        Raises:
            RuntimeError: `state_dict` is empty.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The state dict of GradScaler is empty: it was saved from a disabled one.")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(state_dict["scale"])
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler can be pickled before the first step of an iteration or after update() alone."
                )
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
