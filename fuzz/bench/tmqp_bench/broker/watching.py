"""Watches a server as operators do, while it is measured: takes its metrics once a second, and
follows what the console shows.

Run as a module with the port of an admin door it continues until it is ended.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Final

from tmqp_bench.codec import ROOT

__all__ = ["WATCHES", "begin"]

#: What both say as soon as they are answered.
WATCHES: Final = "watches"
_EVERY_S: Final = 1.0
_TIMEOUT_S: Final = 30.0
_LIVE: Final = "/api/v1/live?topics=overview"


def begin(port: int, core: int) -> subprocess.Popen[str]:
    """Watch the server with an admin door at this port of loopback, from this core; returns the
    process once metrics and console have been answered.

    :raises OSError: when they are not.
    """
    place = str(ROOT / "fuzz" / "bench")
    watcher = subprocess.Popen(
        [sys.executable, "-m", "tmqp_bench.broker.watching", str(port)],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([place, str(ROOT / "src")])},
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509 - one thread
    )
    output = watcher.stdout
    assert output is not None, "it is a pipe"
    for _ in range(2):
        if output.readline().strip() != WATCHES:
            watcher.kill()
            watcher.communicate()
            raise OSError(f"no admin door answers at port {port}")
    return watcher


def _take_metrics(port: int) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    said = False
    while True:
        began = time.monotonic()
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        page = answer.read()
        if answer.status != 200 or b"tmqp_build_info" not in page:
            raise OSError(f"/metrics was answered with {answer.status}")
        if not said:
            said = True
            print(WATCHES, flush=True)
        time.sleep(max(0.0, began + _EVERY_S - time.monotonic()))


def _follow(port: int) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    connection.request("GET", _LIVE, headers={"Accept": "text/event-stream"})
    answer = connection.getresponse()
    if answer.status != 200 or not answer.readline():
        raise OSError(f"{_LIVE} was answered with {answer.status}")
    print(WATCHES, flush=True)
    while answer.readline():
        pass


def _watch(how: Callable[[int], None], port: int) -> None:
    """One way to watch: where it comes to an end, all does."""
    with contextlib.suppress(OSError):
        how(port)
    os._exit(1)


def main(port: int) -> None:
    """Watch until the server has ended, or somebody ends this process."""
    threading.Thread(target=_watch, args=(_follow, port), daemon=True).start()
    _watch(_take_metrics, port)


if __name__ == "__main__":
    main(int(sys.argv[1]))
