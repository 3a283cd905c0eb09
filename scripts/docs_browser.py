"""Reads the built site in a headless Chromium, as a visitor does.

    python scripts/docs_browser.py [--pictures FOLDER]    # after ./dev docs

Every page of the guides, concepts, modules and headers, and a part of those of operators and classes, is loaded
at a phone's width (390 pixels): nothing may be missing, no script may complain, and the page does not scroll
sideways. Then the search has to find `softmax`. Chromium is spoken to by its own protocol, over a pipe. The last
line printed counts the checks.
"""

from __future__ import annotations

import argparse
import base64
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HTML = ROOT / "build" / "docs" / "html"
PHONE, DESK = (390, 844), (1280, 900)  # pixels
EVERY = 40  # of the pages of operators and classes, which are made alike
PATIENCE = 60  # seconds for a page


class Browser:
    """A headless Chromium with one page."""

    def __init__(self) -> None:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        if program is None:
            raise SystemExit(
                "docs_browser: Chromium is missing. Install it with: sudo apt-get install chromium"
            )
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # a child may still write
        down, up = os.pipe(), os.pipe()
        options = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe"
        command = f'exec "{program}" {options} --user-data-dir={self.profile.name} 3<&{down[0]} 4>&{up[1]}'
        self.process = subprocess.Popen(
            ["bash", "-c", command], pass_fds=(down[0], up[1]), stderr=subprocess.DEVNULL
        )
        os.close(down[0])
        os.close(up[1])
        self.to, self.of = os.fdopen(down[1], "wb"), os.fdopen(up[0], "rb")
        self.number, self.session = 0, ""
        self.faults: list[str] = []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Sends a command and returns its result; events that come before it are noted."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def read(self) -> dict[str, Any]:
        """The next message of the browser, noted where it tells of a fault."""
        text = bytearray()
        while (byte := self.of.read(1)) != b"\0":
            if not byte:
                raise RuntimeError("Chromium ended.")
            text += byte
        message: dict[str, Any] = json.loads(text)
        said = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self.loaded = True
            case "Runtime.exceptionThrown":
                self.faults.append(f"a script raised {said['exceptionDetails']['text']}")
            case "Runtime.consoleAPICalled" if said["type"] in ("error", "assert"):
                self.faults.append(f"the console says {said['args']}")
            case "Log.entryAdded" if said["entry"]["level"] == "error":
                self.faults.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")
            case "Network.responseReceived" if said["response"]["status"] >= 400:
                self.faults.append(f"{said['response']['url']} gives {said['response']['status']}")
        return message

    def open(self, url: str) -> list[str]:
        """Loads a page; what was wrong with it."""
        self.faults, self.loaded = [], False
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self.read()
        return self.faults

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def resize(self, size: tuple[int, int]) -> None:
        """Sets the window's size, in pixels; a narrow one is a phone's."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=size[0],
            height=size[1],
            deviceScaleFactor=1,
            mobile=size[0] < 600,
        )

    def picture(self, file: Path) -> None:
        """Writes what is seen as PNG."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        """Ends the browser."""
        self.to.close()
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()


class Quiet(SimpleHTTPRequestHandler):
    """Serves the site without a line for each request."""

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def served() -> Iterator[str]:
    """The site's address while it is served."""
    with ThreadingHTTPServer(("localhost", 0), functools.partial(Quiet, directory=str(HTML))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()


def chosen() -> list[str]:
    """The pages that are read: all that a person wrote, and a part of those that are generated alike."""
    pages = sorted(str(page.relative_to(HTML)) for page in HTML.rglob("*.html"))
    alike = [p for p in pages if p.startswith("operators/") or (p.startswith("api/") and p[4:5].islower())]
    written = [p for p in pages if p not in alike and not p.startswith(("_", "genindex", "search"))]
    return [*written, "operators/softmax.html", "api/mica.html", "api/nn.html", *alike[::EVERY]]


def narrow(browser: Browser) -> list[str]:
    """What is wider than a phone, if the page is."""
    wide = browser.evaluate("document.documentElement.scrollWidth")
    return [f"the page is {wide} pixels wide on a phone of {PHONE[0]}"] if wide > PHONE[0] else []


def search(browser: Browser, address: str, word: str) -> list[str]:
    """Whether the search shows the operator's page."""
    faults = browser.open(f"{address}/search.html?q={word}")
    links = "[...document.querySelectorAll('ul.search a')].map(a => a.getAttribute('href')).join(' ')"
    found, until = "", time.monotonic() + PATIENCE
    while f"operators/{word}.html" not in found and time.monotonic() < until:
        time.sleep(0.2)
        found = browser.evaluate(links) or ""
    return faults if f"operators/{word}.html" in found else [*faults, f"the search finds ({found})"]


def pictures(browser: Browser, address: str, folder: Path) -> None:
    """Shows some pages at both widths."""
    folder.mkdir(parents=True, exist_ok=True)
    some = ["index", "operators/softmax", "api/nn", "api/nn.Conv2d", "api/nn.functional", "sdk/abi"]
    for page in [*some, "guides/transforms", "reference/conformance", "search.html?q=softmax"]:
        for name, size in {"phone": PHONE, "desk": DESK}.items():
            browser.resize(size)
            browser.open(f"{address}/{page}" + ("" if "html" in page else ".html"))
            time.sleep(2 if "search" in page else 0.3)
            browser.picture(folder / f"{page.partition('.html')[0].replace('/', '_')}_{name}.png")


def read_all() -> tuple[int, int]:
    """Reads the chosen pages and searches; how many checks passed and failed."""
    browser = Browser()
    results: dict[str, list[str]] = {}
    with served() as address:
        browser.resize(PHONE)
        for page in chosen():
            results[page] = [*browser.open(f"{address}/{page}"), *narrow(browser)]
        results["search"] = search(browser, address, "softmax")
    browser.close()
    for page, faults in results.items():
        for fault in faults:
            print(f"{page}: {fault}")
    failed = sum(map(bool, results.values()))
    return len(results) - failed, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--pictures", type=Path, help="write pictures of some pages into this folder, instead"
    )
    asked = parser.parse_args()
    if asked.pictures:
        browser = Browser()
        with served() as address:
            pictures(browser, address, asked.pictures)
        browser.close()
        return 0
    passed, failed = read_all()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
