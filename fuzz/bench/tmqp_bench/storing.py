"""The work that the measurement of the store times; prints one line of JSON.

python -m tmqp_bench.storing DIRECTORY MESSAGES
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import tmqp
from tmqp.blocks import StoredMessage
from tmqp_server.storage.port import KeepChannel, KeepQueue, Retention, StoreBatch
from tmqp_server.storage.sqlite import SqliteStore

__all__ = ["measure"]

_BODY: Final = b"x" * 100
_NOW_US: Final = 1_700_000_000_000_000
_ROUNDS: Final = 7

#: What the new process does; it prints one line of JSON.
_OPENER: Final = """\
import json, sys, time
from pathlib import Path
from tmqp_server.storage.sqlite import SqliteStore
def memory():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
before = memory()
begin = time.perf_counter()
store = SqliteStore(Path(sys.argv[1]), floor_bytes=0)
found = store.recover()
recovered = time.perf_counter()
opened = memory()
count = after = 0
while messages := store.fetch(1, after, 1 << 62, 256, 1 << 30, 0):
    count += len(messages)
    after = messages[-1].sequence
fetched = time.perf_counter()
owed = found.queues[0].regular_count
assert count == owed, (count, owed)
print(json.dumps({"messages": count, "recover_s": recovered - begin, "fetch_s": fetched - recovered,
    "recover_bytes": opened - before, "fetch_bytes": memory() - before}))
store.close(clean=True)
"""


def measure(place: Path, messages: int) -> dict[str, Any]:
    """Measure all there is, below a directory."""
    store = SqliteStore(place / "data", floor_bytes=0)
    store.recover()
    batch = StoreBatch()
    batch.changes = [KeepChannel("c", b""), KeepQueue(1, "c", 1, b"", Retention())]
    store.write(batch, _NOW_US)
    sequence = 0
    rates: dict[str, list[float]] = {}
    for _ in range(_ROUNDS):
        for name, size, writes in (("append", 256, 100), ("consumed", 256, 100), ("one", 1, 200)):
            bare = _append_bare(place / "bare", size, writes)
            ours = _append(store, sequence, size, writes, settling=name == "consumed")
            sequence += size * writes
            rates.setdefault(f"bare_{name}", []).append(size * writes / bare)
            rates.setdefault(name, []).append(size * writes / ours)
            rates.setdefault(f"{name}_ratio", []).append(bare / ours)
    begin = time.perf_counter()
    for first in range(1, sequence + 1, 256):
        batch = StoreBatch()
        batch.settled[1] = list(range(first, min(first + 256, sequence + 1)))
        store.write(batch, _NOW_US)
    settled = sequence / (time.perf_counter() - begin)
    for _ in range(0, messages, 256):
        _append(store, sequence, 256, 1)
        sequence += 256
    store.close(clean=True)
    size = sum(path.stat().st_size for path in (place / "data").iterdir())
    opened = subprocess.run(
        [sys.executable, "-c", _OPENER, str(place / "data")],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = {name: statistics.median(values) for name, values in rates.items()}
    found |= {"settle": settled, "disk_bytes": size, **json.loads(opened.stdout)}
    found["build"] = "compiled" if tmqp.compiled else "interpreted"
    return found


def _append_bare(path: Path, size: int, writes: int) -> float:
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        begin = time.perf_counter()
        for _ in range(writes):
            os.write(file, _BODY * size)
            os.fdatasync(file)
        return time.perf_counter() - begin
    finally:
        os.close(file)


def _append(
    store: SqliteStore, sequence: int, size: int, writes: int, *, settling: bool = False
) -> float:
    """Append some writes; what makes the messages is not counted.

    With ``settling`` each also settles the messages of the one before.
    """
    took = 0.0
    for number in range(writes):
        batch = StoreBatch()
        if settling and number:
            batch.settled[1] = list(range(sequence - size + 1, sequence + 1))
        batch.appended[1] = [
            StoredMessage(n, _NOW_US, 0, 0, 0, 0, 0, 0, 0, 100, _BODY)
            for n in range(sequence + 1, sequence + size + 1)
        ]
        sequence += size
        begin = time.perf_counter()
        store.write(batch, _NOW_US)
        took += time.perf_counter() - begin
    return took


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]))))
