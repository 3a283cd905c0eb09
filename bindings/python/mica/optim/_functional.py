"""The optimizers' steps as functions over lists: `adam(params, grads, exp_avgs, ..., lr=..., ...)`.

torch has one beside each class (torch.optim.adam.adam; all of them in torch.optim._functional),
and subclasses call them with what _init_group lists. They write the parameters, the states and the
counts of steps. One row of _ROWS says a function's parameters in torch's order: the lists with the
state that each holds, then what has a default, then what has none. The step is the class's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.optim._adadelta import Adadelta
from mica.optim._adafactor import Adafactor
from mica.optim._adagrad import Adagrad
from mica.optim._adam import Adam
from mica.optim._adamax import Adamax
from mica.optim._asgd import ASGD
from mica.optim._muon import Muon
from mica.optim._nadam import NAdam
from mica.optim._radam import RAdam
from mica.optim._rmsprop import RMSprop
from mica.optim._rprop import Rprop
from mica.optim._sgd import SGD
from mica.optim._steps import GroupOptimizer, Rows, check_capturable, check_fused, check_hints

_AVERAGES = "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq"
_ADAM = (
    f"{_AVERAGES} max_exp_avg_sqs=max_exp_avg_sq state_steps=step",
    "foreach capturable differentiable fused grad_scale found_inf has_complex",
    "amsgrad beta1 beta2 lr weight_decay eps maximize",
)
_ROWS: dict[str, tuple[type[GroupOptimizer], str, str, str]] = {
    "adam": (Adam, _ADAM[0], f"{_ADAM[1]} decoupled_weight_decay", _ADAM[2]),
    "adamw": (Adam, *_ADAM),
    "sgd": (
        SGD,
        "momentum_buffer_list=momentum_buffer",
        "has_sparse_grad foreach fused grad_scale found_inf",
        "weight_decay momentum lr dampening nesterov maximize",
    ),
    "adadelta": (
        Adadelta,
        "square_avgs=square_avg acc_deltas=acc_delta state_steps=step",
        "capturable foreach differentiable has_complex",
        "lr rho eps weight_decay maximize",
    ),
    "adagrad": (
        Adagrad,
        "state_sums=sum state_steps=step",
        "fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
        "lr weight_decay lr_decay eps maximize",
    ),
    "adamax": (
        Adamax,
        "exp_avgs=exp_avg exp_infs=exp_inf state_steps=step",
        "foreach maximize differentiable capturable has_complex",
        "eps beta1 beta2 lr weight_decay",
    ),
    "asgd": (
        ASGD,
        "axs=ax mus=mu etas=eta state_steps=step",
        "foreach maximize differentiable capturable has_complex",
        "lambd lr t0 alpha weight_decay",
    ),
    "nadam": (
        NAdam,
        f"{_AVERAGES} mu_products=mu_product state_steps=step",
        "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
        "beta1 beta2 lr weight_decay momentum_decay eps",
    ),
    "radam": (
        RAdam,
        f"{_AVERAGES} state_steps=step",
        "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
        "beta1 beta2 lr weight_decay eps",
    ),
    "rmsprop": (
        RMSprop,
        "square_avgs=square_avg grad_avgs=grad_avg momentum_buffer_list=momentum_buffer state_steps=step",
        "foreach maximize differentiable capturable has_complex",
        "lr alpha eps weight_decay momentum centered",
    ),
    "rprop": (
        Rprop,
        "prevs=prev step_sizes=step_size state_steps=step",
        "foreach capturable maximize differentiable has_complex",
        "step_size_min step_size_max etaminus etaplus",
    ),
    "adafactor": (
        Adafactor,
        "row_vars=row_var col_vars=col_var variances=variance state_steps=step",
        "foreach grad_scale found_inf has_complex",
        "d lr beta2_decay weight_decay eps1 eps2 maximize",
    ),
    "muon": (
        Muon,
        "muon_momentum_bufs=momentum_buffer",
        "",
        "foreach=None lr weight_decay momentum nesterov ns_coefficients ns_steps eps adjust_lr_fn has_complex",
    ),
}
# Options of a group that the functions take as two numbers.
_PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
    "eps": ("eps1", "eps2"),
}
_NONE = ("foreach", "fused", "grad_scale", "found_inf")  # whose default is None; that of others is False


def _group(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options as a parameter group has them."""
    group: dict[str, Any] = {"differentiable": False, "maximize": False, **options}
    group.update({k: (options[a], options[b]) for k, (a, b) in _PAIRS.items() if a in options})
    if name == "adamw":
        group["decoupled_weight_decay"] = True
    return group


def _scaled(grads: list[Tensor], group: dict[str, Any]) -> bool:
    """Divides the gradients by their scale; whether there is a step at all."""
    scale, found_inf = group.get("grad_scale"), group.get("found_inf")
    if (scale is not None or found_inf is not None) and not group.get("fused"):
        raise AssertionError("Expected grad_scale and found_inf to be None: they go with fused=True.")
    if found_inf is not None and float(found_inf) != 0:
        return False
    if scale is not None:
        mica._foreach_div_(grads, scale)
    return True


def _step(name: str, lists: list[list[Any]], options: dict[str, Any]) -> None:
    kind, columns = _ROWS[name][0], [c.partition("=")[2] for c in _ROWS[name][1].split()]
    group, (params, grads, *states) = _group(name, options), lists
    if "step" in columns and not all(isinstance(step, Tensor) for step in states[columns.index("step")]):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors."
        )
    check_hints(group)
    check_capturable(group, params, kind)
    for p in params if group.get("fused") else ():
        check_fused(p)
    if not params or not _scaled(grads, group):
        return
    rows = Rows.of_columns(columns, params, grads, states)
    kind.__new__(kind)._step(group, rows)
    for column, values in zip(columns, states):  # the first step of SGD makes its sums
        for i, value in enumerate(values):
            if value is None:
                values[i] = rows.states[i].get(column)


def _signature(lists: list[str], defaults: str, needed: str) -> inspect.Signature:
    plain, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, plain) for name in lists]
    for name in defaults.split():
        parameters.append(inspect.Parameter(name, plain, default=None if name in _NONE else False))
    for name in needed.split():
        name, _, default = name.partition("=")
        parameters.append(
            inspect.Parameter(name, keyword, default=None if default else inspect.Parameter.empty)
        )
    return inspect.Signature(parameters)


def _make(name: str) -> Callable[..., None]:
    kind, columns, defaults, needed = _ROWS[name]
    gradients = "d_p_list" if name == "sgd" else "grads"
    lists = ["params", gradients, *(column.partition("=")[0] for column in columns.split())]
    signature = _signature(lists, defaults, needed)

    def function(*args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() got other arguments than {signature}: {error}.") from None
        bound.apply_defaults()
        given = bound.arguments
        _step(name, [given.pop(column) for column in lists], given)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The step of {'AdamW' if name == 'adamw' else kind.__name__} over lists."
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


adam, adamw, sgd, adadelta = (_make(name) for name in ("adam", "adamw", "sgd", "adadelta"))
adagrad, adamax, asgd, nadam = (_make(name) for name in ("adagrad", "adamax", "asgd", "nadam"))
radam, rmsprop, rprop = (_make(name) for name in ("radam", "rmsprop", "rprop"))
adafactor, muon = _make("adafactor"), _make("muon")
