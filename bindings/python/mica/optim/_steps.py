"""GroupOptimizer: optimizers whose step is an operator over all parameters of a group.

A subclass says in `_slots` which tensors it keeps a parameter. Its `_update` names an operator
(an entry of operators/nn_optimizers_steps.yaml) and gives the operator its numbers. The
operator takes the parameter, its gradient and its state, and gives the new ones; it is run
over lists in one call. With differentiable=True the same entry's program is run from
ordinary operators, which have gradients.
"""

from __future__ import annotations

import copy
import functools
import math
import operator as python_operator
from collections.abc import Callable, Sequence
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.optim._optimizer import Optimizer


class Rows:
    """Of the parameters of a group that have a gradient: they, their gradients and states."""

    def __init__(
        self, params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]], any_complex: bool
    ) -> None:
        self.given, self.params, self.grads, self.states = params, params, grads, states
        self.any_complex = any_complex
        self.counts: list[Tensor] = []  # of steps, which are advanced when the step is done
        if any_complex:
            self.complex = [p.is_complex() for p in params]
            self.params, self.grads = self._real(params), self._real(grads)

    def _real(self, tensors: list[Tensor]) -> list[Tensor]:
        return [mica.view_as_real(t) if c else t for t, c in zip(tensors, self.complex)]

    def column(self, name: str) -> list[Tensor]:
        """One state of all parameters, complex ones as pairs of numbers."""
        found = [state[name] for state in self.states]
        return self._real(found) if self.any_complex else found

    @classmethod
    def of_columns(
        cls, names: Sequence[str], params: list[Tensor], grads: list[Tensor], columns: Sequence[list[Any]]
    ) -> Rows:
        """Rows whose states lie in lists, one for each name; a list may be empty."""
        used = [(name, column) for name, column in zip(names, columns) if len(column) == len(params)]
        states = [{n: c[i] for n, c in used if c[i] is not None} for i in range(len(params))]
        return cls(params, grads, states, any(p.is_complex() for p in params))

    def where(self, chosen: list[bool]) -> Rows:
        """Some of the rows."""
        if False not in chosen:
            return self
        found = copy.copy(self)
        for name, values in vars(self).items():
            if isinstance(values, list) and values:
                setattr(found, name, [value for value, use in zip(values, chosen) if use])
        return found

    def prepare(self, group: dict[str, Any], decay: Any) -> None:
        """Turns the gradients where the group maximizes; adds `decay` times the parameters."""
        if group["maximize"]:
            self.grads = mica._foreach_neg(self.grads)
        if isinstance(decay, Tensor):
            self.grads = mica._foreach_add(self.grads, mica._foreach_mul(self.params, decay))
        elif decay != 0:
            self.grads = mica._foreach_add(self.grads, self.params, alpha=decay)


def scalar(value: Any, group: dict[str, Any] | None = None) -> Any:
    """The number in a Tensor that needs no gradient; other values as they are. With the `group` of a step that
    is recorded, or can be, a tensor on the device stays one: later replays read what it then holds."""
    if not isinstance(value, Tensor) or value.requires_grad:
        return value
    if group is None or value.device.type == "cpu":
        return value.item()
    return value if group.get("capturable") or _C._is_recording(value.device) else value.item()


class GroupOptimizer(Optimizer):
    """An optimizer that steps group by group."""

    _slots: tuple[str, ...] = ()  # the state that is like the parameter, zeros at first
    _capturable = False  # whether it takes capturable=True: nothing of its step depends on a value in Python
    _columns: tuple[str, ...] = ()  # what _init_group lists of the states; "name?": None where there is none

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)
        check_hints(defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("foreach", "fused"):
                if name in self.defaults:
                    group.setdefault(name, None)
            for name in ("maximize", "differentiable", "capturable", "amsgrad", "nesterov"):
                if name in self.defaults:
                    group.setdefault(name, False)
            if "decoupled_weight_decay" in self.defaults:
                group.setdefault("decoupled_weight_decay", self.defaults["decoupled_weight_decay"])
        for own in self.state.values():  # states of old files hold numbers
            for name in ("step", "mu_product", "eta", "mu"):
                if isinstance(own, dict) and isinstance(own.get(name), (int, float)):
                    own[name] = mica.tensor(float(own[name]), dtype=step_dtype())

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient; parameters without one stay as they are.

        Args:
            closure (callable, optional): Computes the loss anew, with its gradients, and returns it.

        Returns:
            The closure's loss, or None.
        """
        loss = None
        if closure is not None:
            with mica.enable_grad():
                loss = closure()
        before = _C._set_grad_enabled(bool(self.defaults.get("differentiable")))
        try:
            overridden = type(self)._init_group is not GroupOptimizer._init_group
            for group in self.param_groups:
                rows = self._rows_of_lists(group) if overridden else self._rows(group)
                if rows.params:
                    self._step(group, rows)
                    if overridden and self._keeps_state(group):
                        for p, own in zip(rows.given, rows.states):
                            self.state[p].update(own)
        finally:
            _C._set_grad_enabled(before)
        return loss

    def _step(self, group: dict[str, Any], rows: Rows) -> None:
        """The update, and after it the counts: one that fails leaves all as it was."""
        self._update(group, rows)
        if rows.counts:
            over_rows("add_.Scalar", rows.counts, 1)

    def _update(self, group: dict[str, Any], rows: Rows) -> None:
        raise NotImplementedError(f"Optimizer ({type(self).__name__}) says no update of a group.")

    def _init_group(
        self, group: dict[str, Any], params_with_grad: list[Tensor], grads: list[Tensor], *columns: list[Any]
    ) -> Any:
        """Lists the parameters that have gradients, these, and their states, as torch's optimizers do.
        step() asks it in classes that have their own."""
        rows = self._rows(group)
        params_with_grad += rows.given
        grads += [p.grad for p in rows.given]
        for name, column in zip(self._columns, columns):
            key = name.rstrip("?")
            if self._keeps_state(group):
                column += [own.get(key) for own in rows.states if key in own or name != key]
        return self._kinds(rows)

    def _kinds(self, rows: Rows) -> Any:
        """What _init_group returns: whether a parameter is complex."""
        return rows.any_complex

    def _rows_of_lists(self, group: dict[str, Any]) -> Rows:
        params: list[Tensor] = []
        grads: list[Tensor] = []
        columns: list[list[Any]] = [[] for _ in self._columns]
        self._init_group(group, params, grads, *columns)
        return Rows.of_columns([name.rstrip("?") for name in self._columns], params, grads, columns)

    def _rows(self, group: dict[str, Any]) -> Rows:
        params, grads, any_complex = _C._with_gradients(group["params"])
        check_capturable(group, params, type(self))
        states: Any = [{}] * len(params)
        if self._keeps_state(group):
            state = self.state
            states = [state[p] for p in params]
            if not all(states):
                fresh = [(p, own) for p, own in zip(params, states) if len(own) == 0]
                for p, _ in fresh:
                    check_first_step(group, p)
                for p, own in fresh:
                    self._begin(group, p, own)
            if group.get("capturable"):
                bring_counts(params, states)
        return Rows(params, grads, states, any_complex)

    def _keeps_state(self, group: dict[str, Any]) -> bool:
        return True

    def _begin(self, group: dict[str, Any], p: Tensor, own: dict[str, Any]) -> None:
        """Fills the state of a parameter before its first step."""
        if group.get("fused"):
            check_fused(p)
        if group.get("capturable"):
            own["step"] = mica.zeros((), dtype=mica.float32, device=p.device)
        else:
            own["step"] = mica.tensor(0.0, dtype=step_dtype())
        for name in self._slots:
            own[name] = mica.zeros_like(p)

    def _advance(self, group: dict[str, Any], rows: Rows) -> list[Any]:
        """The number of each parameter's step that begins; its count says so when the step is done. Where
        the step can be recorded, a tensor on the parameter's device; for run_capturable() the count itself."""
        if _C._frame_kind() == "trace":
            raise RuntimeError(
                f"The optimizer ({type(self).__name__}) reads the number of its step, which a trace would keep "
                "as it is now: the graph would repeat that step for ever. Trace the loss and its gradients "
                "(mica.func.grad), and call step() outside of the graph."
            )
        rows.counts = [state["step"] for state in rows.states]
        if group.get("capturable"):
            check_counts(rows.given, rows.counts)
            return rows.counts if one_kernel(group) else [s + 1 for s in rows.counts]
        if _C._is_recording(rows.given[0].device):
            raise RuntimeError(
                f"The optimizer ({type(self).__name__}) reads the number of its step, which a recorded graph would "
                "keep as it is now; make it with capturable=True, or call step() outside of the recording."
            )
        return [s.item() + 1 for s in rows.counts]


def step_dtype() -> mica.dtype:
    """Of the counts of steps, which lie on the CPU."""
    return mica.float64 if mica.get_default_dtype() == mica.float64 else mica.float32


def run(
    operator: str,
    group: dict[str, Any],
    rows: Rows,
    slots: Sequence[str],
    keys: list[Any],
    numbers: Callable[[Any], tuple[Any, ...]],
) -> None:
    """Lets `operator` write the parameters and their `slots` over. numbers(key) are its other
    arguments; the key of a parameter (its count of steps, say) is mostly that of all."""
    state = [rows.column(name) for name in slots]
    others = number_columns(keys, numbers)
    ordinary = by_operators(group, others)
    apply(operator, [rows.params, rows.grads, *state], [rows.params, *state], others, ordinary)


def by_operators(group: dict[str, Any], numbers: Sequence[Any]) -> bool:
    """Whether the step is computed by ordinary operators, which have gradients and take numbers that are tensors."""
    firsts = (n[0] if isinstance(n, list) else n for n in numbers)
    return bool(group["differentiable"]) or any(isinstance(n, Tensor) for n in firsts)


def one_kernel(group: dict[str, Any]) -> bool:
    """Whether run_capturable() computes the step: one that can be recorded, and has no gradient."""
    return bool(group.get("capturable")) and not group["differentiable"]


def run_capturable(
    operator: str, rows: Rows, slots: Sequence[str], lr: Any, numbers: tuple[float, ...]
) -> None:
    """run() where the counts of steps and `lr` are tensors on the device, which a replay reads anew. The
    operator takes the counts of the steps that are done; they advance after it."""
    state = [rows.column(name) for name in slots]
    rates = _rates(rows.params, lr)
    inputs = [rows.params, rows.grads, *state, rows.counts, rates]
    over_rows(f"{operator}.out", *inputs, *numbers, rows.params, *state)


def _rates(params: list[Tensor], lr: Any) -> list[Tensor]:
    """For each parameter `lr` as a tensor on its device; parameters of one kind share it."""
    kinds = [(p.device, mica.float64 if p.dtype == mica.float64 else mica.float32) for p in params]
    made = {}
    for device, dtype in set(kinds):
        if isinstance(lr, Tensor):
            made[device, dtype] = lr.detach().reshape(()).to(device, dtype)
        else:
            made[device, dtype] = mica.full((), lr, dtype=dtype, device=device)
    return [made[kind] for kind in kinds]


def logarithm(beta: Any) -> float:
    """Of a number of [0, 1)."""
    return math.log(beta) if beta > 0 else -math.inf


def number_columns(keys: list[Any], numbers: Callable[[Any], tuple[Any, ...]]) -> Sequence[Any]:
    """numbers(key) where all keys are one, else a list for each number."""
    first = keys[0]
    if len(keys) == 1 or (not isinstance(first, Tensor) and keys.count(first) == len(keys)):
        return numbers(first)
    return [list(column) for column in zip(*map(numbers, keys))]


def apply(
    operator: str, inputs: list[list[Tensor]], outputs: list[list[Tensor]], others: Any, ordinary: bool
) -> None:
    """Calls an operator over columns of tensors; its results take the place of `outputs`. `ordinary`: by_operators()."""
    if ordinary:
        return _by_operators(operator, inputs, outputs, others)
    return over_rows(f"{operator}.out", *inputs, *others, *outputs)


def over_rows(operator: str, *arguments: Any) -> None:
    """An operator that writes, row by row; calls of functions, which it is none of, are not asked."""
    _operator(operator)._rows_unasked(*arguments)


@functools.cache
def _operator(name: str) -> Any:
    return _C._find_operator(f"mica::{name}")


def _maximum(a: Any, b: Any) -> Any:
    return mica.maximum(a, b) if isinstance(b, Tensor) else mica.clamp_min(a, b)


def _minimum(a: Any, b: Any) -> Any:
    return mica.minimum(a, b) if isinstance(b, Tensor) else mica.clamp_max(a, b)


def _select(mask: Any, a: Any, b: Any) -> Any:
    return mica.where(mask, a, b) if isinstance(mask, Tensor) else a if mask else b


# What the programs' opcodes are as operators, where the name is another.
_OPCODES: dict[str, Callable[..., Any]] = {
    **{name.upper(): getattr(python_operator, name) for name in ("add", "sub", "mul", "eq", "lt", "gt")},
    "DIV": python_operator.truediv,
    "MAX": _maximum,
    "MIN": _minimum,
    "SELECT": _select,
}


def _by_operators(
    operator: str, inputs: list[list[Tensor]], outputs: list[list[Tensor]], others: Any
) -> None:
    for i in range(len(inputs[0])):
        tensors = [column[i].clone() for column in inputs]  # which the writes below leave as they are
        numbers = [n[i] if isinstance(n, list) else n for n in others]
        for column, value in zip(outputs, interpret(operator, [*tensors, *numbers])):
            column[i].copy_(value)


def interpret(operator: str, arguments: list[Any]) -> list[Any]:
    """The results of an operator's program over whole tensors, from ordinary operators."""
    _, codes, constants, inputs, scalars = _operator(operator).program
    registers: dict[int, Any] = {}
    results: dict[int, Any] = {}
    for opcode, register, read, aux in codes["main"]:
        values = [registers[r] for r in read]
        if opcode == "LOAD":
            registers[register] = arguments[inputs[aux]]
        elif opcode == "SCALAR":
            registers[register] = arguments[scalars[aux]]
        elif opcode == "CONST":
            registers[register] = constants[aux]
        elif opcode == "STORE":
            results[aux] = values[0]
        else:
            function = _OPCODES.get(opcode) or getattr(mica, opcode.lower())
            registers[register] = function(*values)
    return [results[i] for i in range(len(results))]


def fill(tensors: list[Tensor], values: list[float]) -> None:
    """Writes a number into each tensor."""
    over_rows("fill_.Scalar", tensors, values)


def check_capturable(group: dict[str, Any], params: list[Tensor], kind: type) -> None:
    """capturable=True is for devices that record graphs, and optimizers whose step they can record."""
    if not group.get("capturable"):
        return
    for p in params:
        if p.device.type in ("cpu", "meta"):
            raise AssertionError(
                "With capturable=True the parameters must be on a device that records graphs of steps (cuda); "
                f"one is on ({p.device.type})."
            )
    if not getattr(kind, "_capturable", False):
        raise NotImplementedError(
            f"The step of ({kind.__name__}) cannot be recorded, since it reads values in Python; leave out "
            "capturable= and call step() outside of the recording, or take Adam, AdamW, Adamax, Adadelta, "
            "RMSprop, Rprop or SGD."
        )


def check_first_step(group: dict[str, Any], p: Tensor) -> None:
    """A step that makes its state is not recorded: each replay would make the state anew."""
    if _C._is_recording(p.device):
        made = "make it with capturable=True, and " if group.get("capturable") is False else ""
        raise RuntimeError(
            "The first step of an optimizer makes its state, which a recorded graph would make anew at each "
            f"replay; {made}call step() once before the recording."
        )


def bring_counts(params: list[Tensor], states: list[dict[str, Any]]) -> None:
    """Counts of steps that were made without capturable=True come to their parameter's device."""
    for p, own in zip(params, states):
        if own["step"].device != p.device:
            if _C._is_recording(p.device):
                check_counts([p], [own["step"]])
            own["step"] = own["step"].to(p.device)


def check_counts(params: list[Tensor], counts: list[Tensor]) -> None:
    """Of a step that can be recorded."""
    for p, count in zip(params, counts):
        if count.device != p.device:
            raise RuntimeError(
                f"With capturable=True the count of steps must be on the parameter's device ({p.device}), but it is "
                f"on ({count.device}), so that a recorded graph would keep it as it is now; call step() once "
                "before the recording, or move it."
            )


def check_fused(p: Tensor) -> None:
    """fused=True is for floating parameters."""
    if not p.is_floating_point():
        raise RuntimeError(
            f"fused=True needs parameters of floating dtypes; this one is of ({p.dtype}) on ({p.device.type})."
        )


def check_hints(defaults: dict[str, Any]) -> None:
    """fused goes neither with foreach nor with differentiable."""
    if defaults.get("fused") and defaults.get("differentiable"):
        raise RuntimeError("`fused` does not support `differentiable`: give one of them.")
    if defaults.get("fused") and defaults.get("foreach"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together: give one of them.")


# How programs know the options, by torch's sentences.
_NAMED = {
    "lr": "learning rate",
    "eps": "epsilon value",
    "betas[0]": "beta parameter at index 0",
    "betas[1]": "beta parameter at index 1",
}


def check_range(name: str, value: Any, low: float, high: float | None = None, last: bool = False) -> None:
    """Raises ValueError where an option is out of its range [low, high), with `last` [low, high],
    TypeError where it is no number."""
    if not isinstance(value, (int, float, Tensor)):
        raise TypeError(f"The option {name} is a number; this value is of type ({type(value).__name__}).")
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(
            f"The option {name} is a tensor of ({value.numel()}) elements; it must have 1 element."
        )
    inside = high is None or value < high or (last and value == high)
    if not (value >= low and inside):
        text = f"at least {low}" if high is None else f"in [{low}, {high}{']' if last else ')'}"
        raise ValueError(f"Invalid {_NAMED.get(name, f'{name} value')}: {value}; it must be {text}.")


def check_rate(lr: Any, foreach: Any = None, capturable: bool = False) -> None:
    """What a learning rate may be: a number from 0 on, or a tensor of one."""
    check_range("lr", lr, 0.0)
    if isinstance(lr, Tensor) and foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True.")


def check_betas(betas: Any) -> None:
    """Two numbers of [0, 1)."""
    check_range("betas[0]", betas[0], 0.0, 1.0)
    check_range("betas[1]", betas[1], 0.0, 1.0)
