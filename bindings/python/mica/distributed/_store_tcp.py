"""TCPStore: a table in the process of one rank, which the others reach over TCP.

A client greets with `_GREETING`, which the server repeats; then each request gets one answer. Both are a frame:
one byte (what it is), the number of its fields in 4 bytes, and each field with its length in 4 bytes. The server
bounds all of them and the number of clients. A client that sends anything else loses its connection, and nobody
else notices. There is no password: whoever reaches the port can read and write the table.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import hmac
import math
import os
import resource
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence

from mica.distributed._errors import DistNetworkError
from mica.distributed._store import (
    KEY_LIMIT,
    KEYS_LIMIT,
    TOTAL_LIMIT,
    VALUE_LIMIT,
    HashStore,
    Store,
    bounded,
    bounded_key,
)

__all__ = ["TCPStore"]

_GREETING = b"mica store 1\n"
_GREETING_SECONDS = 10.0
_CLIENTS = 4096
_FIELDS = KEYS_LIMIT + 1  # of a frame
_REQUEST = 2 * VALUE_LIMIT + KEY_LIMIT  # bytes of a request's fields
_ANSWER = TOTAL_LIMIT // 4  # bytes of an answer's fields
_SLICE = 2.0  # seconds that one request waits for keys; the client asks again
_MARGIN = 5.0  # seconds beyond a wait's own in which a master answers
_PASSING = {errno.EMFILE, errno.ENFILE, errno.ECONNABORTED, errno.ENOBUFS, errno.ENOMEM}  # of accept()
_COUNT = struct.Struct("<BI")
_LENGTH = struct.Struct("<I")
_CHANGES = {1: "set", 2: "append", 3: "add", 4: "compare_set", 5: "delete"}
_NUMBERS = {name: number for number, name in _CHANGES.items()}
_GIVEN = {"set": 1, "append": 1, "add": 1, "compare_set": 2, "delete": 0}
_READ, _LIST, _WAIT = 10, 11, 12
_DONE, _REFUSED = 0, 1


def _receive(link: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = link.recv(min(size, 1 << 20))  # memory grows with what came, not with what was announced
        if not part:
            raise ConnectionError("the other side closed the connection")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _receive_frame(link: socket.socket, most: int) -> tuple[int, list[bytes]]:
    """What it is, and its fields, of at most so many bytes."""
    what, count = _COUNT.unpack(_receive(link, _COUNT.size))
    if count > _FIELDS:
        raise ConnectionError(f"a frame of ({count}) fields came, where at most ({_FIELDS}) are taken")
    fields, left = [], most
    for _ in range(count):
        (size,) = _LENGTH.unpack(_receive(link, _LENGTH.size))
        if size > left:
            raise ConnectionError(f"a field of ({size}) bytes came, where ({left}) are taken")
        left -= size
        fields.append(_receive(link, size))
    return what, fields


def _send_frame(link: socket.socket, what: int, fields: Sequence[bytes]) -> None:
    parts = [_COUNT.pack(what, len(fields))]
    for field in fields:
        parts += (_LENGTH.pack(len(field)), field)
    link.sendall(b"".join(parts))


def _bounded_answer(fields: list[bytes]) -> list[bytes]:
    size = sum(map(len, fields))
    if size > _ANSWER:
        raise ValueError(
            f"The answer of TCPStore has ({size}) bytes; at most ({_ANSWER}) are sent at once: ask for fewer keys."
        )
    return fields


class _Server:
    """Serves one table; a thread for each client."""

    def __init__(self, port: int, listening: int | None) -> None:
        if listening is not None:
            self._socket = socket.socket(fileno=listening)
        else:
            family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
            try:
                self._socket = socket.create_server(
                    ("", port), family=family, backlog=2048, dualstack_ipv6=family == socket.AF_INET6
                )
            except (OSError, OverflowError) as error:
                raise DistNetworkError(
                    f"The server of TCPStore cannot listen on port ({port}): {error}; choose a free port, or 0."
                ) from error
        self.port = self._socket.getsockname()[1]
        self._table = HashStore()
        self._clients: set[socket.socket] = set()
        self._users, self._closed, self._kept = 0, False, False
        self._process = os.getpid()  # whose threads serve; a forked one has the sockets alone
        self._lock = threading.RLock()  # a finalizer may call leave() at any time
        threading.Thread(target=self._accept, name="mica store", daemon=True).start()

    def _accept(self) -> None:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _CLIENTS if files == resource.RLIM_INFINITY else min(_CLIENTS, files // 2)
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError as error:
                if error.errno not in _PASSING:  # closed
                    return
                time.sleep(0.05)
                continue
            with self._lock:
                full = len(self._clients) >= most
                if not full:
                    self._clients.add(link)
            if full:
                link.close()
                continue
            serving = threading.Thread(
                target=self._serve, args=(link,), name="mica store client", daemon=True
            )
            try:
                serving.start()
            except RuntimeError:  # no more threads
                self._drop(link)

    def _drop(self, link: socket.socket) -> None:
        with self._lock:
            self._clients.discard(link)
        link.close()

    def _serve(self, link: socket.socket) -> None:
        try:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.settimeout(_GREETING_SECONDS)
            if not hmac.compare_digest(_receive(link, len(_GREETING)), _GREETING):
                return
            link.sendall(_GREETING)
            link.settimeout(None)
            while True:
                _send_frame(link, *self._answer(*_receive_frame(link, _REQUEST)))
        except (OSError, MemoryError):
            pass
        finally:
            self._drop(link)

    def _answer(self, what: int, fields: list[bytes]) -> tuple[int, list[bytes]]:
        try:
            if what in _CHANGES and len(fields) == 1 + _GIVEN[_CHANGES[what]]:
                key, *given = fields
                bounded_key(key).decode()  # list_keys() gives it as text
                changed = self._table._change(_CHANGES[what], key, [bounded(value) for value in given])
                return _DONE, [changed]
            if what == _READ:
                values = self._table._read(fields)
                _bounded_answer([value for value in values if value is not None])
                # A value has "1" before it; a field without it says that there is none.
                return _DONE, [b"" if v is None else b"1" + v for v in values]
            if what == _LIST:
                return _DONE, _bounded_answer([key for key in self._table._read(None) if key is not None])
            if what == _WAIT and fields and len(fields[0]) == 8:
                (seconds,) = struct.unpack("<d", fields[0])
                if math.isfinite(seconds):
                    came = self._table._wait(fields[1:], min(max(seconds, 0.0), _SLICE))
                    return _DONE, [b"1" if came else b"0"]
        except ValueError as error:
            return _REFUSED, [str(error).encode()]
        raise ConnectionError(f"a request ({what}) of ({len(fields)}) fields came, which is none")

    def enter(self) -> bool:
        """Counts a store that serves the table through it; False where it serves no more."""
        with self._lock:
            if self._closed or self._process != os.getpid():
                return False
            self._users += 1
            return True

    def keep(self) -> None:
        """Serves until the process ends."""
        with self._lock:
            self._users += not self._kept
            self._kept = True

    def leave(self) -> None:
        """Closes it with its last store."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            self._closed = True
            links = [self._socket, *self._clients]
        if self._process == os.getpid():  # else the sockets are another process's as well
            for link in links:
                with contextlib.suppress(OSError):
                    link.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads it
        self._socket.close()


class TCPStore(Store):
    """A table in the process of one rank (the master), which the others reach over TCP.

    As `torch.distributed.TCPStore`, with a protocol of its own: masters and clients are all Mica's. The table is
    gone with the master's object.

    Args:
        host_name (str): The master's machine.
        port (int): The master's port; 0 chooses a free one on the master.
        world_size (int, optional): How many ranks the master waits for. Default: None, for nobody.
        is_master (bool): Whether this process serves the table. Default: False.
        timeout (timedelta): For connecting, `get` and `wait`. Default: 5 minutes.
        wait_for_workers (bool): Whether it waits for all ranks. Default: True.
        multi_tenant (bool): Serves the table of a master of this process that has the port already. Default: False.
        master_listen_fd (int, optional): A socket that listens on the port already. Default: None.
        use_libuv (bool): Taken and not used. Default: True.

    Raises:
        DistNetworkError: The port is in use, or the master was not reached within the timeout.
        DistStoreError: Not all ranks came within the timeout.

    Example:
        >>> store = mica.distributed.TCPStore("localhost", 0, is_master=True)
        >>> store.set("a", "1")
        >>> mica.distributed.TCPStore("localhost", store.port).get("a")
        b'1'
    """

    _shared: weakref.WeakValueDictionary[int, _Server] = weakref.WeakValueDictionary()
    _sharing = threading.RLock()

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: datetime.timedelta = datetime.timedelta(minutes=5),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__(timeout)
        self._server: _Server | None = None
        if is_master:
            with self._sharing:
                shared = self._shared.get(port) if multi_tenant else None
                if shared is None or not shared.enter():
                    shared = _Server(port, master_listen_fd)
                    shared.enter()
                self._server, port = shared, shared.port
                self._shared[port] = shared
            weakref.finalize(self, shared.leave)
        self.host, self.port = host_name, port
        self._lock = threading.Lock()
        self._link = self._connect()
        weakref.finalize(self, socket.socket.close, self._link)
        if wait_for_workers and world_size is not None and world_size > 0:
            self._come_together(world_size)

    @property
    def serves(self) -> bool:
        """Whether this is the master."""
        return self._server is not None

    def _keep_serving(self) -> None:
        """Lets the master serve its table until the process ends, for ranks that come again before it does."""
        if self._server is not None:
            self._server.keep()

    def __repr__(self) -> str:
        return f"TCPStore(host={self.host!r}, port={self.port}, master={self._server is not None})"

    def _connect(self) -> socket.socket:
        seconds = self._timeout.total_seconds()
        deadline, why = time.monotonic() + seconds, "it did not answer"
        while True:
            left = max(deadline - time.monotonic(), 0.01)
            try:
                link = socket.create_connection((self.host, self.port), timeout=left)
                try:
                    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    if link.getsockname() == link.getpeername():
                        raise ConnectionError("nobody listens there, and it connected to itself")
                    link.sendall(_GREETING)
                    if _receive(link, len(_GREETING)) == _GREETING:
                        return link
                    why = "another service answered there"
                except BaseException:
                    link.close()
                    raise
                link.close()
            except (OSError, OverflowError) as error:
                why = str(error)
            if time.monotonic() >= deadline:
                raise DistNetworkError(
                    f"TCPStore did not reach its master at ({self.host}:{self.port}) within ({seconds}) s: {why}."
                )
            time.sleep(min(0.05, left))

    def _come_together(self, world: int) -> None:
        come = self.add("mica/workers", 1)
        if come % world == 0:
            self.set(f"mica/workers/{come // world}", "1")
        self.wait([f"mica/workers/{(come - 1) // world + 1}"])

    def _ask(self, what: int, fields: Sequence[bytes], seconds: float | None = None) -> list[bytes]:
        """The answer to a request, within so long; for None the store's timeout."""
        most = self._timeout.total_seconds() if seconds is None else seconds
        most = min(max(most, 0.01), 1e6)  # poll() takes days, not years
        with self._lock:
            try:
                self._link.settimeout(most)
                _send_frame(self._link, what, fields)
                status, answer = _receive_frame(self._link, _ANSWER + len(fields))
            except BaseException as error:  # an answer that comes later must not be the next request's
                self._link.close()
                if not isinstance(error, OSError):
                    raise
                why = (
                    f"does not answer within ({most:.3g}) s" if isinstance(error, TimeoutError) else "is gone"
                )
                raise DistNetworkError(
                    f"The master of TCPStore at ({self.host}:{self.port}) {why} ({error}); its rank may have ended or "
                    "hang."
                ) from error
        if status == _REFUSED:
            raise ValueError(answer[0].decode())
        return answer

    def _change(self, operation: str, key: bytes, given: Sequence[bytes]) -> bytes:
        return self._ask(_NUMBERS[operation], [key, *given])[0]

    def _read(self, keys: Sequence[bytes] | None) -> list[bytes | None]:
        if keys is None:
            return [*self._ask(_LIST, [])]
        return [value[1:] if value else None for value in self._ask(_READ, keys)]

    def _wait(self, keys: Sequence[bytes], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            asked = [struct.pack("<d", min(left, _SLICE)), *keys]
            if self._ask(_WAIT, asked, max(left, 0.0) + _MARGIN) == [b"1"]:
                return True
            if left <= _SLICE and time.monotonic() >= deadline:
                return False
