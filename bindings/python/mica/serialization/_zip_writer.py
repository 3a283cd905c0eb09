"""Writing torch's zip checkpoints: what mica.save() does.

A checkpoint is a zip archive, nothing compressed: data.pkl, the pickle that serialization/_pickler.py writes,
and data/<number> with the bytes of each storage, aligned to 64 bytes so that they can be mapped.
serialization/_zip_reader.py is the other half.
"""

from __future__ import annotations

import io
import sys
import zipfile
from typing import Any

from mica.serialization._pickler import Pickler
from mica.storage import bytes_of

ALIGNMENT = 64


def _add(archive: zipfile.ZipFile, name: str, content: Any) -> None:
    """A record whose content begins at a multiple of the alignment."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.file_size = len(content)
    file: Any = archive.fp
    start = file.tell() + 30 + len(name.encode()) + 4
    padding = -start % ALIGNMENT
    info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    with archive.open(info, "w", force_zip64=len(content) > (1 << 31) - 1) as record:
        record.write(content)


def write(obj: Any, file: Any, protocol: int, root: str) -> None:
    """Writes a checkpoint to an open binary file."""
    buffer = io.BytesIO()
    pickler = Pickler(buffer, protocol)
    pickler.dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        _add(archive, f"{root}/data.pkl", buffer.getvalue())
        _add(archive, f"{root}/.format_version", b"1")
        _add(archive, f"{root}/.storage_alignment", str(ALIGNMENT).encode())
        _add(archive, f"{root}/byteorder", sys.byteorder.encode())
        for key, flat, _ in pickler.storages.values():
            _add(archive, f"{root}/data/{key}", bytes_of(flat))
        _add(archive, f"{root}/version", b"3\n")
