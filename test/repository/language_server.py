"""What an editor sees: pyright's language server (of the package basedpyright) asked over its pipe.

`completions(folder, text, places)` opens the text as a program of the folder, whose pyrightconfig.json
says where stubs are, and gives the names that are offered at each (line, column).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SERVER = [sys.executable, "-c", "from basedpyright.langserver import main; main()", "--stdio"]


class _Connection:
    """Messages of the language server protocol over a process's pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._to, self._from = process.stdin, process.stdout

    def send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._to.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._to.flush()

    def _read(self) -> dict[str, Any]:
        length = 0
        while line := self._from.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "The language server ended."
        return dict(json.loads(self._from.read(length)))

    def ask(self, number: int, method: str, params: dict[str, Any]) -> Any:
        """The answer; what the server asks meanwhile it gets nothing for."""
        self.send(id=number, method=method, params=params)
        while True:
            message = self._read()
            if "method" in message and "id" in message:
                items = message.get("params", {}).get("items")
                self.send(id=message["id"], result=None if items is None else [None] * len(items))
            elif message.get("id") == number:
                return message["result"]


def completions(folder: Path, text: str, places: list[tuple[int, int]]) -> list[list[str]]:
    """The names offered at each place of the text."""
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder) as process:
        server = _Connection(process)
        root, uri = folder.as_uri(), (folder / "program.py").as_uri()
        folders = [{"uri": root, "name": "programs"}]
        first = {"processId": os.getpid(), "rootUri": root, "workspaceFolders": folders, "capabilities": {}}
        server.ask(0, "initialize", first)
        server.send(method="initialized", params={})
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        server.send(method="textDocument/didOpen", params={"textDocument": document})
        found = []
        for number, (line, column) in enumerate(places, 1):
            where = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
            answer = server.ask(number, "textDocument/completion", where) or []
            items = answer["items"] if isinstance(answer, dict) else answer
            found.append([item["label"] for item in items])
        process.kill()
    return found
