"""How tensors print: torch's rules for width, precision, scientific notation,
summaries and the suffix (dtype, device, size, grad_fn, requires_grad)."""

from __future__ import annotations

import math

import mica
from mica import _C
from mica._C import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any


class _Options:
    """What set_printoptions sets. (No dataclass: that would import inspect.)"""

    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: bool | None = None


_options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors print, for the rest of the program.

    As `torch.set_printoptions`.

    Args:
        precision (int, optional): Digits behind the point. At the start 4.
        threshold (float, optional): Tensors of more elements are shortened. At the start 1000.
        edgeitems (int, optional): Elements at both ends of a dimension that is shortened. At the start 3.
        linewidth (int, optional): Characters of a line. At the start 80.
        profile (str, optional): Sets the four to those of "default", "short" (2 digits, 2 edge items) or
            "full" (nothing is shortened).
        sci_mode (bool, optional): With exponents always, or never. None, also where it is left out, by
            what suits the numbers.

    Raises:
        ValueError: The profile is unknown.

    Example:
        >>> mica.set_printoptions(precision=2)
        >>> mica.tensor([1 / 3])
        tensor([0.33])
        >>> mica.set_printoptions(profile="default")
    """
    if profile is not None:
        profiles = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}
        if profile not in profiles:
            raise ValueError(f"The profile ({profile}) is unknown; expected default, short or full.")
        _options.precision, _options.threshold, _options.edgeitems, _options.linewidth = profiles[profile]
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            setattr(_options, name, value)
    _options.sci_mode = sci_mode


class _Formatter:
    """Formats the numbers of one tensor, all in one width."""

    def __init__(self, values: list[Any], floating: bool) -> None:
        self.floating = floating
        self.int_mode = True
        self.sci_mode = False
        self.max_width = 1
        if not floating:
            self.max_width = max([1, *(len(str(v)) for v in values)])
            return
        finite = [v for v in values if math.isfinite(v) and v != 0]
        if not finite:
            return
        low = min(abs(v) for v in finite)
        high = max(abs(v) for v in finite)
        self.int_mode = all(v == math.ceil(v) for v in finite)
        self.sci_mode = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        if _options.sci_mode is not None:
            self.sci_mode = _options.sci_mode
        precision = _options.precision
        if self.sci_mode:
            widths = [len(f"{v:.{precision}e}") for v in finite]
        elif self.int_mode:
            widths = [len(f"{v:.0f}") + 1 for v in finite]
        else:
            widths = [len(f"{v:.{precision}f}") for v in finite]
        self.max_width = max(widths)

    def format(self, value: Any) -> str:
        if not self.floating:
            text = str(value)
        elif self.sci_mode:
            text = f"{value:{self.max_width}.{_options.precision}e}"
        elif self.int_mode:
            text = f"{value:.0f}"
            if math.isfinite(value):
                text += "."
        else:
            text = f"{value:.{_options.precision}f}"
        return " " * (self.max_width - len(text)) + text


class _ComplexFormatter:
    """A complex number as two formatted parts."""

    def __init__(self, values: list[complex]) -> None:
        self.real = _Formatter([v.real for v in values], True)
        self.imag = _Formatter([v.imag for v in values], True)
        self.max_width = self.real.max_width + self.imag.max_width + 1

    def format(self, value: complex) -> str:
        imag = self.imag.format(value.imag).lstrip()
        sign = "" if imag[0] in "+-" else "+"
        return f"{self.real.format(value.real)}{sign}{imag}j"


def _flatten(values: Any) -> list[Any]:
    if not isinstance(values, list):
        return [values]
    out: list[Any] = []
    for v in values:
        out.extend(_flatten(v))
    return out


def _vector(values: list[Any], size: int, indent: int, summarize: bool, formatter: Any) -> str:
    element = formatter.max_width + 2
    per_line = max(1, math.floor((_options.linewidth - indent) / element))
    edge = _options.edgeitems
    if summarize and size > 2 * edge:
        texts = (
            [formatter.format(v) for v in values[:edge]]
            + [" ..."]
            + [formatter.format(v) for v in values[edge:]]
        )
    else:
        texts = [formatter.format(v) for v in values]
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(values: Any, shape: tuple[int, ...], indent: int, summarize: bool, formatter: Any) -> str:
    if not shape:
        return str(formatter.format(values))
    if len(shape) == 1:
        return _vector(values, shape[0], indent, summarize, formatter)
    edge = _options.edgeitems
    parts = [_nested(v, shape[1:], indent + 1, summarize, formatter) for v in values]
    if summarize and shape[0] > 2 * edge:
        parts.insert(edge, "...")
    separator = "," + "\n" * (len(shape) - 1) + " " * (indent + 1)
    return "[" + separator.join(parts) + "]"


def _edges(t: Tensor) -> Tensor:
    """The elements that a summary shows, the middle of each long dimension cut out."""
    edge = _options.edgeitems
    for dim, size in enumerate(t.shape):
        if size > 2 * edge:
            t = mica.cat((t.narrow(dim, 0, edge), t.narrow(dim, size - edge, edge)), dim)
    return t


def _data_text(t: Tensor, indent: int) -> str:
    summarize = t.numel() > _options.threshold
    shown = _edges(t) if summarize else t
    values = shown.tolist()
    flat = _flatten(values)
    if t.dtype.is_complex:
        formatter: Any = _ComplexFormatter(flat)
    else:
        formatter = _Formatter(flat, t.dtype.is_floating_point)
    return _nested(values, tuple(t.shape), indent, summarize, formatter)


def _suffixes(self: Tensor, has_values: bool) -> list[str]:
    suffixes: list[str] = []
    default_dtypes = (mica.get_default_dtype(), mica.int64, mica.bool)
    default_complex = mica.complex128 if mica.get_default_dtype() == mica.float64 else mica.complex64
    has_default = self.dtype in default_dtypes or self.dtype == default_complex
    if self.device.type != "cpu" or not has_values:
        suffixes.append(f"device='{self.device}'")
    if has_values and self.numel() == 0:
        if self.ndim != 1:
            suffixes.append(f"size={tuple(self.shape)}")
        if self.dtype != mica.get_default_dtype():
            suffixes.append(f"dtype={self.dtype}")
    elif not has_values:
        suffixes.append(f"size={tuple(self.shape)}")
        if self.dtype != mica.get_default_dtype():
            suffixes.append(f"dtype={self.dtype}")
    elif not has_default:
        suffixes.append(f"dtype={self.dtype}")
    try:
        grad_fn: Any = self.grad_fn
        name = "" if grad_fn is None else grad_fn.name().rsplit("::", 1)[-1]
    except RuntimeError:  # a view that was made under no_grad, of a base that was written since
        name = "Invalid"
    if name:
        suffixes.append(f"grad_fn=<{name}>")
    elif self.requires_grad:
        suffixes.append("requires_grad=True")
    return suffixes


def _add_suffixes(text: str, suffixes: list[str], indent: int, force_newline: bool = False) -> str:
    parts = [text]
    last = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or last + len(suffix) + 2 > _options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            last = indent + len(suffix)
            force_newline = False
        else:
            parts.append(", " + suffix)
            last += len(suffix) + 2
    parts.append(")")
    return "".join(parts)


def tensor_repr(self: Tensor) -> str:
    """The text of repr(tensor)."""
    escaped = _C._frame_escaped_from(self)
    if escaped is not None:
        return f"<{self.dtype} tensor of shape {tuple(self.shape)} that escaped from {escaped}>"
    batched = _C._vmap_text(self)
    if batched is not None:
        return f"tensor(..., {batched}, one example of a batch)"
    traced = _C._trace_text(self)
    if traced is not None:
        return f"tensor(..., {traced}, in a trace)"
    previous = _C._set_grad_enabled(False)
    try:
        plain = type(self) is Tensor or type(self).__name__ == "Parameter"
        prefix = "tensor(" if plain else f"{type(self).__name__}("
        indent = len(prefix)
        has_values = self.device.type != "meta"
        if not has_values:
            data = "..."
        elif self.numel() == 0:
            data = "[]"
        else:
            data = _data_text(self.detach(), indent)
        return _add_suffixes(prefix + data, _suffixes(self, has_values), indent)
    finally:
        _C._set_grad_enabled(previous)
