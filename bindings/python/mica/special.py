"""mica.special: special functions under torch.special's names. Operators named
special_<name> stand here as <name>."""

from mica import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mica._operators_special import *  # noqa: F403

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
