"""mica.linalg: linear algebra. Operators named linalg_<name> stand here as <name>."""

from mica import _C

LinAlgError = _C.LinAlgError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mica._operators_linalg import *  # noqa: F403

globals().update(
    {k.removeprefix("linalg_"): f for k, f in _C._functions[""].items() if k.startswith("linalg_")}
)
globals().update(_C._functions.get("linalg", {}))
