"""A headless Chromium for tests, spoken to over a pipe by its own protocol; nothing else needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

__all__ = ["CHROMIUM", "Browser", "browser"]

#: The program; None if it is not installed.
CHROMIUM: Final = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
#: The browser reads from descriptor 3 and writes to 4.
_REDIRECT: Final = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
_MOST_S: Final = 30


class Browser:
    """One page of a browser."""

    def __init__(self, write: int, read: int) -> None:
        self._write = write
        self._read = read
        self._number = 0
        self._data = b""
        self._session = ""
        #: Errors of scripts, refusals of the security policy, failed loads: all should be none.
        self.complaints: list[str] = []
        #: Every URL that was asked for.
        self.asked: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._data:
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "the browser ended"
            self._data += chunk
        line, _, self._data = self._data.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(
                str(details.get("exception", details).get("description", details))
            )
        elif event["method"] == "Log.entryAdded":
            entry = parameters["entry"]
            self.complaints.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")
        elif event["method"] == "Network.requestWillBeSent":
            self.asked.append(parameters["request"]["url"])

    def run(self, script: str) -> Any:
        """The value of an expression in the page; awaited if it is a promise."""
        answer = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, url: str) -> None:
        """Go to an address."""
        self._call("Page.navigate", url=url)

    def until(self, script: str) -> Any:
        """Wait until an expression is true, and return it.

        :raises AssertionError: if it never is.
        """
        end = time.monotonic() + _MOST_S
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}\n{self.text()}\n{self.complaints}"
            time.sleep(0.02)
        return value

    def text(self) -> str:
        """What the page shows."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def click(self, words: str) -> None:
        """Click what has these words: a link or a button that is to be seen."""
        script = f"""(() => {{
          const found = [...document.querySelectorAll('a, button')].filter(
            (each) => each.textContent.trim() === {json.dumps(words)}
              && each.getClientRects().length);
          if (found.length) found.at(-1).click();
          return found.length; }})()"""
        self.until(script)

    def key(self, name: str) -> None:
        """Press a key: a character, or one that has a name."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27}
        text = {"Enter": "\r"}.get(name, name if len(name) == 1 else "")
        for kind in ("keyDown", "keyUp"):
            self._call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                code=name,
                windowsVirtualKeyCode=codes.get(name, ord(name.upper()[0])),
                text=text if kind == "keyDown" else "",
            )

    def type(self, text: str) -> None:
        """Write text into the field that has the focus."""
        self._call("Input.insertText", text=text)

    def screen(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the window, and the colours that the user prefers."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path: Path) -> None:
        """Write a picture of the whole page."""
        data = self._call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def browser() -> Iterator[Browser]:
    """Run a browser for the time of the block."""
    assert CHROMIUM is not None
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        redirected = [sys.executable, "-c", _REDIRECT, str(to_read), str(from_write), *words]
        process = subprocess.Popen(
            redirected,
            pass_fds=(to_read, from_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        try:
            yield Browser(to_write, from_read)
        finally:
            os.close(to_write)
            os.close(from_read)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
