"""What torch.Tensor has and Mica's lacks: asking for such a name raises AttributeError that says so.

A descriptor stands where each method would. So nothing else pays for the sentence, hasattr() says no
of tensors and of the class, and a subclass or a single tensor may have something of the name. dir() of
a tensor leaves the names out.
"""

from __future__ import annotations

from mica import _C

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any

    from mica._C import Tensor

_LACKING = {
    "sparse tensors": "ccol_indices coalesce col_indices crow_indices indices resize_as_sparse_ row_indices smm "
    "sparse_mask sparse_resize_ sparse_resize_and_clear_ sspaddmm to_sparse to_sparse_bsc to_sparse_bsr "
    "to_sparse_coo to_sparse_csc to_sparse_csr values",
    "quantized tensors": "dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points "
    "q_scale q_zero_point qscheme",
    "nested tensors": "to_padded_tensor",
    "tensors in oneDNN's layouts": "to_mkldnn",
    "it": "grad_dtype slice_inverse",
}


class _Absent:
    __slots__ = ("_kind", "_name")

    def __init__(self, name: str, kind: str) -> None:
        self._name, self._kind = name, kind

    def __get__(self, instance: Any, owner: Any) -> Any:
        raise AttributeError(
            f"'{owner.__name__}' object has no attribute '{self._name}': Mica lacks {self._kind}; "
            "docs/reference/torch_coverage.md lists what is there.",
            name=self._name,
            obj=owner if instance is None else instance,
        )


_ABSENT = {name: _Absent(name, kind) for kind, names in _LACKING.items() for name in names.split()}


def __dir__(self: Tensor) -> list[str]:
    """The names of what a tensor has."""
    from inspect import getattr_static

    names = object.__dir__(self)
    return [n for n in names if n not in _ABSENT or not isinstance(getattr_static(self, n), _Absent)]


_C._add_tensor_attributes({**_ABSENT, "__dir__": __dir__})
