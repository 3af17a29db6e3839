"""A small client of the WebDriver protocol, which chromedriver speaks: enough to open a page, use it and look at it."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

__all__ = ["Browser", "missing_browser"]

STARTED = re.compile(r"started successfully on port (\d+)")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--disable-dev-shm-usage",
]  # fmt: skip


def missing_browser() -> str | None:
    """What must be installed before pages can be tested, None if all is there."""
    has_browser = any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    missing = [] if has_browser else ["chromium"]
    missing += [] if shutil.which("chromedriver") else ["chromedriver (Debian: chromium-driver)"]
    return f"no browser to test with: {' and '.join(missing)} not found" if missing else None


class Browser:
    """A headless Chromium with an empty profile; use as a context manager."""

    def __enter__(self) -> Browser:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._driver.stdout is not None
        port = next((found[1] for line in self._driver.stdout if (found := STARTED.search(line))), None)
        if port is None:
            raise RuntimeError("chromedriver ended before it was ready: run it by hand to see why")
        self._address = f"http://127.0.0.1:{port}"
        options = {"args": [*ARGUMENTS, f"--user-data-dir={self._folder.name}"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._address += f"/session/{session['sessionId']}"
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait()
            assert self._driver.stdout is not None
            self._driver.stdout.close()
            self._folder.cleanup()

    def open(self, page: Path | str, width: int = 1280, height: int = 800) -> None:
        """Show a file, or an address, in a view of this size."""
        self._call("POST", "/goog/cdp/execute", {
            "cmd": "Emulation.setDeviceMetricsOverride",
            "params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        })  # fmt: skip
        self._call("POST", "/url", {"url": page if isinstance(page, str) else page.resolve().as_uri()})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run the body of a JavaScript function and return what it returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector: str) -> str:
        """The text of the first element that matches."""
        return str(
            self.run("const e = document.querySelector(arguments[0]); return e.innerText ?? e.textContent", selector)
        )

    def click(self, selector: str) -> None:
        """Click the middle of an element, as a mouse does."""
        self._call("POST", f"/element/{self._find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Type into an element."""
        self._call("POST", f"/element/{self._find(selector)}/value", {"text": text})

    def press(self, *keys: str) -> None:
        """Press keys one after the other, wherever the focus is."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._act({"type": "key", "id": "keyboard", "actions": strokes})

    def wheel(self, selector: str, delta: int) -> None:
        """Turn the wheel over an element."""
        origin = {ELEMENT: self._find(selector)}
        turn = {"type": "scroll", "x": 0, "y": 0, "deltaX": 0, "deltaY": delta, "origin": origin}
        self._act({"type": "wheel", "id": "wheel", "actions": [turn]})

    def pinch(self, selector: str, start: int, end: int) -> None:
        """Touch an element with two fingers `start` pixels from its middle and move them to `end`."""
        origin = {ELEMENT: self._find(selector)}
        fingers = [
            {"type": "pointer", "id": f"finger {side}", "parameters": {"pointerType": "touch"}, "actions": [
                {"type": "pointerMove", "x": side * start, "y": 0, "origin": origin}, {"type": "pointerDown", "button": 0},
                {"type": "pointerMove", "duration": 100, "x": side * end, "y": 0, "origin": origin},
                {"type": "pointerUp", "button": 0},
            ]} for side in (-1, 1)
        ]  # fmt: skip
        self._act(*fingers)

    def complaints(self) -> list[str]:
        """What the page wrote to the console as warnings and errors since the last look."""
        entries = self._call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("WARNING", "SEVERE")]

    def screenshot(self, path: Path) -> Path:
        """Save what is seen as a PNG file."""
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))
        return path

    def print_pages(self) -> bytes:
        """The page as printed, a PDF file."""
        return base64.b64decode(self._call("POST", "/print", {}))

    def _find(self, selector: str) -> str:
        return str(self._call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT])

    def _act(self, *actions: dict[str, Any]) -> None:
        self._call("POST", "/actions", {"actions": list(actions)})

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._address + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None
