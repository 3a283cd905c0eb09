"""GradScaler: multiplies the loss, so that small float16 gradients do not vanish."""

from __future__ import annotations

import mica

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mica import Tensor
    from mica.optim import Optimizer


class GradScaler:
    """Scales the loss before backward and the gradients back before the step; skips a step whose
    gradients hold an infinity or NaN, and then lowers the scale.

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    device: "cpu", "cuda", … (torch's first argument). init_scale: the first scale. After
    `growth_interval` steps without an infinity the scale is multiplied by `growth_factor` (> 1),
    after one with it by `backoff_factor` (< 1). enabled=False makes every method the plain one.
    As torch.amp.GradScaler.

    ValueError: a factor on the wrong side of 1. RuntimeError: methods called in the wrong order.
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
        if growth_factor <= 1.0:
            raise ValueError(f"The growth_factor ({growth_factor}) of GradScaler must be above 1.")
        if not 0.0 < backoff_factor < 1.0:
            raise ValueError(f"The backoff_factor ({backoff_factor}) of GradScaler must lie between 0 and 1.")
        if growth_interval < 1:
            raise ValueError(f"The growth_interval ({growth_interval}) of GradScaler must be at least 1.")
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        # By the optimizer's id since the last update(): whether an infinity was found, and
        # whether step() was called.
        self._found: dict[int, bool] = {}
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """`outputs`, a tensor or a list, tuple or iterable of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, mica.Tensor):
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(o) for o in outputs])
        if hasattr(outputs, "__iter__"):
            return (self.scale(o) for o in outputs)
        raise ValueError(f"scale takes tensors and iterables of them; got {type(outputs).__name__}.")

    def _unscale(self, optimizer: Optimizer) -> bool:
        """Divides the gradients by the scale; whether one of them is not finite."""
        inverse, finite = 1.0 / self._scale, []
        with mica.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is None:
                        continue
                    if parameter.grad.dtype == mica.float16:
                        raise ValueError(
                            "GradScaler cannot unscale a float16 gradient without losing it; keep the "
                            "parameters in float32 and let autocast choose the operators' dtypes."
                        )
                    parameter.grad.mul_(inverse)
                    finite.append(mica.isfinite(parameter.grad).all())
        return bool(finite) and not all(bool(f) for f in finite)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Brings the optimizer's gradients back to their own scale, before they are clipped, say.
        RuntimeError when called twice since update(), or after step()."""
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is called after step(); call it before, once between two updates.")
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_() has been called on this optimizer since the last update().")
        self._found[id(optimizer)] = self._unscale(optimizer)

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(*args, **kwargs), left out when a gradient is not finite. Returns what
        the optimizer's step returns, or None."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or args:
            raise RuntimeError(
                "A closure is not supported where GradScaler is enabled: it would run unscaled."
            )
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has been called on this optimizer since the last update().")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return None if self._found[id(optimizer)] else optimizer.step(**kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Sets the scale for the next iteration from what the steps found, or to `new_scale`."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found:
            raise RuntimeError(
                "update() found no step or unscale_() since the last update(); call one before it."
            )
        elif any(self._found.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                grown = mica.tensor(self._scale * self._growth_factor)
                self._scale = float(grown) if bool(mica.isfinite(grown)) else self._scale
                self._growth_tracker = 0
        self._found.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """The scale, or 1.0 when disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """By what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets by what the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets by what the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets after how many steps the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """What load_state_dict takes: torch's keys; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes a state_dict() of an enabled scaler. RuntimeError for an empty one."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The state dict of GradScaler is empty: it was saved from a disabled one.")
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
