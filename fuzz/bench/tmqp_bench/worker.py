"""The process in which things are measured: it obeys one line of JSON at a time.

Started as ``python -m tmqp_bench.worker ours`` or ``... peers``, with the build of ``tmqp`` to be
measured on ``PYTHONPATH``.  The first line it writes tells what it found; each request
``{"case", "payload_bytes", "seconds"}`` is answered with ``{"ns", "messages"}`` or ``{"error"}``.
Nobody else works meanwhile, and the time taken is that of this process alone (processor time).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.metadata
import json
import platform
import sys
import time
from typing import Any

from tmqp_bench.peers import DISTRIBUTIONS, PEERS
from tmqp_bench.work import Prepare, Work, message_count

__all__ = ["main", "measure", "passes_for"]


def measure(work: Work, passes: int) -> tuple[float, int]:
    """Go over the stream ``passes`` times; return nanoseconds a message, and how many there were.

    :raises AssertionError: if a pass does not see every message.
    """
    messages = 0
    started = time.process_time_ns()
    for _ in range(passes):
        messages += work.run(None)
    spent = time.process_time_ns() - started
    if messages != passes * work.messages:
        raise AssertionError(f"{messages} messages instead of {passes * work.messages}")
    return spent / messages, messages


def passes_for(work: Work, seconds: float) -> int:
    """How many passes take about ``seconds``: also the warm-up."""
    work.run(None)
    ns, _ = measure(work, 1)
    return max(1, round(seconds * 1e9 / (ns * work.messages + 1)))


def _introduce(group: str) -> tuple[dict[str, Any], dict[str, Prepare]]:
    """What this process measures, and with which versions."""
    about: dict[str, Any] = {"python": platform.python_version(), "group": group}
    if group == "ours":
        from tmqp_bench.ours import OURS  # noqa: PLC0415 - the other group needs no tmqp

        about["compiled"] = bool(importlib.import_module("tmqp").compiled)
        return about, OURS
    about["versions"] = {}
    for name in DISTRIBUTIONS:
        try:
            about["versions"][name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            about["versions"][name] = None
    return about, PEERS


_Prepared = dict[tuple[str, int], tuple[Work, int]]


def _answer(line: str, cases: dict[str, Prepare], prepared: _Prepared) -> dict[str, Any]:
    asked = json.loads(line)
    key = asked["case"], asked["payload_bytes"]
    try:
        if key not in prepared:
            work = cases[key[0]](key[1], message_count(key[1]))
            prepared[key] = work, passes_for(work, asked["seconds"])
        work, passes = prepared[key]
        ns, messages = measure(work, passes)
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is told by name
        return {"error": f"{type(error).__name__}: {error}"}
    return {"ns": ns, "messages": messages}


def main() -> None:
    """Introduce oneself, then answer until the input ends."""
    try:
        about, cases = _introduce(sys.argv[1])
    except ImportError as error:
        print(json.dumps({"error": f"it cannot be imported: {error}"}), flush=True)
        return
    print(json.dumps(about), flush=True)
    # The collector is off everywhere: when it runs depends on what else is alive, not on the code.
    gc.collect()
    gc.freeze()
    gc.disable()
    prepared: _Prepared = {}
    for line in sys.stdin:
        print(json.dumps(_answer(line, cases, prepared)), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
