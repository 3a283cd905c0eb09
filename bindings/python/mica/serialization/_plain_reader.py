"""Plain pickles of tensors, as Mica's first versions saved them and pickle.dumps() makes them; with
`weights_only` by the rules of serialization/_pickle/rules.py and those of this file."""

from __future__ import annotations

import pickle
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.serialization._pickle import makers as making, rules
from mica.serialization._pickle.kinds import BYTES, COUNT, DTYPE, FLAG, SHORT_TEXT, SIZES, STATE, TENSOR, Kind
from mica.serialization._pickle.machine import Refused, shown
from mica.serialization._pickle.rules import Rule
from mica.serialization._tensors import _SharedBytes
from mica.serialization._zip_reader import Source, safe_globals

_FORMERLY, _TENSORS = "mica._serialization", "mica.serialization._tensors"  # files name the module of then
CLASS = Kind(
    "the class of a tensor", lambda machine, value: isinstance(value, type) and issubclass(value, Tensor)
)
MEMORY = Kind("a storage's bytes", lambda machine, value: type(value) in (_SharedBytes, bytearray))


class _Strict(rules.Builder):
    """Reads a pickle that nobody trusts. A storage's bytes become one tensor on the wished device, so that
    what shares them shares it, and what expands them is not copied."""

    def __init__(self, content: bytes, source: Source) -> None:
        super().__init__(content, source.name, safe_globals, record="its pickle")
        self._source = source
        self._placed: dict[int, tuple[Any, Tensor]] = {}
        calls = [
            Rule(
                "mica.serialization._tensors._rebuild_tensor",
                self._tensor,
                MEMORY,
                DTYPE,
                COUNT,
                SIZES,
                SIZES,
                SHORT_TEXT,
                FLAG,
            ),
            Rule("mica.serialization._tensors._rebuild_subclass", self._subclass, CLASS, TENSOR, FLAG, STATE),
            Rule("mica.serialization._tensors._rebuild_meta", making.meta_tensor, DTYPE, SIZES, SIZES, FLAG),
            Rule("mica._C._metadata_object", _metadata_object, SHORT_TEXT),
        ]
        memory = Rule("mica.serialization._tensors._SharedBytes", _SharedBytes, BYTES, optional=1)
        self.table = {
            **{rule.path: rule for rule in calls},
            memory.path: _SharedBytes,
            "mica.Size": mica.Size,
            "mica.device": rules.known("torch.device"),
            "mica.Tensor": Tensor,
            "mica.nn.parameter.Parameter": mica.nn.Parameter,
            "mica.nn.parameter.Buffer": mica.nn.Buffer,
        }
        self.rules = {id(self.table[rule.path]): rule for rule in [*calls, memory]}

    def find_global(self, path: str) -> Any:
        module, _, name = path.rpartition(".")
        return super().find_global(f"{_TENSORS}.{name}" if module == _FORMERLY else path)

    def persistent(self, pid: Any) -> Any:
        self.refuse(f"the pickle refers to {shown(pid)}, which is no storage.")

    def _tensor(
        self, memory: Any, dtype: Any, offset: int, size: Any, stride: Any, device: str, grad: Any
    ) -> Tensor:
        if len(memory) % dtype.itemsize:
            raise Refused(f"a storage of ({len(memory)}) bytes has no whole number of elements of {dtype}.")
        _, flat = self._placed.get(id(memory)) or self._place(memory, device)
        made = making.shaped(flat.view(dtype), offset, size, stride)
        return made.requires_grad_() if grad else made

    def _place(self, memory: Any, device: str) -> tuple[Any, Tensor]:
        flat = (
            mica.frombuffer(memory, dtype=mica.uint8)
            if memory
            else mica.empty(0, dtype=mica.uint8, device="cpu")
        )
        self._placed[id(memory)] = (memory, self._source.placed(flat, device))
        return self._placed[id(memory)]

    def _subclass(self, cls: Any, data: Tensor, grad: Any, state: Any) -> Tensor:
        if cls not in (Tensor, mica.nn.Parameter, mica.nn.Buffer) and not self.is_users(cls):
            raise Refused(f"a tensor of {shown(cls)} is made.")
        return making.with_state(Tensor._make_subclass(cls, data, bool(grad)), state)


def _metadata_object(name: str) -> Any:
    """A dtype, layout or memory format by its name."""
    found = vars(_C).get(name)
    if not isinstance(found, (mica.dtype, mica.layout, mica.memory_format)):
        raise Refused(f"the file refers to ({shown(name)}), which is no dtype, layout or memory format.")
    return found


class _Trusting(pickle.Unpickler):
    """Reads a pickle that is trusted, of this version or an earlier one."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(_TENSORS if module == _FORMERLY else module, name)


def load_file(f: Any, weights_only: bool, map_location: Any, name: str) -> Any:
    """What an open file holds."""
    if weights_only:
        return _Strict(f.read(), Source(map_location, name)).load()
    from mica.utils._tree import map_tensors

    obj = _Trusting(f).load()
    return obj if map_location is None else map_tensors(obj, lambda t: t.to(map_location))
