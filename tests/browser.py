"""A browser without a window, driven by chromedriver over the WebDriver protocol: what tests and screenshots need."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

MISSING = "no chromium and chromedriver here; make browser installs them"


def is_installed() -> bool:
    """Return whether a browser and its driver are on this machine."""
    return bool(shutil.which("chromedriver") and (shutil.which("chromium") or shutil.which("chromium-browser")))


class Browser:
    """A headless Chromium; use it as a context.

    Args:
        width: Width of the window.
        height: Its height.
        dark: Whether pages are asked to be dark.
    """

    def __init__(self, width: int = 1400, height: int = 1000, dark: bool = False) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._driver = subprocess.Popen(
            [shutil.which("chromedriver") or "chromedriver", f"--port={port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._at = f"http://127.0.0.1:{port}"
        # The page needs no network; any host that it asked for would not be found.
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={width},{height}",
            "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars",
            "--force-device-scale-factor=1", "--disable-background-networking",
            *(["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]),
        ]  # fmt: skip
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments, "binary": _binary()},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        self._wait_until_ready()
        self._session = ""
        opened = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{opened['sessionId']}"
        self.size(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait(10)

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        self._call("POST", "/url", {"url": path.resolve().as_uri()})

    def size(self, width: int, height: int) -> None:
        """Give the page a size; windows of Chromium are never narrower than 500 pixels, pages may be."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def command(self, name: str, **parameters: Any) -> Any:
        """Run a command of the DevTools protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page and return what it returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait_for(self, condition: str, seconds: float = 30.0) -> None:
        """Wait until an expression of the page is true.

        Raises:
            TimeoutError: If it does not become so.
        """
        end = time.monotonic() + seconds
        while not self.run(f"return Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(f"still not so after {seconds:g} s: {condition}; {self.errors()}")
            time.sleep(0.05)

    def draw_all(self) -> int:
        """Open every section, bring every figure into view, wait until it is drawn, and return how many there are."""
        self.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        count = self.run("return document.querySelectorAll('.plot').length")
        for k in range(count):
            self.run(f"document.querySelectorAll('.plot')[{k}].scrollIntoView()")
            self.wait_for(f"document.querySelectorAll('.plot')[{k}].dataset.drawn === 'yes'")
        self.run("window.scrollTo(0, 0)")
        return count

    def screenshot(self, path: Path, whole: bool = True) -> Path:
        """Write a picture of the page, from top to bottom."""
        height = self.run("return document.documentElement.scrollHeight") if whole else None
        width = self.run("return document.documentElement.clientWidth")
        clip = {"clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}} if height else {}
        found = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **clip)
        path.write_bytes(base64.b64decode(found["data"]))
        return path

    def errors(self) -> list[str]:
        """Return what the console has complained about."""
        found = self._call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in found if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """Return the addresses of all requests so far."""
        entries = [
            json.loads(one["message"])["message"] for one in self._call("POST", "/se/log", {"type": "performance"})
        ]
        return [one["params"]["request"]["url"] for one in entries if one["method"] == "Network.requestWillBeSent"]

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                time.sleep(0.05)
        raise TimeoutError("chromedriver does not start")

    def _call(self, method: str, path: str, content: Any = None) -> Any:
        place = path if path in ("/status", "/session") else f"{self._session}{path}"
        data = None if method in ("GET", "DELETE") else json.dumps(content or {}).encode()
        request = urllib.request.Request(
            f"{self._at}{place}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None


def _binary() -> str:
    return shutil.which("chromium") or shutil.which("chromium-browser") or "chromium"
