"""Writing checkpoints of torch before 1.6, for who asks for them; serialization/_legacy_reader.py tells the format."""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

from mica.serialization._legacy_reader import MAGIC, PROTOCOL
from mica.serialization._pickler import Pickler
from mica.storage import bytes_of


def write(obj: Any, file: Any, protocol: int, root: str) -> None:
    """Writes a checkpoint of the old format to an open binary file; the format has no `root`."""
    machine = {
        "protocol_version": PROTOCOL,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for head in (MAGIC, PROTOCOL, machine):
        pickle.dump(head, file, protocol)
    buffer = io.BytesIO()
    pickler = Pickler(buffer, protocol, legacy=True)
    pickler.dump(obj)
    file.write(buffer.getvalue())
    storages = {key: flat for key, flat, _ in pickler.storages.values()}
    pickle.dump(sorted(storages), file, protocol)
    for key in sorted(storages):
        file.write(storages[key].numel().to_bytes(8, "little"))
        file.write(bytes_of(storages[key]))
