"""Reading pickles; with `weights_only` through an unpickler that builds tensors,
containers and dtypes only."""

from __future__ import annotations

import io
import pickle
from typing import Any

_ALLOWED = {
    ("collections", "OrderedDict"),
    ("mica._serialization", "_rebuild_tensor"),
    ("mica._serialization", "_rebuild_subclass"),
    ("mica._serialization", "_rebuild_meta"),
    ("mica._serialization", "_SharedBytes"),
    ("mica._C", "_metadata_object"),
    ("mica", "Size"),
    ("mica", "device"),
    ("mica", "Tensor"),
    ("mica.nn.parameter", "Parameter"),
    ("builtins", "set"),
    ("builtins", "bytearray"),
    ("builtins", "complex"),
}


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(
                f"The file refers to {module}.{name}, which weights_only=True does not build. "
                "Load it with weights_only=False if you trust where it comes from."
            )
        return super().find_class(module, name)


def load_file(f: Any, weights_only: bool) -> Any:
    """What an open file holds."""
    from mica._checkpoint_read import Refused, check_opcodes

    if not weights_only:
        return pickle.Unpickler(f).load()
    content = f.read()
    try:
        check_opcodes(content)
        return _Restricted(io.BytesIO(content)).load()
    except MemoryError:
        raise
    except Exception as error:
        if "weights_only" in str(error):
            raise
        name = getattr(f, "name", type(f).__name__)
        raise Refused(
            f"The file ({name}) is not one that mica.save() wrote, or it was cut short: {error}."
        ) from error
