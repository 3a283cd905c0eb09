"""mica.special: special functions under torch.special's names. Operators named
special_<name> stand here as <name>."""

from mica import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mica._operators import (
        digamma as digamma,
        erf as erf,
        erfc as erfc,
        erfinv as erfinv,
        exp2 as exp2,
        expm1 as expm1,
        lgamma,
        log1p as log1p,
        log_softmax as log_softmax,
        logit as logit,
        logsumexp as logsumexp,
        round as round,
        sigmoid,
        sinc as sinc,
        softmax as softmax,
        xlogy as xlogy,
    )
    from mica._operators_special import *  # noqa: F403

    expit, gammaln, psi = sigmoid, lgamma, digamma

_NAMES = {
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "gammaln": "lgamma",
    "i0": "i0",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "polygamma": "polygamma",
    "psi": "digamma",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlogy": "xlogy",
}
globals().update({k: _C._functions[""][v] for k, v in _NAMES.items() if v in _C._functions[""]})
globals().update({k.removeprefix("special_"): f for k, f in _C._functions.get("special", {}).items()})


def __getattr__(name: str) -> object:
    """The operator's own name, by which a pickle finds the function, as in torch._C._special."""
    if name in _C._functions["special"]:
        return _C._functions["special"][name]
    raise AttributeError(f"module 'mica.special' has no attribute '{name}'")
