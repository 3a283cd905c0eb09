"""`mica doctor`: what became of each plugin, and why.

Candidates are listed and tried in child processes first, so that one that crashes or
hangs is a line of the report; so are their drivers, which a process that has opened them
could not ask in a child any more. What survives is then loaded here, in the order of a
program that needs all of it, to see what each registers and overrides.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import mica
from mica import _C

HELP = "Says of every plugin where it was found, whether it loads, and if not why."

Plugin = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plugin", nargs="*", help="shared objects to load besides those that are found")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--verbose", action="store_true", help="list every registration")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="how long a plugin may take to start (default: 30)"
    )


def in_child(work: Callable[[], Any], seconds: float, doing: str = "starts") -> tuple[Any, str]:
    """(what `work` returns, "") from a forked process, or (None, how that process ended)."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            with os.fdopen(writer, "w") as pipe:
                json.dump(work(), pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    end = time.monotonic() + seconds
    content = b""
    hangs = False
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while not hangs:
            ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
            part = pipe.read(65536) if ready else b""
            content += part
            hangs = not ready
            if not part:
                break
    if hangs:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if hangs:
        return None, f"it hangs when it {doing}: there is no answer after ({seconds:g}) s"
    if os.WIFSIGNALED(status):
        return None, f"it crashes when it {doing}, by signal ({signal.Signals(os.WTERMSIG(status)).name})"
    if os.WEXITSTATUS(status) != 0 or not content:
        return None, f"it ends the process when it {doing}, with status ({os.WEXITSTATUS(status)})"
    return json.loads(content), ""


def _try(path: str) -> str:
    """Loads a plugin; returns why it cannot be, which the real load will say again."""
    try:
        mica.load_plugin(path)
    except RuntimeError as error:
        return str(error)
    return ""


def _without_opening(asked: list[str]) -> list[Plugin]:
    """Every candidate with its manifest; nothing is opened."""
    os.environ.pop("MICA_PLUGINS", None)
    first = [{**_C._read_plugin(path), "found_by": "MICA_PLUGINS", "asked": True} for path in asked]
    paths = {plugin["path"] for plugin in first}
    return first + [plugin for plugin in _C._plugins() if plugin["path"] not in paths]


def examine(asked: list[str], given: list[str], seconds: float) -> list[Plugin]:
    """Every candidate as the report shows it."""
    listed, failure = in_child(lambda: _without_opening([*asked, *given]), seconds)
    if failure:
        raise RuntimeError(f"The candidates cannot be listed: {failure}.")
    bad: dict[str, Plugin] = {}
    devices: dict[str, dict[str, list[str]]] = {}
    for plugin in listed:
        if plugin["state"] == "loaded":
            devices[plugin["path"]] = _devices(plugin, seconds)
        if plugin["state"] != "found":
            continue
        why, failure = in_child(lambda path=plugin["path"]: _try(path), seconds)  # type: ignore[misc]
        if failure:
            reason = f"Plugin ({plugin['path']}) is left out of this examination: {failure}."
            bad[plugin["path"]] = {**plugin, "state": "refused", "reason": reason}
        elif not why:
            devices[plugin["path"]] = _devices(plugin, seconds)
    os.environ["MICA_PLUGINS"] = ":".join(path for path in asked if os.path.realpath(path) not in bad)
    for path in given:
        if os.path.realpath(path) not in bad:
            _try(path)
    for plugin in _C._plugins():
        if plugin["state"] == "found" and plugin["path"] not in bad:
            _try(plugin["path"])
    asked_paths = {os.path.realpath(path) for path in [*asked, *given]}
    found = [bad.pop(plugin["path"], plugin) for plugin in _C._plugins()] + list(bad.values())
    for plugin in found:
        plugin["asked"] = plugin["path"] in asked_paths
        plugin["registered"] = _C._plugin_registrations(plugin["path"])
        if plugin["state"] == "loaded" and plugin["path"] not in devices:  # it did not load alone
            devices[plugin["path"]] = _devices(plugin, seconds)
        plugin["devices"] = devices[plugin["path"]] if plugin["state"] == "loaded" else {}
    return found


def _devices(plugin: Plugin, seconds: float) -> dict[str, list[str]]:
    """By backend that a plugin provides: a line for each of its devices, or one that says why there is none.

    A child process opens the plugin, where it is not open, and asks its driver.
    """
    said = {}
    for name in (p.removeprefix("backend:") for p in plugin["provides"].split(",") if "backend:" in p):
        answer, failure = in_child(lambda: _asked(plugin["path"], name), seconds, "is asked for its devices")  # noqa: B023
        said[name] = [f"no device: {failure}"] if failure else answer
    return said


def _asked(path: str, backend: str) -> list[str]:
    _try(path)
    try:
        count = _C._device_count(backend)
        if count == 0:  # whose properties say why
            _described(backend, 0)
    except RuntimeError as error:
        return [f"no device: {str(error).splitlines()[0]}"]
    return [_described_or_why(backend, number) for number in range(count)]


def _described_or_why(backend: str, number: int) -> str:
    try:
        return _described(backend, number)
    except RuntimeError as error:
        return f"{backend}:{number}: {str(error).splitlines()[0]}"


def _described(backend: str, number: int) -> str:
    found = mica.device_properties(backend if backend == "cpu" else f"{backend}:{number}")
    told = [found["name"], found.get("architecture", "")]
    told += [f"{found['total_memory'] / 2**30:.1f} GiB" if found["total_memory"] >= 0 else ""]
    return f"{backend}:{number} {', '.join(filter(None, told))}"


def problems(plugins: list[Plugin]) -> list[str]:
    """What was asked for and did not load, a sentence each."""
    loaded = {plugin["name"] for plugin in plugins if plugin["state"] == "loaded"}
    only = [name for name in os.environ.get("MICA_PLUGINS_ONLY", "").split(",") if name]
    sentences = [plugin["reason"] for plugin in plugins if plugin["asked"] and plugin["state"] != "loaded"]
    sentences += [
        f"MICA_PLUGINS_ONLY names the plugin ({name}), which did not load."
        for name in only
        if name not in loaded
    ]
    return sentences


def _counted(registered: list[Plugin]) -> str:
    counts = Counter(item["kind"] for item in registered)
    endings = {kind: "es" if kind == "class" else "s" for kind in counts}
    return ", ".join(f"{n} {kind}{endings[kind] if n > 1 else ''}" for kind, n in counts.items())


def _overridden(registered: list[Plugin]) -> str:
    over = [item for item in registered if item["overrides"]]
    shown = [f"{item['name'] or item['kind']} at {item['key']} (of {item['overrides']})" for item in over]
    return ", ".join(shown[:5] + ([f"and {len(shown) - 5} more"] if len(shown) > 5 else []))


def lines(plugin: Plugin, verbose: bool) -> list[str]:
    """The report's lines for one plugin."""
    title = plugin["name"] or os.path.basename(plugin["path"])
    maker = f" ({plugin['vendor']})" if plugin["vendor"] else ""
    out = [f"{title} {plugin['version']}{maker}: {plugin['state']}".replace(" :", ":")]

    def row(label: str, text: str) -> None:
        if text:
            out.append(f"  {label:<11}{text}")

    row("why", plugin["reason"])
    row("found by", ", ".join(filter(None, [plugin["found_by"], plugin["description"]])))
    row("file", plugin["path"])
    row("ABI", plugin["abi"])
    needs = [f"CPU features {plugin['cpu_features']}" if plugin["cpu_features"] else ""]
    needs += [f"run time {plugin['runtime_version']}" if plugin["runtime_version"] else ""]
    row("needs", "; ".join(filter(None, needs)))
    row("provides", plugin["provides"])
    registered = plugin["registered"]
    for said in plugin["devices"].values():
        for device in said:
            row("device", device)
    row("registered", _counted(registered))
    row("overrides", _overridden(registered))
    for note in plugin["notes"]:
        row("left out", note)
    for item in registered:
        if item["waits"]:
            row("waits", f"a kernel for ({item['name']}), an operator that does not exist")
    if verbose:
        for item in registered:
            out.append(f"    {item['kind']} {item['name']}" + (f" at {item['key']}" if item["key"] else ""))
    return out


def run(arguments: argparse.Namespace) -> int:
    asked = [path for path in os.environ.get("MICA_PLUGINS", "").split(":") if path]
    plugins = examine(asked, arguments.plugin, arguments.seconds)
    failures = problems(plugins)
    if arguments.json:
        report = {"mica": mica.__version__, "abi": _C._abi_version, "plugins": plugins, "problems": failures}
        print(json.dumps(report, indent=2))
        return 1 if failures else 0
    print(f"Mica {mica.__version__}, plugin ABI {_C._abi_version}\n")
    for plugin in plugins:
        print("\n".join(lines(plugin, arguments.verbose)))
    for sentence in failures:
        print(f"\nasked for and not loaded: {sentence}")
    return 1 if failures else 0
